"""Models of looks: against every hidden way to look at a page, their maxima against a grid, and users whose parameters are known."""

import numpy as np
import pytest

from ltr.clicks.click_model import Settings, drawn_to
from ltr.clicks.looks import PARTS, Seen, looks_errors, spread, tied_ranks
from ltr.clicks.models import fit
from ltr.clicks.pages import Pages
from tests.click_logs import LOOKS, all_clicks, glances, in_another_order, layout, one_page, three_a_page, users
from tests.conftest import JIT

many = pytest.mark.skipif(not JIT, reason="thousands of pages are for compiled code")


def likelihood(model, page):
    given = model.given(page)
    return float(np.prod(np.where(page.click, given, 1 - given)))


@pytest.mark.parametrize("name", ["rctr", "dctr", "pbm"])
def test_clicks_of_a_page_are_summed_over_all_that_is_hidden(name):
    page = one_page(np.random.default_rng(0))
    model, hidden = users(name, page), list(glances(users(name, page), page))
    for clicked in all_clicks(page):
        assert likelihood(model, clicked) == pytest.approx(sum(p for p, click in hidden if (click == clicked.click).all()))


def test_clicks_of_the_user_browsing_model_follow_the_last_click():
    page = one_page(np.random.default_rng(0)).clicked(np.array([False, True, False, True]))
    model = users("ubm", page)
    alpha = model.attraction[page.pair]
    assert model.given(page) == pytest.approx(alpha * model.gamma[[0, 1, 2, 4], [0, 0, 2, 2]])


@pytest.mark.parametrize("name", LOOKS)
def test_expected_clicks_are_summed_over_all_clicks_above(name):
    page = one_page(np.random.default_rng(1))
    model = users(name, page)
    every = [(likelihood(model, clicked), clicked.click) for clicked in all_clicks(page)]
    assert sum(p for p, _ in every) == pytest.approx(1.0)
    assert model.expected(page) == pytest.approx(sum(p * click for p, click in every))


@many
@pytest.mark.parametrize("name", LOOKS)
def test_simulated_clicks_are_as_frequent_as_expected(name):
    pages = layout(4, 8, 20_000, 5)
    model = users(name, pages)
    drawn = model.simulate(pages, 1)
    expected, n = model.expected(pages), len(pages.pair)
    assert drawn.click.mean() == pytest.approx(expected.mean(), abs=4 * np.sqrt(expected.mean() / n))
    for rank in range(1, 6):
        at = pages.rank == rank
        assert drawn.click[at].mean() == pytest.approx(expected[at].mean(), abs=4 * np.sqrt(0.25 / at.sum()))
    assert (model.simulate(pages, 1).click == drawn.click).all()
    assert (model.simulate(pages, 2).click != drawn.click).any()


@many
@pytest.mark.parametrize("name", LOOKS)
def test_parameters_are_found_again(name):
    pages = layout(20, 12, 40_000, 6)
    truth = users(name, pages)
    found = fit(truth.simulate(pages, 1), name)
    assert found.gamma[:, 0] == pytest.approx(truth.gamma[:, 0], abs=0.03)
    if name == "ubm":
        below = np.tril_indices(6)
        assert np.abs(found.gamma - truth.gamma)[below].max() < 0.08
    errors = np.abs(found.attraction - truth.attraction) / np.maximum(found.deviation, 1e-6)
    assert name == "rctr" or np.mean(errors < 2) > 0.92


@many
def test_looks_are_not_taken_for_more_than_they_are_where_documents_have_few_impressions():
    pages = layout(3000, 10, 20_000, 5)
    truth = users("pbm", pages)
    found = fit(truth.simulate(pages, 1), "pbm")
    assert found.gamma[:, 0] == pytest.approx(truth.gamma[:, 0], abs=0.03)


def test_attraction_is_the_highest_place_of_its_likelihood_and_prior():
    pages = layout(1, 4, 300, 3)
    clicked = users("pbm", pages).simulate(pages, 1)
    model = fit(clicked, "pbm", Settings(prior=3.0))
    looks = np.bincount(pages.pair, model.gamma[pages.rank - 1, 0], 4)
    squares = np.bincount(pages.pair, model.gamma[pages.rank - 1, 0] ** 2, 4)
    m, _ = drawn_to(np.bincount(pages.pair, clicked.click, 4), looks, squares, pages.query, 3.0)
    grid = np.linspace(0.0005, 0.9995, 1000)[:, None]
    for pair in range(4):
        rows = pages.pair == pair
        p = grid * model.gamma[pages.rank[rows] - 1, 0]
        score = np.where(clicked.click[rows], np.log(p), np.log(1 - p)).sum(axis=1)
        score += 3 * (m[pair] * np.log(grid) + (1 - m[pair]) * np.log(1 - grid))[:, 0]
        assert model.attraction[pair] == pytest.approx(grid[np.argmax(score), 0], abs=0.001)
    assert model.looks == pytest.approx(looks)


@pytest.mark.parametrize("name", LOOKS)
def test_pages_in_another_order_give_the_same_bytes(name):
    pages = layout(6, 8, 500, 4)
    clicked = users(name, pages).simulate(pages, 1)
    shuffled = in_another_order(clicked)
    one, other = fit(clicked, name), fit(shuffled, name)
    assert one.attraction.tobytes() == other.attraction.tobytes()
    assert one.gamma.tobytes() == other.gamma.tobytes()
    assert one.examination(clicked).tobytes() == other.examination(shuffled).tobytes()


def test_a_deep_rank_with_few_clicks_is_neither_dark_nor_the_scale():
    """Beside many pages of two ranks, a document that is clicked at the first and shown in vain at the fourth, and one that is clicked
    both times it stands at the fifth."""
    pages = layout(4, 5, 2000, 2)
    clicked = users("pbm", pages).simulate(pages, 1)
    deep = Pages(
        np.append(clicked.offsets, clicked.offsets[-1] + 2 * np.arange(1, 3)),
        np.append(clicked.pair, [0, 1, 2, 1]),
        np.append(clicked.rank, [4, 5, 1, 5]),
        np.append(clicked.click, [False, True, False, True]),
        pages.query,
    )
    for name in ("pbm", "ubm"):
        found = fit(deep, name)
        assert found.gamma[0, 0] == pytest.approx(1.0)
        assert found.gamma[1, 0] == pytest.approx(2**-0.7, abs=0.1)
        assert 0.2 < found.gamma[3, 0] < 0.9
        assert found.gamma[2, 0] > 0.2  # where nothing was shown, as above


def test_what_was_never_shown_is_what_its_query_is():
    pages = Pages(np.array([0, 2, 4]), np.array([0, 1, 1, 0]), np.array([1, 2, 1, 2]), np.array([1, 0, 1, 1]), np.zeros(3, int))
    model = fit(pages, "dctr", Settings(prior=2.0))
    assert model.attraction[2] == pytest.approx(3.5 / 5)  # there is one query, whose mean is the log's
    assert model.looks.tolist() == [2, 2, 0]


def test_ranks_beyond_those_known():
    pages = layout(3, 6, 400, 3)
    clicked = users("pbm", pages).simulate(pages, 1)
    deeper = Pages(np.array([0, 1]), np.array([0]), np.array([5]), np.array([0]), pages.query)
    with pytest.raises(ValueError, match="rank: 5; the model covers ranks 1 to 3"):
        fit(clicked, "pbm").given(deeper)
    assert fit(clicked, "pbm", n_ranks=5).given(deeper)[0] > 0


def test_tied_ranks():
    pages = layout(3, 6, 400, 3)
    assert tied_ranks(users("pbm", pages).simulate(pages, 1)).all()
    fixed = Pages(np.array([0, 2, 4]), np.array([0, 1, 0, 1]), np.array([1, 2, 1, 2]), np.array([1, 0, 0, 1]), np.zeros(2, int))
    assert tied_ranks(fixed).sum() == 1


@pytest.mark.long
def test_errors_of_looks_are_what_they_differ_by_from_log_to_log():
    """Of a log in which some documents change places, and of one in which they hardly do."""
    for share, near in ((1.0, 0.5), (0.1, 0.7)):
        found, errors = [], []
        for seed in range(12):
            rng = np.random.default_rng([seed, 5])
            order = np.tile(np.arange(4), (3000, 1))
            drawn = rng.random(3000) < share
            order[drawn] = rng.permuted(order[drawn], axis=1)
            query, looks = rng.integers(0, 10, 3000), np.array([1, 0.6, 0.4, 0.3])
            attraction = np.random.default_rng(1).beta(2, 3, (10, 4))
            click = rng.random((3000, 4)) < attraction[query[:, None], order] * looks
            pair = (query[:, None] * 4 + order).ravel()
            pages = Pages(np.arange(0, 12001, 4), pair, np.tile(np.arange(1, 5), 3000), click.ravel(), np.repeat(np.arange(10), 4))
            found.append(Seen.of(pages).looks())
            errors.append(looks_errors(pages, rng.permutation(3000) % PARTS))
        assert found[0] == pytest.approx(fit(pages, "pbm").gamma[:, 0], abs=0.2)
        assert np.mean(errors, axis=0)[1:] == pytest.approx(np.std(found, axis=0, ddof=1)[1:], rel=near)


def test_looks_that_one_part_of_a_log_alone_tells_have_no_error():
    pages = Pages(np.array([0, 2, 4, 6]), np.array([0, 1, 1, 0, 0, 1]), np.tile([1, 2], 3), np.ones(6, bool), np.zeros(2, int))
    assert np.isinf(looks_errors(pages, np.arange(3))).all()
    assert np.isinf(looks_errors(pages, np.zeros(3, int))).all()


def test_of_a_mean_the_jackknife_has_the_usual_error():
    x = np.array([1.0, 2.0, 4.0, 9.0])
    assert spread((x.sum() - x) / 3) == pytest.approx(x.std(ddof=1) / 2)


def test_what_is_certain_of_a_pair_is_what_was_looked_at_and_left():
    pages = three_a_page()
    model = fit(pages, "pbm")
    gamma, alpha = model.gamma[pages.rank - 1, 0], model.attraction[pages.pair]
    np.testing.assert_allclose(model.certain, np.bincount(pages.pair, gamma * (1 - alpha) / (1 - gamma * alpha)))


def test_the_prior_is_that_of_the_looks_that_were_found():
    pages = three_a_page()
    model = fit(pages, "pbm")
    gamma = model.gamma[pages.rank - 1, 0]
    clicks, looks, squares = (np.bincount(pages.pair, one, 60) for one in (pages.click, gamma, gamma**2))
    assert model.prior == pytest.approx(drawn_to(clicks, looks, squares, pages.query, None)[1])
