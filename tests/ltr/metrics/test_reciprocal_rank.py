"""Reciprocal rank: swaps by hand, and ties by their harmonic sum."""

import numpy as np
import pytest

from ltr.kernels.kernel import ready
from ltr.metrics.measure import MEASURES, N_AUX, PREPARE, ROW
from tests.ltr.metrics.brute_force import cases, check_swaps, check_values, one, swap_changes

NAMES = ("mrr", "mrr_exact")


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_values(name, cutoff):
    check_values(name, cutoff)


@pytest.mark.parametrize(("name", "cutoff"), cases(*NAMES))
def test_swaps(name, cutoff):
    check_swaps(name, cutoff)


def test_rr_seed_rule_by_hand():
    gains, aux, out = np.array([0.0, 0, 1, 0, 1]), np.empty((N_AUX, 6)), np.zeros(5)
    row = ready(MEASURES["mrr"].row, ROW)
    ready(MEASURES["mrr"].prepare, PREPARE)(gains, np.ones(5), 5, aux)
    row(0, gains, np.ones(5), 5, aux, out)
    assert out[[2, 4]] == pytest.approx(1 - 1 / 3)
    assert out[[1, 3]] == pytest.approx(0)


def test_only_the_exact_form_sees_the_first_relevant_document_sink():
    """Relevant at ranks 2 and 4: swapping ranks 2 and 3 loses 1/2 − 1/3, ranks 2 and 5 loses 1/2 − 1/4."""
    seed, exact = (swap_changes(name, None, [0, 4, 0, 4, 0])[0] for name in NAMES)
    assert seed[1].tolist() == [0, 0, 0, 0, 0]
    assert exact[1, 2:] == pytest.approx([1 / 2 - 1 / 3, 0, 1 / 2 - 1 / 4])
    assert exact[0] == pytest.approx(seed[0])


@pytest.mark.parametrize("n", [1, 2, 7])
def test_one_relevant_document_tied_with_all_has_the_mean_of_the_reciprocal_ranks(n):
    labels = np.zeros(n)
    labels[0] = 4
    assert one("mrr", None, labels, np.zeros(n)) == pytest.approx(sum(1 / r for r in range(1, n + 1)) / n)
