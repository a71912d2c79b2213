"""A tree over documents on several machines, many leaves in one round; every machine does the same and comes to the same tree.

XGBoost and LightGBM (``tree_learner=data``) sum the histograms of one leaf, or of one level, after another; LightGBM lets each machine sum and
search a part of the features, and so does this. But here leaves are split before it is known that they will be: what the best split of a leaf
is depends on its own path only, so the order in which leaves are split, best first, is found afterwards, and splits that it never comes to
are forgotten.

    a round      each machine splits the rows it has of several leaves, and sends each machine its features of the left sides' histograms
                 each machine sums what it was sent, what its parents' sums leave are the right sides', and sends every one its best splits

What leaves a machine are sums of integers, counts and splits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from heapq import heappop, heappush
from math import ceil

import numpy as np
from numba import njit

from ltr.kernels.kernel import Bools, Floats, Ints
from ltr.kernels.machines import Machines
from ltr.trees.binning import MISSING, Bins
from ltr.trees.grower import Gradients, Growth
from ltr.trees.histograms import N_BINS, build
from ltr.trees.packing import add_sums, packed
from ltr.trees.partition import BinnedDataset
from ltr.trees.splits import Nodes, SplitSearch, middle_value, restricted, search_all, search_feature, write_sides

LIKELY = 2 / 3
"""The share of the leaves that could be split next that are. Trees of 31 leaves then take 9 rounds and 33 splits; 8 and 41 if all of them
are, 31 and 31 one by one."""
RIVALS = 8
"""Features that are counted at once where the best of them leaves too few documents on a side: the next best often do too."""


@dataclass(eq=False)
class _Leaf:
    """A leaf, or what was one before it was split.

    Attributes:
        rows: its place in `BinnedDataset.leaf_ranges`.
        own: the place of the histograms of its rows here.
        summed: the place of its sums over all machines.
        start: documents on all machines left of it; size: in it; total: their packed sum.
        bounds: of its value, in packed units.
        open_groups: ``bool [groups]``, those of which it may still split by features.
        gain: of its best split, which `feature`, `split` and `missing_left` are; 0 for none. goes_left: ``bool [bins]``, by this split.
        rivals: the features with the best splits, the very best first.
        too_few: the best split leaves too few documents on a side, and rivals have to be counted before they are searched again.
        counted: features that were; counts: of documents in bins, for those of them that are this machine's, by their place there.
        sides: left and right, once it is split.
    """

    rows: int
    own: int
    summed: int
    start: int
    size: int
    total: int
    bounds: Floats
    open_groups: Bools
    gain: float = 0.0
    feature: int = -1
    split: int = -1
    missing_left: bool = False
    goes_left: Bools = field(default_factory=lambda: np.zeros(N_BINS, np.bool_))
    rivals: list[int] = field(default_factory=list)
    too_few: bool = False
    counted: set[int] = field(default_factory=set)
    counts: dict[int, Ints] = field(default_factory=dict)
    sides: tuple["_Leaf", "_Leaf"] | None = None


def in_use(bins: Bins) -> Bools:
    """Which bins of a histogram can be other than zero, ``bool [columns, bins]``; the others are not sent."""
    k, used = np.arange(N_BINS), bins.used[:, None]
    holds: Bools = (k < used) | ((k == MISSING) & (used > 0))
    return holds


def slots(n_leaves: int) -> int:
    """How many leaves there is memory for where the tree shall have so many: half of them may be split for nothing."""
    return 2 * n_leaves


class Rounds:
    """One tree.

    Args:
        gradients: of the documents here, packed, all of them in leaf 0, in memory for `slots` leaves.
        sums: ``int64 [slots, columns, bins]``, memory for this machine's features.
        space: which splits are searched.
    """

    def __init__(self, gradients: Gradients, machines: Machines, sums: Ints, space: SplitSearch) -> None:
        assert isinstance(gradients.data, BinnedDataset)
        self.data, self.machines, self.sums = gradients.data, machines, sums
        self.compiled = self.data.compiled
        used, allowed = in_use(self.data.bins), np.flatnonzero(space.allowed)
        groups = space.groups if len(space.groups) else np.zeros((0, len(space.allowed)), np.bool_)
        shares = [allowed[k :: machines.n] for k in range(machines.n)]
        self.bins_of = [_places(used, space.columns[share], space.columns[share]) for share in shares]
        self.features = own = shares[machines.place]
        self.owner = {feature: (machine, k) for machine, share in enumerate(shares) for k, feature in enumerate(share.tolist())}
        self.own_places = _places(used, space.columns[own], np.arange(len(own)))
        self.space = restricted(space, own)
        self.monotone, self.groups = space.monotone, groups

    def grow(self, n_rows: int, n_leaves: int) -> Growth:
        """The tree that `ltr.trees.grower.best_first` grows of the documents of all machines, `n_rows` of them here."""
        self.free = list(range(slots(n_leaves) - 1, 0, -1))
        self.sums[0] = 0
        head = np.array([n_rows, self.data.histograms[0, 0].sum()])
        (n_documents, total), sums = self._summed([head] * self.machines.n, [0])
        root = _Leaf(0, 0, 0, 0, int(n_documents), int(total), np.array([-np.inf, np.inf]), np.ones(len(self.groups), np.bool_))
        self.sums[0].ravel()[self.own_places] = sums[0]
        self._search([root])
        while True:
            splits, leaves, candidates = replayed(root, n_leaves)
            if not candidates:
                return _growth(splits, leaves)
            to_go = n_leaves - 1 - len(splits)
            room = len(self.free) - to_go + (not candidates[0].too_few)
            candidates = candidates[: ceil(LIKELY * len(candidates))]
            likely = [leaf for leaf in candidates if not leaf.too_few][:room]
            self._round(likely, [leaf for leaf in candidates if leaf.too_few], to_go > 1)

    def _summed(self, heads: list[Ints], places: list[int]) -> tuple[Ints, Ints]:
        """The sums over all machines of what is in `heads` for this one, and of its features of the histograms in these places, ``int64
        [places, bins]``."""
        which, n_bins, n_head = np.array(places, np.int64), len(self.own_places), len(heads[self.machines.place])
        flat = self.data.histograms.reshape(len(self.data.histograms), -1)
        received = self.machines.exchange([
            head if machine == self.machines.place else np.concatenate([head, packed(flat, which, bins)])
            for machine, (head, bins) in enumerate(zip(heads, self.bins_of, strict=True))
        ])  # fmt: skip
        sums = np.empty((len(places), n_bins), np.int64)
        for place, own in zip(places, sums, strict=True):
            np.take(flat[place], self.bins_of[self.machines.place], out=own, mode="clip")
        for machine, array in enumerate(received):
            if machine != self.machines.place and sums.size:
                add_sums(array[n_head:].view(np.uint64), n_bins, sums.ravel())
        return _sum([array[:n_head] for array in received]), sums

    def _round(self, likely: list[_Leaf], uncounted: list[_Leaf], searched: bool) -> None:
        """Splits leaves as found, and counts where that was refused; then finds the best splits of the latter and, if `searched`, of the sides."""
        split, _, _ = self.data.questions
        ranges, tried, lefts = self.data.leaf_ranges, [], []
        for leaf in likely:
            new = self.free.pop()
            n_left = split(self.compiled, leaf.rows, new, leaf.feature, leaf.goes_left)
            size = ranges[1, leaf.rows]
            ranges[1, new], ranges[1, leaf.rows] = size - n_left, n_left
            tried.append((leaf, new, n_left, 2 * n_left <= size))
        built = searched or bool(self.monotone.any())
        head = np.zeros((len(tried), 2), np.int64)
        for k, (leaf, new, n_left, left_is_smaller) in enumerate(tried):
            head[k, 0] = n_left
            if built:
                self._build(leaf, new, left_is_smaller)
                lefts.append(new if left_is_smaller else leaf.own)
                head[k, 1] = self.data.histograms[lefts[-1], 0].sum()
        counts, own_counted = self._counts(uncounted)
        summed, sums = self._summed([np.concatenate([head.ravel(), *own]) for own in counts], lefts)
        heads = summed[: head.size]
        for (leaf, k), of_bins in zip(own_counted, summed[head.size :].reshape(-1, N_BINS), strict=True):
            leaf.counts[k] = of_bins
        new_leaves: list[_Leaf] = []
        of_sides = sums if lefts else [None] * len(tried)
        for (leaf, new, _, left_is_smaller), (n_left, total), side in zip(
            tried, heads.reshape(-1, 2).tolist(), of_sides, strict=True
        ):
            if min(n_left, leaf.size - n_left) < self.space.min_docs:
                leaf.too_few = True
                self._unite(leaf, new, built)
            else:
                new_leaves += self._divide(leaf, new, left_is_smaller, n_left, total)
                if side is not None:
                    _divide_sums(side, self.own_places, self.sums[new].ravel(), self.sums[leaf.summed].ravel())
        self._search([*uncounted, *(new_leaves if searched else [])])

    def _build(self, leaf: _Leaf, new: int, left_is_smaller: bool) -> None:
        """The histograms of both sides' rows here: the smaller one's in place `new`, the larger one's in that of the leaf."""
        data, own = self.compiled, self.data.histograms
        start, size = self.data.leaf_ranges[:, leaf.rows if left_is_smaller else new]
        rows = data.rows[start : start + size]
        build(data.words, rows, data.packed, data.gathered, data.buffers, data.threads, own[new], own[leaf.own], True)

    def _counts(self, leaves: list[_Leaf]) -> tuple[list[list[Ints]], list[tuple[_Leaf, int]]]:
        """How many rows here are in each bin of the rivals that were not counted yet, by the machine whose features they are; and which are this
        machine's: leaves and places of features."""
        counts: list[list[Ints]] = [[] for _ in range(self.machines.n)]
        own = []
        _, _, in_bins = self.data.questions
        for leaf in leaves:
            for feature in [feature for feature in leaf.rivals if feature in self.owner and feature not in leaf.counted]:
                machine, k = self.owner[feature]
                in_bins(self.compiled, leaf.rows, feature, of_bins := np.empty(N_BINS, np.int64))
                counts[machine].append(of_bins)
                leaf.counted.add(feature)
                if machine == self.machines.place:
                    own.append((leaf, k))
            leaf.too_few = False
        return counts, own

    def _unite(self, leaf: _Leaf, new: int, built: bool) -> None:
        """Takes back a split."""
        self.data.leaf_ranges[1, leaf.rows] += self.data.leaf_ranges[1, new]
        if built:
            self.data.histograms[leaf.own] += self.data.histograms[new]
        self.free.append(new)

    def _divide(self, leaf: _Leaf, new: int, left_is_smaller: bool, n_left: int, left_total: int) -> tuple[_Leaf, _Leaf]:
        """The sides of a leaf whose split stays. The left one begins where the leaf does, and keeps its rows' place."""
        within = leaf.open_groups & self.groups[:, leaf.feature]
        left_own, right_own = (new, leaf.own) if left_is_smaller else (leaf.own, new)
        right_total = leaf.total - left_total
        left = _Leaf(leaf.rows, left_own, new, leaf.start, n_left, left_total, leaf.bounds.copy(), within)
        right = _Leaf(new, right_own, leaf.summed, leaf.start + n_left, leaf.size - n_left, right_total, leaf.bounds.copy(), within)
        if sign := self.monotone[leaf.feature]:
            below, above = (left, right) if sign > 0 else (right, left)
            below.bounds[1] = above.bounds[0] = middle_value(left_total, right_total, self.space.l2, leaf.bounds)
        leaf.sides = left, right
        return leaf.sides

    def _search(self, leaves: list[_Leaf]) -> None:
        """The best split of each leaf that is large enough: each machine's, and the best of these."""
        leaves = [leaf for leaf in leaves if leaf.size >= 2 * self.space.min_docs]
        if not leaves:
            return
        found = np.array([self._best(leaf) for leaf in leaves]).ravel()
        of_machines = np.stack(self.machines.exchange([found] * self.machines.n)).reshape(self.machines.n, len(leaves), -1)
        for leaf, of_leaf in zip(leaves, of_machines.swapaxes(0, 1), strict=True):
            gains, features = of_leaf[:, :RIVALS].copy().view(np.float64), of_leaf[:, RIVALS : 2 * RIVALS]
            order = np.lexsort((features.ravel(), -gains.ravel()))[:RIVALS]
            leaf.gain, leaf.rivals = float(gains.ravel()[order[0]]), features.ravel()[order].tolist()
            leaf.feature = leaf.rivals[0]
            of_best = of_leaf[order[0] // RIVALS, 2 * RIVALS :]
            leaf.split, leaf.missing_left = int(of_best[0]), bool(of_best[1])
            leaf.goes_left = np.unpackbits(of_best[2:].view(np.uint8), bitorder="little").astype(np.bool_)

    def _best(self, leaf: _Leaf) -> Ints:
        """The best splits by this machine's features: the bits of their gains, and the features, `RIVALS` each; then of the very best its bin,
        whether missing values go left, and a bit for each bin, whether that does."""
        n, best = len(self.features), np.zeros(2 * RIVALS + 2 + N_BINS // 64, np.int64)
        best[RIVALS : 2 * RIVALS] = len(self.monotone)
        if n:
            gains, splits, lefts = np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.bool_)
            space, sums = self.space, self.sums[leaf.summed]
            if len(space.groups):
                space = space._replace(allowed=space.allowed & space.groups[leaf.open_groups].any(axis=0))
            search_all(sums, space, leaf.bounds, gains, splits, lefts)
            for f, counts in leaf.counts.items():
                gains[f], splits[f], lefts[f] = search_feature(f, sums[f], counts, True, space, leaf.bounds)
            order = np.argsort(-gains, kind="stable")[:RIVALS]
            order = order[gains[order] > 0.0]
            if len(order):
                best[: len(order)], best[RIVALS : RIVALS + len(order)] = gains[order].view(np.int64), self.features[order]
                f, goes_left = order[0], np.empty(N_BINS, np.bool_)
                write_sides(sums[f], space, f, splits[f], lefts[f], goes_left)
                best[2 * RIVALS : 2 * RIVALS + 2] = splits[f], lefts[f]
                best[2 * RIVALS + 2 :] = np.packbits(goes_left, bitorder="little").view(np.int64)
        return best


def replayed(root: _Leaf, n_leaves: int) -> tuple[list[_Leaf], list[_Leaf], list[_Leaf]]:
    """Best-first growth as far as it is known.

    Returns:
        What was split, in order; the leaves; and which leaves could be split next, the most certain first: none where the tree is grown.
        The first one will be, and what is not among these never, unless a split turns out to leave too few documents.
    """
    splits: list[_Leaf] = []
    leaves, candidates = [root], list[_Leaf]()
    open_leaves = [(-root.gain, 0)] if root.gain > 0.0 else []
    for _ in range(n_leaves - 1):
        if not open_leaves:
            break
        _, number = heappop(open_leaves)
        leaf = leaves[number]
        if leaf.sides is None:
            candidates.append(leaf)
            continue
        if not candidates:
            splits.append(leaf)
        left, right = leaf.sides
        larger, smaller = (right, left) if 2 * left.size <= leaf.size else (left, right)
        leaves.append(smaller)
        leaves[number] = larger
        for k in (number, len(leaves) - 1):
            if leaves[k].gain > 0.0:
                heappush(open_leaves, (-leaves[k].gain, k))
    return splits, leaves, candidates


def _growth(splits: list[_Leaf], leaves: list[_Leaf]) -> Growth:
    """The tree of these splits, in order, with these leaves, in any."""
    leaves = sorted(leaves, key=lambda leaf: leaf.start)
    number = {id(leaf): ~k for k, leaf in enumerate(leaves)} | {id(leaf): k for k, leaf in enumerate(splits)}
    children = np.array([[number[id(side)] for side in leaf.sides or ()] for leaf in splits], np.int64).reshape(-1, 2)
    nodes = Nodes(
        np.array([leaf.feature for leaf in splits], np.int64),
        np.array([leaf.split for leaf in splits], np.int64),
        np.array([leaf.missing_left for leaf in splits], np.bool_),
        np.ascontiguousarray(children[:, 0]),
        np.ascontiguousarray(children[:, 1]),
        np.array([leaf.goes_left for leaf in splits], np.bool_).reshape(-1, N_BINS),
    )
    return Growth(
        nodes,
        np.array([leaf.gain for leaf in splits]),
        np.array([leaf.rows for leaf in leaves]),
        np.array([leaf.size for leaf in leaves]),
        np.array([leaf.bounds for leaf in leaves]),
    )


@njit(cache=True)
def _divide_sums(side: Ints, places: Ints, left: Ints, right: Ints) -> None:
    """Writes the sums of one side, and takes them from those of both; `places`: where they are in flat histograms."""
    left[:] = 0
    for k in range(len(places)):
        left[places[k]] = side[k]
        right[places[k]] -= side[k]


def _places(used: Bools, columns: Ints, stored: Ints) -> Ints:
    """Where the bins in use of these columns are in histograms that have them at `stored`, flat."""
    of, bins = np.nonzero(used[columns])
    places: Ints = stored[of] * N_BINS + bins
    return places


def _sum(arrays: Sequence[Ints]) -> Ints:
    return reduce(np.add, arrays)
