"""Looks at ranks from documents whose features are alike: a round by hand, and what was put into clicks is found again."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries
from ltr.objectives.shown import Shown, looks
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import Unbiased, in_words
from ltr.trees.regression_em import START, STEPS, LooksObjective, found
from tests.ltr.data.test_queries import shuffled
from tests.ltr.objectives.test_unbiased import FEWER, LOOKS, SMALL, needs_jit, pages

HOW = Unbiased("ipw", estimate="regression_em", least=0.01)


def one_ranker(n_queries, per_query, attracts, seed=1):
    """Pages that one ranker made of 12 documents a query, always the same 8 in one order."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_queries, 12, 4)).astype(np.float32)
    order = np.argsort(-(features[..., 0] + 0.5 * features[..., 1]), axis=1)[:, :8]
    shown = np.take_along_axis(features, order[..., None], axis=1)
    clicks = rng.random((per_query, n_queries, 8)) < LOOKS / (1 + np.exp(-attracts(shown)))
    ranks = np.broadcast_to(np.arange(1.0, 9), clicks.shape)
    rows = np.broadcast_to(shown, (per_query, *shown.shape)).reshape(-1, 4)
    return Queries(rows, clicks.ravel().astype(float), np.arange(0, len(rows) + 1, 8), sources={"position": ranks.ravel()})


def straight(x):
    return x[..., 0] + 0.7 * x[..., 1] - 1


def bent(x):
    return 1.5 * np.abs(x[..., 0]) + 0.7 * x[..., 1] - 2


def crossed(x):
    return 1.5 * x[..., 0] * x[..., 1] + x[..., 2] - 1


@needs_jit
@pytest.mark.parametrize("attracts", [straight, bent, crossed])
def test_looks_are_found_where_every_document_was_shown_at_one_rank(attracts):
    """Within .06 of θ, where the estimate from documents at several ranks refuses and clicks over impressions are no looks."""
    queries = one_ranker(400, 10, attracts)
    with pytest.raises(ValueError, match=r"no clicked document was shown at two ranks.*estimate=regression_em"):
        looks(replace(HOW, estimate="interventions"), Shown.on(queries, HOW, Term()).ask)
    model = ltr.LambdaMART(**SMALL, n_trees=2, unbiased=HOW).fit(queries)
    np.testing.assert_allclose(model.biases[0, 0], LOOKS, atol=0.06)
    assert model.remarks[-1] == in_words(HOW, model.biases[0])
    assert "propensities by regression_em of at least 0.01" in model.remarks[-1]


@pytest.mark.long
@needs_jit
def test_few_pages_make_ranks_look_alike():
    """What docs/clicks.md says of small logs: ranks 2 to 5 are taken for looked at much more than they are, and hardly on 2,000 pages."""

    def beyond(n_pages, seeds):
        model = ltr.LambdaMART(**SMALL, n_trees=1, unbiased=HOW)
        found = [model.fit(one_ranker(n_pages, 1, straight, seed)).biases[0, 0] for seed in seeds]
        return (np.mean(found, axis=0) - LOOKS)[1:5]

    assert (beyond(100, range(1, 7)) > 0.1).all()
    assert np.abs(beyond(2000, range(1, 3))).max() < 0.06


@needs_jit
def test_looks_are_found_where_relevance_is_that_of_a_world_of_many_features():
    model = ltr.LambdaMART(**SMALL, n_trees=2, unbiased=HOW).fit(pages(jitter=0.0, n_queries=200))
    np.testing.assert_allclose(model.biases[0, 0], LOOKS, atol=0.08)


def test_a_round_by_hand():
    rng = np.random.default_rng(0)
    clicks, ranks = np.array([1.0, 0, 0, 1, 0, 1, 0, np.nan]), np.array([1.0, 2, 3, 1, 2, 3, 1, np.nan])
    queries = Queries(rng.normal(size=(8, 1)), clicks, np.array([0, 3, 8]), sources={"position": ranks})
    estimate, scores = LooksObjective(queries, Term(), HOW), rng.normal(size=8)
    force, curvature = estimate(scores, 0)
    start = np.log(3 / 7 / START / (1 - 3 / 7 / START))
    gamma, theta = 1 / (1 + np.exp(-(scores + start))), [START] * 3
    for rank in range(3):
        for _ in range(STEPS):
            slope = bend = 0.0
            for i in np.flatnonzero(ranks == rank + 1):
                one = 1 / theta[rank] if clicks[i] else -gamma[i] / (1 - theta[rank] * gamma[i])
                slope, bend = slope + one, bend + one**2
            theta[rank] = min(max(theta[rank] + slope / bend, 1e-4), 1.0)
    np.testing.assert_allclose(found(HOW, estimate.biases[1][0]).propensities, np.array(theta) / max(theta), rtol=1e-12)
    for i in range(7):
        looked = theta[int(ranks[i]) - 1]
        attracted = clicks[i] or (1 - looked) * gamma[i] / ((1 - looked) * gamma[i] + (1 - gamma[i]))
        assert force[i] == pytest.approx(attracted - gamma[i])
        assert curvature[i] == pytest.approx(gamma[i] * (1 - gamma[i]))
    assert force[7] == curvature[7] == 0


@needs_jit
def test_one_estimate_for_any_order_of_rows_and_after_a_stop(tmp_path):
    queries = pages(jitter=0.0, n_queries=20, per_query=2)
    model = ltr.LambdaMART(**SMALL, **FEWER, unbiased=HOW)
    whole = model.fit(queries)
    assert model.fit(shuffled(queries, 3)).digest == whole.digest
    ltr.save(replace(model, n_trees=3).fit(queries), tmp_path)
    begun = ltr.load(tmp_path)
    assert begun.unbiased == HOW
    resumed = model.fit(queries, start=begun)
    assert resumed.digest == whole.digest
    assert np.array_equal(resumed.biases, whole.biases)


def test_pages_without_a_click_have_nothing_to_say():
    queries = pages(n_queries=6, per_query=2)
    with pytest.raises(ValueError, match="unbiased: no click in the log"):
        ltr.LambdaMART(**SMALL, unbiased=HOW).fit(replace(queries, labels=np.zeros(queries.n_documents)))


def test_a_page_of_weight_five_counts_as_five_pages():
    """θ was of pages that counted alike, while what attracts was of pages by their weight."""
    often, seldom = np.array([1.0, 0.9, 0.8, 0.7]), np.array([1.0, 0.3, 0.15, 0.05])
    rng = np.random.default_rng(1)
    features = rng.normal(size=(400, 4, 1)).astype(np.float32)
    looked = np.repeat([often, seldom], 200, axis=0)
    clicks = (rng.random((400, 4)) < looked / (1 + np.exp(-2 * features[..., 0]))).astype(float)
    times = np.repeat([1, 5], 200)

    def looks_of(rows, **weights):
        places = np.tile([1.0, 2, 3, 4], len(rows))
        one = Queries(
            features[rows].reshape(-1, 1),
            clicks[rows].ravel(),
            np.arange(0, 4 * len(rows) + 1, 4),
            sources={"position": places},
            **weights,
        )
        objective = LooksObjective(one, Term(), HOW)
        for iteration in range(20):
            objective(np.zeros(one.n_documents), iteration)
        return objective.biases[-1][0]

    alone, pages_repeated = np.arange(400), np.repeat(np.arange(400), times)
    of_weights = looks_of(alone, weights=times.astype(float))
    assert of_weights == pytest.approx(looks_of(pages_repeated), abs=1e-9)
    assert looks_of(alone, document_weights=np.repeat(times, 4).astype(float)) == pytest.approx(of_weights, abs=1e-9)
    assert of_weights[3] < looks_of(alone)[3] - 0.05


@pytest.mark.filterwarnings("error")
def test_where_features_tell_every_click_nothing_is_divided_by_0():
    rng = np.random.default_rng(0)
    clicked, n = rng.random(1000) < 0.3, 1000
    features = np.column_stack((clicked, rng.normal(size=n))).astype(np.float32)
    sources = {"click": clicked * 1.0, "position": np.tile(np.arange(1, 11), 100).astype(float)}
    pages = ltr.Queries(features, clicked * 1.0, np.arange(0, n + 1, 10), sources=sources)
    way = ltr.Unbiased("ipw", estimate="regression_em")
    fitted = ltr.LambdaMART(n_trees=5, n_leaves=4, objective=(ltr.Term("cndcg"),), unbiased=way, stop_on=None).fit(pages)
    assert fitted.position_bias["propensity"].tolist() == [1.0] * 10


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("label", [0.0, np.nan])
def test_what_is_not_clicked_and_surely_attracts_is_counted_without_overflow(label):
    """A document that was not clicked, or has no label, may be in a leaf of clicked ones until γ = 1 to the last bit."""
    clicks, ranks = np.array([1.0, 0, label, 1, 0]), np.array([1.0, 2, 1, 1, 2])
    queries = Queries(np.ones((5, 1)), clicks, np.array([0, 3, 5]), sources={"position": ranks}, weights=np.array([1e-15, 1e15]))
    estimate = LooksObjective(queries, Term(), HOW)
    estimate.biases[0][:] = 1.0
    force, curvature = estimate(np.array([0.0, 0.0, 60.0, 0.0, 0.0]), 0)
    assert np.isfinite([force, curvature]).all()
    assert np.isfinite(estimate.biases[-1]).all()


def test_propensities_are_beside_the_rank_that_is_looked_at_most():
    assert found(HOW, np.array([0.4, 0.8, 0.2])).propensities == (0.5, 1.0, 0.25)


def test_a_page_moves_scores_by_its_weight():
    rng = np.random.default_rng(0)
    clicks, ranks = np.array([1.0, 0, 0, 1, 0, 1, 0, 0]), np.array([1.0, 2, 3, 1, 2, 3, 1, 2])
    queries = Queries(rng.normal(size=(8, 1)), clicks, np.array([0, 3, 8]), sources={"position": ranks}, weights=np.array([1.0, 3]))
    estimate, scores = LooksObjective(queries, Term(), HOW), rng.normal(size=8)
    force, curvature = estimate(scores, 0)
    times = np.repeat([1.0, 3.0], [3, 5])
    start = (times * clicks).sum() / times.sum() / START
    gamma = 1 / (1 + (1 / start - 1) * np.exp(-scores))
    looked = estimate.biases[1][0][ranks.astype(int) - 1]
    attracted = np.where(clicks > 0, 1.0, (1 - looked) * gamma / (1 - looked * gamma))
    own = np.repeat(queries.shares, [3, 5])
    assert own[-1] == pytest.approx(3 * own[0])
    assert force == pytest.approx(own * (attracted - gamma))
    assert curvature == pytest.approx(own * gamma * (1 - gamma))
