"""A command's own Prefect server: begun before it is needed, ended with its owner, however that ends, and none where settings name one."""

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace

import pytest

from flows.own_server import OwnServer, _end, begin_own_server, use_own_server, wait_for
from tasks.store.templates import version_of
from tests.conftest import own_environment

OWNER = """
import os, time
from flows import make_state_folder
make_state_folder()
from flows.own_server import use_own_server
use_own_server()
from prefect.settings import get_current_settings
print(os.environ["PREFECT_API_URL"])
print("heartbeats:", get_current_settings().flows.heartbeat_frequency, flush=True)
time.sleep(300)
"""

TASKS = """
from flows import make_state_folder
make_state_folder()
from flows.own_server import use_own_server
use_own_server()
from prefect import flow, task
@task
def short(k): return k
@flow
def many():
    for k in range(100): short(k)
many()
"""

RECORDER = """
from flows.own_server import _write_task_runs_together
_write_task_runs_together()
from prefect.settings import get_current_settings
recorder = get_current_settings().server.services.task_run_recorder
print(recorder.batch_size, recorder.flush_interval)
"""

BEGUN = """
import time
from flows.own_server import begin_own_server
begun = begin_own_server()
time.sleep(3)
print(begun.process.poll())
begun.process.stdin.close()
print(begun.process.wait(10))
"""


def owner_in(folder):
    folder.mkdir(exist_ok=True)
    environment = own_environment() | {"XDG_CACHE_HOME": str(folder.parent / "cache")}
    return subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def answers(address):
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.usefixtures("prefect_server")
def test_where_settings_name_a_server_no_other_is_started(workplace, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    assert begin_own_server() is None
    use_own_server()
    assert "PREFECT_API_URL" not in os.environ


def test_where_the_environment_names_one_none_is_begun(tmp_path):
    code = "from flows.own_server import begin_own_server; print(begin_own_server())"
    named = own_environment() | {"PREFECT_API_URL": "http://127.0.0.1:1/api"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=named, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "None"


def test_one_that_is_begun_touches_nothing_and_ends_where_it_is_not_used(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BEGUN], cwd=tmp_path, env=own_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["None", "0"], done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_two_at_once_in_an_empty_folder_both_answer_and_each_ends_with_its_owner(tmp_path):
    """They leave a template behind, which the next empty folder's database is a copy of."""
    with ThreadPoolExecutor() as pool:
        owners = list(pool.map(owner_in, [tmp_path / "project"] * 2))
    addresses = [owner.stdout.readline().strip() for owner in owners]
    assert len(set(addresses)) == 2
    assert all(answers(address) for address in addresses)
    os.killpg(owners[0].pid, signal.SIGKILL)
    owners[0].wait()
    until = time.monotonic() + 10
    while answers(addresses[0]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not answers(addresses[0])
    assert answers(addresses[1])
    owners[1].kill()
    owners[1].wait()
    (template,) = (tmp_path / "cache" / "lambdaflow").iterdir()
    with closing(sqlite3.connect(template)) as store:
        assert not store.execute("select * from flow_run").fetchall()
        store.execute("create table mark (x)")
    third = owner_in(tmp_path / "another")
    assert answers(third.stdout.readline().strip())
    assert third.stdout.readline() == "heartbeats: None\n"
    third.kill()
    third.wait()
    made = [tmp_path / name / ".lambdaflow" / "prefect" / "prefect.db" for name in ("project", "another")]
    assert len({version_of(path) for path in (template, *made)}) == 1
    with closing(sqlite3.connect(made[1])) as store:
        assert store.execute("select * from mark").fetchall() == []


def test_a_command_that_ends_with_many_short_tasks_has_them_all_written(tmp_path):
    """Written one at a time, 46 of 300 were there when the server ended."""
    subprocess.run([sys.executable, "-c", TASKS], cwd=tmp_path, env=own_environment(), check=True, capture_output=True)
    with closing(sqlite3.connect(tmp_path / ".lambdaflow" / "prefect" / "prefect.db")) as store:
        assert store.execute("select state_name, count(*) from task_run group by 1").fetchall() == [("Completed", 100)]


@pytest.mark.parametrize(("ours", "written"), [("", ["256", "1.0"]), ("batch_size = 7", ["7", "3.0"])])
def test_how_task_runs_are_written_is_the_users_where_a_file_of_theirs_says_it(tmp_path, ours, written):
    (tmp_path / "prefect.toml").write_text(f"[server.services.task_run_recorder]\n{ours}\n")
    (tmp_path / ".env").write_text("PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL=3\n" if ours else "")
    done = subprocess.run(
        [sys.executable, "-c", RECORDER], cwd=tmp_path, env=own_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == written, done.stderr


@pytest.mark.parametrize("room", [True, False])
def test_a_server_that_cannot_begin_says_why(workplace, monkeypatch, room):
    """It ends without a word where its database has no room to be made."""
    monkeypatch.setattr("flows.own_server.no_room", lambda _: not room)
    monkeypatch.setattr("prefect.settings.PREFECT_API_URL", SimpleNamespace(value=lambda: None))
    ended = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    ended.wait()
    with pytest.raises(OSError, match="has exited" if room else "No space left on device") as caught:
        use_own_server(OwnServer(ended, "http://127.0.0.1:9/api", "a:b"))
    assert caught.value.errno == (None if room else errno.ENOSPC)


SAID = """Traceback (most recent call last):
  File "somewhere.py", line 1
sqlalchemy.exc.OperationalError: (sqlite3.OperationalError) unable to open database file
(Background on this error at: https://sqlalche.me/e/20/e3q8)

ERROR:    Application startup failed. Exiting.
"""


@pytest.mark.parametrize(
    ("database", "why"),
    [
        (b"no database" * 1000, "prefect.db: file is not a database: it is damaged"),
        ("torn", "prefect.db: .*: it is damaged"),
        ("whole", r"server.log ends: sqlalchemy.exc.OperationalError: \(sqlite3.OperationalError\) unable to open database file$"),
    ],
)
def test_a_server_that_ends_is_told_with_its_reason(tmp_path, monkeypatch, database, why):
    """It was told by the last line of every server that does not start, ``Application startup failed``, or not at all."""
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    if isinstance(database, bytes):
        (tmp_path / "prefect.db").write_bytes(database)
    else:
        with closing(sqlite3.connect(tmp_path / "prefect.db")) as store:
            store.execute("create table runs (name text)")
            store.executemany("insert into runs values (?)", [(f"{k}" * 100,) for k in range(1000)])
            store.commit()
        if database == "torn":
            written = (tmp_path / "prefect.db").read_bytes()
            (tmp_path / "prefect.db").write_bytes(written[:8192] + b"Z" * 4096 + written[12288:])
    (tmp_path / "server.log").write_text(SAID)
    os.utime(tmp_path / "server.log", (time.time() + 60,) * 2)
    ended = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    ended.wait()
    with pytest.raises(OSError, match=rf"has exited; .*{why}"):
        wait_for("http://127.0.0.1:9/api", [ended])


@pytest.mark.long
def test_a_user_s_file_that_is_called_as_a_module_of_python_is_not_run(tmp_path):
    """tokenize.py in the folder of a run was imported by the server in place of Python's own, which ended it."""
    (tmp_path / "tokenize.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    command = [sys.executable, "-P", "-c", OWNER.replace("time.sleep(300)", "")]
    done = subprocess.run(command, cwd=tmp_path, env=own_environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("http://")
    assert not (tmp_path / "ran").exists()


def test_an_interrupt_while_the_server_ends_is_no_traceback():
    """At the very end of a command, after its last word."""
    slow = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.PIPE)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _end(slow)
    finally:
        signal.signal(signal.SIGINT, before)
    assert slow.poll() is not None
