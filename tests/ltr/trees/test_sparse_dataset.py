"""Trees of sparse features against those of the same features made dense: the same bytes, whatever the settings."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import ltr
from ltr.data.sparse import sparse_features
from ltr.trees.binning import find_bins, find_missing
from ltr.trees.partition import BinnedDataset
from ltr.trees.sparse_dataset import SLOTS, SparseDataset, find_sparse_bins


def columns(n=900):
    """A column of every kind."""
    rng = np.random.default_rng(0)
    few, many, signed = np.zeros((3, n), np.float32)
    few[::9], many[::3], signed[::2] = rng.integers(1, 4, n // 9), rng.lognormal(size=n // 3), rng.normal(size=n // 2)
    missing = signed.copy()
    missing[::5] = np.nan
    full, nothing = rng.lognormal(size=n), np.zeros(n)
    holes = np.full(n, np.nan)
    rare = np.zeros(n)
    rare[17] = -2.5
    return np.column_stack([few, many, signed, missing, full, nothing, holes, rare, -many]).astype(np.float32)


def world(n_features=60, n_queries=60, per_query=20, dense=6):
    """Queries of dense features and of the same ones sparse; labels depend on features of both kinds."""
    rng = np.random.default_rng(1)
    n = n_queries * per_query
    features = rng.lognormal(size=(n, n_features)).astype(np.float32)
    features[:, dense:][rng.random((n, n_features - dense)) < 0.9] = 0
    features[rng.random(features.shape) < 0.004] = np.nan
    value = np.nan_to_num(features[:, : 2 * dense]).sum(axis=1) + rng.normal(size=n)
    labels = np.searchsorted(np.quantile(value, [0.5, 0.8, 0.95]), value).astype(np.float64)
    offsets = np.arange(0, n + 1, per_query)
    return [ltr.Queries(given, labels, offsets) for given in (features, csr_array(features))]


@pytest.mark.parametrize("max_bins", [2, 3, 16, 255, np.array([2, 255, 3, 16, 9, 100, 2, 2, 5])])
def test_edges_are_those_of_dense_columns(max_bins):
    features = columns()
    expected = find_bins(features, max_bins)
    bins, missing = find_sparse_bins(sparse_features(csr_array(features)), max_bins)
    assert bins.edges.tobytes() == expected.edges.tobytes()
    assert np.array_equal(bins.starts, expected.starts)
    assert missing.tolist() == [False, False, False, True, False, False, True, False, False]
    assert np.array_equal(missing, find_missing(BinnedDataset.of(features, max_bins, 2).binned, expected))


def test_a_part_of_the_histogram_is_that_of_dense_rows():
    """Of all rows and of some, more than one block of features."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(5000, 150)).astype(np.float32)
    features[rng.random(features.shape) < 0.3] = 0
    features[rng.random(features.shape) < 0.01] = np.nan
    sets = SparseDataset.of(sparse_features(csr_array(features)), 255, 2), BinnedDataset.of(features, 255, 2)
    assert len(sets[0].stored[1]) > 1
    assert (sets[0].stored[5] + 1).sum() > SLOTS
    packed = rng.integers(-(1 << 40), 1 << 40, 5000)
    for rows in (np.arange(5000), np.flatnonzero(rng.random(5000) < 0.4)):
        for data in sets:
            data.packed[0], data.rows[: len(rows)] = packed, rows
            data.start(len(rows))
        sparse, dense = sets
        assert np.array_equal(sparse.histograms[0], dense.histograms[0][dense.bins.columns])


SETTINGS = {
    "as it comes": {},
    "least squares": {"gain": "least_squares", "leaf": "gradient", "query_share": 1.0, "feature_share": 1.0},
    "few bins, monotone": {"max_bins": 7, "monotone": {"f1": 1, "f9": -1}},
    "groups": {"interactions": [["f1", "f2", "f8"], ["f3", "f9"]]},
    "a base": {"base": "f60"},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_trees_have_the_digest_of_those_of_dense_features(setting):
    dense, sparse = world()
    if setting == "a base":
        dense, sparse = (replace(queries, features=filled(queries.features)) for queries in (dense, sparse))
    model = ltr.LambdaMART(n_trees=6, n_leaves=12, learning_rate=0.2, **SETTINGS[setting])
    expected, found = model.fit(dense, dense), model.fit(sparse, sparse)
    assert found.digest == expected.digest
    assert np.array_equal(found.curve.valid, expected.curve.valid)
    assert np.array_equal(found.predict(sparse.features), expected.predict(dense.features))
    assert np.array_equal(found.predict(dense.features), expected.predict(sparse.features))
    assert np.array_equal(found.predict(sparse.features, n_trees=2), expected.predict(dense.features, n_trees=2))


def filled(features):
    """Without missing values: a base has none."""
    if isinstance(features, np.ndarray):
        return np.nan_to_num(features)
    rows = features.copy()
    rows.data = np.nan_to_num(rows.data)
    return rows


def test_what_is_small_is_counted():
    """Hessian apart from counts: a side that looks large enough is not."""
    dense, sparse = (replace(queries, weights=np.where(np.arange(60) < 30, 1e-3, 1.0)) for queries in world())
    model = ltr.LambdaMART(n_trees=4, n_leaves=16, min_docs_in_leaf=40, stop_on=None)
    found = model.fit(sparse)
    assert found.digest == model.fit(dense).digest
    assert found.trees.documents.min() >= 40


@pytest.mark.parametrize("least", [1, 12, 40])
def test_rare_features_split_nothing_and_many_are_counted(least):
    """Like words: a few are common and most are in fewer documents than a leaf has."""
    rng = np.random.default_rng(6)
    features = rng.lognormal(size=(1200, 300)).astype(np.float32)
    features[rng.random(features.shape) > 0.5 / np.arange(1, 301) ** 0.7] = 0
    features[rng.random(features.shape) < 0.001] = np.nan
    labels = np.digitize(np.nan_to_num(features) @ rng.normal(size=300), [0, 2, 4]).astype(np.float64)
    dense, sparse = (ltr.Queries(given, labels, np.arange(0, 1201, 20)) for given in (features, csr_array(features)))
    model = ltr.LambdaMART(n_trees=6, n_leaves=12, min_docs_in_leaf=least, learning_rate=0.3)
    expected, found = model.fit(dense), model.fit(sparse)
    assert found.digest == expected.digest
    assert np.array_equal(found.predict(sparse.features), expected.predict(dense.features))
    rare = SparseDataset.of(sparse.features, 255, 2, min_docs=2000)
    assert rare.kept.tolist() == [0]
    only_rare = replace(sparse, features=csr_array(np.eye(1200, 5, dtype=np.float32)), names=())
    assert (model.fit(only_rare).trees.n_trees > 0) == (least == 1)


@pytest.mark.usefixtures("all_threads")
def test_threads_and_interruptions_change_nothing():
    _, sparse = world()
    model = ltr.LambdaMART(n_trees=6, n_leaves=12)
    whole = model.fit(sparse, sparse)
    with ltr.threads(1):
        assert model.fit(sparse, sparse).digest == whole.digest
    begun = replace(model, n_trees=3).fit(sparse, sparse)
    assert model.go_on(begun, sparse, sparse).digest == whole.digest


def test_the_rest_of_a_ranker_reads_sparse_features_too():
    dense, sparse = world()
    model = ltr.LambdaMART(n_trees=4, n_leaves=6, stop_on=None).fit(dense)
    assert model.refit_leaves(sparse).digest == model.refit_leaves(dense).digest
    assert np.array_equal(model.attributions(sparse.features), model.attributions(dense.features))
    assert np.array_equal(model.ensemble.leaves(sparse.features), model.ensemble.leaves(dense.features))
    lower, upper = np.argsort(model.predict(dense.features[:20]))[[0, -1]].tolist()
    said = [repr(ltr.why_above(model, queries, upper, lower).reasons) for queries in (sparse, dense)]
    assert said[0] == said[1]
    losses = [ltr.permutation_importance(model, queries, "ndcg", repetitions=1).loss for queries in (sparse, dense)]
    assert np.array_equal(*losses)
    estimator = ltr.Estimator(ltr.LambdaMART(n_trees=4, n_leaves=6, stop_on=None))
    qid = np.repeat(np.arange(60), 20)
    fitted = estimator.fit(sparse.features, dense.labels, qid)
    assert fitted.model_.digest == ltr.Estimator(estimator.model).fit(dense.features, dense.labels, qid).model_.digest
    assert np.array_equal(fitted.predict(sparse.features), fitted.predict(dense.features))


def test_it_is_never_dense():
    """2,000 × 10,000 would take 80 MB."""
    features = random_array((2000, 10_000), density=0.001, dtype=np.float32, rng=np.random.default_rng(5))
    queries = ltr.Queries(features, np.arange(2000) % 3.0, np.arange(0, 2001, 40))
    model = ltr.LambdaMART(n_trees=2, n_leaves=2, min_docs_in_leaf=2, stop_on=None)
    tracemalloc.start()
    scores = model.fit(queries).predict(features)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(np.unique(scores)) > 1
    assert peak < 70e6


def test_what_cannot_be_is_refused():
    dense, sparse = world()
    for ranker in (ltr.LambdaRank(), ltr.RankSVM(), ltr.RankBoost()):
        with pytest.raises(
            ValueError, match=r"the features of queries are sparse, and \w+ needs dense ones \(features.toarray\(\)\)"
        ):
            ranker.fit(sparse)
    with pytest.raises(ValueError, match="Binned: sparse features are binned in each training"):
        ltr.Binned(sparse)
    model = ltr.LambdaMART(n_trees=2, stop_on=None).fit(dense)
    with pytest.raises(ValueError, match=r"features have shape \(1200, 59\); the model was fitted on 60 features"):
        model.predict(sparse.features[:, :59])
    wrong = sparse.features.copy()
    wrong.data[np.flatnonzero(wrong.indices == 3)[2]] = np.inf
    with pytest.raises(ValueError, match="feature 'f4' has an infinite value"):
        ltr.LambdaMART().fit(replace(sparse, features=wrong))
    with pytest.raises(ValueError, match=r"row 2: feature 'f4' is infinite \(inf\)"):
        model.predict(wrong)
    many = csr_array((np.ones(1, np.float32), np.zeros(1, np.int32), np.r_[0, np.ones(5_000_000, np.int64)]), shape=(5_000_000, 60))
    with pytest.raises(ValueError, match=r"features: 5,000,000 × 60 of them are too many to be made dense here"):
        model.attributions(many)
    with pytest.raises(ValueError, match="sparse features are not yet learned from in several parts"):
        ltr.LambdaMART(n_trees=1).fit_shards(
            lambda question, *of: [ltr.trees.shards.Shard(ltr.LambdaMART(), sparse).answer(question, *of)]
        )
