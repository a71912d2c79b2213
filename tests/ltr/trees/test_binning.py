"""Edges, and the bins that values fall into."""

import numpy as np
import pytest

from ltr.trees.binning import MISSING, apply_bins, find_bins


def test_bins_hold_what_their_edges_say():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(5000, 3)).astype(np.float32)
    features[rng.random(5000) < 0.1, 1] = np.nan
    features[:, 2] = rng.integers(0, 4, 5000)
    bins = find_bins(features, 64)
    binned = apply_bins(features, bins)
    for f in range(3):
        edges = bins.edges[bins.starts[f] : bins.starts[f + 1]]
        assert len(edges) <= 63
        assert (np.diff(edges) > 0).all()
        present = ~np.isnan(features[:, f])
        column = bins.columns[f]
        assert (binned[0, ~present, column] == MISSING).all()
        assert np.array_equal(binned[0, present, column], np.searchsorted(edges, features[present, f], side="left"))
    assert bins.starts[3] - bins.starts[2] == 3
    counts = np.bincount(binned[0, :, bins.columns[0]], minlength=64)
    assert counts.min() > 0.5 * 5000 / 64


def test_neighbouring_floats_are_told_apart():
    low = np.float32(1)
    features = np.array([[low], [np.nextafter(low, np.float32(2))]], np.float32)
    bins = find_bins(features)
    assert apply_bins(features, bins)[0, :, 0].tolist() == [0, 1]


def test_a_category_has_a_bin_of_its_own_and_rare_ones_have_none():
    column = np.concatenate((np.repeat(np.arange(10.0), np.arange(10, 0, -1)), [np.nan, 1e7]))
    features = np.column_stack((column, column)).astype(np.float32)
    features[-1, 1] = 0.5
    bins = find_bins(features, 5, np.array([True, False]))
    assert bins.edges[bins.starts[0] : bins.starts[1]].tolist() == [0, 1, 2, 3]
    assert bins.categorical.tolist() == [True, False]
    later = np.array([[3, 0], [4, 0], [0.5, 0], [-1, 0], [np.nan, 0], [0, 0]], np.float32)
    assert apply_bins(later, bins)[0, :, bins.columns[0]].tolist() == [3, MISSING, MISSING, MISSING, MISSING, 0]


@pytest.mark.parametrize("wrong", [0.5, -1, 2**24 + 2, np.inf])
def test_what_is_no_category_is_refused(wrong):
    features = np.array([[1], [wrong]], np.float32)
    with pytest.raises(
        ValueError, match=r"column 0 is categorical and has the value .*; categories are whole numbers from 0 to 16,777,216"
    ):
        find_bins(features, 255, np.array([True]))
