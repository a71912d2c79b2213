"""The trace of a stored model: made once, kept beside its cell."""

from dataclasses import replace

import numpy as np

import ltr
from tasks import store
from tasks.sampling import traced
from tasks.train import folder_of
from tests.conftest import make_queries


def test_a_trace_is_kept_beside_the_cell(workplace):
    queries = make_queries(25, seed=1)
    queries = replace(queries, labels=(queries.labels >= 3).astype(float), sources={})
    name = store.keep_queries(queries)
    model = ltr.ConditionalModel(measure="map", samples=20, conventions=ltr.Conventions(threshold=1)).fit(queries)
    ltr.save(model, folder_of("some") / "model")
    seen = traced.fn("some", name, "conditional")
    assert seen["ranker"] == "conditional"
    assert set(seen["smear"]) == {"0", "0.5", "1"}
    assert len(seen["products"]) == len(seen["losses"]) > 0
    assert np.isfinite(seen["losses"]).all()
    assert np.isfinite(seen["smear"]["0.5"]).all()
    (kept,) = folder_of("some").glob("trace-*.json")
    kept.write_text(kept.read_text().replace('"conditional"', '"kept"'))
    assert traced.fn("some", name, "conditional")["ranker"] == "kept"
