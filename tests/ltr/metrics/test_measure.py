"""Values against written formulas, ties against enumeration, swap changes against brute force, parity with ir_measures."""

import math

import numpy as np
import pytest
from scipy.stats import kendalltau

from ltr.kernels.kernel import ready
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import evaluate
from ltr.metrics.measure import MEASURES, N_AUX, PREPARE, ROW, Measure, curve_of, gains_of
from tests import naive

CASES = [
    (name, cutoff)
    for name in MEASURES
    for cutoff in (None, 1, 3, 10)
    if not (name == "p" and cutoff is None) and not (MEASURES[name].whole and cutoff)
]


def labels_for(name, rng, n):
    return rng.integers(0, 5, n) / 4 if name == "cndcg" else rng.integers(0, 5, n).astype(float)


def one(name, cutoff, labels, scores, **conventions):
    measure = Measure(name, cutoff)
    values = evaluate({measure.source: labels}, scores, [0, len(labels)], [measure], Conventions(**conventions))
    return values[measure.key][0]


@pytest.mark.parametrize(("name", "cutoff"), CASES)
def test_value_is_the_formula_and_ties_are_the_mean_over_their_orders(name, cutoff):
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 4, 5, 6):
        for levels in (2, 3, 50):
            labels, scores = labels_for(name, rng, n), rng.integers(0, levels, n).astype(float)
            want = naive.expected(name, labels, scores, cutoff=cutoff)
            got = one(name, cutoff, labels, scores)
            assert math.isnan(got) if want is None else got == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize(("name", "cutoff"), CASES)
def test_swap_change_is_value_after_less_value_before_for_every_pair(name, cutoff):
    rng = np.random.default_rng(3)
    for n in (2, 3, 5, 8):
        for _ in range(6):
            labels = labels_for(name, rng, n)
            measure, conventions = Measure(name, cutoff), Conventions()
            gains = gains_of(measure, labels, conventions)
            curve, limit = curve_of(measure, n, conventions)
            aux, change = np.empty((N_AUX, n + 1)), np.zeros((n, n))
            rows = ready(measure.definition.prepare, PREPARE)(gains, curve, limit, aux)
            for t in range(rows):
                ready(measure.definition.row, ROW)(t, gains, curve, limit, aux, change[t])
            before = naive.value(name, labels, cutoff)
            for t in range(n):
                for b in range(t + 1, n):
                    swapped = labels.copy()
                    swapped[[t, b]] = swapped[[b, t]]
                    after = naive.value(name, swapped, cutoff)
                    want = 0.0 if before is None else abs(after - before)
                    if name == "mrr" and before is not None and gains[t] > 0:
                        want = 0.0  # the seed rule of D eq. 11 sees only documents that climb
                    assert change[t, b] == pytest.approx(want, abs=1e-12), (name, cutoff, labels, t, b)


def test_rr_seed_rule_by_hand():
    gains, aux, out = np.array([0.0, 0, 1, 0, 1]), np.empty((N_AUX, 6)), np.zeros(5)
    row = ready(MEASURES["mrr"].row, ROW)
    ready(MEASURES["mrr"].prepare, PREPARE)(gains, np.ones(5), 5, aux)
    row(0, gains, np.ones(5), 5, aux, out)
    assert out[[2, 4]] == pytest.approx(1 - 1 / 3)
    assert out[[1, 3]] == pytest.approx(0)


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


def test_names():
    assert Measure.of("NDCG@10").key == Measure.of("ndcg_10").key == "ndcg_10"
    assert str(Measure.of("ndcg@3:freshness")) == "ndcg@3:freshness"
    assert Measure.of("ndcg@3:freshness").key == "ndcg_3_freshness"
    for wrong, rule in (("ndgc", "unknown measure"), ("ndcg@0", "at least 1"), ("p", "needs a cutoff"), ("auc@3", "no cutoff")):
        with pytest.raises(ValueError, match=rule):
            Measure.of(wrong)
    with pytest.raises(ValueError, match="fewer errors are better"):
        Measure.maximised("errors")
