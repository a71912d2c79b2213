"""The ledger of effective pairs against pairs counted one by one."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import keep
from ltr.objectives.constructions import CONSTRUCTIONS
from ltr.objectives.effective_pairs import BANDS, ledger
from tests import naive
from tests.conftest import make_queries


@pytest.mark.parametrize("measure", ["ndcg", "ndcg@3", "map", "mrr", "err", "cndcg"])
def test_every_counted_pair_has_a_gradient_and_every_gradient_is_counted(measure):
    queries = make_queries(15, seed=3)
    scores = np.random.default_rng(1).normal(size=queries.n_documents)
    for construction in CONSTRUCTIONS:
        term = ltr.Term(measure, construction=construction)
        (found,) = ledger(queries, [term], scores)
        assert found.total == ltr.Objective(queries, [term]).effective_pairs(scores).sum(), construction


def test_labels_and_bands_of_ndcg_at_3_one_by_one():
    queries = make_queries(15, seed=3)
    scores = np.random.default_rng(1).normal(size=queries.n_documents)
    (found,) = ledger(queries, [ltr.Term("ndcg@3")], scores)
    want = np.zeros_like(found.counts)
    for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        ranked = queries.labels[a:b][np.argsort(-scores[a:b], kind="stable")]
        before = naive.value("ndcg", ranked, 3)
        for i in range(len(ranked)):
            for j in range(i + 1, len(ranked)):
                swapped = ranked.copy()
                swapped[[i, j]] = swapped[[j, i]]
                if before is not None and naive.value("ndcg", swapped, 3) != before:
                    pair = sorted((ranked[i], ranked[j]), reverse=True)
                    want[found.labels.index(pair[0]), found.labels.index(pair[1]), sum(i >= end for end in BANDS)] += 1
    assert np.array_equal(found.counts, want)


def test_bounds():
    queries = ltr.Queries(np.zeros((6, 1), np.float32), [0, 1, 2, 4, 0, 0], [0, 4, 6])
    (found,) = ledger(queries, [ltr.Term("map", construction="ranknet")], np.zeros(6))
    assert (found.multilevel, found.binary) == (6, 4)
    assert found.total == 4


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_documents_that_nobody_judged_are_counted_nowhere_where_they_are_left_out(construction):
    queries, rng = make_queries(15, seed=3), np.random.default_rng(1)
    known, scores = rng.random(queries.n_documents) < 0.5, rng.normal(size=queries.n_documents)
    some, rules = replace(queries, labels=np.where(known, queries.labels, np.nan)), ltr.Conventions(unlabelled="condensed")
    term = ltr.Term("ndcg@3", construction=construction)
    (found,), (alone,) = ledger(some, [term], scores, rules), ledger(keep(some, known), [term], scores[known], rules)
    assert np.array_equal(found.counts, alone.counts)
    assert found.total == ltr.Objective(some, [term], rules).effective_pairs(scores).sum() > 0


def test_what_is_held_does_not_grow_with_the_number_of_queries():
    sizes, rng = np.tile([1, 2, 3], 700), np.random.default_rng(1)
    n = int(sizes.sum())
    offsets, clicks = np.append(0, np.cumsum(sizes)), {"click": rng.random(n)}
    queries = ltr.Queries(np.arange(n, dtype=np.float32)[:, None], np.zeros(n), offsets, sources=clicks)
    term, scores = ltr.Term("cndcg"), rng.normal(size=n)
    tracemalloc.start()
    (found,) = ledger(queries, [term], scores)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.labels) == 32
    assert found.total == ltr.Objective(queries, [term]).effective_pairs(scores).sum() == (sizes * (sizes - 1) // 2).sum()
    assert most < 45e6  # the counts of all 2,100 queries at once are 86 MB


def test_without_any_label_there_is_nothing_to_count():
    queries = make_queries(5, seed=3)
    queries = replace(queries, labels=np.full(queries.n_documents, np.nan))
    for construction in CONSTRUCTIONS:
        (found,) = ledger(queries, [ltr.Term("ndcg", construction=construction)], np.zeros(queries.n_documents))
        assert (found.labels, found.total, found.multilevel) == ((), 0, 0)
