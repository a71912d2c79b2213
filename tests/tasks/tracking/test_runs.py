"""Runs and their values are found by the beginning of a run's id; what is not there is said."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tasks.records import DataError
from tasks.tracking import runs as runs_module
from tasks.tracking.runs import _values, bases_of, chosen_cells, find_cell, find_run, find_values
from tasks.tracking.store import CELL_KEY, CHOSEN, PARENT, REFIT, RUN_KEY, opened, tracking_uri
from tasks.tracking.tracker import Tracker


def test_several_and_unfinished(workplace):
    runs = [Tracker("x", str(k)).run_id for k in range(20)]
    first = next(r[0] for r in runs if sum(s[0] == r[0] for s in runs) > 1)
    with pytest.raises(DataError, match=r"[0-9]+ run ids start with"):
        find_run(first)
    assert find_run(runs[0]).id == runs[0]
    with pytest.raises(
        DataError, match=f"x: not a model folder, and no run id starts with 'x'; the latest run x is {runs[-1][:8]}$"
    ):
        find_run("x")
    with pytest.raises(DataError, match=f"y: not a model folder, and no run id starts with 'y'; the latest is {runs[-1][:8]}$"):
        find_run("y")
    with pytest.raises(DataError, match="has no finished ranker 'x'; it has: none"):
        find_values(f"{runs[0]}:x")


def test_values_of_a_deleted_cell_that_are_kept_nowhere_else_are_told(workplace):
    run = SimpleNamespace(id="abcdef", children=list, tags={})
    with pytest.raises(DataError, match=r"^abc:t: the run of this model is no longer in MLflow; run the same configuration again"):
        _values("abc:t", run.children(), "key")


def test_what_a_run_chose_are_its_cells_also_where_two_rankers_are_one(workplace):
    cells = [SimpleNamespace(name=f"trees · {k}", tags={CELL_KEY: f"k{k}"}) for k in range(3)]
    noted = json.dumps({"trees": ["k0", "k2"], "same": ["k0", "k2"], "gone": ["k1", "k9"]})
    run = SimpleNamespace(children=lambda: cells, noted=lambda tag: noted)
    assert chosen_cells(run) == {"trees": [cells[0], cells[2]], "same": [cells[0], cells[2]]}


def test_the_cells_of_a_run_are_read_once_for_all_that_a_ranker_learned_from(workplace, monkeypatch):
    """They were read once a base: 23 processor seconds for 20 of them in a run of 500 cells."""
    cells, read = [SimpleNamespace(tags={CELL_KEY: f"k{k}"}) for k in range(5)], []
    parent = SimpleNamespace(id="abcdef", children=lambda: read.append(1) or cells)
    monkeypatch.setattr(runs_module, "tracked_by_id", lambda run_id: [parent])
    cell = SimpleNamespace(tags={PARENT: "abcdef"}, noted=lambda tag: json.dumps(["k3", "k0", "k1"]))
    assert bases_of(cell, ["a", "a 2", "b"]) == [cells[3], cells[0], cells[1]]
    assert len(read) == 1


def test_a_ranker_that_was_trained_again_on_all_data_is_that_one_and_its_folds_stay(workplace, monkeypatch):
    cells = [SimpleNamespace(name=name, tags={CELL_KEY: name}) for name in ("first", "second", "all")]
    tags = {CHOSEN: {"trees": ["first", "second"]}, REFIT: {"trees": "all"}}
    run = SimpleNamespace(
        id="abcdef", tags={RUN_KEY: "key", "best": "trees"}, children=lambda: cells, noted=lambda tag: json.dumps(tags[tag])
    )
    monkeypatch.setattr(runs_module, "find_run", lambda reference: run)
    wanted = {"abc": "all", "abc:trees": "all", "abc:trees:1": "first", "abc:trees:2": "second"}
    assert {reference: find_cell(reference).name for reference in wanted} == wanted
    for fold in ("0", "3", "-1", "x"):
        with pytest.raises(DataError, match=rf"^abc:trees:{fold}: fold '{fold}'; trees has the folds 1 to 2$"):
            find_cell(f"abc:trees:{fold}")


@pytest.mark.long
def test_a_run_that_was_deleted_is_told_with_the_way_back(workplace):
    tracker = Tracker("x", "key")
    tracker.client.delete_run(tracker.run_id)
    with pytest.raises(
        DataError, match=rf"was deleted in MLflow; restore it there, or by mlflow runs restore --run-id {tracker.run_id}$"
    ):
        find_run(tracker.run_id[:8])
    command = [sys.executable, "-m", "mlflow", "runs", "restore", "--run-id", tracker.run_id]
    subprocess.run(command, env=os.environ | {"MLFLOW_TRACKING_URI": tracking_uri()}, check=True, capture_output=True)
    assert find_run(tracker.run_id[:8]).id == tracker.run_id


def test_a_run_whose_experiment_was_renamed_is_told_with_the_experiment(workplace):
    tracker = Tracker("x", "key")
    tracker.client.rename_experiment(tracker.experiment_id, "mine")
    later = Tracker("x", "key")
    said = rf"^{tracker.run_id}: this run is in MLflow's experiment 'mine', and runs are looked up in 'lambdaflow'; if that was renamed, restore"
    with pytest.raises(DataError, match=said):
        find_run(tracker.run_id)
    assert find_run(later.run_id).id == later.run_id


def test_a_run_that_another_program_wrote_is_told_as_such(workplace):
    """It ended every command with KeyError: 'lambdaflow.cell_key', or was said to have lost its values."""
    client, experiment = opened()
    run_id = client.create_run(experiment, run_name="own", tags={"run.language": "python"}).info.run_id
    for find in (find_run, find_cell, find_values):
        with pytest.raises(DataError, match=rf"^{run_id}: this run was not written by lambdaflow"):
            find(run_id)


def test_a_tag_that_was_edited_is_named(workplace):
    tracker = Tracker("x", "key")
    for edited in ("{oops", '{"trees": 5}', '{"trees": {"a": 1}}', '{"trees": []}', '["trees"]', "7"):
        tracker.client.set_tag(tracker.run_id, CHOSEN, edited)
        said = f"^run {tracker.run_id[:8]}: its tag lambdaflow.chosen was changed and no longer names what was chosen; run the same"
        with pytest.raises(DataError, match=said):
            find_values(f"{tracker.run_id}:trees")
    with pytest.raises(DataError, match="not a model folder, and no run id starts with"):
        find_run("elsewhere")
    with pytest.raises(
        ValueError, match=f"run {tracker.run_id[:8]} no longer has config.yaml in MLflow; run the same configuration"
    ):
        find_run(tracker.run_id).download("config.yaml")
