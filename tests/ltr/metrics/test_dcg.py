"""NDCG and its kin: the formula, its ideal for few and for many levels, and gains divided once for many rankings."""

import math

import numpy as np
import pytest

from ltr.kernels.kernel import ready
from ltr.metrics.conventions import Conventions
from ltr.metrics.dcg import any_positive, gain_mean_value, steady
from ltr.metrics.measure import VALUE, Measure, curve_of, gains_of
from tests import naive
from tests.conftest import make_queries
from tests.ltr.metrics.brute_force import cases, check_swaps, check_values, one

NAMES = ("ndcg", "jk_ndcg", "linear_ndcg", "cndcg")


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_values(name, cutoff):
    check_values(name, cutoff)


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_swaps(name, cutoff):
    check_swaps(name, cutoff)


def test_by_hand():
    labels, scores = np.array([1.0, 3, 0]), -np.arange(3.0)
    want = (1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3))
    assert one("ndcg", None, labels, scores) == pytest.approx(want)
    assert one("ndcg", 1, labels, scores) == pytest.approx(1 / 7)
    assert one("ndcg", None, labels, scores, gain="linear") == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))
    assert one("jk_ndcg", None, labels, scores) == 1.0, "ranks 1 and 2 count alike"
    assert one("cndcg", None, labels / 4, scores) == pytest.approx(want), "gains 2^(4c) − 1"


@pytest.mark.parametrize("levels", [1, 2, 12, 13, 40])
def test_the_ideal_is_that_of_sorted_gains_however_many_levels_there_are(levels):
    """Up to twelve levels are found one by one, more are sorted."""
    rng = np.random.default_rng(levels)
    labels, scores = rng.integers(0, levels, 60) / 8, rng.permutation(60).astype(float)
    ranked = labels[np.argsort(-scores)]
    for cutoff in (1, 5, 60):
        want = naive.value("ndcg", ranked.tolist(), cutoff)
        found = one("ndcg", cutoff, labels, scores)
        assert math.isnan(found) if want is None else found == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("name", ["ndcg@3", "jk_ndcg", "cndcg", "map", "p@5"])
def test_steady_gains_give_the_same_values(name):
    queries, measure, conventions = make_queries(20, seed=3), Measure.of(name), Conventions()
    labels, longest = queries.source(measure.source), int(np.diff(queries.offsets).max())
    gains, (curve, cutoff) = gains_of(measure, labels, conventions), curve_of(measure, longest, conventions)
    scaled, kernel = steady(measure, gains, queries.offsets, curve)
    assert (scaled is gains) == (name in ("map", "p@5"))
    assert (kernel is gain_mean_value) == (name != "map")
    for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        want = ready(measure.definition.value, VALUE)(gains[a:b], np.arange(1, b - a + 1), curve, cutoff)
        assert ready(kernel, VALUE)(scaled[a:b], np.arange(1, b - a + 1), curve, cutoff) == pytest.approx(want, nan_ok=True)


def test_any_positive():
    assert any_positive(np.array([0.0, 0.0, 1e-300]))
    assert not any_positive(np.zeros(3))
    assert not any_positive(np.empty(0))
