"""Average precision by hand, by scikit-learn, and with the divisor of other tools."""

import numpy as np
import pytest

from tests.ltr.metrics.brute_force import cases, check_swaps, check_values, one

NAMES = ("map",)


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_values(name, cutoff):
    check_values(name, cutoff)


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_swaps(name, cutoff):
    check_swaps(name, cutoff)


def test_by_hand():
    """Relevant at ranks 1, 3 and 4: precisions 1, 2/3 and 3/4."""
    labels, scores = np.array([2.0, 1, 4, 2, 0]), -np.arange(5.0)
    assert one("map", None, labels, scores) == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert one("map", 3, labels, scores) == pytest.approx((1 + 2 / 3) / 3)


def test_the_divisor_is_at_most_the_cutoff_by_the_rule_of_lightgbm():
    labels, scores = np.array([2.0, 0, 2, 2, 2]), -np.arange(5.0)
    assert one("map", 2, labels, scores) == pytest.approx(1 / 4)
    assert one("map", 2, labels, scores, ap_base="cutoff") == pytest.approx(1 / 2)
    assert one("map", 5, labels, scores, ap_base="cutoff") == one("map", 5, labels, scores)


def test_without_ties_it_is_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 4, 80).astype(float), rng.permutation(80).astype(float)
    assert one("map", None, labels, scores) == pytest.approx(metrics.average_precision_score(labels >= 2, scores))
