"""What each feature contributes to an ensemble of trees: overall (importance), and to each score (exact TreeSHAP).

The Shapley value of feature f for a document is the mean, over all orders in which features become known, of what knowing f adds to
the expected score; the expectation goes down both sides of a split by an unknown feature, in the shares of the training documents
that went there (Lundberg et al. 2018, "path dependent"; LightGBM's ``pred_contrib``). For a leaf and the distinct features of its
path, let z_f be the share of documents that f's splits let through and o_f = 1 where the document itself passes them all, else 0. Its
value v is reached, with the features S known, with weight Π_{f∈S} o_f · Π_{f∉S} z_f, so that f contributes

    v · (o_f − z_f) · Σ_k  k!(d−k−1)!/d! · c_k,       c_k = coefficient of y^k in Π_{g≠f} (z_g + o_g·y),      d features on the path.

The sum is ∫₀¹ Π_{g≠f} (z_g(1−t) + o_g·t) dt: a polynomial of degree d − 1, which a Gauss–Legendre rule of ⌈d/2⌉ points integrates exactly.
So a leaf needs the product at a few points, and each feature one division: there is no recursion over subsets, only sums.
"""

from itertools import pairwise

import numpy as np
from numba import njit, prange

from ltr.data.offsets import offsets_from_sizes
from ltr.kernels.kernel import Bools, Floats, Floats32, Ints, Ints32
from ltr.trees.ensemble import Trees


def importance(trees: Trees, n_features: int, by: str = "gain") -> Floats:
    """How much each feature was split by, ``float64 [features]``: the sum of gains (``gain``), or the number of splits (``splits``).

    Raises:
        ValueError: for another `by`.
    """
    weights: dict[str, Floats] = {"gain": trees.gain, "splits": np.ones(len(trees.gain))}
    if by not in weights:
        raise ValueError(f"importance by {by!r}; choose from: {', '.join(weights)}")
    return np.bincount(trees.feature, weights[by], n_features).astype(np.float64)


def shapley(trees: Trees, features: Floats32) -> Floats:
    """Shapley values ``float64 [documents, features + 1]``; the last column is the expected score, and a row sums to the score.

    Raises:
        ValueError: for a category that is no whole number.
    """
    trees.require_categories(features)
    values = np.zeros((len(features), features.shape[1] + 1))
    paths = _Paths(trees)
    values[:, -1] = paths.expected
    if paths.longest:  # trees of one leaf give all documents the expected score
        points, weights = np.polynomial.legendre.leggauss((paths.longest + 1) // 2)
        row, asked, blocks = 0, trees, iter((np.ascontiguousarray(features, np.float32),))
        if len(trees.codes):
            asked, blocks = trees.of_numbers.trees, trees.of_numbers.blocks(features)
        for block in blocks:
            _add_shapley(
                block, asked.feature, asked.threshold, asked.missing_left, trees.value,
                paths.node, paths.goes_left, paths.slot, paths.starts, paths.features, paths.shares, paths.firsts,
                0.5 * (points + 1), 0.5 * weights, values[row : row + len(block)],
            )  # fmt: skip
            row += len(block)
    return values


class _Paths:
    """The path to every leaf, leaf after leaf. Steps ``starts[l]:starts[l + 1]`` are its nodes, the side taken and the position (`slot`)
    of the node's feature among the leaf's distinct ones, ``firsts[l]:firsts[l + 1]`` of `features`, with their `shares`."""

    def __init__(self, trees: Trees) -> None:
        self.expected = 0.0
        for first, last in pairwise(trees.leaf_starts.tolist()):
            sizes = trees.documents[first:last]
            self.expected += float((sizes / sizes.sum() * trees.value[first:last]).sum())
        leaf, self.node, self.goes_left, self.starts = _steps(trees)
        feature, through = trees.feature[self.node], _shares(trees, leaf, self.node)
        _, first_step, of_step = np.unique(leaf * (feature.max(initial=0) + 1) + feature, return_index=True, return_inverse=True)
        order = np.argsort(first_step)  # leaf after leaf, features as the path comes to them
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        self.features = feature[first_step[order]].astype(np.int64)
        self.firsts = offsets_from_sizes(np.bincount(leaf[first_step], minlength=len(trees.value)))
        self.slot = number[of_step] - self.firsts[leaf]
        self.shares = np.ones(len(order))
        np.multiply.at(self.shares, number[of_step], through)
        self.longest = int(np.diff(self.firsts).max(initial=0))


def _steps(trees: Trees) -> tuple[Ints, Ints, Bools, Ints]:
    """All steps from roots to leaves, leaf after leaf: the leaf, the node and whether the step goes left, ``[steps]`` each; and where each leaf's
    begin, ``int64 [leaves + 1]``. All leaves walk up to their roots at once."""
    n_nodes, n_leaves = len(trees.feature), len(trees.value)
    of_tree = np.repeat(np.arange(trees.n_trees), np.diff(trees.node_starts))
    parent, is_left = np.full(n_nodes + n_leaves, -1), np.zeros(n_nodes + n_leaves, np.bool_)  # leaves behind nodes
    for side, left in ((trees.left, True), (trees.right, False)):
        child = np.where(side >= 0, trees.node_starts[of_tree] + side, n_nodes + trees.leaf_starts[of_tree] + ~side)
        parent[child], is_left[child] = np.arange(n_nodes), left
    leaf, at, levels = np.arange(n_leaves), np.arange(n_nodes, n_nodes + n_leaves), []
    while len(leaf := leaf[parent[at] >= 0]):
        at = at[parent[at] >= 0]
        levels.append((leaf, parent[at], is_left[at]))
        at = parent[at]
    depths = np.bincount(np.concatenate([reached for reached, _, _ in levels] or [leaf]), minlength=n_leaves)
    starts = offsets_from_sizes(depths)
    leaves, nodes, lefts = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64), np.empty(starts[-1], np.bool_)
    for k, (leaf, node, goes_left) in enumerate(levels, 1):
        place = starts[leaf + 1] - k
        leaves[place], nodes[place], lefts[place] = leaf, node, goes_left
    return leaves, nodes, lefts, starts


def _shares(trees: Trees, leaf: Ints, node: Ints) -> Floats:
    """The share of a node's documents that each of these `_steps` lets through, ``float64 [steps]``."""
    below = np.zeros(len(trees.feature), np.int64)
    np.add.at(below, node, trees.documents[leaf])
    after = trees.documents[leaf].astype(np.float64)  # behind the last step of a leaf
    inner = np.flatnonzero(leaf[1:] == leaf[:-1])
    after[inner] = below[node[inner + 1]]
    return after / below[node]


@njit(cache=True, parallel=True)
def _add_shapley(
    features: Floats32,
    feature: Ints32,
    threshold: Floats32,
    missing_left: Bools,
    value: Floats,
    node: Ints,
    goes_left: Bools,
    slot: Ints,
    starts: Ints,
    path_features: Ints,
    shares: Floats,
    firsts: Ints,
    points: Floats,
    weights: Floats,
    values: Floats,
) -> None:
    n_points, longest = len(points), 0
    for leaf in range(len(starts) - 1):
        longest = max(longest, firsts[leaf + 1] - firsts[leaf])
    for row in prange(len(features)):
        passes, product = np.empty(longest, np.bool_), np.empty(n_points)
        for leaf in range(len(starts) - 1):
            depth = firsts[leaf + 1] - firsts[leaf]
            passes[:depth] = True
            for step in range(starts[leaf], starts[leaf + 1]):
                x = features[row, feature[node[step]]]
                left = missing_left[node[step]] if np.isnan(x) else x <= threshold[node[step]]
                passes[slot[step]] &= left == goes_left[step]
            own = shares[firsts[leaf] : firsts[leaf + 1]]
            product[:] = value[leaf]
            for k in range(depth):
                for p in range(n_points):
                    product[p] *= own[k] * (1 - points[p]) + (points[p] if passes[k] else 0.0)
            for k in range(depth):
                total = 0.0
                for p in range(n_points):
                    total += weights[p] * product[p] / (own[k] * (1 - points[p]) + (points[p] if passes[k] else 0.0))
                values[row, path_features[firsts[leaf] + k]] += total * ((1.0 if passes[k] else 0.0) - own[k])
