"""Digests of rows, and draws that are keyed by them."""

import numpy as np
import pytest

from ltr.data.digests import GOLDEN, chosen, drawn_parts, equal_parts, mix, mix_one, row_digests
from tests.conftest import make_queries

SPLITMIX64 = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)
"""The first numbers of Vigna's splitmix64.c from the state 0."""


def test_mixing_is_splitmix64_s_in_python_and_in_kernels():
    states = np.arange(1, 4, dtype=np.uint64) * GOLDEN
    assert mix(states).tolist() == list(SPLITMIX64)
    assert [int(mix_one(state)) for state in states] == list(SPLITMIX64)


def test_row_digests_join_zeros_and_nans_and_part_the_rest():
    rows = np.array([[0.0, np.nan], [-0.0, -np.nan], [0.0, 1.0], [1.0, 0.0]], np.float32)
    digests = row_digests(rows)
    assert digests[0] == digests[1]
    assert len(set(digests.tolist())) == 3


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_query_is_drawn_by_its_key_and_the_seeds_whatever_the_others_are(share):
    keys = make_queries(4000).keys
    drawn = chosen(keys, share, (1, 2))
    assert drawn.mean() == pytest.approx(share, abs=0.03)
    assert np.array_equal(chosen(keys[::3], share, (1, 2)), drawn[::3])
    assert not np.array_equal(chosen(keys, share, (1, 3)), drawn)
    assert chosen(keys, 1.0, (1, 2)).all()
    assert not chosen(keys, 0.0, (1, 2)).any()


def test_parts_are_about_as_large_and_drawn_by_key():
    keys = make_queries(4000).keys
    parts = drawn_parts(keys, 5, (7,))
    assert np.bincount(parts, minlength=5) == pytest.approx(np.full(5, 800), rel=0.15)
    assert np.array_equal(drawn_parts(keys[::-1], 5, (7,)), parts[::-1])


@pytest.mark.parametrize("n_queries", [5, 23, 4000])
def test_equal_parts_are_drawn_by_key_and_as_large_as_each_other(n_queries):
    keys = make_queries(n_queries).keys
    parts = equal_parts(keys, 5, (7,))
    assert np.ptp(np.bincount(parts, minlength=5)) <= 1
    assert np.array_equal(equal_parts(keys[::-1], 5, (7,)), parts[::-1])
    assert not np.array_equal(equal_parts(keys, 5, (8,)), parts)
    assert equal_parts(keys[:0], 5, (7,)).tolist() == []
