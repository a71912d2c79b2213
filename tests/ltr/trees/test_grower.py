"""Histogram trees against a naive grower and LightGBM; exact minimum of documents; the same bytes for any threads."""

import itertools

import numpy as np
import pytest

import ltr
from ltr.trees.grower import TreeOptions, grow
from ltr.trees.partition import BinnedDataset
from tests import naive


def data(n=200, n_features=5, seed=0, distinct=12):
    rng = np.random.default_rng(seed)
    features = (rng.integers(0, distinct, (n, n_features)) / 3).astype(np.float32)
    return features, rng.normal(size=n), rng.random(n) + 0.01


def grown(
    features,
    gradient,
    hessian,
    n_leaves=6,
    min_docs=5,
    newton=True,
    leaf=True,
    rate=1.0,
    bound=1e9,
    l2=0.0,
    max_bins=255,
    monotone=None,
    **drawn,
):
    signs = np.zeros(features.shape[1], np.int8) if monotone is None else np.array(monotone, np.int8)
    rules = TreeOptions(n_leaves, min_docs, newton, leaf, rate, bound, l2, signs)
    return grow(BinnedDataset.of(features, max_bins, n_leaves), (gradient, hessian), rules, **drawn)


@pytest.mark.parametrize("newton", [True, False])
@pytest.mark.parametrize(("min_docs", "l2"), [(1, 0.0), (20, 0.0), (60, 0.0), (1, 7.5)])
def test_first_split_is_the_naive_best(newton, min_docs, l2):
    for seed in range(8):
        features, gradient, hessian = data(seed=seed)
        hessian[:60] *= 1e-4  # much hessian apart: guessing counts from it would go wrong
        weight = hessian if newton else np.ones(len(gradient))
        gain, feature, threshold = naive.best_split(features, gradient, weight, min_docs, l2)
        tree = grown(features, gradient, hessian, n_leaves=2, min_docs=min_docs, newton=newton, l2=l2)
        if feature is None:
            assert tree is None
            continue
        assert tree.tree.feature[0] == feature
        assert tree.tree.threshold[0] == pytest.approx(threshold)
        assert tree.tree.gain[0] == pytest.approx(gain, rel=1e-4)


def test_leaves_hold_the_minimum_and_their_values_are_the_ratios():
    features, gradient, hessian = data(n=400)
    for newton_leaf, l2 in itertools.product((True, False), (0.0, 4.0)):
        found = grown(features, gradient, hessian, n_leaves=12, min_docs=17, leaf=newton_leaf, rate=0.5, l2=l2)
        sizes = np.bincount(found.leaf)
        assert sizes.min() >= 17
        for k in range(len(sizes)):
            own = found.leaf == k
            want = gradient[own].sum() / ((hessian[own].sum() if newton_leaf else own.sum()) + l2)
            assert found.tree.value[k] == pytest.approx(0.5 * want, rel=1e-9)
        assert found.tree.scores(features) == pytest.approx(found.tree.value[found.leaf], abs=0)


def test_leaf_bound_and_vanishing_hessian():
    features, gradient, hessian = data()
    found = grown(features, gradient, np.zeros_like(hessian), newton=False, bound=3.0)
    assert np.abs(found.tree.value).max() == 3.0
    assert np.isfinite(found.tree.value).all()


def test_missing_values_have_their_side_in_training_and_prediction():
    features, gradient, hessian = data(n=300)
    gradient[:100] += 3
    features[:100, 2] = np.nan
    found = grown(features, gradient, hessian, n_leaves=2)
    assert found.tree.feature[0] == 2
    assert len(set(found.leaf[:100])) == 1
    assert np.array_equal(found.tree.scores(features), found.tree.value[found.leaf])


def test_nothing_to_gain_grows_nothing():
    features, gradient, hessian = data()
    assert grown(features, np.zeros_like(gradient), hessian) is None
    assert grown(np.zeros_like(features), gradient, hessian) is None
    assert grown(features, gradient, hessian, min_docs=101) is None


def test_best_first_growth_equals_a_naive_one():
    features, gradient, hessian = data(n=300, seed=3)
    found = grown(features, gradient, hessian, n_leaves=7, min_docs=10)
    leaves = [np.arange(300)]
    for _ in range(6):
        options = [naive.best_split(features[rows], gradient[rows], hessian[rows], 10) for rows in leaves]
        k = max(range(len(leaves)), key=lambda i: options[i][0])
        _, feature, threshold = options[k]
        left = features[leaves[k], feature] <= threshold
        leaves += [leaves[k][left], leaves[k][~left]]
        leaves.pop(k)
    assert {frozenset(rows.tolist()) for rows in leaves} == {frozenset(np.flatnonzero(found.leaf == k).tolist()) for k in range(7)}


@pytest.mark.usefixtures("all_threads")
def test_same_bytes_for_any_number_of_threads_and_any_order_of_rows():
    features, gradient, hessian = data(n=3000, n_features=20, distinct=500)
    reference = grown(features, gradient, hessian, n_leaves=16)
    with ltr.threads(1):
        alone = grown(features, gradient, hessian, n_leaves=16)
    order = np.random.default_rng(0).permutation(3000)
    mixed = grown(features[order], gradient[order], hessian[order], n_leaves=16)
    for other in (alone, mixed):
        for name in ("feature", "threshold", "left", "right", "value"):
            assert np.array_equal(getattr(reference.tree, name), getattr(other.tree, name))


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_where_rows_lie_changes_nothing(share):
    features, gradient, hessian = data(n=3000, n_features=20, distinct=500)
    rng = np.random.default_rng(0)
    sample = None if share == 1 else rng.random(3000) < share
    signs = np.zeros(20, np.int8)
    ground = BinnedDataset.of(features, 255, 16)
    rules = TreeOptions(16, 5, True, True, 0.1, 1e9, 0.0, signs)
    reference = grow(ground, (gradient, hessian), rules, sample)
    binned = ground.binned.copy()
    for _ in range(2):
        ground.reorder_rows(rng.integers(0, 31, 3000).astype(np.int32))
        assert np.array_equal(ground.binned[:, ground.row_index], binned)
        moved = grow(ground, (gradient, hessian), rules, sample)
        assert np.array_equal(moved.leaf, reference.leaf)
        for name, values in vars(reference.tree).items():
            assert np.array_equal(getattr(moved.tree, name), values), name


def test_structure_agrees_with_lightgbm_on_the_same_gradients():
    lightgbm = pytest.importorskip("lightgbm")
    features, gradient, hessian = data(n=2000, n_features=6, seed=9, distinct=40)
    found = grown(features, gradient, hessian, n_leaves=8, min_docs=20)
    options = {
        "num_leaves": 8, "min_data_in_leaf": 20, "min_sum_hessian_in_leaf": 0.0, "learning_rate": 1.0, "verbose": -1, "max_bin": 255,
        "min_data_in_bin": 1, "boost_from_average": False, "num_threads": 1, "feature_pre_filter": False, "seed": 1,
        "objective": lambda scores, dataset: (-gradient, hessian),
    }  # fmt: skip
    booster = lightgbm.train(options, lightgbm.Dataset(features.astype(np.float64), label=np.zeros(2000)), num_boost_round=1)
    assert booster.predict(features.astype(np.float64)) == pytest.approx(found.tree.scores(features), abs=1e-5)


def test_monotone_structure_agrees_with_lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    features, gradient, hessian = data(n=2000, n_features=6, seed=9, distinct=40)
    monotone = [1, -1, 0, 1, 0, 0]
    found = grown(features, gradient, hessian, n_leaves=8, min_docs=20, monotone=monotone)
    options = {
        "num_leaves": 8, "min_data_in_leaf": 20, "min_sum_hessian_in_leaf": 0.0, "learning_rate": 1.0, "verbose": -1, "max_bin": 255,
        "min_data_in_bin": 1, "boost_from_average": False, "num_threads": 1, "feature_pre_filter": False, "seed": 1,
        "objective": lambda scores, dataset: (-gradient, hessian), "monotone_constraints": monotone,
        "monotone_constraints_method": "basic",
    }  # fmt: skip
    booster = lightgbm.train(options, lightgbm.Dataset(features.astype(np.float64), label=np.zeros(2000)), num_boost_round=1)
    assert booster.predict(features.astype(np.float64)) == pytest.approx(found.tree.scores(features), abs=1e-5)
    free = grown(features, gradient, hessian, n_leaves=8, min_docs=20)
    assert not np.array_equal(free.tree.feature, found.tree.feature)
    allowed = np.arange(6) > 0
    drawn = grown(features, gradient, hessian, n_leaves=8, min_docs=20, monotone=monotone, allowed=allowed)
    alone = grown(features[:, 1:].copy(), gradient, hessian, n_leaves=8, min_docs=20, monotone=monotone[1:])
    assert np.array_equal(drawn.tree.scores(features), alone.tree.scores(features[:, 1:].copy()))
