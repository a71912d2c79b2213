"""A cell is trained once, known by what decides it, and whole or not there."""

import json

import numpy as np
import polars as pl
import pytest

import ltr
from tasks import store
from tasks.config import SECTIONS, Conventions, Optimality
from tasks.evaluate import read_values
from tasks.optimality import certify
from tasks.train import cell_key, folder_of, train
from tests.conftest import make_queries


@pytest.fixture
def cell(workplace):
    names = {role: store.keep_queries(make_queries(30, seed=seed)) for seed, role in enumerate(("train", "valid", "test"))}
    section = SECTIONS["lambdarank"](kind="lambdarank", epochs=3).model_dump(mode="json", exclude={"sweep"})
    conventions = Conventions().model_dump(mode="json")
    return {"label": "x", "section": section, **names, "measures": ["ndcg@10", "map", "cndcg@3"], "conventions": conventions}


def test_a_cell_leaves_model_values_and_curve(cell):
    result = train.fn(cell)
    folder = folder_of(result["key"])
    model = ltr.load(folder / "model")
    assert model.digest == result["digest"]
    test = store.open_queries(cell["test"])
    values = read_values(folder / "values.parquet", "test")
    mine = ltr.evaluate({"label": test.labels, **test.sources}, model.predict(test.features), test.offsets, ["ndcg_10"])["ndcg_10"]
    assert values.height == test.n_queries
    assert result["metrics"]["test_ndcg_10"] == pytest.approx(np.nanmean(mine))
    assert set(result["metrics"]) == {f"{split}_{m}" for split in ("valid", "test") for m in ("ndcg_10", "map", "cndcg_3")}
    assert len(json.loads((folder / "curve.json").read_text())["iteration"]) == 3


def test_a_finished_cell_is_not_trained_again(cell, monkeypatch):
    first = train.fn(cell)
    monkeypatch.setattr(ltr.LambdaRank, "fit", lambda *_: pytest.fail("trained again"))
    assert train.fn(cell) == first
    assert train.fn({**cell, "label": "another name"}) == first


def test_fresh_gives_the_same_bytes_and_threads_do_not_matter(cell):
    first = train.fn(cell)
    for options in ({"fresh": True}, {"fresh": True, "threads": 1}):
        again = train.fn(cell, **options)
        assert {**again, "seconds": 0} == {**first, "seconds": 0}


def test_the_key_is_what_decides(cell, monkeypatch):
    key = cell_key(cell)
    assert cell_key({**cell, "label": "y", "fold": 3}) == key
    assert cell_key({**cell, "train": cell["valid"]}) != key
    assert cell_key({**cell, "measures": ["map"]}) != key
    monkeypatch.setattr("tasks.store.core_digest", lambda: "another core")
    assert cell_key(cell) != key


def test_a_failed_cell_leaves_nothing(cell, monkeypatch):
    monkeypatch.setattr(pl.DataFrame, "write_parquet", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        train.fn(cell)
    assert not list((store.STATE / "cells").iterdir())


def test_certificates_are_kept_and_look_at_early_epochs_too(cell):
    result = train.fn({**cell, "section": {**cell["section"], "keep_epochs": [1]}})
    config = Optimality(measure="ndcg", epsilon=0.1, delta=0.1, fine=True, one_at_a_time=True, early_epochs=(1,), escape=2)
    found = certify.fn(result["key"], cell["train"], config, cell["conventions"], 1, "x")
    assert [c["ranker"] for c in found] == ["x", "x, η from 0.001", "x, one weight at a time", "x, epoch 1"]
    assert found[0]["directions"] == 22
    assert len(found[0]["envelope"][0]) == 10
    assert found[0]["escape"]["epochs"] == found[3]["escape"]["epochs"] == 2
    assert found[3]["value"] != found[0]["value"]
    for certificate in (found[0], found[3]):
        assert certificate["escape"]["best"] > certificate["value"] - 0.01, "by the same rules"
    assert certify.fn(result["key"], cell["train"], config, cell["conventions"], 1, "x") == json.loads(json.dumps(found))


def test_trees_have_a_certificate_over_their_leaves(cell):
    config = Optimality(measure="ndcg", epsilon=0.1, delta=0.1)
    section = SECTIONS["lambdamart"](kind="lambdamart", n_trees=2, min_docs_in_leaf=3).model_dump(mode="json", exclude={"sweep"})
    trees = train.fn({**cell, "section": section})
    (found,) = certify.fn(trees["key"], cell["train"], config, cell["conventions"], 1, "trees")
    assert found["directions"] == 22
    assert found["escape"] is None
    split = json.loads((store.STATE / "cells" / trees["key"] / "importance.json").read_text())
    assert sum(split["splits"]) > 0
    assert [s > 0 for s in split["splits"]] == [g > 0 for g in split["gain"]]


def test_folders_are_whole_or_absent(workplace):
    target = workplace / "a" / "b"

    def fail_halfway():
        with store.made_whole(target) as partial:
            (partial / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert not target.exists()
    assert not list(target.parent.iterdir())
    with store.made_whole(target) as partial:
        (partial / "all").write_text("1")
    with store.made_whole(target) as partial:
        (partial / "all").write_text("2")
    assert (target / "all").read_text() == "1"
    with store.made_whole(target, replace=True) as partial:
        (partial / "all").write_text("3")
    assert (target / "all").read_text() == "3"


def test_stored_queries_come_back(workplace):
    queries = make_queries(10)
    name = store.keep_queries(queries)
    opened = store.open_queries(name)
    assert opened.digest == queries.digest == store.about_queries(name)["content"]
    assert isinstance(opened.features.base, np.memmap) or isinstance(opened.features, np.memmap)
    opened.features[0, 0] = 99
    assert store.open_queries(name).digest == queries.digest
