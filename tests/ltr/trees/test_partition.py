"""Rows of a leaf and how they part."""

import numpy as np
import pytest

from ltr.trees.binning import BLOCK, MISSING
from ltr.trees.histograms import N_BINS
from ltr.trees.partition import BinnedDataset, note_leaves, partition, rows_by_sample
from ltr.trees.splits import Nodes
from tests.conftest import JIT


@pytest.mark.parametrize("n_rows", [1, 7, 9000, 9001])
def test_rows_part_in_their_order(n_rows):
    rng = np.random.default_rng(n_rows)
    features = rng.integers(0, 9, (20_000, 3)).astype(np.float32)
    features[rng.random(20_000) < 0.2, 1] = np.nan
    ground = BinnedDataset.of(features, 255, 2)
    rows = rng.permutation(20_000)[:n_rows].astype(np.int32)
    for missing_left in (False, True):
        parted = rows.copy()
        column = ground.bins.columns[1]
        bins = ground.binned[0, rows, column]
        left = (bins <= 4) | (missing_left & (bins == MISSING))
        goes_left = np.arange(N_BINS) <= 4
        goes_left[MISSING] = missing_left
        assert partition(ground.binned, column, parted, ground.scratch, goes_left) == left.sum()
        assert np.array_equal(parted, np.concatenate((rows[left], rows[~left])))


@pytest.mark.parametrize("share", [0.0, 0.001, 0.6, 1.0])
def test_rows_that_a_tree_was_not_grown_on_fall_as_each_would_alone(share):
    """Against a walk from the root, with missing values and a leaf that no row reaches; rows of other documents keep what they have."""
    rng = np.random.default_rng(3)
    n = 40_000 if JIT else 2000
    features = rng.integers(0, 9, (n, 20)).astype(np.float32)
    features[rng.random(n) < 0.2, 18] = np.nan
    data = BinnedDataset.of(features, 255, 5, rng.permutation(n))
    goes_left = rng.random((4, N_BINS)) < 0.5
    goes_left[2] = True
    nodes = Nodes(
        np.array([18, 3, 7, 18]),
        np.zeros(4, np.int64),
        np.zeros(4, np.bool_),
        np.array([1, ~0, 3, ~2]),
        np.array([2, ~1, ~4, ~3]),
        goes_left,
    )
    sample = rng.random(n) >= share
    rows_by_sample(sample, data.row_index, int(sample.sum()), data.rows)
    assert np.array_equal(data.rows, np.concatenate([np.sort(data.row_index[sample]), np.sort(data.row_index[~sample])]))
    of_row = data.scratch
    of_row[:] = 77
    data.fall(sample, int(sample.sum()), nodes, of_row)
    for document in rng.permutation(n)[:500]:
        row, node = data.row_index[document], 0 if not sample[document] else ~77
        while node >= 0:
            column = data.bins.columns[nodes.feature[node]]
            left = goes_left[node, data.binned[column // BLOCK, row, column % BLOCK]]
            node = nodes.left[node] if left else nodes.right[node]
        assert of_row[row] == ~node


def test_more_documents_than_32_bits_number_are_refused_at_once():
    with pytest.raises(ValueError, match="2,147,483,648 documents; trees number them in 32 bits"):
        BinnedDataset.of(np.broadcast_to(np.float32(0), (2**31, 1)), 255, 2)


def test_every_row_notes_its_leaf_whether_rows_of_leaves_rise_or_not():
    rng = np.random.default_rng(0)
    n = 40_000
    starts = np.array([0, 100, 100, 30_000, n])
    rows = rng.permutation(n).astype(np.int32)
    for k in (0, 2, 3):
        rows[starts[k] : starts[k + 1]].sort()
    for order in (slice(None), slice(None, None, -1)):
        of_row = np.full(n, -1, np.int32)
        note_leaves(rows[order], starts if order.step is None else n - starts[::-1], of_row)
        want = np.repeat([0, 2, 3], [100, 29_900, 10_000]) if order.step is None else np.repeat([0, 1, 3], [10_000, 29_900, 100])
        assert np.array_equal(of_row[rows[order]], want)
