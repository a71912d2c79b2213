import fcntl
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ltr.kernels.locks import locked
from tests.conftest import require_free


@pytest.mark.parametrize("name", ["", "one.lock", "folder.lock"])
def test_one_after_another_is_alone_and_readers_are_together(tmp_path, name):
    path, together = tmp_path / name, threading.Barrier(4)
    if name == "folder.lock":
        path.mkdir()

    def most_inside(alone):
        inside, most = [0], [0]

        def work(_):
            together.wait()
            with locked(path, alone):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.05)
                inside[0] -= 1

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        return most[0]

    assert most_inside(alone=True) == 1
    assert most_inside(alone=False) > 1
    assert [one.name for one in tmp_path.iterdir()] == [name] * bool(name)


def test_a_folder_that_is_not_there_is_told_and_not_made(tmp_path):
    with pytest.raises(FileNotFoundError), locked(tmp_path / "gone"):
        pass
    assert not list(tmp_path.iterdir())


def test_it_is_free_at_the_end_though_a_forked_process_has_it_open(tmp_path, twins):
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError
    assert len(twins) == 1
    require_free(tmp_path)


def test_nothing_is_locked_where_there_are_no_locks(tmp_path, monkeypatch):
    def without(*_):
        raise OSError(95, "Operation not supported")

    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as now, locked(tmp_path):
        now.setattr(fcntl, "flock", without)  # as where a server of files is gone meanwhile
    with monkeypatch.context() as now:
        now.setattr(os, "open", forbidden)  # a folder that may be passed through and not listed
        with locked(tmp_path):
            pass
    monkeypatch.setattr(fcntl, "flock", without)
    with locked(tmp_path):
        pass
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with locked(tmp_path / "gone"):
        pass
