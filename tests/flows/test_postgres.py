"""Both stores in a real PostgreSQL, by environment alone, where its programs are on this machine."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import yaml

from tests.conftest import own_environment
from tests.flows.test_kill import COMMAND, CONFIG, finish, prepared
from tests.flows.test_schedule import QUIET, free_port


def program(name):
    found = shutil.which(name) or next(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), None)
    if found is None:
        pytest.skip(f"no {name} here: the Debian package postgresql has it")
    return found


@pytest.fixture
def postgres():
    """A server of its own, as an unprivileged user where we are root, because it refuses to run as root; its address."""
    initdb, server = program("initdb"), program("postgres")
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    who = {"user": "nobody"} if os.getuid() == 0 else {}
    if who:
        shutil.chown(folder, "nobody")
    port = free_port()
    data = str(folder / "data")
    subprocess.run([initdb, "-D", data, "-A", "trust", "-U", "postgres"], check=True, cwd=folder, **who, **QUIET)
    running = subprocess.Popen(
        [server, "-D", data, "-k", str(folder), "-h", "127.0.0.1", "-p", str(port)], cwd=folder, **who, **QUIET
    )
    address = f"postgres@127.0.0.1:{port}"
    try:
        ask = [program("psql"), f"postgresql://{address}/postgres", "-c"]
        for _ in range(100):
            if subprocess.run([*ask, "create database mlflow"], **QUIET).returncode == 0:
                break
        subprocess.run([*ask, "create database prefect"], check=True, **QUIET)
        yield address
    finally:
        running.terminate()
        running.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.long
def test_a_run_on_postgres_is_a_run_on_sqlite(postgres, tmp_path):
    """`test_pipeline.test_stores_are_named_by_the_environment_alone` stays in the normal suite, with another SQLite file and a folder."""
    folder = tmp_path / "team"
    folder.mkdir()
    (folder / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    environment = own_environment() | {
        "MLFLOW_TRACKING_URI": f"postgresql://{postgres}/mlflow",
        "LAMBDAFLOW_ARTIFACTS": (folder / "kept").as_uri(),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"postgresql+asyncpg://{postgres}/prefect",
    }
    expected, _ = finish(prepared(tmp_path / "alone"))
    done = subprocess.run(COMMAND, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert finish(folder, environment)[0] == expected

    def rows(database, query):
        found = subprocess.run(
            [program("psql"), f"postgresql://{postgres}/{database}", "-Atc", query], capture_output=True, text=True, check=True
        )
        return found.stdout.splitlines()

    assert rows("mlflow", "select status from runs") == ["FINISHED"] * 5
    assert set(rows("prefect", "select state_type from flow_run")) == {"COMPLETED"}
    assert not (folder / "mlruns" / "mlflow.db").exists()
    assert list((folder / "kept").glob("*/artifacts/report.html"))
