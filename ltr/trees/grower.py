"""Regression trees grown along gradients, leaf by leaf on histograms of integers, the same for any number of threads.

A tree depends only on gradient and hessian of each document (λ, along which scores move, and minus the second derivative; Friedman 2001;
Burges 2010 section 6; Svore 2011 section 3), as integers of `ltr.trees.fixed_point` whose sums are exact in any order.

Newton histograms hold no counts, and the minimum number of documents in a leaf is still exact: the leaf with the highest gain is split
as found, and only where a side is too small is its winning feature counted and searched again with the counts; then it must win against
the best splits of the other features, and against the other leaves. A gain found without counts is never too low.

Features that may interact: a path that has split by some of them goes on by features of a group that holds them all (XGBoost's rule;
LightGBM's is the same, but leaves features without a group out).

Monotone features: everything grown below a split stays on its side of the middle between the two values (LightGBM's basic method).

A tree follows from a few questions to the documents: maxima, sums of integers and counts. Documents in several parts (`ltr.trees.shards`)
answer as one, and grow the same tree in another order (`ltr.trees.rounds`). `best_first` is given its questions by the addresses
of kernels: each is compiled once, on its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numba import njit, prange, types
from numba.extending import register_jitable
from numpy.typing import NDArray

from ltr.kernels.beside import begin_beside, wait_beside
from ltr.kernels.kernel import (
    F8_1D,
    F8_2D,
    I1,
    I1_1D,
    I8,
    I8_1D,
    I8_3D,
    Address,
    Bools,
    Floats,
    Floats32,
    Ints,
    Ints32,
    Kernel,
    NumbaType,
    kernel_for,
    ready,
    record_type,
)
from ltr.kernels.ranking import sort_falling
from ltr.trees.binning import Bins
from ltr.trees.ensemble import Trees
from ltr.trees.fixed_point import PIECE, coarse_scale, fine_scales, largest_of, pack, pieces_of, size_of
from ltr.trees.histograms import N_BINS
from ltr.trees.partition import DATASET, BinnedDataset, note_leaves, rows_by_sample
from ltr.trees.sparse_dataset import SparseDataset
from ltr.trees.splits import (
    SEARCH,
    Nodes,
    SplitSearch,
    best_split,
    middle_value,
    narrowed,
    restricted,
    search_all,
    search_feature,
    write_sides,
)


@dataclass(frozen=True)
class TreeOptions:
    """How a tree is grown; the arguments of `ltr.LambdaMART` by the same names.

    Args:
        newton_gain: split by (Σ gradient)²/Σ hessian, otherwise by least squares, (Σ gradient)²/count.
        newton_leaf: a leaf is Σ gradient/Σ hessian (S section 3), otherwise Σ gradient/count; times the learning rate.
        largest_leaf: bound on |leaf| before the learning rate, as the hessian of badly misranked pairs vanishes.
        l2: added to Σ hessian, or to the count, of every leaf in its gain and its value.
        monotone: ``int8 [features]``: the score may only rise with the feature (1), only fall (−1), or do either (0).
        groups: ``bool [groups, features]``: a path from the root to a leaf splits by features of one group; every feature is in some
            group. Without any group, by whatever features.
        cat_smooth, cat_l2: of features of categories, in the unit of `l2`.
        gain_unit: what these three are multiplied by in gains, where gains and leaves have different units: hessians, which grow with σ², and
            counts.
    """

    n_leaves: int
    min_docs_in_leaf: int
    newton_gain: bool
    newton_leaf: bool
    learning_rate: float
    largest_leaf: float
    l2: float
    monotone: NDArray[np.int8]
    groups: Bools = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    cat_smooth: float = 0.0
    cat_l2: float = 0.0
    gain_unit: float = 1.0


class Growth(NamedTuple):
    """What `best_first` found.

    Attributes:
        nodes: the splits, in the order they were made.
        gain: ``float64 [nodes]``, what each gains, in packed units.
        order: ``int64 [leaves]``, the leaves' numbers while the tree grew, from left to right.
        documents: ``int64 [leaves]``, from left to right as `bounds` is.
        bounds: ``float64 [leaves, 2]`` of each leaf's value, in packed units.
    """

    nodes: Nodes
    gain: Floats
    order: Ints
    documents: Ints
    bounds: Floats

    @classmethod
    def room(cls, n_leaves: int) -> "Growth":
        """Arrays for a tree of as many leaves at most, to be written to."""
        n_nodes = n_leaves - 1
        feature, split, left, right = np.zeros((4, n_nodes), np.int64)
        nodes = Nodes(feature, split, np.zeros(n_nodes, np.bool_), left, right, np.zeros((n_nodes, N_BINS), np.bool_))
        order, documents = np.zeros((2, n_leaves), np.int64)
        return cls(nodes, np.zeros(n_nodes), order, documents, np.zeros((n_leaves, 2)))

    def of_leaves(self, n_leaves: int) -> "Growth":
        """What was written for a tree of so many leaves."""
        nodes: Any = (array[: n_leaves - 1] for array in self.nodes)
        order, documents, bounds = self.order[:n_leaves], self.documents[:n_leaves], self.bounds[:n_leaves]
        return Growth(Nodes(*nodes), self.gain[: n_leaves - 1], order, documents, bounds)


class GradientSource(Protocol):
    """What growing a tree asks of documents and their gradients. Every answer is a maximum or a sum over documents, so that the answers
    of parts can be combined into those of the whole.

    Attributes:
        bins, has_missing: of the features.
    """

    @property
    def bins(self) -> Bins:
        """Edges of all features."""
        ...

    @property
    def has_missing(self) -> Bools:
        """``bool [features]``."""
        ...

    @property
    def n_documents(self) -> int:
        """All documents, whether or not the tree is grown on them."""
        ...

    def largest(self) -> tuple[float, float]:
        """Largest |gradient| and |hessian|."""

    def sizes(self, coarse: tuple[float, float]) -> tuple[int, int]:
        """Σ |gradient · coarse| and Σ |hessian · coarse|, each term rounded."""

    def root(self, scales: tuple[float, float], newton: bool) -> int:
        """Packs gradients and hessians by their scales, and makes leaf 0 of all documents of the sample; returns how many they are."""

    def grow(self, n_rows: int, n_leaves: int, space: SplitSearch) -> Growth:
        """`best_first` over these rows."""

    def totals(self, scales: tuple[float, float], order: Ints, nodes: Nodes) -> Ints:
        """Σ gradient and Σ hessian by their scales, ``int64 [leaves, 2]``, of the leaves in this order, which also renumbers them; the leaf
        of every document is stored."""


@dataclass(frozen=True)
class Gradients:
    """The `GradientSource` of documents in this process.

    Attributes:
        data: their bins.
        gradient, hessian: ``float64 [documents]``.
        sample: ``bool [documents]``, those the tree is grown on; None for all.
        leaf: ``int32 [documents]``, written by `totals`.
        allowed: ``bool [features]``, those it may split by; None for all.
    """

    data: BinnedDataset | SparseDataset
    gradient: Floats
    hessian: Floats
    sample: Bools | None
    leaf: Ints32
    allowed: Bools | None = None

    @classmethod
    def by(
        cls,
        data: BinnedDataset | SparseDataset,
        gradients: tuple[Floats, Floats],
        sample: Bools | None,
        allowed: Bools | None = None,
    ) -> "Gradients":
        """Gradients before a tree is grown on them: no leaf is known yet."""
        return cls(data, *gradients, sample, np.empty(len(gradients[0]), np.int32), allowed)

    @property
    def bins(self) -> Bins:
        """Edges of all features."""
        return self.data.bins

    @property
    def has_missing(self) -> Bools:
        """``bool [features]``."""
        return self.data.has_missing

    @property
    def n_documents(self) -> int:
        """All documents, whether or not they are in the sample."""
        return len(self.gradient)

    def largest(self) -> tuple[float, float]:
        """Largest |gradient| and |hessian| of all documents."""
        return largest_of(self.gradient), largest_of(self.hessian)

    def sizes(self, coarse: tuple[float, float]) -> tuple[int, int]:
        """Σ |gradient · coarse| and Σ |hessian · coarse| over all documents, each term rounded."""
        return size_of(self.gradient, coarse[0]), size_of(self.hessian, coarse[1])

    def root(self, scales: tuple[float, float], newton: bool) -> int:
        """Packs gradients and hessians by their scales, and makes leaf 0 of the sample; returns how many documents it has."""
        data, n_rows, numbered = self.data, len(self.gradient), self.data.rows
        if self.sample is not None:
            n_rows, numbered = int(self.sample.sum()), data.rows[:0]
            rows_by_sample(self.sample, data.row_index, n_rows, data.rows)
        data.leaf_ranges[:, 0] = 0, n_rows
        pack(self.gradient, self.hessian, *scales, newton, data.row_index, data.packed[0], numbered)
        data.start(n_rows, self.allowed)
        return n_rows

    def grow(self, n_rows: int, n_leaves: int, space: SplitSearch) -> Growth:
        """`best_first` over these rows, compiled."""
        data = self.data
        kept = data.kept if isinstance(data, SparseDataset) else None
        own = space if kept is None else restricted(space, kept)
        room = Growth.room(n_leaves)
        n_grown = growing(data.type)(data.compiled, *data.addresses, n_rows, data.histograms[:n_leaves], own, room)
        growth = room.of_leaves(n_grown)
        return growth if kept is None else growth._replace(nodes=growth.nodes._replace(feature=kept[growth.nodes.feature]))

    def totals(self, scales: tuple[float, float], order: Ints, nodes: Nodes) -> Ints:
        """Exact sums of the sample's documents in each leaf, ``int64 [leaves, 2]``; `leaf` is written for all documents."""
        data, of_row = self.data, self.data.scratch
        starts = data.leaf_ranges[0, order]
        n_rows = len(self.leaf) if self.sample is None else int(self.sample.sum())
        note_leaves(data.rows[:n_rows], np.append(starts, n_rows), of_row)
        if self.sample is not None:
            data.fall(self.sample, n_rows, nodes, of_row)
        pieces = np.zeros((pieces_of(len(self.leaf)), len(order), 2), np.int64)
        sample = np.ones(len(self.leaf), np.bool_) if self.sample is None else self.sample
        _leaf_totals(self.gradient, self.hessian, *scales, of_row, data.row_index, sample, self.leaf, pieces)
        totals: Ints = pieces.sum(axis=0)
        return totals

    def move(self, scores: Floats, values: Floats) -> None:
        """Adds to each score the value of its document's leaf."""
        _move(scores, values, self.leaf)


@dataclass(frozen=True)
class GrownTree:
    """One tree and where every document falls: ``leaf int32 [documents]``."""

    tree: Trees
    leaf: Ints32


@njit(cache=True, parallel=True)
def _move(scores: Floats, value: Floats, leaf: Ints32) -> None:
    for k in prange(len(scores)):
        scores[k] += value[leaf[k]]


def grow(
    data: BinnedDataset | SparseDataset,
    gradients: tuple[Floats, Floats],
    options: TreeOptions,
    sample: Bools | None = None,
    allowed: Bools | None = None,
) -> GrownTree | None:
    """One tree along the gradient; None where no split gains anything (all gradients zero, or no admissible split).

    Args:
        gradients: gradient and hessian, ``float64 [documents]``.
        sample: ``bool [documents]``, those the tree is grown on; left out, all.
        allowed: ``bool [features]``, those it may split by; left out, all.
    """
    source = Gradients.by(data, gradients, sample, allowed)
    tree = grow_from(source, options, allowed)
    return GrownTree(tree, source.leaf) if tree is not None else None


def grow_from(source: GradientSource, options: TreeOptions, allowed: Bools | None = None) -> Trees | None:
    """`grow` for documents that may be anywhere; `source` then knows their leaves."""
    allowed = np.ones(source.bins.n_features, np.bool_) if allowed is None else allowed
    (gradient_scale, fine_gradient), (hessian_scale, fine_hessian) = _scales(source.n_documents, source.largest(), source.sizes)
    n_rows = source.root((gradient_scale, hessian_scale), options.newton_gain)
    weight_scale = hessian_scale if options.newton_gain else 1.0
    l2, cat_smooth, cat_l2 = (one * options.gain_unit * weight_scale for one in (options.l2, options.cat_smooth, options.cat_l2))
    space = SplitSearch(
        source.bins.columns, np.diff(source.bins.starts), source.has_missing, allowed, options.monotone, max(options.min_docs_in_leaf, 1),
        options.newton_gain, l2, options.groups, source.bins.categorical, cat_smooth, cat_l2,
    )  # fmt: skip
    nodes, gain, order, documents, bounds = source.grow(n_rows, options.n_leaves, space)
    if len(gain) == 0:
        return None
    totals = source.totals((fine_gradient, fine_hessian), order, nodes)
    unit = weight_scale / gradient_scale
    codes = _codes(source.bins, nodes)
    of_leaves = leaf_l2(options, np.array([len(own) for own in codes]), nodes.left, nodes.right)
    values = _leaf_values(totals, (fine_gradient, fine_hessian), documents, bounds * unit, options, of_leaves)
    of_numbers = np.array([len(own) == 0 for own in codes])
    return Trees(
        feature=nodes.feature.astype(np.int32),
        threshold=np.where(of_numbers, _threshold(source.bins, nodes.feature, nodes.split), np.float32(0)),
        missing_left=nodes.missing_left & of_numbers,
        left=nodes.left.astype(np.int32),
        right=nodes.right.astype(np.int32),
        value=values,
        documents=documents,
        node_starts=np.array([0, len(gain)]),
        leaf_starts=np.array([0, len(values)]),
        gain=gain * unit / gradient_scale,
        n_codes=np.array([len(own) for own in codes], np.int32),
        codes=np.concatenate(codes),
    )


def leaf_l2(options: TreeOptions, n_codes: Ints | Ints32, left: Ints | Ints32, right: Ints | Ints32) -> Floats:
    """What is added to the weight of each leaf, ``float64 [leaves]``: right below a split by categories `TreeOptions.cat_l2` too, as in the
    split's gain (LightGBM's rule)."""
    l2 = np.full(len(left) + 1, options.l2)
    for side in (left, right):
        l2[~side[(side < 0) & (n_codes > 0)]] += options.cat_l2
    return l2


def leaves_again(gradients: tuple[Floats, Floats], leaf: Ints32, l2: Floats, options: TreeOptions) -> Floats:
    """What the leaves of a tree would be, had it been grown with its splits on these documents.

    Args:
        gradients: gradient and hessian, ``float64 [documents]``.
        leaf: ``int32 [documents]``, where each document falls.
        l2: of each leaf, `leaf_l2`.

    Returns:
        Values ``float64 [leaves]``.
    """
    gradient, hessian = gradients
    (_, fine_gradient), (_, fine_hessian) = _scales(
        len(leaf),
        (largest_of(gradient), largest_of(hessian)),
        lambda coarse: (size_of(gradient, coarse[0]), size_of(hessian, coarse[1])),
    )
    n_leaves = len(l2)
    totals = np.zeros((n_leaves, 2), np.int64)
    for column, (side, scale) in enumerate(((gradient, fine_gradient), (hessian, fine_hessian))):
        np.add.at(totals[:, column], leaf, np.rint(side * scale).astype(np.int64))
    documents, anywhere = np.bincount(leaf, minlength=n_leaves), np.tile([-np.inf, np.inf], (n_leaves, 1))
    return _leaf_values(totals, (fine_gradient, fine_hessian), documents, anywhere, options, l2)


def _scales(
    n_documents: int, largest: tuple[float, float], sizes: Callable[[tuple[float, float]], tuple[int, int]]
) -> tuple[list[float], list[float]]:
    """Scales of gradient and hessian: of the packed sums, and of those of leaves."""
    coarse = coarse_scale(largest[0], n_documents), coarse_scale(largest[1], n_documents)
    gradient, hessian = sizes(coarse)
    return fine_scales(coarse[0], gradient + n_documents, 31, 62), fine_scales(coarse[1], hessian + n_documents, 32, 62)


def _leaf_values(
    totals: Ints, fine: tuple[float, float], documents: Ints, bounds: Floats, options: TreeOptions, l2: Floats
) -> Floats:
    """Values ``float64 [leaves]`` from `GradientSource.totals` by these scales; `bounds` of each, ``float64 [leaves, 2]``, and its `l2`."""
    values = np.empty(len(documents))
    for k in range(len(values)):
        gradient = int(totals[k, 0]) / fine[0]
        weight = int(totals[k, 1]) / fine[1] if options.newton_leaf else float(documents[k])
        weight += l2[k]
        size = gradient / weight if weight > 0.0 else 0.0 if gradient == 0.0 else np.copysign(np.inf, gradient)
        size = min(max(size, bounds[k, 0]), bounds[k, 1])
        values[k] = options.learning_rate * min(max(size, -options.largest_leaf), options.largest_leaf)
    return values


def _threshold(bins: Bins, feature: Ints, split: Ints) -> Floats32:
    """The edge above bin `split`; infinity above the last bin, where a split separates values from missing ones."""
    padded = np.append(bins.edges, np.float32(np.inf))
    last = split == np.diff(bins.starts)[feature]
    return padded[np.where(last, len(bins.edges), bins.starts[feature] + split)]


def _codes(bins: Bins, nodes: Nodes) -> list[Floats32]:
    """The categories that go left at each node, rising; none of a feature of numbers."""
    found = []
    for f, goes_left in zip(nodes.feature, nodes.goes_left, strict=True):
        own = bins.edges[bins.starts[f] : bins.starts[f + 1]] if bins.categorical[f] else bins.edges[:0]
        found.append(own[goes_left[: len(own)]])
    return found


@njit(cache=True, parallel=True)
def _leaf_totals(
    gradient: Floats,
    hessian: Floats,
    gradient_scale: float,
    hessian_scale: float,
    of_row: Ints32,
    row_index: Ints32,
    sample: Bools,
    leaf: Ints32,
    totals: Ints,
) -> None:
    """Writes the leaf of each document, and adds to exact sums of gradient and hessian of every leaf, ``int64 [pieces, leaves, 2]``, those
    of the sample."""
    for piece in prange(len(totals)):
        for document in range(piece * PIECE, min((piece + 1) * PIECE, len(leaf))):
            k = of_row[row_index[document]]
            leaf[document] = k
            if sample[document]:
                totals[piece, k, 0] += np.int64(np.rint(gradient[document] * gradient_scale))
                totals[piece, k, 1] += np.int64(np.rint(hessian[document] * hessian_scale))


_split = kernel_for(lambda source: I8(source, I8, I8, I8, I1_1D))
_subtract = kernel_for(lambda source: types.void(source, I8, I8, I1, I1))
_write_bins = kernel_for(lambda source: types.void(source, I8, I8, I8_1D))
"""Of the addresses of `best_first` the kernels."""


@register_jitable
def admissible_split(
    source: object, write_bins: Kernel, leaf: int, histogram: Ints, space: SplitSearch, bounds: Floats
) -> tuple[float, int, int, bool]:
    """`best_split` with at least ``space.min_docs`` rows on both sides: features are counted and searched again by falling gain, as long as
    one may still win."""
    n_features = len(space.n_edges)
    gains, splits, lefts = np.zeros(n_features), np.zeros(n_features, np.int64), np.zeros(n_features, np.bool_)
    search_all(histogram, space, bounds, gains, splits, lefts)
    order = np.empty(n_features, np.int64)
    sort_falling(gains, order)
    in_bins, counted = np.empty(N_BINS, np.int64), len(gains) > 0  # always; as a constant it would have `search` compiled twice
    best, winner, split, left = 0.0, -1, -1, False
    for k in range(n_features):
        f = int(order[k])
        if gains[f] <= 0.0 or gains[f] < best:
            break
        write_bins(source, leaf, f, in_bins)
        gain, at, missing_left = search_feature(f, histogram[space.columns[f]], in_bins, counted, space, bounds)
        if gain > best or (gain == best and 0 <= f < winner):
            best, winner, split, left = gain, f, at, missing_left
    return best, winner, split, left


@njit(cache=True)
def best_first(
    source: object,
    split: Address,
    subtract: Address,
    write_bins: Address,
    n_rows: int,
    histograms: Ints,
    space: SplitSearch,
    found: Growth,
) -> int:
    """Grows a tree best leaf first, into `found`; returns how many leaves it has.

    Args:
        source: the documents, of which the next three ask: addresses of kernels, as numba asks Python for the type of a function at every call,
            and an interruption in there is lost.
        split: ``split(source, leaf, new, feature, goes_left)`` orders the documents of a leaf by the side that the bins of a feature go to,
            ``bool [bins]``; returns how many would go left.
        subtract: ``subtract(source, leaf, new, left_is_smaller, searched)``: the split just tried stays: `new` has the smaller side,
            `leaf` the larger one, and both have their histograms where they will be `searched`.
        write_bins: ``write_bins(source, leaf, feature, counts)`` counts the documents of a leaf in each bin of a feature, ``int64 [bins]``.

    Splitting leaf k keeps the number k for the larger child and gives the next free one to the smaller. ``starts[k]``: documents left of
    leaf k; ``owner[k]`` and ``on_right[k]``: the node whose child it is, and on which side; ``bounds[k]``: of its value, in packed units.
    """
    n_leaves, min_docs, monotone = len(histograms), space.min_docs, space.monotone
    any_monotone = bool(monotone.any())
    open_groups = np.ones((n_leaves, len(space.groups)), np.bool_)
    starts, sizes = np.zeros(n_leaves, np.int64), np.zeros(n_leaves, np.int64)
    owner, on_right = np.full(n_leaves, -1), np.zeros(n_leaves, np.bool_)
    gains, features, splits = np.zeros(n_leaves), np.full(n_leaves, -1), np.full(n_leaves, -1)
    missing_left = np.zeros(n_leaves, np.bool_)
    bounds = np.empty((n_leaves, 2))
    bounds[:, 0], bounds[:, 1] = -np.inf, np.inf
    nodes, goes_left = found.nodes, found.nodes.goes_left
    children = np.zeros((n_leaves - 1, 2), np.int64)
    sizes[0] = n_rows
    if n_rows >= 2 * min_docs:
        gains[0], features[0], splits[0], missing_left[0] = best_split(histograms[0], space, bounds[0])
    n_grown, node = 1, 0
    while n_grown < n_leaves:
        leaf = int(np.argmax(gains[:n_grown]))
        if gains[leaf] <= 0.0:
            break
        f = features[leaf]
        write_sides(histograms[leaf, space.columns[f]], space, f, splits[leaf], missing_left[leaf], goes_left[node])
        n_left = _split(split, source)(source, leaf, n_grown, f, goes_left[node])
        if min(n_left, sizes[leaf] - n_left) < min_docs:
            gains[leaf], features[leaf], splits[leaf], missing_left[leaf] = admissible_split(
                source, _write_bins(write_bins, source), leaf, histograms[leaf], narrowed(space, open_groups[leaf]), bounds[leaf]
            )
            continue
        nodes.feature[node], nodes.split[node], nodes.missing_left[node] = f, splits[leaf], missing_left[leaf]
        found.gain[node] = gains[leaf]
        if owner[leaf] >= 0:
            children[owner[leaf], int(on_right[leaf])] = node
        start, size, left_is_smaller = starts[leaf], sizes[leaf], 2 * n_left <= sizes[leaf]
        left, right = (n_grown, leaf) if left_is_smaller else (leaf, n_grown)
        children[node, 0], children[node, 1] = ~left, ~right
        owner[left], on_right[left], owner[right], on_right[right] = node, False, node, True
        starts[left], sizes[left], starts[right], sizes[right] = start, n_left, start + n_left, size - n_left
        searched = n_grown + 1 < n_leaves
        _subtract(subtract, source)(source, leaf, n_grown, left_is_smaller, searched or any_monotone)
        bounds[n_grown, 0], bounds[n_grown, 1] = bounds[leaf, 0], bounds[leaf, 1]
        for group in range(len(space.groups)):
            open_groups[leaf, group] = open_groups[leaf, group] and space.groups[group, f]
            open_groups[n_grown, group] = open_groups[leaf, group]
        if any_monotone and monotone[f] != 0:
            column = space.columns[f]
            middle = middle_value(histograms[left, column].sum(), histograms[right, column].sum(), space.l2, bounds[leaf])
            below, above = (left, right) if monotone[f] > 0 else (right, left)
            bounds[below, 1], bounds[above, 0] = middle, middle
        for k in (left, right):
            gains[k] = 0.0
            if searched and sizes[k] >= 2 * min_docs:
                gains[k], features[k], splits[k], missing_left[k] = best_split(
                    histograms[k], narrowed(space, open_groups[k]), bounds[k]
                )
        n_grown += 1
        node += 1
    from_right, number, order = np.empty(n_grown), np.empty(n_grown, np.int64), found.order[:n_grown]
    for k in range(n_grown):
        from_right[k] = -starts[k]
    sort_falling(from_right, order)
    for k in range(n_grown):
        number[order[k]], found.documents[k] = k, sizes[order[k]]
        found.bounds[k, 0], found.bounds[k, 1] = bounds[order[k], 0], bounds[order[k], 1]
    for k in range(node):
        a, b = children[k, 0], children[k, 1]
        nodes.left[k], nodes.right[k] = ~number[~a] if a < 0 else a, ~number[~b] if b < 0 else b
    return n_grown


_NODES = record_type(Nodes, I8_1D, I8_1D, I1_1D, I8_1D, I8_1D, types.Array(I1, 2, "C"))
_GROWTH = record_type(Growth, _NODES, F8_1D, I8_1D, I8_1D, F8_2D)


def is_cold() -> bool:
    """Whether nothing of how trees grow is in numba's cache yet: nothing was trained on this machine with this version."""
    if numba.config.DISABLE_JIT:
        return False
    dispatcher: Any = best_first
    return not any(Path(dispatcher._cache.cache_path).glob("*.nbi"))


@cache
def compile_beside() -> None:
    """Begins, once a process, to compile `growing` and `questions` in a second one where `is_cold`: they are as much as all that the first
    training compiles before it needs them."""
    if is_cold():
        begin_beside("from ltr.trees.grower import growing; from ltr.trees.partition import questions; growing(); questions()")


def growing(dataset: NumbaType = DATASET) -> Kernel:
    """`best_first`, compiled for data sets of this type; those of dense features unless given."""
    wait_beside()
    return ready(best_first, I8(dataset, I8, I8, I8, I8, I8_3D, SEARCH, _GROWTH))
