"""Chains: against every walk down a page, and users whose parameters are known."""

import numpy as np
import pytest

from ltr.clicks import chains
from ltr.clicks.click_model import STEADY, Settings
from ltr.clicks.models import fit
from ltr.clicks.pages import Pages
from tests.click_logs import CHAINS, all_clicks, in_another_order, layout, one_page, users, walks
from tests.conftest import JIT

many = pytest.mark.skipif(not JIT, reason="thousands of pages are for compiled code")


def chance(every, click, upto=None):
    """How likely the clicks down to a place are."""
    return sum(p for p, clicks, _ in every if (clicks[:upto] == click[:upto]).all())


@pytest.mark.parametrize("name", CHAINS)
def test_clicks_given_those_above_and_whatever_is_above(name):
    page = one_page(np.random.default_rng(0))
    model = users(name, page)
    every = walks(model, page)
    assert model.expected(page) == pytest.approx(sum(p * clicks for p, clicks, _ in every))
    for clicked in all_clicks(page):
        given = model.given(clicked)
        for k in range(4):
            if chance(every, clicked.click, k) > 0:
                above = np.append(clicked.click[:k], True)
                assert given[k] == pytest.approx(chance(every, above, k + 1) / chance(every, above, k), abs=1e-12)


@pytest.mark.parametrize("name", ["dcm", "sdbn", "ccm"])
def test_a_round_sums_over_all_walks(name):
    """Looks, goings-on and the likelihood of every set of clicks, with all walks that lead to it weighed by how likely they are."""
    page = one_page(np.random.default_rng(2))
    model = users(name, page)
    every = walks(model, page)
    for clicked in all_clicks(page):
        examined, went_on, by_rank, passing = (np.empty(n, np.int64) for n in (4, 4, 5, 2))
        total = chains._round(
            page.offsets, page.pair, page.rank, model.attraction, model.skipped, model.after_pair, np.append(model.after_rank, 1.0)[:5],
            clicked.click, examined, went_on, by_rank, passing,
        )  # fmt: skip
        led = [(p, seen) for p, clicks, seen in every if (clicks == clicked.click).all()]
        likely = sum(p for p, _ in led)
        assert total / chains.LOGARITHM == pytest.approx(np.log(likely), abs=1e-6)
        seen = sum(p * seen for p, seen in led) / likely
        assert examined[page.pair] / chains.ONE == pytest.approx(seen, abs=1e-8)
        inner = clicked.click[:-1]
        assert went_on[page.pair[:-1]] / chains.ONE == pytest.approx(np.where(inner, seen[1:], 0), abs=1e-8)
        assert by_rank[page.rank[:-1] - 1] / chains.ONE == pytest.approx(np.where(inner, seen[1:], 0), abs=1e-8)
        assert passing / chains.ONE == pytest.approx([(seen[:-1] * ~inner).sum(), (seen[1:] * ~inner).sum()], abs=1e-8)


@many
@pytest.mark.parametrize("name", CHAINS)
def test_parameters_are_found_again(name):
    pages = layout(20, 12, 40_000, 6)
    truth = users(name, pages)
    clicked = truth.simulate(pages, 1)
    found = fit(clicked, name)
    assert found.rested
    assert found.after_rank[:-1] == pytest.approx(truth.after_rank[:-1], abs=0.03)
    assert found.skipped == pytest.approx(truth.skipped, abs=0.02)
    assert np.mean(np.abs(found.attraction - truth.attraction) < 2 * found.deviation) > 0.9
    if name in ("sdbn", "ccm"):
        often = np.bincount(pages.pair, clicked.click) > 200
        assert np.sqrt(np.mean((found.after_pair - truth.after_pair)[often] ** 2)) < 0.07


@many
@pytest.mark.parametrize("name", ["dcm", "sdbn", "ccm"])
def test_the_likelihood_is_no_lower_than_that_of_the_truth(name):
    pages = layout(10, 10, 4000, 5)
    truth = users(name, pages)
    clicked = truth.simulate(pages, 1)
    found = fit(clicked, name, Settings(prior=0.1, tolerance=1e-9, rounds=2000))

    def likelihood(model):
        given = model.given(clicked)
        return np.log(np.where(clicked.click, given, 1 - given)).mean()

    assert likelihood(found) > likelihood(truth)


def test_counting_is_what_em_finds_where_nothing_is_hidden():
    """A click that ends the page leaves no doubt about what was examined."""
    pages = Pages(
        np.array([0, 2, 3, 5]), np.array([0, 1, 0, 1, 0]), np.array([1, 2, 1, 1, 2]), np.array([0, 1, 1, 1, 1]), np.zeros(2, int)
    )
    found = fit(pages, "cascade", Settings(prior=1e-6))
    assert found.attraction == pytest.approx([1 / 2, 1.0], abs=1e-5)  # the third page is read to its first click
    found = fit(pages, "dcm", Settings(prior=1e-6))
    assert found.attraction == pytest.approx([2 / 3, 1.0], abs=1e-5)
    assert found.after_rank[0] == pytest.approx((1 + STEADY * 1.5 / 2) / (1 + STEADY), abs=1e-4)


@pytest.mark.parametrize("name", CHAINS)
def test_pages_in_another_order_give_the_same_bytes(name):
    pages = layout(6, 8, 500, 4)
    clicked = users(name, pages).simulate(pages, 1)
    shuffled = in_another_order(clicked)
    one, other = fit(clicked, name), fit(shuffled, name)
    for array in ("attraction", "looks", "after_pair", "after_rank"):
        assert getattr(one, array).tobytes() == getattr(other, array).tobytes()
    assert one.skipped == other.skipped


def test_long_pages_do_not_underflow():
    n = 100
    page = Pages(np.array([0, n]), np.arange(n), np.arange(1, n + 1), np.arange(n) == n - 1, np.zeros(n, int))
    found = fit(page, "sdbn", Settings(prior=1e-5))
    assert np.isfinite(found.attraction).all()
