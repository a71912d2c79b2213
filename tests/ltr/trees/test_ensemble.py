"""Scores of an ensemble: by bits, by walking down, and refused."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from tests.conftest import make_queries


@pytest.mark.parametrize("n_leaves", [2, 31, 33, 64])
def test_prediction_by_bits_is_the_walk_down_the_tree(n_leaves):
    """Rows of a block too few, missing values on both sides, thresholds met exactly; 64 leaves use the last bit."""
    rng = np.random.default_rng(n_leaves)
    queries = make_queries(120, seed=4, largest=30)
    features = np.round(queries.features, 1)
    features[rng.random(features.shape) < 0.1] = np.nan
    trees = (
        ltr.LambdaMART(n_trees=6, n_leaves=n_leaves, min_docs_in_leaf=1, stop_on=None)
        .fit(replace(queries, features=features))
        .trees
    )
    walked = trees.value[trees.leaves(features)].cumsum(axis=1)[:, -1]
    assert np.diff(trees.leaf_starts).max() == n_leaves
    for rows in (slice(None), slice(0, 1), slice(3, 70)):
        assert np.array_equal(trees.scores(features[rows]), walked[rows])
    fixed = replace(trees, value=trees.value.copy(), node_starts=trees.node_starts.copy(), leaf_starts=trees.leaf_starts.copy())
    mapped = features.copy()
    for array in (fixed.value, fixed.node_starts, fixed.leaf_starts, mapped):
        array.setflags(write=False)
    assert np.array_equal(fixed.scores(mapped), walked)
    features[299, 2] = -np.inf
    with pytest.raises(ValueError, match="feature 3 of row 299 is infinite"):
        trees.scores(features)


@pytest.mark.parametrize("n_features", [1, 15, 16, 17, 33])
@pytest.mark.parametrize("n_leaves", [8, 65])
def test_rows_of_any_width_and_number(n_features, n_leaves):
    """Sixteen columns are turned at once and 64 rows, the last overlapping, fewer one by one; 65 leaves walk down."""
    queries = make_queries(300, n_features=n_features, seed=n_features, largest=20)
    features = queries.features.copy()
    features[:, -1] += queries.labels
    model = ltr.LambdaMART(n_trees=3, n_leaves=n_leaves, min_docs_in_leaf=1, stop_on=None)
    trees = model.fit(replace(queries, features=features)).trees
    walked = trees.value[trees.leaves(features)].cumsum(axis=1)[:, -1]
    assert {0, n_features - 1} <= set(trees.feature)
    for n in (0, 1, 15, 63, 64, 65, 128, 511, 512, 513, 1100):
        assert np.array_equal(trees.scores(features[:n]), walked[:n])
    for row, column in ((0, n_features - 1), (64, 0), (1099, n_features // 2)):
        spoiled = features[:1100].copy()
        spoiled[row, column] = np.inf
        with pytest.raises(ValueError, match=f"feature {column + 1} of row {row} is infinite"):
            trees.scores(spoiled)
