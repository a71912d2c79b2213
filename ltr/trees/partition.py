"""The row partition: where binned rows are stored while trees grow, which rows each leaf has, and how a leaf is split.

A histogram is built for the smaller child only; its sibling's is the parent's less that, in the parent's memory.

The bins of a document are one row, and rows are stored by the leaves of a training's first tree, in the order of documents within each
(`BinnedDataset.reorder_rows`). Later trees split by much the same features, so the rows of a leaf are closer together; sums do not
depend on the order:

    document   0   1   2   3   4   5   6   7        canonical: gradients, scores, labels
    leaf       b   a   b   c   a   a   c   b        of the first tree
    row_index  3   0   4   6   1   2   7   5        written to as many streams as there are leaves, each from front to back
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numba
import numpy as np
from numba import njit, prange, types

from ltr.kernels.kernel import (
    I1,
    I1_1D,
    I4_1D,
    I8,
    I8_1D,
    I8_2D,
    I8_3D,
    U1_3D,
    U8_3D,
    Address,
    Bools,
    Bytes,
    Floats32,
    Ints,
    Ints32,
    Kernel,
    NumbaType,
    Words,
    address,
    inner,
    ready,
    record_type,
)
from ltr.kernels.prefetch import prefetch
from ltr.trees.binning import BLOCK, Bins, apply_bins, find_bins, find_missing
from ltr.trees.fixed_point import PIECE
from ltr.trees.histograms import AHEAD, HistogramBuffers, build, of_leaves
from ltr.trees.splits import Nodes


@dataclass(frozen=True)
class BinnedDataset:
    """What trees are grown on: binned features, and the memory that every tree uses again.

    Attributes:
        binned: ``uint8 [blocks, documents, BLOCK]`` from `apply_bins`, with its `bins`.
        has_missing: ``bool [features]``.
        histograms: ``int64 [leaves, columns, bins]``, made in `buffers`.
        row_index: ``int32 [documents]``, the row of each document.
        rows: ``int32 [documents]``, by leaf, rising in each except where a split was tried and not kept.
        leaf_ranges: ``int64 [2, leaves]``: leaf k owns ``rows[leaf_ranges[0, k]:][:leaf_ranges[1, k]]``.
        packed: ``int64 [2, documents]``: by row, and in the order of a leaf's rows; the latter's memory is `scratch` too.
    """

    binned: Bytes
    bins: Bins
    has_missing: Bools
    histograms: Ints
    buffers: HistogramBuffers
    row_index: Ints32
    rows: Ints32
    leaf_ranges: Ints
    packed: Ints

    @property
    def compiled(self) -> "CompiledDataset":
        """The data set as compiled code reads it."""
        words, (packed, gathered) = self.binned.view(np.uint64), self.packed
        return CompiledDataset(
            self.binned, words, self.bins.columns, self.rows, self.leaf_ranges, packed, gathered, self.scratch, self.histograms, self.buffers,
            numba.get_num_threads(),
        )  # fmt: skip

    @property
    def scratch(self) -> Ints32:
        """``int32 [documents]``, in the memory of what is gathered."""
        memory: Ints32 = self.packed[1].view(np.int32)
        return memory[: len(self.rows)]

    @classmethod
    def of(
        cls, features: Floats32, max_bins: int | Ints, n_leaves: int, order: Ints | None = None, categorical: Bools | None = None
    ) -> "BinnedDataset":
        """Bins `features`, ``float32 [documents, features]``, block by block, so that they may be a memory-mapped file. `order`: the
        row of each document; None: its own number. `categorical`: see `find_bins`.

        Raises:
            ValueError: for an infinite feature, more documents than 32 bits can number, or histograms that memory does not hold.
        """
        require_numbers(len(features))
        return cls.with_bins(features, find_bins(features, max_bins, categorical), n_leaves, order)

    @classmethod
    def with_bins(cls, features: Floats32, bins: Bins, n_leaves: int, order: Ints | None = None) -> "BinnedDataset":
        """`of` with edges that are given, such as those of a larger data set of which `features` are a part.

        Raises:
            ValueError: for more documents than 32 bits can number, or histograms that memory does not hold.
        """
        require_numbers(len(features))
        return cls.from_binned(apply_bins(features, bins), bins, n_leaves, order)

    @classmethod
    def from_binned(cls, binned: Bytes, bins: Bins, n_leaves: int, order: Ints | None = None) -> "BinnedDataset":
        """`with_bins` of what is binned already; growing moves the rows of `binned`."""
        n_documents = binned.shape[1]
        return cls(
            binned,
            bins,
            find_missing(binned, bins),
            histograms=of_leaves(n_leaves, bins.n_blocks * BLOCK),
            buffers=HistogramBuffers.of(bins, numba.config.NUMBA_NUM_THREADS),
            row_index=np.arange(n_documents, dtype=np.int32) if order is None else order.astype(np.int32),
            rows=np.empty(n_documents, np.int32),
            leaf_ranges=np.zeros((2, n_leaves), np.int64),
            packed=np.empty((2, n_documents), np.int64),
        )

    @property
    def type(self) -> NumbaType:
        """Of `compiled`."""
        return DATASET

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Of `questions`, for compiled code."""
        return addresses()

    @property
    def questions(self) -> tuple[Kernel, Kernel, Kernel]:
        """`split_leaf`, `subtract_sibling` and `leaf_in_bins`, each compiled for itself."""
        return questions()

    def start(self, n_rows: int, allowed: Bools | None = None) -> None:
        """The histogram of leaf 0, of the first `n_rows` of `rows`. `allowed`: ``bool [features]``, those that the tree may split by; left out,
        all. Of others no leaf of the tree has a histogram."""
        self.buffers.choose(self.bins.columns, allowed)
        data, sums = self.compiled, self.histograms[0]
        build(data.words, data.rows[:n_rows], data.packed, data.gathered, data.buffers, data.threads, sums, sums, False)

    def fall(self, sample: Bools, n_rows: int, nodes: Nodes, of_row: Ints32) -> None:
        """Writes the leaves of the rows that the tree was not grown on, those of documents not in ``sample bool [documents]``.

        Args:
            n_rows: rows that it was grown on, the first of `rows`; the others are behind them (`rows_by_sample`).
            of_row: ``int32 [documents]``; may be `scratch`.
        """
        others, moved = self.rows[n_rows:], self.packed[1].view(np.int32)[len(self.rows) :]
        _fall(self.binned, self.bins.columns[nodes.feature], others, moved, nodes.goes_left, nodes.left, nodes.right, of_row)

    def reorder_rows(self, leaf: Ints32) -> None:
        """Moves the rows of each leaf together, between trees; `leaf`: ``int32 [documents]``."""
        before = self.rows
        before[:] = self.row_index
        _number_by(leaf, np.zeros(int(leaf.max(initial=0)) + 2, np.int64), self.row_index)
        moved = self.packed.view(np.uint64).reshape(-1, 2)
        for words in self.binned.view(np.uint64):
            _move_rows(words, before, self.row_index, moved)
            words[:] = moved


def require_numbers(n_documents: int) -> None:
    """Raises ValueError for more documents than 32 bits can number."""
    if n_documents > np.iinfo(np.int32).max:
        raise ValueError(f"{n_documents:,} documents; trees number them in 32 bits, 2,147,483,647 at most")


class CompiledDataset(NamedTuple):
    """A `BinnedDataset` as compiled code reads it; `words`: ``uint64 [blocks, documents, 2]``, the bytes of `binned`."""

    binned: Bytes
    words: Words
    columns: Ints
    rows: Ints32
    leaf_ranges: Ints
    packed: Ints
    gathered: Ints
    scratch: Ints32
    histograms: Ints
    buffers: HistogramBuffers
    threads: int


DATASET = record_type(
    CompiledDataset, U1_3D, U8_3D, I8_1D, I4_1D, I8_2D, I8_1D, I8_1D, I4_1D, I8_3D,
    record_type(HistogramBuffers, I8_2D, I8_1D, I1_1D, I8_3D, I8_3D), I8,
)  # fmt: skip
"""The type of a `CompiledDataset`."""
QUESTIONS = (I8(DATASET, I8, I8, I8, I1_1D), types.void(DATASET, I8, I8, I1, I1), types.void(DATASET, I8, I8, I8_1D))
"""The signatures of `split_leaf`, `subtract_sibling` and `leaf_in_bins`."""


def questions() -> tuple[Kernel, Kernel, Kernel]:
    """`split_leaf`, `subtract_sibling` and `leaf_in_bins`, each compiled for itself."""
    split, subtract, in_bins = QUESTIONS
    return ready(split_leaf, split), ready(subtract_sibling, subtract), ready(leaf_in_bins, in_bins)


@cache
def addresses() -> tuple[Address, ...]:
    """Of `questions`, for compiled code."""
    return tuple(map(address, (split_leaf, subtract_sibling, leaf_in_bins), QUESTIONS))


@njit(cache=True)
def _number_by(leaf: Ints32, next_row: Ints, row_index: Ints32) -> None:
    """Rows by leaf, in the order of documents within each. ``next_row int64 [leaves + 1]``: zeros."""
    for k in range(len(leaf)):
        next_row[leaf[k] + 1] += 1
    for k in range(1, len(next_row)):
        next_row[k] += next_row[k - 1]
    for k in range(len(leaf)):
        row_index[k] = next_row[leaf[k]]
        next_row[leaf[k]] += 1


@njit(cache=True, parallel=True)
def _move_rows(words: Words, before: Ints32, after: Ints32, moved: Words) -> None:
    """moved[after[k]] = words[before[k]], ``uint64 [documents, 2]`` both."""
    for k in prange(len(moved)):
        moved[after[k], 0], moved[after[k], 1] = words[before[k], 0], words[before[k], 1]


_SPLIT_FROM = 4096
"""From this many rows on, two threads divide them."""


@inner(forceinline=True)
def _goes_left(block: Bytes, k: int, row: int, goes_left: Bools) -> np.uint64:
    return np.uint64(goes_left[block[row, k]])


@inner()
def _divide_from_front(block: Bytes, k: int, rows: Ints32, goes_left: Bools, rights: Ints32) -> np.int64:
    """Moves rows that go left to the front of `rows`, the others to the front of `rights`, without a branch; returns how many go left."""
    n_left = n_right = np.uint64(0)
    n = np.uint64(len(rows))
    for i in range(n):
        prefetch(block, BLOCK * np.int64(rows[min(i + np.uint64(AHEAD), n - np.uint64(1))]))
        row = rows[i]
        left = _goes_left(block, k, row, goes_left)
        rows[n_left], rights[n_right] = row, row
        n_left += left
        n_right += np.uint64(1) - left
    return np.int64(n_left)


@inner()
def _divide_from_end(block: Bytes, k: int, rows: Ints32, goes_left: Bools, lefts: Ints32) -> np.int64:
    """Moves rows that go right to the end of `rows`, the others to the end of `lefts`; returns how many go left."""
    last = np.uint64(len(rows) - 1)
    to_rows = to_lefts = last
    for i in range(np.uint64(len(rows))):
        at = last - i
        prefetch(block, BLOCK * np.int64(rows[at - min(at, np.uint64(AHEAD))]))
        row = rows[at]
        left = _goes_left(block, k, row, goes_left)
        rows[to_rows], lefts[to_lefts] = row, row
        to_lefts -= left
        to_rows -= np.uint64(1) - left
    return np.int64(last - to_lefts)


@njit(cache=True, parallel=True)
def partition(binned: Bytes, column: int, rows: Ints32, scratch: Ints32, goes_left: Bools) -> np.int64:
    """Moves rows that go left to the front, both sides in their order; returns how many went left. Two threads begin at the ends, and half
    of the rows need not be moved again:

        rows      L L L L L · · · · | · · · R R R R        scratch   R R R R     | L L L
                            └──────────────┘               what is missing in the middle: L L L R R R R

    `scratch`: at least as long as `rows`; `goes_left`: ``bool [bins]``.
    """
    block, k, n = binned[column // BLOCK], column % BLOCK, len(rows)
    if n < _SPLIT_FROM:
        n_left: np.int64 = _divide_from_front(block, k, rows, goes_left, scratch)
        _copy(scratch, np.int64(0), rows, n_left, n - n_left)
        return n_left
    half, lefts = n // 2, np.zeros(2, np.int64)
    for side in prange(2):
        if side == 0:
            lefts[0] = _divide_from_front(block, k, rows[:half], goes_left, scratch[:half])
        else:
            lefts[1] = _divide_from_end(block, k, rows[half:], goes_left, scratch[half:n])
    n_left = lefts[0] + lefts[1]
    _copy(scratch, n - lefts[1], rows, lefts[0], lefts[1])
    _copy(scratch, np.int64(0), rows, n_left, half - lefts[0])
    return n_left


@inner()
def _copy(source: Ints32, at: np.int64, target: Ints32, to: np.int64, n: np.int64) -> None:
    """target[to + k] = source[at + k] for n rows. An assignment of slices would compile many times as long, for its error message."""
    first, place = np.uint64(at), np.uint64(to)
    for k in range(np.uint64(n)):
        target[place + k] = source[first + k]


@njit(cache=True)
def split_leaf(data: CompiledDataset, leaf: int, new: int, feature: int, goes_left: Bools) -> np.int64:
    """Orders the rows of a leaf by the side they would go to; returns how many would go left."""
    start, size = data.leaf_ranges[0, leaf], data.leaf_ranges[1, leaf]
    members = data.rows[start : start + size]
    n_left: np.int64 = partition(data.binned, data.columns[feature], members, data.scratch, goes_left)
    data.leaf_ranges[0, new] = start + n_left
    return n_left


@inner()
def divide_range(ranges: Ints, leaf: int, new: int, left_is_smaller: bool) -> None:
    """Of the rows of a leaf, whose right side begins where `new` does, `new` gets the smaller side and `leaf` the larger one."""
    start, size, n_left = ranges[0, leaf], ranges[1, leaf], ranges[0, new] - ranges[0, leaf]
    left, right = (new, leaf) if left_is_smaller else (leaf, new)
    ranges[0, left], ranges[1, left] = start, n_left
    ranges[0, right], ranges[1, right] = start + n_left, size - n_left


@njit(cache=True)
def subtract_sibling(data: CompiledDataset, leaf: int, new: int, left_is_smaller: bool, searched: bool) -> None:
    """The split just tried stays: `new` has the smaller side, `leaf` the larger one. Where they will be `searched`, the smaller one's
    histogram is built and the larger one's is what the parent's leaves."""
    divide_range(data.leaf_ranges, leaf, new, left_is_smaller)
    if searched:
        ranges = data.leaf_ranges
        members, sums = data.rows[ranges[0, new] : ranges[0, new] + ranges[1, new]], data.histograms
        build(data.words, members, data.packed, data.gathered, data.buffers, data.threads, sums[new], sums[leaf], searched)


@njit(cache=True)
def rows_by_sample(sample: Bools, row_index: Ints32, n_rows: int, rows: Ints32) -> None:
    """Writes the rows of documents in a sample, of which there are `n_rows`, and behind them those of the others; both rise."""
    chosen = np.empty(len(rows), np.bool_)
    for document in range(len(sample)):
        chosen[row_index[document]] = sample[document]
    to, behind = np.uint64(0), np.uint64(n_rows)
    for row in range(np.uint64(len(rows))):
        own = np.uint64(chosen[row])
        rows[to if own else behind] = row
        to += own
        behind += np.uint64(1) - own


@njit(cache=True, parallel=True)
def _fall(
    binned: Bytes, columns: Ints, rows: Ints32, moved: Ints32, goes_left: Bools, left: Ints, right: Ints, of_row: Ints32
) -> None:
    """of_row[row] = the leaf that a row falls into, for `rows` that rise: piece by piece they are divided at every node, parents first, which
    reads bins of many rows at once where a walk of each row from the root would wait for one after the other.

    Args:
        columns, left, right: ``int64 [nodes]``; a negative child is ~leaf.
        rows: comes back in another order.
        moved: memory for as many.
    """
    n, n_nodes = len(rows), len(columns)
    for piece in prange((n + PIECE - 1) // PIECE):
        own, space = rows[piece * PIECE : min((piece + 1) * PIECE, n)], moved[piece * PIECE : min((piece + 1) * PIECE, n)]
        starts, ends = np.zeros(n_nodes, np.int64), np.full(n_nodes, len(own))
        for node in range(n_nodes):
            start, end, column = starts[node], ends[node], columns[node]
            here = own[start:end]
            n_left = _divide_from_front(binned[column // BLOCK], column % BLOCK, here, goes_left[node], space)
            _copy(space, np.int64(0), here, n_left, len(here) - n_left)
            for child, first, last in ((left[node], start, start + n_left), (right[node], start + n_left, end)):
                if child >= 0:
                    starts[child], ends[child] = first, last
                else:
                    for k in range(first, last):
                        of_row[own[k]] = ~child


@njit(cache=True)
def leaf_in_bins(data: CompiledDataset, leaf: int, f: int, counts: Ints) -> None:
    """Writes how many rows of a leaf are in each bin of feature f, ``int64 [bins]``."""
    column = data.columns[f]
    counts[:] = 0
    for row in data.rows[data.leaf_ranges[0, leaf] : data.leaf_ranges[0, leaf] + data.leaf_ranges[1, leaf]]:
        counts[data.binned[column // BLOCK, row, column % BLOCK]] += 1


@njit(cache=True, parallel=True)
def note_leaves(rows: Ints32, starts: Ints, of_row: Ints32) -> None:
    """of_row[row] = k for the rows from ``starts[k]`` on. Each thread writes one piece of `of_row` at a time, because memory that two of them
    write to at once would travel between their caches. Each row is written exactly once even where a leaf's rows do not rise: the
    position that a search finds never falls as the number searched for rises."""
    for piece in prange((len(of_row) + PIECE - 1) // PIECE):
        for k in range(len(starts) - 1):
            own = rows[starts[k] : starts[k + 1]]
            for at in range(_first_from(own, piece * PIECE), _first_from(own, (piece + 1) * PIECE)):
                of_row[own[at]] = k


@inner()
def _first_from(rows: Ints32, least: int) -> int:
    """The position of the first row of at least this number, by bisection."""
    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
