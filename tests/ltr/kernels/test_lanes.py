"""Vectors of the processor against the same by loops and by NumPy."""

import numpy as np
import pytest
from numba import njit

from ltr.kernels import lanes
from ltr.kernels.lanes import ROWS
from ltr.kernels.vectors import LANES


@njit
def turn(features, at, width, columns, to):
    return lanes.turn(features, at, width, columns, to)


@njit
def walk(columns, place, threshold, kept, begin, middle, end, leaf):
    lanes.walk(columns, place, threshold, kept, begin, middle, end, leaf)


@pytest.mark.parametrize("turned", [turn, lanes._turn_by_numpy])
def test_a_square_of_rows_is_turned_and_nothing_beside_it_written(turned):
    features = np.random.default_rng(0).normal(size=(40, 23)).astype(np.float32)
    columns = np.full(20 * ROWS, 7, np.float32)
    assert not turned(features.reshape(-1), 5 * 23 + 3, 23, columns, 2 * ROWS + 32)
    want = np.full((20, ROWS), 7, np.float32)
    want[2 : 2 + LANES, 32 : 32 + LANES] = features[5 : 5 + LANES, 3 : 3 + LANES].T
    assert np.array_equal(columns.reshape(20, ROWS), want)


@pytest.mark.parametrize("turned", [turn, lanes._turn_by_numpy])
def test_an_infinite_number_is_seen_wherever_it_stands_and_nan_is_none(turned):
    columns = np.zeros(LANES * ROWS, np.float32)
    features = np.zeros((LANES, LANES), np.float32)
    features[3, 4], features[15, 15], features[0, 0] = np.nan, -np.nan, np.finfo(np.float32).max
    assert not turned(features.reshape(-1), 0, LANES, columns, 0)
    for place in np.ndindex(LANES, LANES):
        before, features[place] = features[place], np.inf if sum(place) % 2 else -np.inf
        assert turned(features.reshape(-1), 0, LANES, columns, 0), place
        features[place] = before


@pytest.mark.parametrize("walked", [walk, lanes._walk_by_numpy])
@pytest.mark.parametrize("bits", [np.uint32, np.uint64])
def test_a_row_keeps_the_lowest_leaf_that_no_node_takes_away(walked, bits):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, (6, ROWS)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    n_leaves = 8 * np.dtype(bits).itemsize
    for begin, middle, end in ((2, 5, 9), (0, 0, 9), (3, 9, 9), (4, 4, 4)):
        feature, threshold = rng.integers(0, 6, 9), rng.integers(0, 5, 9).astype(np.float32)
        kept = rng.integers(0, 2**62, 9).astype(bits) | bits(1 << (n_leaves - 1))
        leaf = np.empty(ROWS, bits)
        walked(x.reshape(-1), feature * ROWS, threshold, kept, begin, middle, end, leaf)
        for row in range(ROWS):
            alive = (1 << n_leaves) - 1
            for node in range(begin, end):
                value = x[feature[node], row]
                if node < middle if np.isnan(value) else value > threshold[node]:
                    alive &= int(kept[node])
            assert leaf[row] == next(k for k in range(n_leaves) if alive >> k & 1)
