"""What the microscope saw: figures, lost causes, and what is kept."""

import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import ltr
from tasks.evidence.microscope import Inspections, Microscope, _inspected, inspection_figures
from tasks.records import RETRIEVED
from tasks.training.scoring import evaluate, retrieved_only
from tests.conftest import make_queries
from tests.tasks.evidence.samples import INSPECTION, INSPECTIONS


def test_figures_of_a_ranker():
    assert set(inspection_figures(INSPECTION)) == {"agreement", "partners", "top-labels", "moves"}
    assert set(inspection_figures(replace(INSPECTION, agreement={}))) == {"partners", "top-labels", "moves"}
    assert "share of the top 3" in inspection_figures(INSPECTION)["top-labels"]


def test_lost_causes_are_escaped_counted_and_an_artifact(tmp_path):
    many = replace(INSPECTION, lost=INSPECTION.lost * 25)
    text = Inspections((many,)).section()
    assert text.count("q&lt;1&gt;") == 20
    assert "The first 20 of 25" in text
    (artifact,) = INSPECTIONS.artifacts(tmp_path)
    assert artifact.name == "lost-causes-graded.csv"
    assert Inspections(()).section() == ""
    assert Inspections(()).figures == {}


def test_documents_that_were_not_retrieved_are_at_no_rank():
    queries = make_queries(30)
    retrieved = (np.arange(queries.n_documents) % 3 > 0).astype(float)
    test, rules = replace(queries, sources={**queries.sources, RETRIEVED: retrieved}), ltr.Conventions()
    train = retrieved_only(test)
    model = ltr.LambdaMART(n_trees=4, n_leaves=4, min_docs_in_leaf=2, stop_on=None).fit(train)
    seen, _ = _inspected(model, train, test, Microscope(every=2), "ndcg_10", rules)
    assert seen["test"][-1] == pytest.approx(np.nanmean(evaluate(model, test, ["ndcg_10"], rules)["ndcg_10"]), abs=1e-12)


def test_scores_along_training_are_in_memory_one_stage_at_a_time():
    """Those of 100 stages of 200,000 documents took 160 MB."""
    queries, alive, scored = make_queries(10), [], []

    def stages(features, every):
        for k in range(8):
            scores = np.full(len(features), float(k))
            scored.append(weakref.ref(scores))
            yield k, scores
            del scores
            alive.append(sum(one() is not None for one in scored))

    seen, _ = _inspected(SimpleNamespace(stages=stages), queries, queries, Microscope(), "ndcg_10", ltr.Conventions())
    assert len(seen["train"]) == len(seen["test"]) == 8
    assert max(alive) <= 2
