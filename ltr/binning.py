"""Features → small integers, the form in which trees read them.

Bin b of a feature holds the values in ``(edges[b − 1], edges[b]]``, so a split "bin ≤ b" is exactly "x ≤ edges[b]", in float32, for
every x: a model predicts from raw features what it saw while it was grown. Missing values have the bin `MISSING`.
Edges depend on the sorted values alone, never on the order of rows.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numba
import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

MISSING = 255
BLOCK = 16
"""Columns stored side by side: one row's block is 16 bytes, a block's histograms (32 KB) stay in the first-level cache."""


@dataclass(frozen=True)
class Bins:
    """Bin edges of each feature: ``edges[starts[f]:starts[f + 1]]``, float32, rising."""

    edges: NDArray[np.float32]
    starts: NDArray[np.int64]

    @property
    def n_features(self) -> int:
        return len(self.starts) - 1


def find_bins(features: NDArray[np.float32], max_bins: int = 255) -> Bins:
    """Edges so that each feature falls into at most `max_bins` bins, by quantiles where it has more distinct values.

    Raises:
        ValueError: for `max_bins` outside 2–255 or an infinite feature value.
    """
    if not 2 <= max_bins <= 255:
        raise ValueError(f"max_bins {max_bins} is outside 2–255")

    def of_block(first: int) -> list[NDArray[np.float32]]:
        block = np.ascontiguousarray(features[:, first : first + BLOCK].T)
        return [_edges(column, max_bins, first + k) for k, column in enumerate(block)]

    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        columns = [edges for block in pool.map(of_block, range(0, features.shape[1], BLOCK)) for edges in block]
    starts = np.concatenate(([0], np.cumsum([len(c) for c in columns]))).astype(np.int64)
    return Bins(np.concatenate(columns) if columns else np.empty(0, np.float32), starts)


def _edges(column: NDArray[np.float32], max_bins: int, feature: int) -> NDArray[np.float32]:
    values = column.copy()
    values.sort()
    values = values[: np.searchsorted(values, np.nan)]
    if len(values) == 0:
        return np.empty(0, np.float32)
    if np.isinf(values[0]) or np.isinf(values[-1]):
        raise ValueError(f"feature {feature + 1} has an infinite value; trees need finite or missing (NaN) ones")
    distinct = values[np.flatnonzero(np.diff(values, prepend=np.nan) != 0)]
    if len(distinct) <= max_bins:
        low, high = distinct[:-1], distinct[1:]
    else:
        at = np.arange(1, max_bins) * len(values) // max_bins
        cut = np.unique(np.searchsorted(distinct, values[at], side="left"))
        cut = cut[cut > 0]
        low, high = distinct[cut - 1], distinct[cut]
    middle = low + (high - low) / np.float32(2)
    return np.where((middle > low) & (middle < high), middle, low).astype(np.float32)


def apply_bins(features: NDArray[np.float32], bins: Bins) -> NDArray[np.uint8]:
    """Bins ``uint8 [blocks, documents, BLOCK]`` of ``features [documents, features]``; columns past the last are 0."""
    n_blocks = max(1, -(-bins.n_features // BLOCK))
    binned = np.zeros((n_blocks, len(features), BLOCK), np.uint8)
    _apply(features, bins.edges, bins.starts, binned)
    return binned


def find_missing(binned: NDArray[np.uint8], n_features: int) -> NDArray[np.bool_]:
    """Which features have a missing value, ``bool [features]``, from `apply_bins`."""
    found = np.empty((len(binned), BLOCK), np.bool_)
    _find_missing(binned, found)
    return found.ravel()[:n_features]


@njit(cache=True, parallel=True)
def _find_missing(binned, found):
    for block in prange(len(binned)):
        largest = np.zeros(BLOCK, np.uint8)
        for row in range(binned.shape[1]):
            for k in range(BLOCK):
                largest[k] = max(largest[k], binned[block, row, k])
        for k in range(BLOCK):
            found[block, k] = largest[k] == MISSING


_TILE = 512
"""Rows that go through one block of columns before the next: their features stay in the processor's cache."""


@njit(cache=True, parallel=True)
def _apply(features, edges, starts, binned):
    """The bin is the number of edges below x, found by eight halvings without a branch in edges padded with infinity."""
    n_documents, n_features = features.shape
    for tile in prange((n_documents + _TILE - 1) // _TILE):
        first, last = tile * _TILE, min(tile * _TILE + _TILE, n_documents)
        padded = np.empty(256, np.float32)
        for f in range(n_features):
            own = edges[starts[f] : starts[f + 1]]
            padded[: len(own)] = own
            padded[len(own) :] = np.float32(np.inf)
            column = binned[f // BLOCK]
            for row in range(first, last):
                x = features[row, f]
                at, half = np.uint64(0), np.uint64(128)
                for _ in range(8):
                    at += half if padded[at + half - np.uint64(1)] < x else np.uint64(0)
                    half >>= np.uint64(1)
                column[row, f % BLOCK] = np.uint8(MISSING) if np.isnan(x) else np.uint8(at)
