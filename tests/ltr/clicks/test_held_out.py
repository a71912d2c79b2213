"""Which model foretells clicks best: by hand, and of simulated users."""

from types import SimpleNamespace

import numpy as np
import pytest

from ltr.clicks.held_out import LEAST, _error, foretell, perplexities, surprises
from ltr.clicks.models import MODELS, fit
from ltr.clicks.pages import Pages
from tests.click_logs import layout, three_a_page, users
from tests.conftest import JIT

many = pytest.mark.skipif(not JIT, reason="thousands of pages are for compiled code")

PAGES = Pages(np.array([0, 2, 4]), np.array([0, 1, 0, 1]), np.array([1, 2, 1, 4]), np.array([1, 0, 0, 0]), np.zeros(2, int))


def test_surprise_and_perplexity_by_hand():
    p = np.array([0.5, 0.25, 0.5, 1.0])
    assert surprises(p, PAGES) == pytest.approx(-np.log([0.5, 0.75, 0.5, LEAST]))
    by_rank = perplexities(np.array([0.25, 0.5, 0.75, 0.1]), PAGES)
    assert by_rank[[0, 1, 3]] == pytest.approx([4.0, 2.0, 1 / 0.9])
    assert np.isnan(by_rank[2])


@many
@pytest.mark.parametrize("name", ["dctr", "pbm", "ubm", "dcm", "sdbn", "ccm"])
def test_users_are_known_by_their_model(name):
    pages = layout(20, 10, 16_000, 6)
    clicked = users(name, pages).simulate(pages, 1)
    held = np.arange(pages.n_pages) % 4 == 0
    models = {other: fit(clicked.select(~held), other) for other in MODELS}
    found = foretell(models, clicked.select(held), np.flatnonzero(held))
    assert found[0].name == name or not next(one for one in found if one.name == name).worse
    assert found[0].behind == 0
    assert found[-1].worse


@many
def test_how_far_behind_has_the_error_of_sessions():
    pages = layout(5, 8, 2000, 4)
    clicked = users("pbm", pages).simulate(pages, 1)
    models = {name: fit(clicked, name) for name in ("pbm", "rctr")}
    session = np.arange(2000) // 2
    first, second = foretell(models, clicked, session)
    surprise = {name: surprises(model.given(clicked), clicked).reshape(1000, 8).sum(axis=1) for name, model in models.items()}
    difference = surprise["rctr"] - surprise["pbm"]
    assert (first.name, second.behind) == ("pbm", pytest.approx(difference.sum() / 8000))
    assert second.error == pytest.approx(difference.std(ddof=1) / np.sqrt(1000) / 8)


def test_overall_perplexity_weighs_ranks_by_what_was_shown_there():
    clicked = Pages(
        np.array([0, 2, 4, 5]), np.array([0, 1, 0, 1, 0]), np.array([1, 2, 1, 2, 1]), np.array([1, 0, 0, 1, 1]), np.zeros(2, int)
    )
    (found,) = foretell({"dctr": fit(clicked, "dctr")}, clicked, np.arange(3))
    assert found.perplexity == pytest.approx((3 * found.by_rank[0] + 2 * found.by_rank[1]) / 5)


def test_the_order_of_pages_does_not_matter():
    pages = layout(5, 8, 500, 4)
    clicked = users("dcm", pages).simulate(pages, 1)
    order = np.random.default_rng(0).permutation(500)
    rows = (order[:, None] * 4 + np.arange(4)).ravel()
    shuffled = Pages(pages.offsets, clicked.pair[rows], clicked.rank[rows], clicked.click[rows], pages.query)
    session = np.arange(500) // 3
    models = {name: fit(clicked, name) for name in ("dcm", "pbm")}
    one, other = foretell(models, clicked, session), foretell(models, shuffled, session[order])
    for a, b in zip(one, other, strict=True):
        assert (a.name, a.likelihood, a.behind, a.error, a.perplexity) == (b.name, b.likelihood, b.behind, b.error, b.perplexity)
        assert a.by_rank.tobytes() == b.by_rank.tobytes()


def test_sessions_of_the_same_difference_a_result_are_no_spread():
    """However long each is: the mean is a result's."""
    pages = SimpleNamespace(offsets=np.array([0, 1, 4, 6]), pair=np.zeros(6))
    assert _error(np.array([1.0, 3.0, 2.0]), pages, np.array([5, 6, 7])) == pytest.approx(0, abs=1e-12)


def test_perplexities_are_those_of_what_is_expected():
    pages = three_a_page()
    model = fit(pages, "ubm")
    (found,) = foretell({"ubm": model}, pages, np.arange(pages.n_pages))
    np.testing.assert_allclose(found.by_rank, perplexities(model.expected(pages), pages), rtol=1e-12)
