"""The two products of linear rankers, and what scaling does to weights."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.linear.linear_ranker import minimise, products, transposed
from tests.conftest import make_queries


@pytest.mark.usefixtures("all_threads")
def test_products_are_numpys_and_the_same_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    features, weights, factors = rng.normal(size=(1000, 7)).astype(np.float32), rng.normal(size=7), rng.normal(size=1000)
    assert products(features, weights) == pytest.approx(features.astype(float) @ weights)
    assert transposed(features, factors) == pytest.approx(features.astype(float).T @ factors)
    with ltr.threads(1):
        alone = transposed(features, factors)
    assert np.array_equal(alone, transposed(features, factors))


def test_least_squares_by_lbfgs():
    rng = np.random.default_rng(1)
    features, target = rng.normal(size=(50, 4)).astype(np.float32), rng.normal(size=50)

    def cost(scores):
        return float(((scores - target) ** 2).sum()), 2 * (scores - target)

    weights, value = minimise(cost, features, 2.0, np.zeros(4), 500)
    x = features.astype(float)
    want = np.linalg.solve(x.T @ x + np.eye(4) / 2, x.T @ target)
    assert weights == pytest.approx(want, abs=1e-4)
    assert value == pytest.approx(cost(x @ want)[0] + (want**2).sum() / 2)


def test_a_minimum_that_is_no_number_is_none():
    with pytest.raises(
        ValueError, match="the objective became nan: C=1 or the features are too large or small, or the cost is undefined"
    ):
        minimise(lambda scores: (np.nan, np.zeros(len(scores))), np.ones((5, 2), np.float32), 1.0, np.zeros(2), 10)


def test_weights_are_those_of_the_features_as_they_are():
    queries = make_queries(40, seed=2)
    stretched = replace(queries, features=queries.features * np.array([1.0, 100.0, 0.01, 5.0], np.float32) + 3)
    a, b = (ltr.RankSVM(C=0.1).fit(one) for one in (queries, stretched))
    assert b.weights * np.array([1.0, 100.0, 0.01, 5.0]) == pytest.approx(a.weights, rel=1e-3)
    flat = replace(queries, features=np.column_stack((queries.features[:, :3], np.ones(queries.n_documents))))
    assert ltr.RankSVM().fit(flat).weights[3] == 0.0


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_validation_features_are_complete_as_those_of_training_are(value):
    """A score of −∞ is that of a document that is not ranked, and moved the curve."""
    train, valid = make_queries(20), make_queries(10, seed=1)
    features = valid.features.copy()
    features[4, 2] = value
    with pytest.raises(ValueError, match="RankSVM: feature 'f3' of the validation queries is missing or infinite"):
        ltr.RankSVM().fit(train, replace(valid, features=features))


def test_a_feature_that_an_unjudged_document_lacks_is_named():
    """Nothing is learned from it, and it is scored: it was told as a score that is no number, of a document that nobody can find."""
    queries, rules = make_queries(20), ltr.Conventions(unlabelled="condensed")
    labels, features = queries.labels.copy(), queries.features.copy()
    labels[::5] = np.nan
    features[5, 2] = np.nan
    lacking = replace(queries, labels=labels, features=features)
    with pytest.raises(ValueError, match="RankSVM: feature 'f3' of the training queries is missing or infinite in a document"):
        ltr.RankSVM(conventions=rules).fit(lacking)
    ltr.RankSVM(impute="zero", conventions=rules).fit(lacking)


def test_the_curve_is_of_all_documents_that_its_measure_knows():
    """Also of those that somebody judged for that measure and not for the one that is learned."""
    queries, valid = make_queries(30, seed=2), make_queries(20, seed=3)
    good = np.where(np.arange(queries.n_documents) % 3, queries.labels >= 2, np.nan)
    queries, valid = replace(queries, sources={"good": good}), replace(valid, sources={"good": (valid.labels >= 2) * 1.0})
    rules = ltr.Conventions(unlabelled="condensed")
    model = ltr.SVMmap(measure="map:good", conventions=rules, planes=20).fit(queries, valid)
    for one, values in ((queries, model.curve.train), (valid, model.curve.valid)):
        found = ltr.evaluate(one.labels, model.predict(one.features), one.offsets, ["ndcg_10"], rules)["ndcg_10"]
        assert values[-1] == pytest.approx(np.nanmean(found))
