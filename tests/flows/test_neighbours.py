"""What a run depends on fails: MLflow's or Prefect's server stops, a worker is killed, the disk is full. One clear line, and the next run
goes on. Here the failure is put in place of a client's answer; the long tests stop real servers and fill a real disk."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import httpx
import pytest
import yaml
from mlflow.tracking import MlflowClient
from prefect import flow, task
from prefect.task_runners import ProcessPoolTaskRunner

import ltr
from flows.cli import main
from flows.progress import Steps
from flows.sweep import cells_of, train_all
from tasks.config.reading import parse
from tasks.records import Fold, WorkerError
from tasks.tracking import store
from tests.conftest import own_environment
from tests.flows.test_schedule import QUIET, free_port

CONFIG = {
    "name": "neighbours",
    "data": {"generate": {"queries": [60, 20, 30], "documents": 15, "features": 12, "sessions": 20}},
    "rankers": {"trees": {"kind": "lambdamart", "n_trees": 400, "n_leaves": 31, "min_docs_in_leaf": 1, "patience": 0}},
    "sweep": {"learning_rate": [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]},
    "measures": ["ndcg_10"],
}
SMALL = {
    "name": "neighbours",
    "data": {"generate": {"queries": [30, 15, 20], "documents": 10, "features": 8, "sessions": 5}},
    "rankers": {"linear": {"kind": "lambdarank", "epochs": 2, "sweep": {"learning_rate": [0.001, 0.002, 0.003]}}},
    "measures": ["ndcg_10"],
}
COMMAND = [sys.executable, "-m", "flows.cli", "run", "c.yaml", "--json"]


def finished_cells(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob(".lambdaflow/cells/*/result.json")}


@pytest.fixture
def small(workplace, prefect_server):
    (workplace / "c.yaml").write_text(yaml.safe_dump(SMALL))
    return workplace


@pytest.fixture
def first_cell_done(monkeypatch):
    """Set as soon as the first cell of a run is done."""
    seen = []
    done = Steps.done
    monkeypatch.setattr(Steps, "done", lambda self, text: (seen.append(text), done(self, text))[1])
    return seen


def fails_with_one_line(capsys):
    assert main(["run", "c.yaml", "--json"]) == 1
    said = capsys.readouterr().err
    (line,) = [line for line in said.splitlines() if line.startswith("error:")]
    assert "Traceback" not in said
    assert "the same command again" in line
    return line


def goes_on_here(folder, capsys, trained):
    """The same command again finishes, and trains no finished cell again."""
    before = finished_cells(folder)
    assert len(before) == trained
    assert main(["run", "c.yaml", "--json"]) == 0
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())
    assert len(finished_cells(folder)) == 3
    outcome = json.loads(capsys.readouterr().out)
    client, experiment = store.opened()
    runs = client.search_runs([experiment])
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len(runs) == 4
    return outcome


def test_mlflow_does_not_answer(small, first_cell_done, monkeypatch, capsys):
    monkeypatch.setattr(store, "_PAUSES", (0.0, 0.0))
    tries = []
    with monkeypatch.context() as stopped:
        for name in ("search_runs", "create_run", "log_batch", "log_inputs", "set_tag", "set_terminated"):
            answer = getattr(MlflowClient, name)

            def ask(self, *given, name=name, answer=answer, **named):
                if first_cell_done:
                    tries.append(name)
                    raise ConnectionError("connection refused")
                return answer(self, *given, **named)

            stopped.setattr(MlflowClient, name, ask)
        line = fails_with_one_line(capsys)
    assert f"MLflow at {store.tracking_uri()} does not answer: connection refused; what is finished is kept" in line
    assert tries[:3] == ["search_runs"] * 3, "it is asked as often as there are pauses, and once more"
    goes_on_here(small, capsys, trained=2)


def test_prefect_does_not_answer(small, monkeypatch, capsys):
    def refused(*_, **__):
        raise httpx.ConnectError("connection refused")

    with monkeypatch.context() as stopped:
        stopped.setattr("tasks.report.publish.create_markdown_artifact", refused)
        stopped.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
        line = fails_with_one_line(capsys)
    assert line.startswith(
        "error: Prefect at http://127.0.0.1:4200/api does not answer: connection refused; what is finished is kept"
    )
    goes_on_here(small, capsys, trained=3)


def test_no_room_for_a_cell(small, first_cell_done, monkeypatch, capsys):
    save = ltr.save

    def full(model, folder):
        if first_cell_done:
            Path(folder).mkdir()
            (Path(folder) / "model.npz").write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device", "model.npz")
        save(model, folder)

    with monkeypatch.context() as disk:
        disk.setattr(ltr, "save", full)
        line = fails_with_one_line(capsys)
    assert line == (
        "error: no space left on the device for model.npz: what is finished is kept; free some space and run the same command again"
    )
    assert not list(small.glob(".lambdaflow/**/*.partial"))
    goes_on_here(small, capsys, trained=1)


@task(name="train")
def second_is_killed(cell, *_):
    """The worker that started later dies while the other one is busy for long."""
    if cell.label.endswith("0.002"):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(300)


@flow(task_runner=ProcessPoolTaskRunner(max_workers=2))
def two_cells(config, cells):
    train_all(config, cells, False, nothing_finishes)


def nothing_finishes(*_):
    raise AssertionError("a cell is finished")


@pytest.mark.usefixtures("prefect_server", "workplace")
def test_a_worker_process_is_killed(monkeypatch):
    """A real pool of processes, one of whose workers is killed as if for lack of memory. The other is not waited for."""
    monkeypatch.setattr("flows.cells.train", second_is_killed)
    config = parse(SMALL | {"workers": 2})
    cells = cells_of(config, ["linear"], (Fold("train", "valid", "test"),))[:2]
    began = time.monotonic()
    with pytest.raises(
        WorkerError,
        match=r"a worker process died while linear · learning_rate=0\.001 and linear · learning_rate=0\.002 were being trained, perhaps for",
    ):
        two_cells(config, cells)
    assert time.monotonic() - began < 200


# --- long: real servers, a real disk ------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    return tmp_path


def answering(address):
    for _ in range(400):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"{address} does not answer")


def mlflow_server(folder, port):
    arguments = [
        "--backend-store-uri",
        f"sqlite:///{folder}/server.db",
        "--artifacts-destination",
        str(folder / "kept"),
        "--workers",
        "1",
    ]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), *arguments]
    server = subprocess.Popen(command, cwd=folder, env=own_environment(), start_new_session=True, **QUIET)
    answering(f"http://127.0.0.1:{port}/health")
    return server


def own_prefect_server(folder, port):
    environment = own_environment() | {"PREFECT_HOME": str(folder / "prefect")}
    command = [sys.executable, "-m", "prefect", "server", "start", "--port", str(port), "--no-services"]
    server = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **QUIET)
    answering(f"http://127.0.0.1:{port}/api/health")
    return server


def stop(server):
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def interrupted(folder, environment, act, *more):
    """A run in which `act` happens after the first cell is done: its exit code, and the error lines."""
    run = subprocess.Popen(
        [*COMMAND, *more],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    said = []
    for line in run.stderr:
        said.append(line)
        if "learning_rate=" in line:
            act(run.pid)
            break
    said += run.stderr.readlines()
    return run.wait(300), [line for line in said if line.startswith("error:")], "".join(said)


def goes_on(folder, environment):
    """The same command again finishes, and trains no finished cell again."""
    before = finished_cells(folder)
    assert before
    done = subprocess.run(COMMAND, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())
    return json.loads(done.stdout)


@pytest.mark.long
def test_mlflows_server_stops(folder):
    """`test_mlflow_does_not_answer` stays in the normal suite: MLflow's client fails after the first cell."""
    port = free_port()
    environment = own_environment() | {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}"}
    server = mlflow_server(folder, port)
    code, errors, said = interrupted(folder, environment, lambda _: stop(server))
    assert code == 1, said
    assert len(errors) == 1, said
    assert f"MLflow at http://127.0.0.1:{port} does not answer" in errors[0]
    assert "what is finished is kept, run the same command again" in errors[0]
    server = mlflow_server(folder, port)
    try:
        goes_on(folder, environment)
    finally:
        stop(server)


@pytest.mark.long
def test_prefects_server_stops(folder):
    """Prefect's client tries again for two minutes. `test_prefect_does_not_answer` stays in the normal suite."""
    port = free_port()
    environment = own_environment() | {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_CLIENT_MAX_RETRIES": "2"}
    server = own_prefect_server(folder, port)
    code, errors, said = interrupted(folder, environment, lambda _: stop(server))
    assert code == 1, said
    assert len(errors) == 1, said
    assert f"Prefect at http://127.0.0.1:{port}/api does not answer" in errors[0]
    server = own_prefect_server(folder, port)
    try:
        goes_on(folder, environment)
    finally:
        stop(server)


@pytest.mark.long
def test_a_worker_is_killed_as_for_want_of_memory(folder):
    """`test_a_worker_process_is_killed` stays in the normal suite: a pool of one process, and no run around it."""

    def kill_a_worker(run):
        for child in " ".join(path.read_text() for path in Path(f"/proc/{run}/task").glob("*/children")).split():
            command = (Path("/proc") / child / "cmdline").read_bytes()
            if b"spawn_main" in command:
                os.kill(int(child), signal.SIGKILL)
                return

    code, errors, said = interrupted(folder, own_environment(), kill_a_worker, "--runner", "processes=2")
    assert code == 1, said
    assert len(errors) == 1, said
    assert "a worker process died" in errors[0]
    goes_on(folder, own_environment())


@pytest.mark.long
def test_the_disk_is_full(folder):
    """Cells lie on a file system of their own with room for one and a half; then it is made larger. `test_no_room_for_a_cell` stays in
    the normal suite: a cell cannot be written for the same error."""
    cells = folder / ".lambdaflow" / "cells"
    cells.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", str(cells)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        done = subprocess.run(COMMAND, cwd=folder, env=own_environment(), capture_output=True, text=True, timeout=300)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        assert done.returncode == 1, done.stderr
        assert len(errors) == 1, done.stderr
        assert "no space left on the device" in errors[0]
        assert not list(cells.glob("*.partial"))
        subprocess.run(["mount", "-o", "remount,size=100m", str(cells)], check=True)
        goes_on(folder, own_environment())
    finally:
        subprocess.run(["umount", str(cells)], check=True)


@pytest.mark.long
@pytest.mark.parametrize("size", ["2m", "3m", "5m"])
def test_the_disk_of_the_whole_folder_is_full(folder, size):
    """Servers' databases, MLflow's models and ours lie there; whoever misses room first, one line says so."""
    place = folder / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        (place / "c.yaml").write_text(yaml.safe_dump(SMALL))
        done = subprocess.run(COMMAND, cwd=place, env=own_environment(), capture_output=True, text=True, timeout=300)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        assert done.returncode == 1, done.stderr
        assert len(errors) == 1, done.stderr
        assert re.search("no space left on (the )?device", errors[0], re.IGNORECASE)
        assert "Traceback" not in done.stderr
        subprocess.run(["mount", "-o", "remount,size=200m", str(place)], check=True)
        done = subprocess.run(COMMAND, cwd=place, env=own_environment(), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
