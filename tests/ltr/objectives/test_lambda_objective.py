"""Gradients against a naive twin, against finite differences, and what every construction must keep."""

import numpy as np
import pytest

from ltr.data.queries import Queries
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure, gains_of
from ltr.objectives.constructions import CONSTRUCTIONS
from ltr.objectives.lambda_objective import Objective, asymmetry
from ltr.objectives.terms import Schedule, Term, saturations, weights_at
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


def test_ranknet_gradient_is_minus_the_gradient_of_its_cost_and_curvature_its_second_derivative():
    queries = make_queries(6, seed=3, clicks=False)
    scores, sigma, h = np.random.default_rng(2).normal(size=queries.n_documents), 1.3, 1e-5

    def cost(s):
        total = 0.0
        for q in range(queries.n_queries):
            for i in range(queries.offsets[q], queries.offsets[q + 1]):
                for j in range(queries.offsets[q], queries.offsets[q + 1]):
                    if queries.labels[i] > queries.labels[j]:
                        total += np.log1p(np.exp(-sigma * (s[i] - s[j])))
        return total

    objective = Objective(queries, [Term("ndcg", construction="ranknet")], sigma=sigma)
    gradient, hessian = objective(scores, 0)
    for d in range(queries.n_documents):
        step = np.zeros(len(scores))
        step[d] = h
        assert gradient[d] == pytest.approx(-(cost(scores + step) - cost(scores - step)) / (2 * h), abs=1e-6)
        bend = -(objective(scores + step, 0)[0][d] - objective(scores - step, 0)[0][d]) / (2 * h)
        assert hessian[d] == pytest.approx(bend, abs=1e-6)


@pytest.mark.parametrize("construction", ["local_gradient", "local_cost", "discrete_bounded"])
@pytest.mark.parametrize("measure", ["ndcg", "ndcg@3", "map", "mrr_exact", "err", "auc"])
def test_constructions_on_neighbours_and_single_documents_are_the_naive_ones(construction, measure):
    queries, sigma = make_queries(12, seed=6), 1.4
    scores = np.random.default_rng(4).normal(size=queries.n_documents)
    gradient, _ = Objective(queries, [Term(measure, construction=construction)], sigma=sigma)(scores, 0)
    read = Measure.of(measure)
    gains = gains_of(read, queries.labels, Conventions())
    for q in range(queries.n_queries):
        rows = slice(queries.offsets[q], queries.offsets[q + 1])
        want = naive.constructed(construction, read.name, read.cutoff, scores[rows], queries.labels[rows], gains[rows], sigma)
        assert gradient[rows] == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("measure", ["ndcg@3", "map", "mrr_exact"])
def test_spring_smooth_pulls_every_pair_by_at_least_a_point(measure):
    queries = make_queries(8, seed=2)
    scores = np.random.default_rng(4).normal(size=queries.n_documents)
    objective = Objective(queries, [Term(measure, construction="spring_smooth")])
    gradient, hessian = objective(scores, 0)
    read = Measure.of(measure)
    gains = gains_of(read, queries.labels, Conventions())
    pairs = 0
    for q in range(queries.n_queries):
        rows = slice(queries.offsets[q], queries.offsets[q + 1])
        own, order = queries.labels[rows], np.argsort(-scores[rows], kind="stable")
        rank = np.argsort(order)

        def change(i, j, own=own, order=order, rank=rank):
            swapped = own[order].copy()
            swapped[[rank[i], rank[j]]] = swapped[[rank[j], rank[i]]]
            before, after = naive.value(read.name, own[order], read.cutoff), naive.value(read.name, swapped, read.cutoff)
            return max(1.0, 100 * abs(after - before)) if before is not None else 1.0

        want = naive.gradients(scores[rows], own, gains[rows], np.zeros(len(own)), change)
        assert gradient[rows] == pytest.approx(want[0], abs=1e-10)
        assert hessian[rows] == pytest.approx(want[1], abs=1e-10)
        pairs += sum(a != b for k, a in enumerate(gains[rows]) for b in gains[rows][k + 1 :])
    assert objective.effective_pairs(scores).sum() == pairs


@pytest.mark.parametrize("measure", ["ndcg", "map", "mrr", "err"])
@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_every_construction_is_a_gradient_at_a_fixed_ranking(construction, measure):
    """The table of B section 4.3: all pass, discrete_bounded because it is constant there."""
    queries = make_queries(6, seed=6)
    scores = np.random.default_rng(4).normal(size=queries.n_documents)
    assert asymmetry(Objective(queries, [Term(measure, construction=construction)], exact=True), scores) < 1e-5


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


def test_schedules_by_their_recurrence():
    linear, exponential = Schedule(0.1, "linear", 0.25), Schedule(0.1, "exponential", 100)
    assert [linear.at(m) for m in range(5)] == pytest.approx([0.1, 0.35, 0.6, 0.85, 1.0])
    weight = 0.1
    for m in range(1, 60):
        weight = min(1.0, weight + np.exp(-100 / m))
        assert exponential.at(m) == pytest.approx(weight)
    saturated = [Schedule(w, "exponential", eta).saturation(200) for eta in (100, 250) for w in (0.1, 0.25, 0.5)]
    assert (min(saturated[:3]), max(saturated[:3])) == (36, 41)
    assert (min(saturated[3:]), max(saturated[3:])) == (74, 84)
    assert weights_at([Term("ndcg"), Term("ndcg", weight=linear)], 2) == pytest.approx([0.4, 0.6])
    assert saturations([Term("ndcg"), Term("ndcg@3", weight=linear)], 9) == ["the weight of ndcg_3 is 1 from iteration 4 on"]
    assert saturations([Term("ndcg@3", weight=Schedule(0.5, "linear", -0.2))], 9) == [
        "the weight of ndcg_3 is 0 from iteration 3 on"
    ]
    assert saturations([Term("ndcg@3", weight=linear)], 4) == []


def test_effective_pairs_of_ndcg_at_1_involve_the_top_document_only():
    queries = make_queries(10, seed=1)
    scores = np.random.default_rng(3).normal(size=queries.n_documents)
    pairs = Objective(queries, [Term("ndcg@1")]).effective_pairs(scores)
    for q in range(10):
        rows = slice(queries.offsets[q], queries.offsets[q + 1])
        ranked = queries.labels[rows][np.argsort(-scores[rows], kind="stable")]
        assert pairs[q] == (ranked[1:] != ranked[0]).sum()


def test_unknown_names_list_the_known_ones():
    queries = make_queries(3, clicks=False)
    for build, rule in (
        (lambda: Term("ndcg", cost="hinge"), "unknown cost 'hinge'; known: logistic"),
        (lambda: Term("ndcg", construction="x"), "unknown construction 'x'"),
        (lambda: Term("ndcg", weight=1.5), r"outside \[0, 1\]"),
        (lambda: Objective(queries, [Term("cndcg")]), "no label source 'click'"),
        (lambda: Term("ndcg", pairs="some"), "pairs 'some'"),
        (lambda: Schedule(0.1, "quadratic", 1), "schedule kind 'quadratic'"),
        (lambda: Conventions(ties="random"), "ties 'random' is not one of expected, stable"),
        (lambda: Objective(queries, []), "at least one term"),
        (lambda: Objective(queries, normalise="always"), "unknown normalise"),
    ):
        with pytest.raises(ValueError, match=rule):
            build()
