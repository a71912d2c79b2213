"""Arrays in files without a name."""

import errno

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
    assert not list(state.STATE.glob("*tmp*"))


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
