"""MLflow: found again, never twice, never left running."""

import asyncio
import json
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, replace
from types import SimpleNamespace
from urllib.parse import unquote, urlparse

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import BAD_REQUEST, TEMPORARILY_UNAVAILABLE
from mlflow.tracking import MlflowClient
from prefect.exceptions import TerminationSignal

from tasks.records import Budget
from tasks.store.cells import CellFolder, PairsEntry, write_pairs
from tasks.tracking.store import BUDGET, CELL_KEY, CHOSEN, DIGEST, ERROR, SEARCHED, tracking_uri
from tasks.tracking.tracked import Tracked
from tasks.tracking.tracker import Tracker, _pairs, _source
from tests.tasks.tracking.conftest import DATA


def runs(status=None):
    client = MlflowClient(tracking_uri())
    experiment = client.get_experiment_by_name("lambdaflow").experiment_id
    return client.search_runs([experiment], f"attributes.status = '{status}'" if status else "")


def test_a_run_is_found_by_its_key_and_a_fresh_one_is_another(cell):
    first = Tracker("x", "key")
    assert Tracker("x", "key").run_id == first.run_id
    assert Tracker("x", "key", fresh=True).run_id != first.run_id
    assert Tracker("x", "other").run_id != first.run_id


def test_a_name_that_no_column_of_postgresql_holds_loses_its_middle(cell):
    tracker = Tracker("x", "key")
    label = f"trees · interactions={[['price', 'age']] * 20} · fold 2"
    name = tracker.client.get_run(tracker.cell(replace(cell[0], label=label), *cell[1:])).info.run_name
    first, last = name.split("…")
    assert (len(name), label.startswith(first), label.endswith(last)) == (250, True, True)


def test_the_parent_shows_the_models_of_cells_once_and_a_note_that_fits(cell):
    tracker = Tracker("x", "key")
    child = tracker.cell(*cell)
    for _ in range(2):
        tracker.show_models(["k1"])
    (shown,) = tracker.client.get_run(tracker.run_id).outputs.model_outputs
    (logged,) = tracker.client.get_run(child).outputs.model_outputs
    assert shown.model_id == logged.model_id
    tracker.note("| a |\n" * 2000)
    note = tracker.client.get_run(tracker.run_id).data.tags["mlflow.note.content"]
    assert 7900 < len(note) <= 8000
    assert note.endswith("| a |\n\n…")


def test_a_finished_cell_is_logged_once_and_a_half_made_one_again(cell):
    tracker = Tracker("x", "key")
    run_id = tracker.cell(*cell)
    assert tracker.cell(*cell) == run_id
    assert len(tracker.client.get_metric_history(run_id, "curve_valid_map")) <= 201
    looks = tracker.client.get_metric_history(run_id, "position_bias_propensity")
    assert {point.step: point.value for point in looks} == {rank: 1 / rank for rank in range(1, 31)}
    assert "position-bias.json" in {artifact.path for artifact in tracker.client.list_artifacts(run_id)}
    tracker.client.update_run(run_id, "RUNNING")
    again = tracker.cell(*cell)
    assert again != run_id
    assert {r.info.run_id for r in runs()} == {tracker.run_id, again}


def test_a_finished_cell_without_a_model_is_given_it_later_once(cell):
    tracker = Tracker("x", "key")
    before = replace(cell[1], digest="of another processor")  # its cell was deleted, and trained again
    run_id = tracker.cell(cell[0], before, *cell[2:], model=False)
    noted = tracker.client.get_run(run_id)
    assert not noted.outputs.model_outputs
    for _ in range(2):
        assert tracker.cell(*cell) == run_id
        (output,) = tracker.client.get_run(run_id).outputs.model_outputs
    model, run = tracker.client.get_logged_model(output.model_id), tracker.client.get_run(run_id)
    assert (run.info.status, run.info.end_time) == ("FINISHED", noted.info.end_time)
    assert (model.params, model.tags["mlflow.source.name"]) == (run.data.params, "lambdaflow")
    assert {one.key: one.value for one in model.metrics} == {"test_map": 0.5, "train_seconds": 1.0}
    assert len(tracker.client.get_metric_history(run_id, "test_map")) == 1
    assert tracker.client.get_run(run_id).data.tags[DIGEST] == cell[1].digest
    assert tracker.cell(*cell, model=False) == run_id


def once_unanswered(monkeypatch, name):
    """The first call of a method of MLflow's client is done, and its answer is lost."""
    done, calls = getattr(MlflowClient, name), []

    def call(self, *given, **named):
        calls.append(name)
        found = done(self, *given, **named)
        if len(calls) == 1:
            raise MlflowException("no answer", TEMPORARILY_UNAVAILABLE)
        return found

    monkeypatch.setattr("tasks.tracking.store._PAUSES", (0.01,))
    monkeypatch.setattr(MlflowClient, name, call)
    return calls


@pytest.mark.parametrize("fresh", [False, True])
def test_a_run_that_was_made_without_an_answer_is_gone_on_with(cell, monkeypatch, fresh):
    before = Tracker("x", "key", owner="me")
    with before.running():
        pass
    calls = once_unanswered(monkeypatch, "create_run")
    tracker = Tracker("x", "key" if fresh else "other", fresh=fresh, owner="me")
    assert len(calls) == 1
    assert tracker.run_id != before.run_id
    assert {run.info.run_id for run in runs()} == {before.run_id, tracker.run_id}


def test_numbers_that_are_written_twice_are_there_once(cell, monkeypatch):
    tracker = Tracker("x", "key")
    for write in (lambda: tracker.summary({"map": 0.5}, []), lambda: tracker.lines({"best": [0.1, 0.2]})):
        with monkeypatch.context() as patch:
            calls = once_unanswered(patch, "log_batch")
            write()
        assert len(calls) >= 2
    assert [len(tracker.client.get_metric_history(tracker.run_id, key)) for key in ("map", "best")] == [1, 2]


def test_half_a_model_is_none(cell):
    """Its upload broke off: MLflow calls it failed, or still pending."""
    tracker = Tracker("x", "key")
    run_id = tracker.cell(*cell)
    (model,) = tracker.client.get_run(run_id).outputs.model_outputs
    for status in ("FAILED", "PENDING"):
        tracker.client.finalize_logged_model(model.model_id, status)
        run_id = tracker.cell(*cell)
        (model,) = tracker.client.get_run(run_id).outputs.model_outputs
        assert tracker.client.get_logged_model(model.model_id).status == "READY"
        assert tracker.cell(*cell) == run_id


@pytest.mark.parametrize(
    "step", ["create_logged_model", "log_model_artifacts", "log_outputs", "log_batch", "finalize_logged_model"]
)
@pytest.mark.parametrize("later", [False, True])
def test_a_model_that_broke_off_at_any_step_is_made_anew_and_the_rest_of_it_is_gone(cell, monkeypatch, step, later):
    tracker = Tracker("x", "key")
    if later:
        tracker.cell(*cell, model=False)
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, step, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            tracker.cell(*cell)
    run_id = tracker.cell(*cell)
    (output,) = tracker.client.get_run(run_id).outputs.model_outputs
    (model,) = tracker.client.search_logged_models([tracker.experiment_id])
    assert (model.model_id, model.status, model.source_run_id) == (output.model_id, "READY", run_id)
    assert {"test_map", "train_seconds"} <= {one.key for one in model.metrics}
    assert {run.info.run_id for run in runs()} == {tracker.run_id, run_id}
    assert tracker.cell(*cell) == run_id


def test_runs_and_models_say_who_made_them_where_the_system_knows(cell, monkeypatch):
    monkeypatch.setattr("tasks.tracking.tracker.getuser", lambda: "ada")
    monkeypatch.setattr("tasks.tracking.tracker._source", _source.__wrapped__)
    tracker = Tracker("x", "key")
    tracker.cell(*cell)
    (model,) = tracker.client.search_logged_models([tracker.experiment_id])
    assert {one.tags["mlflow.user"] for one in (model, *(run.data for run in runs()))} == {"ada"}
    monkeypatch.setattr("tasks.tracking.tracker.getuser", lambda: {}["uid 1000"])
    assert "mlflow.user" not in tracker.client.get_run(Tracker("x", "other").run_id).data.tags


@pytest.mark.parametrize(("error", "status"), [(ValueError("no"), "FAILED"), (KeyboardInterrupt(), "KILLED")])
def test_whatever_happens_no_run_is_left_running(cell, error, status):
    tracker = Tracker("x", "key")
    with pytest.raises(type(error)), tracker.running():
        raise error
    assert not runs("RUNNING")
    assert runs(status)[0].info.run_id == tracker.run_id
    with Tracker("x", "key").running():
        pass
    assert not runs(status)


@pytest.mark.parametrize(("error", "status"), [(OSError("disk full"), "FAILED"), (KeyboardInterrupt(), "KILLED")])
def test_a_cell_that_cannot_be_logged_is_failed_not_running(cell, monkeypatch, error, status):
    tracker = Tracker("x", "key")
    monkeypatch.setattr(Tracker, "_log_model", lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(type(error)):
        tracker.cell(*cell)
    assert [r.info.run_id for r in runs("RUNNING")] == [tracker.run_id]
    assert len(runs(status)) == 1


def test_two_commands_that_write_the_same_cell_at_once_write_it_once(cell):
    trackers = [Tracker("x", "key") for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda tracker: tracker.cell(*cell), trackers)
    assert first == second
    assert [run.info.run_id for run in runs("FINISHED")] == [first]


def test_two_runs_that_enter_a_data_set_at_once_both_go_on(workplace, monkeypatch):
    """MLflow looks for the data set and enters it where there is none, and the other was there in between."""
    tracker, log, calls = Tracker("x", "key"), MlflowClient.log_inputs, []

    def at_once(self, *given):
        calls.append(given)
        if len(calls) == 1:
            raise MlflowException(
                "(sqlite3.IntegrityError) UNIQUE constraint failed: datasets.experiment_id, datasets.name", BAD_REQUEST
            )
        log(self, *given)

    monkeypatch.setattr("tasks.tracking.store._PAUSES", (0.01,))
    monkeypatch.setattr(MlflowClient, "log_inputs", at_once)
    tracker.describe({"a": 1}, {}, DATA)
    assert len(calls) == 2
    assert len(tracker.client.get_run(tracker.run_id).inputs.dataset_inputs) == 1


def test_long_tags_and_many_metrics_are_kept_whole(workplace):
    tracker = Tracker("many", "key")
    keys = {f"ranker {k}": [f"{fold:032x}" for fold in range(10)] for k in range(40)}
    metrics = {f"ranker {k}/test_map": k / 2500 for k in range(2500)}
    with tracker.running():
        tracker.summary(metrics, [])
        tracker.say({CHOSEN: json.dumps(keys), "best": "ranker 1"})
    run = tracker.client.get_run(tracker.run_id)
    assert len(run.data.metrics) == 2500
    assert max(map(len, run.data.tags.values())) <= 5000
    assert json.loads(Tracked("id", "x", run.data.tags, {}, None).noted(CHOSEN)) == keys


def test_a_run_that_another_folder_goes_on_with_is_left_to_it(cell):
    """Its half-made cells look like wreckage from here."""
    theirs = Tracker("x", "key", owner="there")
    half_made = theirs._create("cell", {"mlflow.parentRunId": theirs.run_id, CELL_KEY: "k1"})
    ours = Tracker("x", "key", owner="here", is_elsewhere=lambda who: who == "there")
    assert ours.run_id != theirs.run_id
    ours.cell(*cell)
    assert half_made in {run.info.run_id for run in runs("RUNNING")}
    with theirs.running():
        pass
    assert Tracker("x", "key", owner="here", is_elsewhere=lambda who: True).run_id in (theirs.run_id, ours.run_id)
    with ours.running():
        pass
    assert {run.info.status for run in runs() if run.info.run_id in (theirs.run_id, ours.run_id)} == {"FINISHED"}


def test_a_cell_that_another_folder_is_writing_into_a_finished_run_is_left_to_it(cell, monkeypatch):
    """Its model was deleted, and both folders make it anew at once."""
    with Tracker("x", "key", owner="there").running():
        pass
    theirs = Tracker("x", "key", owner="there", is_elsewhere=lambda who: who == "here")
    ours = Tracker("x", "key", owner="here", is_elsewhere=lambda who: who == "there")
    assert theirs.run_id == ours.run_id
    log = Tracker._log_cell

    def meanwhile(self, run_id, *given):
        monkeypatch.setattr(Tracker, "_log_cell", log)
        with monkeypatch.context() as patch:
            patch.setattr("tasks.tracking.tracker._alone_with", lambda key: nullcontext())
            made.append(ours.cell(*cell))
        log(self, run_id, *given)

    made = []
    monkeypatch.setattr(Tracker, "_log_cell", meanwhile)
    made.append(theirs.cell(*cell))
    assert {run.info.run_id for run in runs("FINISHED")} == {theirs.run_id, *made}
    assert len(set(made)) == 2


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (asyncio.CancelledError(), "Prefect cancelled the run, or it lost its place among those that may be under way at once"),
        (TerminationSignal(signal.SIGTERM), "the run was cancelled in Prefect, or whatever had started it was ended"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (InterruptedError("a signal"), "a signal"),
    ],
)
def test_what_ended_a_run_is_told_in_words(cell, error, told):
    with pytest.raises(type(error)), Tracker("x", "key").running():
        raise error
    assert runs("KILLED")[0].data.tags[ERROR] == told


def test_a_finished_run_stays_finished_and_what_went_wrong_once_is_forgotten(cell):
    tracker = Tracker("x", "key")
    with pytest.raises(KeyboardInterrupt), tracker.running():
        raise KeyboardInterrupt
    assert ERROR in runs("KILLED")[0].data.tags
    with Tracker("x", "key").running():
        pass
    assert ERROR not in runs("FINISHED")[0].data.tags
    with pytest.raises(KeyboardInterrupt), Tracker("x", "key").running():
        raise KeyboardInterrupt
    (run,) = runs("FINISHED")
    assert ERROR not in run.data.tags


def test_a_finished_run_that_is_repeated_ended_when_it_did(cell):
    """A run of seconds had lasted for days where it was repeated after days."""
    with Tracker("x", "key").running():
        pass
    (before,) = runs("FINISHED")
    time.sleep(0.01)
    tracker = Tracker("x", "key")
    with tracker.running():
        tracker.cell(*cell)
    after = tracker.client.get_run(tracker.run_id).info
    assert (after.run_id, after.status, after.end_time) == (before.info.run_id, "FINISHED", before.info.end_time)


def test_a_cell_whose_models_files_are_gone_is_made_anew(cell, workplace):
    tracker = Tracker("x", "key")
    run_id = tracker.cell(*cell)
    shutil.rmtree(workplace / "mlruns" / "artifacts")
    again = tracker.cell(*cell)
    assert again != run_id
    assert tracker.cell(*cell) == again


def test_it_is_seen_whether_a_run_still_says_what_it_said(cell, tmp_path):
    tracker = Tracker("x", "key")
    long = "c" * 9000
    assert not tracker.says({CHOSEN: long}, "config.yaml")
    tracker.say({CHOSEN: long})
    tracker.text("name: x", "config.yaml")
    assert tracker.says({CHOSEN: long}, "config.yaml")
    tracker.client.set_tag(tracker.run_id, f"{CHOSEN}.2", "{oops")
    assert not tracker.says({CHOSEN: long}, "config.yaml")


def test_a_model_whose_files_are_out_of_sight_is_left_alone(cell, workplace, monkeypatch):
    """Two folders on one database: the files of the one are where the other does not see them."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{workplace / 'shared.db'}")
    (workplace / "theirs").mkdir()
    monkeypatch.setenv("LAMBDAFLOW_ARTIFACTS", str(workplace / "theirs" / "artifacts"))
    tracker = Tracker("x", "key")
    run_id = tracker.cell(*cell)
    (workplace / "theirs").rename(workplace / "elsewhere")
    assert Tracker("x", "key").cell(*cell) == run_id
    assert tracker._models_of(run_id)


@pytest.mark.parametrize("epochs", [30, 90, 180])
def test_effective_pairs_of_every_term_are_lines_of_their_own(workplace, epochs):
    folder = CellFolder.of("pairs")
    folder.path.mkdir(parents=True)
    entries = [
        PairsEntry(measure, "ranknet_weighted", [1.0], [[[1]]], 3, 4, [None], 100 * epoch + k, epoch)
        for epoch in range(epochs)
        for k, measure in enumerate(("ndcg", "cndcg", "ndcg"))
    ]
    write_pairs(folder.pairs, entries)
    lines = {}
    for metric in _pairs(folder, 0):
        lines.setdefault(metric.key, []).append((metric.step, metric.value))
    step = max(1, epochs // 80)
    assert lines == {
        name: [(epoch, 100 * epoch + k) for epoch in range(0, epochs, step)]
        for k, name in enumerate(("effective_pairs_ndcg", "effective_pairs_cndcg", "effective_pairs_ndcg_term_2"))
    }


def test_lines_of_many_terms_are_whole(cell):
    """MLflow takes 1,000 points at once, and what is above that was left out."""
    names = [f"m{term}" for term in range(12)]
    write_pairs(
        CellFolder.of("k1").pairs,
        [PairsEntry(name, "ranknet_weighted", [1.0], [[[1]]], 3, 4, [None], 1, k) for k in range(80) for name in names],
    )
    tracker = Tracker("x", "key")
    run_id = tracker.cell(*cell)
    for name in names:
        assert len(tracker.client.get_metric_history(run_id, f"effective_pairs_{name}")) == 80, name


def test_two_commands_that_begin_the_same_run_at_once_make_one(workplace):
    tracking = Tracker("first", "other")
    with tracking.running():
        pass
    for attempt in range(4):
        with ThreadPoolExecutor(4) as pool:
            begun = list(pool.map(lambda _, key=f"{attempt}": Tracker("run", key).run_id, range(4)))
        assert len(set(begun)) == 1


def test_where_a_search_was_ended_by_time_is_known_to_every_folder_of_a_store(workplace):
    budget = Budget(12.0, 12.5, 9, ended=True)
    first = Tracker("one", "key")
    with first.running():
        first.say({SEARCHED: "what", BUDGET: json.dumps(asdict(budget))})
    other = Tracker("refit", "another key")
    assert other.budget("what", False) == first.budget("what", True) == budget
    assert other.budget("what", True) is None
    assert other.budget("something else", False) is first.budget("something else", True) is None
    MlflowClient(tracking_uri()).set_tag(first.run_id, BUDGET, "nine cells")
    assert other.budget("what", False) is None, "somebody has edited it"


def test_files_of_a_model_that_a_store_has_lost_are_missed_and_those_out_of_sight_are_not(cell, monkeypatch):
    tracker = Tracker("x", "key")
    run_id = tracker.cell(*cell)
    (model,) = tracker._models_of(run_id)
    assert tracker._has_files(model)
    shutil.rmtree(unquote(urlparse(model.artifact_location).path))
    assert not tracker._has_files(model)
    asked = []

    class Store:
        answer = ()

        def list_logged_model_artifacts(self, model_id):
            asked.append(model_id)
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    tracker.client = Store()
    there, elsewhere = (
        SimpleNamespace(model_id="m", artifact_location=place) for place in ("s3://bucket/m", "file:///other/mlruns/m")
    )
    assert not tracker._has_files(there)
    for Store.answer in (["MLmodel"], RuntimeError("NoSuchBucket")):
        assert tracker._has_files(there)
    assert len(asked) == 3
    assert tracker._has_files(elsewhere)
    assert len(asked) == 3
