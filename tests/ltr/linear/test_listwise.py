"""Listwise losses by their formulas, by draws, and their derivatives."""

import itertools

import numpy as np
import pytest

from ltr.data.queries import Queries, canonical
from ltr.linear.listwise import LOSSES, listwise_cost
from tests.conftest import make_queries


@pytest.mark.parametrize("loss", LOSSES)
def test_derivatives(loss):
    queries = make_queries(6, seed=8, largest=7)
    cost = listwise_cost(loss, queries, tau=0.7, samples=20)
    scores, step = np.random.default_rng(1).normal(size=queries.n_documents), 1e-6
    moved = step * np.eye(len(scores))
    want = [(cost(scores + m)[0] - cost(scores - m)[0]) / (2 * step) for m in moved]
    assert cost(scores)[1] == pytest.approx(np.array(want), abs=1e-6)


def one_query(labels):
    return canonical(Queries(np.arange(len(labels))[:, None], np.array(labels, float), np.array([0, len(labels)])))


def test_listwise_losses_by_their_formulas():
    queries = one_query([2, 0, 1])
    scores = np.array([0.3, -0.2, 0.9])
    y = queries.labels
    shares = np.exp(scores) / np.exp(scores).sum()
    assert listwise_cost("listnet", queries)(scores)[0] == pytest.approx(-(np.exp(y) / np.exp(y).sum() * np.log(shares)).sum())
    ordered = np.exp(scores[np.argsort(-y)])
    assert listwise_cost("listmle", queries)(scores)[0] == pytest.approx(-np.log(ordered / np.cumsum(ordered[::-1])[::-1]).sum())
    assert listwise_cost("rankcosine", queries)(scores)[0] == pytest.approx(0.5 - 0.5 * np.corrcoef(scores, y)[0, 1])
    value = 0.0
    weights = np.empty(6)
    gains = []
    for k, order in enumerate(itertools.permutations(range(3))):
        weights[k] = np.exp(sum(scores[order[a]] - scores[order[b]] for a, b in itertools.combinations(range(3), 2)) / 3)
        gains.append(sum((2 ** y[d] - 1) / np.log2(2 + r) for r, d in enumerate(order)))
    value = 1 - (weights * gains).sum() / weights.sum() / max(gains)
    found = np.mean([listwise_cost("boltzrank", queries, samples=20_000, seed=s)(scores)[0] for s in range(3)])
    assert found == pytest.approx(value, abs=0.01)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_scores_far_apart_have_a_cost_and_a_derivative(loss, scale):
    queries = make_queries(6, seed=8, largest=7)
    scores = scale * np.random.default_rng(1).normal(size=queries.n_documents)
    value, slope = listwise_cost(loss, queries, tau=0.7, samples=20)(scores)
    assert np.isfinite(value)
    assert np.isfinite(slope).all()


def test_listmle_of_scores_far_apart():
    """By hand: the second document is all that is left below the first, and then the whole sum is that of the one far above."""
    queries = one_query([1, 0])
    cost, relevant = listwise_cost("listmle", queries), queries.labels == 1
    for far in (700.0, 760.0, 1e6):
        value, slope = cost(np.where(relevant, 0.0, -far))
        assert (value, *slope) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
        value, slope = cost(np.where(relevant, -far, 0.0))
        assert (value, *slope[relevant], *slope[~relevant]) == pytest.approx((far, -1.0, 1.0))


def test_softrank_by_drawing_ranks():
    """The rank of a document is one coin a document, each alone: that is what SoftRank takes for the ranks of normal scores."""
    queries = one_query([3, 0, 1, 0])
    y, scores, tau = queries.labels, np.array([0.2, 0.5, -0.1, 0.0]), 0.4
    rng, draws = np.random.default_rng(2), 200_000
    dcg = np.zeros(draws)
    for j in range(4):
        beaten = np.zeros(draws, int)
        for i in range(4):
            if i != j:
                beaten += scores[i] + tau * rng.normal(size=draws) > scores[j] + tau * rng.normal(size=draws)
        dcg += (2 ** y[j] - 1) / np.log2(2 + beaten)
    ideal = sum((2**l - 1) / np.log2(2 + r) for r, l in enumerate(sorted(y, reverse=True)))
    assert listwise_cost("softrank", queries, tau=tau)(scores)[0] == pytest.approx(1 - dcg.mean() / ideal, abs=0.003)
