"""Which result of a page is clicked, by rank and score: by hand, and of simulated users."""

import numpy as np
import pytest

from ltr.clicks.pages import Pages
from ltr.clicks.scored_looks import ScoredLooks, fit
from tests.click_logs import layout

PAGES = Pages(np.array([0, 3, 5]), np.arange(5), np.array([1, 2, 4, 2, 3]), np.array([0, 1, 1, 0, 0]), np.zeros(5, int))
SCORES = np.array([0.5, -1.0, 2.0, 0.1, 0.3])


def clicked_once(n_pages, looks, slope, seed=0):
    """Pages with one click each, as the model draws it, and scores of their results."""
    pages, rng = layout(30, 12, n_pages, len(looks), seed), np.random.default_rng(seed)
    scores = rng.normal(size=len(pages.pair))
    odds = (looks[pages.rank - 1] * np.exp(slope * scores)).reshape(n_pages, -1)
    drawn = (rng.random((n_pages, 1)) * odds.sum(axis=1, keepdims=True) > np.cumsum(odds, axis=1)).sum(axis=1)
    return pages.clicked((np.arange(len(looks)) == drawn[:, None]).ravel()), scores


def test_shares_and_likelihood_by_hand():
    looks, slope = np.array([1.0, 0.5, 0.25, 0.125]), 0.7
    model = ScoredLooks(looks, slope)
    first = looks[[0, 1, 3]] * np.exp(slope * SCORES[:3])
    second = looks[[1, 2]] * np.exp(slope * SCORES[3:])
    shares = np.append(first / first.sum(), second / second.sum())
    np.testing.assert_allclose(model.shares(PAGES, SCORES), shares, rtol=1e-12)
    np.testing.assert_allclose(model.likelihood(PAGES, SCORES), [np.log(shares[1]) + np.log(shares[2]), 0.0], rtol=1e-12)
    moved = SCORES + np.array([7.0, 7, 7, -300, -300])
    np.testing.assert_allclose(model.shares(PAGES, moved), shares, rtol=1e-9)
    with pytest.raises(ValueError, match="rank: 4; the model covers ranks 1 to 2"):
        ScoredLooks(looks[:2], slope).shares(PAGES, SCORES)


def test_what_users_were_given_is_found_again():
    looks = np.array([1.0, 0.6, 0.4, 0.2, 0.1])
    pages, scores = clicked_once(6000, looks, 0.8)
    model = fit(pages, scores)
    np.testing.assert_allclose(model.looks, looks, atol=0.04)
    assert model.slope == pytest.approx(0.8, abs=0.05)
    best, rng = model.likelihood(pages, scores).sum(), np.random.default_rng(1)
    for _ in range(20):
        other = ScoredLooks(model.looks * np.exp(0.02 * rng.normal(size=5)), model.slope + 0.02 * rng.normal())
        assert other.likelihood(pages, scores).sum() < best + 0.1
    assert fit(pages, -scores).slope == pytest.approx(-model.slope, abs=1e-5)


def test_looks_and_slope_are_the_likeliest_where_most_pages_have_one_result():
    """Such a page says nothing of looks, and θ of its rank went to 0."""
    rng = np.random.default_rng(0)
    sizes = rng.choice([1, 8], 60, p=[0.8, 0.2])
    rank = np.concatenate([np.arange(1, n + 1) for n in sizes])
    scores = rng.normal(size=len(rank))
    click = rng.random(len(rank)) < 1 / (1 + np.exp(-scores)) / rank
    pages = Pages(np.append(0, np.cumsum(sizes)), np.zeros(len(rank), int), rank, click, np.zeros(1, int))
    model = fit(pages, scores)

    def penalised(looks, slope):
        odds = looks[rank - 1] * np.exp(slope * scores)
        told = np.log(odds / np.repeat(np.add.reduceat(odds, pages.offsets[:-1]), sizes))
        return told[click].sum() + np.log(looks).sum() - looks.sum()

    looks = model.looks / model.looks.mean()
    best = penalised(looks, model.slope)
    assert model.looks[0] > 0.5
    for _ in range(200):
        size = rng.choice([1e-3, 0.03, 1.0])
        other = penalised(looks * np.exp(size * rng.normal(size=8)), model.slope + size * rng.normal())
        assert other < best + 1e-6


def test_scores_that_say_nothing_have_no_slope_and_deep_ranks_few_looks():
    pages, scores = clicked_once(500, np.array([1.0, 0.5, 0.2]), 0.0)
    model = fit(pages, np.full(len(scores), 3.0), n_ranks=5)
    assert model.slope == pytest.approx(0, abs=1e-9)
    assert len(model.looks) == 5
    assert (model.looks > 0).all()
    assert np.isfinite(fit(pages.clicked(np.zeros(len(scores), bool)), scores).looks).all()
