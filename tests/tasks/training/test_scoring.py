"""A ranker's measures are those of its scores."""

import ir_measures
import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries
from ltr.metrics.conventions import PRESETS
from tasks.records import RETRIEVED
from tasks.training.scoring import evaluate, ranked, ranks_by_chance
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


def test_a_run_is_measured_as_trec_eval_measures_its_file():
    """Rankings of one run, and of two that are fused: what neither has is at no rank, whatever else has it; by ir_measures over files of
    what they have."""
    rng = np.random.default_rng(4)
    n, offsets = 240, np.arange(0, 241, 12)
    labels, scores = rng.integers(0, 3, n).astype(float), rng.normal(size=(n, 2)).astype(np.float32)
    scores[rng.random((n, 2)) < 0.6] = np.nan
    ranks = np.full((n, 2), np.nan, np.float32)
    for q in range(20):
        for run in range(2):
            own = scores[12 * q : 12 * q + 12, run]
            place = np.argsort(np.argsort(-own, kind="stable"), kind="stable") + 1.0
            ranks[12 * q : 12 * q + 12, run] = np.where(np.isnan(own), np.nan, place)
    documents = np.array([f"d{k:03}".encode() for k in range(n)])
    names = ("bm25", "dense", "rank of bm25", "rank of dense")
    queries = Queries(np.hstack((scores, ranks)), labels, offsets, names=names, documents=documents)
    measures = {"map": "AP", "ndcg": "nDCG", "ndcg_10": "nDCG@10", "mrr": "RR", "p_5": "P@5"}
    rules = PRESETS["trec"].conventions
    for ranker in (ltr.Column("bm25"), ltr.Fusion()):
        fitted = ranker.fit(queries)
        found, predicted = evaluate(fitted, queries, list(measures), rules), fitted.predict(queries.features)
        has = ~np.isnan(scores[:, :1] if ranker.kind == "column" else scores).all(axis=1)
        query = np.repeat(np.arange(20), 12)
        qrels = [ir_measures.Qrel(str(q), d.decode(), int(label)) for q, d, label in zip(query, documents, labels, strict=True)]
        run = [
            ir_measures.ScoredDoc(str(q), d.decode(), score)
            for q, d, score, known in zip(query, documents, predicted, has, strict=True)
            if known
        ]
        theirs = ir_measures.calc_aggregate(list(map(ir_measures.parse_measure, measures.values())), qrels, run)
        for ours, name in measures.items():
            assert found[ours].mean() == pytest.approx(theirs[ir_measures.parse_measure(name)]), (ranker.kind, name)


def test_one_score_for_all_documents_ranks_by_chance():
    queries = make_queries(30)
    assert not ranks_by_chance(ltr.LeastSquares().fit(queries), queries)
    assert ranks_by_chance(ltr.RankSVM(C=1e-40).fit(queries), queries)
    one = Queries(queries.features[:1], queries.labels[:1], np.array([0, 1]))
    assert not ranks_by_chance(ltr.LeastSquares().fit(queries), one), "one document has no rank to lose"


def test_what_no_run_retrieved_is_at_no_rank():
    q = ltr.Queries(np.eye(2, dtype=np.float32), [1, 0], [0, 2], sources={RETRIEVED: [1.0, 0.0]})
    assert ranked(np.array([1.0, 2.0]), q).tolist() == [1.0, -np.inf]
