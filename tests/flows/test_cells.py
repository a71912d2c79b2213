"""Cells of a grid, and training them."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import pytest
from distributed.client import FutureCancelledError
from prefect import flow

import ltr
from flows.cells import cells_of, train_all
from tasks.config.reading import parse
from tasks.records import CellResult, Fold, WorkerError
from tasks.store.cells import CellFolder, cell_key
from tasks.store.datasets import keep_queries
from tasks.training.cell import train
from tests.conftest import make_queries

CONFIG = parse({
    "data": {"files": "x"},
    "rankers": {"a": {"kind": "lambdamart", "sweep": {"learning_rate": [0.1, 0.2]}}, "b": {"kind": "least_squares"}},
})  # fmt: skip
FOLDS = tuple(Fold(f"t{k}", f"v{k}", f"e{k}") for k in range(3))


def test_a_cell_for_each_ranker_point_and_fold():
    cells = cells_of(CONFIG, list(CONFIG.rankers), FOLDS)
    assert len(cells) == 9
    assert cells[0].label == "a · learning_rate=0.1 · fold 1"
    assert cells_of(CONFIG, list(CONFIG.rankers), FOLDS[:1])[2].label == "b"
    assert len({cell_key(cell) for cell in cells}) == 9


@pytest.fixture
def cell(prefect_server, workplace, request):
    """A cell that trains at once, on data in the store, of which Prefect's cache knows nothing yet."""
    first = crc32(request.node.name.encode())
    config = parse({"data": {"files": "x"}, "rankers": {"small": {"kind": "ranksvm"}}, "measures": ["map"], "select": "map"})
    names = [keep_queries(make_queries(30, seed=first + k)) for k in range(3)]
    return cells_of(config, ["small"], (Fold(*names),))[0]


@flow
def trained_once(cell):
    """The result of a cell, and the name of the state in which its task ended."""
    future = train.submit(cell)
    return future.result(), future.state.name


def test_a_result_comes_back_from_prefects_cache_as_the_record_it_was(cell, monkeypatch):
    """Prefect keeps it by the cell's key once the cell's folder is there: from the second time on."""
    first, _ = trained_once(cell)
    assert type(first) is CellResult
    assert first == CellFolder.of(cell_key(cell)).result()
    assert trained_once(cell) == (first, "Completed")
    monkeypatch.setattr(CellFolder, "result", lambda _: pytest.fail("read from its folder"))
    monkeypatch.setattr(ltr.RankSVM, "fit", lambda *_: pytest.fail("trained again"))
    again, state = trained_once(replace(cell, label="another name"))
    assert state == "Cached"
    assert type(again) is CellResult
    assert again == first
    assert type(again.remarks) is tuple


READ = """
import json
import sys
from pathlib import Path
from prefect.results import ResultRecord
from tasks.records import CellResult
found = ResultRecord.deserialize(Path(sys.argv[1]).read_bytes())
assert found.metadata.serializer.type == "json"
assert type(found.result) is CellResult
assert found.result == CellResult(**json.loads(sys.argv[2])), found.result
"""


def test_another_process_reads_the_result_as_the_record_it_was(cell):
    result, _ = trained_once(cell)
    assert trained_once(cell)[0] == result
    stored = Path(os.environ["PREFECT_LOCAL_STORAGE_PATH"]) / cell_key(cell)
    command = [sys.executable, "-c", READ, str(stored), json.dumps(asdict(result))]
    read = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert read.returncode == 0, read.stderr


def test_numbers_are_those_of_the_cells_own_folder(cell):
    """A number that was changed in what Prefect keeps is nobody's."""

    @flow
    def noted():
        results = []
        train_all(CONFIG, [cell], False, lambda _, result: results.append(result))
        return results

    first = noted()
    assert noted() == first, "which is when Prefect keeps it"
    stored = Path(os.environ["PREFECT_LOCAL_STORAGE_PATH"]) / cell_key(cell)
    text = stored.read_text()
    stored.write_text(text.replace(f"{first[0].metrics['test_map']}", "0.999"))
    assert stored.read_text() != text
    assert noted() == first


def test_cells_that_decide_the_same_are_trained_once_and_noted_twice(cell, monkeypatch):
    noted, fit, fitted = [], ltr.RankSVM.fit, []
    monkeypatch.setattr(ltr.RankSVM, "fit", lambda self, *sets: (fitted.append(1), fit(self, *sets))[1])
    twin = replace(cell, label="twin", ranker="twin")

    @flow
    def both():
        train_all(CONFIG, [cell, twin], False, lambda cell, result: noted.append((cell.label, result.digest)))

    both()
    assert fitted == [1]
    assert [label for label, _ in noted] == ["small", "twin"]
    assert noted[0][1] == noted[1][1]


def test_no_other_cell_is_begun_once_there_shall_be_no_more(cell):
    noted = []
    cells = [replace(cell, label=str(seed), section={**cell.section, "C": 0.1 * seed}) for seed in (1, 2, 3)]

    @flow
    def some(more):
        train_all(CONFIG, cells, False, lambda cell, _: noted.append(cell.label), more=more)

    left = iter((True, True, False))
    some(lambda: next(left))
    assert noted == ["1", "2"]
    some(lambda: False)
    assert noted == ["1", "2"]


def test_a_scheduler_that_is_gone_is_told_with_what_was_being_trained(monkeypatch):
    """Dask says of each future that it was cancelled, and nothing of what to do."""
    cells = cells_of(CONFIG, ["a"], FOLDS[:1])

    class Lost:
        def result(self):
            raise FutureCancelledError("train-0", "scheduler-connection-lost", "Client lost the connection to the scheduler.")

    monkeypatch.setattr("flows.cells.train", SimpleNamespace(submit=lambda *_: Lost()))
    monkeypatch.setattr("flows.cells.first_done", lambda futures: futures[0])
    with pytest.raises(
        WorkerError, match=r"scheduler ended.* while a · learning_rate=0\.1 and a · learning_rate=0\.2 were being trained: what was"
    ):
        train_all(CONFIG.model_copy(update={"workers": 2}), cells, False, lambda *_: None, failed=lambda *_: None)
