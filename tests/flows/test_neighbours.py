"""What a run depends on fails: MLflow's or Prefect's server stops, a worker is killed. One clear line, and the next run goes on."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.conftest import own_environment
from tests.flows.test_schedule import QUIET, free_port

CONFIG = {
    "name": "neighbours",
    "data": {"generate": {"queries": [60, 20, 30], "documents": 15, "features": 12, "sessions": 20}},
    "rankers": {"trees": {"kind": "lambdamart", "n_trees": 400, "n_leaves": 31, "min_docs_in_leaf": 1, "patience": 0}},
    "sweep": {"learning_rate": [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]},
    "measures": ["ndcg_10"],
}
COMMAND = [sys.executable, "-m", "flows.cli", "run", "c.yaml", "--json"]


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


def prefect_server(folder, port):
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
    before = {path: path.stat().st_mtime_ns for path in folder.glob(".lambdaflow/cells/*/result.json")}
    assert before
    done = subprocess.run(COMMAND, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())
    return json.loads(done.stdout.splitlines()[-1])


def test_mlflows_server_stops(folder):
    port = free_port()
    environment = own_environment() | {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}"}
    server = mlflow_server(folder, port)
    code, errors, said = interrupted(folder, environment, lambda _: stop(server))
    assert code == 1, said
    assert len(errors) == 1, said
    assert f"MLflow at http://127.0.0.1:{port} does not answer" in errors[0]
    assert "what was trained is kept, run the same command again" in errors[0]
    server = mlflow_server(folder, port)
    try:
        goes_on(folder, environment)
    finally:
        stop(server)


@pytest.mark.long  # Prefect's client tries again for two minutes
def test_prefects_server_stops(folder):
    port = free_port()
    environment = own_environment() | {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_CLIENT_MAX_RETRIES": "2"}
    server = prefect_server(folder, port)
    code, errors, said = interrupted(folder, environment, lambda _: stop(server))
    assert code == 1, said
    assert len(errors) == 1, said
    assert f"Prefect at http://127.0.0.1:{port}/api does not answer" in errors[0]
    server = prefect_server(folder, port)
    try:
        goes_on(folder, environment)
    finally:
        stop(server)


def test_a_worker_is_killed_as_for_want_of_memory(folder):
    def kill_a_worker(run):
        for child in " ".join(path.read_text() for path in Path(f"/proc/{run}/task").glob("*/children")).split():
            command = (Path("/proc") / child / "cmdline").read_bytes()
            if b"spawn_main" in command:
                os.kill(int(child), signal.SIGKILL)
                return

    code, errors, said = interrupted(folder, own_environment(), kill_a_worker, "--runner", "processes=2")
    assert code == 1, said
    assert len(errors) == 1, said
    assert "a worker process ended" in errors[0]
    goes_on(folder, own_environment())


def test_the_disk_is_full(folder):
    """Cells lie on a file system of their own with room for one and a half; then it is made larger."""
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
