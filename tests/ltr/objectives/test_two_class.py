"""MART for two classes: gradients against finite differences of the loss, and the leaf of B15."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import canonical, keep
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure
from ltr.objectives.two_class import TwoClassObjective
from tests.conftest import make_queries

SMALL = {
    "n_trees": 8,
    "n_leaves": 6,
    "min_docs_in_leaf": 5,
    "query_share": 1.0,
    "feature_share": 1.0,
    "learning_rate": 0.1,
    "stop_on": None,
    "objective": (ltr.Term("map"),),
}


def made(queries, balanced, sigma=1.3):
    return TwoClassObjective(queries, Measure.of("map"), Conventions(), sigma, balanced)


@pytest.mark.parametrize("balanced", [False, True])
def test_gradients_are_the_slope_of_the_written_loss(balanced):
    queries = make_queries(20, seed=1)
    relevant = queries.labels >= 2
    n = relevant.sum(), (~relevant).sum()
    weight = np.where(relevant, 1 / n[0], 1 / n[1]) if balanced else np.ones(len(relevant))
    sign = np.where(relevant, 1, -1)

    def loss(scores):
        return weight * np.log1p(np.exp(-2 * sign * 1.3 * scores))

    scores = np.random.default_rng(0).normal(size=queries.n_documents)
    gradient, hessian = made(queries, balanced)(scores, 0)
    h = 1e-4
    assert gradient == pytest.approx(-(loss(scores + h) - loss(scores - h)) / (2 * h), rel=1e-5, abs=1e-9)
    assert hessian == pytest.approx((loss(scores + h) - 2 * loss(scores) + loss(scores - h)) / h**2, rel=1e-3, abs=1e-6)


def test_sigma_times_score_does_not_depend_on_sigma():
    """B section 6: bit-equal for powers of two, to rounding otherwise."""
    queries = make_queries(60, seed=2)
    model = ltr.LambdaMART(**SMALL, loss="two_class")
    reference = model.fit(queries).predict(queries.features)
    assert np.array_equal(2 * replace(model, sigma=2.0).fit(queries).predict(queries.features), reference)
    assert np.array_equal(replace(model, sigma=0.25).fit(queries).predict(queries.features) / 4, reference)
    assert 3 * replace(model, sigma=3.0).fit(queries).predict(queries.features) == pytest.approx(reference, abs=1e-6)


@pytest.mark.parametrize("loss", ["two_class", "balanced"])
def test_first_leaves_are_those_of_the_formula(loss):
    queries = canonical(make_queries(60, seed=3))
    model = ltr.LambdaMART(**{**SMALL, "n_trees": 1, "learning_rate": 1.0}, loss=loss).fit(queries)
    leaf = model.trees.leaves(queries.features)[:, 0]
    relevant = queries.labels >= 2
    for k, value in enumerate(model.trees.value):
        plus, minus = (relevant & (leaf == k)).sum(), (~relevant & (leaf == k)).sum()
        if loss == "balanced":
            plus, minus = plus / relevant.sum(), minus / (~relevant).sum()
        assert value == pytest.approx((plus - minus) / (plus + minus)), "at F = 0: gradient ±1, hessian 1, weights of B15"


def test_balance_moves_the_odds_and_keeps_learning():
    queries = make_queries(80, seed=4)
    relevant = queries.labels >= 2
    plain = ltr.LambdaMART(**SMALL, loss="two_class").fit(queries).predict(queries.features)
    even = ltr.LambdaMART(**SMALL, loss="balanced").fit(queries).predict(queries.features)
    for scores in (plain, even):
        assert scores[relevant].mean() > scores[~relevant].mean() + 0.1
    few = relevant.mean() < 0.5
    assert (even.mean() > plain.mean()) == few


def test_one_class_alone_is_refused():
    queries = make_queries(5)
    with pytest.raises(ValueError, match=r"0 documents are relevant and .* are not .map.; both are needed"):
        made(replace(queries, labels=np.zeros(queries.n_documents)), False)


@pytest.mark.parametrize("balanced", [False, True])
def test_documents_without_a_label_are_not_relevant_or_by_condensed_of_no_class(balanced):
    queries = canonical(make_queries(20, seed=1))
    judged = np.random.default_rng(0).random(queries.n_documents) < 0.7
    holes = replace(queries, labels=np.where(judged, queries.labels, np.nan))
    zeros = replace(queries, labels=np.where(judged, queries.labels, 0.0))
    scores = np.random.default_rng(1).normal(size=queries.n_documents)
    for one, other in zip(made(holes, balanced)(scores, 0), made(zeros, balanced)(scores, 0), strict=True):
        assert np.array_equal(one, other)
    rules = Conventions(unlabelled="condensed")
    condensed = TwoClassObjective(holes, Measure.of("map"), rules, 1.3, balanced)(scores, 0)
    alone = keep(holes, judged)
    for one, other in zip(condensed, made(alone, balanced)(scores[judged], 0), strict=True):
        assert not one[~judged].any()
        assert one[judged] == pytest.approx(other, rel=1e-12)
