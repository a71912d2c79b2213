"""Killed at any moment and started again, a sweep ends as if nothing had happened."""

import json
import os
import random
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
import yaml

from flows.pipeline import run
from tasks.config.reading import parse
from tests.conftest import own_environment, server_of_the_session

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
FORKED = """
import os, sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from flows.cli import main

for name in sys.stdin.readline().split():
    with suppress(ImportError):
        import_module(name)
for folder in sys.stdin:
    child = os.fork()
    if child == 0:
        os.chdir(folder.strip())
        for stream in (1, 2):
            os.dup2(os.open(f"said-{stream}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        code = main(["run", "c.yaml", "--json"])
        sys.stdout.flush()
        os._exit(code)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs of folders that standard input names, one after another, each in a fork of a process that has imported all; says number and exit code."""


class ForkedRuns:
    """Starts the run in a folder, again and again, without importing again. Where `environment` names a Prefect server it is used."""

    def __init__(self, folder, environment):
        imported = "import sys; from flows.cli import main; main(['run', 'c.yaml']); print(*sys.modules)"
        once = prepared(folder, CONFIG)
        modules = subprocess.run(
            [sys.executable, "-c", imported], cwd=once, env=environment, capture_output=True, text=True, check=True
        )
        shutil.rmtree(once)
        once.mkdir()
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", FORKED], cwd=once, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._write(modules.stdout.splitlines()[-1] + "\n")

    def start(self):
        """The number of the process that runs."""
        for stream in (1, 2):
            (self.folder / f"said-{stream}").unlink(missing_ok=True)
        self._write(f"{self.folder}\n")
        return int(self.process.stdout.readline())

    def start_training(self):
        process = self.start()
        while not any(line.startswith(("training", "found")) for line in self.said().splitlines()):
            assert not select.select([self.process.stdout], [], [], 0.01)[0], f"ended before it trained: {self.said()}"
        return process

    def said(self):
        said = self.folder / "said-2"
        return said.read_text() if said.exists() else ""

    def ended(self):
        """The exit code, once it has ended."""
        return int(self.process.stdout.readline())

    def _write(self, line):
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def kill_while_training(runs, seconds, seed):
    """Starts the run and kills its process alone at a random moment of the `seconds` from the beginning of training on: whether it was
    still at work, whether a finished cell was not in MLflow yet, and the cells that were finished."""
    process = runs.start_training()
    time.sleep(random.Random(seed).uniform(0, seconds))
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    killed = runs.ended() == -signal.SIGKILL
    finished = finished_cells(runs.folder)
    logged = rows(runs.folder, "mlflow", "select name from runs where status = 'FINISHED' and lifecycle_stage = 'active'")
    return killed, len(logged) < len(finished), finished


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
def test_a_thousand_kills_between_and_inside_cells(tmp_path, prefect_server, request):
    """A folder is killed again and again, within the time of two cells, until none is left to be trained; counts go to standard output. One
    kill, in `test_sigkill_after_a_cell`, stays in the normal suite, with a Prefect server of the run's own."""
    uninterrupted = finish(prepared(tmp_path / "whole", LONGER))
    cells = len(uninterrupted[1])
    runs = ForkedRuns(tmp_path / "run", own_environment() | server_of_the_session())
    request.addfinalizer(runs.close)
    prepared(runs.folder, LONGER)
    runs.start_training()
    started = time.monotonic()
    assert runs.ended() == 0, runs.said()
    seconds = 2 * (time.monotonic() - started) / cells
    shutil.rmtree(runs.folder)
    finished, between, kills = [], 0, 0
    while len(finished) < 1000:
        folder, before = prepared(runs.folder, LONGER), {}
        while len(before) < cells:
            kills += 1
            killed, unlogged, before = kill_while_training(runs, seconds, kills)
            finished += [len(before)] * killed
            between += killed and unlogged
        runs.start()
        assert runs.ended() == 0, runs.said()
        for table in ("flow_run", "task_run"):
            with sqlite3.connect(Path(os.environ["PREFECT_HOME"]) / "prefect.db") as store:
                assert not store.execute(f"select id from {table} where state_type = 'RUNNING'").fetchall()
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
