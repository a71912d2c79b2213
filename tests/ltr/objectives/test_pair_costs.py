"""Pair costs: slope and bend are derivatives of the written cost, by differences."""

import numpy as np
import pytest

from ltr.kernels.kernel import ready
from ltr.objectives.pair_costs import COST, COSTS, NEAR

SIGMA = 1.7


def written(cost, o):
    """The cost of one pair whose scores differ by o."""
    return np.log1p(np.exp(-SIGMA * o)) if cost == "logistic" else 1 / (1 + np.exp(SIGMA * o))


def taken(cost, o, first=0, sigma=SIGMA, spread=1.0):
    slope, bend = np.full(len(o), 99.0), np.full(len(o), 99.0)
    ready(COSTS[cost], COST)(first, sigma, spread, np.asarray(o, float), slope, bend)
    return slope, bend


@pytest.mark.parametrize("cost", ["logistic", "sigmoid"])
def test_slope_and_bend_are_derivatives(cost):
    o, h = np.array([-6.0, -1.3, 0.0, 0.4, 5.0]), 1e-4
    slope, bend = taken(cost, o)
    assert slope == pytest.approx(-(written(cost, o + h) - written(cost, o - h)) / (2 * h), abs=1e-7)
    second = (written(cost, o + h) - 2 * written(cost, o) + written(cost, o - h)) / h**2
    assert bend == pytest.approx(second if cost == "logistic" else np.zeros(5), abs=1e-6)


def test_a_sigmoid_bends_both_ways_which_is_why_it_has_no_hessian():
    o, h = np.array([-2.0, 2.0]), 1e-4
    second = (written("sigmoid", o + h) - 2 * written("sigmoid", o) + written("sigmoid", o - h)) / h**2
    assert second[0] * second[1] < 0


def test_near_pairs_count_more_as_soon_as_any_scores_of_the_query_differ():
    o = np.array([0.0, 0.5, -3.0])
    slope, bend = taken("logistic", o)
    near_slope, near_bend = taken("logistic_near", o)
    assert near_slope == pytest.approx(slope / (NEAR + np.abs(o)))
    assert near_bend == pytest.approx(bend / (NEAR + np.abs(o)))
    tied = np.zeros(3)
    for near, plain in zip(taken("logistic_near", tied), taken("logistic", tied), strict=True):
        assert near == pytest.approx(plain / NEAR)
    for equal, plain in zip(taken("logistic_near", tied, spread=0.0), taken("logistic", tied), strict=True):
        assert np.array_equal(equal, plain)


@pytest.mark.parametrize("cost", COSTS)
def test_what_stands_before_the_first_pair_is_left_alone(cost):
    o = np.array([0.3, -0.2, 1.0])
    whole, part = taken(cost, o), taken(cost, o, first=2)
    for all_of_it, rest in zip(whole, part, strict=True):
        assert rest[:2].tolist() == [99.0, 99.0]
        assert rest[2] == pytest.approx(all_of_it[2])


@pytest.mark.parametrize("cost", COSTS)
def test_gaps_of_any_size_stay_finite(cost):
    slope, bend = taken(cost, [1e3, -1e3, 1e300, -1e300], sigma=5.0)
    assert np.isfinite(slope).all()
    assert np.isfinite(bend).all()
    assert slope[[0, 2]] == pytest.approx([0, 0])
    assert slope[1] == pytest.approx({"logistic": 5.0, "sigmoid": 0.0, "logistic_near": 5 / 1000.01}[cost])
