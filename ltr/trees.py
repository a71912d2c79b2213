"""Regression trees on forces: grown leaf by leaf on histograms of integers, the same for any number of threads.

A tree sees only force and curvature of each document (Friedman 2001; Burges 2010 section 6; Svore 2011 section 3), in fixed
point: one 64-bit integer a document carries the force in its high half and the curvature (Newton gain) or 1 (least squares) in
its low half, so that one addition updates a histogram bin and sums are exact in any order.

    packed  =  force · 2^f  |  curvature · 2^c            Σ packed  =  Σ force  |  Σ curvature
               high 32 bits    low 32 bits                            (no carry: the low sum stays below 2^32)

A child's histogram is built for the smaller child only; its sibling's is the parent's less that.

Newton histograms hold no counts, and the minimum number of documents in a leaf is still exact: the leaf of the highest gain is
divided as found, and only where a side is too small its winning feature is counted, searched again with its counts, and must win
against the other features' bests and then against the other leaves. A gain found without counts is never too low.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ltr.binning import BLOCK, MISSING, Bins
from ltr.optimality import Surface
from ltr.prefetch import prefetch

_LOW = np.int64(0xFFFFFFFF)
_BINS = 256
VANISHED = 1e-100
"""Forces smaller than this are none: every pair is in order by a gap of hundreds."""


@dataclass(frozen=True)
class Trees:
    """An ensemble as flat arrays; tree k has the nodes ``node_starts[k]:node_starts[k + 1]`` and likewise leaves.

    A row goes ``left`` where ``x ≤ threshold``, and with a missing value where `missing_left` says so. A child c ≥ 0 is a node,
    c < 0 the leaf ``~c``, both counted within the tree. The score is the sum of one `value` a tree.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]
    node_starts: NDArray[np.int64]
    leaf_starts: NDArray[np.int64]
    gain: NDArray[np.float64]

    @property
    def n_trees(self) -> int:
        return len(self.node_starts) - 1

    def first(self, n_trees: int) -> "Trees":
        """The first `n_trees` trees."""
        nodes, leaves = self.node_starts[n_trees], self.leaf_starts[n_trees]
        of_nodes = {name: getattr(self, name)[:nodes] for name in ("feature", "threshold", "missing_left", "left", "right", "gain")}
        starts = {name: getattr(self, name)[: n_trees + 1] for name in ("node_starts", "leaf_starts")}
        return Trees(**of_nodes, **starts, value=self.value[:leaves])

    def leaves(self, features: NDArray[np.float32]) -> NDArray[np.int32]:
        """Which leaf each document falls into, ``int32 [documents, trees]``, as places in `value`."""
        leaves = np.empty((len(features), self.n_trees), np.int32)
        _leaves(
            np.ascontiguousarray(features, np.float32), self.feature, self.threshold, self.missing_left, self.left, self.right,
            self.node_starts, self.leaf_starts, leaves,
        )  # fmt: skip
        return leaves

    def surface(self, features: NDArray[np.float32]) -> Surface:
        """Scores as a function of the vector of leaf values, the trees' shapes as they are."""
        leaves = self.leaves(features)

        def slopes(first: int, last: int, points: NDArray[np.float64]) -> NDArray[np.float64]:
            out = np.empty((len(points), last - first))
            _leaf_sums(leaves, first, np.ascontiguousarray(points.T), out)
            return out

        return Surface(self.value.copy(), len(features), slopes=slopes)

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Scores ``float64 [documents]`` of ``features float32 [documents, features]``."""
        scores = np.zeros(len(features))
        predict = _predict_by_bits if np.diff(self.leaf_starts).max(initial=0) <= 64 else _predict
        predict(
            np.ascontiguousarray(features, np.float32), self.feature, self.threshold, self.missing_left, self.left, self.right,
            self.value, self.node_starts, self.leaf_starts, scores,
        )  # fmt: skip
        return scores


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


@njit(cache=True, parallel=True)
def _predict(features, feature, threshold, missing_left, left, right, value, node_starts, leaf_starts, scores):
    for row in prange(len(features)):
        total = 0.0
        for tree in range(len(node_starts) - 1):
            total += value[_leaf(features[row], tree, feature, threshold, missing_left, left, right, node_starts, leaf_starts)]
        scores[row] = total


_ROWS = 64
_ONE = np.uint64(1)


@njit(cache=True)
def _left_leaves(left, right, base, node):
    """Bits of the leaves below a node's left child; leaves are numbered from left to right."""
    first = last = left[base + node]
    while first >= 0:
        first = left[base + first]
    while last >= 0:
        last = right[base + last]
    ones = ~np.uint64(0)
    return (ones >> np.uint64(63 - (~last - ~first))) << np.uint64(~first)


@njit(cache=True, parallel=True)
def _predict_by_bits(features, feature, threshold, missing_left, left, right, value, node_starts, leaf_starts, scores):
    """For trees of at most 64 leaves (QuickScorer, Lucchese 2015): a row keeps one bit a leaf; every node where it goes right takes
    away the leaves on the left; the lowest bit that stays is its leaf. 64 rows go through a node together, without a branch."""
    n, n_nodes = len(features), len(feature)
    used = np.unique(feature)
    column_of = np.searchsorted(used, feature)
    gone = np.empty(n_nodes, np.uint64)
    for tree in range(len(node_starts) - 1):
        for node in range(node_starts[tree], node_starts[tree + 1]):
            gone[node] = _left_leaves(left, right, node_starts[tree], node - node_starts[tree])
    for block in prange((n + _ROWS - 1) // _ROWS):
        first, size = block * _ROWS, min(_ROWS, n - block * _ROWS)
        columns, alive, totals = np.zeros((len(used), _ROWS), np.float32), np.empty(_ROWS, np.uint64), np.zeros(_ROWS)
        for row in range(size):
            for c in range(len(used)):
                columns[c, row] = features[first + row, used[c]]
        for tree in range(len(node_starts) - 1):
            alive[:] = ~np.uint64(0)
            for node in range(node_starts[tree], node_starts[tree + 1]):
                x, edge, kept = columns[column_of[node]], threshold[node], ~gone[node]
                if missing_left[node]:
                    for row in range(np.uint64(_ROWS)):
                        alive[row] &= kept if x[row] > edge else ~np.uint64(0)
                else:
                    for row in range(np.uint64(_ROWS)):
                        alive[row] &= ~np.uint64(0) if x[row] <= edge else kept
            values = value[leaf_starts[tree] : leaf_starts[tree + 1]]
            for row in range(size):
                lowest = alive[row] & (~alive[row] + _ONE)
                totals[row] += values[(np.float64(lowest).view(np.int64) >> 52) - 1023]
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


# --- growing ------------------------------------------------------------------------------------------------------------


def power_of_two_scale(values: NDArray[np.float64], bits: int) -> float:
    """The largest power of two that keeps Σ |values · scale|, rounded, below 2^bits, from exact integer sums."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest < VANISHED:
        return 1.0
    room = 61 - int(np.ceil(np.log2(max(len(values), 2))))
    coarse = 2.0 ** (room - int(np.ceil(np.log2(largest))))
    total = int(_total_size(values, coarse)) + len(values)
    return float(coarse * 2.0 ** (bits - total.bit_length() - 1))


@njit(cache=True)
def _total_size(values, scale):
    total = np.int64(0)
    for k in range(np.uint64(len(values))):
        total += np.int64(np.rint(abs(values[k]) * scale))
    return total


@njit(cache=True, parallel=True)
def _pack(force, weight, force_scale, weight_scale, packed):
    for k in prange(len(force)):
        high, low = np.int64(np.rint(force[k] * force_scale)), np.int64(np.rint(weight[k] * weight_scale))
        packed[k] = (high << np.int64(32)) + low


@njit(cache=True, parallel=True)
def _leaf_totals(force, curvature, scales, rows, starts, leaf, totals):
    """Exact sums of force and curvature of every leaf, and the leaf of every row."""
    for k in prange(len(starts) - 1):
        push, mass = np.int64(0), np.int64(0)
        for row in rows[starts[k] : starts[k + 1]]:
            leaf[row] = k
            push += np.int64(np.rint(force[row] * scales[0]))
            mass += np.int64(np.rint(curvature[row] * scales[1]))
        totals[k, 0], totals[k, 1] = push, mass


@dataclass(frozen=True)
class Grown:
    """One tree and where its documents fell: ``leaf int32 [documents]``."""

    tree: Trees
    leaf: NDArray[np.int32]


def grow(
    binned: NDArray[np.uint8],
    bins: Bins,
    has_missing: NDArray[np.bool_],
    force: NDArray[np.float64],
    curvature: NDArray[np.float64],
    n_leaves: int,
    min_docs_in_leaf: int,
    newton_gain: bool,
    newton_leaf: bool,
    learning_rate: float,
    largest_leaf: float,
) -> Grown | None:
    """One tree along the force; None where no split gains anything (all forces zero, or no admissible split).

    Args:
        binned: ``uint8 [blocks, documents, BLOCK]`` from `apply_bins`, with its `bins`.
        has_missing: ``bool [features]``.
        force, curvature: ``float64 [documents]``.
        newton_gain: split by Σforce²/Σcurvature, otherwise by least squares, Σforce²/count.
        newton_leaf: leaf Σforce/Σcurvature (S section 3), otherwise Σforce/count; times the learning rate.
        largest_leaf: bound on a leaf's size before the learning rate: on badly misranked pairs Σcurvature vanishes.
    """
    n_documents = len(force)
    weight = curvature if newton_gain else np.ones(n_documents)
    force_scale, weight_scale = power_of_two_scale(force, 31), (power_of_two_scale(weight, 32) if newton_gain else 1.0)
    packed = np.empty(n_documents, np.int64)
    _pack(force, weight, force_scale, weight_scale, packed)
    feature, split, missing_left, left, right, gain, rows, leaf_starts = _grow(
        binned,
        np.diff(bins.starts),
        has_missing,
        packed,
        n_leaves,
        max(min_docs_in_leaf, 1),
        newton_gain,
        weight_scale / force_scale**2,
    )
    if len(feature) == 0:
        return None
    leaf = np.empty(n_documents, np.int32)
    values, totals = np.empty(len(leaf_starts) - 1), np.empty((len(leaf_starts) - 1, 2), np.int64)
    scales = power_of_two_scale(force, 62), power_of_two_scale(curvature, 62)
    _leaf_totals(force, curvature, scales, rows, leaf_starts, leaf, totals)
    for k in range(len(values)):
        push = int(totals[k, 0]) / scales[0]
        mass = int(totals[k, 1]) / scales[1] if newton_leaf else float(leaf_starts[k + 1] - leaf_starts[k])
        size = push / mass if mass > 0.0 else 0.0 if push == 0.0 else np.copysign(np.inf, push)
        values[k] = learning_rate * min(max(size, -largest_leaf), largest_leaf)
    tree = Trees(
        feature=feature.astype(np.int32),
        threshold=_threshold(bins, feature, split),
        missing_left=missing_left,
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        value=values,
        node_starts=np.array([0, len(feature)]),
        leaf_starts=np.array([0, len(values)]),
        gain=gain,
    )
    return Grown(tree, leaf)


def _threshold(bins: Bins, feature: NDArray[np.int64], split: NDArray[np.int64]) -> NDArray[np.float32]:
    """The edge above bin `split`; infinity above the last bin, where a split parts values from missing ones."""
    padded = np.append(bins.edges, np.float32(np.inf))
    last = split == np.diff(bins.starts)[feature]
    return padded[np.where(last, len(bins.edges), bins.starts[feature] + split)]


_AHEAD = 32
"""Rows by which memory is asked for before it is read."""
_SPLIT_FROM = 4096
"""Rows from which each block of features is shared by two threads."""


@njit(cache=True)
def _add_rows(words, rows, packed, flat):
    """flat[column, bin] += packed over `rows`, for one block of features. A row's 16 bins are the bytes of two 64-bit words:

    words[row, 0]    b7 b6 b5 b4 b3 b2 b1 b0         words[row, 1]    b15 … b8         b_k: bin of column k
    """
    byte, mask, bins, half = np.uint64(8), np.uint64(255), np.uint64(_BINS), np.uint64(BLOCK // 2 * _BINS)
    n = np.uint64(len(rows))
    for i in range(n):
        ahead = np.int64(rows[min(i + np.uint64(_AHEAD), n - np.uint64(1))])
        prefetch(words, 2 * ahead)
        prefetch(packed, ahead)
        row = np.uint64(rows[i])
        word, low, high = packed[row], words[row, 0], words[row, 1]
        for k in range(np.uint64(BLOCK // 2)):
            flat[k * bins + ((low >> (byte * k)) & mask)] += word
        for k in range(np.uint64(BLOCK // 2)):
            flat[half + k * bins + ((high >> (byte * k)) & mask)] += word


@njit(cache=True, parallel=True)
def _histogram(words, rows, packed, histogram):
    """histogram[f, bin] = Σ packed over `rows`. Sums are integers: the parts may be added in any order."""
    parts = 2 if len(rows) >= _SPLIT_FROM else 1
    flat = np.zeros((words.shape[0] * parts, BLOCK * _BINS), np.int64)
    for task in prange(words.shape[0] * parts):
        part = task % parts
        a, b = len(rows) * part // parts, len(rows) * (part + 1) // parts
        _add_rows(words[task // parts], rows[a:b], packed, flat[task])
    for f in range(histogram.shape[0]):
        first = f % BLOCK * _BINS
        histogram[f] = flat[f // BLOCK * parts, first : first + _BINS]
        if parts == 2:
            histogram[f] += flat[f // BLOCK * parts + 1, first : first + _BINS]


@njit(cache=True)
def _score(force, weight):
    """force²/weight; without weight there is nothing to move."""
    return force * force / weight if weight > 0.0 else 0.0


@njit(cache=True)
def _search(column, counts, counted, n_edges, has_missing, min_docs, by_count):
    """Best split of one feature: (gain, bin, missing goes left), in packed units; gain 0 where none is admissible.

    `counts` per bin are looked at where `counted`; with least squares the low half of a word is the count (`by_count`).
    """
    total = np.int64(0)
    n_total = 0
    for k in range(_BINS):
        total += column[k]
        n_total += counts[k]
    all_force, all_weight = float(total >> 32), float(total & _LOW)
    parent = _score(all_force, all_weight)
    best, best_bin, best_left = 0.0, -1, False
    for missing_left in (False, True):
        if missing_left and not has_missing:
            break
        left = column[MISSING] if missing_left else np.int64(0)
        n_left = counts[MISSING] if missing_left else 0
        for k in range(n_edges + (has_missing and not missing_left)):
            left += column[k]
            n_left += counts[k]
            weight = left & _LOW
            if by_count and (weight < min_docs or all_weight - weight < min_docs):
                continue
            if counted and (n_left < min_docs or n_total - n_left < min_docs):
                continue
            force = float(left >> 32)
            gain = _score(force, float(weight)) + _score(all_force - force, all_weight - float(weight)) - parent
            if gain > best:
                best, best_bin, best_left = gain, k, missing_left
    return best, best_bin, best_left


@njit(cache=True, parallel=True)
def _search_all(histogram, n_edges, has_missing, min_docs, by_count, gains, splits, lefts):
    for f in prange(len(n_edges)):
        gains[f], splits[f], lefts[f] = _search(
            histogram[f], np.zeros(_BINS, np.int64), False, n_edges[f], has_missing[f], min_docs, by_count
        )


@njit(cache=True)
def _best_split(histogram, n_edges, has_missing, min_docs, newton):
    """Best split of a leaf: (gain, feature, bin, missing goes left); ties go to the lower feature and bin. With Newton gain, whose
    histograms do not count, sides may be too small: see `_admissible_split`."""
    n_features = len(n_edges)
    gains, splits, lefts = np.zeros(n_features), np.zeros(n_features, np.int64), np.zeros(n_features, np.bool_)
    _search_all(histogram, n_edges, has_missing, min_docs, not newton, gains, splits, lefts)
    f = np.argmax(gains)
    return gains[f], f, splits[f], lefts[f]


@njit(cache=True)
def _admissible_split(binned, rows, histogram, n_edges, has_missing, min_docs):
    """`_best_split` with at least `min_docs` rows on both sides: the winning feature is counted and searched again, until a counted
    one wins."""
    n_features = len(n_edges)
    gains, splits, lefts = np.zeros(n_features), np.zeros(n_features, np.int64), np.zeros(n_features, np.bool_)
    _search_all(histogram, n_edges, has_missing, min_docs, False, gains, splits, lefts)
    counted = np.zeros(n_features, np.bool_)
    while True:
        f = np.argmax(gains)
        if gains[f] <= 0.0:
            return 0.0, -1, -1, False
        if counted[f]:
            return gains[f], f, splits[f], lefts[f]
        counts = np.zeros(_BINS, np.int64)
        for row in rows:
            counts[binned[f // BLOCK, row, f % BLOCK]] += 1
        gains[f], splits[f], lefts[f] = _search(histogram[f], counts, True, n_edges[f], has_missing[f], min_docs, False)
        counted[f] = True


@njit(cache=True)
def _divide(column, rows, k, split, missing_left, lefts, rights):
    """Rows that go left and rows that go right, both in their order and without a branch; how many go left."""
    n_left = n_right = np.uint64(0)
    n = np.uint64(len(rows))
    for i in range(n):
        prefetch(column, BLOCK * np.int64(rows[min(i + np.uint64(_AHEAD), n - np.uint64(1))]))
        row = rows[i]
        b = column[row, k]
        goes = np.uint64((b <= split) | (missing_left & (b == MISSING)))
        lefts[n_left] = row
        rights[n_right] = row
        n_left += goes
        n_right += np.uint64(1) - goes
    return np.int64(n_left)


@njit(cache=True, parallel=True)
def _partition(binned, rows, lefts, rights, f, split, missing_left):
    """Rows that go left to the front, both sides in their order; how many went left. `lefts` and `rights` are scratch, a row longer
    than `rows`."""
    parts = 2 if len(rows) >= _SPLIT_FROM else 1
    counts, ends = np.zeros(parts, np.int64), np.zeros(parts + 1, np.int64)
    for part in range(parts):
        ends[part + 1] = len(rows) * (part + 1) // parts
    for part in prange(parts):
        a, b = ends[part], ends[part + 1]
        gap = a + part
        counts[part] = _divide(
            binned[f // BLOCK], rows[a:b], f % BLOCK, split, missing_left, lefts[gap : b + part + 1], rights[gap : b + part + 1]
        )
    n_left = counts.sum()
    for part in prange(parts):
        a, b = ends[part], ends[part + 1]
        before, gap = counts[:part].sum(), a + part
        rows[before : before + counts[part]] = lefts[gap : gap + counts[part]]
        at, n_right = n_left + a - before, b - a - counts[part]
        rows[at : at + n_right] = rights[gap : gap + n_right]
    return n_left


@njit(cache=True)
def _grow(binned, n_edges, has_missing, packed, n_leaves, min_docs, newton, unit):
    """Best-first growth. Leaf k owns ``rows[starts[k]:starts[k] + sizes[k]]``; splitting it keeps k for the left child and
    gives the next free number to the right one. ``owner[k]``: the node and side that point at leaf k."""
    n_documents, n_features = binned.shape[1], len(n_edges)
    rows, scratch = np.arange(n_documents).astype(np.int32), np.empty((2, n_documents + 2), np.int32)
    words = binned.view(np.uint64)
    histograms = np.zeros((n_leaves, n_features, _BINS), np.int64)
    starts, sizes = np.zeros(n_leaves, np.int64), np.zeros(n_leaves, np.int64)
    owner, on_right = np.full(n_leaves, -1), np.zeros(n_leaves, np.bool_)
    gains, features, splits = np.zeros(n_leaves), np.full(n_leaves, -1), np.full(n_leaves, -1)
    lefts = np.zeros(n_leaves, np.bool_)
    node_feature, node_split = np.empty(n_leaves - 1, np.int64), np.empty(n_leaves - 1, np.int64)
    node_missing, node_gain = np.zeros(n_leaves - 1, np.bool_), np.zeros(n_leaves - 1)
    children = np.zeros((n_leaves - 1, 2), np.int64)
    sizes[0] = n_documents
    _histogram(words, rows, packed, histograms[0])
    if n_documents >= 2 * min_docs:
        gains[0], features[0], splits[0], lefts[0] = _best_split(histograms[0], n_edges, has_missing, min_docs, newton)
    grown, node = 1, 0
    while grown < n_leaves:
        leaf = np.argmax(gains[:grown])
        if gains[leaf] <= 0.0:
            break
        members = rows[starts[leaf] : starts[leaf] + sizes[leaf]]
        n_left = _partition(binned, members, scratch[0], scratch[1], features[leaf], splits[leaf], lefts[leaf])
        if min(n_left, sizes[leaf] - n_left) < min_docs:
            gains[leaf], features[leaf], splits[leaf], lefts[leaf] = _admissible_split(
                binned, members, histograms[leaf], n_edges, has_missing, min_docs
            )
            continue
        node_feature[node], node_split[node], node_missing[node] = features[leaf], splits[leaf], lefts[leaf]
        node_gain[node] = gains[leaf] * unit
        if owner[leaf] >= 0:
            children[owner[leaf], int(on_right[leaf])] = node
        children[node, 0], children[node, 1] = ~leaf, ~grown
        owner[leaf], on_right[leaf], owner[grown], on_right[grown] = node, False, node, True
        starts[grown], sizes[grown] = starts[leaf] + n_left, sizes[leaf] - n_left
        sizes[leaf] = n_left
        small, large = (leaf, grown) if sizes[leaf] <= sizes[grown] else (grown, leaf)
        parent = histograms[leaf].copy()
        _histogram(words, rows[starts[small] : starts[small] + sizes[small]], packed, histograms[small])
        histograms[large] = parent - histograms[small]
        for k in (leaf, grown):
            gains[k] = 0.0
            if sizes[k] >= 2 * min_docs:
                gains[k], features[k], splits[k], lefts[k] = _best_split(histograms[k], n_edges, has_missing, min_docs, newton)
        grown += 1
        node += 1
    order = np.argsort(starts[:grown])
    number = np.empty(grown, np.int64)
    number[order] = np.arange(grown)
    for k in range(node):
        for side in range(2):
            if children[k, side] < 0:
                children[k, side] = ~number[~children[k, side]]
    leaf_starts = np.append(starts[:grown][order], n_documents)
    return (
        node_feature[:node], node_split[:node], node_missing[:node], children[:node, 0].copy(), children[:node, 1].copy(),
        node_gain[:node], rows, leaf_starts,
    )  # fmt: skip
