"""Another tool's number: each rule's shift, and the sum of them."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from tasks.evidence.explanation import explained
from tasks.records import DataError
from tests.conftest import make_queries


def test_shifts_lead_from_our_number_to_theirs():
    queries = make_queries(40, levels=3)
    model = ltr.LeastSquares().fit(queries)
    plain, lightgbm = (explained(model, queries, ["ndcg@5"], ltr.Conventions(), tool)[0] for tool in (None, "lightgbm"))
    assert plain.value == plain.theirs == lightgbm.value
    assert plain.shifts == ()
    scores = model.predict(queries.features)
    rules = ltr.Conventions(ties="stable", empty="one", threshold=1, ap_base="cutoff")
    theirs = ltr.evaluate(queries.labels, scores, queries.offsets, ["ndcg@5"], rules, queries.position)["ndcg_5"]
    assert lightgbm.theirs == pytest.approx(np.nanmean(theirs))
    assert lightgbm.shifts[-1].value == lightgbm.theirs
    assert lightgbm.as_json()["shifts"][0]["rule"] == lightgbm.shifts[0].rule


def test_a_measure_that_is_nowhere_defined_is_refused():
    queries = make_queries(10, levels=2)
    with pytest.raises(DataError, match="map is undefined on every query"):
        explained(ltr.LeastSquares().fit(queries), queries, ["map"], ltr.Conventions(threshold=4))


def test_a_measure_that_is_undefined_takes_no_other_with_it():
    queries = make_queries(20)
    queries = replace(queries, labels=(queries.labels > 1).astype(float))
    model = ltr.LeastSquares().fit(queries)
    ndcg, average = explained(model, queries, ["ndcg@10", "map"], ltr.Conventions(), "lightgbm")
    assert (average.value, average.shifts) == (None, ())
    assert average.why == "map is undefined on every query: no label reaches conventions.threshold=2; the labels are 0, 1"
    own = explained(model, queries, ["ndcg@10", "map"], ltr.Conventions(threshold=1), "lightgbm")
    assert average.theirs == own[1].theirs
    assert (ndcg.value, ndcg.why) == (own[0].value, "")
    alone = explained(model, queries, ["ndcg@10", "map"], ltr.Conventions())
    assert [row.theirs for row in alone] == [ndcg.value, None]


def test_a_measure_that_is_named_twice_is_told_once():
    queries = make_queries(20)
    rows = explained(ltr.LeastSquares().fit(queries), queries, ["ndcg@10", "map", "ndcg_10"], ltr.Conventions())
    assert [row.measure for row in rows] == ["ndcg_10", "map"]
