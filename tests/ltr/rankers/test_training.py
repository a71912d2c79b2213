"""What is watched while training: defined somewhere, or an error instead of a silent nothing."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import keep
from ltr.metrics.measure import Measure
from ltr.rankers.training import checked_callbacks, judged, mean_measure
from tests.conftest import make_queries

LEFT_OUT = ltr.Conventions(unlabelled="condensed")


def test_the_mean_is_over_defined_queries():
    queries = ltr.Queries(np.zeros((4, 1)), np.array([0.0, 0, 3, 0]), np.array([0, 2, 4]))
    assert mean_measure("mrr", queries, np.array([1.0, 0, 2, 1]), ltr.Conventions()) == 1.0


@pytest.mark.parametrize(
    "model", [ltr.LambdaMART(n_trees=3, min_docs_in_leaf=3, stop_on="map"), ltr.LambdaRank(epochs=2, stop_on="map")]
)
def test_a_measure_that_no_query_defines_is_an_error(model):
    train, valid = make_queries(20, seed=1), make_queries(10, seed=2)
    below = replace(valid, labels=np.minimum(valid.labels, 1.0))
    with pytest.raises(ValueError, match="map is undefined on every query"):
        model.fit(train, below)


@pytest.mark.parametrize("model", [ltr.LambdaMART(n_trees=9, min_docs_in_leaf=3), ltr.LambdaRank(epochs=9)])
def test_a_tick_ends_the_training(model):
    ticks = []

    def tick():
        ticks.append(1)
        if len(ticks) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        model.fit(make_queries(20), None, tick)
    assert len(ticks) == 3


def test_docid_ties_reach_the_training():
    queries = make_queries(20)
    named = replace(queries, documents=np.array([f"d{k}".encode() for k in range(queries.n_documents)]))
    conventions = ltr.Conventions(ties="docid")
    ltr.LambdaMART(n_trees=2, min_docs_in_leaf=3, conventions=conventions).fit(named, named)
    ltr.LambdaRank(epochs=2, conventions=conventions).fit(named)


def test_callbacks_are_functions_of_the_progress():
    def told(now):
        return None

    assert checked_callbacks(None) == checked_callbacks(()) == ()
    assert checked_callbacks(told) == checked_callbacks([told]) == (told,)
    with pytest.raises(ValueError, match="callbacks: str of builtins must be a function of the progress"):
        checked_callbacks("print")
    lightgbm = pytest.importorskip("lightgbm")
    with pytest.raises(
        ValueError,
        match=r"of lightgbm must be a function of the progress .*for early stopping set patience=50 \(rankers\), for logging",
    ):
        checked_callbacks([lightgbm.early_stopping(50)])


@pytest.mark.parametrize(
    "model",
    [
        ltr.SVMmap(conventions=LEFT_OUT), ltr.RankSVM(conventions=LEFT_OUT), ltr.AdaRank(conventions=LEFT_OUT), ltr.LeastSquares(conventions=LEFT_OUT),
        ltr.Listwise(conventions=LEFT_OUT), ltr.Listwise(loss="softrank", tau=1, conventions=LEFT_OUT), ltr.RankBoost(rounds=20, conventions=LEFT_OUT),
        ltr.ConditionalModel(measure="ndcg:binary", samples=5, iterations=5, starts=1, conventions=LEFT_OUT),
        ltr.LambdaMART(n_trees=5, min_docs_in_leaf=1, query_share=1, conventions=LEFT_OUT),
    ],
    ids=lambda model: f"{model.kind} {getattr(model, 'loss', '')}",
)  # fmt: skip
def test_what_nobody_judged_is_left_out_of_training_too(model):
    """The scores are those of a ranker that has never seen these documents."""
    queries, rng = make_queries(30, seed=4, largest=6), np.random.default_rng(2)
    known = rng.random(queries.n_documents) < 0.6
    labels = np.where(known, queries.labels, np.nan)
    queries = replace(queries, labels=labels, sources={**queries.sources, "binary": np.where(known, labels > 1, np.nan)})
    found, alone = model.fit(queries), model.fit(keep(queries, known))
    assert found.predict(queries.features[known]) == pytest.approx(alone.predict(queries.features[known]), abs=1e-6)
    assert np.ptp(alone.predict(queries.features)) > 0.01


def test_all_documents_are_learned_from_where_nobody_judged_is_label_0():
    queries = make_queries(9)
    queries = replace(queries, labels=np.where(np.arange(queries.n_documents) % 3, queries.labels, np.nan))
    assert judged(queries, (), ltr.Conventions()) is queries
    assert judged(queries, (), LEFT_OUT).n_documents == np.count_nonzero(~np.isnan(queries.labels))
    clicks = ltr.Measure.of("cndcg")
    assert judged(queries, (clicks,), LEFT_OUT).n_documents == np.count_nonzero(~np.isnan(queries.source("click")))
    everywhere = replace(queries, sources={"click": np.zeros(queries.n_documents)})
    assert judged(everywhere, (clicks,), LEFT_OUT) is everywhere


def test_of_two_sources_a_document_with_a_label_of_either_is_learned_from():
    q = ltr.Queries(np.eye(4, dtype=np.float32), [2, np.nan, 0, np.nan], [0, 4], sources={"click": [np.nan, 0.5, 0.0, np.nan]})
    kept = judged(q, [Measure.of("ndcg"), Measure.of("cndcg")], ltr.Conventions(unlabelled="condensed"))
    assert kept.position.tolist() == [0, 1, 2]


def test_where_nobody_judged_anything_all_is_given_to_the_ranker():
    queries = make_queries(5)
    nothing = replace(queries, labels=np.full(queries.n_documents, np.nan))
    assert judged(nothing, (), LEFT_OUT) is nothing
