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
