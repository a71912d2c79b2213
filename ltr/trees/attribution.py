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

import numpy as np
from numba import njit, prange

from ltr.kernels.kernel import Bools, Floats, Floats32, Ints, Ints32
from ltr.trees.ensemble import Trees, documents_below


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
        steps: list[tuple[int, bool, int]] = []
        starts, firsts, features, shares = [0], [0], [], []
        self.expected, of_nodes = 0.0, documents_below(trees)
        for tree in range(trees.n_trees):
            base, leaf = int(trees.node_starts[tree]), int(trees.leaf_starts[tree])
            sizes = trees.documents[leaf : trees.leaf_starts[tree + 1]]
            below = of_nodes[base : trees.node_starts[tree + 1]]
            self.expected += float((sizes / sizes.sum() * trees.value[leaf : leaf + len(sizes)]).sum())
            ways: list[tuple[int, list[tuple[int, bool]], dict[int, float]]] = [(0 if len(sizes) > 1 else -1, [], {})]
            found: dict[int, tuple[list[tuple[int, bool]], dict[int, float]]] = {}
            while ways:
                node, way, own = ways.pop()
                if node < 0:
                    found[~node] = way, own
                    continue
                f = int(trees.feature[base + node])
                for child, is_left in ((trees.left[base + node], True), (trees.right[base + node], False)):
                    through = float(below[child] if child >= 0 else sizes[~child]) / float(below[node])
                    ways.append((int(child), [*way, (base + node, is_left)], {**own, f: own.get(f, 1.0) * through}))
            for k in range(len(sizes)):
                way, own = found[k]
                slots = {f: slot for slot, f in enumerate(own)}
                steps += [(node, is_left, slots[int(trees.feature[node])]) for node, is_left in way]
                starts.append(len(steps))
                features += list(own)
                shares += list(own.values())
                firsts.append(len(features))
        self.node = np.array([node for node, _, _ in steps], np.int64)
        self.goes_left = np.array([is_left for _, is_left, _ in steps], np.bool_)
        self.slot = np.array([slot for _, _, slot in steps], np.int64)
        self.starts, self.firsts = np.array(starts), np.array(firsts)
        self.features, self.shares = np.array(features, np.int64), np.array(shares, np.float64)
        self.longest = int(np.diff(self.firsts).max(initial=0))


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
