"""Scores of an ensemble: by bits, by walking down, and refused."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.trees.ensemble import Trees, join
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
    with pytest.raises(ValueError, match="row 299, column 2 is infinite"):
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
        with pytest.raises(ValueError, match=f"row {row}, column {column} is infinite"):
            trees.scores(spoiled)


def with_codes() -> Trees:
    """Two trees by hand: categories 1 and 3 of the first feature, then a number; categories 2 of the second."""
    return Trees(
        feature=np.array([0, 1, 1], np.int32), threshold=np.array([0, 0.5, 0], np.float32), missing_left=np.array([False, True, True]),
        left=np.array([1, ~0, ~0], np.int32), right=np.array([~2, ~1, ~1], np.int32), value=np.array([1.0, 2.0, 4.0, 10.0, 20.0]),
        documents=np.array([1, 1, 1, 1, 1]), node_starts=np.array([0, 2, 3]), leaf_starts=np.array([0, 3, 5]), gain=np.ones(3),
        n_codes=np.array([2, 0, 1], np.int32), codes=np.array([1, 3, 2], np.float32),
    )  # fmt: skip


def test_categories_go_left_by_name_and_all_others_right():
    trees, nan = with_codes(), np.nan
    rows = np.array([[1, 0], [3, 2], [2, 2], [99, 0], [nan, nan], [3, nan]], np.float32)
    expected = [1 + 20, 2 + 10, 4 + 10, 4 + 20, 4 + 10, 1 + 10]
    assert trees.scores(rows).tolist() == expected
    assert trees.value[trees.leaves(rows)].sum(axis=1).tolist() == expected
    assert [trees.between(k, k + 1).scores(rows).tolist() for k in range(2)] == [
        [1, 2, 4, 4, 4, 1], [20, 10, 10, 20, 10, 10],
    ]  # fmt: skip
    again = join([trees.first(1), trees.between(1, 2)])
    assert all(np.array_equal(getattr(again, name), array) for name, array in trees.arrays.items())
    assert trees.scores(rows[:0]).shape == (0,)
    with pytest.raises(ValueError, match="row 1, column 1 is infinite"):
        trees.scores(np.array([[1, 0], [1, np.inf]], np.float32))
    with pytest.raises(ValueError, match=r"row 1, column 0 is categorical and has the value 1\.5; categories are whole numbers"):
        trees.scores(np.array([[1, 0], [1.5, 2]], np.float32))


def test_rows_are_made_wider_some_at_a_time(monkeypatch):
    trees, rows = with_codes(), np.random.default_rng(0).integers(0, 4, (1000, 2)).astype(np.float32)
    whole = trees.scores(rows)
    monkeypatch.setattr("ltr.trees.ensemble._NUMBERS_AT_A_TIME", 64)
    assert np.array_equal(with_codes().scores(rows), whole)


@pytest.mark.parametrize(
    "change",
    [
        {"codes": np.array([3, 1, 2], np.float32)}, {"codes": np.array([1, 1, 2], np.float32)}, {"codes": np.array([1, 3], np.float32)}, {"codes": np.array([1, np.nan, 2], np.float32)},
        {"n_codes": np.array([3, -1, 1], np.int32)}, {"n_codes": np.array([2, 1], np.int32)}, {"codes": np.array([1.0, 3.0, 2.0])},
    ],
)  # fmt: skip
def test_codes_that_do_not_fit_are_no_trees(change):
    arrays = {**with_codes().arrays}
    assert Trees.restored(arrays, 2).codes.tolist() == [1, 3, 2]
    with pytest.raises(ValueError, match="arrays that are not trees on 2 features"):
        Trees.restored({**arrays, **change}, 2)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize(
    "model", [ltr.LambdaMART(n_trees=4), ltr.RankBoost(rounds=4), ltr.Average(ltr.LambdaMART(n_trees=3), copies=2)]
)
def test_copies_predict_after_the_model_has(model, copied):
    """As in a pool of processes of scikit-learn."""
    queries = make_queries(40)
    fitted = model.fit(queries)
    scores = fitted.predict(queries.features)
    again = copied(fitted)
    assert again.predict(queries.features).tolist() == scores.tolist()
    assert again.digest == fitted.digest
