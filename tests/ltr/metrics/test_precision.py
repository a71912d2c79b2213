"""Precision and the winner, by counting."""

import numpy as np
import pytest

from tests.ltr.metrics.brute_force import cases, check_swaps, check_values, one

NAMES = ("p", "wta")


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_values(name, cutoff):
    check_values(name, cutoff)


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_swaps(name, cutoff):
    check_swaps(name, cutoff)


def test_precision_is_over_the_cutoff_or_by_the_rule_of_xgboost_over_the_documents():
    labels, scores = np.array([2.0, 0, 3]), -np.arange(3.0)
    assert one("p", 2, labels, scores) == 1 / 2
    assert one("p", 10, labels, scores) == pytest.approx(2 / 10)
    assert one("p", 10, labels, scores, short="size") == pytest.approx(2 / 3)


def test_the_winner_of_a_tie_is_a_share():
    labels = np.array([0.0, 2, 0, 4, 0])
    assert one("wta", None, labels, np.array([1.0, 1, 1, 0, 0])) == pytest.approx(1 / 3)
    assert one("wta", None, labels, labels) == 1.0
    assert one("wta", None, labels, -labels) == 0.0
