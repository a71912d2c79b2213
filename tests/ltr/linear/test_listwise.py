"""Listwise losses by their formulas, by draws, and their derivatives."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.special

import ltr
from ltr.data.queries import Queries, canonical
from ltr.linear.linear_ranker import minimise
from ltr.linear.listwise import LOSSES, listwise_cost, softrank
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


@pytest.mark.parametrize("n", [1, 2, 9, 129, 130, 257])
@pytest.mark.parametrize("tau", [0.02, 0.5])
def test_softrank_coin_by_coin(n, tau):
    """Each document's rank as the sum of its coins, and for each slope the sum without that coin, on both sides of a kept distribution."""
    rng = np.random.default_rng(n)
    scores, gains = rng.normal(size=n), 2.0 ** rng.integers(0, 3, n) - 1
    gains[0], gains[np.flatnonzero(gains)[12:]] = 3.0, 0.0
    discount = 1 / np.log2(np.arange(2.0, n + 2))
    ideal, value, expected = np.sort(gains)[::-1] @ discount, 0.0, np.zeros(n)
    apart = (scores[:, None] - scores) / (2 * tau)
    heads = 0.5 * (1 + scipy.special.erf(apart))
    for j in np.flatnonzero(gains):
        before = [np.ones(1)]
        for i in range(n):
            before.append(before[-1] if i == j else np.convolve(before[-1], [1 - heads[i, j], heads[i, j]]))
        value += gains[j] * before[-1] @ discount
        after = np.ones(1)
        for i in range(n - 1, -1, -1):
            if i != j:
                slope = (
                    gains[j]
                    * np.diff(discount)
                    @ np.convolve(before[i], after)
                    * np.exp(-(apart[i, j] ** 2))
                    / (2 * tau * np.sqrt(np.pi))
                )
                expected[[i, j]] += np.array([-slope, slope]) / ideal
                after = np.convolve(after, [1 - heads[i, j], heads[i, j]])
    factors = np.empty(n)
    assert softrank(scores, gains, np.array([tau]), factors) == pytest.approx(1 - value / ideal, abs=1e-12)
    np.testing.assert_allclose(factors, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_best_of_several_starts_is_kept_where_a_loss_is_not_convex(loss, monkeypatch):
    queries, found = make_queries(12, seed=8, largest=6), []

    def minimised(cost, features, C, start, iterations, watch):
        found.append((start, minimise(cost, features, C, start, iterations, watch)))
        return found[-1][1]

    monkeypatch.setattr("ltr.linear.linear_ranker.minimise", minimised)
    ranker = ltr.Listwise(loss=loss, starts=3, iterations=2, samples=10, seed=5, standardise=False)
    fitted = ranker.fit(queries)
    assert len(found) == (1 if loss in ("listnet", "listmle") else 3)
    assert len({start.tobytes() for start, _ in found}) == len(found)
    weights, value = min((result for _, result in found), key=lambda result: result[1])
    assert np.array_equal(fitted.weights, weights)
    assert fitted.remarks == (f"objective {value:.4f}",)
    before = found[0][0]
    found.clear()
    replace(ranker, seed=6).fit(queries)
    assert not np.array_equal(found[0][0], before), "starts are those of the seed"


def test_a_ranker_hands_its_parameters_to_the_loss():
    queries = make_queries(12, seed=8, largest=6)
    soft, drawn = ltr.Listwise(loss="softrank", iterations=5, starts=1), ltr.Listwise(loss="boltzrank", iterations=5, starts=1)
    for ranker, change in ((soft, {"tau": 2.0}), (drawn, {"samples": 20}), (soft, {"conventions": ltr.Conventions(gain="linear")})):
        assert replace(ranker, **change).fit(queries).digest != ranker.fit(queries).digest, change


def test_permutations_are_drawn_by_seed_and_query():
    queries = make_queries(6, seed=8, largest=7)
    scores = np.random.default_rng(1).normal(size=queries.n_documents)
    values = {listwise_cost("boltzrank", queries, samples=5, seed=seed)(scores)[0] for seed in (1, 2, 3)}
    assert len(values) == 3
    one = one_query([2, 0, 1, 0, 1, 2, 0])
    own = np.random.default_rng(2).normal(size=7)
    by_key = {listwise_cost("boltzrank", replace(one, keys=np.array([key], np.uint64)), samples=5)(own)[0] for key in (1, 2, 3)}
    assert len(by_key) == 3


def test_what_a_label_gains_is_the_conventions():
    """Gains 2^l − 1 of labels log2(1 + l) are the labels themselves."""
    linear, exponential = one_query([3, 0, 1, 2]), one_query(np.log2([4, 1, 2, 3]))
    scores = np.array([0.2, 0.5, -0.1, 0.0])
    for loss in ("softrank", "boltzrank"):
        plain = listwise_cost(loss, linear, conventions=ltr.Conventions(gain="linear"))(scores)[0]
        assert plain == pytest.approx(listwise_cost(loss, replace(exponential, keys=linear.keys))(scores)[0])
        assert plain != pytest.approx(listwise_cost(loss, linear)(scores)[0])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_document_without_a_label_counts_as_label_0(loss):
    queries, scores = one_query([3, 0, 1, 0, 2]), np.array([0.2, 0.5, -0.1, 0.0, 0.3])
    unknown = replace(queries, labels=np.where(queries.labels == 0, np.nan, queries.labels))
    (value, slope), (found, its_slope) = (listwise_cost(loss, one, samples=10)(scores) for one in (queries, unknown))
    assert (found, its_slope.tolist()) == (value, slope.tolist())
