"""The best split of a leaf, from its histograms: by Newton's gain G²/(H + l2) or by least squares, G²/(count + l2).

Sums are those of `ltr.trees.fixed_point`, gradient high and hessian or count low. A missing value goes to the side where it gains more. Monotone
features: a split that puts its children's values in the wrong order does not count, and values are clipped to the leaf's bounds.

Categories are put in the order of gradient/(weight + cat_smooth), and the first of them are split from the rest: of all ways to divide them in two
the best is one of these (Fisher 1958; LightGBM does the same). Those without documents in the leaf go where later unknown ones do.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange, types
from numpy.typing import NDArray

from ltr.kernels.kernel import F8, I1, I1_1D, I8, I8_1D, Bools, Floats, Ints, inner, record_type
from ltr.kernels.ranking import sort_falling
from ltr.trees.binning import MISSING
from ltr.trees.fixed_point import LOW
from ltr.trees.histograms import N_BINS


@inner()
def _score(gradient: float, weight: float) -> float:
    """gradient²/weight; 0 without weight."""
    return gradient * gradient / weight if weight > 0.0 else 0.0


@njit(cache=True)
def value_within(gradient: float, weight: float, bounds: Floats) -> float:
    """The value gradient/weight of a leaf, clipped to its bounds; 0 without weight, clipped likewise."""
    value: float = min(max(gradient / weight if weight > 0.0 else 0.0, bounds[0]), bounds[1])
    return value


@inner()
def _score_at(gradient: float, weight: float, value: float) -> float:
    """2·gradient·v − weight·v²: the gain of a leaf with value v; `_score` at v = gradient/weight."""
    return (2.0 * gradient - weight * value) * value


@njit(cache=True)
def search(
    column: Ints,
    counts: Ints,
    counted: bool,
    n_edges: int,
    has_missing: bool,
    min_docs: int,
    by_count: bool,
    l2: float,
    sign: int,
    bounds: Floats,
) -> tuple[float, int, bool]:
    """Best split of one feature: (gain, bin, missing goes left), in packed units; gain 0 where none is admissible.

    `counts` per bin are read where `counted`; with least squares the low half of a word is the count (`by_count`). Values of the
    children are clipped to `bounds` and, where `sign` is not 0, must be in its order.
    """
    total = column[MISSING]
    n_total = 0
    for k in range(np.uint64(n_edges + 1)):
        total += column[k]
    if counted:
        for k in range(N_BINS):
            n_total += counts[k]
    bounded = sign != 0 or bounds[0] > -np.inf or bounds[1] < np.inf
    all_gradient, all_weight = float(total >> 32), float(total & LOW)
    parent = _score(all_gradient, all_weight + l2)
    if bounded:
        parent = _score_at(all_gradient, all_weight + l2, value_within(all_gradient, all_weight + l2, bounds))
    best, best_bin, best_left = 0.0, -1, False
    for missing_left in (False, True):
        if missing_left and not has_missing:
            break
        left = column[MISSING] if missing_left else np.int64(0)
        n_left = counts[MISSING] if counted and missing_left else 0
        for k in range(n_edges + (has_missing and not missing_left)):
            left += column[k]
            weight = float(left & LOW)
            if by_count and (weight < min_docs or all_weight - weight < min_docs):
                continue
            if counted:
                n_left += counts[k]
                if n_left < min_docs or n_total - n_left < min_docs:
                    continue
            gradient = float(left >> 32)
            other, below, above = all_gradient - gradient, weight + l2, all_weight - weight + l2
            if bounded:
                lower, upper = value_within(gradient, below, bounds), value_within(other, above, bounds)
                if sign * (upper - lower) < 0.0:
                    continue
                gain = _score_at(gradient, below, lower) + _score_at(other, above, upper) - parent
            else:
                gain = _score(gradient, below) + _score(other, above) - parent
            if gain > best:
                best, best_bin, best_left = gain, k, missing_left
    return best, best_bin, best_left


@njit(cache=True)
def order_categories(column: Ints, n_categories: int, smooth: float, order: Ints) -> int:
    """Writes the bins of categories that a leaf has, by rising gradient/(weight + smooth), equal ones by number; returns how many."""
    falling, present, n = np.empty(n_categories), np.empty(n_categories, np.int64), 0
    for k in range(n_categories):
        if column[k] != 0:
            weight = float(column[k] & LOW) + smooth
            falling[n] = -(float(column[k] >> 32) / weight) if weight > 0.0 else 0.0
            present[n] = k
            n += 1
    sort_falling(falling[:n], order[:n])
    for k in range(n):
        order[k] = present[order[k]]
    return n


@njit(cache=True)
def search_categories(
    column: Ints, counts: Ints, counted: bool, n_categories: int, has_missing: bool, space: "SplitSearch", bounds: Floats
) -> tuple[float, int, bool]:
    """`search` of a feature of categories: (gain, k, missing values are with the first), where the first k + 1 in their order are split from
    the rest. Documents of a category whose sums are 0 count where `write_sides` puts them, with the missing values."""
    min_docs, by_count, l2 = space.min_docs, not space.newton, space.l2 + space.cat_l2
    order = np.empty(N_BINS, np.int64)
    n = order_categories(column, n_categories, space.cat_smooth, order)
    total, n_total = column[MISSING], 0
    for k in range(n_categories):
        total += column[k]
    if counted:
        for k in range(N_BINS):
            n_total += counts[k]
    bounded = bounds[0] > -np.inf or bounds[1] < np.inf
    all_gradient, all_weight = float(total >> 32), float(total & LOW)
    parent = _score(all_gradient, all_weight + space.l2)
    if bounded:
        parent = _score_at(all_gradient, all_weight + space.l2, value_within(all_gradient, all_weight + space.l2, bounds))
    best, best_last, best_with = 0.0, -1, False
    for with_missing in (False, True):
        if with_missing and not has_missing:
            break
        first = column[MISSING] if with_missing else np.int64(0)
        n_first = counts[MISSING] if counted and with_missing else 0
        if counted and with_missing:
            for k in range(n_categories):
                n_first += counts[k] if column[k] == 0 else 0
        for k in range(n - 1 + (has_missing and not with_missing)):
            first += column[order[k]]
            weight = float(first & LOW)
            if by_count and (weight < min_docs or all_weight - weight < min_docs):
                continue
            if counted:
                n_first += counts[order[k]]
                if n_first < min_docs or n_total - n_first < min_docs:
                    continue
            gradient = float(first >> 32)
            other, own, rest = all_gradient - gradient, weight + l2, all_weight - weight + l2
            if bounded:
                gain = _score_at(gradient, own, value_within(gradient, own, bounds)) - parent
                gain += _score_at(other, rest, value_within(other, rest, bounds))
            else:
                gain = _score(gradient, own) + _score(other, rest) - parent
            if gain > best:
                best, best_last, best_with = gain, k, with_missing
    return best, best_last, best_with


class SplitSearch(NamedTuple):
    """Which splits of a tree are searched, and by which rules.

    Attributes:
        columns: ``int64 [features]``, each feature's column of a histogram.
        n_edges: ``int64 [features]``, thresholds.
        has_missing, allowed: ``bool [features]``.
        monotone: ``int8 [features]``, see `ltr.trees.grower.TreeOptions`.
        min_docs: documents in a leaf at least.
        newton: gains are Newton's, and low halves do not count; otherwise least squares.
        l2: added to the weight of every leaf, in packed units.
        groups: ``bool [groups, features]``, see `ltr.trees.grower.TreeOptions`.
        categorical: ``bool [features]``; `n_edges` of these is the number of categories.
        cat_smooth, cat_l2: see `ltr.LambdaMART`, in packed units.
    """

    columns: Ints
    n_edges: Ints
    has_missing: Bools
    allowed: Bools
    monotone: NDArray[np.int8]
    min_docs: int
    newton: bool
    l2: float
    groups: Bools
    categorical: Bools
    cat_smooth: float
    cat_l2: float


class Nodes(NamedTuple):
    """Splits of one tree by feature and bin, an array ``[nodes]`` each; a child c ≥ 0 is a node, c < 0 the leaf ``~c``.

    Attributes:
        goes_left: ``bool [nodes, bins]``.
    """

    feature: Ints
    split: Ints
    missing_left: Bools
    left: Ints
    right: Ints
    goes_left: Bools


SEARCH = record_type(
    SplitSearch, I8_1D, I8_1D, I1_1D, I1_1D, types.Array(types.int8, 1, "C"), I8, I1, F8, types.Array(I1, 2, "C"), I1_1D, F8, F8
)
"""The type of a `SplitSearch`."""


def restricted(space: SplitSearch, features: Ints) -> SplitSearch:
    """The search among these features alone, which are numbered anew, in histograms that have no other columns."""
    groups = space.groups if len(space.groups) else np.zeros((0, len(space.allowed)), np.bool_)
    return SplitSearch(
        np.arange(len(features)), space.n_edges[features], space.has_missing[features], space.allowed[features],
        space.monotone[features], space.min_docs, space.newton, space.l2, np.ascontiguousarray(groups[:, features]),
        space.categorical[features], space.cat_smooth, space.cat_l2,
    )  # fmt: skip


@njit(cache=True)
def search_feature(
    f: int, column: Ints, counts: Ints, counted: bool, space: SplitSearch, bounds: Floats
) -> tuple[float, int, bool]:
    """`search`, or `search_categories`, of feature f with its histogram `column`."""
    n_edges, has_missing = space.n_edges[f], space.has_missing[f]
    found: tuple[float, int, bool]
    if space.categorical[f]:
        found = search_categories(column, counts, counted, n_edges, has_missing, space, bounds)
    else:
        by_count = not space.newton
        found = search(column, counts, counted, n_edges, has_missing, space.min_docs, by_count, space.l2, space.monotone[f], bounds)
    return found


@njit(cache=True, parallel=True)
def search_all(histogram: Ints, space: SplitSearch, bounds: Floats, gains: Floats, splits: Ints, lefts: Bools) -> None:
    """`search_feature` of every feature of a leaf, without counts; writes `gains`, `splits` and `lefts`, ``[features]`` each."""
    columns, allowed = space.columns, space.allowed
    counted = len(gains) == 0  # never; as a constant it would have `search` compiled twice
    for f in prange(len(columns)):
        gains[f] = 0.0
        if allowed[f]:
            own = histogram[columns[f]]
            gains[f], splits[f], lefts[f] = search_feature(np.int64(f), own, own, counted, space, bounds)


@njit(cache=True)
def narrowed(space: SplitSearch, open_groups: Bools) -> SplitSearch:
    """The search in a leaf that is still in these of the groups, ``bool [groups]``: features of none of them are left out."""
    columns, n_edges, has_missing, allowed, monotone, min_docs, newton, l2, groups, categorical, cat_smooth, cat_l2 = space
    if len(groups) == 0:
        return space
    within = np.zeros(len(allowed), np.bool_)
    for group in range(len(groups)):
        if open_groups[group]:
            for f in range(len(allowed)):
                within[f] |= allowed[f] and groups[group, f]
    return SplitSearch(
        columns, n_edges, has_missing, within, monotone, min_docs, newton, l2, groups, categorical, cat_smooth, cat_l2
    )


@njit(cache=True)
def write_sides(column: Ints, space: SplitSearch, f: int, split: int, missing_left: bool, goes_left: Bools) -> None:
    """Writes which bins of feature f go left, ``bool [bins]``, by what its search found. Of categories those go left that missing values are
    not with, so that unknown ones, and those without documents in the leaf, go right with them."""
    if space.categorical[f]:
        order = np.empty(N_BINS, np.int64)
        n = order_categories(column, space.n_edges[f], space.cat_smooth, order)
        goes_left[:] = False
        for k in range(n):
            goes_left[order[k]] = (k <= split) != missing_left
    else:
        for k in range(N_BINS):
            goes_left[k] = k <= split
        goes_left[MISSING] = missing_left


@njit(cache=True)
def best_split(histogram: Ints, space: SplitSearch, bounds: Floats) -> tuple[float, int, int, bool]:
    """Best split of a leaf: (gain, feature, bin, missing goes left); ties go to the lower feature and bin. With Newton gain, whose
    histograms do not count, sides may be too small: see `ltr.trees.grower.admissible_split`."""
    n_features = len(space.n_edges)
    gains, splits, lefts = np.zeros(n_features), np.zeros(n_features, np.int64), np.zeros(n_features, np.bool_)
    search_all(histogram, space, bounds, gains, splits, lefts)
    f = int(np.argmax(gains))
    return gains[f], f, splits[f], lefts[f]


@njit(cache=True)
def middle_value(left: int, right: int, l2: float, bounds: Floats) -> float:
    """The middle between the values of two leaves, both within `bounds`, from their packed sums."""
    value = value_within(float(left >> 32), float(left & LOW) + l2, bounds)
    middle: float = 0.5 * (value + value_within(float(right >> 32), float(right & LOW) + l2, bounds))
    return middle
