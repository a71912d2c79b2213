"""A signal to a run, to its process or its group, from a terminal or not: all is closed within seconds, no process is left."""

import fcntl
import os
import pty
import select
import signal
import sqlite3
import subprocess
import sys
import termios
import threading
import time
from contextlib import contextmanager

import pytest
import yaml

from flows import interruption
from tests.conftest import own_environment
from tests.flows.test_kill import COMMAND, at_work_in, finished_cells, rows

CONFIG = {
    "name": "interrupted",
    "data": {"generate": {"queries": [60, 30, 30], "documents": 12, "features": 12, "sessions": 20}},
    "rankers": {
        "quick": {"kind": "lambdarank", "epochs": 2},
        "slow": {"kind": "lambdarank", "epochs": 1_000_000, "learning_rate": 1e-9},
    },
    "measures": ["ndcg_10"],
}
SECONDS = 5.0


def heed_signals():
    """What ``nohup`` or a shell in the background starts ignores some; a run that is started so goes on, and these tests' runs do not."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def started(folder, *more):
    (folder / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    with open(folder / "log", "wb") as log:
        return subprocess.Popen(
            [*COMMAND, *more], cwd=folder, env=own_environment(), stdout=log, stderr=log, start_new_session=True,
            preexec_fn=heed_signals,
        )  # fmt: skip


@contextmanager
def on_a_terminal(folder):
    """A run in the foreground of a terminal of its own, which is read all the time and closed at the end: the process, and the keyboard."""
    (folder / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    keyboard, screen = pty.openpty()

    def in_its_foreground():
        heed_signals()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        COMMAND, cwd=folder, env=own_environment(), stdin=screen, stdout=screen, stderr=screen, start_new_session=True,
        preexec_fn=in_its_foreground,
    )  # fmt: skip
    os.close(screen)
    closed = threading.Event()

    def drain():
        try:
            while not closed.is_set():
                if select.select([keyboard], [], [], 0.1)[0]:
                    os.read(keyboard, 4096)
        except OSError:
            pass

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    yield process, keyboard
    closed.set()
    reader.join()
    os.close(keyboard)


def wait_for_a_cell(folder, seconds=240):
    """Until MLflow has the first cell and the second is being trained."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if finished_cells(folder) and rows(folder, "mlflow", "select 1 from runs where status = 'FINISHED'"):
            time.sleep(1)
            return
        time.sleep(0.1)
    raise AssertionError((folder / "log").read_text())


def assert_closed(folder):
    assert rows(folder, "mlflow", "select distinct status from runs where name = 'interrupted'") == [("KILLED",)]
    assert rows(folder, "prefect", "select distinct state_type from flow_run") == [("CRASHED",)]
    assert not rows(folder, "mlflow", "select name from runs where status = 'RUNNING'")
    assert len(finished_cells(folder)) == 1
    assert not at_work_in(folder)


def assert_ends_in_time(process, folder, send):
    began = time.monotonic()
    send()
    try:
        assert process.wait(60) == 130
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    while at_work_in(folder) and time.monotonic() < began + 3 * SECONDS:
        time.sleep(0.05)
    assert time.monotonic() - began < SECONDS
    assert_closed(folder)


@pytest.mark.parametrize(
    ("number", "to"),
    [
        (signal.SIGINT, os.killpg),
        *(
            pytest.param(*both, marks=pytest.mark.long)
            for both in (
                (signal.SIGTERM, os.kill),
                (signal.SIGHUP, os.killpg),
                (signal.SIGTERM, os.killpg),
                (signal.SIGINT, os.kill),
            )
        ),
    ],
)
def test_a_signal_ends_a_run_in_seconds_and_closes_it(tmp_path, number, to):
    process = started(tmp_path)
    wait_for_a_cell(tmp_path)
    assert_ends_in_time(process, tmp_path, lambda: to(process.pid, number))
    assert "run the same command again to continue" in (tmp_path / "log").read_text()


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.0, 1.0, 2.0, 4.0])
def test_worker_processes_say_nothing_of_ctrl_c(tmp_path, seconds):
    """Nor does what ends them."""
    process = started(tmp_path, "--runner", "processes=2")
    while b"\ntraining" not in (tmp_path / "log").read_bytes():
        time.sleep(0.05)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 130
    said = (tmp_path / "log").read_text()
    assert said.partition("run the same command again to continue")[2].strip() == ""
    assert "Traceback" not in said


@pytest.mark.parametrize(("number", "to"), [(signal.SIGINT, os.killpg), (signal.SIGKILL, os.kill)])
def test_a_signal_while_all_is_still_imported_leaves_nothing(tmp_path, number, to):
    """Prefect's server is imported by then too, in a process of its own."""
    process = started(tmp_path)
    until = time.monotonic() + 60
    while not at_work_in(tmp_path) and time.monotonic() < until:
        time.sleep(0.01)
    to(process.pid, number)
    began = time.monotonic()
    assert process.wait(60) == (130 if number == signal.SIGINT else -number)
    while at_work_in(tmp_path) and time.monotonic() < began + 3 * SECONDS:
        time.sleep(0.05)
    assert time.monotonic() - began < SECONDS
    assert {path.name for path in tmp_path.iterdir()} == {"c.yaml", "log"}


@pytest.mark.long
@pytest.mark.parametrize("runner", ["processes=2", "dask=2"])
def test_workers_end_with_it(tmp_path, runner):
    process = started(tmp_path, "--runner", runner)
    wait_for_a_cell(tmp_path)
    assert_ends_in_time(process, tmp_path, lambda: os.killpg(process.pid, signal.SIGINT))


@pytest.mark.long
def test_ctrl_c_on_a_terminal_ends_it_in_seconds_and_closes_it(tmp_path):
    with on_a_terminal(tmp_path) as (process, keyboard):
        wait_for_a_cell(tmp_path)
        assert_ends_in_time(process, tmp_path, lambda: os.write(keyboard, b"\x03"))


@pytest.mark.long
def test_a_terminal_that_is_closed_ends_its_run_in_seconds_and_closes_it(tmp_path):
    with on_a_terminal(tmp_path) as (process, _):
        wait_for_a_cell(tmp_path)
    assert_ends_in_time(process, tmp_path, lambda: None)


@pytest.mark.long
def test_a_second_ctrl_c_on_a_terminal_ends_it_at_once(tmp_path):
    """Whatever stands open then is closed by the next run, as after any kill."""
    with on_a_terminal(tmp_path) as (process, keyboard):
        wait_for_a_cell(tmp_path)
        began = time.monotonic()
        os.write(keyboard, b"\x03")
        time.sleep(0.2)
        os.write(keyboard, b"\x03")
        assert process.wait(60) == 130
        assert time.monotonic() - began < 3
    while at_work_in(tmp_path) and time.monotonic() < began + SECONDS:
        time.sleep(0.05)
    assert not at_work_in(tmp_path)
    with sqlite3.connect(tmp_path / "mlruns/mlflow.db") as store:
        assert store.execute("pragma integrity_check").fetchall() == [("ok",)]


def test_where_no_thread_can_be_started_a_signal_ends_a_run_at_once(monkeypatch, capsys):
    """Under a limit of memory others may wait for ever for a thread of theirs."""

    def refused(*_):
        raise RuntimeError("can't start new thread")

    ear, mouth = os.pipe()
    os.write(mouth, bytes([signal.SIGTERM]))
    os.close(mouth)
    with monkeypatch.context() as patch:
        patch.setattr(interruption, "STOP", threading.Event())
        patch.setattr(threading.Thread, "start", refused)
        patch.setattr(interruption, "_end_processes", lambda: print("processes end"))
        patch.setattr(os, "_exit", lambda code: print(f"and this one, {code}"))
        interruption._listen(ear, [signal.SIGTERM])
    out, err = capsys.readouterr()
    assert out.splitlines() == ["processes end", f"and this one, {interruption._CODE}"]
    assert "interrupted" in err


ENDED = """
import atexit, os, signal, sys, time
from flows.interruption import ends_in_time

try:
    with ends_in_time():
        atexit.register(lambda: 1 / 0)
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
except KeyboardInterrupt:
    time.sleep(0.5)  # until the other thread has said it
    print("said on the way out", file=sys.stderr)
"""


def test_what_libraries_do_at_the_end_of_an_interrupted_process_is_not_told(tmp_path):
    """A cluster of Dask that is closed while its workers start failed with pages of its own code."""
    done = subprocess.run(
        [sys.executable, "-c", ENDED], cwd=tmp_path, env=own_environment(), capture_output=True, text=True, timeout=60,
        preexec_fn=heed_signals,
    )  # fmt: skip
    assert done.returncode == 130
    said, _, more = done.stderr.strip().partition("\n")
    assert said.startswith("interrupted: ")
    assert more == "said on the way out"
