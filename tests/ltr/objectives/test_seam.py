"""The seam: whatever the objective, its gradients of all documents are those of its kernel, query by query."""

import numpy as np
import pytest
from numba import njit

import ltr
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure
from ltr.objectives.preferences import PreferenceObjective, Preferences
from ltr.objectives.seam import gradients_kernel
from ltr.objectives.two_class import TwoClassObjective
from tests.conftest import make_queries

TWO = (ltr.Term("ndcg"), ltr.Term("map", weight=ltr.Schedule(0.1, "linear", 0.2), construction="local_cost"))


def preferences(queries):
    upper = queries.offsets[:-1][np.diff(queries.offsets) > 2]
    return PreferenceObjective(queries, Preferences(upper, upper + 2, np.linspace(0.6, 1, len(upper))), 1.3)


OBJECTIVES = {
    "the default": lambda queries: ltr.Objective(queries),
    "near pairs": lambda queries: ltr.Objective(queries, [ltr.Term("ndcg@5", cost="logistic_near")], sigma=2.0),
    "exact": lambda queries: ltr.Objective(queries, exact=True),
    "two terms": lambda queries: ltr.Objective(queries, TWO, normalise="term"),
    "same labels": lambda queries: ltr.Objective(queries, [ltr.Term("cndcg", pairs="same_label")]),
    "preferences": preferences,
}


@njit
def of_query(gradients, plan, q, scores, gradient, hessian):
    return gradients_kernel(gradients, plan)(q, scores, plan, gradient, hessian)


@pytest.mark.parametrize("made", OBJECTIVES.values(), ids=OBJECTIVES)
def test_gradients_of_all_documents_are_those_of_each_query(made):
    queries = make_queries(15, seed=2)
    objective, scores = made(queries), np.random.default_rng(3).normal(size=queries.n_documents)
    for iteration in (0, 3):
        gradient, hessian = objective(scores, iteration)
        plan = objective.plan(iteration)
        assert gradient.any()
        for q, (a, b) in enumerate(zip(queries.offsets[:-1], queries.offsets[1:], strict=True)):
            own, bend = np.full(b - a, np.nan), np.full(b - a, np.nan)
            of_query(objective.gradients, plan, q, scores[a:b], own, bend)
            assert np.array_equal(own, gradient[a:b])
            assert np.array_equal(bend, hessian[a:b])


def test_a_schedule_reaches_both():
    queries = make_queries(15, seed=2)
    objective, scores = ltr.Objective(queries, TWO), np.random.default_rng(3).normal(size=queries.n_documents)
    assert not np.array_equal(objective(scores, 0)[0], objective(scores, 3)[0])


@pytest.mark.parametrize(
    "made",
    [
        ltr.Objective,
        preferences,
        lambda queries: TwoClassObjective(queries, Measure.of("map"), Conventions(), 1.0, balanced=True),
    ],
    ids=["terms", "preferences", "two classes"],
)
def test_scores_move_along_the_gradient_and_hessians_are_not_negative(made):
    """A small step along λ raises the objective: |λ| falls, as all three costs are convex at a fixed ranking."""
    queries = make_queries(15, seed=2)
    objective, scores = made(queries), np.random.default_rng(3).normal(size=queries.n_documents)
    gradient, hessian = objective(scores, 0)
    assert (hessian >= 0).all()
    after = objective(scores + 1e-6 * gradient, 0)[0]
    assert 0 < (after**2).sum() < (gradient**2).sum()
