"""The fast loop of the default objective against the general one, at the sizes and labels where it has corners."""

from dataclasses import replace

import numpy as np
import pytest

from ltr.data.queries import Queries
from ltr.metrics.conventions import Conventions
from ltr.objectives.dcg_pairs import FARTHEST
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.terms import Term


def one_query(labels):
    return Queries(np.zeros((len(labels), 1), np.float32), np.asarray(labels, float), np.array([0, len(labels)]))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 100])
@pytest.mark.parametrize("measure", ["ndcg", "ndcg@5", "jk_ndcg", "p@10", "wta"])
@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
def test_it_is_the_general_loop_in_float32(n, measure, levels):
    rng = np.random.default_rng(n)
    queries = one_query(4 * rng.integers(0, levels, n) / max(levels - 1, 1))
    for scores in (rng.normal(size=n), rng.integers(0, 3, n).astype(float), 9 * rng.normal(size=n)):
        for cost in ("logistic", "logistic_near", "sigmoid"):
            term = Term(measure, cost=cost)
            fast, exact = (Objective(queries, [term], sigma=1.3, exact=exact)(scores, 0) for exact in (False, True))
            for mine, want in zip(fast, exact, strict=True):
                assert mine == pytest.approx(want, abs=1e-5 * max(1.0, np.abs(want).max(initial=0.0)))


@pytest.mark.parametrize("n", [2, 17, 60])
@pytest.mark.parametrize("cost", ["logistic", "logistic_near", "sigmoid"])
@pytest.mark.parametrize("alone", [True, False])
def test_groups_are_the_general_loop_too(n, cost, alone):
    """Clicked documents of one relevance, alone and beside all pairs of another term."""
    rng = np.random.default_rng(n)
    for clicked in (0.1, 0.5, 1.0):
        labels, clicks = rng.integers(0, 3, n).astype(float), np.where(rng.random(n) < clicked, rng.integers(1, 4, n) / 3, 0.0)
        queries = Queries(np.zeros((n, 1), np.float32), labels, np.array([0, n]), sources={"click": clicks})
        term = Term("cndcg", pairs="same_label", cost=cost)
        terms = [term] if alone else [Term(), replace(term, weight=0.3)]
        for scores in (rng.normal(size=n), rng.integers(0, 3, n).astype(float)):
            fast, exact = (Objective(queries, terms, exact=exact)(scores, 0) for exact in (False, True))
            for mine, want in zip(fast, exact, strict=True):
                assert mine == pytest.approx(want, abs=1e-5 * max(1.0, np.abs(want).max(initial=0.0)))


def test_scores_too_far_apart_for_float32_take_the_general_loop():
    queries = one_query([4, 0, 2, 0])
    scores = np.array([0.0, FARTHEST, -500.0, 900.0])
    fast, exact = (Objective(queries, exact=exact)(scores, 0) for exact in (False, True))
    assert np.array_equal(fast, exact)


@pytest.mark.parametrize("alone", [True, False])
def test_large_labels_of_small_differences_are_told_apart(alone):
    """Seconds since 1970 as labels: in float32 gains over the ideal would hardly differ."""
    rng = np.random.default_rng(3)
    rules, terms = Conventions(gain="linear"), [Term()] if alone else [Term(), Term("p@5", weight=0.2)]
    for base in (0.0, 1e6, 1.7e9):
        queries = one_query(base + rng.integers(0, 60, 40))
        scores = rng.normal(size=40)
        fast, exact = (Objective(queries, terms, rules, exact=exact)(scores, 0) for exact in (False, True))
        for mine, want in zip(fast, exact, strict=True):
            assert mine == pytest.approx(want, abs=1e-5 * np.abs(want).max())
