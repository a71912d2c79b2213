"""Sums by rank: those of exact arithmetic, in any order and on any machines."""

from fractions import Fraction

import numpy as np
import pytest

from ltr.objectives.rank_sums import RankSums
from tests.ltr.kernels.test_machines import together


def documents(seed=0, n=300):
    """Ranks and values of very different sizes, some not shown."""
    rng = np.random.default_rng(seed)
    ranks = rng.integers(-1, 9, n)
    return ranks, rng.normal(size=(2, n)) * 10.0 ** rng.integers(-12, 9, n)


def test_sums_are_those_of_exact_arithmetic():
    ranks, values = documents()
    sums = RankSums(ranks)
    for found, own in zip(sums(values), values, strict=True):
        for rank in range(9):
            at = ranks == rank
            exact = sum(map(Fraction, own[at].tolist()))
            assert abs(Fraction(found[rank]) - exact) <= Fraction(at.sum() ** 2 * np.abs(own[at]).max()) / 2**59
            assert sums.documents[rank] == at.sum()


@pytest.mark.parametrize("n", [2, 3, 4])
def test_sums_are_the_same_bits_in_any_order_and_division(n):
    ranks, values = documents()
    whole, rng = RankSums(ranks, 12), np.random.default_rng(n)
    order = rng.permutation(len(ranks))
    assert np.array_equal(RankSums(ranks[order], 12)(values[:, order]), whole(values))
    parts = np.split(order, np.sort(rng.choice(np.arange(1, len(order)), n - 1, replace=False)))

    def part(machine):
        own = parts[machine.place]
        sums = RankSums(ranks[own], 12 if machine.place == 0 else 0, machine)
        return sums(values[:, own]), sums.documents, sums.count(ranks[own][values[0, own] > 0])

    for sums, shown, positive in together(n, part):
        assert np.array_equal(sums, whole(values))
        assert np.array_equal(shown, whole.documents)
        assert np.array_equal(positive, whole.count(ranks[values[0] > 0]))
        assert len(shown) == 12


def test_nothing_and_next_to_nothing_are_zero():
    ranks = np.array([0, 2, 2, -1])
    assert RankSums(ranks)([np.array([0.0, 1e-200, -1e-300, 5.0])]).tolist() == [[0.0, 0.0, 0.0]]
    assert RankSums(np.full(3, -1))([np.ones(3)]).tolist() == [[0.0]]
    assert RankSums(np.zeros(0, np.int64), 2)([np.zeros(0)]).tolist() == [[0.0, 0.0]]


def test_the_largest_numbers_do_not_overflow():
    ranks, values = np.zeros(1000, np.int64), np.full(1000, 1e300)
    np.testing.assert_allclose(RankSums(ranks)([values, -values]), [[1e303], [-1e303]], rtol=1e-12)
