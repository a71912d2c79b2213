"""Estimates of new rankers: by hand, and against the truth of simulated users."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ltr.clicks.looks import PARTS
from ltr.clicks.models import fit
from ltr.clicks.off_policy import ESTIMATORS, NoSupportError, Rules, _foretold, estimate, new_pages, new_ranks, reordered, tied
from ltr.clicks.pages import Pages
from tests.click_logs import layout, shuffled_pages, users, worth
from tests.conftest import JIT

many = pytest.mark.skipif(not JIT, reason="thousands of pages are for compiled code")

USERS = {"item-position": "pbm", "position-based": "pbm", "cascade": "dcm", "doubly-robust": "dcm"}
"""Users that each estimator is right about."""
SIZES = {"item-position": 1000, "position-based": 800, "cascade": 1500, "doubly-robust": 1500}
"""Pages of a log that has a few hundred effective ones."""


def estimated(pages, rank, estimator, rules, seed=1):
    """The estimate with the models that it needs."""
    if estimator == "position-based":
        return estimate(pages, rank, estimator, rules, part=parts_of(pages, seed))
    if estimator == "doubly-robust":
        half = np.random.default_rng([8, seed]).random(pages.n_pages) < 0.5
        models = [fit(pages.select(side), "dcm", n_ranks=pages.n_ranks) for side in (~half, half)]
        return estimate(pages, rank, estimator, rules, models, half)
    return estimate(pages, rank, estimator, rules)


def parts_of(pages, seed):
    return np.random.default_rng([9, seed]).permutation(pages.n_pages) % 20


def of_two_lengths(pages, short):
    """The pages, of which every other one ends after so many results."""
    shown = (pages.rank <= short) | (pages.of_page() % 2 == 1)
    offsets = np.append(0, np.cumsum(np.bincount(pages.of_page()[shown])))
    return Pages(offsets, pages.pair[shown], pages.rank[shown], pages.click[shown], pages.query)


BY_HAND = Pages(
    np.array([0, 2, 4, 6, 8]),
    np.array([0, 1, 0, 2, 1, 0, 0, 1]),
    np.array([1, 2] * 4),
    np.array([1, 0, 0, 1, 1, 1, 1, 1]),
    np.zeros(3, int),
)
"""One query; pages ab, ac, ba, ab, with clicks a, c, both, both."""


def test_by_hand():
    rules = Rules(top=2, sessions=1)
    new = np.array([1, 2, 0])
    """The new ranker shows ab."""
    found = estimate(BY_HAND, new, "item-position", rules)
    assert found.value == pytest.approx(2 / 3 + 1 / 2)  # a at 1: pages 1, 2, 4; b at 2: pages 1, 4
    assert found.gain == pytest.approx(2 / 3 + 1 / 2 - 6 / 4)
    assert found.sessions == pytest.approx(2)
    assert found.supported == 1
    assert (found.unseen, found.least, found.most) == ((0, 0), found.value, found.value)
    assert estimate(BY_HAND, new, "cascade", rules).value == pytest.approx(2 / 3 + 1 / 2)
    other = estimate(BY_HAND, np.array([2, 1, 0]), "cascade", rules)
    assert other.value == pytest.approx(2.0)
    assert other.sessions == pytest.approx(1)
    with pytest.raises(NoSupportError, match=r"cascade: effective sample size .* is 1\.0 pages; at least 30"):
        estimate(BY_HAND, np.array([2, 1, 0]), "cascade", Rules(top=2))


def test_one_session_has_no_interval():
    with pytest.raises(NoSupportError, match="item-position: all pages are of one session"):
        estimate(BY_HAND, np.array([1, 2, 0]), "item-position", Rules(top=2, sessions=1), session=np.zeros(4, np.int64))


def test_looks_of_other_pages_have_to_go_as_deep_as_these():
    deep = Pages(np.array([0, 3, 6]), np.array([0, 1, 2, 2, 1, 0]), np.array([1, 2, 3] * 2), np.ones(6, bool), np.zeros(3, int))
    with pytest.raises(ValueError, match="rank: 3; the model covers ranks 1 to 2"):
        estimate(deep, np.array([1, 2, 0]), "position-based", Rules(top=2), [fit(BY_HAND, "pbm")])
    last = Pages(np.array([0, 3, 6]), np.array([0, 1, 2, 1, 0, 2]), deep.rank, deep.click, deep.query)
    assert estimate(last, np.array([1, 2, 0]), "position-based", Rules(top=2, sessions=1), [fit(BY_HAND, "pbm")]).value > 0


def test_sessions_of_one_part_have_no_interval():
    with pytest.raises(NoSupportError, match="position-based: without some of its sessions, examination probabilities cannot be"):
        estimate(BY_HAND, np.array([1, 2, 0]), "position-based", Rules(top=2, sessions=1), part=np.full(4, 7))


def test_a_place_that_was_never_shown_has_no_support():
    new = np.array([0, 2, 1])
    with pytest.raises(NoSupportError, match=r"item-position: only 50\.0% .* at least 90% must"):
        estimate(BY_HAND, new, "item-position", Rules(top=2))
    with pytest.raises(NoSupportError, match=r"effective sample size .* is 0\.0 pages"):
        estimate(BY_HAND, new, "item-position", Rules(top=2, support=0.4, sessions=1))


@pytest.mark.parametrize("estimator", ["item-position", "cascade", "position-based", "doubly-robust"])
def test_what_a_log_never_shows_is_told_with_what_it_might_hold(estimator):
    """Of ten queries two would have a document first that was never on a page: what is assumed of it is in the value, and bounds are apart by
    as many clicks as it has places."""
    pages = shuffled_pages(10, 6, 3000, 4, np.random.default_rng(0), spread=1.0)
    pages = users("pbm", pages).simulate(pages, 1)
    fresh = np.append(pages.query, [3, 7])
    pages = Pages(pages.offsets, pages.pair, pages.rank, pages.click, fresh)
    scores = np.append(-np.tile(np.arange(6.0), 10), [1.0, 1.0])
    rules = Rules(top=3, sessions=1, support=0.5)
    found = estimated(pages, new_ranks(scores, fresh), estimator, rules)
    share = np.isin(pages.query[pages.pair[pages.offsets[:-1]]], [3, 7]).mean()
    assert found.unseen == pytest.approx(
        (share, 0, 0) if estimator in ("item-position", "position-based") else (share, share, share)
    )
    assert found.most - found.least == pytest.approx(sum(found.unseen))
    assert found.least < found.value < found.most
    assert found.value - found.least > 0.1 * sum(found.unseen), "what the model or the others of the rank say of them"


def test_ranks_that_no_documents_tie_say_nothing_of_each_other():
    """Documents change places at ranks 1 and 2, and at 3 and 4: those above may be better, so that clicks do not tell how the two are looked at."""
    rng = np.random.default_rng(4)
    order = np.hstack([rng.permuted(np.tile(two, (2000, 1)), axis=1) for two in ([0, 1], [2, 3])])
    click = rng.random(order.shape) < np.array([0.8, 0.7, 0.2, 0.1])[order] * np.array([1, 0.6, 0.5, 0.4])
    pages = Pages(np.arange(0, 8001, 4), order.ravel(), np.tile(np.arange(1, 5), 2000), click.ravel(), np.zeros(4, int))
    within = estimated(pages, np.array([2, 1, 4, 3]), "position-based", Rules(top=4))
    assert within.low < 0.7 + 0.6 * 0.8 + 0.5 * 0.1 + 0.4 * 0.2 < within.high
    assert within.supported == 1
    with pytest.raises(
        NoSupportError, match=r"position-based: only 50\.0% of the new ranker's top-4 results occur in the log in a way"
    ):
        estimated(pages, np.array([2, 3, 1, 4]), "position-based", Rules(top=4))
    deeper = replace(pages, rank=pages.rank + 4)
    with pytest.raises(NoSupportError, match=r"position-based: only 0\.0% of the new ranker's"):
        estimated(deeper, np.array([1, 2, 3, 4]), "position-based", Rules(top=4))


def test_a_ranker_without_a_document_for_any_page_has_no_support():
    with pytest.raises(NoSupportError, match=r"only 0\.0% of the new"):
        estimate(BY_HAND, np.zeros(3, int), "item-position", Rules(top=2))


def test_clipping_takes_weight_from_rare_places():
    pages = shuffled_pages(5, 6, 1000, 4, np.random.default_rng(0), spread=3.0)
    clicked = users("pbm", pages).simulate(pages, 1)
    new = new_ranks(-np.tile(np.arange(6.0), 5)[::-1], pages.query)
    plain, clipped = (
        estimate(clicked, new, "item-position", Rules(top=3, clip=clip, support=0.5, sessions=1)) for clip in (1e9, 5.0)
    )
    assert plain.clipped == 0
    assert 0.1 < clipped.clipped < 0.95
    assert clipped.error < plain.error


def test_a_page_in_another_order():
    """Of equal scores each has the mean of the looks at their ranks."""
    pages = Pages(
        np.array([0, 3, 5]), np.array([2, 0, 1, 4, 3]), np.array([1, 2, 4, 2, 3]), np.array([1, 0, 1, 1, 0]), np.zeros(5, int)
    )
    looks = np.array([1.0, 0.5, 0.25, 0.2])
    found = reordered(pages, np.array([0.0, 1.0, 2.0, 5.0, 5.0]), looks)
    assert found == pytest.approx([0.2 / 1.0 + 1.0 / 0.2, (0.5 + 0.25) / 2 / 0.5])
    assert reordered(pages, -pages.rank.astype(float), looks) == pytest.approx([2.0, 1.0])


def test_new_ranks_and_their_pages():
    query = np.array([0, 0, 0, 1, 1])
    rank = new_ranks(np.array([0.5, np.nan, 0.9, 1.0, 1.0]), query)
    assert rank[:3].tolist() == [2, 0, 1]
    assert sorted(rank[3:]) == [1, 2]
    pages, whose = new_pages(rank, query, 1)
    assert (pages.pair[0], rank[pages.pair[1]], whose.tolist()) == (2, 1, [0, 1])
    pages, whose = new_pages(rank, query, 5)
    assert (pages.offsets.tolist(), pages.pair[:2].tolist(), whose.tolist()) == ([0, 2, 4], [2, 0], [0, 1])


def test_equal_scores_are_ranked_by_lot_and_counted():
    query, scores = np.repeat(np.arange(500), 4), np.tile([1.0, 1.0, 2.0, np.nan], 500)
    rank = new_ranks(scores, query)
    assert np.array_equal(rank, new_ranks(scores, query))
    assert not np.array_equal(rank, new_ranks(scores, query, seed=2))
    assert (rank.reshape(-1, 4)[:, 2:] == (1, 0)).all()
    assert rank.reshape(-1, 4)[:, 0].mean() == pytest.approx(2.5, abs=0.1)
    assert [tied(scores, query, rank, top) for top in (1, 2, 3)] == [0, 500, 1000]


def test_the_logging_ranker_itself_is_worth_what_it_drew():
    pages = layout(3, 5, 600, 4)
    first = pages.select(np.isin(np.arange(600), [np.argmax(pages.query[pages.pair[::4]] == q) for q in range(3)]))
    rank = np.zeros(15, np.int64)
    rank[first.pair] = first.rank
    query = pages.query[pages.pair[::4]]
    fixed = Pages(
        pages.offsets,
        first.pair.reshape(3, 4)[np.argsort(first.query[first.pair[::4]])][query].ravel(),
        pages.rank,
        pages.click,
        pages.query,
    )
    clicked = users("dcm", pages).simulate(fixed, 1)
    for estimator in ("item-position", "cascade", "doubly-robust"):
        found = estimated(clicked, rank, estimator, Rules(top=4))
        assert found.value == pytest.approx(clicked.click.sum() / 600)
        assert found.gain == pytest.approx(0.0, abs=1e-12)
        assert found.sessions == pytest.approx(600)


@many
@pytest.mark.parametrize(
    "estimator", [pytest.param(name, marks=pytest.mark.long) if name == "position-based" else name for name in ESTIMATORS]
)
def test_intervals_cover_the_truth_as_often_as_they_say(estimator):
    """Of a position-based one each error is that of 21 fits; in the normal suite it has `test_a_log_with_few_swaps_knows_how_little_it_knows`."""
    pages = shuffled_pages(10, 3, 50, 2, np.random.default_rng(1))
    model, rules, repeats = users(USERS[estimator], pages), Rules(top=2), 500
    rank = new_ranks(model.attraction + 0.1 * np.random.default_rng(5).normal(size=30), pages.query)
    truth, covered, values, errors = worth(model, rank, pages.query, 2), 0, [], []
    for k in range(repeats):
        clicked = model.simulate(shuffled_pages(10, 3, SIZES[estimator], 2, np.random.default_rng([7, k])), k)
        found = estimated(clicked, rank, estimator, rules, k)
        covered += found.low <= truth <= found.high
        values.append(found.value)
        errors.append(found.error)
    assert 0.93 <= covered / repeats <= 0.97
    assert np.mean(values) == pytest.approx(truth, abs=4 * np.std(values) / np.sqrt(repeats) + 0.002)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.12)


@many
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_five_rankers_are_put_in_their_order(estimator):
    pages = shuffled_pages(8, 4, 20_000, 3, np.random.default_rng(2), spread=0.5)
    model = users(USERS[estimator], pages)
    clicked = model.simulate(pages, 1)
    noise = np.random.default_rng(3).normal(size=32)
    ranks = [
        new_ranks(share * model.attraction + 0.15 * (1 - abs(share)) * noise, pages.query) for share in (1.0, 0.5, 0.0, -0.4, -1.0)
    ]
    truth = [worth(model, rank, pages.query, 3) for rank in ranks]
    found = [estimated(clicked, rank, estimator, Rules(top=3)).value for rank in ranks]
    assert np.argsort(found).tolist() == np.argsort(truth).tolist()
    assert sorted(truth, reverse=True) == truth


def test_looks_that_are_learned_are_those_of_the_model_and_errors_those_of_the_log_without_each_part():
    """The jackknife's numbers, from distinct results, against estimates of the pages themselves."""
    pages = shuffled_pages(5, 6, 400, 4, np.random.default_rng(0), spread=2.0)
    clicked = users("pbm", pages).simulate(pages, 1)
    rank = new_ranks(users("pbm", pages).attraction, pages.query)
    part = np.arange(400) % 5
    for log, rules in ((clicked, Rules(top=3)), (clicked, Rules(top=4, clip=1.2)), (of_two_lengths(clicked, 2), Rules(top=4))):
        found = estimate(log, rank, "position-based", rules, part=part)
        known = estimate(log, rank, "position-based", rules, [fit(log, "pbm")])
        assert found.value == pytest.approx(known.value, rel=1e-6)
        assert found.gain == pytest.approx(known.gain, rel=1e-6)
        left = [log.select(part != k) for k in range(5)]
        without = [estimate(one, rank, "position-based", rules, [fit(one, "pbm")]) for one in left]
        for name, error in (("value", found.error), ("gain", found.gain_error)):
            own = np.array([getattr(one, name) for one in without])
            assert error == pytest.approx(np.sqrt(4 / 5 * ((own - own.mean()) ** 2).sum()), rel=1e-5)


@pytest.mark.long
@many
def test_a_log_with_few_swaps_knows_how_little_it_knows():
    """Two neighbours change places on every twentieth page: with looks taken as known, 95 % intervals covered 27 of 100 and a quarter of logs
    said surely that a worse ranker was better."""
    rng, n = np.random.default_rng(4), 4000
    attraction = rng.beta(1, 4, (20, 6))
    looks = 1 / np.arange(1, 7)
    shown = np.argsort(-(attraction + rng.normal(0, 0.15, (20, 6))), axis=1)
    rank = new_ranks((attraction + rng.normal(0, 0.3, (20, 6))).ravel(), np.repeat(np.arange(20), 6))
    worth_of = (attraction.ravel() * np.where(rank <= 4, looks[rank - 1], 0)).reshape(20, 6).sum(axis=1).mean()
    covered, known, surely_wrong = 0, 0, 0
    for _ in range(20):
        query = np.arange(n) % 20
        order = shown[query].copy()
        swapped, first = np.flatnonzero(rng.random(n) < 0.05), rng.integers(0, 5, n)
        for page in swapped:
            k = first[page]
            order[page, [k, k + 1]] = order[page, [k + 1, k]]
        click = rng.random((n, 6)) < attraction[query[:, None], order] * looks
        pages = Pages(
            np.arange(0, 6 * n + 1, 6),
            (query[:, None] * 6 + order).ravel(),
            np.tile(np.arange(1, 7), n),
            click.ravel(),
            np.repeat(np.arange(20), 6),
        )
        truth = worth_of - (attraction[query[:, None], order] * looks)[:, :4].sum(axis=1).mean()
        found = estimate(pages, rank, "position-based", Rules(top=4), part=rng.permutation(n) % PARTS)
        covered += found.low <= worth_of <= found.high
        surely_wrong += found.gain * np.sign(truth) < -2 * found.gain_error
        taken = estimate(pages, rank, "position-based", Rules(top=4), [fit(pages, "pbm")])
        known += taken.low <= worth_of <= taken.high
    assert truth < -0.01
    assert covered >= 16
    assert surely_wrong <= 1
    assert known <= 12


def test_what_is_refused():
    for wrong in ({"top": 0}, {"clip": 0.5}, {"level": 1.0}, {"support": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Rules(**wrong)
    new = np.array([1, 2, 0])
    with pytest.raises(ValueError, match="'replay' is unknown; choose from: item-position"):
        estimate(BY_HAND, new, "replay")
    with pytest.raises(ValueError, match="doubly-robust: it needs 2 click models and a half, not 0"):
        estimate(BY_HAND, new, "doubly-robust")
    with pytest.raises(NoSupportError, match="position-based: no clicked document was shown at two ranks"):
        estimate(BY_HAND.select(np.array([True, True, False, False])), new, "position-based", part=np.array([0, 1]))
    with pytest.raises(ValueError, match="position-based: it needs a PBM, not dctr"):
        estimate(BY_HAND, new, "position-based", models=[fit(BY_HAND, "dctr")])


@many
def test_intervals_cover_the_truth_where_sessions_have_several_pages():
    """50 sessions of 10 pages, some of whose users click more than others: as if pages were independent, 95 % intervals cover 87 %."""
    pages = shuffled_pages(10, 3, 50, 2, np.random.default_rng(1))
    model, rules, repeats = users("pbm", pages), Rules(top=2), 300
    rank = new_ranks(model.attraction + 0.1 * np.random.default_rng(5).normal(size=30), pages.query)
    truth, covered, alone = worth(model, rank, pages.query, 2), 0, 0
    for k in range(repeats):
        rng = np.random.default_rng([11, k])
        clicked = model.simulate(shuffled_pages(10, 3, 500, 2, rng), k)
        session = np.repeat(np.arange(50), 10)
        eager = np.repeat(rng.random(50) < 0.5, 10)[clicked.of_page()]
        clicked = replace(clicked, click=np.where(eager, clicked.click, clicked.click & (rng.random(len(clicked.pair)) < 0.05)))
        found, as_pages = (estimate(clicked, rank, "item-position", rules, session=own) for own in (session, None))
        covered += found.low <= 0.525 * truth <= found.high
        alone += as_pages.low <= 0.525 * truth <= as_pages.high
        assert found.value == as_pages.value
    assert 0.91 <= covered / repeats <= 0.98
    assert alone / repeats < 0.88


def _pages(n, docs=2):
    return Pages(
        np.arange(0, docs * n + 1, docs),
        np.tile(np.arange(docs), n),
        np.tile(np.arange(docs) + 1, n),
        (np.arange(docs * n) % 3 == 0),
        np.zeros(docs, np.int64),
    )


def test_ranks_that_are_filled_on_no_page_are_behind_nothing():
    assert estimate(_pages(100), np.array([1, 2]), "item-position", Rules(top=5)).sessions == pytest.approx(100)


def test_each_half_is_foretold_by_the_model_of_the_other():
    """The first model is of those that are not in the half, as `tasks.data.new_rankers` fits it."""
    pages = _pages(4)
    models = [SimpleNamespace(n_ranks=2, expected=lambda shown, k=k: np.full(len(shown.pair), k)) for k in (0.1, 0.9)]
    half = np.array([True, False, True, False])
    found = _foretold(pages, np.array([1, 2]), Rules(top=2), models, half)
    np.testing.assert_allclose(found[:, 0], [0.1, 0.9, 0.1, 0.9])


@many
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_results_that_no_page_has_take_no_memory(estimator):
    """Tables had as many columns as ``--top`` says: a million of them, for all results, ended with numpy's error."""
    pages = shuffled_pages(3, 4, 300, 3, np.random.default_rng(4))
    clicked = users("pbm", pages).simulate(pages, 1)
    rank = np.tile([1, 2, 3, 4], 3)
    deep, as_deep = (estimated(clicked, rank, estimator, Rules(top=top, support=0.1, sessions=1)) for top in (10**9, 3))
    assert deep == as_deep


@many
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pages_stay_as_long_as_they_were(estimator):
    """The ranker that made all pages, of which half show 3 results and half 8, gains nothing over them."""
    rng = np.random.default_rng(4)
    whole = shuffled_pages(6, 8, 4000, 8, rng, spread=4.0)
    whole = users(USERS[estimator], whole).simulate(whole, 2)
    pages = of_two_lengths(whole, 3)
    order = np.zeros(len(pages.query))
    np.add.at(order, whole.pair, -whole.rank / np.bincount(whole.pair)[whole.pair])
    found = estimated(pages, new_ranks(order, pages.query), estimator, Rules(top=8, sessions=10, support=0.5))
    depth = np.minimum(pages.depth(), 8)
    assert (found.unseen[0], len(found.unseen)) == (0, 8)
    assert found.value < np.bincount(depth, minlength=9)[8] / len(depth) * 8
    whole_value = estimated(whole, new_ranks(order, whole.query), estimator, Rules(top=8, sessions=10, support=0.5)).value
    assert found.value < whole_value - 3 * found.error
    assert abs(found.gain) < abs(whole_value - found.value)
