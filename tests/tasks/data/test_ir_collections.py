"""Collections of a package that is played here, with its downloads: read where they are, refused where they would be fetched."""

import contextlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tasks.data.files import located
from tasks.data.ir_collections import collection_file
from tasks.data.judgments import read_judgments
from tasks.data.pool import pooled
from tasks.data.trec import RUN, read_trec
from tasks.records import DataError


class BaseDownload:
    pass


class LocalDownload(BaseDownload):
    def stream(self):
        raise FileNotFoundError("downloads/abc")


class RequestsDownload(BaseDownload):
    def stream(self):
        raise AssertionError("something was downloaded")


class Collection:
    """Qrels and scored documents, as rows or as what has to be opened first."""

    def __init__(self, qrels=None, scoreddocs=None, source=None):
        self.rows, self.source = {"qrels": qrels, "scoreddocs": scoreddocs}, source

    def _iter(self, what):
        if self.source is not None:
            try:
                self.source.stream()
            except AssertionError:
                raise
            except Exception as error:
                raise RuntimeError("All download sources failed", [error]) from None
        for query, document, value in self.rows[what]:
            yield SimpleNamespace(query_id=query, doc_id=document, relevance=value, score=value)

    def has_qrels(self):
        return self.rows["qrels"] is not None

    def has_scoreddocs(self):
        return self.rows["scoreddocs"] is not None

    def qrels_iter(self):
        return self._iter("qrels")

    def scoreddocs_iter(self):
        return self._iter("scoreddocs")


@pytest.fixture
def collections(workplace, monkeypatch):
    registry = {
        "small/2019": Collection([("1", "a", 2), ("1", "b", 0), ("2", "a", -1)], [("1", "b", 3.5), ("1", "a", 0.1), ("2", "a", 1e-7)]),
        "away": Collection([("1", "a", 1)], source=RequestsDownload()),
        "broken": Collection([("1", "a", 1)], source=SimpleNamespace(stream=lambda: (_ for _ in ()).throw(ValueError("5 columns")))),
        "spaced": Collection([("1", "a b", 1)]),
        "runless": Collection([("1", "a", 1)]),
    }  # fmt: skip
    package = ModuleType("ir_datasets")
    package.registry, package.util = registry, SimpleNamespace(BaseDownload=BaseDownload)
    package.load = registry.__getitem__
    monkeypatch.setitem(sys.modules, "ir_datasets", package)
    return registry


def test_qrels_and_runs_are_read_by_name(collections):
    judged, _ = read_judgments([Path("ir_datasets:small/2019")])
    assert judged.rows() == [("1", "a", 2.0), ("1", "b", 0.0), ("2", "a", -1.0)]
    run = read_trec([Path("ir_datasets:small/2019:scoreddocs")], RUN)
    assert run.rows() == [("1", "b", 3.5, 1), ("1", "a", 0.1, 2), ("2", "a", 1e-7, 1)]
    table, _ = pooled(judged, {"first": run})
    assert table.columns == ["query", "document", "label", "first"]
    collections.clear()
    assert located(Path("ir_datasets:small/2019")) == collection_file("ir_datasets:small/2019"), "it was written once"


def test_downloads_are_as_they_were_afterwards(collections):
    before = RequestsDownload.stream
    with contextlib.suppress(DataError):
        collection_file("ir_datasets:away")
    collection_file("ir_datasets:small/2019")
    assert RequestsDownload.stream is before
    assert list(Path(".lambdaflow/collections").glob("*.partial")) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "away",
            "its qrels are not on this machine, and nothing is downloaded automatically; ir_datasets export away qrels downloads them",
        ),
        ("broken", "ir_datasets cannot read it: All download sources failed"),
        ("small/2091", "ir_datasets has no collection 'small/2091'; did you mean small/2019?"),
        ("runless:scoreddocs", "this collection has no scoreddocs"),
        ("spaced", "id 'a b': TREC's files hold ids without spaces"),
    ],
)
def test_what_is_not_here_is_refused_in_a_line(collections, name, says):
    with pytest.raises(DataError) as refused:
        located(Path(f"ir_datasets:{name}"))
    assert str(refused.value).startswith(f"ir_datasets:{name}: ")
    assert says in str(refused.value).replace("('", "")
    assert "\n" not in str(refused.value)


def test_instructions_of_a_collection_that_cannot_be_downloaded(collections):
    collections["away"].source = LocalDownload()
    collections["away"]._iter = lambda what: LocalDownload().stream()
    with pytest.raises(DataError, match="its qrels are not on this machine"):
        located(Path("ir_datasets:away"))


def test_without_the_package(workplace, monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(DataError, match=r"ir_datasets:x: the package ir_datasets is not installed \(pip install ir_datasets\)"):
        located(Path("ir_datasets:x"))
