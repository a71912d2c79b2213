"""Regression trees grown along forces, leaf by leaf on histograms of integers, the same for any number of threads.

A tree sees only force and curvature of each document (Friedman 2001; Burges 2010 section 6; Svore 2011 section 3), in fixed
point: one 64-bit integer a document carries the force in its high half and the curvature (Newton gain) or 1 (least squares) in
its low half, so that one addition updates a histogram bin and sums are exact in any order.

    packed  =  force · 2^f  |  curvature · 2^c            Σ packed  =  Σ force  |  Σ curvature
               high 32 bits    low 32 bits                            (no carry: the low sum stays below 2^32)

A child's histogram is built for the smaller child only; its sibling's is the parent's less that, in the parent's place.

Newton histograms hold no counts, and the minimum number of documents in a leaf is still exact: the leaf of the highest gain is
divided as found, and only where a side is too small its winning feature is counted, searched again with its counts, and must win
against the other features' bests and then against the other leaves. A gain found without counts is never too low.

Monotone features: a split that orders its children's values the wrong way is none, and all that is grown below a split keeps to
its side of the middle between the two (LightGBM's basic method).

Bins of a document are one row, and rows lie by the leaves of a training's first tree, in the order of documents within each (`Ground.lie_by`).
Later trees ask for much the same features, so what they read of a leaf lies closer together; sums do not know the order:

    document   0   1   2   3   4   5   6   7        canonical: forces, scores, labels
    leaf       b   a   b   c   a   a   c   b        of the first tree
    row_of     3   0   4   6   1   2   7   5        written to as many streams as there are leaves, each from front to back

A tree is decided in one place, from what it asks of the documents: maxima, sums of integers and counts. Documents that lie in
several parts (`ltr.parts`) answer as if they lay in one. `best_first` is one source for both: compiled together with its answers where all
documents are here, interpreted where it asks elsewhere.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numba import njit, prange
from numba.extending import overload, register_jitable
from numpy.typing import NDArray

from ltr.binning import BLOCK, MISSING, Bins, apply_bins, find_bins, find_missing
from ltr.histograms import AHEAD, N_BINS, Workshop, build, gather
from ltr.prefetch import prefetch
from ltr.trees import Trees

_LOW = np.int64(0xFFFFFFFF)
VANISHED = 1e-100
"""Forces smaller than this are none: every pair is in order by a gap of hundreds."""


@dataclass(frozen=True)
class Rules:
    """How a tree is grown; the arguments of `ltr.LambdaMART` by the same names.

    Args:
        newton_gain: split by Σforce²/Σcurvature, otherwise by least squares, Σforce²/count.
        newton_leaf: leaf Σforce/Σcurvature (S section 3), otherwise Σforce/count; times the learning rate.
        largest_leaf: bound on a leaf's size before the learning rate: on badly misranked pairs Σcurvature vanishes.
        monotone: ``int8 [features]``: the score rises with the feature (1), falls (−1), or as it likes (0).
    """

    n_leaves: int
    min_docs_in_leaf: int
    newton_gain: bool
    newton_leaf: bool
    learning_rate: float
    largest_leaf: float
    monotone: NDArray[np.int8]


@dataclass(frozen=True)
class Ground:
    """What trees are grown on: binned features, and the memory that every tree uses again.

    Attributes:
        binned: ``uint8 [blocks, documents, BLOCK]`` from `apply_bins`, with its `bins`.
        has_missing: ``bool [features]``.
        histograms: ``int64 [leaves, columns, bins]``, made in `workshop`.
        row_of: ``int32 [documents]``, where the bins of a document lie.
        rows: ``int32 [documents]``, by leaf, rising in each but where a division was tried and not kept.
        places: ``int64 [2, leaves]``: leaf k owns ``rows[places[0, k]:][:places[1, k]]``.
        packed: ``int64 [2, documents]``: by row, and in the order of a leaf's rows; the latter's memory is `scratch` too.
    """

    binned: NDArray[np.uint8]
    bins: Bins
    has_missing: NDArray[np.bool_]
    histograms: NDArray[np.int64]
    workshop: Workshop
    row_of: NDArray[np.int32]
    rows: NDArray[np.int32]
    places: NDArray[np.int64]
    packed: NDArray[np.int64]

    @property
    def memory(self) -> "Memory":
        words, (packed, gathered) = self.binned.view(np.uint64), self.packed
        return Memory(
            self.binned, words, self.bins.columns, self.rows, self.places, packed, gathered, self.scratch, self.histograms, self.workshop,
            numba.get_num_threads(),
        )  # fmt: skip

    @property
    def scratch(self) -> NDArray[np.int32]:
        """``int32 [documents]``, in the memory of what is gathered."""
        return self.packed[1].view(np.int32)[: len(self.rows)]

    @classmethod
    def of(cls, features: NDArray[np.float32], max_bins: int, n_leaves: int) -> "Ground":
        """Bins `features`, ``float32 [documents, features]``, block by block: they may be a memory-mapped file.

        Raises:
            ValueError: for an infinite feature, or more documents than 32 bits can number.
        """
        _numbered(features)
        return cls.binned_by(features, find_bins(features, max_bins), n_leaves)

    @classmethod
    def binned_by(cls, features: NDArray[np.float32], bins: Bins, n_leaves: int) -> "Ground":
        """The same with edges that are known already: those of a whole whose part `features` are.

        Raises:
            ValueError: for more documents than 32 bits can number.
        """
        _numbered(features)
        binned = apply_bins(features, bins)
        return cls(
            binned,
            bins,
            find_missing(binned, bins),
            histograms=np.empty((n_leaves, bins.n_blocks * BLOCK, N_BINS), np.int64),
            workshop=Workshop.of(bins, numba.config.NUMBA_NUM_THREADS),
            row_of=np.arange(len(features), dtype=np.int32),
            rows=np.empty(len(features), np.int32),
            places=np.zeros((2, n_leaves), np.int64),
            packed=np.empty((2, len(features)), np.int64),
        )

    def lie_by(self, leaf: NDArray[np.int32]) -> None:
        """Moves the rows of one leaf, ``int32 [documents]``, side by side."""
        before = self.row_of.copy()
        _number_by(leaf, self.row_of)
        _move_rows(self.binned.view(np.uint64), before, self.row_of, self.packed.view(np.uint64).reshape(-1, 2))


def _numbered(features: NDArray[np.float32]) -> None:
    if len(features) > np.iinfo(np.int32).max:
        raise ValueError(f"{len(features):,} documents; trees number them in 32 bits, 2,147,483,647 at most")


class Memory(NamedTuple):
    """A `Ground` as compiled code reads it; `words`: ``uint64 [blocks, documents, 2]``, the bytes of `binned`."""

    binned: NDArray[np.uint8]
    words: NDArray[np.uint64]
    columns: NDArray[np.int64]
    rows: NDArray[np.int32]
    places: NDArray[np.int64]
    packed: NDArray[np.int64]
    gathered: NDArray[np.int64]
    scratch: NDArray[np.int32]
    histograms: NDArray[np.int64]
    workshop: Workshop
    threads: int

    def divide(self, leaf: int, new: int, feature: int, split: int, missing_left: bool) -> int:
        return int(_divide_leaf(self, leaf, new, feature, split, missing_left))

    def settle(self, leaf: int, new: int, left_is_smaller: bool, searched: bool) -> None:
        _settle_leaf(self, leaf, new, left_is_smaller, searched)

    def in_bins(self, leaf: int, feature: int) -> NDArray[np.int64]:
        return np.asarray(_leaf_in_bins(self, leaf, feature))


class Nodes(NamedTuple):
    """Splits of one tree, an array ``[nodes]`` each; a child c ≥ 0 is a node, c < 0 the leaf ``~c``."""

    feature: NDArray[np.int64]
    split: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]
    right: NDArray[np.int64]


class Field(Protocol):
    """What a tree asks of documents under forces. Every answer is a maximum or a sum over documents: the answers of parts, combined,
    are those of the whole.

    Attributes:
        bins, has_missing: of the features.
        histograms: ``int64 [leaves, columns, bins]``; `root` and the growing fill them.
    """

    @property
    def bins(self) -> Bins: ...

    @property
    def has_missing(self) -> NDArray[np.bool_]: ...

    @property
    def histograms(self) -> NDArray[np.int64]: ...

    @property
    def n_documents(self) -> int: ...

    def largest(self) -> tuple[float, float]:
        """Largest |force| and |curvature|."""

    def sizes(self, coarse: tuple[float, float]) -> tuple[int, int]:
        """Σ |force · coarse| and Σ |curvature · coarse|, each summand rounded."""

    def root(self, scales: tuple[float, float], newton: bool) -> int:
        """Packs forces and curvatures by their scales; leaf 0 has all documents of the sample. Their number."""

    def grown(self, *rules: Any) -> Any:
        """`best_first` by these rules: it asks by `divide`, `settle` and `in_bins`."""

    def totals(self, scales: tuple[float, float], order: NDArray[np.int64], nodes: Nodes) -> NDArray[np.int64]:
        """Σ force and Σ curvature by their scales, ``int64 [leaves, 2]``, of the leaves `order`, numbered anew in it; every document
        notes its leaf."""


@dataclass(frozen=True)
class Pulled:
    """The `Field` of one ground: force and curvature, ``float64 [documents]``, those the tree is grown on (`sample`, ``bool
    [documents]``, None for all), and after growing the leaf of each, ``int32 [documents]``."""

    ground: Ground
    force: NDArray[np.float64]
    curvature: NDArray[np.float64]
    sample: NDArray[np.bool_] | None
    leaf: NDArray[np.int32]

    @classmethod
    def by(
        cls, ground: Ground, forces: tuple[NDArray[np.float64], NDArray[np.float64]], sample: NDArray[np.bool_] | None
    ) -> "Pulled":
        return cls(ground, *forces, sample, np.empty(len(forces[0]), np.int32))

    @property
    def bins(self) -> Bins:
        return self.ground.bins

    @property
    def has_missing(self) -> NDArray[np.bool_]:
        return self.ground.has_missing

    @property
    def histograms(self) -> NDArray[np.int64]:
        return self.ground.histograms

    @property
    def n_documents(self) -> int:
        return len(self.force)

    def largest(self) -> tuple[float, float]:
        return _largest_of(self.force), _largest_of(self.curvature)

    def sizes(self, coarse: tuple[float, float]) -> tuple[int, int]:
        return _size_of(self.force, coarse[0]), _size_of(self.curvature, coarse[1])

    def root(self, scales: tuple[float, float], newton: bool) -> int:
        ground, n_rows = self.ground, len(self.force)
        if self.sample is None:
            _number(ground.rows)
        else:
            chosen = np.sort(ground.row_of[self.sample])
            n_rows = len(chosen)
            ground.rows[:n_rows] = chosen
        ground.places[:, 0] = 0, n_rows
        _pack(self.force, self.curvature, *scales, newton, ground.row_of, ground.packed[0])
        _begin_root(ground.memory, n_rows)
        return n_rows

    def grown(self, *rules: Any) -> Any:
        return _best_first_here(self.ground.memory, *rules)

    def totals(self, scales: tuple[float, float], order: NDArray[np.int64], nodes: Nodes) -> NDArray[np.int64]:
        ground, of_row = self.ground, self.ground.scratch
        starts, sizes = ground.places[:, order]
        n_rows = int(sizes.sum())
        if n_rows < len(of_row):
            of_row[:] = -1
        _note_leaves(ground.rows[:n_rows], np.append(starts, n_rows), of_row)
        totals = _leaf_totals(self.force, self.curvature, *scales, of_row, ground.row_of, self.leaf, len(order))
        if n_rows < len(of_row):
            _fall(ground.binned, ground.bins.columns, ground.row_of, self.sample, *nodes, self.leaf)
        return totals

    def move(self, scores: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Adds to each score the value of its document's leaf."""
        _move(scores, values, self.leaf)


@dataclass(frozen=True)
class Grown:
    """One tree and where every document falls: ``leaf int32 [documents]``."""

    tree: Trees
    leaf: NDArray[np.int32]


@njit(cache=True, parallel=True)
def _move(scores, value, leaf):
    for k in prange(len(scores)):
        scores[k] += value[leaf[k]]


def grow(
    ground: Ground,
    forces: tuple[NDArray[np.float64], NDArray[np.float64]],
    rules: Rules,
    sample: NDArray[np.bool_] | None = None,
    allowed: NDArray[np.bool_] | None = None,
) -> Grown | None:
    """One tree along the force; None where no split gains anything (all forces zero, or no admissible split).

    Args:
        forces: force and curvature, ``float64 [documents]``.
        sample: ``bool [documents]``, those the tree is grown on; left out, all.
        allowed: ``bool [features]``, those it may split by; left out, all.
    """
    pulled = Pulled.by(ground, forces, sample)
    tree = grow_over(pulled, rules, allowed)
    return Grown(tree, pulled.leaf) if tree is not None else None


def grow_over(field: Field, rules: Rules, allowed: NDArray[np.bool_] | None = None) -> Trees | None:
    """`grow` wherever the documents lie, which then know their leaves."""
    allowed = np.ones(field.bins.n_features, np.bool_) if allowed is None else allowed
    n_documents, largest = field.n_documents, field.largest()
    coarse = _coarse(largest[0], n_documents), _coarse(largest[1], n_documents)
    sizes = field.sizes(coarse)
    force_scale, fine_force = _scales(coarse[0], sizes[0] + n_documents, 31, 62)
    curvature_scale, fine_curvature = _scales(coarse[1], sizes[1] + n_documents, 32, 62)
    n_rows = field.root((force_scale, curvature_scale), rules.newton_gain)
    *splits, gain, order, documents, bounds = field.grown(
        n_rows, field.histograms[: rules.n_leaves], field.bins.columns, np.diff(field.bins.starts), field.has_missing, max(rules.min_docs_in_leaf, 1),
        rules.newton_gain, allowed, rules.monotone, bool(rules.monotone.any()),
    )  # fmt: skip
    nodes = Nodes(*splits)
    if len(gain) == 0:
        return None
    totals = field.totals((fine_force, fine_curvature), order, nodes)
    unit = (curvature_scale if rules.newton_gain else 1.0) / force_scale
    values = np.empty(len(documents))
    for k in range(len(values)):
        push = int(totals[k, 0]) / fine_force
        mass = int(totals[k, 1]) / fine_curvature if rules.newton_leaf else float(documents[k])
        size = push / mass if mass > 0.0 else 0.0 if push == 0.0 else np.copysign(np.inf, push)
        size = min(max(size, bounds[k, 0] * unit), bounds[k, 1] * unit)
        values[k] = rules.learning_rate * min(max(size, -rules.largest_leaf), rules.largest_leaf)
    return Trees(
        feature=nodes.feature.astype(np.int32),
        threshold=_threshold(field.bins, nodes.feature, nodes.split),
        missing_left=nodes.missing_left,
        left=nodes.left.astype(np.int32),
        right=nodes.right.astype(np.int32),
        value=values,
        documents=documents,
        node_starts=np.array([0, len(gain)]),
        leaf_starts=np.array([0, len(values)]),
        gain=gain * unit / force_scale,
    )


def _threshold(bins: Bins, feature: NDArray[np.int64], split: NDArray[np.int64]) -> NDArray[np.float32]:
    """The edge above bin `split`; infinity above the last bin, where a split parts values from missing ones."""
    padded = np.append(bins.edges, np.float32(np.inf))
    last = split == np.diff(bins.starts)[feature]
    return padded[np.where(last, len(bins.edges), bins.starts[feature] + split)]


@njit(cache=True, parallel=True)
def _number(rows):
    for k in prange(len(rows)):
        rows[k] = k


@njit(cache=True)
def _number_by(leaf, row_of):
    """Rows by leaf, in the order of documents within each."""
    n_leaves = 0
    for k in range(len(leaf)):
        n_leaves = max(n_leaves, leaf[k] + 1)
    sizes = np.zeros(n_leaves, np.int64)
    for k in range(len(leaf)):
        sizes[leaf[k]] += 1
    ends = np.cumsum(sizes) - sizes
    for k in range(len(leaf)):
        row_of[k] = ends[leaf[k]]
        ends[leaf[k]] += 1


@njit(cache=True, parallel=True)
def _move_rows(words, before, after, moved):
    """words[:, after[k]] = words[:, before[k]], ``uint64 [blocks, documents, 2]``, through memory for one block."""
    for block in range(len(words)):
        for k in prange(len(moved)):
            moved[after[k]] = words[block, before[k]]
        for k in prange(len(moved)):
            words[block, k] = moved[k]


# --- fixed point --------------------------------------------------------------------------------------------------------


def power_of_two_scales(values: NDArray[np.float64], *bits: int) -> list[float]:
    """For each of `bits` the largest power of two that keeps Σ |values · scale|, rounded, below 2^bits, from exact integer sums."""
    coarse = _coarse(_largest_of(values), len(values))
    return _scales(coarse, _size_of(values, coarse) + len(values), *bits)


def _coarse(largest: float, n: int) -> float:
    """A power of two by which n values, none above `largest`, sum up below 2^62; 0 where they have vanished."""
    if largest < VANISHED:
        return 0.0
    room = 61 - int(np.ceil(np.log2(max(n, 2))))
    return float(2.0 ** (room - int(np.ceil(np.log2(largest)))))


def _scales(coarse: float, total: int, *bits: int) -> list[float]:
    """For each of `bits` the largest power of two that keeps below 2^bits what is at most `total` by the scale `coarse`."""
    return [float(coarse * 2.0 ** (b - total.bit_length() - 1)) if coarse else 1.0 for b in bits]


def _largest_of(values: NDArray[np.float64]) -> float:
    return float(_largest(values.view(np.int64)).view(np.float64).max(initial=0.0))


def _size_of(values: NDArray[np.float64], scale: float) -> int:
    return int(_total_size(values, scale).sum()) if scale else 0


_PIECE = 16384
"""Documents that one thread takes at a time where every document is passed once."""


@njit(cache=True, parallel=True)
def _largest(bits):
    """Largest size in each piece, all as the bits of floats: floats ≥ 0 are ordered as their bits are, and integers have a maximum that
    runs in vector lanes."""
    size, largest = np.int64(0x7FFFFFFFFFFFFFFF), np.zeros((len(bits) + _PIECE - 1) // _PIECE, np.int64)
    for piece in prange(len(largest)):
        own = np.int64(0)
        for k in range(np.uint64(piece * _PIECE), np.uint64(min((piece + 1) * _PIECE, len(bits)))):
            own = max(own, bits[k] & size)
        largest[piece] = own
    return largest


@njit(cache=True, parallel=True)
def _total_size(values, scale):
    totals = np.zeros((len(values) + _PIECE - 1) // _PIECE, np.int64)
    for piece in prange(len(totals)):
        own = np.int64(0)
        for k in range(np.uint64(piece * _PIECE), np.uint64(min((piece + 1) * _PIECE, len(values)))):
            own += np.int64(np.rint(abs(values[k]) * scale))
        totals[piece] = own
    return totals


@njit(cache=True, parallel=True)
def _pack(force, curvature, force_scale, curvature_scale, newton, row_of, packed):
    for k in prange(len(force)):
        low = np.int64(np.rint(curvature[k] * curvature_scale)) if newton else np.int64(1)
        packed[row_of[k]] = (np.int64(np.rint(force[k] * force_scale)) << np.int64(32)) + low


@njit(cache=True, parallel=True)
def _note_leaves(rows, starts, of_row):
    """of_row[row] = k for the rows from ``starts[k]`` on. Where a leaf's rows rise, a thread writes a piece of `of_row` at a time: what two
    of them write to at once would travel between their caches. Each row is written once in any order: a place that is searched for never
    falls as the number rises."""
    for piece in prange((len(of_row) + _PIECE - 1) // _PIECE):
        for k in range(len(starts) - 1):
            own = rows[starts[k] : starts[k + 1]]
            first, last = np.searchsorted(own, piece * _PIECE), np.searchsorted(own, (piece + 1) * _PIECE)
            for at in range(first, last):
                of_row[own[at]] = k


@njit(cache=True, parallel=True)
def _leaf_totals(force, curvature, force_scale, curvature_scale, of_row, row_of, leaf, n_leaves):
    """The leaf of each document, and exact sums of force and curvature of every leaf, ``int64 [leaves, 2]``; a document of leaf −1 is
    in none."""
    pieces = (len(leaf) + _PIECE - 1) // _PIECE
    totals = np.zeros((pieces, n_leaves, 2), np.int64)
    for piece in prange(pieces):
        for document in range(piece * _PIECE, min((piece + 1) * _PIECE, len(leaf))):
            k = of_row[row_of[document]]
            leaf[document] = k
            if k >= 0:
                totals[piece, k, 0] += np.int64(np.rint(force[document] * force_scale))
                totals[piece, k, 1] += np.int64(np.rint(curvature[document] * curvature_scale))
    return totals.sum(axis=0)


@njit(cache=True, parallel=True)
def _fall(binned, columns, row_of, sample, feature, split, missing_left, left, right, leaf):
    """The leaves of documents that the tree was not grown on."""
    for document in prange(len(leaf)):
        node = 0 if not sample[document] else -1
        while node >= 0:
            column = columns[feature[node]]
            b = binned[column // BLOCK, row_of[document], column % BLOCK]
            node = left[node] if (missing_left[node] if b == MISSING else b <= split[node]) else right[node]
            leaf[document] = ~node


_SPLIT_FROM = 4096
"""Rows from which they are divided by two threads."""


# --- the best split -----------------------------------------------------------------------------------------------------


@njit(cache=True)
def _score(force, weight):
    """force²/weight; without weight there is nothing to move."""
    return force * force / weight if weight > 0.0 else 0.0


@njit(cache=True)
def _value(force, weight, bounds):
    """The leaf force/weight within its bounds."""
    return min(max(force / weight if weight > 0.0 else 0.0, bounds[0]), bounds[1])


@njit(cache=True)
def _score_at(force, weight, value):
    """2·force·v − weight·v²: what a leaf of the value v gains; `_score` at v = force/weight."""
    return (2.0 * force - weight * value) * value


@njit(cache=True)
def _search(column, counts, counted, n_edges, has_missing, min_docs, by_count, sign, bounds):
    """Best split of one feature: (gain, bin, missing goes left), in packed units; gain 0 where none is admissible.

    `counts` per bin are looked at where `counted`; with least squares the low half of a word is the count (`by_count`). Values of
    the children keep within `bounds` and, where `sign` is not 0, to its order.
    """
    total = np.int64(0)
    n_total = 0
    for k in range(N_BINS):
        total += column[k]
        n_total += counts[k]
    bounded = sign != 0 or bounds[0] > -np.inf or bounds[1] < np.inf
    all_force, all_weight = float(total >> 32), float(total & _LOW)
    parent = _score(all_force, all_weight)
    if bounded:
        parent = _score_at(all_force, all_weight, _value(all_force, all_weight, bounds))
    best, best_bin, best_left = 0.0, -1, False
    for missing_left in (False, True):
        if missing_left and not has_missing:
            break
        left = column[MISSING] if missing_left else np.int64(0)
        n_left = counts[MISSING] if missing_left else 0
        for k in range(n_edges + (has_missing and not missing_left)):
            left += column[k]
            n_left += counts[k]
            weight = float(left & _LOW)
            if by_count and (weight < min_docs or all_weight - weight < min_docs):
                continue
            if counted and (n_left < min_docs or n_total - n_left < min_docs):
                continue
            force = float(left >> 32)
            if bounded:
                lower, upper = _value(force, weight, bounds), _value(all_force - force, all_weight - weight, bounds)
                if sign * (upper - lower) < 0.0:
                    continue
                gain = _score_at(force, weight, lower) + _score_at(all_force - force, all_weight - weight, upper) - parent
            else:
                gain = _score(force, weight) + _score(all_force - force, all_weight - weight) - parent
            if gain > best:
                best, best_bin, best_left = gain, k, missing_left
    return best, best_bin, best_left


@njit(cache=True, parallel=True)
def _search_all(histogram, columns, n_edges, has_missing, min_docs, by_count, allowed, monotone, bounds, gains, splits, lefts):
    for f in prange(len(n_edges)):
        gains[f] = 0.0
        if allowed[f]:
            gains[f], splits[f], lefts[f] = _search(
                histogram[columns[f]],
                np.zeros(N_BINS, np.int64),
                False,
                n_edges[f],
                has_missing[f],
                min_docs,
                by_count,
                monotone[f],
                bounds,
            )


@njit(cache=True)
def _best_split(histogram, columns, n_edges, has_missing, min_docs, newton, allowed, monotone, bounds):
    """Best split of a leaf: (gain, feature, bin, missing goes left); ties go to the lower feature and bin. With Newton gain, whose
    histograms do not count, sides may be too small: see `_admissible_split`."""
    n_features = len(n_edges)
    gains, splits, lefts = np.zeros(n_features), np.zeros(n_features, np.int64), np.zeros(n_features, np.bool_)
    _search_all(histogram, columns, n_edges, has_missing, min_docs, not newton, allowed, monotone, bounds, gains, splits, lefts)
    f = np.argmax(gains)
    return gains[f], f, splits[f], lefts[f]


@njit(cache=True)
def _sum_of(histogram):
    """Force and weight of a leaf, from the histogram of its first column."""
    total = histogram[0].sum()
    return float(total >> 32), float(total & _LOW)


# --- one tree -----------------------------------------------------------------------------------------------------------


@njit(cache=True, forceinline=True)
def _goes_left(block, k, row, split, missing_left):
    b = block[row, k]
    return np.uint64((b <= split) | (missing_left & (b == MISSING)))


@njit(cache=True)
def _divide_from_front(block, k, rows, split, missing_left, rights):
    """Rows that go left to the front of `rows`, the others to the front of `rights`, without a branch; how many go left."""
    n_left = n_right = np.uint64(0)
    n = np.uint64(len(rows))
    for i in range(n):
        prefetch(block, BLOCK * np.int64(rows[min(i + np.uint64(AHEAD), n - np.uint64(1))]))
        row = rows[i]
        left = _goes_left(block, k, row, split, missing_left)
        rows[n_left], rights[n_right] = row, row
        n_left += left
        n_right += np.uint64(1) - left
    return np.int64(n_left)


@njit(cache=True)
def _divide_from_end(block, k, rows, split, missing_left, lefts):
    """Rows that go right to the end of `rows`, the others to the end of `lefts`; how many go left."""
    last = np.uint64(len(rows) - 1)
    to_rows = to_lefts = last
    for i in range(np.uint64(len(rows))):
        at = last - i
        prefetch(block, BLOCK * np.int64(rows[at - min(at, np.uint64(AHEAD))]))
        row = rows[at]
        left = _goes_left(block, k, row, split, missing_left)
        rows[to_rows], lefts[to_lefts] = row, row
        to_lefts -= left
        to_rows -= np.uint64(1) - left
    return np.int64(last - to_lefts)


@njit(cache=True, parallel=True)
def _partition(binned, column, rows, scratch, split, missing_left):
    """Rows that go left to the front, both sides in their order; how many went left. Two threads begin at the ends, and half of the rows
    need not be moved again:

        rows      L L L L L · · · · | · · · R R R R        scratch   R R R R     | L L L
                            └──────────────┘               what is missing in the middle: L L L R R R R

    `scratch`: as long as `rows` at least.
    """
    block, k, n = binned[column // BLOCK], column % BLOCK, len(rows)
    if n < _SPLIT_FROM:
        n_left = _divide_from_front(block, k, rows, split, missing_left, scratch)
        rows[n_left:] = scratch[: n - n_left]
        return n_left
    half, lefts = n // 2, np.zeros(2, np.int64)
    for side in prange(2):
        if side == 0:
            lefts[0] = _divide_from_front(block, k, rows[:half], split, missing_left, scratch[:half])
        else:
            lefts[1] = _divide_from_end(block, k, rows[half:], split, missing_left, scratch[half:n])
    n_left = lefts[0] + lefts[1]
    for side in prange(2):
        if side == 0:
            rows[lefts[0] : n_left] = scratch[n - lefts[1] : n]
        else:
            rows[n_left : n_left + half - lefts[0]] = scratch[: half - lefts[0]]
    return n_left


@njit(cache=True)
def _divide_leaf(memory, leaf, new, feature, split, missing_left):
    start, size = memory.places[0, leaf], memory.places[1, leaf]
    members = memory.rows[start : start + size]
    n_left = _partition(memory.binned, memory.columns[feature], members, memory.scratch, split, missing_left)
    memory.places[0, new] = start + n_left
    return n_left


@njit(cache=True)
def _settle_leaf(memory, leaf, new, left_is_smaller, searched):
    places = memory.places
    start, size, n_left = places[0, leaf], places[1, leaf], places[0, new] - places[0, leaf]
    left, right = (new, leaf) if left_is_smaller else (leaf, new)
    places[0, left], places[1, left] = start, n_left
    places[0, right], places[1, right] = start + n_left, size - n_left
    if searched:
        members = memory.rows[places[0, new] : places[0, new] + places[1, new]]
        gathered = memory.gathered[: len(members)]
        _gather_all(memory.packed, members, gathered, memory.threads)
        build(
            memory.words, members, gathered, memory.workshop, memory.threads, memory.histograms[new], memory.histograms[leaf], True
        )


@njit(cache=True, parallel=True)
def _gather_all(packed, rows, gathered, threads):
    n = len(rows)
    for thread in prange(threads):
        a, b = n * thread // threads, n * (thread + 1) // threads
        gather(packed, rows[a:b], gathered[a:b])


@njit(cache=True)
def _begin_root(memory, n_rows):
    """The histogram of leaf 0."""
    members, gathered = memory.rows[:n_rows], memory.packed
    if n_rows < len(memory.rows):
        gathered = memory.gathered
        _gather_all(memory.packed, members, gathered, memory.threads)
    build(memory.words, members, gathered, memory.workshop, memory.threads, memory.histograms[0], memory.histograms[0], False)


@njit(cache=True)
def _leaf_in_bins(memory, leaf, f):
    counts, column = np.zeros(N_BINS, np.int64), memory.columns[f]
    for row in memory.rows[memory.places[0, leaf] : memory.places[0, leaf] + memory.places[1, leaf]]:
        counts[memory.binned[column // BLOCK, row, column % BLOCK]] += 1
    return counts


def _ask_divide(field, leaf, new, feature, split, missing_left):
    """Orders the documents of a leaf by the side they would go to; how many would go left."""
    return field.divide(leaf, new, feature, split, missing_left)


def _ask_settle(field, leaf, new, left_is_smaller, searched):
    """The division just tried stays: `new` has the smaller side, `leaf` the larger one, and both have their histograms where they will
    be `searched`."""
    field.settle(leaf, new, left_is_smaller, searched)


def _ask_in_bins(field, leaf, feature):
    """Documents of a leaf in each bin of a feature, ``int64 [bins]``."""
    return field.in_bins(leaf, feature)


@overload(_ask_divide)
def _divide_here(field, leaf, new, feature, split, missing_left):
    return lambda field, leaf, new, feature, split, missing_left: _divide_leaf(field, leaf, new, feature, split, missing_left)


@overload(_ask_settle)
def _settle_here(field, leaf, new, left_is_smaller, searched):
    return lambda field, leaf, new, left_is_smaller, searched: _settle_leaf(field, leaf, new, left_is_smaller, searched)


@overload(_ask_in_bins)
def _in_bins_here(field, leaf, feature):
    return lambda field, leaf, feature: _leaf_in_bins(field, leaf, feature)


@register_jitable
def _admissible_split(field, leaf, histogram, columns, n_edges, has_missing, min_docs, allowed, monotone, bounds):
    """`_best_split` with at least `min_docs` rows on both sides: the winning feature is counted and searched again, until a counted
    one wins."""
    n_features = len(n_edges)
    gains, splits, lefts = np.zeros(n_features), np.zeros(n_features, np.int64), np.zeros(n_features, np.bool_)
    _search_all(histogram, columns, n_edges, has_missing, min_docs, False, allowed, monotone, bounds, gains, splits, lefts)
    counted = np.zeros(n_features, np.bool_)
    while True:
        f = np.argmax(gains)
        if gains[f] <= 0.0:
            return 0.0, -1, -1, False
        if counted[f]:
            return gains[f], f, splits[f], lefts[f]
        gains[f], splits[f], lefts[f] = _search(
            histogram[columns[f]],
            _ask_in_bins(field, leaf, f),
            True,
            n_edges[f],
            has_missing[f],
            min_docs,
            False,
            monotone[f],
            bounds,
        )
        counted[f] = True


def best_first(field, n_rows, histograms, columns, n_edges, has_missing, min_docs, newton, allowed, monotone, any_monotone):
    """Best-first growth: the columns of `Nodes`, what each node gains, and the leaves from left to right: their numbers, documents
    and bounds.

    Splitting leaf k keeps k for the larger child and gives the next free number to the smaller one. ``starts[k]``: documents left of
    leaf k; ``owner[k]``: the node and side that point at it; ``bounds[k]``: of its value, in packed units.
    """
    n_leaves = len(histograms)
    starts, sizes = np.zeros(n_leaves, np.int64), np.zeros(n_leaves, np.int64)
    owner, on_right = np.full(n_leaves, -1), np.zeros(n_leaves, np.bool_)
    gains, features, splits = np.zeros(n_leaves), np.full(n_leaves, -1), np.full(n_leaves, -1)
    missing_left = np.zeros(n_leaves, np.bool_)
    bounds = np.empty((n_leaves, 2))
    bounds[:, 0], bounds[:, 1] = -np.inf, np.inf
    node_feature, node_split = np.empty(n_leaves - 1, np.int64), np.empty(n_leaves - 1, np.int64)
    node_missing, node_gain = np.zeros(n_leaves - 1, np.bool_), np.zeros(n_leaves - 1)
    children = np.zeros((n_leaves - 1, 2), np.int64)
    sizes[0] = n_rows
    if n_rows >= 2 * min_docs:
        gains[0], features[0], splits[0], missing_left[0] = _best_split(
            histograms[0], columns, n_edges, has_missing, min_docs, newton, allowed, monotone, bounds[0]
        )
    grown, node = 1, 0
    while grown < n_leaves:
        leaf = np.argmax(gains[:grown])
        if gains[leaf] <= 0.0:
            break
        f = features[leaf]
        n_left = _ask_divide(field, leaf, grown, f, splits[leaf], missing_left[leaf])
        if min(n_left, sizes[leaf] - n_left) < min_docs:
            gains[leaf], features[leaf], splits[leaf], missing_left[leaf] = _admissible_split(
                field, leaf, histograms[leaf], columns, n_edges, has_missing, min_docs, allowed, monotone, bounds[leaf]
            )
            continue
        node_feature[node], node_split[node], node_missing[node] = f, splits[leaf], missing_left[leaf]
        node_gain[node] = gains[leaf]
        if owner[leaf] >= 0:
            children[owner[leaf], int(on_right[leaf])] = node
        start, size, left_is_smaller = starts[leaf], sizes[leaf], 2 * n_left <= sizes[leaf]
        left, right = (grown, leaf) if left_is_smaller else (leaf, grown)
        children[node, 0], children[node, 1] = ~left, ~right
        owner[left], on_right[left], owner[right], on_right[right] = node, False, node, True
        starts[left], sizes[left], starts[right], sizes[right] = start, n_left, start + n_left, size - n_left
        searched = grown + 1 < n_leaves
        _ask_settle(field, leaf, grown, left_is_smaller, searched or any_monotone)
        bounds[grown] = bounds[leaf]
        if any_monotone and monotone[f] != 0:
            force, weight = _sum_of(histograms[left])
            other_force, other_weight = _sum_of(histograms[right])
            middle = 0.5 * (_value(force, weight, bounds[leaf]) + _value(other_force, other_weight, bounds[leaf]))
            below, above = (left, right) if monotone[f] > 0 else (right, left)
            bounds[below, 1], bounds[above, 0] = middle, middle
        for k in (left, right):
            gains[k] = 0.0
            if searched and sizes[k] >= 2 * min_docs:
                gains[k], features[k], splits[k], missing_left[k] = _best_split(
                    histograms[k], columns, n_edges, has_missing, min_docs, newton, allowed, monotone, bounds[k]
                )
        grown += 1
        node += 1
    order = np.argsort(starts[:grown])
    number = np.empty(grown, np.int64)
    number[order] = np.arange(grown)
    for k in range(node):
        for side in range(2):
            if children[k, side] < 0:
                children[k, side] = ~number[~children[k, side]]
    return (
        node_feature[:node], node_split[:node], node_missing[:node], children[:node, 0].copy(), children[:node, 1].copy(),
        node_gain[:node], order, sizes[:grown][order], bounds[:grown][order],
    )  # fmt: skip


_best_first_here = njit(cache=True)(best_first)
