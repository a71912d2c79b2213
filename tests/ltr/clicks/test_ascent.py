"""Hastened EM goes where plain EM goes, in fewer rounds."""

import numpy as np
import pytest

from ltr.clicks.ascent import ascend

HEADS = np.array([9, 8, 7, 4, 5, 3])
"""Of ten throws of one of two coins each (Do & Batzoglou 2008, with another draw)."""


def once(x):
    first, second = (x[k] ** HEADS * (1 - x[k]) ** (10 - HEADS) for k in (0, 1))
    share = first / (first + second)
    better = [(w * HEADS).sum() / (w * 10).sum() for w in (share, 1 - share)]
    return np.array(better), float(np.log(first + second).mean())


def test_the_same_maximum_in_fewer_rounds():
    plain, rounds, gain, before = np.array([0.55, 0.5]), 0, 1.0, -np.inf
    while abs(gain) > 1e-13:
        plain, likelihood = once(plain)
        gain, before, rounds = likelihood - before, likelihood, rounds + 1
    climb = ascend(once, np.array([0.55, 0.5]), 1e-13, 500)
    assert climb.rested
    assert climb.at == pytest.approx(plain, abs=1e-5)
    assert climb.rounds < rounds


def test_it_ends_after_as_many_rounds_as_are_given():
    climb = ascend(once, np.array([0.55, 0.5]), -1.0, 6)
    assert (climb.rounds, climb.rested) == (6, False)


def test_a_place_that_stays_is_rest():
    climb = ascend(lambda x: (x, 0.0), np.array([0.5]), 0.0, 100)
    assert (climb.rounds, climb.rested, climb.at.tolist()) == (2, True, [0.5])
