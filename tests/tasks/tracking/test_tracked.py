"""Runs as they stand in the store: read by tags of older releases too, and told where a model is gone."""

import shutil
from urllib.parse import unquote, urlparse

import pytest

import ltr
from tasks.tracking.runs import find_run
from tasks.tracking.store import CHOSEN
from tasks.tracking.tracked import Tracked
from tasks.tracking.tracker import Tracker


def test_tags_of_0_1_0_are_read_by_their_bare_names():
    assert Tracked("id", "x", {"chosen": "{}"}, {}, None).noted(CHOSEN) == "{}"
    assert Tracked("id", "x", {CHOSEN: "1", "chosen": "0"}, {}, None).noted(CHOSEN) == "1"
    assert Tracked("id", "x", {}, {}, None).noted(CHOSEN) is None


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
