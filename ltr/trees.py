"""An ensemble of regression trees: its arrays, its scores, and which leaf a document falls into."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ltr.optimality import Surface


@dataclass(frozen=True)
class Trees:
    """An ensemble as flat arrays; tree k has the nodes ``node_starts[k]:node_starts[k + 1]`` and likewise leaves.

    A row goes ``left`` where ``x ≤ threshold``, and with a missing value where `missing_left` says so. A child c ≥ 0 is a node,
    c < 0 the leaf ``~c``, both counted within the tree. The score is the sum of one `value` a tree. `documents`: how many of those
    it was grown on fell into each leaf.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]
    documents: NDArray[np.int64]
    node_starts: NDArray[np.int64]
    leaf_starts: NDArray[np.int64]
    gain: NDArray[np.float64]

    @staticmethod
    def restored(arrays: Mapping[str, NDArray[Any]], n_features: int) -> "Trees":
        """Of arrays from outside.

        Raises:
            ValueError: where a walk through them would leave them, or never end.
        """
        trees = Trees(**arrays)
        nodes, leaves = np.diff(trees.node_starts), np.diff(trees.leaf_starts)
        fine = trees.node_starts[0] == trees.leaf_starts[0] == 0 and (nodes >= 0).all() and (leaves == nodes + 1).all()
        fine = fine and trees.node_starts[-1] == len(trees.feature) and trees.leaf_starts[-1] == len(trees.value)
        fine = fine and all(
            len(getattr(trees, name)) == len(trees.feature) for name in ("threshold", "missing_left", "left", "right")
        )
        if fine:
            place = np.arange(len(trees.feature)) - np.repeat(trees.node_starts[:-1], nodes)
            size = np.repeat(nodes, nodes)
            fine = ((trees.feature >= 0) & (trees.feature < n_features)).all()
            for child in (trees.left, trees.right):
                fine = fine and (np.where(child >= 0, (child > place) & (child < size), ~child <= size)).all()
        if not fine:
            raise ValueError(f"arrays that are no trees on {n_features} features")
        return trees

    @property
    def n_trees(self) -> int:
        return len(self.node_starts) - 1

    def first(self, n_trees: int) -> "Trees":
        """The first `n_trees` trees."""
        return self.between(0, n_trees)

    def between(self, begin: int, end: int) -> "Trees":
        """The trees `begin` to `end`, that one left out."""
        nodes = slice(self.node_starts[begin], self.node_starts[end])
        leaves = slice(self.leaf_starts[begin], self.leaf_starts[end])
        of_nodes = {name: getattr(self, name)[nodes] for name in ("feature", "threshold", "missing_left", "left", "right", "gain")}
        of_trees = {name: getattr(self, name)[begin : end + 1] for name in ("node_starts", "leaf_starts")}
        starts = {name: places - places[0] for name, places in of_trees.items()}
        return Trees(**of_nodes, **starts, value=self.value[leaves], documents=self.documents[leaves])

    def leaves(self, features: NDArray[np.float32]) -> NDArray[np.int32]:
        """Which leaf each document falls into, ``int32 [documents, trees]``, as places in `value`."""
        leaves = np.empty((len(features), self.n_trees), np.int32)
        _leaves(
            np.ascontiguousarray(features, np.float32), self.feature, self.threshold, self.missing_left, self.left, self.right,
            self.node_starts, self.leaf_starts, leaves,
        )  # fmt: skip
        return leaves

    def surface(self, features: NDArray[np.float32], offset: NDArray[np.float64]) -> Surface:
        """Scores, `offset` included, as a function of the vector of leaf values, the trees' shapes as they are."""
        leaves = self.leaves(features)

        def slopes(first: int, last: int, points: NDArray[np.float64]) -> NDArray[np.float64]:
            out = np.empty((len(points), last - first))
            _leaf_sums(leaves, first, np.ascontiguousarray(points.T), out)
            return out

        def scores(first: int, last: int, directions: NDArray[np.float64], steps: NDArray[np.float64]) -> NDArray[np.float64]:
            here = offset[first:last] + slopes(first, last, self.value[None])[0]
            return np.asarray(here + steps[:, None] * slopes(first, last, directions)[:, None, :])

        if offset.any():
            return Surface(self.value.copy(), len(features), scores=scores)
        return Surface(self.value.copy(), len(features), slopes=slopes)

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Scores ``float64 [documents]`` of ``features float32 [documents, features]``.

        Raises:
            ValueError: for an infinite feature.
        """
        scores, infinite = np.empty(len(features)), np.zeros(-(-len(features) // _ROWS), np.bool_)
        features = np.ascontiguousarray(features, np.float32)
        arrays = (self.value, self.node_starts, self.leaf_starts, scores, infinite)
        self._score(features, arrays)
        if infinite.any():
            first = int(np.argmax(infinite)) * _ROWS
            row, feature = np.argwhere(np.isinf(features[first : first + _ROWS]))[0]
            raise ValueError(f"feature {feature + 1} of row {first + row} is infinite; trees read finite or missing (NaN) values")
        return scores

    def _score(self, features: NDArray[np.float32], arrays: Any) -> None:
        largest = np.diff(self.leaf_starts).max(initial=0)
        if largest > 64:
            _predict(features, self.feature, self.threshold, self.missing_left, self.left, self.right, *arrays)
            return
        gone = np.empty(len(self.feature), np.uint64)
        _left_leaves(self.left, self.right, self.node_starts, gone)
        kept = ~gone if largest > 32 else (~gone).astype(np.uint32)
        used, column = np.unique(self.feature, return_inverse=True)
        _predict_by_bits(features, used, column, self.threshold, self.missing_left, kept, *arrays)


def join(trees: list[Trees]) -> Trees:
    """One ensemble of many."""

    def starts(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        return np.concatenate(
            (np.zeros(1, np.int64), np.cumsum(np.concatenate([np.diff(p) for p in parts] or [np.empty(0, np.int64)])))
        )

    def flat(name: str, dtype: type) -> NDArray[Any]:
        return np.concatenate([getattr(t, name) for t in trees] or [np.empty(0, dtype)])

    return Trees(
        feature=flat("feature", np.int32),
        threshold=flat("threshold", np.float32),
        missing_left=flat("missing_left", np.bool_),
        left=flat("left", np.int32),
        right=flat("right", np.int32),
        value=flat("value", np.float64),
        documents=flat("documents", np.int64),
        node_starts=starts([t.node_starts for t in trees]),
        leaf_starts=starts([t.leaf_starts for t in trees]),
        gain=flat("gain", np.float64),
    )


@njit(cache=True)
def _leaf(x, tree, feature, threshold, missing_left, left, right, node_starts, leaf_starts):
    """Where one row falls in a tree: the leaf's place among all leaves of the ensemble."""
    base = node_starts[tree]
    node = 0 if node_starts[tree + 1] > base else -1
    while node >= 0:
        value = x[feature[base + node]]
        goes_left = missing_left[base + node] if np.isnan(value) else value <= threshold[base + node]
        node = left[base + node] if goes_left else right[base + node]
    return leaf_starts[tree] + ~node


_ROWS = 256
_APART = 16
"""Numbers between columns: at a power of two, all of a row would fall into the same few lines of the processor's cache."""


_SIZE, _INFINITE = np.int32(0x7FFFFFFF), np.float32(np.inf).view(np.int32)


@njit(cache=True)
def _any_infinite(row):
    """By the bits of the floats, which run in vector lanes; those of NaN are larger."""
    largest = np.int32(0)
    bits = row.view(np.int32)
    for k in range(np.uint64(len(bits))):
        size = bits[k] & _SIZE
        largest = max(largest, size if size <= _INFINITE else np.int32(0))
    return largest == _INFINITE


@njit(cache=True, parallel=True)
def _predict(features, feature, threshold, missing_left, left, right, value, node_starts, leaf_starts, scores, infinite):
    for block in prange(len(infinite)):
        for row in range(block * _ROWS, min(block * _ROWS + _ROWS, len(features))):
            infinite[block] |= _any_infinite(features[row])
            total = 0.0
            for tree in range(len(node_starts) - 1):
                total += value[_leaf(features[row], tree, feature, threshold, missing_left, left, right, node_starts, leaf_starts)]
            scores[row] = total


@njit(cache=True)
def _left_leaves(left, right, node_starts, leaves):
    """leaves[node]: bits of the leaves below a node's left child; leaves are numbered from left to right."""
    ones = ~np.uint64(0)
    for tree in range(len(node_starts) - 1):
        base = node_starts[tree]
        for node in range(base, node_starts[tree + 1]):
            first = last = left[node]
            while first >= 0:
                first = left[base + first]
            while last >= 0:
                last = right[base + last]
            leaves[node] = (ones >> np.uint64(63 - (~last - ~first))) << np.uint64(~first)


@njit(cache=True, parallel=True)
def _predict_by_bits(features, used, column, threshold, missing_left, kept, value, node_starts, leaf_starts, scores, infinite):
    """For trees of at most 64 leaves (QuickScorer, Lucchese 2015): a row keeps one bit a leaf; every node where it goes right takes
    away the leaves on the left, all but `kept`; the lowest bit that stays is its leaf. 64 rows go through a node together, without a
    branch; bits are of 32 or 64 as `kept` is."""
    n, every = len(features), ~np.zeros(1, kept.dtype)[0]
    for block in prange(len(infinite)):
        first, size = block * _ROWS, min(_ROWS, n - block * _ROWS)
        columns, alive = np.zeros((len(used), _ROWS + _APART), np.float32), np.empty(_ROWS, kept.dtype)
        leaf, totals = np.empty(_ROWS, np.int64), np.zeros(_ROWS)
        for row in range(size):
            infinite[block] |= _any_infinite(features[first + row])
            for c in range(len(used)):
                columns[c, row] = features[first + row, used[c]]
        for tree in range(len(node_starts) - 1):
            alive[:] = every
            for node in range(node_starts[tree], node_starts[tree + 1]):
                x, edge, stay = columns[column[node]], threshold[node], kept[node]
                if missing_left[node]:
                    for row in range(np.uint64(_ROWS)):
                        alive[row] &= stay if x[row] > edge else every
                else:
                    for row in range(np.uint64(_ROWS)):
                        alive[row] &= every if x[row] <= edge else stay
            values = value[leaf_starts[tree] : leaf_starts[tree + 1]]
            for row in range(np.uint64(_ROWS)):
                lowest = np.uint64(alive[row]) & (~np.uint64(alive[row]) + np.uint64(1))
                leaf[row] = (np.float64(lowest).view(np.int64) >> 52) - 1023
            for row in range(np.uint64(_ROWS)):
                totals[row] += values[np.uint64(leaf[row])]
        scores[first : first + size] = totals[:size]


@njit(cache=True, parallel=True)
def _leaves(features, feature, threshold, missing_left, left, right, node_starts, leaf_starts, leaves):
    for row in prange(len(features)):
        for tree in range(len(node_starts) - 1):
            leaves[row, tree] = _leaf(features[row], tree, feature, threshold, missing_left, left, right, node_starts, leaf_starts)


@njit(cache=True, parallel=True)
def _leaf_sums(leaves, first, values, out):
    """out[k, d] = Σ_trees values[leaf of document first + d, k], trees in order."""
    for tile in prange((out.shape[1] + 63) // 64):
        a, b = tile * 64, min(tile * 64 + 64, out.shape[1])
        sums = np.zeros((b - a, values.shape[1]))
        for d in range(b - a):
            for tree in range(leaves.shape[1]):
                sums[d] += values[leaves[first + a + d, tree]]
        out[:, a:b] = sums.T
