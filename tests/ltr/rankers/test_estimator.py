"""The estimator does what scikit-learn expects of one, and ranks as its ranker does, bit for bit."""

import subprocess
import sys
from dataclasses import replace

import numba
import numpy as np
import polars as pl
import pytest

import ltr
from ltr.data.letor import key_of
from ltr.data.queries import canonical
from tests.conftest import make_queries

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score  # noqa: E402
from sklearn.pipeline import Pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

TREES = ltr.LambdaMART(n_trees=3, n_leaves=4, min_docs_in_leaf=3, query_share=0.7)
SMALL = {
    "lambdamart": {"n_trees": 3, "min_docs_in_leaf": 3},
    "lambdarank": {"epochs": 2},
    "conditional": {"iterations": 3, "samples": 5, "measure": "map"},
    "listwise": {"iterations": 3},
    "column": {"feature": "f1"},
    "weighted_fusion": {"restarts": 1, "directions": 3},
    "average": {"of": (ltr.LambdaMART(n_trees=2, min_docs_in_leaf=3), ltr.LeastSquares())},
}


def rows(n_queries=30, seed=0):
    """Features, labels, query ids of rows in random order, and the same as `Queries` with the keys of these ids."""
    queries = make_queries(n_queries, seed=seed, clicks=False)
    ids = np.array([f"q{k}".encode() for k in range(queries.n_queries)])
    queries = replace(queries, ids=ids, keys=np.array([key_of(query) for query in ids], np.uint64))
    order = np.random.default_rng(seed + 1).permutation(queries.n_documents)
    of_row = np.repeat(np.char.decode(ids), np.diff(queries.offsets))
    return queries.features[order], queries.labels[order], of_row[order], queries, order


def framed(X, qid, names=("bm25", "pagerank", "length", "age")):
    return pl.DataFrame(X, schema=list(names)).with_columns(qid=pl.Series(qid))


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def by_hand(X, y, qid, rates, folds):
    """Mean score of each rate over the folds, by loops."""
    means = []
    for rate in rates:
        values = []
        for train, test in folds.split(X, y, qid):
            model = ltr.Estimator(replace(TREES, learning_rate=rate)).fit(X[train], y[train], qid[train])
            values.append(model.score(X[test], y[test], qid[test]))
        means.append(np.mean(values))
    return means


# --- the ranker, in another coat ------------------------------------------------------------------------------------------


def test_every_input_scores_as_the_ranker_does_to_the_bit():
    X, y, qid, queries, order = rows()
    expected = TREES.fit(queries)
    for one, asked in ((X, {"qid": qid}), (framed(X, qid), {}), (framed(X, qid).to_pandas(), {})):
        model = ltr.Estimator(TREES).fit(one, y, **asked)
        assert model.model_.digest == expected.digest
        assert np.array_equal(model.predict(one), expected.predict(queries.features)[order])
    queries = canonical(queries)
    values = ltr.evaluate(queries.labels, expected.predict(queries.features), queries.offsets, ["ndcg_10"])["ndcg_10"]
    assert model.score(one, y) == model.score(X[::-1], y[::-1], qid[::-1]) == np.nanmean(values)


def test_group_sizes_are_queries_of_neighbours():
    *_, queries, _ = rows()
    plain = ltr.Queries(queries.features, queries.labels, queries.offsets)
    model = ltr.Estimator(TREES).fit(queries.features, queries.labels, group=np.diff(queries.offsets))
    assert model.model_.digest == TREES.fit(plain).digest


def test_validation_queries_keep_the_best_iteration():
    X, y, qid, *_ = rows()
    held_out = rows(10, seed=5)
    model = ltr.Estimator(TREES).fit(X, y, qid, valid=held_out[:3])
    assert np.isfinite(model.model_.curve.valid).all()
    assert model.model_.digest == TREES.fit(rows()[3], held_out[3]).digest


def test_documents_nobody_judged_and_missing_features_are_nan():
    X, y, qid, queries, order = rows()
    y = np.where(np.arange(len(y)) % 3, y, np.nan)
    X[5, 2] = np.nan
    labels, features = queries.labels.copy(), queries.features.copy()
    labels[order], features[order] = y, X
    expected = TREES.fit(replace(queries, labels=labels, features=features))
    nulls = framed(X, qid).with_columns(pl.exclude("qid").fill_nan(None))
    assert ltr.Estimator(TREES).fit(nulls, pl.Series(y).fill_nan(None)).model_.digest == expected.digest


def test_names_are_kept_and_looked_for():
    X, y, qid, *_ = rows()
    frame = framed(X, qid)
    model = ltr.Estimator(TREES).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["bm25", "pagerank", "length", "age"]
    assert model.n_features_in_ == 4
    scores = model.predict(frame)
    turned = frame.select("age", "qid", "pagerank", "bm25", "length").with_columns(title=pl.lit("x"))
    assert np.array_equal(model.predict(turned), scores)
    assert np.array_equal(model.predict(turned.to_pandas()), scores)
    assert np.array_equal(model.predict(X), scores)
    with pytest.raises(ValueError, match="features missing in the data: bm25, age"):
        model.predict(frame.drop("age").rename({"bm25": "BM25"}))
    assert not hasattr(model.fit(X, y, qid), "feature_names_in_")


# --- as scikit-learn sees it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ltr.KINDS)
def test_every_kind_clones_and_has_its_parameters(kind):
    model = ltr.Estimator(ltr.KINDS[kind](**SMALL.get(kind, {})))
    before = model.get_params()
    assert {"model", "measure", "query"} < set(before)
    assert set(model.get_params(deep=False)) == {"model", "measure", "query", "n_jobs", "verbose"}
    twin = clone(model)
    assert twin.get_params() == before
    assert twin.model is not model.model
    inner = {name: value for name, value in before.items() if "__" in name}
    assert twin.set_params(**inner, measure="map") is twin
    assert (twin.model, twin.measure, model.measure) == (model.model, "map", "ndcg_10")


@pytest.mark.parametrize("kind", ltr.KINDS)
def test_every_kind_fits_and_scores(kind):
    X, y, qid, *_ = rows()
    X, y = (X[:, :2], y) if kind == "combination" else (X, (y > 2) * 2.0 if kind == "conditional" else y)
    X = framed(X, qid, [f"rank of {name}" for name in "abcd"]).drop("qid") if "fusion" in kind else X
    model = ltr.Estimator(ltr.KINDS[kind](**SMALL.get(kind, {}))).fit(X, y, qid)
    check_is_fitted(model)
    assert model.predict(X).shape == y.shape
    assert 0 < model.score(X, y, qid) <= 1


def test_parameters_are_set_in_place_and_strangers_refused():
    model = ltr.Estimator(TREES)
    assert model.set_params(model__learning_rate=0.3).model == replace(TREES, learning_rate=0.3)
    assert model.set_params(model=ltr.LeastSquares(), model__ridge=2.0).model == ltr.LeastSquares(ridge=2.0)
    with pytest.raises(ValueError, match="no parameter 'model__rigde'; did you mean model__ridge"):
        model.set_params(model__rigde=1)
    with pytest.raises(ValueError, match="ridge=-1 is out of range; it is a number from 0"):
        model.set_params(model__ridge=-1)


RATES = [0.01, 0.5]


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_a_grid_over_a_frame_takes_the_queries_along(kind):
    X, y, qid, *_ = rows(40)
    frame = framed(X, qid) if kind == "polars" else framed(X, qid).to_pandas()
    search = GridSearchCV(ltr.Estimator(TREES), {"model__learning_rate": RATES}, cv=GroupKFold(3)).fit(
        frame, y, groups=frame["qid"]
    )
    means = by_hand(X, y, qid, RATES, GroupKFold(3))
    assert search.cv_results_["mean_test_score"].tolist() == means
    assert search.best_params_ == {"model__learning_rate": RATES[int(np.argmax(means))]}
    assert search.best_estimator_.feature_names_in_.tolist() == ["bm25", "pagerank", "length", "age"]
    assert np.array_equal(search.predict(frame), search.best_estimator_.predict(X))


def test_a_grid_over_an_array_has_the_queries_routed(routing):
    X, y, qid, *_ = rows(40)
    grid = {"model__learning_rate": RATES}
    search = GridSearchCV(ltr.Estimator(TREES), grid, cv=GroupKFold(3)).fit(X, y, qid=qid, groups=qid)
    assert search.cv_results_["mean_test_score"].tolist() == by_hand(X, y, qid, RATES, GroupKFold(3))
    values = cross_val_score(ltr.Estimator(TREES), X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid})
    assert np.mean(values) == pytest.approx(by_hand(X, y, qid, [TREES.learning_rate], GroupKFold(3))[0], abs=1e-15)


def test_a_pipeline_scales_before_it_ranks(routing):
    X, y, qid, *_ = rows(40)
    steps = Pipeline([("scale", StandardScaler()), ("rank", ltr.Estimator(ltr.LeastSquares()))])
    search = GridSearchCV(steps, {"rank__model__ridge": [0.0, 10.0]}, cv=GroupKFold(3), error_score="raise")
    search.fit(X, y, qid=qid, groups=qid)
    scaled = StandardScaler().fit_transform(X)
    expected = ltr.Estimator(ltr.LeastSquares(ridge=search.best_params_["rank__model__ridge"])).fit(scaled, y, qid)
    assert np.array_equal(search.predict(X), expected.predict(scaled))
    assert search.score(X, y, qid=qid) == expected.score(scaled, y, qid)


def test_cross_validation_of_a_frame():
    X, y, qid, *_ = rows(40)
    values = cross_val_score(ltr.Estimator(TREES, measure="map"), framed(X, qid), y, groups=qid, cv=GroupKFold(4))
    assert values.shape == (4,)
    assert np.isfinite(values).all()


def test_the_core_works_where_scikit_learn_is_not():
    code = "import sys; sys.modules['sklearn'] = None; import ltr; print(ltr.Estimator(ltr.LeastSquares()).set_params(model__ridge=1.0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ridge=1.0" in done.stdout


# --- what users of LGBMRanker look for ------------------------------------------------------------------------------------


def test_the_best_iteration_and_what_was_watched_can_be_read():
    X, y, qid, *_ = rows(60)
    held_out = rows(20, seed=5)[:3]
    model = ltr.Estimator(replace(TREES, n_trees=30)).fit(X, y, qid, valid=held_out)
    curve = model.evals_result_["valid"]["ndcg@10"]
    assert model.best_iteration_ == int(np.argmax(curve)) + 1 == model.model_.trees.n_trees
    assert np.isfinite(model.evals_result_["train"]["ndcg@10"][9])
    net = ltr.Estimator(ltr.LambdaRank(epochs=5)).fit(X, y, qid, valid=held_out)
    assert net.best_iteration_ == int(np.argmax(net.evals_result_["valid"]["ndcg@10"])) + 1
    plain = ltr.Estimator(ltr.LeastSquares()).fit(X, y, qid)
    assert (plain.best_iteration_, list(plain.evals_result_)) == (None, ["train"])
    assert ltr.Estimator(ltr.Column(feature="f1")).fit(X, y, qid).evals_result_ == {}


def test_feature_importances_are_gains():
    X, y, qid, *_ = rows()
    model = ltr.Estimator(replace(TREES, feature_share=1.0))
    assert not hasattr(model, "feature_importances_")
    model.fit(X, y, qid)
    assert np.array_equal(model.feature_importances_, model.model_.importance("gain"))
    assert int(np.argmax(model.feature_importances_)) == 0
    assert not hasattr(ltr.Estimator(ltr.LeastSquares()).fit(X, y, qid), "feature_importances_")


def test_threads_are_limited_while_it_works_and_change_nothing():
    X, y, qid, *_ = rows()
    seen, before = [], numba.get_num_threads()
    one = ltr.Estimator(TREES, n_jobs=1, verbose=lambda line: seen.append((line, numba.get_num_threads()))).fit(X, y, qid)
    assert seen == [(f"lambdamart: iteration {k} of at most 3", 1) for k in (1, 2, 3)]
    assert numba.get_num_threads() == before
    several = ltr.Estimator(TREES, n_jobs=-1).fit(X, y, qid)
    assert several.model_.digest == one.model_.digest
    assert np.array_equal(several.predict(X), one.predict(X))
    with pytest.raises(ValueError, match="n_jobs=0 is neither a number of threads nor -1 or None"):
        ltr.Estimator(TREES, n_jobs=0).fit(X, y, qid)
    with pytest.raises(ValueError, match="verbose=1 is nothing that takes a line of text; print does"):
        ltr.Estimator(TREES, verbose=1).fit(X, y, qid)


# --- what is refused ------------------------------------------------------------------------------------------------------

X2, Y2 = np.ones((2, 3)), [1, 0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((X2, Y2), r"say the query of each row by one of column 'qid', qid, group; given: none"),
        ((X2, Y2, [1, 1], [2]), "given: qid and group"),
        ((framed(np.ones((2, 4)), ["a", "a"]), Y2, [1, 1]), "given: column 'qid' and qid"),
        ((X2, [1, 0, 1], [1, 1]), r"y: shape \(3,\) for 2 rows of X"),
        ((X2, Y2, [1]), r"qid: shape \(1,\) for 2 rows of X"),
        ((X2, Y2, [1, None]), "qid: row 1 has none"),
        ((X2, Y2, None, [1, 2]), "group: sizes of the queries, whole numbers from 1 that sum to 2"),
        ((np.ones(2), Y2, [1, 1]), r"X: shape \(2,\); expected rows of documents"),
        ((np.ones((0, 3)), [], []), r"X: shape \(0, 3\)"),
        ((pl.DataFrame({"title": ["a", "b"], "qid": [1, 1]}), Y2), "column 'title': .*features are numbers"),
        ((pl.DataFrame({"qid": [1, 1]}), Y2), "2 rows and 0 features"),
        ((X2, [-1, 0], [1, 1]), "a label is a finite number, 0 or more"),
    ],
)
def test_what_cannot_be_ranked_is_named(arguments, says):
    with pytest.raises(ValueError, match=says):
        ltr.Estimator(ltr.LeastSquares()).fit(*arguments)


def test_what_is_no_ranker_measure_or_pair_is_named():
    X, y, qid, *_ = rows()
    for model, valid, says in (
        (ltr.Estimator(ltr.LambdaMART), None, "Estimator: model=.*LambdaMART.* is no ranker, such as"),
        (ltr.Estimator("lambdamart"), None, "model='lambdamart' is no ranker"),
        (ltr.Estimator(TREES, measure="ndgc"), None, "unknown measure 'ndgc'; did you mean ndcg"),
        (ltr.Estimator(TREES), X, r"valid: ndarray is neither \(X, y\) nor \(X, y, qid\)"),
    ):
        with pytest.raises(ValueError, match=says):
            model.fit(X, y, qid, valid=valid)


def test_scoring_before_fitting_and_other_widths_are_refused():
    X, y, qid, *_ = rows()
    with pytest.raises(ValueError, match="fit comes before"):
        ltr.Estimator(TREES).predict(X)
    model = ltr.Estimator(TREES).fit(X, y, qid)
    with pytest.raises(ValueError, match="expected 4 features, as in fit"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="fewer errors are better"):
        model.set_params(measure="errors").score(X, y, qid)
