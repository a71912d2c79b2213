"""What compiles beside this process: one statement of Python, waited for, and nothing where it could do harm."""

import sys
import time

import numba
import pytest

from ltr.kernels import beside
from ltr.kernels.beside import begin_beside, wait_beside
from ltr.kernels.threads import threads

pytestmark = pytest.mark.usefixtures("all_threads")
needs_threads = pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread")


def written(path):
    """What a statement that is run beside writes to a file; None where it is not run."""
    begin_beside(f"import sys; open({str(path)!r}, 'w').write(repr(sys.path))")
    wait_beside()
    return path.read_text() if path.exists() else None


@needs_threads
def test_a_statement_runs_with_this_process_s_path_and_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    assert repr(str(tmp_path)) in written(tmp_path / "path")


@needs_threads
def test_nothing_is_imported_from_the_folder_that_it_runs_in(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    begin_beside("import json")
    wait_beside()
    assert not (tmp_path / "ran").exists()


@needs_threads
def test_what_is_no_text_in_the_path_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [tmp_path, b"bytes", "nul\0", "\udc80", *sys.path])
    assert repr(str(tmp_path)) not in written(tmp_path / "path")


@needs_threads
def test_one_that_fails_is_waited_for_too():
    begin_beside("raise SystemExit(3)")
    wait_beside()


@needs_threads
def test_one_that_hangs_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(beside, "LONGEST", 0.5)
    begin_beside("import time; time.sleep(600)")
    started = time.monotonic()
    wait_beside()
    assert time.monotonic() - started < 60


def test_one_thread_means_one_process(tmp_path):
    with threads(1):
        assert written(tmp_path / "path") is None


@pytest.mark.parametrize("program", ["", None, "/usr/sbin/uwsgi", "/opt/shop/search-app"])
def test_a_program_with_python_within_it_is_not_started_again(program, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", program)
    assert written(tmp_path / "path") is None


def test_nor_is_a_frozen_application(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert written(tmp_path / "path") is None
