"""Histograms against sums by `numpy.add.at`: few bins and many, missing values, any number of threads, a parent less its child."""

import numpy as np
import pytest

from ltr.trees.binning import BLOCK, FEW, MISSING, Bins, apply_bins, find_bins
from ltr.trees.histograms import HistogramBuffers, build, of_leaves
from tests.conftest import JIT

N = 5000 if JIT else 200


def columns_of(shape, seed):
    """Features with so many distinct values each, a fifth of some missing."""
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.integers(0, distinct, N) for distinct in shape]).astype(np.float32)
    features[rng.random(features.shape) < 0.2 * (np.arange(len(shape)) % 3 == 0)] = np.nan
    return features


def naive(binned, rows, values):
    sums = np.zeros((len(binned) * BLOCK, MISSING + 1), np.int64)
    for column in range(len(sums)):
        np.add.at(sums[column], binned[column // BLOCK, rows, column % BLOCK], values)
    return sums


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize(
    "shape", [[200] * 3, [5] * 40, [FEW] * 9 + [FEW + 1] * 9, [2, 300, 31, 40] * 9, [1] * 4 + [254] * 16 + [3] * 8], ids=str
)
def test_sums_are_exact_for_any_threads_and_siblings_are_the_rest(shape, threads):
    features = columns_of(shape, seed=threads)
    bins = find_bins(features)
    binned = apply_bins(features, bins)
    rng = np.random.default_rng(1)
    values = rng.integers(-(2**55), 2**55, N)
    workshop = HistogramBuffers.of(bins, threads)
    words, real = binned.view(np.uint64), bins.used > 0
    parent, child = np.full((2, len(real), 256), 77, np.int64)
    everything = np.arange(N, dtype=np.int32)
    gathered = np.empty(N, np.int64)
    build(words, everything, values, gathered, workshop, threads, parent, parent, False)
    assert np.array_equal(parent[real], naive(binned, everything, values)[real])
    for share in (0.4, 0.002, 0.0):
        rows = np.flatnonzero(rng.random(N) < share).astype(np.int32)
        before = parent.copy()
        build(words, rows, values, gathered, workshop, threads, child, parent, True)
        assert np.array_equal(child[real], naive(binned, rows, values[rows])[real])
        assert np.array_equal(parent[real], before[real] - child[real])


@pytest.mark.parametrize("allowed", [[], [3], [0, 2, 4, 6, 20, 33], range(8, 24), range(40)], ids=str)
@pytest.mark.parametrize("shape", [[200] * 40, [5] * 40, [2, 300, 31, 40] * 10], ids=["many bins", "few bins", "both"])
def test_features_that_are_left_out_change_no_others_histogram(shape, allowed):
    features = columns_of(shape, seed=1)
    bins = find_bins(features)
    binned = apply_bins(features, bins)
    rng = np.random.default_rng(1)
    values, parent_values = rng.integers(-(2**55), 2**55, (2, N))
    workshop = HistogramBuffers.of(bins, 2)
    workshop.choose(bins.columns, np.isin(np.arange(40), allowed))
    own = bins.columns[list(allowed)]
    everything, some = np.arange(N, dtype=np.int32), np.flatnonzero(rng.random(N) < 0.3).astype(np.int32)
    parent, child = np.full((2, len(bins.used), 256), 77, np.int64)
    gathered = np.empty(N, np.int64)
    build(binned.view(np.uint64), everything, parent_values, gathered, workshop, 2, parent, parent, False)
    build(binned.view(np.uint64), some, values, gathered, workshop, 2, child, parent, True)
    assert np.array_equal(child[own], naive(binned, some, values[some])[own])
    assert np.array_equal(parent[own], naive(binned, everything, parent_values)[own] - child[own])
    workshop.choose(bins.columns, None)
    build(binned.view(np.uint64), some, values, gathered, workshop, 2, child, parent, False)
    assert np.array_equal(child[bins.used > 0], naive(binned, some, values[some])[bins.used > 0])


def test_columns_of_few_bins_stand_behind_the_others_in_order():
    counts = np.array([3, 100, 31, 32, 2, 255, 1])
    bins = Bins(np.zeros((counts - 1).sum(), np.float32), np.concatenate(([0], np.cumsum(counts - 1))), np.zeros(7, np.bool_))
    assert bins.columns.tolist() == [3, 0, 4, 1, 5, 2, 6]
    assert bins.used.tolist() == [100, 32, 255, 3, 31, 2, 1] + [0] * 9


def test_memory_that_there_is_not_is_told_with_what_asks_for_it():
    assert of_leaves(3, 16).shape == (3, 16, MISSING + 1)
    with pytest.raises(
        ValueError,
        match=r"131,072 leaves by 1,000,000,000 features take 268,435,456 GB, which cannot be allocated; set a lower n_leaves",
    ):
        of_leaves(131_072, 1_000_000_000)
