"""Propensities of counts whose law is known, and of counts that cannot tell."""

import time

import numpy as np
import pytest

from ltr.data.propensities import propensities, ties


def rows(counts, clicks):
    document, place = np.nonzero(counts)
    return document, place + 1, counts[document, place], clicks[document, place]


def test_exact_where_clicks_are_what_is_expected():
    theta, attraction = np.array([1.0, 0.5, 0.2]), np.array([0.9, 0.3, 0.6])
    counts = np.array([[100, 100, 0], [0, 100, 100], [100, 0, 100]])
    found = propensities(*rows(counts, counts * theta * attraction[:, None]))
    assert found == pytest.approx(theta, abs=1e-8)


def test_few_impressions_a_document_do_not_bias():
    rng = np.random.default_rng(0)
    theta = 1 / np.arange(1, 7)
    counts = rng.poisson(0.5, (200_000, 6))
    clicks = rng.binomial(counts, theta * rng.beta(1, 3, (200_000, 1)))
    assert propensities(*rows(counts, clicks)) == pytest.approx(theta, rel=0.08)


def test_newtons_steps_end_where_the_alternation_does():
    rng = np.random.default_rng(1)
    counts = rng.poisson(2, (300, 7))
    clicks = rng.binomial(counts, 1 / np.arange(1, 8) * rng.beta(1, 3, (300, 1)))
    given = rows(counts, clicks)
    assert propensities(*given, rounds=1) == pytest.approx(propensities(*given), rel=1e-7)
    gap = counts.copy(), clicks.copy()
    for one in gap:
        one[:, 3] = 0
    assert propensities(*rows(*gap), rounds=1) == pytest.approx(propensities(*rows(*gap)), rel=1e-7, nan_ok=True)
    silent = clicks.copy()
    silent[:, 4] = 0
    assert propensities(*rows(counts, silent), rounds=1) == pytest.approx(propensities(*rows(counts, silent)), rel=1e-7)


def test_many_ranks_that_only_neighbours_tie_come_to_rest():
    """A user browsing model of pages of 50 results has as many ranks and last clicks, for which a table of every two took half a minute; of pages
    of 100 results it had no end."""
    rng, n = np.random.default_rng(2), 1200
    document, rank = np.repeat(np.arange(3 * n), 2), (np.repeat(np.arange(3 * n) % (n - 1), 2) + np.tile([1, 2], 3 * n))
    shown = rng.integers(1, 40, len(rank))
    clicked = rng.binomial(shown, 0.2 + 0.6 * rng.random(len(rank)))
    began = time.process_time()
    theta = propensities(document, rank, shown, clicked, rounds=20)
    assert time.process_time() - began < 4
    looks = np.bincount(document, shown * theta[rank - 1])
    gamma = np.bincount(document, clicked) / np.where(looks > 0, looks, 1)
    expected = theta * np.bincount(rank - 1, shown * gamma[document])
    assert expected == pytest.approx(np.bincount(rank - 1, clicked), rel=1e-6)


def test_many_ranks_of_very_unequal_impressions_come_to_rest_as_few_do(monkeypatch):
    """Conjugate gradients, which take more steps here than there are ranks, were given up before their end: of a log like this one of 1,500
    ranks one θ was three times what it is."""
    rng, n = np.random.default_rng(0), 400
    document = np.repeat(np.arange(12 * n), 2)
    rank = np.repeat(np.arange(12 * n) % (n - 1), 2) + np.tile([1, 2], 12 * n)
    shown = (10 ** rng.uniform(0, 6, len(rank))).astype(int)
    clicked = rng.binomial(shown, rng.uniform(0.1, 0.9, 12 * n)[document])
    theta = propensities(document, rank, shown, clicked, rounds=1000)
    monkeypatch.setattr("ltr.data.propensities.DENSE", n)
    assert theta == pytest.approx(propensities(document, rank, shown, clicked, rounds=1000), rel=1e-6)


@pytest.mark.parametrize(("seed", "rounds"), [(3, 1), (11, 100)])
def test_a_step_too_far_is_shortened(seed, rounds):
    """Newton's first step takes θ to where nothing bends: the next one ended with LAPACK's error, or θ stayed there, at 1e-16 for 7e-5."""
    rng = np.random.default_rng(seed)
    document, rank = np.repeat(np.arange(200), 2), np.repeat(rng.integers(0, 39, 200), 2) + np.tile([1, 2], 200)
    shown = (10 ** rng.uniform(0, 6, 400)).astype(int)
    clicked = rng.binomial(shown, np.exp(-8 * rng.random(40))[rank - 1])
    want = propensities(document, rank, shown, clicked)
    assert propensities(document, rank, shown, clicked, rounds=rounds) == pytest.approx(want, rel=1e-4, nan_ok=True)


def test_two_pages_of_ranks_that_few_impressions_tie_come_to_rest():
    """Ranks 1 to 3 and 4 to 6 of a million impressions each, and a hundred across: the alternation creeps."""
    theta, attraction = 1 / np.arange(1.0, 7), np.linspace(0.2, 0.8, 6)
    counts = np.zeros((6, 6))
    counts[:3, :3] = counts[3:, 3:] = 1e6
    counts[0, 3] = counts[3, 0] = 100
    clicks = counts * theta * attraction[:, None]
    assert propensities(*rows(counts, clicks), rounds=20) == pytest.approx(theta, rel=1e-6)


def test_a_rank_without_a_clicked_document_is_unknown_and_one_without_clicks_is_never_looked_at():
    found = propensities(np.array([0, 0, 0, 1]), np.array([1, 2, 3, 5]), np.full(4, 10), np.array([6, 3, 0, 0]))
    assert found == pytest.approx([1.0, 0.5, 0.0])
    found = propensities(np.array([0, 0, 1]), np.array([1, 3, 1]), np.full(3, 10), np.array([6, 3, 1]))
    assert np.isnan(found[1])
    assert found[[0, 2]] == pytest.approx([1.0, 0.5])


def test_counts_that_cannot_tell():
    with pytest.raises(ValueError, match="no click"):
        propensities(np.zeros(2, int), np.array([1, 2]), np.ones(2, int), np.zeros(2, int))
    with pytest.raises(ValueError, match="at two ranks"):
        propensities(np.arange(2), np.array([1, 2]), np.ones(2, int), np.ones(2, int))


def test_a_rank_that_drew_clicks_is_looked_at():
    """Document 0 is clicked at rank 1 and shown in vain at rank 2, whose clicks are all of a document shown nowhere else."""
    document, rank = np.array([0, 0, 1, 2, 2]), np.array([1, 2, 2, 1, 3])
    shown, clicked = np.full(5, 100), np.array([40, 0, 20, 20, 10])
    assert ties(document, rank, clicked).tolist() == [0, 1, 0]
    found = propensities(document, rank, shown, clicked)
    of_pair, of_second = np.array([1.0, 0.5]), 20 / 200
    """Ranks 1 and 3 are tied by document 2; the groups stand to each other as clicks over looks do."""
    scale = 70 / (200 * 1.0 + 100 * 0.5)
    assert found[[0, 2]] == pytest.approx(of_pair)
    assert found[1] == pytest.approx(of_second / scale)


def test_one_odd_click_far_below_does_not_silence_the_ranks_above():
    counts = np.array([[100, 100, 0], [100, 100, 0], [50, 0, 1]])
    clicks = np.array([[40, 20, 0], [20, 10, 0], [0, 0, 1]])
    found = propensities(*rows(counts, clicks))
    assert (found > 0.2).all(), found


def test_tied_groups_apart_keep_what_they_are_within():
    theta, attraction = np.array([1.0, 0.5, 0.2, 0.1]), np.array([0.9, 0.3])
    counts = np.array([[100, 100, 0, 0], [0, 0, 100, 100]])
    found = propensities(*rows(counts, counts * theta * attraction[:, None]))
    assert [found[1] / found[0], found[3] / found[2]] == pytest.approx([0.5, 0.5])
    assert found[2] / found[0] == pytest.approx(0.2 * 0.3 / 0.9)


def test_ranks_that_nothing_ties():
    with pytest.raises(ValueError, match="no two ranks are tied"):
        propensities(np.array([0, 0, 1]), np.array([1, 2, 2]), np.full(3, 10), np.array([5, 0, 5]))


def test_ranks_apart_are_looked_at_no_more_than_the_first():
    """Ranks 3 and 4, apart from 1 and 2, draw more clicks an impression, and fewer in all."""
    rank = np.array([1, 2, 1, 2, 3, 4, 3, 4])
    document = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    shown = np.array([100, 100, 100, 100, 20, 20, 20, 20])
    clicked = np.array([20, 10, 20, 10, 18, 9, 18, 9])
    theta = propensities(document, rank, shown, clicked)
    assert theta.max() == 1.0
    assert theta == pytest.approx([1, 0.5, 1, 0.5]), "tied ranks keep what they are to each other"


def test_a_group_that_is_looked_at_less_lowers_no_other():
    """Three groups: ranks 3 and 4 draw fewer clicks an impression than 1 and 2, ranks 5 and 6 as many."""
    theta, attraction = np.array([1.0, 0.5, 0.4, 0.2, 1.0, 0.6]), np.ones(3)
    counts = np.array([[1000, 1000, 0, 0, 0, 0], [0, 0, 500, 500, 0, 0], [0, 0, 0, 0, 100, 100]])
    found = propensities(*rows(counts, counts * theta * attraction[:, None]))
    assert found == pytest.approx(theta)
