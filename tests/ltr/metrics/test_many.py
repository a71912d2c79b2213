"""What is computed once for many rankings gives the values that each of them has by itself."""

import numpy as np
import pytest

import ltr
from ltr.metrics.many import Judged, value_at
from tests.conftest import make_queries


@pytest.mark.parametrize("rules", [{}, {"ties": "stable"}, {"unlabelled": "condensed"}, {"empty": "zero"}, {"short": "zero"}])
@pytest.mark.parametrize("measure", ["ndcg_3", "map", "p_2"])
def test_values_are_those_of_evaluate(measure, rules):
    queries, conventions = make_queries(15, seed=2), ltr.Conventions(threshold=1, **rules)
    queries.labels[::5] = queries.labels[: queries.offsets[1]] = np.nan
    scores = np.round(np.random.default_rng(1).normal(size=queries.n_documents), 0)
    judged = Judged.of(queries, ltr.Measure.of(measure), conventions)
    total, defined = 0.0, 0
    for q, factor in enumerate(judged.factor):
        own = slice(judged.offsets[q], judged.offsets[q + 1])
        value = 0.0
        if factor:
            value = value_at(scores[judged.rows[own]], judged.gains[own], judged.reading)
        if not np.isnan(value):
            total, defined = total + factor * value, defined + 1
    wanted = ltr.evaluate(queries.labels, scores, queries.offsets, [measure], conventions, queries.position)
    assert judged.mean(np.array(total), defined) == pytest.approx(np.nanmean(next(iter(wanted.values()))), abs=1e-12)


def test_a_measure_that_no_query_defines_is_named():
    queries = make_queries(3)
    judged = Judged.of_labels(np.zeros(queries.n_documents), queries.offsets, ltr.Measure.of("map"), ltr.Conventions())
    with pytest.raises(ValueError, match="map is undefined on every query"):
        judged.mean(np.zeros(1), 0)
