"""Edges, and the bins that values fall into."""

import numpy as np

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
