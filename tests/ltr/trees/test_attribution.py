"""Importance by hand; Shapley values by their definition over all subsets, by their sum, and beside LightGBM's on the same tree."""

from dataclasses import replace
from itertools import combinations
from math import factorial

import numpy as np
import pytest

import ltr
from ltr.trees.attribution import _Paths, importance, shapley
from ltr.trees.ensemble import Trees, join
from tests.conftest import make_queries

STUMPS = Trees(
    feature=np.array([1, 0, 1], np.int32),
    threshold=np.array([0.5, 2.0, 0.0], np.float32),
    missing_left=np.array([True, False, False]),
    left=np.array([1, ~0, ~0], np.int32),
    right=np.array([~2, ~1, ~1], np.int32),
    value=np.array([1.0, 2.0, 4.0, -1.0, 1.0]),
    documents=np.array([2, 3, 5, 4, 6]),
    node_starts=np.array([0, 2, 3]),
    leaf_starts=np.array([0, 3, 5]),
    gain=np.array([7.0, 2.0, 1.0]),
)


def fitted(**options):
    queries = make_queries(60, seed=3)
    features = np.round(queries.features, 1)
    features[np.random.default_rng(0).random(features.shape) < 0.1] = np.nan
    queries = ltr.Queries(features, queries.labels, queries.offsets)
    return ltr.LambdaMART(**{"n_trees": 4, "n_leaves": 9, "min_docs_in_leaf": 3, "stop_on": None, **options}).fit(queries), features


def expectation(trees, x, known):
    """Mean score with some features known: down both sides of the others, by the shares of training documents."""

    def documents(tree, child):
        base, leaf = trees.node_starts[tree], trees.leaf_starts[tree]
        if child < 0:
            return trees.documents[leaf + ~child]
        return documents(tree, trees.left[base + child]) + documents(tree, trees.right[base + child])

    def below(tree, child):
        base = trees.node_starts[tree]
        if child < 0:
            return trees.value[trees.leaf_starts[tree] + ~child]
        f, sides = trees.feature[base + child], (trees.left[base + child], trees.right[base + child])
        if f in known:
            codes = trees.codes_of.get(int(base + child))
            within = x[f] <= trees.threshold[base + child] if codes is None else x[f] in codes
            left = trees.missing_left[base + child] if np.isnan(x[f]) else within
            return below(tree, sides[0] if left else sides[1])
        sizes = [documents(tree, side) for side in sides]
        return sum(size * below(tree, side) for size, side in zip(sizes, sides, strict=True)) / sum(sizes)

    return sum(below(tree, 0) for tree in range(trees.n_trees))


def fitted_to_categories():
    places = np.abs(np.round(3 * make_queries(60, seed=3).features))
    by_category = ltr.LambdaMART(
        n_trees=3, n_leaves=9, min_docs_in_leaf=3, stop_on=None, categorical=["f1", "f3"], cat_l2=0.1, cat_smooth=0.1
    )
    model = by_category.fit(replace(make_queries(60, seed=3), features=places))
    assert len(model.trees.codes)
    return model, places


def test_a_category_that_is_no_whole_number_is_refused_as_in_scores():
    model, places = fitted_to_categories()
    wrong = places[:2].copy()
    wrong[1, [0, 2]] = 3.5
    for read in (model.predict, model.explain):
        with pytest.raises(ValueError, match=r"row 1, column [02] is categorical and has the value 3\.5"):
            read(wrong)


def test_values_are_those_of_the_definition():
    model, features = fitted(n_leaves=12)
    by_category, places = fitted_to_categories()
    for trees, rows in (
        (model.trees, features[:6]),
        (by_category.trees, places[:6]),
        (STUMPS, np.array([[1, 0.5], [3, np.nan], [np.nan, 1]], np.float32)),
    ):
        n = rows.shape[1]
        found = shapley(trees, rows)
        for x, values in zip(rows, found, strict=True):
            for f in range(n):
                others = [g for g in range(n) if g != f]
                want = 0.0
                for size in range(n):
                    share = factorial(size) * factorial(n - size - 1) / factorial(n)
                    for known in combinations(others, size):
                        want += share * (expectation(trees, x, {*known, f}) - expectation(trees, x, set(known)))
                assert values[f] == pytest.approx(want, abs=1e-12)
            assert values[-1] == pytest.approx(expectation(trees, x, set()))


def walked(trees):
    """Of every leaf, from left to right: its steps (node, to the left, feature), and the share of documents that each feature of them lets through."""
    for tree in range(trees.n_trees):
        base, leaf, last = (int(n) for n in (trees.node_starts[tree], *trees.leaf_starts[tree : tree + 2]))

        def below(child, base=base, leaf=leaf):
            sides = (trees.left[base + child], trees.right[base + child]) if child >= 0 else ()
            return sum(map(below, sides)) if sides else int(trees.documents[leaf + ~child])

        def down(child, steps, shares, base=base, below=below):
            if child < 0:
                yield steps, shares
                return
            f = int(trees.feature[base + child])
            for side, left in ((trees.left[base + child], True), (trees.right[base + child], False)):
                through = shares.get(f, 1.0) * (below(side) / below(child))
                yield from down(int(side), [*steps, (base + child, left, f)], {**shares, f: through})

        yield from down(0 if last - leaf > 1 else -1, [], {})


def test_paths_of_all_leaves_at_once_are_those_of_one_after_the_other():
    leaf = Trees(*(np.empty(0, kind) for kind in (np.int32, np.float32, np.bool_, np.int32, np.int32)), value=np.array([0.5]),
                 documents=np.array([7]), node_starts=np.zeros(2, np.int64), leaf_starts=np.array([0, 1]), gain=np.empty(0))  # fmt: skip
    left = Trees(
        feature=np.zeros(6, np.int32), threshold=-np.arange(6, dtype=np.float32), missing_left=np.zeros(6, np.bool_),
        left=np.array([1, 2, 3, 4, 5, ~0], np.int32), right=np.array([~6, ~5, ~4, ~3, ~2, ~1], np.int32), value=np.arange(7.0),
        documents=np.arange(3, 10), node_starts=np.array([0, 6]), leaf_starts=np.array([0, 7]), gain=np.ones(6),
    )  # fmt: skip
    for trees in (join([leaf, fitted(n_leaves=40)[0].trees, leaf, STUMPS, left]), fitted_to_categories()[0].trees, leaf):
        paths = _Paths(trees)
        for k, (steps, shares) in enumerate(walked(trees)):
            own, features = slice(*paths.starts[k : k + 2]), slice(*paths.firsts[k : k + 2])
            names = paths.features[features][paths.slot[own]]
            assert list(zip(paths.node[own], paths.goes_left[own], names, strict=True)) == steps
            assert [*zip(paths.features[features], paths.shares[features], strict=True)] == [*shares.items()]
        assert len(trees.value) == k + 1 == len(paths.starts) - 1 == len(paths.firsts) - 1


def test_a_row_sums_to_its_score():
    model, features = fitted(n_trees=30, n_leaves=64)
    assert shapley(model.trees, features).sum(axis=1) == pytest.approx(model.predict(features), abs=1e-10)
    assert shapley(model.trees, features).sum(axis=1) == pytest.approx(model.explain(features).sum(axis=1))
    nothing = shapley(model.trees.first(0), features)
    assert not nothing.any()


def test_trees_of_one_leaf_give_every_document_the_same():
    none = np.empty(0, np.int32)
    leaf = Trees(
        feature=none, threshold=np.empty(0, np.float32), missing_left=np.empty(0, np.bool_), left=none, right=none, value=np.array([0.5]),
        documents=np.array([7]), node_starts=np.zeros(2, np.int64), leaf_starts=np.array([0, 1]), gain=np.empty(0),
    )  # fmt: skip
    features = np.zeros((3, 2), np.float32)
    assert shapley(join([leaf, leaf]), features).tolist() == [[0.0, 0.0, 1.0]] * 3
    assert shapley(join([leaf, STUMPS]), features)[:, -1] == pytest.approx(0.5 + shapley(STUMPS, features)[:, -1])


def test_the_same_numbers_as_lightgbm_on_the_same_tree():
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(9)
    features = (rng.integers(0, 40, (2000, 6)) / 3).astype(np.float32)
    gradient, hessian = rng.normal(size=2000), rng.random(2000) + 0.01
    options = {
        "num_leaves": 8, "min_data_in_leaf": 20, "min_sum_hessian_in_leaf": 0.0, "learning_rate": 1.0, "verbose": -1,
        "min_data_in_bin": 1, "boost_from_average": False, "num_threads": 1, "feature_pre_filter": False,
        "objective": lambda scores, dataset: (-gradient, hessian),
    }  # fmt: skip
    booster = lightgbm.train(options, lightgbm.Dataset(features.astype(float), label=np.zeros(2000)), num_boost_round=1)
    from ltr.trees.grower import TreeOptions, grow
    from ltr.trees.partition import BinnedDataset

    tree = grow(
        BinnedDataset.of(features, 255, 8), (gradient, hessian), TreeOptions(8, 20, True, True, 1.0, 1e9, 0.0, np.zeros(6, np.int8))
    ).tree
    assert shapley(tree, features) == pytest.approx(booster.predict(features.astype(float), pred_contrib=True), abs=1e-5)
    assert importance(tree, 6, "splits").tolist() == booster.feature_importance("split").tolist()
    assert importance(tree, 6) == pytest.approx(booster.feature_importance("gain"), rel=1e-4)


def test_importance_by_hand():
    assert importance(STUMPS, 3).tolist() == [2.0, 8.0, 0.0]
    assert importance(STUMPS, 3, "splits").tolist() == [1.0, 2.0, 0.0]
    with pytest.raises(ValueError, match="importance by 'x'; choose from: gain, splits"):
        importance(STUMPS, 3, "x")


def test_a_base_is_its_own_features_share():
    model, features = fitted(base=None)
    scored = np.nan_to_num(features)
    queries = make_queries(60, seed=3)
    on_base = ltr.LambdaMART(n_trees=3, n_leaves=4, min_docs_in_leaf=3, stop_on=None, base="f2")
    based = on_base.fit(ltr.Queries(scored, queries.labels, queries.offsets))
    assert based.explain(scored).sum(axis=1) == pytest.approx(based.predict(scored), abs=1e-10)
    share = based.explain(scored) - shapley(based.trees, scored)
    assert share[:, 1] == pytest.approx(scored[:, 1])
    assert not share[:, [0, 2, 3, 4]].any()
    assert model.importance("splits").sum() == len(model.trees.feature)
