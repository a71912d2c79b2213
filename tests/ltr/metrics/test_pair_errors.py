"""Pairs out of order: the figures of the papers, and scipy's τ."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from tests.ltr.metrics.brute_force import cases, check_swaps, check_values, one

NAMES = ("tau", "errors")


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_values(name, cutoff):
    check_values(name, cutoff)


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_swaps(name, cutoff):
    check_swaps(name, cutoff)


def test_pairwise_errors_of_the_figure_and_tau_of_scipy():
    """B figure 1: 2 relevant documents of 16 at ranks 1 and 15 are 13 errors, at ranks 4 and 10 they are 11."""
    first, second = np.zeros(16), np.zeros(16)
    first[[0, 14]] = second[[3, 9]] = 1
    assert one("errors", None, first, -np.arange(16.0)) == 13
    assert one("errors", None, second, -np.arange(16.0)) == 11
    rng = np.random.default_rng(2)
    labels, scores = rng.permutation(30).astype(float), rng.normal(size=30)
    assert one("tau", None, labels, scores) == pytest.approx(kendalltau(labels, scores).statistic)


def test_errors_and_the_winner_of_the_notes():
    """Relevant documents at ranks 1 and n, then 2 and 3: n − 2 pairwise errors become 2, and the winner is lost (notes on B)."""
    n = 40
    first, second = np.zeros(n), np.zeros(n)
    first[[0, n - 1]] = second[[1, 2]] = 4
    assert [one("errors", None, labels, -np.arange(float(n))) for labels in (first, second)] == [n - 2, 2]
    assert [1 - one("wta", None, labels, -np.arange(float(n))) for labels in (first, second)] == [0, 1]


def test_many_levels_and_ties_pair_by_pair():
    rng = np.random.default_rng(5)
    labels, scores = rng.integers(0, 30, 80).astype(float), rng.integers(0, 20, 80).astype(float)
    higher = labels[:, None] > labels
    wrong = (higher & (scores[:, None] < scores)).sum() + 0.5 * (higher & (scores[:, None] == scores)).sum()
    assert one("errors", None, labels, scores) == wrong
    assert one("tau", None, labels, scores) == pytest.approx(1 - 2 * wrong / higher.sum())
    assert np.isnan(one("tau", None, np.ones(3), np.arange(3.0)))
    assert np.isnan(one("errors", None, np.ones(3), np.arange(3.0)))
