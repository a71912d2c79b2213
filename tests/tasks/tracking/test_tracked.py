"""Runs as they stand in the store: read by tags of older releases too, and told where a model is gone."""

import atexit
import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from mlflow.tracking import MlflowClient

import ltr
from tasks.records import DataError
from tasks.store.cells import CellFolder
from tasks.store.values import table
from tasks.tracking.runs import find_run
from tasks.tracking.store import CHOSEN
from tasks.tracking.tracked import Tracked, _downloads
from tasks.tracking.tracker import Tracker
from tests.conftest import make_queries


def test_tags_of_0_1_0_are_read_by_their_bare_names():
    assert Tracked("id", "x", {"chosen": "{}"}, {}, None).noted(CHOSEN) == "{}"
    assert Tracked("id", "x", {CHOSEN: "1", "chosen": "0"}, {}, None).noted(CHOSEN) == "1"
    assert Tracked("id", "x", {}, {}, None).noted(CHOSEN) is None


def test_a_run_and_its_cells_are_found_without_reading_all_others(cell, monkeypatch):
    """A store of many nights has thousands of runs: each time that all were read took most of a minute."""
    Tracker("another", "other").cell(*cell)
    tracker = Tracker("x", "key")
    child = tracker.cell(*cell)
    search, read = MlflowClient.search_runs, []

    def counted(*given, **named):
        found = search(*given, **named)
        read.extend(run.info.run_id for run in found)
        return found

    monkeypatch.setattr(MlflowClient, "search_runs", counted)
    assert [one.id for one in find_run(tracker.run_id[:20]).children()] == [child]
    assert find_run(child).id == child
    assert {*read} == {tracker.run_id, child}


def test_a_cell_whose_model_was_deleted_is_told_and_made_anew(cell, tmp_path):
    """A second model on the same run left it with none: which one is meant nobody could say."""
    tracker = Tracker("x", "key")
    run_id = tracker.cell(*cell)
    (model,) = tracker.client.get_run(run_id).outputs.model_outputs
    tracker.client.delete_logged_model(model.model_id)
    with pytest.raises(ValueError, match=f"the model of run {run_id[:8]} was deleted in MLflow; run the same configuration again"):
        find_run(run_id).download_model(tmp_path / "gone")
    again = tracker.cell(*cell)
    assert again != run_id
    assert tracker.cell(*cell) == again
    (tmp_path / "there").mkdir()
    assert ltr.load(find_run(again).download_model(tmp_path / "there")).kind == "least_squares"


def test_a_model_without_its_files_is_told_when_it_is_asked_for(cell, tmp_path):
    tracker = Tracker("x", "key")
    run_id = tracker.cell(*cell)
    (model,) = tracker._models_of(run_id)
    shutil.rmtree(unquote(urlparse(model.artifact_location).path) + "/artifacts")
    with pytest.raises(
        ValueError, match=f"the files of the model of run {run_id[:8]} are no longer where MLflow says; run the same"
    ):
        find_run(run_id).download_model(tmp_path)


def test_files_of_another_model_are_no_model_of_the_run(cell, tmp_path):
    """Two folders of models that a restored backup had exchanged: each was whole, and `predict` scored by the other one without a word."""
    tracker = Tracker("x", "key")
    run_id = tracker.cell(*cell)
    (model,) = tracker._models_of(run_id)
    place = unquote(urlparse(model.artifact_location).path) + "/artifacts/model"
    noted = ltr.load(place).digest
    other = ltr.LeastSquares(ridge=5.0).fit(make_queries(12, seed=3))
    ltr.save(other, place)
    said = (
        rf"^run {run_id[:8]}: the files of its model are another model's \(digest {other.digest[:8]}, and {noted[:8]} was noted\)"
    )
    with pytest.raises(DataError, match=said):
        find_run(run_id).download_model(tmp_path)
    (Path(place) / "model.json").write_text('{"digest": ' + "[" * 5000 + "]" * 5000 + "}")
    with pytest.raises(ValueError, match=r"no readable model\.json"):
        ltr.load(find_run(run_id).download_model(tmp_path))


def test_what_is_downloaded_is_gone_with_the_process(cell, tmp_path, monkeypatch):
    """MLflow makes a folder of its own for each file of a server, and none of them was ever removed."""
    tracker = Tracker("x", "key")
    run_id, at_the_end = tracker.cell(*cell), []
    monkeypatch.setattr(atexit, "register", lambda does, *given, **named: at_the_end.append(lambda: does(*given, **named)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    _downloads.cache_clear()
    found = [find_run(run_id).download("values.parquet") for _ in range(2)]
    assert found[0] != found[1]
    assert all(path.is_file() and path.is_relative_to(tmp_path) for path in found)
    for does in at_the_end:
        does()
    _downloads.cache_clear()
    assert not list(tmp_path.glob("lambdaflow-*"))


def test_values_of_another_run_are_not_the_runs(cell):
    tracker = Tracker("x", "key")
    (one, result, *rest), queries = cell, make_queries(10)
    half = np.linspace(0, 1, queries.n_queries)
    table({"map": half}, queries, "test").write_parquet(CellFolder.of("k1").values)
    run_id = tracker.cell(one, result, *rest)
    assert find_run(run_id).download_values().name == "values.parquet"
    artifacts = Path(unquote(urlparse(tracker.client.get_run(run_id).info.artifact_uri).path))
    table({"map": half / 2}, queries, "test").write_parquet(artifacts / "values.parquet")
    said = rf"^run {run_id[:8]}: the mean of test_map in its values.parquet is 0.25, but the run logged 0.5: the file was replaced"
    with pytest.raises(DataError, match=said):
        find_run(run_id).download_values()
