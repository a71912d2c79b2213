"""Arrays in files without a name."""

import errno
from pathlib import Path

import numpy as np
import pytest

from tasks.store import large, state
from tasks.store.large import taken, zeros


def test_small_arrays_are_in_memory_and_large_ones_in_a_file_that_nobody_sees(workplace, monkeypatch):
    assert not isinstance(zeros((3, 2), np.float32), np.memmap)
    monkeypatch.setattr(large, "SMALL", 23)
    found = zeros((3, 2), np.float32)
    assert isinstance(found, np.memmap)
    assert (found == 0).all()
    found[:] = 7
    assert found.sum() == 42
    assert not list(state.root().glob("*tmp*"))


@pytest.mark.parametrize("at_a_time", [1, 24, 1 << 24])
def test_rows_are_taken_as_numpy_takes_them(workplace, monkeypatch, at_a_time):
    monkeypatch.setattr(large, "SMALL", 0)
    monkeypatch.setattr(large, "_BYTES_AT_A_TIME", at_a_time)
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    order = np.random.default_rng(1).integers(0, 50, 70)
    assert np.array_equal(taken(rows, order), rows[order])


def test_a_full_disk_is_told_before_anything_is_written(workplace, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(large, "SMALL", 0)
    monkeypatch.setattr(large.os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="No space left"):
        zeros((10,), np.float64)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells how much of files is in memory")
def test_rows_that_were_taken_keep_no_memory(workplace):
    rows = zeros((1 << 20, 16), np.float32)
    rows[:] = np.arange(1 << 20)[:, None]
    before = in_files()
    found = taken(rows, np.arange(1 << 20)[::-1])
    assert before > rows.nbytes
    assert in_files() < before - 0.9 * rows.nbytes
    assert np.array_equal(found[::-1], rows)


def in_files():
    """Bytes of files that this process has in memory."""
    return 1024 * int(Path("/proc/self/status").read_text().split("RssFile:")[1].split()[0])
