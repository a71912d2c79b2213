"""A ranker on the scores of others scores by their features."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.rankers.stacked import Stacked
from tests.conftest import make_queries


@pytest.fixture(scope="module")
def parts():
    queries = make_queries(30, n_features=3, seed=2)
    bases = (ltr.LeastSquares().fit(queries), ltr.Column("f2").fit(queries))
    scores = np.column_stack([base.predict(queries.features) for base in bases]).astype(np.float32)
    return queries, bases, ltr.LeastSquares().fit(replace(queries, features=scores, names=("ridge", "column"))), scores


def test_it_ranks_by_the_features_of_those_below(parts):
    queries, bases, top, scores = parts
    stacked = Stacked(bases, top)
    assert stacked.names == queries.names
    assert np.array_equal(stacked.predict(queries.features), top.predict(scores))
    assert stacked.digest != Stacked(bases[::-1], top).digest
    assert stacked.export_form is None
    for refused in (stacked.surface, lambda features: stacked.fit(queries)):
        with pytest.raises(ValueError, match="scores"):
            refused(queries.features)


def test_each_of_its_features_is_the_score_of_one(parts):
    queries, bases, top, _ = parts
    other = ltr.LeastSquares().fit(replace(queries, names=("x", "y", "z")))
    for below in (bases[:1], (bases[0], other)):
        with pytest.raises(ValueError, match="rankers below one that reads ridge, column; one for each"):
            Stacked(below, top)


def test_the_mean_of_others_is_an_average_of_them(parts):
    queries, _, _, _ = parts
    small = ltr.LambdaMART(n_trees=3, n_leaves=4, min_docs_in_leaf=5, stop_on=None)
    bases = tuple(replace(small, seed=seed).fit(queries) for seed in (1, 2))
    scores = np.column_stack([base.predict(queries.features) for base in bases]).astype(np.float32)
    of_scores = replace(queries, features=scores, names=("a", "a 2"))
    top = ltr.Average((ltr.Column("a 2"), ltr.Column("a"))).fit(of_scores)
    stacked = Stacked(bases, top)
    assert stacked.average is not None
    assert np.allclose(stacked.average.predict(queries.features), stacked.predict(queries.features), atol=1e-6)
    assert stacked.export_form == "trees"
    found = stacked.attributions(queries.features)
    assert np.allclose(np.diff(found.sum(axis=1)), np.diff(stacked.predict(queries.features)), atol=1e-6)
    turned = ltr.Average((ltr.Column("a 2"), ltr.Column("a", descending=False))).fit(of_scores)
    assert Stacked(bases, turned).average is None
    assert Stacked(bases, turned).export_form is None
    lines = tuple(ltr.LeastSquares(ridge=ridge).fit(queries) for ridge in (1.0, 9.0))
    linear = Stacked(lines, top)
    assert linear.export_form == "linear"
    assert np.ptp(queries.features @ linear.linear_weights - linear.predict(queries.features)) < 1e-5


def test_it_goes_by_the_rules_that_the_one_above_was_trained_by(parts):
    _, bases, top, _ = parts
    rules = ltr.Conventions(gain="linear", threshold=1)
    assert Stacked(bases, replace(top, conventions=rules)).conventions == rules
