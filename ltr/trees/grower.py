"""Regression trees grown along forces, leaf by leaf on histograms of integers, the same for any number of threads.

A tree sees only force and curvature of each document (Friedman 2001; Burges 2010 section 6; Svore 2011 section 3), as integers of
`ltr.trees.fixed_point` whose sums are exact in any order.

Newton histograms hold no counts, and the minimum number of documents in a leaf is still exact: the leaf of the highest gain is
divided as found, and only where a side is too small its winning feature is counted, searched again with its counts, and must win
against the other features' bests and then against the other leaves. A gain found without counts is never too low.

Monotone features: all that is grown below a split keeps to its side of the middle between the two values (LightGBM's basic method).

A tree is decided in one place, from what it asks of the documents: maxima, sums of integers and counts. Documents that lie in
several parts (`ltr.trees.shards`) answer as if they lay in one. `best_first` is one source for both: compiled together with its answers where all
documents are here, interpreted where it asks elsewhere.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit, prange
from numba.extending import overload, register_jitable
from numpy.typing import NDArray

from ltr.trees.binning import BLOCK, MISSING, Bins
from ltr.trees.ensemble import Trees
from ltr.trees.fixed_point import PIECE, coarse_scale, fine_scales, largest_of, pack, size_of
from ltr.trees.partition import Ground, begin_root, divide_leaf, leaf_in_bins, note_leaves, number_rows, settle_leaf
from ltr.trees.splits import best_split, search, search_all, sum_of, value_within


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
        return largest_of(self.force), largest_of(self.curvature)

    def sizes(self, coarse: tuple[float, float]) -> tuple[int, int]:
        return size_of(self.force, coarse[0]), size_of(self.curvature, coarse[1])

    def root(self, scales: tuple[float, float], newton: bool) -> int:
        ground, n_rows = self.ground, len(self.force)
        if self.sample is None:
            number_rows(ground.rows)
        else:
            chosen = np.sort(ground.row_of[self.sample])
            n_rows = len(chosen)
            ground.rows[:n_rows] = chosen
        ground.places[:, 0] = 0, n_rows
        pack(self.force, self.curvature, *scales, newton, ground.row_of, ground.packed[0])
        begin_root(ground.memory, n_rows)
        return n_rows

    def grown(self, *rules: Any) -> Any:
        return _best_first_here(self.ground.memory, *rules)

    def totals(self, scales: tuple[float, float], order: NDArray[np.int64], nodes: Nodes) -> NDArray[np.int64]:
        ground, of_row = self.ground, self.ground.scratch
        starts, sizes = ground.places[:, order]
        n_rows = int(sizes.sum())
        if n_rows < len(of_row):
            of_row[:] = -1
        note_leaves(ground.rows[:n_rows], np.append(starts, n_rows), of_row)
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
    coarse = coarse_scale(largest[0], n_documents), coarse_scale(largest[1], n_documents)
    sizes = field.sizes(coarse)
    force_scale, fine_force = fine_scales(coarse[0], sizes[0] + n_documents, 31, 62)
    curvature_scale, fine_curvature = fine_scales(coarse[1], sizes[1] + n_documents, 32, 62)
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
def _leaf_totals(force, curvature, force_scale, curvature_scale, of_row, row_of, leaf, n_leaves):
    """The leaf of each document, and exact sums of force and curvature of every leaf, ``int64 [leaves, 2]``; a document of leaf −1 is
    in none."""
    pieces = (len(leaf) + PIECE - 1) // PIECE
    totals = np.zeros((pieces, n_leaves, 2), np.int64)
    for piece in prange(pieces):
        for document in range(piece * PIECE, min((piece + 1) * PIECE, len(leaf))):
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
    return lambda field, leaf, new, feature, split, missing_left: divide_leaf(field, leaf, new, feature, split, missing_left)


@overload(_ask_settle)
def _settle_here(field, leaf, new, left_is_smaller, searched):
    return lambda field, leaf, new, left_is_smaller, searched: settle_leaf(field, leaf, new, left_is_smaller, searched)


@overload(_ask_in_bins)
def _in_bins_here(field, leaf, feature):
    return lambda field, leaf, feature: leaf_in_bins(field, leaf, feature)


@register_jitable
def _admissible_split(field, leaf, histogram, columns, n_edges, has_missing, min_docs, allowed, monotone, bounds):
    """`best_split` with at least `min_docs` rows on both sides: the winning feature is counted and searched again, until a counted
    one wins."""
    n_features = len(n_edges)
    gains, splits, lefts = np.zeros(n_features), np.zeros(n_features, np.int64), np.zeros(n_features, np.bool_)
    search_all(histogram, columns, n_edges, has_missing, min_docs, False, allowed, monotone, bounds, gains, splits, lefts)
    counted = np.zeros(n_features, np.bool_)
    while True:
        f = np.argmax(gains)
        if gains[f] <= 0.0:
            return 0.0, -1, -1, False
        if counted[f]:
            return gains[f], f, splits[f], lefts[f]
        gains[f], splits[f], lefts[f] = search(
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
        gains[0], features[0], splits[0], missing_left[0] = best_split(
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
            force, weight = sum_of(histograms[left])
            other_force, other_weight = sum_of(histograms[right])
            middle = 0.5 * (value_within(force, weight, bounds[leaf]) + value_within(other_force, other_weight, bounds[leaf]))
            below, above = (left, right) if monotone[f] > 0 else (right, left)
            bounds[below, 1], bounds[above, 0] = middle, middle
        for k in (left, right):
            gains[k] = 0.0
            if searched and sizes[k] >= 2 * min_docs:
                gains[k], features[k], splits[k], missing_left[k] = best_split(
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
