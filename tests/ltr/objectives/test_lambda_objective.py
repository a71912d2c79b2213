"""Gradients of the whole objective against a naive twin, mixtures of terms, and what cannot be an objective."""

from dataclasses import replace

import numpy as np
import pytest

from ltr.data.queries import Queries, keep
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure, gains_of
from ltr.objectives.constructions import CONSTRUCTIONS
from ltr.objectives.lambda_objective import Objective, asymmetry
from ltr.objectives.terms import Term
from tests import naive
from tests.conftest import make_queries

TERMS = [
    Term("ndcg"), Term("ndcg@3"), Term("map"), Term("mrr"), Term("mrr_exact"), Term("err"), Term("auc"), Term("cndcg"),
    Term("cndcg", pairs="same_label"), Term("ndcg", construction="ranknet"), Term("ndcg", cost="sigmoid"),
    Term("ndcg", cost="logistic_near"), Term("map", cost="logistic_near"),
]  # fmt: skip


def naive_gradients(queries, term, scores, sigma):
    measure, conventions = Measure.of(term.measure), Conventions()
    labels = queries.source(measure.source)
    gains = gains_of(measure, labels, conventions)
    groups = np.where(labels > 0, queries.labels, np.nan) if term.pairs == "same_label" else np.where(np.isnan(labels), np.nan, 0.0)
    gradient, hessian = np.zeros(len(scores)), np.zeros(len(scores))
    for q in range(queries.n_queries):
        rows = slice(queries.offsets[q], queries.offsets[q + 1])
        own = np.nan_to_num(labels[rows])
        order = np.argsort(-scores[rows], kind="stable")
        rank = np.argsort(order)

        def change(i, j, own=own, order=order, rank=rank):
            if term.construction == "ranknet":
                return 1.0
            ranked = own[order]
            swapped = ranked.copy()
            swapped[[rank[i], rank[j]]] = swapped[[rank[j], rank[i]]]
            before, after = naive.value(measure.name, ranked, measure.cutoff), naive.value(measure.name, swapped, measure.cutoff)
            if before is None or (measure.name == "mrr" and rank[i] < rank[j]):
                return 0.0
            return abs(after - before)

        gradient[rows], hessian[rows] = naive.gradients(scores[rows], own, gains[rows], groups[rows], change, sigma, term.cost)
    return gradient, hessian


@pytest.mark.parametrize("term", TERMS, ids=lambda t: f"{t.measure}-{t.pairs}-{t.cost}-{t.construction}")
@pytest.mark.parametrize("scores_of", ["random", "tied"])
def test_gradients_are_the_naive_ones(term, scores_of):
    queries = make_queries(8, seed=2)
    rng = np.random.default_rng(4)
    scores = (
        rng.normal(size=queries.n_documents) if scores_of == "random" else rng.integers(0, 2, queries.n_documents).astype(float)
    )
    want_gradient, want_hessian = naive_gradients(queries, term, scores, 1.7)
    for exact, error in ((True, 1e-12), (False, 1e-6)):
        gradient, hessian = Objective(queries, [term], sigma=1.7, exact=exact)(scores, 0)
        assert gradient == pytest.approx(want_gradient, abs=error * max(1, np.abs(want_gradient).max()))
        assert hessian == pytest.approx(want_hessian, abs=error * max(1, np.abs(want_hessian).max()))


@pytest.mark.parametrize("term", TERMS, ids=lambda t: f"{t.measure}-{t.pairs}-{t.cost}-{t.construction}")
def test_pairwise_gradients_sum_to_zero_in_a_query(term):
    queries = make_queries(20, seed=5)
    gradient, _ = Objective(queries, [term], exact=True)(np.random.default_rng(1).normal(size=queries.n_documents), 0)
    assert np.add.reduceat(gradient, queries.offsets[:-1]) == pytest.approx(np.zeros(20), abs=1e-12)


@pytest.mark.parametrize(
    "term", [Term(m, cost="logistic_near", construction=c) for m, c in (("map", "ranknet_weighted"), ("ndcg", "ranknet"))]
)
@pytest.mark.parametrize("n", [64, 65, 100])
def test_pairs_of_a_long_query_that_are_tied_count_as_in_a_short_one(term, n):
    """After the first trees most are: batches of 2,048 pairs without a difference of scores were not divided, those beside them were."""
    labels, scores = np.tile([0.0, 2.0], n)[:n], np.full(n, -1.0)
    scores[:2] = 1, 0
    queries = Queries(np.zeros((n, 1), np.float32), labels, np.array([0, n]))
    want_gradient, want_hessian = naive_gradients(queries, term, scores, 1.0)
    for exact, error in ((True, 1e-12), (False, 1e-6)):
        gradient, hessian = Objective(queries, [term], exact=exact)(scores, 0)
        assert gradient == pytest.approx(want_gradient, abs=error * np.abs(want_gradient).max())
        assert hessian == pytest.approx(want_hessian, abs=error * np.abs(want_hessian).max())


@pytest.mark.parametrize("exact", [True, False])
def test_tied_neighbours_count_more_than_those_apart_too(exact):
    queries = Queries(np.zeros((4, 1), np.float32), np.array([0.0, 2.0, 1.0, 0.0]), np.array([0, 4]))
    scores = np.array([1.0, 1.0, 0.0, 0.0])
    near, plain = (
        Objective(queries, [Term("ndcg", cost=cost, construction="local_cost")], exact=exact)(scores, 0)[1]
        for cost in ("logistic_near", "logistic")
    )
    assert near[[0, 3]] == pytest.approx(100 * plain[[0, 3]])


def test_dividing_by_a_querys_deviation_leaves_no_gradient():
    queries = make_queries(6, seed=6)
    scores = np.random.default_rng(4).normal(size=queries.n_documents)
    assert asymmetry(Objective(queries, exact=True, normalise="query"), scores) > 0.01
    with pytest.raises(ValueError, match="closer than"):
        asymmetry(Objective(queries), np.zeros(queries.n_documents))


def test_scores_far_apart_stay_finite():
    queries = Queries(np.zeros((2, 1), np.float32), np.array([4.0, 0.0]), np.array([0, 2]))
    for gap in (1e3, -1e3, 1e8, -1e8):
        gradient, hessian = Objective(queries, [Term("ndcg")])(np.array([gap, 0.0]), 0)
        assert np.isfinite(gradient).all()
        assert np.isfinite(hessian).all()


def test_graded_mixture_and_per_query_normalisation():
    queries = make_queries(10, seed=8)
    scores = np.random.default_rng(0).normal(size=queries.n_documents)
    first, second = Term("ndcg"), Term("cndcg", weight=0.3, pairs="same_label")
    mixed, _ = Objective(queries, [first, second], exact=True)(scores, 0)
    a, b = (
        Objective(queries, [first], exact=True)(scores, 0)[0],
        Objective(queries, [Term("cndcg", pairs="same_label")], exact=True)(scores, 0)[0],
    )
    assert mixed == pytest.approx(0.7 * a + 0.3 * b, abs=1e-12)
    normalised, _ = Objective(queries, [first], normalise="query")(scores, 0)
    for q in range(10):
        rows = slice(queries.offsets[q], queries.offsets[q + 1])
        if a[rows].std() > 0:
            assert normalised[rows].std() == pytest.approx(1)


def test_effective_pairs_of_ndcg_at_1_involve_the_top_document_only():
    queries = make_queries(10, seed=1)
    scores = np.random.default_rng(3).normal(size=queries.n_documents)
    pairs = Objective(queries, [Term("ndcg@1")]).effective_pairs(scores)
    for q in range(10):
        rows = slice(queries.offsets[q], queries.offsets[q + 1])
        ranked = queries.labels[rows][np.argsort(-scores[rows], kind="stable")]
        assert pairs[q] == (ranked[1:] != ranked[0]).sum()


def test_what_cannot_be_an_objective_is_refused():
    queries = make_queries(3, clicks=False)
    for build, rule in (
        (lambda: Objective(queries, [Term("cndcg")]), "no label source 'click'"),
        (lambda: Objective(queries, []), "at least one term"),
        (lambda: Objective(queries, normalise="always"), "unknown normalise 'always'; choose from: none, query, term"),
    ):
        with pytest.raises(ValueError, match=rule):
            build()


CONDENSED = Conventions(unlabelled="condensed", threshold=1)


def half_judged(seed, n_queries=6):
    """Queries of which a part of the documents is judged, and which of them are."""
    queries = make_queries(n_queries, seed=seed, largest=7)
    rng = np.random.default_rng(seed)
    known = rng.random(queries.n_documents) < 0.6
    return replace(queries, labels=np.where(known, queries.labels, np.nan)), known, rng.integers(-2, 3, len(known)) / 2.0


@pytest.mark.parametrize("normalise", ["none", "query", "term"])
@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_documents_that_nobody_judged_hold_no_rank_where_they_are_left_out(construction, normalise):
    """Of five documents of which the last two are judged, NDCG@2 learned nothing: the others had both ranks."""
    for seed in range(5):
        queries, known, scores = half_judged(seed)
        others = keep(queries, known)
        for measure in ("ndcg@2", "ndcg", "map", "mrr", "p@1", "err"):
            for exact in (False, True):
                terms = [Term(measure, construction=construction)]
                found = Objective(queries, terms, CONDENSED, normalise=normalise, exact=exact)(scores, 0)
                alone = Objective(others, terms, CONDENSED, normalise=normalise, exact=exact)(scores[known], 0)
                for own, wanted in zip(found, alone, strict=True):
                    assert own[known] == pytest.approx(wanted, abs=1e-6)
                    assert not own[~known].any()


def test_each_term_leaves_out_what_its_own_source_does_not_say():
    queries, known, scores = half_judged(7)
    clicked = np.where(np.random.default_rng(1).random(len(known)) < 0.5, queries.source("click"), np.nan)
    queries = replace(queries, sources={**queries.sources, "click": clicked})
    judged, clicks = Term("ndcg", weight=0.3), Term("cndcg", weight=0.7)
    gradient, hessian = Objective(queries, [judged, clicks], CONDENSED)(scores, 0)
    for found, k in ((gradient, 0), (hessian, 1)):
        wanted = np.zeros(len(known))
        for term, there in ((judged, known), (clicks, ~np.isnan(clicked))):
            alone = Objective(keep(queries, there), [Term(term.measure)], CONDENSED)(scores[there], 0)[k]
            wanted[there] += term.weight * alone
        assert found == pytest.approx(wanted, abs=1e-6)


def test_gains_are_weighed_of_what_is_judged():
    queries, known, scores = half_judged(3)
    factors = np.random.default_rng(2).random(len(known)) + 0.5
    found = Objective(queries, conventions=CONDENSED).weighing(factors)(scores, 0)[0]
    alone = Objective(keep(queries, known), conventions=CONDENSED).weighing(factors[known])(scores[known], 0)[0]
    assert found[known] == pytest.approx(alone, abs=1e-6)
    assert np.abs(alone).max() > 0.01
