"""Features of which most are 0: scipy's rows of (column, value), never made dense as a whole.

A value that is left out is 0, as in LETOR and SVMlight text and as in LightGBM; NaN, where it is stored, is a missing value.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
SparseFeatures = Any
"""A ``csr_array`` of float32 with sorted columns and no zero in it; scipy is not annotated."""
ROWS = 4096
"""Rows that are dense at a time, where that cannot be helped."""


def is_sparse(features: object) -> bool:
    """Whether these are features of scipy.sparse, in whatever form; told without importing it, which takes long."""
    return any(base.__module__.startswith("scipy.sparse") for base in type(features).__mro__)


def sparse_features(given: object) -> SparseFeatures:
    """A ``csr_array`` of float32 with sorted columns, without zeros, of whatever form of scipy.sparse was given, which stays as it is.

    Raises:
        ValueError: for more dimensions than two, numbers that are none, more columns than 32 bits can number, and as `require_places`.
    """
    from scipy.sparse import csr_array

    require_places(given)
    rows = csr_array(given)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise ValueError(f"features: a sparse array of {rows.dtype} and shape {rows.shape}, expected numbers [documents, features]")
    if rows.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"features: {rows.shape[1]:,} columns; 2,147,483,647 at most")
    if rows.has_canonical_format and rows.dtype == np.float32 and rows.data.all():
        return rows
    rows = rows.copy()
    rows.sum_duplicates()  # as they were given: 1e8 + 1 − 1e8 is 0 in float32
    exact = rows.data
    with np.errstate(over="ignore"):
        rows = rows.astype(np.float32, copy=False)
    if (infinite := np.isinf(rows.data)).any() and (far := infinite & np.isfinite(exact)).any():
        at = int(far.argmax())
        place = [int(np.searchsorted(rows.indptr, at, side="right")) - 1, int(rows.indices[at])]
        raise ValueError(f"features: {exact[at]:g} at {place}; features must be float32 numbers, up to 3.4e38")
    rows.eliminate_zeros()
    return rows


def require_places(given: Any) -> None:
    """Looks whether all that is stored lies within the array: scipy takes any numbers of columns, and reads and writes other memory by them.

    Raises:
        ValueError: for columns or rows that the array has not, and rows that end before they begin.
    """
    if hasattr(given, "check_format"):
        try:
            given.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"a sparse array of shape {given.shape} that is damaged: {error}") from None


def parts_of(features: SparseFeatures) -> tuple[Ints, Ints32, Floats32]:
    """Where each row begins ``int64 [documents + 1]``, columns ``int32 [stored]`` and values ``float32 [stored]``, as compiled code reads
    them."""
    return features.indptr.astype(np.int64), features.indices.astype(np.int32, copy=False), features.data


def dense_columns(features: SparseFeatures, columns: NDArray[np.integer]) -> Floats32:
    """``float32 [documents, columns]``, the columns of these numbers, which rise."""
    found = np.zeros((features.shape[0], len(columns)), np.float32)
    _dense_columns(*parts_of(features), columns.astype(np.int32), found)
    return found


def dense_blocks(features: SparseFeatures) -> Iterator[Floats32]:
    """All rows, ``float32 [ROWS, features]`` at a time."""
    for first in range(0, features.shape[0], ROWS):
        yield features[first : first + ROWS].toarray()


def stacked(parts: Sequence[Floats32]) -> Floats32:
    """The rows of all parts, of one width, one after another; sparse where one of them is."""
    if not any(map(is_sparse, parts)):
        return np.concatenate(parts)
    from scipy.sparse import vstack

    rows: Floats32 = vstack(parts, format="csr")
    return rows


def widened(features: Floats32, width: int) -> Floats32:
    """The features, and zeros up to so many columns."""
    if not is_sparse(features):
        return np.pad(features, ((0, 0), (0, width - features.shape[1])))
    from scipy.sparse import csr_array

    rows: SparseFeatures = features
    wide: Floats32 = csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], width))
    return wide


@njit(cache=True, parallel=True)
def _dense_columns(starts: Ints, columns: Ints32, values: Floats32, chosen: Ints32, found: Floats32) -> None:
    for row in prange(len(starts) - 1):
        own = columns[starts[row] : starts[row + 1]]
        for k, place in enumerate(np.searchsorted(own, chosen)):
            if place < len(own) and own[place] == chosen[k]:
                found[row, k] = values[starts[row] + place]
