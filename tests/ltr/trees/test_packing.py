"""Sums packed and unpacked: nothing is lost, and small ones take few bits."""

import numpy as np
import pytest

from ltr.trees.packing import add_sums, packed


def sums_of(gradients, hessians):
    return (np.asarray(gradients, np.int64) << 32) + np.asarray(hessians, np.int64)


@pytest.mark.parametrize("bits", [0, 1, 7, 20, 30])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 300])
def test_nothing_is_lost(bits, n):
    rng = np.random.default_rng(n)
    histograms = sums_of(rng.integers(-(2**bits), 2**bits, (5, 400)), rng.integers(0, 2 ** (bits + 1), (5, 400)))
    which, places = np.array([3, 0, 3]), np.sort(rng.choice(400, n, replace=False))
    sums = rng.integers(0, 99, 3 * n)
    expected = sums + histograms[which][:, places].ravel()
    add_sums(packed(histograms, which, places).view(np.uint64), n, sums)
    assert sums.tolist() == expected.tolist()


def test_the_largest_sums_there_can_be():
    most = 2**31 - 1
    histograms = sums_of([[-most, most, 0, -1, 1, most, -most]], [[2**32 - 1, 0, 2**32 - 1, 1, 0, 2**32 - 1, 0]])
    sums = np.zeros(7, np.int64)
    add_sums(packed(histograms, np.array([0]), np.arange(7)).view(np.uint64), 7, sums)
    assert sums.tolist() == histograms[0].tolist()


def test_small_sums_take_few_bits():
    rng = np.random.default_rng(1)
    histograms = sums_of(rng.integers(-(2**14), 2**14, (1, 1600)), rng.integers(0, 2**15, (1, 1600)))
    assert len(packed(histograms, np.array([0]), np.arange(1600))) * 64 < 1600 * (30 + 1)
    assert len(packed(np.zeros((1, 1600), np.int64), np.array([0]), np.arange(1600))) * 64 < 1600


def test_of_no_places_or_no_histograms_nothing_is_written():
    for which, places in ((np.zeros(0, np.int64), np.arange(9)), (np.array([0, 0]), np.zeros(0, np.int64))):
        assert len(packed(np.ones((1, 9), np.int64), which, places)) <= 2
