"""What all click models share: settings, means of queries, uncertainty."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ltr.clicks.click_model import FEW, STEADY, Settings, drawn_to, mean_error
from ltr.clicks.models import fit
from tests.click_logs import layout, users
from tests.conftest import JIT

many = pytest.mark.skipif(not JIT, reason="thousands of pages are for compiled code")


@pytest.mark.parametrize("wrong", [{"prior": 0.0}, {"prior": float("inf")}, {"rounds": 0}])
def test_settings_out_of_range(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**wrong)


def test_queries_that_differ_no_more_than_chance_are_drawn_to_the_log():
    clicks, looks, query = np.array([3.0, 1.0, 1.0, 3.0]), np.full(4, 10.0), np.array([0, 0, 1, 1])
    of_log = (8 + 0.5) / (40 + 1)
    means, prior = drawn_to(clicks, looks, looks, query, 2.0)
    assert means == pytest.approx(of_log, abs=1e-6)
    assert prior == 2.0


def test_queries_that_differ_keep_their_means():
    rng = np.random.default_rng(1)
    mean = np.repeat(rng.beta(2, 6, 300), 20)
    alpha, looks = rng.beta(8 * mean, 8 * (1 - mean)), rng.integers(1, 40, 6000).astype(float)
    clicks, query = rng.binomial(looks.astype(int), alpha).astype(float), np.repeat(np.arange(300), 20)
    found, prior = drawn_to(clicks, looks, looks, query, None)
    plain = (np.bincount(query, clicks) / np.bincount(query, looks))[query]
    for worse in (plain, np.full(6000, clicks.sum() / looks.sum())):
        assert np.square(found - mean).mean() < np.square(worse - mean).mean()
    assert prior == pytest.approx(8, rel=0.35)


def test_means_are_drawn_as_far_as_the_variances_say():
    """Two queries by hand, whose documents have as many looks each."""
    clicks, looks, query = np.array([9.0, 7.0, 1.0, 2.0]), np.full(4, 10.0), np.array([0, 0, 1, 1])
    m = (19 + 0.5) / (40 + 1)
    surplus = clicks - 10 * m
    apart = (surplus[0] * surplus[1] + surplus[2] * surplus[3]) / 200
    told, repeats = (np.square(surplus) - 10 * m + 10 * m * m).sum() / 21, 360 / 21
    inside = max((told - apart * repeats + FEW * m * (1 - m) / (STEADY + 1)) / (repeats + FEW), 0.0)
    strength = max((m * (1 - m) + inside * 10) / apart, 2.0)
    want = (np.array([16, 3]) + strength * m) / (20 + strength)
    assert drawn_to(clicks, looks, looks, query, 2.0)[0] == pytest.approx(np.repeat(want, 2))


@many
@pytest.mark.parametrize("name", ["dctr", "pbm", "ubm", "dcm", "ccm"])
@pytest.mark.parametrize("law", [(1, 3), (1, 19)])
def test_a_log_says_how_alike_documents_are(name, law):
    """Attraction by a beta law is drawn as by the sum of its two numbers."""
    pages = layout(400, 20, 10_000, 5)
    known = replace(users(name, pages), attraction=np.random.default_rng(1).beta(*law, 8000))
    clicked = known.simulate(pages, 1)
    assert fit(clicked, name).prior == pytest.approx(sum(law), rel=0.35)
    assert fit(clicked, name, Settings(prior=7.0)).prior == 7.0


@many
def test_deviations_are_as_large_as_errors_are():
    pages = layout(100, 12, 10_000, 6)
    for name in ("dctr", "pbm", "dcm"):
        truth = users(name, pages)
        found = fit(truth.simulate(pages, 1), name)
        shown = np.bincount(pages.pair, minlength=len(pages.query)) > 0
        scores = ((found.attraction - truth.attraction) / found.deviation)[shown]
        assert scores.std() == pytest.approx(1.0, abs=0.12)
        assert abs(scores.mean()) < 0.15


def test_examination_is_the_mean_look_at_each_rank():
    pages = layout(5, 8, 2000, 4)
    truth = users("dcm", pages)
    alpha = truth.attraction[pages.pair].reshape(-1, 4)
    reach = np.cumprod(1 - alpha + alpha * truth.after_rank, axis=1)[:, :-1]
    assert truth.examination(pages) == pytest.approx([1.0, *reach.mean(axis=0)])


def test_of_people_with_as_many_pages_the_error_is_that_of_their_means():
    error, n = mean_error(np.array([1.0, 1.0, 0.0, 0.0, 2.0, 2.0]), np.array([0, 0, 1, 1, 2, 2]))
    assert n == 3
    assert error == pytest.approx(np.std([1.0, 0.0, 2.0], ddof=1) / np.sqrt(3))


@pytest.mark.parametrize("sizes", [[3] * 29 + [45], [3] * 29 + [59], [1, 2, 2, 3, 4, 5, 6, 8, 12, 19], [10] * 10])
def test_people_with_many_pages_do_not_seem_surer_than_they_are(sizes):
    """Of people who are alike within and apart between them, one in twenty means is beyond Student's bound."""
    rng, sizes = np.random.default_rng(3), np.array(sizes)
    whose, beyond = np.repeat(np.arange(len(sizes)), sizes), 0
    for _ in range(1000):
        parts = np.sign(rng.normal(size=len(sizes))[whose] + rng.normal(size=len(whose)))
        error, n = mean_error(parts, whose)
        beyond += abs(parts.mean()) > stats.t.ppf(0.975, n - 1) * error
    assert 15 <= beyond <= 70


def test_queries_are_drawn_to_the_log_by_the_prior_at_least():
    """However far queries are apart, each is drawn to the log as by `prior` looks at least."""
    clicks, looks = np.array([100.0, 100.0, 0.0, 0.0]), np.full(4, 100.0)
    found, _ = drawn_to(clicks, looks, looks, np.array([0, 0, 1, 1]), 1000.0)
    assert found[0] == pytest.approx((200 + 1000 * 0.5) / (200 + 1000), abs=1e-3)
