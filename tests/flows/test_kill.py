"""Killed at any moment and started again, a run ends as if nothing had happened."""

import json
import os
import sqlite3
import subprocess
import sys

import yaml

CONFIG = {
    "name": "killed",
    "data": {"generate": {"queries": [40, 20, 30], "documents": 12, "features": 12, "sessions": 20}},
    "rankers": {"linear": {"kind": "lambdarank", "epochs": 3, "sweep": {"learning_rate": [0.001, 0.002, 0.003, 0.004]}}},
    "measures": ["ndcg_10"],
}
COMMAND = [sys.executable, "-m", "flows.cli", "run", "c.yaml", "--json"]


def runs(folder):
    with sqlite3.connect(folder / "mlruns" / "mlflow.db") as store:
        return store.execute("select name, status from runs where lifecycle_stage = 'active'").fetchall()


def finish(folder):
    done = subprocess.run(COMMAND, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])["models"]


def test_sigkill_in_the_middle_of_a_sweep(tmp_path):
    """In a process group of its own, so that Prefect's server goes with it."""
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    started = subprocess.Popen(
        COMMAND, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True
    )
    for line in started.stderr:
        if "learning_rate=0.002" in line:
            break
    os.killpg(started.pid, 9)
    started.wait(30)
    assert ("killed", "RUNNING") in runs(tmp_path)
    resumed = finish(tmp_path)
    statuses = runs(tmp_path)
    assert len(statuses) == 5
    assert {status for _, status in statuses} == {"FINISHED"}
    assert len({name for name, _ in statuses}) == 5
    clean = tmp_path / "clean"
    clean.mkdir()
    (clean / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    assert finish(clean) == resumed
    assert not list(tmp_path.glob(".lambdaflow/**/*.partial"))
