"""Which features put documents in the wrong order, over many queries."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.diagnostics import why_above
from tasks.evidence.wrong_order import summary_of
from tasks.records import DataError
from tests.conftest import make_queries

QUERIES = replace(
    make_queries(40, seed=5), attributes={"language": np.where(np.arange(40) % 4 == 0, "de", "en")}, ids=np.arange(40).astype("S")
)
MODEL = ltr.LeastSquares().fit(QUERIES).moved(np.array([0.0, 1.0, 0.01, 0.0]))


def test_the_feature_that_decides_is_the_largest_reason():
    summary = summary_of(MODEL, QUERIES)
    assert summary.text().startswith("all queries: 40 queries, ")
    assert [row.feature for row in summary.features] == ["f2", "f3"]
    first = summary.features[0]
    assert first.first == summary.pairs
    assert first.contribution == pytest.approx(first.size)
    assert sum(row.nearest for row in summary.features) <= summary.pairs
    assert summary.method == "linear"


def test_the_values_to_try_are_looked_up_once_for_all_queries(monkeypatch):
    calls = []
    values = why_above._values
    monkeypatch.setattr(why_above, "_values", lambda *given: calls.append(given) or values(*given))
    assert summary_of(MODEL, QUERIES).pairs > 20
    assert len(calls) == 1


def test_a_segment_has_its_queries_only():
    german, english = (summary_of(MODEL, QUERIES, f"language={value}") for value in ("de", "en"))
    assert (german.queries, english.queries) == (10, 30)
    assert german.pairs + english.pairs == summary_of(MODEL, QUERIES).pairs
    for wrong, said in (
        ("language=fr", "language is en, de"),
        ("colour=red", "attributes: language, documents"),
        ("language", "attributes"),
    ):
        with pytest.raises(DataError, match=said):
            summary_of(MODEL, QUERIES, wrong)


def test_queries_in_order_have_no_reasons():
    right = replace(QUERIES, labels=np.zeros(QUERIES.n_documents))
    summary = summary_of(MODEL, right)
    assert (summary.pairs, summary.features, summary.method) == (0, (), "")


def test_pairs_explained_in_two_ways_name_both():
    """Those that differ in few features exactly, the others by sampled orders."""
    queries = make_queries(20, n_features=14, seed=2)
    features = queries.features.copy()
    for k in range(10):
        features[queries.offsets[k] : queries.offsets[k + 1], 3:] = 0
    queries = replace(queries, features=features, ids=np.arange(20).astype("S"))
    assert (
        summary_of(ltr.LambdaRank(hidden=2, epochs=2).fit(queries), queries, orders=4).method
        == "Shapley, exact or Shapley, sampled"
    )


def test_the_reason_is_what_speaks_most_for_the_order():
    """And not what speaks most against it."""
    queries = ltr.Queries(np.array([[2, 2, 0], [0, 0, 3]], np.float32), [0, 2], [0, 2])
    found = summary_of(ltr.LeastSquares.of_weights({"f1": 1.0, "f2": 1.1, "f3": 1.0}, ("f1", "f2", "f3")), queries)
    assert {one.feature: one.first for one in found.features} == {"f3": 0, "f2": 1, "f1": 0}
