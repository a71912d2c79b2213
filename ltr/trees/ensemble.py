"""An ensemble of regression trees: its arrays, its scores, and which leaf a document falls into."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange, types

from ltr.data.offsets import offsets_from_sizes
from ltr.data.sparse import SparseFeatures, dense_columns, is_sparse
from ltr.kernels.kernel import (
    F4_1D,
    F4_2D,
    F8_1D,
    I1,
    I1_1D,
    I8,
    I8_1D,
    Address,
    Array,
    Bools,
    Floats,
    Floats32,
    Ints,
    Ints32,
    Kernel,
    NumbaType,
    Words,
    Words32,
    address,
    inner,
    kernel_for,
    read_only,
    ready,
    record_type,
)
from ltr.kernels.lanes import ROWS, turn, walk
from ltr.kernels.prefetch import prefetch
from ltr.kernels.vectors import LANES
from ltr.rankers.surface import Surface

_NUMBERS_AT_A_TIME = 1 << 24
"""Of features that are dense, or made wider, while they are scored."""


@dataclass(frozen=True)
class Trees:
    """An ensemble as flat arrays; tree k has the nodes ``node_starts[k]:node_starts[k + 1]`` and likewise leaves.

    A row goes ``left`` where ``x ≤ threshold``, and with a missing value where `missing_left` says so. A child c ≥ 0 is a node,
    c < 0 the leaf ``~c``, both counted within the tree: nodes come after their parents, leaves go from left to right. The score is the
    sum of one `value` per tree. `documents`: how many of those it was grown on fell into each leaf.

    At a node with `n_codes` a row goes left where x is one of these `codes`, which lie behind each other from node to node and rise within
    one, and right with any other value; with a missing one as `missing_left` says.
    """

    feature: Ints32
    threshold: Floats32
    missing_left: Bools
    left: Ints32
    right: Ints32
    value: Floats
    documents: Ints
    node_starts: Ints
    leaf_starts: Ints
    gain: Floats
    n_codes: Ints32 = field(default_factory=lambda: np.empty(0, np.int32))
    codes: Floats32 = field(default_factory=lambda: np.empty(0, np.float32))

    def __post_init__(self) -> None:
        if not len(self.n_codes):
            object.__setattr__(self, "n_codes", np.zeros(len(self.feature), np.int32))

    def __getstate__(self) -> dict[str, Array]:
        """The arrays, of which copies are made: what `_by_bits` made of them has addresses of this process's code."""
        return {name: getattr(self, name) for name in _KINDS}

    def __repr__(self) -> str:
        """How many there are, in a line."""
        return f"Trees({self.n_trees} trees, {len(self.value)} leaves)"

    @staticmethod
    def restored(arrays: Mapping[str, Array], n_features: int) -> "Trees":
        """The ensemble of these arrays, which may come from anywhere.

        Raises:
            ValueError: where a walk through them could leave them or never end, leaves are not in order, a threshold is NaN, or a value is
                not finite.
        """
        trees = Trees(**arrays)
        if not trees._fit_together(n_features):
            raise ValueError(f"arrays that are not trees on {n_features} features")
        return trees

    def _fit_together(self, n_features: int) -> bool:
        arrays = {name: getattr(self, name) for name in _KINDS}
        if any(array.dtype != _KINDS[name] or array.ndim != 1 for name, array in arrays.items()):
            return False
        if any(
            len(arrays[name]) != len(self.feature) for name in ("threshold", "missing_left", "left", "right", "gain", "n_codes")
        ):
            return False
        if len(self.node_starts) != len(self.leaf_starts) or len(self.value) != len(self.documents) or not len(self.node_starts):
            return False
        nodes, leaves = np.diff(self.node_starts), np.diff(self.leaf_starts)
        if self.node_starts[0] or self.leaf_starts[0] or (nodes < 0).any() or (leaves != nodes + 1).any():
            return False
        if self.node_starts[-1] != len(self.feature) or self.leaf_starts[-1] != len(self.value):
            return False
        if np.isnan(self.threshold).any() or not np.isfinite(self.value).all() or not self._codes_fit():
            return False
        reads = bool(((self.feature >= 0) & (self.feature < n_features)).all())
        return reads and bool(_in_order(self.left, self.right, self.node_starts))

    def _codes_fit(self) -> bool:
        """Whether the codes of every node rise."""
        if (self.n_codes < 0).any() or self.n_codes.sum() != len(self.codes) or not np.isfinite(self.codes).all():
            return False
        of_node = np.repeat(np.arange(len(self.n_codes)), self.n_codes)
        falls = (np.diff(self.codes) <= 0) & (np.diff(of_node) == 0)
        return not falls.any()

    @property
    def arrays(self) -> dict[str, Array]:
        """All that these trees are, by name; codes where there are any."""
        return {
            one.name: getattr(self, one.name) for one in fields(self) if len(self.codes) or one.name not in ("n_codes", "codes")
        }

    @property
    def n_trees(self) -> int:
        """How many trees there are; with none, every score is 0."""
        return len(self.node_starts) - 1

    def first(self, n_trees: int) -> "Trees":
        """The first `n_trees` trees."""
        return self.between(0, n_trees)

    @property
    def codes_of(self) -> dict[int, Floats32]:
        """The codes of every node that has some."""
        nodes = np.flatnonzero(self.n_codes)
        return (
            dict(zip(nodes.tolist(), np.split(self.codes, np.cumsum(self.n_codes[nodes])[:-1]), strict=True)) if len(nodes) else {}
        )

    def between(self, begin: int, end: int) -> "Trees":
        """The trees from `begin` to before `end`."""
        nodes = slice(self.node_starts[begin], self.node_starts[end])
        leaves = slice(self.leaf_starts[begin], self.leaf_starts[end])
        of_nodes = {
            name: getattr(self, name)[nodes]
            for name in ("feature", "threshold", "missing_left", "left", "right", "gain", "n_codes")
        }
        of_trees = {name: getattr(self, name)[begin : end + 1] for name in ("node_starts", "leaf_starts")}
        starts = {name: places - places[0] for name, places in of_trees.items()}
        codes = self.codes[self.n_codes[: nodes.start].sum() :][: of_nodes["n_codes"].sum()]
        return Trees(**of_nodes, **starts, value=self.value[leaves], documents=self.documents[leaves], codes=codes)

    def leaves(self, features: Floats32) -> Ints32:
        """Which leaf each document falls into, ``int32 [documents, trees]``, as positions in `value`."""
        if is_sparse(features):
            return np.concatenate([trees.leaves(dense) for trees, dense in self._on_dense(features)])
        if len(self.codes):
            return np.concatenate([self.of_numbers.trees.leaves(wide) for wide in self.of_numbers.blocks(features)])
        leaves = np.empty((len(features), self.n_trees), np.int32)
        _leaves(
            np.ascontiguousarray(features, np.float32), self.feature, self.threshold, self.missing_left, self.left, self.right,
            self.node_starts, self.leaf_starts, leaves,
        )  # fmt: skip
        return leaves

    def surface(self, features: Floats32, offset: Floats) -> Surface:
        """Scores, including `offset`, as a function of the vector of leaf values; splits stay as they are."""
        leaves = self.leaves(features)

        def slopes(first: int, last: int, points: Floats) -> Floats:
            out = np.empty((len(points), last - first))
            _leaf_sums(leaves, first, np.ascontiguousarray(points.T), out)
            return out

        def scores(first: int, last: int, directions: Floats, steps: Floats) -> Floats:
            here = offset[first:last] + slopes(first, last, self.value[None])[0]
            return np.asarray(here + steps[:, None] * slopes(first, last, directions)[:, None, :])

        if offset.any():
            return Surface(self.value.copy(), len(features), scores=scores)
        return Surface(self.value.copy(), len(features), slopes=slopes)

    def scores(self, features: Floats32) -> Floats:
        """Scores ``float64 [documents]`` of ``features float32 [documents, features]``.

        Raises:
            ValueError: for an infinite feature, and a category that is no whole number.
        """
        self.require_categories(features)
        if is_sparse(features):
            return np.concatenate([trees.scores(dense) for trees, dense in self._on_dense(features)])
        if len(self.codes) and not np.isinf(features).any():
            return np.concatenate([self.of_numbers.trees.scores(wide) for wide in self.of_numbers.blocks(features)])
        scores, infinite = np.empty(len(features)), np.zeros(-(-len(features) // _BLOCK), np.bool_)
        features = np.ascontiguousarray(features, np.float32)
        self._score(features, scores, infinite)
        if infinite.any():
            first = int(np.argmax(infinite)) * _BLOCK
            row, feature = np.argwhere(np.isinf(features[first : first + _BLOCK]))[0]
            raise ValueError(f"row {first + row}, column {feature} is infinite; trees read finite or missing (NaN) values")
        return scores

    def added_to(self, scores: Floats, features: Floats32) -> Floats:
        """Scores of before, ``float64 [documents]``, and those of the trees, added one after the other as in training: to the last bit what
        training came to.

        Raises:
            ValueError: as `scores`.
        """
        if not scores.any():
            return self.scores(features)
        for k in range(self.n_trees):
            scores = scores + self.between(k, k + 1).scores(features)
        return scores

    def require_categories(self, features: Floats32) -> None:
        """Raises ValueError for a category that is no whole number."""
        for place in self.categorical:
            _require_wholes(dense_columns(features, place[None])[:, 0] if is_sparse(features) else features[:, place], int(place))

    @cached_property
    def categorical(self) -> Ints32:
        """Features that are split by categories."""
        found: Ints32 = np.unique(self.feature[self.n_codes > 0]) if len(self.codes) else self.feature[:0]
        return found

    @cached_property
    def of_numbers(self) -> "OfNumbers":
        """The same trees without codes, made once."""
        return OfNumbers.of(self)

    def _on_dense(self, features: SparseFeatures) -> "Iterator[tuple[Trees, Floats32]]":
        """The trees on the features that they read, and these of some rows at a time, ``float32 [rows, features read]``."""
        infinite = np.flatnonzero(np.isinf(features.data))
        if len(infinite):
            row, feature = np.searchsorted(features.indptr, infinite[0], side="right") - 1, features.indices[infinite[0]]
            raise ValueError(f"row {row}, column {feature} is infinite; trees read finite or missing (NaN) values")
        read = np.unique(self.feature)
        trees = replace(self, feature=np.searchsorted(read, self.feature).astype(np.int32))
        rows = max(_NUMBERS_AT_A_TIME // max(len(read), 1), 1)
        for first in range(0, max(features.shape[0], 1), rows):
            yield trees, dense_columns(features[first : first + rows], read)

    def _score(self, features: Floats32, scores: Floats, infinite: Bools) -> None:
        if self._by_bits is None:
            nodes = self.feature, self.threshold, self.missing_left, self.left, self.right
            _predict(features, *nodes, self.value, self.node_starts, self.leaf_starts, scores, infinite)
        else:
            predict, walked, score_block = self._by_bits
            predict(features, walked, score_block, scores, infinite)

    @cached_property
    def _by_bits(self) -> "tuple[Kernel, Walked, Address] | None":
        """`_predict_by_bits` and what it takes of these trees, made once; None for trees of more than 64 leaves."""
        largest = np.diff(self.leaf_starts).max(initial=0)
        if largest > 64:
            return None
        kept = np.empty(len(self.feature), np.uint32 if largest <= 32 else np.uint64)
        nodes = self.feature, self.threshold, self.missing_left, self.left, self.right
        place, thresholds = np.empty(len(kept), np.int64), np.empty_like(self.threshold)
        plan: Any = place, thresholds, kept, np.empty(len(self.node_starts) - 1, np.int64)
        _plan(*nodes, self.node_starts, *plan)
        values = self.value, self.node_starts, self.leaf_starts
        kind = _WALKED_32 if largest <= 32 else _WALKED_64
        whole = types.void(read_only(F4_2D), kind, I8, F8_1D, I1_1D)
        score_block = address(_score_block, _score_signature(kind))
        return ready(_predict_by_bits, whole), Walked(*plan, *map(_frozen, values)), score_block


_KINDS = {
    "feature": np.int32, "threshold": np.float32, "missing_left": np.bool_, "left": np.int32, "right": np.int32, "value": np.float64,
    "documents": np.int64, "node_starts": np.int64, "leaf_starts": np.int64, "gain": np.float64, "n_codes": np.int32, "codes": np.float32,
}  # fmt: skip


def _require_wholes(column: Floats32, feature: int) -> None:
    wrong = np.flatnonzero(np.isfinite(column) & (column != np.floor(column)))
    if len(wrong):
        raise ValueError(
            f"row {wrong[0]}, column {feature} is categorical and has the value {column[wrong[0]]:g}; categories are whole numbers"
        )


@dataclass(frozen=True)
class OfNumbers:
    """Trees without codes: a node that had some asks a column of its own, 0 where the row has one of them, missing where x is, and otherwise
    1. These columns stand before the features.

    Attributes:
        trees: that count features so.
        known: of each feature with codes all of them, rising.
        columns: of each feature with codes, ``float32 [codes + 1, columns]``; the last row is that of all other values.
    """

    trees: Trees
    known: Mapping[int, Floats32]
    columns: Mapping[int, Floats32]

    @classmethod
    def of(cls, trees: Trees) -> "OfNumbers":
        """Those of trees that may have codes."""
        own = trees.codes_of
        nodes = np.array([*own], np.int64)
        known: dict[int, Floats32] = {}
        columns: dict[int, Floats32] = {}
        places, n_columns = np.zeros(len(trees.feature), np.int64), 0
        for f in np.unique(trees.feature[nodes]).tolist():
            of_feature = [node for node in own if trees.feature[node] == f]
            distinct = {own[node].tobytes(): own[node] for node in of_feature}
            known[f] = np.unique(np.concatenate(list(distinct.values())))
            columns[f] = np.ones((len(known[f]) + 1, len(distinct)), np.float32)
            for k, codes in enumerate(distinct.values()):
                columns[f][np.searchsorted(known[f], codes), k] = 0.0
            at = {codes: n_columns + k for k, codes in enumerate(distinct)}
            for node in of_feature:
                places[node] = at[own[node].tobytes()]
            n_columns += len(distinct)
        with_codes = trees.n_codes > 0
        feature = np.where(with_codes, places, trees.feature + n_columns).astype(np.int32)
        threshold = np.where(with_codes, np.float32(0.5), trees.threshold)
        asked = replace(trees, feature=feature, threshold=threshold, n_codes=np.zeros_like(trees.n_codes), codes=trees.codes[:0])
        return cls(asked, known, columns)

    def blocks(self, features: Floats32) -> Iterator[Floats32]:
        """The columns and the features of some rows at a time, ``float32 [rows, columns + features]``."""
        n_columns = sum(columns.shape[1] for columns in self.columns.values())
        width = n_columns + features.shape[1]
        rows = max(_NUMBERS_AT_A_TIME // max(width, 1), 1)
        for first in range(0, max(len(features), 1), rows):
            block = features[first : first + rows]
            wide, at = np.empty((len(block), width), np.float32), 0
            wide[:, n_columns:] = block
            for f, known in self.known.items():
                place = np.searchsorted(known, block[:, f]).clip(max=len(known) - 1)
                end = at + self.columns[f].shape[1]
                wide[:, at:end] = self.columns[f][np.where(known[place] == block[:, f], place, len(known))]
                wide[np.isnan(block[:, f]), at:end] = np.nan
                at = end
            yield wide


def _frozen(array: Array) -> Array:
    """A view that cannot be written to, as memory-mapped arrays cannot: records are compiled for one of both."""
    view = array.view()
    view.flags.writeable = False
    return view


def documents_below(trees: Trees) -> Ints:
    """Training documents below each node, ``int64 [nodes]``."""
    below = np.zeros(len(trees.feature), np.int64)
    for first, last, leaf in zip(trees.node_starts[:-1], trees.node_starts[1:], trees.leaf_starts[:-1], strict=True):
        for node in range(last - 1, first - 1, -1):  # children have higher numbers than their parents
            children = trees.left[node], trees.right[node]
            below[node] = sum(below[first + child] if child >= 0 else trees.documents[leaf + ~child] for child in children)
    return below


def join(trees: list[Trees]) -> Trees:
    """One ensemble of the trees of many, in order."""

    def starts(parts: list[Ints]) -> Ints:
        return offsets_from_sizes(np.concatenate([np.diff(p) for p in parts] or [np.empty(0, np.int64)]))

    def flat(name: str) -> Array:
        return np.concatenate([getattr(t, name) for t in trees] or [np.empty(0, _KINDS[name])])

    of_trees = {name: starts([getattr(t, name) for t in trees]) for name in ("node_starts", "leaf_starts")}
    arrays: dict[str, Array] = {name: of_trees[name] if name in of_trees else flat(name) for name in _KINDS}
    return Trees(**arrays)


@inner()
def _leaf_ranges(left: Ints32, right: Ints32, first: Ints, middle: Ints, last: Ints) -> bool:
    """Of each node of one tree the first and the last leaf below it, and the last one below its left child.

    False where a child does not come after its node, or leaves are not numbered 0, 1, 2 … from left to right, each of them once: those
    below a node's right child follow those below its left one.
    """
    n = len(left)
    for node in range(n - 1, -1, -1):
        a, b = left[node], right[node]
        if (a >= 0 and not node < a < n) or (b >= 0 and not node < b < n):
            return False
        first[node], middle[node] = (first[a], last[a]) if a >= 0 else (~a, ~a)
        follows, last[node] = (first[b], last[b]) if b >= 0 else (~b, ~b)
        if middle[node] + 1 != follows:
            return False
    return n == 0 or (first[0] == 0 and last[0] == n)


@njit(cache=True)
def _in_order(left: Ints32, right: Ints32, node_starts: Ints) -> bool:
    """Whether `_leaf_ranges` finds nodes and leaves of every tree in order."""
    ranges = np.empty((3, len(left)), np.int64)
    for tree in range(len(node_starts) - 1):
        own = slice(node_starts[tree], node_starts[tree + 1])
        if not _leaf_ranges(left[own], right[own], ranges[0, own], ranges[1, own], ranges[2, own]):
            return False
    return True


@inner()
def _leaf(
    x: Floats32,
    tree: int,
    feature: Ints32,
    threshold: Floats32,
    missing_left: Bools,
    left: Ints32,
    right: Ints32,
    node_starts: Ints,
    leaf_starts: Ints,
) -> int:
    """The leaf of a tree that one row falls into, as a position among all leaves of the ensemble."""
    base = node_starts[tree]
    node = 0 if node_starts[tree + 1] > base else -1
    while node >= 0:
        value = x[feature[base + node]]
        goes_left = missing_left[base + node] if np.isnan(value) else value <= threshold[base + node]
        node = left[base + node] if goes_left else right[base + node]
    first: int = leaf_starts[tree]
    return first + ~node


_BLOCK = 8 * ROWS


@njit(cache=True, parallel=True)
def _predict(
    features: Floats32,
    feature: Ints32,
    threshold: Floats32,
    missing_left: Bools,
    left: Ints32,
    right: Ints32,
    value: Floats,
    node_starts: Ints,
    leaf_starts: Ints,
    scores: Floats,
    infinite: Bools,
) -> None:
    for block in prange(len(infinite)):
        rows = features[block * _BLOCK : block * _BLOCK + _BLOCK]
        infinite[block] = np.isinf(rows).any()
        for row in range(len(rows)):
            total = 0.0
            for tree in range(len(node_starts) - 1):
                total += value[_leaf(rows[row], tree, feature, threshold, missing_left, left, right, node_starts, leaf_starts)]
            scores[block * _BLOCK + row] = total


@njit(cache=True)
def _plan(
    feature: Ints32,
    threshold: Floats32,
    missing_left: Bools,
    left: Ints32,
    right: Ints32,
    node_starts: Ints,
    place: Ints,
    thresholds: Floats32,
    kept: Words | Words32,
    middle: Ints,
) -> None:
    """Writes what `walk` takes: the nodes of a tree where missing values go right, then from `middle` on those where they go left.

    `kept`: all bits but those of the leaves below a node's left child; leaves are numbered from left to right.
    """
    ones, ranges = ~np.uint64(0), np.empty((3, len(feature)), np.int64)
    for tree in range(len(middle)):
        base, end = node_starts[tree], node_starts[tree + 1]
        middle[tree] = end - missing_left[base:end].sum()
        rights, lefts = base, middle[tree]
        _leaf_ranges(left[base:end], right[base:end], ranges[0, base:end], ranges[1, base:end], ranges[2, base:end])
        for node in range(base, end):
            first, last = ranges[0, node], ranges[1, node]
            to = lefts if missing_left[node] else rights
            lefts, rights = lefts + missing_left[node], rights + (not missing_left[node])
            kept[to] = ~((ones >> np.uint64(63 - (last - first))) << np.uint64(first))
            place[to], thresholds[to] = feature[node] * ROWS, threshold[node]


@inner()
def _lay(rows: Floats32, columns: Floats32) -> bool:
    """Writes rows as columns of ROWS numbers; returns whether any is infinite. The last sixteen columns overlap those before them."""
    flat, (n, width), infinite = rows.reshape(-1), rows.shape, False
    if n == ROWS and width >= LANES:
        for row in range(0, ROWS, LANES):
            for lane in range(0, width, LANES):
                column = min(lane, width - LANES)
                infinite |= turn(flat, row * width + column, width, columns, column * ROWS + row)
    else:
        for row in range(n):
            for column in range(width):
                columns[column * ROWS + row] = rows[row, column]
                infinite |= np.isinf(rows[row, column])
    return infinite


_LINE = 16
"""Floats of a cache line of 64 bytes."""


class Walked(NamedTuple):
    """An ensemble as `walk` takes it: what `_plan` writes, and values, first node and first leaf of each tree."""

    place: Ints
    threshold: Floats32
    kept: Words | Words32
    middle: Ints
    value: Floats
    node_starts: Ints
    leaf_starts: Ints


_WALKED_32, _WALKED_64 = (
    record_type(Walked, I8_1D, F4_1D, types.Array(kept, 1, "C"), I8_1D, read_only(F8_1D), read_only(I8_1D), read_only(I8_1D))
    for kept in (types.uint32, types.uint64)
)


@njit(cache=True)
def _score_block(features: Floats32, first: int, last: int, trees: Walked, scores: Floats) -> bool:
    """Scores of the rows `first` to `last`; returns whether any number is infinite.

    ROWS at a time; while they go through the trees, those that follow are prefetched. Columns are aligned to cache lines.
    """
    flat, ahead, n_trees = features.reshape(-1), ROWS * features.shape[1], len(trees.middle)
    place, threshold, kept, middle, node_starts = trees.place, trees.threshold, trees.kept, trees.middle, trees.node_starts
    per_tree = -(-ahead // (_LINE * max(n_trees, 1))) * _LINE
    room = np.zeros(ahead + _LINE, np.float32)
    columns, leaf = room[(-room.ctypes.data % 64) // 4 :], np.empty(ROWS, kept.dtype)
    infinite = False
    for begin in range(first, last, ROWS):
        rows = features[begin : min(begin + ROWS, last)]
        infinite |= _lay(rows, columns)
        totals, following = np.zeros(ROWS), (begin + ROWS) * features.shape[1]
        for tree in range(n_trees):
            walk(columns, place, threshold, kept, node_starts[tree], middle[tree], node_starts[tree + 1], leaf)
            for number in range(following + tree * per_tree, following + tree * per_tree + per_tree, _LINE):
                prefetch(flat, number)
            values = trees.value[trees.leaf_starts[tree] : trees.leaf_starts[tree + 1]]
            for row in range(np.uint64(ROWS)):
                totals[row] += values[np.uint64(leaf[row])]
        for row in range(len(rows)):
            scores[begin + row] = totals[row]
    return infinite


def _score_signature(trees: NumbaType) -> NumbaType:
    return I1(read_only(F4_2D), I8, I8, trees, F8_1D)


_score_kernel = kernel_for(_score_signature)


@njit(cache=True, parallel=True)
def _predict_by_bits(features: Floats32, trees: Walked, score_block: Address, scores: Floats, infinite: Bools) -> None:
    """For trees of at most 64 leaves, bits of 32 or 64 as `kept` is, by `_score_block`."""
    for block in prange(len(infinite)):
        first, last = block * _BLOCK, min(block * _BLOCK + _BLOCK, len(features))
        infinite[block] = _score_kernel(score_block, trees)(features, first, last, trees, scores)


@njit(cache=True, parallel=True)
def _leaves(
    features: Floats32,
    feature: Ints32,
    threshold: Floats32,
    missing_left: Bools,
    left: Ints32,
    right: Ints32,
    node_starts: Ints,
    leaf_starts: Ints,
    leaves: Ints32,
) -> None:
    for row in prange(len(features)):
        for tree in range(len(node_starts) - 1):
            leaves[row, tree] = _leaf(features[row], tree, feature, threshold, missing_left, left, right, node_starts, leaf_starts)


@njit(cache=True, parallel=True)
def _leaf_sums(leaves: Ints32, first: int, values: Floats, out: Floats) -> None:
    """out[k, d] = Σ_trees values[leaf of document first + d, k], trees in order."""
    for tile in prange((out.shape[1] + 63) // 64):
        a, b = tile * 64, min(tile * 64 + 64, out.shape[1])
        sums = np.zeros((b - a, values.shape[1]))
        for d in range(b - a):
            for tree in range(leaves.shape[1]):
                leaf = leaves[first + a + d, tree]
                for k in range(values.shape[1]):
                    sums[d, k] += values[leaf, k]
        for k in range(values.shape[1]):
            for d in range(b - a):
                out[k, a + d] = sums[d, k]
