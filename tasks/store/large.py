"""Arrays that may be larger than the memory: their numbers are in files without a name, from which the system takes pages as it needs them.

numpy's `memmap` over a temporary file would do but for a full disk, which ends the process at some later write: the room is asked for first.
"""

import mmap
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tasks.store import state

SMALL = 1 << 22
"""Bytes up to which an array is kept in memory."""
_BYTES_AT_A_TIME = 1 << 24


def zeros(shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """As `numpy.zeros`, in a file below the state folder where it is larger than `SMALL`; the file ends with the array.

    Raises:
        OSError: where the disk has no room for it.
    """
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    if size <= SMALL:
        return np.zeros(shape, kind)
    state.root().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=state.root()) as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)  # macOS
        return np.memmap(file, kind, "r+", shape=shape)


def taken(rows: NDArray[Any], order: NDArray[np.intp]) -> NDArray[Any]:
    """``rows[order]``, in a file where it is large, a few rows at a time. What is in a file itself keeps no memory then."""
    found = zeros((len(order), *rows.shape[1:]), rows.dtype)
    step = max(_BYTES_AT_A_TIME * len(rows) // max(rows.nbytes, 1), 1)
    for first in range(0, len(order), step):
        found[first : first + step] = rows[order[first : first + step]]
        _let_go(found)
    _let_go(rows)
    return found


def _let_go(array: NDArray[Any]) -> None:
    """Gives back the memory of an array that `zeros` made in a file, where its numbers stay."""
    whole: Any = array
    file: Any = None
    while isinstance(whole, np.ndarray) and not isinstance(file := whole.base, mmap.mmap):
        whole = file
    if isinstance(whole, np.memmap) and whole.mode == "r+" and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)
