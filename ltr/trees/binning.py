"""Features → small integers, the form in which trees read them.

Bin b of a feature holds the values in ``(edges[b − 1], edges[b]]``, so a split "bin ≤ b" is exactly "x ≤ edges[b]", in float32, for
every x: a model predicts from raw features exactly what it saw while it was grown. Missing values have the bin `MISSING`.
Edges depend on the sorted values alone, never on the order of rows.

Of a feature of categories, whose values are whole numbers, ``edges`` are the categories themselves: bin b holds the values ``edges[b]``. Where
there are more than bins, the most frequent ones have bins, and the others are as if missing.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numba
import numpy as np
from numba import njit, prange

from ltr.data.offsets import offsets_from_sizes
from ltr.data.queries import LARGEST_WHOLE
from ltr.data.sparse import SparseFeatures, is_sparse
from ltr.kernels.kernel import Bools, Bytes, Floats32, Ints

MISSING = 255
"""The bin of missing values, after all others."""
BLOCK = 16
"""Columns stored together: one row of a block is 16 bytes, and a block's histograms (32 KB) stay in the first-level cache."""
_READ = 1024
"""Rows whose columns are copied at a time."""
MOST_CATEGORIES = LARGEST_WHOLE
"""The largest whole number that is a category."""
FEW = 31
"""Columns with at most this many bins of values share updates of histograms (`ltr.trees.histograms`); they come after the others."""


@dataclass(frozen=True)
class Bins:
    """Bin edges of each feature: ``edges[starts[f]:starts[f + 1]]``, float32, rising; ``categorical``: ``bool [features]``."""

    edges: Floats32
    starts: Ints
    categorical: Bools

    @property
    def n_features(self) -> int:
        """How many features have edges; some may have none at all."""
        return len(self.starts) - 1

    @property
    def n_blocks(self) -> int:
        """Blocks of `BLOCK` columns that hold all features; at least one."""
        return max(1, -(-self.n_features // BLOCK))

    @property
    def columns(self) -> Ints:
        """The column of each feature, ``int64 [features]``: in order, but with those of few bins after the others."""
        few = np.diff(self.starts) < FEW
        columns = np.empty(self.n_features, np.int64)
        columns[np.argsort(few, kind="stable")] = np.arange(self.n_features)
        return columns

    @property
    def used(self) -> Ints:
        """Bins of values in each column, ``int64 [blocks · BLOCK]``; 0 after the last."""
        used = np.zeros(self.n_blocks * BLOCK, np.int64)
        used[self.columns] = np.diff(self.starts) + 1
        return used


def bins_at_most(max_bins: int | Ints, n_features: int) -> Ints:
    """How many bins each feature has at most, ``int64 [features]``.

    Raises:
        ValueError: for a number outside 2–255.
    """
    limits = np.broadcast_to(np.asarray(max_bins, np.int64), (n_features,))
    for wrong in limits[(limits < 2) | (limits > 255)][:1]:
        raise ValueError(f"max_bins {wrong} is outside 2–255")
    return limits


_FOR_THREADS = 1 << 20
"""Values from which on threads find edges sooner than one."""
_Made = TypeVar("_Made")


class ColumnError(ValueError):
    """What is wrong with a column: bins know its number, and who called for them its name."""

    def __init__(self, column: int, wrong: str) -> None:
        super().__init__(column, wrong)
        self.column, self.wrong = column, wrong

    def __str__(self) -> str:
        return f"column {self.column} {self.wrong}"


@contextmanager
def naming(names: Sequence[str]) -> Iterator[None]:
    """Raises what is wrong with a column as ValueError with the name of the feature."""
    try:
        yield
    except ColumnError as error:
        raise ValueError(f"feature {names[error.column]!r} {error.wrong}") from None


def find_bins(features: Floats32, max_bins: int | Ints = 255, categorical: Bools | None = None) -> Bins:
    """Edges so that each feature falls into at most `max_bins` bins, by quantiles where it has more distinct values.

    Args:
        max_bins: of every feature, or of each, ``int64 [features]``.
        categorical: ``bool [features]``, those whose values are categories; left out, none.

    Raises:
        ValueError: for `max_bins` outside 2–255, an infinite feature value, or a category that is no whole number from 0 to 2²⁴.
    """
    limits = bins_at_most(max_bins, features.shape[1])
    of_categories = np.zeros(features.shape[1], np.bool_) if categorical is None else categorical

    def of_block(first: int) -> list[Floats32]:
        block = _columns(features, first)
        return [(_categories if of_categories[f] else _edges)(column, int(limits[f]), f) for f, column in enumerate(block, first)]

    blocks = in_threads(of_block, range(0, features.shape[1], BLOCK), features.size)
    return joined([edges for block in blocks for edges in block], of_categories)


def in_threads(work: Callable[[int], _Made], places: Sequence[int], n_values: int) -> list[_Made]:
    """`work` of each place, in threads where there are enough values for that to be faster. Python's threads are not safe against an interruption
    while they begin and end, which then waits for ever, so that fits of a moment have none."""
    if n_values < _FOR_THREADS or len(places) < 2:
        return [work(place) for place in places]
    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        return list(pool.map(work, places))


def _columns(features: Floats32, first: int) -> Floats32:
    """``float32 [columns, documents]``: up to `BLOCK` columns of the features, from `first` on."""
    columns = np.empty((min(BLOCK, features.shape[1] - first), len(features)), np.float32)
    _copy_columns(features, first, columns)
    return columns


@njit(cache=True, nogil=True)
def _copy_columns(features: Floats32, first: int, columns: Floats32) -> None:
    """Tile by tile, so that what is read of a row for one column is still near for the next."""
    for start in range(0, columns.shape[1], _READ):
        for k in range(len(columns)):
            for row in range(start, min(start + _READ, columns.shape[1])):
                columns[k, row] = features[row, first + k]


def joined(columns: list[Floats32], categorical: Bools | None = None) -> Bins:
    """The bins of features that have these edges."""
    starts = offsets_from_sizes([len(c) for c in columns])
    of_categories = np.zeros(len(columns), np.bool_) if categorical is None else categorical
    return Bins(np.concatenate(columns) if columns else np.empty(0, np.float32), starts, of_categories)


def _edges(column: Floats32, max_bins: int, feature: int) -> Floats32:
    return sparse_edges(_sorted_values(column, feature), 0, max_bins, feature)


def _categories(column: Floats32, max_bins: int, feature: int) -> Floats32:
    return _most_frequent(*counted_categories(column, feature), max_bins)


def counted_categories(column: Floats32, feature: int) -> tuple[Floats32, Ints]:
    """The categories of a column, rising, and how often there is each.

    Raises:
        ValueError: for one that is no whole number from 0 to 2²⁴.
    """
    found, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    wrong = found[(found < 0) | (found > MOST_CATEGORIES) | (found != np.floor(found))]
    if len(wrong):
        raise ColumnError(
            feature, f"is categorical and has the value {wrong[0]:.8g}; categories are whole numbers from 0 to {MOST_CATEGORIES:,}"
        )
    return found.astype(np.float32), counts


def _most_frequent(categories: Floats32, counts: Ints, max_bins: int) -> Floats32:
    """One fewer than there are bins at most, rising; of equally frequent ones the smaller numbers."""
    kept = np.argsort(-counts, kind="stable")[: max_bins - 1]
    return np.sort(categories[kept])


def sparse_edges(values: Floats32, n_zeros: int, max_bins: int, feature: int) -> Floats32:
    """The edges of a feature with these `values`, rising and none of them missing, and so many zeros beside them.

    Raises:
        ValueError: for an infinite value.
    """
    _require_finite(values, feature)
    n, below = len(values) + n_zeros, int(np.searchsorted(values, 0.0))
    if n == 0:
        return np.empty(0, np.float32)
    distinct = _distinct(values)
    if n_zeros:
        distinct = np.insert(distinct, np.searchsorted(distinct, 0.0), np.float32(0)) if not (distinct == 0.0).any() else distinct
    if len(distinct) <= max_bins:
        return _between(distinct[:-1], distinct[1:])
    ranks = _quantiles(n, max_bins)
    others = values[np.where(ranks < below, ranks, ranks - n_zeros).clip(0, len(values) - 1)]
    at_ranks = np.where((ranks < below) | (ranks >= below + n_zeros), others, np.float32(0))
    cut = np.unique(np.searchsorted(distinct, at_ranks, side="left"))
    cut = cut[cut > 0]
    return _between(distinct[cut - 1], distinct[cut])


def _sorted_values(column: Floats32, feature: int) -> Floats32:
    """The values that are not missing, rising, in the column's own memory."""
    column.sort()
    values = column[: np.searchsorted(column, np.nan)]
    _require_finite(values, feature)
    return values


def _require_finite(values: Floats32, feature: int) -> None:
    if len(values) and (np.isinf(values[0]) or np.isinf(values[-1])):
        raise ColumnError(feature, "has an infinite value; trees need finite or missing (NaN) ones")


def require_valid_finite(features: Floats32) -> None:
    """Raises ColumnError for features of validation queries, dense or sparse, of which one is infinite."""
    if is_sparse(features):
        rows: SparseFeatures = features
        bounds = [bound(axis=0).toarray().ravel() for bound in (rows.nanmin, rows.nanmax)]
    else:
        bounds = [np.fmin.reduce(features), np.fmax.reduce(features)]
    infinite = np.flatnonzero(np.isinf(bounds).any(axis=0))
    if len(infinite):
        raise ColumnError(
            int(infinite[0]), "has an infinite value in the validation queries; trees need finite or missing (NaN) ones"
        )


def _distinct(values: Floats32) -> Floats32:
    new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def _quantiles(n: int, max_bins: int) -> Ints:
    """Ranks, from 0, of the values that begin bins."""
    return np.arange(1, max_bins) * n // max_bins


def _between(low: Floats32, high: Floats32) -> Floats32:
    """Edges in the middle of neighbouring values, or at the lower one where there is no float between them; zero has no sign."""
    with np.errstate(over="ignore"):  # values 3.4e38 apart have no middle that could be computed so, and the lower one is taken
        middle = low + (high - low) / np.float32(2)
    return np.where((middle > low) & (middle < high), middle, low).astype(np.float32) + np.float32(0)


# --- the same edges for rows in several parts --------------------------------------------------------------------------


def sorted_block(features: Floats32, first: int) -> list[Floats32]:
    """The values of `BLOCK` features from `first` on, rising, without the missing ones, from which a part answers.

    Raises:
        ValueError: for an infinite feature value.
    """
    block = _columns(features, first)
    return [_sorted_values(column, first + k) for k, column in enumerate(block)]


Ask = Callable[..., list[Any]]
"""``ask(question, *arguments)``: the answers of all parts, in their order."""


def find_bins_by(ask: Ask, n_features: int, max_bins: int | Ints, categorical: Bools | None = None) -> Bins:
    """`find_bins` over parts that keep their rows: a quantile lies between the lowest and the highest of the parts' own, and is found by
    bisection over the bits of a float, asking each time how many values are not above it. Every feature takes at most 32 of these
    questions of one number fewer than it has bins, however many rows there are, and fewer the more alike parts are.

    Args:
        ask: ``ask("few", first, limits)`` → by part `few` of its `sorted_block`; ``ask("own_quantiles", first, counts, limits)`` →
            `own_quantiles`; ``ask("not_above", first, thresholds)`` → `not_above`; ``ask("next_below", first, values)`` → `next_below`;
            ``ask("categories", feature)`` → `counted_categories`.
    """
    limits = bins_at_most(max_bins, n_features)
    columns = [e for first in range(0, n_features, BLOCK) for e in _block_edges(ask, first, limits[first : first + BLOCK])]
    for feature in [] if categorical is None else np.flatnonzero(categorical).tolist():
        parts = ask("categories", feature)
        every, at = np.unique(np.concatenate([own for own, _ in parts]), return_inverse=True)
        counts = np.bincount(at, np.concatenate([counts for _, counts in parts]), len(every)).astype(np.int64)
        columns[feature] = _most_frequent(every, counts, int(limits[feature]))
    return joined(columns, categorical)


def few(block: list[Floats32], limits: Ints) -> list[tuple[int, Floats32 | None]]:
    """For each column the number of values, and the distinct ones, or None where there are more of them than bins."""
    distinct = [_distinct(values) for values in block]
    return [(len(v), d if len(d) <= limit else None) for v, d, limit in zip(block, distinct, limits, strict=True)]


def own_quantiles(block: list[Floats32], counts: Ints, limits: Ints) -> Floats32:
    """The values of each column at the ranks of `_ranks`, of `counts` values in all parts, were this part like the others: ``float32
    [columns, ranks]``. NaN without values."""
    ranks = _ranks(counts, limits)
    found = np.full(ranks.shape, np.nan, np.float32)
    for own, values, at, n in zip(found, block, ranks, counts, strict=True):
        if len(values):
            own[:] = values[at * len(values) // n]
    return found


def _ranks(counts: Ints, limits: Ints) -> Ints:
    """`_quantiles` of each column, ``int64 [columns, largest limit − 1]``; columns of fewer bins repeat their last."""
    rows = [_quantiles(int(n), int(limit)) for n, limit in zip(counts, limits, strict=True)]
    return np.array([np.pad(row, (0, int(limits.max()) - 1 - len(row)), mode="edge") for row in rows])


def not_above(block: list[Floats32], thresholds: Floats32) -> Ints:
    """How many values of each column are ≤ each of its thresholds, ``int64 [columns, thresholds]``."""
    return np.array([np.searchsorted(v, t, side="right") for v, t in zip(block, thresholds, strict=True)], np.int64)


def next_below(block: list[Floats32], values: Floats32) -> Floats32:
    """The largest value of each column below each of `values`, ``float32 [columns, values]``; −∞ where there is none."""
    padded = [np.concatenate(([np.float32(-np.inf)], column)) for column in block]
    return np.array([p[np.searchsorted(p[1:], v, side="left")] for p, v in zip(padded, values, strict=True)], np.float32)


def _block_edges(ask: Ask, first: int, limits: Ints) -> list[Floats32]:
    by_column = list(zip(*ask("few", first, limits), strict=True))
    counts = np.array([sum(n for n, _ in column) for column in by_column])
    distinct = [_united([values for _, values in column], limit) for column, limit in zip(by_column, limits, strict=True)]
    found = [_between(d[:-1], d[1:]) if d is not None else np.empty(0, np.float32) for d in distinct]
    many = [k for k, d in enumerate(distinct) if d is None]
    if many:
        ranks = _ranks(counts, limits)
        own = np.array(ask("own_quantiles", first, counts, limits))
        low, high = _rising(np.fmin.reduce(own)), _rising(np.fmax.reduce(own))
        while (low < high).any():
            middle = (low + high) // 2
            enough = sum(ask("not_above", first, _float(middle))) > ranks
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        values = _float(low)
        below = np.maximum.reduce(ask("next_below", first, values))
        for k in many:
            own, at = np.unique(values[k], return_index=True)
            inner = below[k, at] > -np.inf
            found[k] = _between(below[k, at][inner], own[inner])
    return found


def _united(parts: list[Floats32 | None], max_bins: int) -> Floats32 | None:
    """The distinct values of all parts, or None where there are more than `max_bins` of them."""
    known = [values for values in parts if values is not None]
    distinct = np.unique(np.concatenate(known)) if len(known) == len(parts) else None
    return distinct if distinct is not None and len(distinct) <= max_bins else None


_SIGN = 1 << 31


def _rising(values: Floats32) -> Ints:
    """Positions of floats among all floats: their bits, with those of negative ones reversed in order."""
    bits = values.view(np.uint32).astype(np.int64)
    positions: Ints = np.where(bits < _SIGN, bits + _SIGN, 2 * _SIGN - 1 - bits)
    return positions


def _float(places: Ints) -> Floats32:
    bits = np.where(places >= _SIGN, places - _SIGN, 2 * _SIGN - 1 - places)
    return bits.astype(np.uint32).view(np.float32)


# --- values → bins ------------------------------------------------------------------------------------------------------


_TILE = 512
"""Rows that are binned at a time: their features stay in the processor's cache."""
_EVERY = 16
"""Edges from one that is compared with all rows of a tile to the next."""


def apply_bins(features: Floats32, bins: Bins) -> Bytes:
    """Bins ``uint8 [blocks, documents, BLOCK]`` of ``features [documents, features]``, by column; columns after the last are 0."""
    binned = np.zeros((bins.n_blocks, len(features), BLOCK), np.uint8)
    _apply(features, bins.edges, bins.starts, bins.columns, bins.categorical, binned)
    return binned


def find_missing(binned: Bytes, bins: Bins) -> Bools:
    """Which features have a missing value, ``bool [features]``, given what `apply_bins` returned."""
    largest = np.zeros((len(binned), BLOCK), np.uint8)
    _largest_bins(binned, largest)
    found: Bools = largest.ravel()[bins.columns] == MISSING
    return found


@njit(cache=True, parallel=True)
def _largest_bins(binned: Bytes, largest: Bytes) -> None:
    for block in prange(len(binned)):
        own = np.zeros(BLOCK, np.uint8)
        for row in range(binned.shape[1]):
            for k in range(BLOCK):
                own[k] = max(own[k], binned[block, row, k])
        for k in range(BLOCK):
            largest[block, k] = own[k]


@njit(cache=True, parallel=True)
def _apply(features: Floats32, edges: Floats32, starts: Ints, columns: Ints, categorical: Bools, binned: Bytes) -> None:
    """The bin is the number of edges below x: every sixteenth is compared with all rows of a tile, many rows at once, and four steps of
    branchless bisection find it among the next sixteen, in edges padded with infinity. A category has one where the edge there is itself."""
    n_documents, n_features = features.shape
    for tile in prange((n_documents + _TILE - 1) // _TILE):
        first, last = tile * _TILE, min(tile * _TILE + _TILE, n_documents)
        padded, values, below = np.empty(256, np.float32), np.empty(_TILE, np.float32), np.empty(_TILE, np.int32)
        for f in range(n_features):
            padded[:] = np.float32(np.inf)
            for e in range(np.uint64(starts[f]), np.uint64(starts[f + 1])):
                padded[e - np.uint64(starts[f])] = edges[e]
            for i in range(last - first):
                values[i] = features[first + i, f]
            below[:] = 0
            for e in range(_EVERY - 1, starts[f + 1] - starts[f], _EVERY):
                edge = padded[e]
                for i in range(last - first):
                    below[i] += np.int32(_EVERY) if edge < values[i] else np.int32(0)
            block, k = columns[f] // BLOCK, columns[f] % BLOCK
            for i in range(last - first):
                x, at, half = values[i], np.uint64(below[i]), np.uint64(_EVERY // 2)
                for _ in range(4):
                    at += half if padded[at + half - np.uint64(1)] < x else np.uint64(0)
                    half >>= np.uint64(1)
                missing = np.isnan(x) or (categorical[f] and padded[at] != x)
                binned[block, first + i, k] = np.uint8(MISSING) if missing else np.uint8(at)
