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
    features[299, 2] = -np.inf
    with pytest.raises(ValueError, match="feature 3 of row 299 is infinite"):
        trees.scores(features)
