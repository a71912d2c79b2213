"""Wide data of which most is 0, binned and grown on without ever being dense: the same trees as of dense rows, byte for byte.

LightGBM and XGBoost keep (feature, bin) of what is not 0, row by row. So does this, in blocks of features whose histograms stay in the
second-level cache together; a value is two bytes, its place in the block's histograms:

    block   features whose bins number at most 16,384, one after another; each has a last bin for missing values
    row     its values in a block, by feature:  slot slot slot …      starts[block, row] says where

What is not stored has the bin of 0. Its sum is what the leaf's sum leaves when all other bins are taken away, which is exact, as sums are
of integers. A feature takes 2 KB of histogram for each leaf.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numba
import numpy as np
from numba import njit, prange, types
from numpy.typing import NDArray

from ltr.data.sparse import SparseFeatures, parts_of
from ltr.kernels.kernel import (
    I1,
    I1_1D,
    I4_1D,
    I8,
    I8_1D,
    I8_2D,
    I8_3D,
    Address,
    Bools,
    Floats32,
    Ints,
    Ints32,
    Kernel,
    NumbaType,
    address,
    inner,
    ready,
    record_type,
)
from ltr.trees.binning import MISSING, Bins, bins_at_most, in_threads, joined, sparse_edges
from ltr.trees.histograms import N_BINS, of_leaves
from ltr.trees.partition import divide_range, require_numbers
from ltr.trees.splits import Nodes

SLOTS = 16_384
"""Bins of the features of a block at most; a single feature has 256 at most."""
_ALONE = 4096
"""From this many rows on, threads share them."""
Slots = NDArray[np.uint16]


class CompiledSparse(NamedTuple):
    """A `SparseDataset` as compiled code reads it.

    Attributes:
        slots: ``uint16 [stored]``, by block, row and feature.
        starts: ``int64 [blocks, documents + 1]``, of each row's values in `slots`.
        first_feature: ``int64 [blocks + 1]``.
        block, slot: ``int64 [features]``, of each feature: its block, and its first slot there.
        used: ``int64 [features]``, bins of values; zero: ``int64 [features]``, the bin of 0.
        counts, counted: see `SparseDataset`.
        rows, leaf_ranges, packed, gathered, scratch, histograms: see `ltr.trees.partition.BinnedDataset`.
        threads: that share the work.
    """

    slots: Slots
    starts: Ints
    first_feature: Ints
    block: Ints
    slot: Ints
    used: Ints
    zero: Ints
    counts: Ints
    counted: Ints
    rows: Ints32
    leaf_ranges: Ints
    packed: Ints
    gathered: Ints
    scratch: Ints32
    histograms: Ints
    threads: int


SPARSE = record_type(
    CompiledSparse, types.Array(types.uint16, 1, "C"), I8_2D, I8_1D, I8_1D, I8_1D, I8_1D, I8_1D, I8_2D, I8_1D, I4_1D, I8_2D, I8_1D,
    I8_1D, I4_1D, I8_3D, I8,
)  # fmt: skip
"""The type of a `CompiledSparse`."""
QUESTIONS = (I8(SPARSE, I8, I8, I8, I1_1D), types.void(SPARSE, I8, I8, I1, I1), types.void(SPARSE, I8, I8, I8_1D))
"""The signatures of `split_leaf`, `subtract_sibling` and `leaf_in_bins`."""


@cache
def addresses() -> tuple[Address, ...]:
    """Of `SparseDataset.questions`, for compiled code."""
    return tuple(map(address, (split_leaf, subtract_sibling, leaf_in_bins), QUESTIONS))


@dataclass(frozen=True)
class SparseDataset:
    """What trees are grown on where features are sparse; `ltr.trees.partition.BinnedDataset` says what it holds beside the features.

    Attributes:
        bins, has_missing: of the features.
        stored: the values, as `CompiledSparse` has them: `slots`, `starts`, `first_feature`, `block`, `slot`, `used` and `zero`.
        own: the bins of the features that a split may be by, and `kept`, ``int64``, the numbers of these; all that is stored is of them.
        counts: ``int64 [kept, bins]``, how many rows of a leaf are in each bin, where this had to be asked; counted: ``int64 [2]``, of which
            leaf, by its range of rows.
    """

    bins: Bins
    has_missing: Bools
    stored: tuple[Slots, Ints, Ints, Ints, Ints, Ints, Ints]
    own: Bins
    kept: Ints
    counts: Ints
    counted: Ints
    histograms: Ints
    row_index: Ints32
    rows: Ints32
    leaf_ranges: Ints
    packed: Ints

    @classmethod
    def of(
        cls, features: SparseFeatures, max_bins: int | Ints, n_leaves: int, order: Ints | None = None, min_docs: int = 1
    ) -> "SparseDataset":
        """Bins `features`, `ltr.data.sparse.sparse_features`.

        Args:
            order: the row of each document; None: its own number.
            min_docs: documents in a leaf at least. As all documents without a stored value are on one side of a split, no tree splits by a
                feature with fewer stored values; of wide data most are so.

        Raises:
            ValueError: for an infinite feature, more documents than 32 bits can number, or histograms that memory does not hold.
        """
        n_documents = features.shape[0]
        require_numbers(n_documents)
        bins, has_missing = find_sparse_bins(features, max_bins)
        kept = np.flatnonzero(np.bincount(features.indices, minlength=bins.n_features) >= min_docs)
        kept = kept if len(kept) else np.zeros(1, np.int64)  # there has to be something to sum
        own = joined([bins.edges[bins.starts[f] : bins.starts[f + 1]] for f in kept.tolist()])
        return cls(
            bins,
            has_missing,
            _stored(features[:, kept] if len(kept) < bins.n_features else features, own),
            own,
            kept,
            counts=np.zeros((len(kept), N_BINS), np.int64),
            counted=np.full(2, -1),
            histograms=of_leaves(n_leaves, len(kept)),
            row_index=np.arange(n_documents, dtype=np.int32) if order is None else order.astype(np.int32),
            rows=np.empty(n_documents, np.int32),
            leaf_ranges=np.zeros((2, n_leaves), np.int64),
            packed=np.empty((2, n_documents), np.int64),
        )

    @property
    def compiled(self) -> CompiledSparse:
        """The data set as compiled code reads it."""
        packed, gathered = self.packed
        return CompiledSparse(
            *self.stored, self.counts, self.counted, self.rows, self.leaf_ranges, packed, gathered, self.scratch,
            self.histograms, numba.get_num_threads(),
        )  # fmt: skip

    @property
    def scratch(self) -> Ints32:
        """``int32 [documents]``, in the memory of what is gathered."""
        memory: Ints32 = self.packed[1].view(np.int32)
        return memory[: len(self.rows)]

    @property
    def type(self) -> NumbaType:
        """Of `compiled`."""
        return SPARSE

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Of `questions`, for compiled code."""
        return addresses()

    @property
    def questions(self) -> tuple[Kernel, Kernel, Kernel]:
        """`split_leaf`, `subtract_sibling` and `leaf_in_bins`, each compiled for itself."""
        split, subtract, in_bins = QUESTIONS
        return ready(split_leaf, split), ready(subtract_sibling, subtract), ready(leaf_in_bins, in_bins)

    def start(self, n_rows: int, allowed: Bools | None = None) -> None:
        """The histogram of leaf 0, of the first `n_rows` of `rows`; here of all features, whatever is `allowed`."""
        self.counted[:] = -1
        build(self.compiled, self.rows[:n_rows], *self.packed, self.histograms[0], self.histograms[0, :0])

    def fall(self, sample: Bools, n_rows: int, nodes: Nodes, of_row: Ints32) -> None:
        """`ltr.trees.partition.BinnedDataset.fall`."""
        feature = np.searchsorted(self.kept, nodes.feature)
        _fall(self.compiled, self.row_index, sample, feature, nodes.goes_left, nodes.left, nodes.right, of_row)

    def reorder_rows(self, leaf: Ints32) -> None:
        """Rows stay where they are."""


def find_sparse_bins(features: SparseFeatures, max_bins: int | Ints = 255) -> tuple[Bins, Bools]:
    """The edges that `ltr.trees.binning.find_bins` finds of the dense features, and which features have a missing value.

    Raises:
        ValueError: for `max_bins` outside 2–255 or an infinite feature value.
    """
    by_column, n = features.tocsc(), features.shape[0]
    limits = bins_at_most(max_bins, features.shape[1])
    starts, few = by_column.indptr.astype(np.int64), np.empty(by_column.nnz, np.float32)
    n_edges, has_missing = np.empty(features.shape[1], np.int64), np.empty(features.shape[1], np.bool_)
    _edges_of_few(starts, by_column.data, n, limits, few, n_edges, has_missing)

    def of_many(feature: int) -> Floats32:
        own = by_column.data[starts[feature] : starts[feature + 1]]
        return sparse_edges(own[: np.searchsorted(own, np.nan)], n - len(own), int(limits[feature]), feature)

    columns = [few[start : start + size] for start, size in zip(starts[:-1].tolist(), n_edges.tolist(), strict=True)]
    many = np.flatnonzero(n_edges < 0).tolist()
    for feature, edges in zip(many, in_threads(of_many, many, by_column.nnz), strict=True):
        columns[feature] = edges
    return joined(columns), has_missing


@njit(cache=True, parallel=True)
def _edges_of_few(
    starts: Ints, values: Floats32, n_documents: int, limits: Ints, edges: Floats32, n_edges: Ints, has_missing: Bools
) -> None:
    """Orders the values of each feature, and writes the edges of those that have no more distinct ones than bins, as
    `ltr.trees.binning.sparse_edges` finds them, from where its values begin. `n_edges` of the others, and of infinite ones, is −1.
    Of wide data most features are so; asking for each takes longer than all of this."""
    for feature in prange(len(limits)):
        start, end = starts[feature], starts[feature + 1]
        own = values[start:end]
        own.sort()
        known = end - start
        while known > 0 and np.isnan(own[known - 1]):
            known -= 1
        has_missing[feature] = known < end - start
        zero_due = n_documents > end - start
        fits = known == 0 or not (np.isinf(own[0]) or np.isinf(own[known - 1]))
        n, k, last = 0, 0, np.float32(0)
        while fits and (zero_due or k < known):
            if zero_due and (k == known or own[k] > 0):
                x, zero_due = np.float32(0), False
            else:
                x, k = own[k], k + 1
            if n and x == last:
                continue
            fits = n < limits[feature]
            if n and fits:
                middle = last + (x - last) / np.float32(2)
                edges[start + n - 1] = (middle if last < middle < x else last) + np.float32(0)
            n, last = n + 1, x
        n_edges[feature] = max(n - 1, 0) if fits else -1


def _stored(features: SparseFeatures, bins: Bins) -> tuple[Slots, Ints, Ints, Ints, Ints, Ints, Ints]:
    """What `SparseDataset.stored` is."""
    used = np.diff(bins.starts) + 1
    block, slot = _blocks(used)
    n_blocks = int(block[-1]) + 1 if len(block) else 1
    first_feature = np.searchsorted(block, np.arange(n_blocks + 1))
    zero = np.diff(np.append(0, np.cumsum(bins.edges < 0))[bins.starts])
    rows, columns, values = parts_of(features)
    starts = np.zeros((n_blocks, len(rows)), np.int64)
    _count(rows, columns, first_feature, starts)
    flat = starts[:, 1:]
    flat[:] = np.cumsum(flat.ravel()).reshape(flat.shape)
    starts[1:, 0] = starts[:-1, -1]
    slots = np.empty(len(columns), np.uint16)
    _place(rows, columns, values, first_feature, bins.edges, bins.starts, slot, starts, slots)
    return slots, starts, first_feature, block, slot, used, zero


def _blocks(used: Ints) -> tuple[Ints, Ints]:
    """The block of each feature, and its first slot there; ``used int64 [features]``: its bins of values, beside which there is one."""
    block, slot = np.empty(len(used), np.int64), np.empty(len(used), np.int64)
    at = now = 0
    for feature, n in enumerate(used.tolist()):
        if at + n + 1 > SLOTS:
            at, now = 0, now + 1
        block[feature], slot[feature] = now, at
        at += n + 1
    return block, slot


@inner()
def _first_of(columns: Ints32, first: int, last: int, feature: int) -> int:
    """The first of these places whose column is not below `feature`."""
    while first < last:
        middle = (first + last) // 2
        if columns[middle] < feature:
            first = middle + 1
        else:
            last = middle
    return first


@njit(cache=True, parallel=True)
def _count(rows: Ints, columns: Ints32, first_feature: Ints, starts: Ints) -> None:
    """``starts[block, row + 1]``: values of the row in the block."""
    for row in prange(len(rows) - 1):
        begin = rows[row]
        for block in range(len(starts)):
            end = _first_of(columns, begin, rows[row + 1], first_feature[block + 1])
            starts[block, row + 1] = end - begin
            begin = end


@njit(cache=True, parallel=True)
def _place(
    rows: Ints,
    columns: Ints32,
    values: Floats32,
    first_feature: Ints,
    edges: Floats32,
    edge_starts: Ints,
    slot: Ints,
    starts: Ints,
    slots: Slots,
) -> None:
    """Writes the slot of every value."""
    for row in prange(len(rows) - 1):
        begin = rows[row]
        for block in range(len(starts)):
            at = starts[block, row]
            for k in range(begin, begin + starts[block, row + 1] - at):
                feature, x = columns[k], values[k]
                first, last = edge_starts[feature], edge_starts[feature + 1]
                found = last - first + 1
                if not np.isnan(x):
                    low, high = first, last
                    while low < high:
                        middle = (low + high) // 2
                        if edges[middle] < x:
                            low = middle + 1
                        else:
                            high = middle
                    found = low - first
                slots[at + k - begin] = slot[feature] + found
            begin += starts[block, row + 1] - at


@inner()
def _bin(data: CompiledSparse, row: int, feature: int) -> int:
    """The bin of a row's value of a feature."""
    block, first, used = data.block[feature], data.slot[feature], data.used[feature]
    for k in range(data.starts[block, row], data.starts[block, row + 1]):
        slot = np.int64(data.slots[k])
        if slot >= first:
            if slot > first + used:
                break
            return int(MISSING if slot == first + used else slot - first)
    return int(data.zero[feature])


@njit(cache=True, parallel=True)
def build(data: CompiledSparse, rows: Ints32, packed: Ints, gathered: Ints, histogram: Ints, parent: Ints) -> None:
    """histogram[feature, bin] = Σ packed over `rows`; that is also subtracted from `parent`, which becomes the sibling's. Bins that a feature
    does not have are left alone.

    Args:
        rows: ``int32 [rows]``; where they are all there are, they are in order.
        packed: ``int64 [documents]``, by row; gathered: memory for the values of these rows, unless they are all.
        histogram: ``int64 [features, bins]``.
        parent: the same, or ``[0, bins]`` for none.
    """
    n, n_blocks = len(rows), len(data.first_feature) - 1
    values = packed if n == len(packed) else gathered
    if n < len(packed):
        for i in prange(n):
            gathered[i] = packed[rows[i]]
    total = np.int64(0)
    for i in range(n):
        total += values[i]
    parts = data.threads if n >= _ALONE else 1
    sums = np.zeros((n_blocks * parts, SLOTS), np.int64)
    for task in prange(n_blocks * parts):
        own, starts, part = sums[task], data.starts[task // parts], task % parts
        for i in range(n * part // parts, n * (part + 1) // parts):
            for k in range(starts[rows[i]], starts[rows[i] + 1]):
                own[data.slots[k]] += values[i]
    for block in prange(n_blocks):
        own = sums[block * parts]
        for part in range(1, parts):
            own += sums[block * parts + part]
        for feature in range(data.first_feature[block], data.first_feature[block + 1]):
            first, used = data.slot[feature], data.used[feature]
            rest = total
            for k in range(used + 1):
                rest -= own[first + k]
            own[first + data.zero[feature]] += rest
            for k in range(used + 1):
                at = k if k < used else MISSING
                histogram[feature, at] = own[first + k]
                if len(parent) > 0:
                    parent[feature, at] -= own[first + k]


@njit(cache=True, parallel=True)
def split_leaf(data: CompiledSparse, leaf: int, new: int, feature: int, goes_left: Bools) -> np.int64:
    """Orders the rows of a leaf by the side they would go to, both sides in their order; returns how many would go left."""
    start, size = data.leaf_ranges[0, leaf], data.leaf_ranges[1, leaf]
    rows, lefts = data.rows[start : start + size], np.empty(size, np.bool_)
    for i in prange(size):
        lefts[i] = goes_left[_bin(data, rows[i], feature)]
    n_left, n_right = np.int64(0), np.int64(0)
    for i in range(size):
        if lefts[i]:
            rows[n_left] = rows[i]
            n_left += 1
        else:
            data.scratch[n_right] = rows[i]
            n_right += 1
    for i in range(n_right):
        rows[n_left + i] = data.scratch[i]
    data.leaf_ranges[0, new] = start + n_left
    return n_left


@njit(cache=True)
def subtract_sibling(data: CompiledSparse, leaf: int, new: int, left_is_smaller: bool, searched: bool) -> None:
    """The split just tried stays: `new` has the smaller side, `leaf` the larger one. Where they will be `searched`, the smaller one's
    histogram is built and the larger one's is what the parent's leaves."""
    divide_range(data.leaf_ranges, leaf, new, left_is_smaller)
    if searched:
        ranges = data.leaf_ranges
        members = data.rows[ranges[0, new] : ranges[0, new] + ranges[1, new]]
        build(data, members, data.packed, data.gathered, data.histograms[new], data.histograms[leaf])


@njit(cache=True)
def leaf_in_bins(data: CompiledSparse, leaf: int, feature: int, counts: Ints) -> None:
    """Writes how many rows of a leaf are in each bin of a feature, ``int64 [bins]``. They are counted of all features at once: where one is
    asked for, many are."""
    start, size = data.leaf_ranges[0, leaf], data.leaf_ranges[1, leaf]
    if data.counted[0] != start or data.counted[1] != size:
        ones = np.ones(len(data.packed), np.int64)
        build(data, data.rows[start : start + size], ones, data.gathered, data.counts, data.counts[:0])
        data.counted[0], data.counted[1] = start, size
    for k in range(len(counts)):
        counts[k] = data.counts[feature, k]


@njit(cache=True, parallel=True)
def _fall(
    data: CompiledSparse,
    row_index: Ints32,
    sample: Bools,
    feature: Ints,
    goes_left: Bools,
    left: Ints,
    right: Ints,
    of_row: Ints32,
) -> None:
    for document in prange(len(sample)):
        node, row = 0 if not sample[document] else -1, row_index[document]
        while node >= 0:
            b = _bin(data, row, feature[node])
            node = left[node] if goes_left[node, b] else right[node]
            of_row[row] = ~node
