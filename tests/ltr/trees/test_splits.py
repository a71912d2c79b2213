"""The best split of one column against every split tried."""

from itertools import combinations

import numpy as np
import pytest

from ltr.trees.binning import MISSING
from ltr.trees.histograms import N_BINS
from ltr.trees.splits import SplitSearch, narrowed, order_categories, restricted, search, search_feature, write_sides

FREE = np.array([-np.inf, np.inf])


def column_of(rng, n_edges, has_missing):
    """Gradient, weight and documents of each bin; every third bin is empty, and its split ties with the one before."""
    bins = np.array([*(k for k in range(n_edges + 1) if k % 3 != 2), *([MISSING] if has_missing else [])])
    gradient, weight, counts = np.zeros(N_BINS, np.int64), np.zeros(N_BINS, np.int64), np.zeros(N_BINS, np.int64)
    gradient[bins], weight[bins] = rng.integers(-9000, 9000, len(bins)), rng.integers(1, 5000, len(bins))
    counts[bins] = rng.integers(1, 30, len(bins))
    return gradient, weight, counts


def every_split(gradient, weight, counts, n_edges, has_missing, sign, bounds, l2=0.0):
    """Gain, bin, side of missing values, and documents on each side, lower bins first."""

    def gain(gradients, weights):
        weights = weights + l2
        value = np.clip(gradients / weights if weights else 0.0, *bounds)
        return (2 * gradients - weights * value) * value, value

    parent = gain(gradient.sum(), weight.sum())[0]
    for missing_left in (False, True)[: 1 + has_missing]:
        for k in range(n_edges + (has_missing and not missing_left)):
            left = np.zeros(N_BINS, bool)
            left[: k + 1], left[MISSING] = True, missing_left
            (low, at_left), (high, at_right) = (
                gain(gradient[left].sum(), weight[left].sum()),
                gain(gradient[~left].sum(), weight[~left].sum()),
            )
            if sign * (at_right - at_left) >= 0:
                yield low + high - parent, k, missing_left, counts[left].sum(), counts[~left].sum()


def best_of(splits, min_docs):
    """The first of the highest gain among those with enough documents on both sides; None where none gains anything."""
    best = max((split for split in splits if min(split[3:]) >= min_docs), key=lambda split: split[0], default=None)
    return best if best and best[0] > 0 else None


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("sign", [0, 1, -1])
@pytest.mark.parametrize("bounds", [FREE, np.array([-0.4, 0.3])])
@pytest.mark.parametrize("l2", [0.0, 9000.0])
def test_the_best_of_all_splits_is_found(has_missing, sign, bounds, l2):
    """As many documents as the best split's smaller side has are enough, one more is too many; of equal gains the lower bin wins."""
    rng = np.random.default_rng(0)
    smaller_sides, found_none = set(), 0
    for n_edges in (1, 2, 4, 5, 30, 31, 200, 254) * 3:
        gradient, weight, counts = column_of(rng, n_edges, has_missing)
        splits = list(every_split(gradient, weight, counts, n_edges, has_missing, sign, bounds, l2))
        unbound = best_of(splits, 0)
        enough = int(min(unbound[3:])) if unbound else 0
        smaller_sides |= {(unbound[3] < unbound[4], unbound[2])} if unbound else set()
        for min_docs in (0, enough, enough + 1, 10_000):
            column, counted = (gradient << 32) + weight, min_docs > 0
            gain, split, missing_left = search(column, counts, counted, n_edges, has_missing, min_docs, False, l2, sign, bounds)
            best = best_of(splits, min_docs)
            if best is None:
                assert gain == 0
                found_none += 1
            else:
                assert (split, missing_left) == best[1:3]
                assert gain == pytest.approx(best[0])
    assert len(smaller_sides) == (4 if has_missing else 2)
    assert 24 <= found_none < 72


@pytest.mark.parametrize("has_missing", [False, True])
def test_by_least_squares_the_weight_is_the_count(has_missing):
    rng = np.random.default_rng(1)
    nothing = np.zeros(N_BINS, np.int64)
    for n_edges in (5, 40, 254):
        gradient, _, counts = column_of(rng, n_edges, has_missing)
        splits = list(every_split(gradient, counts, counts, n_edges, has_missing, 0, FREE))
        enough = int(min(best_of(splits, 1)[3:]))
        for min_docs in (1, enough, enough + 1, 10_000):
            gain, split, missing_left = search(
                (gradient << 32) + counts, nothing, False, n_edges, has_missing, min_docs, True, 0.0, 0, FREE
            )
            best = best_of(splits, min_docs)
            assert (split, missing_left) == (best[1:3] if best else (-1, False))
            assert gain == pytest.approx(best[0] if best else 0.0)


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_no_set_of_categories_gains_more_than_the_one_that_is_found(has_missing, counted, seed):
    """Every way to divide seven categories, missing values with either side, and all that the least number of documents allows among those
    in their order."""
    rng, n = np.random.default_rng(seed), 7
    gradient, weight, counts = (np.zeros(N_BINS, np.int64) for _ in range(3))
    bins = np.array([*(k for k in range(n) if k != 2), *([MISSING] if has_missing else [])])
    gradient[bins], weight[bins], counts[bins] = (
        rng.integers(-9000, 9000, len(bins)),
        rng.integers(1, 5000, len(bins)),
        rng.integers(1, 9, len(bins)),
    )
    column = (gradient << 32) + weight
    everything = np.ones(1, np.bool_)
    space = SplitSearch(
        np.zeros(1, np.int64), np.array([n]), everything & has_missing, everything, np.zeros(1, np.int8), 4, True, 0.0, np.zeros((0, 0), np.bool_),
        everything, 0.0, 0.0,
    )  # fmt: skip
    gain, split, with_first = search_feature(0, column, counts, counted, space, FREE)
    goes_left = np.empty(N_BINS, np.bool_)
    write_sides(column, space, 0, split, with_first, goes_left)
    assert not goes_left[MISSING]
    assert not goes_left[2], "no document of the leaf is of this category"

    def gained(left):
        parts = ((gradient[side].sum(), weight[side].sum()) for side in (left, ~left))
        return sum(g * g / w if w else 0.0 for g, w in parts) - gradient.sum() ** 2 / weight.sum()

    order = sorted((k for k in range(n) if k != 2), key=lambda k: gradient[k] / weight[k])
    sets = (
        [frozenset(s) for size in range(n) for s in combinations(order, size)]
        if not counted
        else [frozenset(order[:k]) for k in range(n)]
    )
    best = 0.0
    for own in sets:
        for missing_left in (False, True)[: 1 + has_missing]:
            left = np.isin(np.arange(N_BINS), [*own, *([MISSING] if missing_left else [])])
            if not counted or min(counts[left].sum(), counts[~left].sum()) >= 4:
                best = max(best, gained(left))
    assert gain == pytest.approx(best)
    assert gained(goes_left) == pytest.approx(gain)


def test_few_documents_decide_little_about_the_order_of_categories():
    column = np.zeros(N_BINS, np.int64)
    column[:3] = (np.array([100, -90, 30]) << 32) + np.array([1000, 10, 100])
    order = np.empty(N_BINS, np.int64)
    assert [order[: order_categories(column, 3, smooth, order)].tolist() for smooth in (0.0, 1e6)] == [[1, 0, 2], [1, 2, 0]]


@pytest.mark.parametrize("bounds", [FREE, np.array([-0.2, 0.1])])
def test_what_is_added_to_the_sides_of_categories_is_not_added_to_their_leaf(bounds):
    """LightGBM's rule: the leaf that is split has l2, its sides cat_l2 too; their values stay within the leaf's bounds."""
    column, everything = np.zeros(N_BINS, np.int64), np.ones(1, np.bool_)
    gradient, weight, l2, cat_l2 = np.array([300.0, -500, 90, 40]), np.array([1000.0, 800, 100, 400]), 50.0, 700.0
    column[:4] = (gradient.astype(np.int64) << 32) + weight.astype(np.int64)
    space = SplitSearch(
        np.zeros(1, np.int64), np.array([4]), ~everything, everything, np.zeros(1, np.int8), 1, True, l2, np.zeros((0, 0), np.bool_),
        everything, 0.0, cat_l2,
    )  # fmt: skip

    def worth(side, added):
        g, w = gradient[side].sum(), weight[side].sum() + added
        value = np.clip(g / w, *bounds)
        return 2 * g * value - w * value * value

    order = np.argsort(gradient / weight)
    gains = [worth(order[:k], l2 + cat_l2) + worth(order[k:], l2 + cat_l2) - worth(order, l2) for k in range(1, 4)]
    gain, split, _ = search_feature(0, column, column, False, space, bounds)
    assert gain == pytest.approx(max(gains))
    assert split == int(np.argmax(gains))


def test_a_search_within_groups_or_among_some_features_is_by_those_that_are_allowed():
    allowed, numbers = np.array([True, False, True, True]), np.arange(4)
    groups = np.array([[True, True, False, False], [False, True, True, False], [False, False, False, True]])
    space = SplitSearch(
        numbers, 10 + numbers, numbers > 1, allowed, numbers.astype(np.int8), 4, True, 0.5, groups, numbers == 2, 3.0, 7.0
    )
    for open_groups, expected in (
        ([1, 1, 1], [1, 0, 1, 1]),
        ([1, 1, 0], [1, 0, 1, 0]),
        ([0, 1, 0], [0, 0, 1, 0]),
        ([0, 0, 0], [0] * 4),
    ):
        found = narrowed(space, np.array(open_groups, np.bool_))
        assert found.allowed.tolist() == [bool(k) for k in expected]
        assert (found.l2, found.cat_smooth, found.cat_l2, found.min_docs) == (0.5, 3.0, 7.0, 4)
    some = restricted(space, np.array([3, 1]))
    assert some.columns.tolist() == [0, 1]
    assert (some.n_edges.tolist(), some.has_missing.tolist(), some.allowed.tolist()) == ([13, 11], [True, False], [True, False])
    assert (some.monotone.tolist(), some.categorical.tolist()) == ([3, 1], [False, False])
    assert some.groups.tolist() == [[False, True], [False, True], [True, False]]
    assert (some.l2, some.cat_smooth, some.cat_l2, some.min_docs) == (0.5, 3.0, 7.0, 4)


def test_all_categories_may_be_split_from_missing_values():
    column, everything = np.zeros(N_BINS, np.int64), np.ones(1, np.bool_)
    bins = np.array([0, 1, 2, MISSING])
    column[bins] = (np.array([100, 110, 90, -300]) << 32) + np.array([100, 100, 100, 100])
    space = SplitSearch(
        np.zeros(1, np.int64), np.array([3]), everything, everything, np.zeros(1, np.int8), 1, True, 0.0, np.zeros((0, 0), np.bool_),
        everything, 0.0, 0.0,
    )  # fmt: skip
    gain, split, with_first = search_feature(0, column, column, False, space, FREE)
    assert gain == pytest.approx(300 + 900)
    assert (split, with_first) == (2, False)
    goes_left = np.empty(N_BINS, np.bool_)
    write_sides(column, space, 0, split, with_first, goes_left)
    assert np.flatnonzero(goes_left).tolist() == [0, 1, 2]
