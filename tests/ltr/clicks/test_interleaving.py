"""Interleaving: lists and credit by hand, simulated users, and as many sessions as a wanted power takes."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from ltr.clicks.interleaving import METHODS, STEEPNESS, Sessions, credits, duels, interleave, preferences, sessions_needed

RNG = np.random.default_rng


def shown(rankings, n_sessions, attraction, length, method, rng):
    """Sessions of users who look at all results and click by attraction."""
    session, click, team, rank = [], [], [], []
    places = [np.argsort(ranking) + 1 for ranking in rankings]
    for s in range(n_sessions):
        page = interleave(rankings, length, method, rng)
        session += [s] * len(page.document)
        click += list(rng.random(len(page.document)) < attraction[page.document])
        team += list(page.team)
        rank += [[place[d] for place in places] for d in page.document]
    return Sessions(np.array(session), np.array(click), np.array(team), np.array(rank), len(rankings))


def test_team_draft_by_hand():
    rankings = [np.array([0, 1, 2, 3]), np.array([1, 0, 3, 2])]
    for seed in range(20):
        page = interleave(rankings, 4, "team-draft", RNG(seed))
        assert sorted(page.document) == [0, 1, 2, 3]
        assert sorted(page.team[:2]) == sorted(page.team[2:]) == [0, 1]
        assert page.document[0] == rankings[page.team[0]][0]
    assert len(interleave(rankings, 10, "team-draft", RNG(0)).document) == 4
    assert {int(interleave(rankings, 1, "team-draft", RNG(seed)).document[0]) for seed in range(20)} == {0, 1}


@pytest.mark.parametrize("method", METHODS)
def test_documents_are_ids_as_they_are_given(method):
    """Whole numbers were made of texts: ``0071`` and ``71`` were one document, which a page could show twice."""
    old, new = ["0071", "71", "12"], ["71", "0071", "13"]
    for rankings in ([old, new], [np.array(old), np.array(new, object)]):
        page = interleave(rankings, 4, method, RNG(0))
        assert sorted(page.document.tolist()) == ["0071", "12", "13", "71"]
    assert interleave([[3, 1], []], 4, method, RNG(0)).document.tolist() in ([3, 1], [1, 3])
    assert interleave([[], []], 4, method, RNG(0)).document.dtype == np.int64
    for wrong, told in (
        ([1.5, 2.0], "whole numbers or text, not float64"),
        ([b"a"], "text, not"),
        ([["a"]], "must be whole numbers or text, not"),
    ):
        with pytest.raises(ValueError, match=told):
            interleave([old, wrong], 4, method, RNG(0))
    with pytest.raises(ValueError, match="the documents of one are numbers and those of another are text"):
        interleave([old, [1, 2]], 4, method, RNG(0))


def test_balanced_pages_hold_the_first_results_of_both():
    rankings = [np.array([0, 1, 2, 3]), np.array([1, 4, 0, 5])]
    pages = {tuple(interleave(rankings, 4, "balanced", RNG(seed)).document.tolist()) for seed in range(20)}
    assert pages == {(0, 1, 4, 2), (1, 0, 4, 2)}


def test_probabilistic_pages_may_hold_anything_first():
    rankings = [np.array([0, 1, 2]), np.array([2, 1, 0])]
    first = [int(interleave(rankings, 3, "probabilistic", rng).document[0]) for rng in [RNG(1)] for _ in range(4000)]
    chance = np.array([1, 1 / 8, 1 / 27]) / (1 + 1 / 8 + 1 / 27)
    assert np.bincount(first) / 4000 == pytest.approx((chance + chance[::-1]) / 2, abs=0.03)


def test_credits_by_hand():
    session, click = np.array([0, 0, 0, 1, 1]), np.array([True, False, True, False, False])
    team, rank = np.array([0, 1, 1, 0, 1]), np.array([[1, 2], [2, 1], [3, 4], [1, 2], [2, 1]])
    given = Sessions(session, click, team, rank, 2)
    assert credits(given, "team-draft").tolist() == [[1, 1], [0, 0]]
    assert credits(given, "balanced").tolist() == [
        [2, 1],
        [0, 0],
    ]  # the lowest click is third of the first list: its three against three
    first = (1.0, 1 / 8)
    """Above the third row stand two of the first list's better documents, and two of the second list's three."""
    third = (1.0, 1 / 8)
    want = [first[j] / sum(first) + third[j] / sum(third) for j in range(2)]
    assert credits(given, "probabilistic")[0] == pytest.approx(want)
    chances = [first[0] / sum(first), third[0] / sum(third)]
    assert preferences(given, "probabilistic")[:, 0] == pytest.approx([np.prod(chances) - np.prod(np.subtract(1, chances)), 0])
    assert preferences(given, "balanced").tolist() == [[1], [0]]


def test_a_document_that_a_ranker_lacks_is_the_others():
    given = Sessions(np.array([0, 0]), np.array([True, True]), np.array([-1, -1]), np.array([[1, 0], [0, 1]]), 2)
    assert credits(given, "probabilistic").tolist() == [[1, 1]]
    with pytest.raises(ValueError, match="team-draft: a clicked result without a team"):
        credits(given, "team-draft")
    with pytest.raises(ValueError, match="balanced: it needs the rank of each result in each of the 2 rankings"):
        credits(Sessions(given.session, given.click, given.team, np.empty((2, 0), np.int64), 2), "balanced")


@pytest.mark.parametrize("method", METHODS)
def test_the_better_ranker_wins_and_equal_ones_do_not(method):
    attraction = np.linspace(0.6, 0.05, 8)
    good, bad = np.arange(8), np.array([3, 2, 5, 4, 0, 1, 7, 6])
    (found,) = duels(preferences(shown([good, bad], 1500, attraction, 5, method, RNG(1)), method))
    assert found.low > 0
    assert found.p < 0.001
    (same,) = duels(preferences(shown([good, good.copy()], 800, attraction, 5, method, RNG(2)), method))
    assert same.low <= 0 <= same.high


MOVED_UP = [np.arange(10), np.r_[9, np.arange(9)]]
"""Two lists, one of which has the other's last document first."""


@pytest.mark.parametrize("method", ["team-draft", "probabilistic"])
def test_users_who_click_at_random_prefer_neither(method):
    (found,) = duels(preferences(shown(MOVED_UP, 4000, np.full(10, 0.3), 5, method, RNG(3)), method))
    assert abs(found.preference) < 3 * found.error < 0.06


def test_the_mean_preference_of_random_clicks_is_exactly_none():
    """Every page of three documents, as often as it is made, with every set of clicks."""
    rankings = [np.array([0, 1, 2]), np.array([2, 0, 1])]
    places = [np.argsort(ranking) + 1 for ranking in rankings]
    pages = []
    for first, second in permutations(range(3), 2):
        chance = 1.0
        for document, gone in ((first, []), (second, [first])):
            left = [[d for d in ranking if d not in gone] for ranking in rankings]
            weights = np.arange(1, len(left[0]) + 1) ** -STEEPNESS
            chance *= np.mean([weights[one.index(document)] for one in left]) / weights.sum()
        pages += [(chance, (first, second), clicks) for clicks in product((False, True), repeat=2)]
    document, click = np.array([page for _, page, _ in pages]).ravel(), np.array([clicks for _, _, clicks in pages]).ravel()
    rank = np.column_stack([place[document] for place in places])
    session = np.repeat(np.arange(len(pages)), 2)
    found = preferences(Sessions(session, click, np.full(len(click), -1), rank, 2), "probabilistic")
    chances = np.array([chance for chance, _, _ in pages])
    assert chances.sum() == pytest.approx(4), "each page once for every set of clicks"
    assert np.abs(found).max() > 0.5
    for clicks in product((False, True), repeat=2):
        own = (click.reshape(-1, 2) == clicks).all(axis=1)
        assert found[own, 0] @ chances[own] == pytest.approx(0, abs=1e-12)


def test_five_rankers_are_put_in_their_order():
    attraction = np.linspace(0.7, 0.02, 10)
    rng = RNG(3)
    rankings = [np.roll(np.arange(10), -first) for first in range(5)]
    sessions = shown(rankings, 6000, attraction, 5, "team-draft", rng)
    credit = credits(sessions, "team-draft")
    truth = [attraction[ranking[:3]].sum() for ranking in rankings]
    assert np.argsort(credit.sum(axis=0)).tolist() == np.argsort(truth).tolist()
    assert all(duel.preference > 0 for duel in duels(preferences(sessions, "team-draft")))


def test_intervals_cover_the_truth_as_often_as_they_say():
    rng, covered, truth = RNG(5), 0, 0.3 - 0.2
    for _ in range(500):
        drawn = rng.choice([1.0, -1.0, 0.0], 400, p=[0.3, 0.2, 0.5])
        (duel,) = duels(drawn[:, None])
        covered += duel.low <= truth <= duel.high
    assert 0.93 <= covered / 500 <= 0.97


def test_duels_by_hand_and_holm():
    credit = np.array([[2, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0], [3, 1, 0], [1.0, 0, 0]])
    first, second, third = duels(np.sign(credit[:, [0, 0, 1]] - credit[:, [1, 2, 2]]))
    assert (first.wins, first.losses, first.ties) == (5, 0, 1)
    assert first.preference == pytest.approx(5 / 6)
    assert first.error == pytest.approx(np.array([1, 1, 0, 1, 1, 1]).std(ddof=1) / np.sqrt(6))
    assert first.p == pytest.approx(2 / 2**5)
    ps = [duel.p for duel in (first, second, third)]
    assert first.holm_p == pytest.approx(min(1, 3 * min(ps)))
    assert max(duel.holm_p for duel in (first, second, third)) <= 1
    (tied,) = duels(np.zeros((3, 1)))
    assert (tied.p, tied.ties) == (1.0, 3)
    with pytest.raises(ValueError, match="1 session; two or more"):
        duels(np.zeros((1, 1)))
    means = np.array([0.5, -0.25, 1.0, 0.0, 0.75])
    (fractional,) = duels(means[:, None])
    assert fractional.p == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    assert (fractional.wins, fractional.losses, fractional.ties) == (3, 1, 1)


@pytest.mark.parametrize(("ties", "preference"), [(0.5, 0.1), (0.8, 0.1), (0.0, 0.3)])
def test_as_many_sessions_as_planned_have_the_wanted_power(ties, preference):
    n = sessions_needed(preference, ties=ties, power=0.8)
    spread = stats.norm.ppf(0.975) * (1 - ties) ** 0.5 + stats.norm.ppf(0.8) * (1 - ties - preference**2) ** 0.5
    normal = (spread / preference) ** 2
    assert normal < n < 1.15 * normal + 3
    wins, losses, _ = RNG(6).multinomial(n, [(1 - ties + preference) / 2, (1 - ties - preference) / 2, ties], 40_000).T
    seen = (2 * stats.binom.cdf(losses, wins + losses, 0.5) <= 0.05) & (wins > losses)
    assert 0.795 < seen.mean() < (0.81 if ties else 0.86), "without ties the exact test's power goes in steps"


def test_what_plans_grow_with():
    assert sessions_needed(0.1, rankers=5) > sessions_needed(0.1)
    assert sessions_needed(0.1) < sessions_needed(0.1, rankers=10**6) < 20 * sessions_needed(0.1)
    assert sessions_needed(0.5, ties=0.5) < 20
    assert sessions_needed(1.0, ties=0.0) == 6, "2 / 2⁶ is the first below .05"
    assert sessions_needed(0.2, ties=0.0) == 210, "of 203 the power is .801, of 209 .798"
    assert sessions_needed(0.002, ties=0.0) == 1_963_688, "in a wink, too"
    assert sessions_needed(0.001) == pytest.approx(0.5 * 2.8016**2 / 0.001**2, rel=0.01)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"preference": 0.0}, "preference: 0.0; must be above 0 and at most 0.5"),
        ({"preference": 0.6}, "preference: 0.6"),
        ({"preference": 0.1, "power": 1.0}, "power: 1.0"),
        ({"preference": 0.1, "ties": -0.1}, "ties: -0.1"),
        ({"preference": 0.1, "rankers": 1}, "rankers: 1"),
        (
            {"preference": 1e-9},
            r"preference: 1e-09; seeing it takes about 3.9e\+18 sessions, and at most 10,000,000,000 are planned",
        ),
        ({"preference": 1e-200, "ties": 0.0}, "takes about inf sessions"),
    ],
)
def test_plans_out_of_range(wrong, said):
    with pytest.raises(ValueError, match=said):
        sessions_needed(**wrong)


@pytest.mark.parametrize("ties", [0.8, 0.9, 0.95])
def test_the_largest_preference_that_ties_leave_can_be_planned(ties):
    """1 − 0.9 is a rounding less than 0.1."""
    assert sessions_needed(round(1 - ties, 12), ties) == sessions_needed(1 - ties, ties)
    with pytest.raises(ValueError, match="must be above 0 and at most"):
        sessions_needed(1 - ties + 1e-9, ties)


def test_ids_beyond_64_bits_with_a_sign_come_as_no_other_ids():
    large = np.array([3, 2**63 + 5], np.uint64)
    with pytest.raises(ValueError, match="ranking 0: document 9223372036854775813 is beyond int64; give such ids as text"):
        interleave([large, large[::-1]], 2, "team-draft", RNG(0))
    assert interleave([large[:1]] * 2, 2, "team-draft", RNG(0)).document.tolist() == [3]
    assert interleave([large.astype(str)] * 2, 2, "team-draft", RNG(0)).document.tolist() == ["3", "9223372036854775813"]


def test_methods_and_rankings_that_there_are_not():
    with pytest.raises(ValueError, match="'random' is unknown; choose from: team-draft, balanced, probabilistic"):
        interleave([np.arange(2)] * 2, 2, "random", RNG(0))
    with pytest.raises(ValueError, match="balanced: 3 rankings; two are needed"):
        interleave([np.arange(2)] * 3, 2, "balanced", RNG(0))


@pytest.mark.parametrize("method", ["team-draft", "probabilistic", "balanced"])
def test_a_ranking_has_a_document_once(method):
    with pytest.raises(ValueError, match="ranking 1: it has a document twice"):
        interleave([np.array([1, 2]), np.array([3, 1, 3])], 3, method, np.random.default_rng(0))


def test_people_with_several_pages_are_told_apart_as_rarely_as_asked():
    """60 people of 1 to 24 pages, whose tastes differ while nobody's ranker is better: the pages alone reject 35 % at 5 %."""
    rejected = covered = 0
    for k in range(400):
        rng = RNG([9, k])
        whose = np.repeat(np.arange(60), rng.integers(1, 25, 60))
        taste = rng.choice([-0.25, 0.25], 60)[whose]
        page = np.where(rng.random(len(whose)) < 0.5 + taste, 1.0, -1.0)
        (duel,) = duels(page[:, None], whose=whose)
        rejected += duel.p < 0.05
        covered += duel.low <= 0 <= duel.high
    assert rejected / 400 <= 0.08
    assert covered / 400 >= 0.92
    assert duels(page[:, None]) != [duel]


def test_the_order_of_people_decides_nothing_and_those_of_one_page_are_as_before():
    page = RNG(1).choice([1.0, -1.0, 0.0], 50)
    assert duels(page[:, None], whose=RNG(2).permutation(50)) == duels(page[:, None])
    whose = RNG(3).integers(0, 20, 50)
    (first,), (second,) = (duels(page[:, None], whose=own) for own in (whose, 100 - whose))
    assert first.error == pytest.approx(second.error)
    with pytest.raises(ValueError, match="all pages are of one session; intervals need two or more sessions"):
        duels(page[:, None], whose=np.zeros(50, np.int64))


def test_lists_of_different_length_win_no_random_clicks_where_their_lengths_are_known():
    rng, long, short = RNG(3), np.arange(10), np.array([4, 3, 2, 1, 0])
    rows = [[], [], []]
    for s in range(4000):
        page = interleave([long, short], 5, "probabilistic", rng)
        rows[0] += [s] * 5
        rows[1] += list(rng.random(5) < 0.5)
        rows[2] += [[d + 1, 5 - d if d < 5 else 0] for d in page.document]
    session, click, rank = map(np.array, rows)
    unknown = Sessions(session, click, np.full(len(session), -1), rank, 2)
    known = Sessions(session, click, unknown.team, rank, 2, length=np.tile([10, 5], (len(session), 1)))
    fair, unfair = duels(preferences(known, "probabilistic"))[0], duels(preferences(unknown, "probabilistic"))[0]
    assert abs(fair.preference) < 2.5 * fair.error
    assert unfair.preference > fair.preference + 0.015


def test_chances_by_enumeration_of_who_drew():
    """Of two lists of 2 and 1 documents, both the first shown: the short list draws it always, the long one in 8 of 9 cases."""
    sessions = Sessions(np.zeros(1, int), np.ones(1, bool), np.array([-1]), np.array([[1, 1]]), 2, length=np.array([[2, 1]]))
    assert credits(sessions, "probabilistic")[0] == pytest.approx([8 / 17, 9 / 17])


@pytest.mark.parametrize(("people", "wins", "losses"), [(3, 8, 2), (2, 50, 0), (4, 4, 1)])
def test_few_people_who_are_all_alike_are_no_certainty(people, wins, losses):
    """Others may prefer the other ranker on every page, and pages of one person are no others: were a share s of all people like these and
    no ranker better, the mean s·m − (1 − s) would be 0."""
    pages = np.tile(np.r_[np.ones(wins), -np.ones(losses)], people)[:, None]
    (duel,) = duels(pages, whose=np.repeat(np.arange(people), wins + losses))
    assert duel.p == pytest.approx(2 * (1 / (1 + duel.preference)) ** people)
    assert duel.low < 0 < duel.preference <= duel.high


def test_ties_alone_are_no_certainty():
    (duel,) = duels(np.zeros((2, 1)))
    assert (duel.preference, duel.p) == (0, 1)
    assert -duel.low == duel.high == pytest.approx(1 - 0.025 ** (1 / 2))


def test_six_wins_are_not_all_there_can_be():
    (duel,) = duels(np.ones((6, 1)))
    assert duel.p == pytest.approx(stats.binomtest(6, 6).pvalue)
    assert 0 < duel.low < duel.preference == duel.high == 1


@pytest.mark.parametrize(("preference", "ties"), [(0.3, 0.001), (0.8, 0.05), (0.5, 0.02)])
def test_a_few_more_sessions_than_planned_have_the_power_too(preference, ties):
    planned = sessions_needed(preference, ties)
    most = np.arange(planned + 12)
    rejected = stats.binom.cdf(most, most[:, None], 0.5) <= 0.025  # so many losses or fewer of so many decided sessions
    for n in range(planned, planned + 12):
        decided = np.arange(n + 1)
        losses = rejected[: n + 1].sum(axis=1) - 1
        seen = stats.binom.cdf(losses, decided, (1 - preference / (1 - ties)) / 2)
        assert stats.binom.pmf(decided, n, 1 - ties) @ seen >= 0.8 - 1e-9


def test_a_click_beside_both_lists_is_for_neither():
    """Of a balanced page with an advertisement below, that was clicked: the first list alone had the clicked result."""
    rank = np.array([[1, 0], [0, 1], [0, 0]])
    page = Sessions(np.zeros(3, np.int64), np.array([True, False, True]), np.full(3, -1), rank, 2)
    assert credits(page, "balanced").tolist() == [[1.0, 0.0]]
    assert preferences(page, "balanced").tolist() == [[1.0]]
    alone = Sessions(np.zeros(1, np.int64), np.array([True]), np.full(1, -1), rank[2:], 2)
    assert credits(alone, "balanced").tolist() == [[0.0, 0.0]]
