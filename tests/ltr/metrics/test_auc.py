"""AUC against its definition by pairs, and scikit-learn's."""

import numpy as np
import pytest

from tests.ltr.metrics.brute_force import cases, check_swaps, check_values, one, swap_changes

NAMES = ("auc",)


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_values(name, cutoff):
    check_values(name, cutoff)


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_swaps(name, cutoff):
    check_swaps(name, cutoff)


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_it_is_scikit_learns_ties_too(levels):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(levels)
    labels, scores = rng.integers(0, 4, 60).astype(float), rng.integers(0, levels, 60).astype(float)
    assert one("auc", None, labels, scores) == pytest.approx(metrics.roc_auc_score(labels >= 2, scores))


def test_a_swap_moves_as_many_pairs_as_there_are_ranks_between():
    """Relevant documents at ranks 1 and 4 of 5: 6 pairs, and swapping ranks 1 and 3 turns two of them."""
    change, _ = swap_changes("auc", None, [3, 0, 0, 3, 0])
    assert change[0, 2] == pytest.approx(2 / 6)
    assert change[0, 3] == 0


def test_one_class_alone_has_none():
    assert np.isnan(one("auc", None, [2.0, 3.0], [1.0, 0.0]))
    assert np.isnan(one("auc", None, [0.0, 1.0], [1.0, 0.0]))
