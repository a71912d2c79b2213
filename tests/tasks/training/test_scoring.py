"""A ranker's measures are those of its scores."""

import numpy as np

import ltr
from tasks.training.scoring import evaluate
from tests.conftest import make_queries


def test_measures_of_a_ranker_are_those_of_its_scores():
    queries = make_queries(30)
    ranker, rules = ltr.LeastSquares().fit(queries), ltr.Conventions(ties="stable", threshold=1)
    found = evaluate(ranker, queries, ["map", "cndcg@3"], rules)
    labels = {"label": queries.labels, **queries.sources}
    scores = ranker.predict(queries.features)
    mine = ltr.evaluate(labels, scores, queries.offsets, ["map", "cndcg@3"], rules, queries.position)
    assert set(found) == {"map", "cndcg_3"}
    assert all(np.array_equal(found[key], mine[key], equal_nan=True) for key in found)
