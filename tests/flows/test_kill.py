"""Killed at any moment and started again, a sweep ends as if nothing had happened."""

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import yaml

from flows.pipeline import run
from tasks.config.reading import parse
from tests.conftest import own_environment

CONFIG = {
    "name": "killed",
    "data": {"generate": {"queries": [40, 20, 30], "documents": 12, "features": 12, "sessions": 20}},
    "rankers": {"linear": {"kind": "lambdarank", "epochs": 3, "sweep": {"learning_rate": [0.001, 0.002, 0.003, 0.004]}}},
    "measures": ["ndcg_10"],
}
COMMAND = [sys.executable, "-m", "flows.cli", "run", "c.yaml", "--json"]
DATABASES = {"mlflow": "mlruns/mlflow.db", "prefect": ".lambdaflow/prefect/prefect.db"}


def rows(folder, database, query):
    with sqlite3.connect(folder / DATABASES[database]) as store:
        return store.execute(query).fetchall()


def prepared(folder, config=CONFIG):
    folder.mkdir(exist_ok=True)
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    return folder


def values_in(folder):
    """Per-query values of every cell."""
    return {
        path.parent.name: pl.read_parquet(path).to_dicts() for path in sorted(folder.glob(".lambdaflow/cells/*/values.parquet"))
    }


def finish(folder, environment=None):
    """The outcome: models with metrics, and per-query values of every cell."""
    done = subprocess.run(COMMAND, cwd=folder, env=environment or own_environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["models"], values_in(folder)


def at_work_in(folder):
    """Processes whose Prefect home is below `folder`."""
    home = f"PREFECT_HOME={folder}/.lambdaflow/prefect".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if home in (process / "environ").read_bytes().split(b"\0"):
                found.append(process.name)
        except OSError:
            continue
    return found


def still_running(folder):
    prefect = [
        rows(folder, "prefect", f"select id from {table} where state_type = 'RUNNING'") for table in ("flow_run", "task_run")
    ]
    return prefect + rows(folder, "mlflow", "select name from runs where status = 'RUNNING' and lifecycle_stage = 'active'")


@pytest.fixture(scope="module")
def uninterrupted(prefect_server, tmp_path_factory):
    """What comes out of the same configuration here, as `finish` gives it."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("clean")
        patch.chdir(folder)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        models = json.loads(json.dumps(run(parse(CONFIG)).as_json()))["models"]
        return models, values_in(folder)


@pytest.fixture(scope="module")
def seconds(tmp_path_factory):
    """How long the command takes."""
    folder = prepared(tmp_path_factory.mktemp("timed"))
    started = time.monotonic()
    finish(folder)
    return time.monotonic() - started


def finished_cells(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob(".lambdaflow/cells/*/result.json")}


def kill_after_a_cell(folder):
    """Starts the run, kills its process alone as soon as it says that a cell is done."""
    run = subprocess.Popen(COMMAND, cwd=folder, env=own_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in run.stderr:
        if "learning_rate=" in line:
            break
    run.send_signal(signal.SIGKILL)
    run.wait(30)
    run.stderr.close()
    return finished_cells(folder)


def kill_at_random(folder, seconds, seed):
    """Starts the run, kills its process alone after a random time; what stood in MLflow's store of finished cells by then."""
    run = subprocess.Popen(COMMAND, cwd=folder, env=own_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        run.wait(random.Random(seed).uniform(0.5, seconds))
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGKILL)
    run.wait(30)
    return finished_cells(folder)


def assert_as_if_nothing_had_happened(folder, uninterrupted, finished_before):
    assert finish(folder) == uninterrupted
    for path, written in finished_before.items():
        assert path.stat().st_mtime_ns == written, "a finished cell was trained again"
    active = rows(folder, "mlflow", "select name, status from runs where lifecycle_stage = 'active'")
    cells = len(uninterrupted[1])
    assert len(active) == len({name for name, _ in active}) == cells + 1
    assert {status for _, status in active} == {"FINISHED"}
    assert len(rows(folder, "mlflow", "select model_id from logged_models where lifecycle_stage = 'active'")) == cells
    assert not any(still_running(folder))
    assert not list(folder.glob(".lambdaflow/**/*.partial"))
    deadline = time.monotonic() + 20
    while at_work_in(folder) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not at_work_in(folder)


def test_sigkill_after_a_cell(tmp_path, uninterrupted):
    folder = prepared(tmp_path / "run")
    before = kill_after_a_cell(folder)
    assert 1 <= len(before) <= 4
    prefect_runs, _, *in_mlflow = still_running(folder)
    assert prefect_runs, "a killed run stands as running until the next one clears it away"
    assert in_mlflow
    assert_as_if_nothing_had_happened(folder, uninterrupted, before)


@pytest.mark.long
def test_sigkill_at_three_random_moments(tmp_path, uninterrupted, seconds):
    """`test_sigkill_after_a_cell` stays in the normal suite: one kill, while there is something to clear away."""
    folder, before = prepared(tmp_path / "run"), {}
    for seed in range(3):
        before = kill_at_random(folder, seconds, seed)
    assert_as_if_nothing_had_happened(folder, uninterrupted, before)


@pytest.mark.long
def test_a_search_that_is_killed_ends_as_if_nothing_had_happened(tmp_path):
    """In the normal suite a search is interrupted without a process's death (`tests/flows/test_search.py`)."""
    searched = {"kind": "lambdarank", "epochs": 9, "search": {"trials": 8, "batch": 4}}
    config = {**CONFIG, "rankers": {"linear": searched}}
    folder = prepared(tmp_path / "run", config)
    before = kill_after_a_cell(folder)
    assert before
    outcome = finish(folder)
    assert outcome == finish(prepared(tmp_path / "whole", config))
    for path, written in before.items():
        assert path.stat().st_mtime_ns == written, "a finished cell was trained again"
    assert not any(still_running(folder))


LONGER = {
    **CONFIG,
    "rankers": {"linear": {"kind": "lambdarank", "epochs": 1500, "sweep": {"learning_rate": [k / 1000 for k in range(1, 25)]}}},
}
"""Many cells, and training takes most of their time."""


def kill_while_training(folder, seconds, seed):
    """Starts the run and kills its process alone at a random moment of the `seconds` from the beginning of training on: whether it was
    still at work, whether a finished cell was not in MLflow yet, and the cells that were finished."""
    run = subprocess.Popen(COMMAND, cwd=folder, env=own_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in run.stderr:
        if line.startswith(("training", "found")):
            break
    try:
        run.wait(random.Random(seed).uniform(0, seconds))
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGKILL)
    run.wait(30)
    run.stderr.close()
    finished = finished_cells(folder)
    logged = rows(folder, "mlflow", "select name from runs where status = 'FINISHED' and lifecycle_stage = 'active'")
    return run.returncode == -signal.SIGKILL, len(logged) < len(finished), finished


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
def test_a_thousand_kills_between_and_inside_cells(tmp_path):
    """A folder is killed again and again, within the time of two cells, until none is left to be trained; counts go to standard output. One
    kill, in `test_sigkill_after_a_cell`, stays in the normal suite."""
    whole = prepared(tmp_path / "whole", LONGER)
    started = time.monotonic()
    uninterrupted = finish(whole)
    cells = len(uninterrupted[1])
    seconds = 2 * (time.monotonic() - started) / cells
    finished, between, kills = [], 0, 0
    while len(finished) < 1000:
        folder, before = prepared(tmp_path / "run", LONGER), {}
        while len(before) < cells:
            kills += 1
            killed, unlogged, before = kill_while_training(folder, seconds, kills)
            finished += [len(before)] * killed
            between += killed and unlogged
        assert_as_if_nothing_had_happened(folder, uninterrupted, before)
        shutil.rmtree(folder)
        early = sum(n < cells for n in finished)
        print(
            len(finished),
            "kills,",
            early,
            "before the last cell was finished,",
            between,
            "between a cell and its record",
            flush=True,
        )
    assert sum(n < cells for n in finished) >= 500


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_twenty_runs_at_once_in_a_folder_half_of_them_afresh(tmp_path):
    folder = prepared(tmp_path / "run")
    runs = [
        subprocess.Popen(
            COMMAND + ["--fresh"] * (k % 2),
            cwd=folder,
            env=own_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for k in range(20)
    ]
    said = [run.communicate(timeout=3000) for run in runs]
    assert [run.returncode for run in runs] == [0] * 20, [err[-500:] for _, err in said]
    found = [json.loads(out)["models"] for out, _ in said]
    assert all(one == found[0] for one in found)
    assert not any(still_running(folder))
    assert not list(folder.glob(".lambdaflow/**/*.partial"))
