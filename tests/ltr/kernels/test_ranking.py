"""Ranking by counting and by sorting: numpy's stable sort, and scores that are equal only once they are rounded."""

import numpy as np
import pytest

from ltr.kernels.ranking import COUNTED, by_score, count_above, lanes_for, rank, sort_falling


def test_order_by_score_is_a_stable_sort():
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 50, COUNTED, COUNTED + 1, 2000):
        for levels in (1, 3, 10**9):
            scores = rng.integers(0, levels, n).astype(float)
            assert np.array_equal(by_score(scores), np.argsort(-scores, kind="stable"))


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 31, 33, 500])
def test_falling_values_are_in_a_stable_order_with_the_missing_ones_last(n):
    rng = np.random.default_rng(n)
    for levels in (1, 3, 10**9):
        values = rng.integers(-levels, levels, n).astype(float)
        values[rng.random(n) < 0.1] = np.nan
        values[rng.random(n) < 0.1] = -0.0
        order = np.empty(n, np.int64)
        sort_falling(values, order)
        assert np.array_equal(order, np.argsort(-values, kind="stable"))


@pytest.mark.parametrize("n", [2, 7, 100])
def test_scores_that_are_one_as_float32_rank_by_what_they_are(n):
    """Neighbours of 1 in float64 are rounded to two float32 at most; the order within each is mended by the exact scores."""
    rng = np.random.default_rng(n)
    for scores in (
        1.0 + 2.0**-50 * rng.permutation(n),
        1.0 + 2.0**-26 * rng.permutation(n),
        1e300 * rng.random(n),
        -1e-300 * rng.random(n),
    ):
        order = np.empty(n, np.int64)
        with np.errstate(over="ignore"):
            assert not rank(scores, order) or len(set(scores.astype(np.float32))) == n
        assert np.array_equal(order, np.argsort(-scores, kind="stable"))


def test_it_says_whether_all_scores_differ_as_float32():
    order = np.empty(3, np.int64)
    assert rank(np.array([3.0, 1.0, 2.0]), order)
    assert order.tolist() == [0, 2, 1]
    assert not rank(np.array([3.0, 1.0, 3.0]), order)
    assert order.tolist() == [0, 2, 1]
    assert not rank(np.array([1.0, 1.0 + 1e-12, 2.0]), order)
    assert order.tolist() == [2, 1, 0]
    many = np.arange(COUNTED + 1.0)
    assert not rank(many, np.empty(len(many), np.int64)), "longer queries are sorted and not looked at"


@pytest.mark.parametrize("n", [1, 8, 9, 31])
def test_counts_are_those_of_every_score_against_every_other(n):
    rounded = lanes_for(n)
    assert len(rounded) % 8 == 0
    assert 0 <= len(rounded) - n < 8
    assert (rounded == -np.inf).all()
    rounded[:n] = np.random.default_rng(n).integers(0, 5, n)
    ranks = np.full(len(rounded), 99, np.int32)
    count_above(rounded, ranks)
    assert ranks.tolist() == [int((rounded > score).sum()) for score in rounded]
