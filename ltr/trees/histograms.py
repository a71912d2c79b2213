"""Histograms of a leaf: for each column and bin the sum of a 64-bit integer over the leaf's rows, exact in any order.

A row's bins are bytes side by side in blocks of 16 columns (`ltr.trees.binning`), read eight at a time:

    words[block, row, 0]    b7 b6 b5 b4 b3 b2 b1 b0         words[block, row, 1]    b15 … b8         b_k: bin of column k

A block is summed over all rows before the next block is, so that its histograms (32 KB) stay in the first-level cache.

An update is a read, an addition and a write, and a processor writes about once a cycle. So columns of few bins are stored together, and
two of them share an update: first a table over both bins is summed, and its margins are the histograms.

    b1 b0   →   place 32·b1 + b0 of 1024        31: missing

Columns that a tree may not split by are left out: each for itself in blocks that share no updates, otherwise a whole block (`HistogramBuffers.searched`).
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from ltr.kernels.kernel import Bools, Ints, Ints32, Kernel, Words, inner
from ltr.kernels.prefetch import prefetch
from ltr.trees.binning import BLOCK, FEW, MISSING, Bins

N_BINS = 256
"""Bins of a column: up to 255 of values, and the last for missing ones."""
AHEAD = 64
"""How many rows ahead memory is prefetched."""

_WORD = BLOCK // 2
_NONE, _SHARED, _WIDE = 0, 1, 2
"""What a word holds: no column, columns that share updates, or columns that do not share them."""
_PLACES = (FEW + 1) ** 2


class HistogramBuffers(NamedTuple):
    """The memory in which histograms over one set of bins are summed.

    Attributes:
        kinds: ``int64 [blocks, 2]``, of words.
        used: ``int64 [columns]``, bins of values.
        searched: ``bool [columns]``, those whose histograms are wanted; `choose` writes it.
        per_thread: ``int64 [threads, blocks, BLOCK · bins]``, histograms of each thread's rows.
        tables: ``int64 [threads, BLOCK // 2, places]``, of pairs of columns of one block.
    """

    kinds: Ints
    used: Ints
    searched: Bools
    per_thread: Ints
    tables: Ints

    @classmethod
    def of(cls, bins: Bins, threads: int) -> "HistogramBuffers":
        """Memory for these bins and up to `threads` threads; its contents do not matter."""
        used = bins.used
        words = used.reshape(-1, _WORD)
        kinds = np.where(words.max(axis=1) > FEW, _WIDE, np.where(words.any(axis=1), _SHARED, _NONE)).reshape(-1, 2)
        per_thread = np.empty((threads, len(kinds), BLOCK * N_BINS), np.int64)
        return cls(kinds, used, used > 0, per_thread, np.empty((threads, _WORD, _PLACES), np.int64))

    def choose(self, columns: Ints, allowed: Bools | None) -> None:
        """From now on sums histograms of the features that are allowed, ``bool [features]``, alone; of all where that is None.
        `columns`: of each feature."""
        self.searched[:] = self.used > 0
        if allowed is not None:
            self.searched[columns] = allowed


def of_leaves(n_leaves: int, n_columns: int) -> Ints:
    """Memory for the histograms of so many leaves, zeros ``int64 [leaves, columns, bins]``: 2 KB a leaf and column.

    Raises:
        ValueError: where there is not so much.
    """
    try:
        return np.zeros((n_leaves, n_columns, N_BINS), np.int64)
    except MemoryError:
        size = n_leaves * n_columns * N_BINS * 8 / 1e9
        raise ValueError(
            f"histograms of {n_leaves:,} leaves by {n_columns:,} features take {size:,.0f} GB, which cannot be allocated; "
            "set a lower n_leaves, or a higher min_docs_in_leaf"
        ) from None


@inner()
def gather(values: Ints, rows: Ints32, gathered: Ints) -> None:
    """gathered[i] = values[rows[i]], once for all blocks, which then read values in order."""
    n = np.uint64(len(rows))
    for i in range(n):
        prefetch(values, np.int64(rows[min(i + np.uint64(AHEAD), n - np.uint64(1))]))
        gathered[i] = values[np.uint64(rows[i])]


@inner(forceinline=True)
def _add_word(word: np.uint64, value: int, sums: Ints, first: np.uint64) -> None:
    """Adds a value to the histograms of eight columns, the first of which is at `first`."""
    byte, mask, bins = np.uint64(8), np.uint64(255), np.uint64(N_BINS)
    for k in range(np.uint64(_WORD)):
        sums[first + k * bins + ((word >> (byte * k)) & mask)] += value


@inner(forceinline=True)
def _add_chosen(word: np.uint64, chosen: np.uint64, value: int, sums: Ints, first: np.uint64) -> None:
    """`_add_word` for those of the eight columns whose bit is set. The branches are the same for every row, so that a processor foresees them."""
    byte, mask, bins = np.uint64(8), np.uint64(255), np.uint64(N_BINS)
    for k in range(np.uint64(_WORD)):
        if (chosen >> k) & np.uint64(1):
            sums[first + k * bins + ((word >> (byte * k)) & mask)] += value


@inner()
def _add_rows_of_chosen(words: Words, rows: Ints32, values: Ints, low: np.uint64, high: np.uint64, sums: Ints) -> None:
    """Adds the values of rows to the histograms of some columns of a block that shares no updates, by a bit for each."""
    n = np.uint64(len(rows))
    for i in range(n):
        prefetch(words, 2 * np.int64(rows[min(i + np.uint64(AHEAD), n - np.uint64(1))]))
        row, value = np.uint64(rows[i]), values[i]
        _add_chosen(words[row, 0], low, value, sums, np.uint64(0))
        _add_chosen(words[row, 1], high, value, sums, np.uint64(_WORD * N_BINS))


@inner()
def _bits(searched: Bools) -> np.uint64:
    """Bit k is set where the k-th column is searched."""
    bits = np.uint64(0)
    for k in range(np.uint64(len(searched))):
        bits |= np.uint64(searched[k]) << k
    return bits


@inner(forceinline=True)
def _add_shared_word(word: np.uint64, value: int, tables: Ints, first: np.uint64) -> None:
    """Adds a value to the tables of four pairs of columns, the first of which is at `first`."""
    half, mask, places = np.uint64(16), np.uint64(_PLACES - 1), np.uint64(_PLACES)
    word = (word & np.uint64(0x001F001F001F001F)) | ((word >> np.uint64(3)) & np.uint64(0x03E003E003E003E0))
    for k in range(np.uint64(_WORD // 2)):
        tables[first + k * places + ((word >> (half * k)) & mask)] += value


def _adder(low: int, high: int) -> Kernel:
    """The kernel for a block whose words are of these kinds: adds the values of rows to ``sums [BLOCK · bins]``, by column and bin, or to
    ``tables`` where two columns share an update."""
    sums_of_high, tables_of_high = np.uint64(_WORD * N_BINS), np.uint64(_WORD // 2 * _PLACES)

    @inner(forceinline=True)
    def add_row(words: Words, row: np.uint64, value: int, sums: Ints, tables: Ints) -> None:
        if low == _WIDE:
            _add_word(words[row, 0], value, sums, np.uint64(0))
        else:
            _add_shared_word(words[row, 0], value, tables, np.uint64(0))
        if high == _WIDE:
            _add_word(words[row, 1], value, sums, sums_of_high)
        elif high == _SHARED:
            _add_shared_word(words[row, 1], value, tables, tables_of_high)

    @inner()
    def add(words: Words, rows: Ints32, values: Ints, sums: Ints, tables: Ints) -> None:
        n = np.uint64(len(rows))
        near = n - min(n, np.uint64(AHEAD))
        for i in range(near):
            prefetch(words, 2 * np.int64(rows[i + np.uint64(AHEAD)]))
            add_row(words, np.uint64(rows[i]), values[i], sums, tables)
        for i in range(near, n):
            add_row(words, np.uint64(rows[i]), values[i], sums, tables)

    kernel: Kernel = add
    return kernel


_add_wide, _add_mixed, _add_shared = _adder(_WIDE, _WIDE), _adder(_WIDE, _SHARED), _adder(_SHARED, _SHARED)
_add_half_wide, _add_half_shared = _adder(_WIDE, _NONE), _adder(_SHARED, _NONE)


@inner()
def _add_rows(words: Words, rows: Ints32, values: Ints, low: int, high: int, sums: Ints, tables: Ints) -> None:
    if low == _WIDE and high == _WIDE:
        _add_wide(words, rows, values, sums, tables)
    elif low == _WIDE and high == _SHARED:
        _add_mixed(words, rows, values, sums, tables)
    elif low == _SHARED and high == _SHARED:
        _add_shared(words, rows, values, sums, tables)
    elif low == _WIDE:
        _add_half_wide(words, rows, values, sums, tables)
    else:
        _add_half_shared(words, rows, values, sums, tables)


@inner()
def _add_margins(table: Ints, even: Ints, odd: Ints) -> None:
    """Adds the margins of a table over two columns to the histograms of both; row and column `FEW` of the table are for missing values."""
    size = FEW + 1
    for b in range(size):
        total = np.int64(0)
        for a in range(size):
            value = table[b * size + a]
            even[a] += value
            total += value
        odd[b] += total
    for own in (even, odd):
        own[MISSING], own[FEW] = own[FEW], 0


@inner()
def _sum_rows(words: Words, rows: Ints32, values: Ints, kinds: Ints, used: Ints, searched: Bools, sums: Ints, tables: Ints) -> None:
    """The histograms ``sums [blocks, BLOCK · bins]`` over rows, of the columns searched at least."""
    for block in range(len(kinds)):
        first = block * BLOCK
        n_used, n_searched = (used[first : first + BLOCK] > 0).sum(), searched[first : first + BLOCK].sum()
        if n_searched == 0:
            continue
        sums[block] = 0
        if n_searched < n_used and kinds[block, 0] == _WIDE and kinds[block, 1] != _SHARED:
            low, high = _bits(searched[first : first + _WORD]), _bits(searched[first + _WORD : first + BLOCK])
            _add_rows_of_chosen(words[block], rows, values, low, high, sums[block])
            continue
        if kinds[block, 0] == _SHARED or kinds[block, 1] == _SHARED:
            tables[:] = 0
        _add_rows(words[block], rows, values, kinds[block, 0], kinds[block, 1], sums[block], tables.ravel())
        for pair in range(_WORD):
            if kinds[block, 2 * pair // _WORD] == _SHARED:
                at = 2 * pair * N_BINS
                _add_margins(tables[pair], sums[block, at : at + N_BINS], sums[block, at + N_BINS : at + 2 * N_BINS])


@njit(cache=True, parallel=True)
def build(
    words: Words,
    rows: Ints32,
    packed: Ints,
    gathered: Ints,
    buffers: HistogramBuffers,
    threads: int,
    histogram: Ints,
    parent: Ints,
    has_parent: bool,
) -> None:
    """histogram[column, bin] = Σ packed over `rows`, for the columns searched; if `has_parent`, that is also subtracted from `parent`, which
    becomes the sibling's.

    Args:
        words: ``uint64 [blocks, documents, 2]``.
        rows: ``int32 [rows]``; where they are all there are, they are in order.
        packed: ``int64 [documents]``, by row; gathered: memory for the values of these rows, unless they are all.
        threads: no more than `buffers` are for.
        histogram, parent: ``int64 [columns, bins]``.
    """
    kinds, used, searched, per_thread, tables = buffers
    n = len(rows)
    values = packed if n == len(packed) else gathered
    for thread in prange(threads):
        a, b = n * thread // threads, n * (thread + 1) // threads
        if n < len(packed):
            gather(packed, rows[a:b], values[a:b])
        _sum_rows(words, rows[a:b], values[a:b], kinds, used, searched, per_thread[thread], tables[thread])
    for column in prange(len(used)):
        if not searched[column]:
            continue
        few, first = used[column] <= FEW, column % BLOCK * N_BINS
        for k in range(N_BINS):
            total = per_thread[0, column // BLOCK, first + k]
            for thread in range(1, threads):
                total += per_thread[thread, column // BLOCK, first + k]
            histogram[column, k] = total
        if has_parent:
            for k in range(FEW if few else N_BINS):
                parent[column, k] -= histogram[column, k]
            if few:
                parent[column, MISSING] -= histogram[column, MISSING]
