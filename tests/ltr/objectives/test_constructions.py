"""Constructions against naive twins, finite differences of the cost, and what each must keep."""

import numpy as np
import pytest

from ltr.data.queries import Queries
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure, gains_of
from ltr.objectives.constructions import CONSTRUCTIONS
from ltr.objectives.lambda_objective import Objective, asymmetry
from ltr.objectives.terms import WITHOUT_HESSIAN, Term
from tests import naive
from tests.conftest import make_queries


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


@pytest.mark.parametrize("construction", [name for name in CONSTRUCTIONS if name != "discrete_bounded"])
def test_documents_of_different_groups_form_no_pair(construction):
    """Of a graded objective's second term: two documents are a pair only where their judged labels are equal."""
    term = Term("cndcg", pairs="same_label", construction=construction)
    for labels, paired in (([3.0, 3.0], True), ([3.0, 1.0], False)):
        queries = Queries(np.zeros((2, 1)), np.array(labels), np.array([0, 2]), sources={"click": np.array([1.0, 0.5])})
        gradient, hessian = Objective(queries, [term], exact=True)(np.array([0.0, 1.0]), 0)
        assert (gradient.any(), hessian.any()) == (paired, paired and construction not in WITHOUT_HESSIAN)
        assert Objective(queries, [term]).effective_pairs(np.array([0.0, 1.0])).sum() == paired


def test_a_document_without_a_group_is_not_moved_to_its_ideal_rank():
    for label, moved in ((0.0, True), (np.nan, False)):
        queries = Queries(np.zeros((3, 1)), np.array([1.0, label, 4.0]), np.array([0, 3]))
        gradient, _ = Objective(queries, [Term("ndcg", construction="discrete_bounded")])(np.array([3.0, 2.0, 1.0]), 0)
        assert gradient[0] < 0 < gradient[2]
        assert (gradient[1] < 0) == moved
        assert moved or gradient[1] == 0
