"""The trace of a stored model: made once, kept beside its cell."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from tasks.evidence.trace import TraceRecord, trace_figures, traced
from tasks.records import Cell, CellResult, Fold, Trained
from tasks.store.cells import CellFolder
from tasks.store.datasets import keep_queries
from tasks.store.state import keep_json, kept_json
from tests.conftest import make_queries


def trained(name):
    return Trained(Cell("x", "conditional", 0, {}, {}, Fold(name, name, name), (), {}), CellResult("some", "", {}, 0.0))


def test_a_trace_is_kept_beside_the_cell(workplace):
    queries = make_queries(25, seed=1)
    queries = replace(queries, labels=(queries.labels >= 3).astype(float), sources={})
    name = keep_queries(queries)
    model = ltr.ConditionalModel(measure="map", samples=20, conventions=ltr.Conventions(threshold=1)).fit(queries)
    ltr.save(model, CellFolder.of("some").model)
    seen = traced.fn(trained(name))
    assert seen.ranker == "conditional"
    assert set(seen.smear) == {"0", "0.5", "1"}
    assert len(seen.products) == len(seen.losses) > 0
    assert np.isfinite(seen.losses).all()
    assert np.isfinite(seen.smear["0.5"]).all()
    (kept,) = CellFolder.of("some").path.glob("trace-*.json")
    keep_json(kept, {**kept_json(kept), "ranker": "kept"})
    assert traced.fn(trained(name)).ranker == "kept"


def test_figures_of_a_conditional_models_fit():
    seen = TraceRecord("m", [3.0, 2.0], [], [1.0, -1.0], [0.1, 0.9], {"0": [0.0, 0.4], "1": [1.0]})
    figures = trace_figures(seen)
    assert set(figures) == {"smear", "products", "objective"}
    assert "started with 100% bad on top" in figures["smear"]
    assert "closed form" not in figures["objective"]
    assert "closed form" in trace_figures(replace(seen, closed=[4.0, 3.0]))["objective"]


@pytest.mark.filterwarnings("error")
def test_products_that_do_not_vary_have_no_correlation():
    """Where the start is the optimum w is 0, and numpy warned of a division."""
    seen = TraceRecord("m", [3.0], [], [0.0, 0.0], [0.1, 0.9], {"0": [0.0, 0.4]})
    assert np.isnan(seen.summary["correlation"])
    assert replace(seen, products=[0.0, 1.0]).summary["correlation"] == pytest.approx(1)
