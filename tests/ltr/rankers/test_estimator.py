"""The estimator does what scikit-learn expects of one, and ranks as its ranker does, bit for bit."""

import subprocess
import sys
import warnings
from dataclasses import replace

import numba
import numpy as np
import pandas as pd
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
    "query_fusion": {"iterations": 3},
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
    assert ltr.Estimator(3).get_params()["model"] == 3
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
    assert ltr.Estimator(None).set_params(measure="map").measure == "map"
    with pytest.raises(ValueError, match="no parameter 'model__ridge'; did you mean model"):
        ltr.Estimator(None).set_params(model__ridge=1)
    for name in ("model__n_estimators", "n_estimators"):
        with pytest.raises(ValueError, match=f"no parameter '{name}'; did you mean model__n_trees\\?"):
            ltr.Estimator(TREES).set_params(**{name: 3})
    for name, meant in (("model__n_jobs", "n_jobs"), ("num_threads", "n_jobs"), ("model__verbosity", "verbose")):
        with pytest.raises(ValueError, match=f"no parameter '{name}'; did you mean {meant}\\?"):
            ltr.Estimator(TREES).set_params(**{name: 3})
    with pytest.raises(ValueError, match="no parameter 'model__gamma'; it has no equivalent here"):
        ltr.Estimator(TREES).set_params(model__gamma=1.0)
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


@pytest.mark.usefixtures("all_threads")
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
    with pytest.raises(
        ValueError, match="verbose=1: pass a function that accepts a line of text, such as print \\(not a number, as in LightGBM\\)"
    ):
        ltr.Estimator(TREES, verbose=1).fit(X, y, qid)


SETS = [rows(20, seed=5)[:3], rows(15, seed=6)[:3]]


def test_validation_sets_are_given_as_in_lightgbm_and_in_xgboost():
    X, y, qid, *_ = rows(60)
    model = replace(TREES, n_trees=20, patience=4)
    expected = ltr.Estimator(model).fit(X, y, qid, eval_set=SETS)
    pairs = [(X, y) for X, y, _ in SETS]
    by_qid = ltr.Estimator(model).fit(X, y, qid, eval_set=pairs, eval_qid=[qid for *_, qid in SETS])
    for as_lists in ([[X, y] for X, y in pairs], [[X.tolist(), y.tolist()] for X, y in pairs]):
        given = ltr.Estimator(model).fit(X, y, qid, eval_set=as_lists, eval_qid=[qid for *_, qid in SETS])
        assert given.evals_result_ == by_qid.evals_result_
    assert by_qid.model_.digest == expected.model_.digest
    assert by_qid.evals_result_ == expected.evals_result_
    assert list(expected.evals_result_) == ["valid_0", "valid_1"], (
        "it stopped before the tenth tree, where training queries are measured"
    )
    one = ltr.Estimator(model).fit(X, y, qid, eval_set=[SETS[0]])
    for same in (
        {"valid": SETS[0]},
        {"eval_set": SETS[0]},
        {"eval_set": [list(SETS[0])]},
        {"eval_set": [pairs[0]], "eval_qid": [SETS[0][2]]},
    ):
        assert ltr.Estimator(model).fit(X, y, qid, **same).evals_result_ == one.evals_result_
    sorted_rows = [np.argsort(qid, kind="stable") for *_, qid in SETS]
    grouped = [(X[rows], y[rows]) for (X, y, _), rows in zip(SETS, sorted_rows, strict=True)]
    sizes = [np.unique(qid, return_counts=True)[1] for *_, qid in SETS]
    by_group = ltr.Estimator(model).fit(X, y, qid, eval_set=grouped, eval_group=sizes)
    for name in ("valid_0", "valid_1"):
        n = min(len(by_group.evals_result_[name]["ndcg@10"]), len(expected.evals_result_[name]["ndcg@10"]))
        ours, theirs = (one.evals_result_[name]["ndcg@10"][:n] for one in (by_group, expected))
        assert ours == pytest.approx(theirs, abs=1e-12)


def first_is_relevant(scores, queries):
    return float(
        np.mean([queries.labels[a:b][scores[a:b].argmax()] > 0 for a, b in zip(queries.offsets, queries.offsets[1:], strict=False)])
    )


def test_eval_metric_is_what_training_stops_by_and_is_in_the_record():
    X, y, qid, *_ = rows(60)
    model = replace(TREES, n_trees=20, patience=4)
    name = f"{first_is_relevant.__module__}.first_is_relevant"
    fitted = ltr.Estimator(model).fit(X, y, qid, eval_set=SETS, eval_metric=["map", first_is_relevant])
    assert {key: list(values) for key, values in fitted.evals_result_.items()} == {
        "valid_0": ["map", name], "valid_1": ["map", name],
    }  # fmt: skip
    assert fitted.model_.parameters["stop_on"] == ("map", {"function": name})
    assert (
        fitted.model_.digest
        == replace(model, stop_on=("map", first_is_relevant)).fit(rows(60)[3], [rows(20, seed=5)[3], rows(15, seed=6)[3]]).digest
    )
    alone = ltr.Estimator(model).fit(X, y, qid, eval_set=SETS[:1], eval_metric=first_is_relevant)
    assert list(alone.evals_result_["valid"]) == [name]
    net = ltr.Estimator(ltr.LambdaRank(epochs=2)).fit(X, y, qid, eval_set=SETS[:1], eval_metric=["map"])
    assert list(net.evals_result_["valid"]) == ["map"]


def test_callbacks_hear_of_every_iteration_and_may_end_it():
    X, y, qid, *_ = rows(60)
    told = []
    fitted = ltr.Estimator(replace(TREES, n_trees=9)).fit(
        X, y, qid, eval_set=SETS[:1], callbacks=[told.append, lambda now: now.iteration == 4]
    )
    assert [now.iteration for now in told] == [1, 2, 3, 4]
    assert [now.values["valid"]["ndcg@10"] for now in told] == fitted.evals_result_["valid"]["ndcg@10"]
    del told[:]
    net = ltr.Estimator(ltr.LambdaRank(epochs=9)).fit(
        X, y, qid, eval_set=SETS[:1], callbacks=[lambda now: now.iteration == 4, told.append]
    )
    assert [now.values for now in told] == [
        {name: {"ndcg@10": values["ndcg@10"][k]} for name, values in net.evals_result_.items()} for k in range(4)
    ]
    shorter = ltr.LambdaRank(epochs=4).fit(rows(60)[3], rows(20, seed=5)[3])
    assert net.model_.digest == shorter.digest
    for given in ({"eval_set": SETS}, {"init_model": net}):
        with pytest.raises(ValueError, match=r"LambdaRank: does not support (several eval_set|an init_model)"):
            net.fit(X, y, qid, **given)


@pytest.mark.parametrize("ranker", [replace(TREES, n_trees=6), ltr.LambdaRank(epochs=6)])
def test_callbacks_are_given_the_ranker_so_far(ranker):
    queries, kept = rows(60)[3], []
    ranker.fit(queries, rows(20, seed=5)[3], callbacks=lambda now: kept.append(now.so_far()))
    for k, one in enumerate(kept, 1):
        shorter = replace(ranker, **{ranker.iterations_from: k}).fit(queries, rows(20, seed=5)[3])
        np.testing.assert_array_equal(one.predict(queries.features), shorter.predict(queries.features))
        assert len(one.curve.iteration) == k


def test_searches_pass_weights_on_to_fit(routing):
    X, y, qid, *_ = rows()
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    folds = GroupKFold(2)
    asked = ltr.Estimator(TREES).set_score_request(sample_weight=False)
    with pytest.raises(ValueError, match="score does not use weights; only False is accepted"):
        asked.set_score_request(sample_weight=True)
    found = GridSearchCV(asked, {"model__n_leaves": [4]}, cv=folds, refit=False)
    found.fit(X, y, qid=qid, groups=qid, sample_weight=weights)
    by_loop = []
    for train, test in folds.split(X, y, qid):
        model = ltr.Estimator(replace(TREES, n_leaves=4)).fit(X[train], y[train], qid[train], sample_weight=weights[train])
        by_loop.append(model.score(X[test], y[test], qid[test]))
    assert found.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(by_loop))


def test_an_array_has_no_names_by_which_categories_are_known():
    frame = pd.DataFrame({"a": np.arange(40.0), "site": pd.Categorical([101, 7] * 20), "qid": np.repeat([1, 2], 20)})
    model = ltr.Estimator(TREES).fit(frame, np.arange(40) % 3)
    with pytest.raises(ValueError, match="X: column 'site' was learned as categories, by their names; give a table, as in fit"):
        model.predict(frame[["a", "site"]].astype(float).to_numpy())


def test_complex_labels_are_no_numbers_to_rank_by():
    X, y, qid, *_ = rows()
    with pytest.raises(ValueError, match="y: complex128; labels are numbers, 0 and up"):
        ltr.Estimator(TREES).fit(X, y + 1j, qid)


def test_weights_are_of_documents_or_of_queries_by_their_number():
    X, y, qid, queries, order = rows()
    n = queries.n_queries
    of_query = np.random.default_rng(0).uniform(0.5, 2, n)
    place = {name: k for k, name in enumerate(np.char.decode(queries.ids).tolist())}
    appearing = list(dict.fromkeys(qid.tolist()))
    expected = TREES.fit(replace(queries, weights=of_query)).digest
    by_query = ltr.Estimator(TREES).fit(X, y, qid, sample_weight=[of_query[place[name]] for name in appearing])
    by_document = ltr.Estimator(TREES).fit(X, y, qid, sample_weight=np.array([of_query[place[name]] for name in qid.tolist()]))
    assert by_query.model_.digest == by_document.model_.digest == expected
    some = dict.fromkeys(appearing, 1.0) | {appearing[0]: 0.0}
    none_of_one = ltr.Estimator(TREES).fit(X, y, qid, sample_weight=list(some.values()))
    by_document = ltr.Estimator(TREES).fit(X, y, qid, sample_weight=[some[name] for name in qid.tolist()])
    assert none_of_one.model_.digest == by_document.model_.digest
    of_document = np.random.default_rng(1).uniform(0, 2, len(y))
    inverse = np.empty(len(y))
    inverse[order] = of_document
    expected = TREES.fit(replace(queries, document_weights=inverse)).digest
    assert ltr.Estimator(TREES).fit(X, y, qid, sample_weight=of_document).model_.digest == expected
    net = ltr.LambdaRank(epochs=2)
    repeated = np.array([of_query[place[name]] for name in qid.tolist()])
    assert (
        ltr.Estimator(net).fit(X, y, qid, sample_weight=repeated).model_.digest
        == net.fit(replace(queries, weights=of_query)).digest
    )
    for model, weights, says in (
        (net, of_document, r"LambdaRank.fit: it does not support weights of documents"),
        (ltr.LeastSquares(), of_query, "sample_weight: LeastSquares does not support weights of queries"),
        (
            TREES,
            of_query[1:],
            rf"sample_weight: float64 of shape \({n - 1},\); expected a finite number, 0 or more, for each of {len(y)}",
        ),
        (TREES, -of_document, "expected a finite number, 0 or more"),
        (TREES, of_query * 0, "weights: must be one number, 0 or from 1e-15 to 1e15, for each of the .* and not all 0"),
    ):
        with pytest.raises(ValueError, match=says):
            ltr.Estimator(model).fit(X, y, qid, sample_weight=weights)


def test_training_goes_on_from_a_model_and_the_first_trees_score():
    X, y, qid, *_ = rows()
    first = ltr.Estimator(TREES).fit(X, y, qid)
    more = ltr.Estimator(replace(TREES, n_trees=7))
    other = rows(25, seed=9)
    for start in (first, first.model_):
        more.fit(*other[:3], init_model=start)
        assert more.model_.trees.n_trees == 7
        assert np.array_equal(more.predict(X, n_trees=3), first.predict(X))
    assert more.predict(X, n_trees=0).tolist() == [0.0] * len(X)
    with pytest.raises(ValueError, match="n_trees=3 counts the 3 trees it goes on from; give more than these"):
        ltr.Estimator(TREES).fit(X, y, qid, init_model=first)
    with pytest.raises(ValueError, match="start must be a fitted LambdaMART, not of type LeastSquares"):
        more.fit(X, y, qid, init_model=ltr.LeastSquares())
    with pytest.raises(ValueError, match="no first 8 trees; it has 7"):
        more.predict(X, n_trees=8)
    with pytest.raises(ValueError, match="least_squares: its scores are not a sum over trees"):
        ltr.Estimator(ltr.LeastSquares()).fit(X, y, qid).predict(X, n_trees=1)


@pytest.mark.parametrize("kind", ["polars", "enum", "pandas"])
def test_categories_are_places_among_those_of_fit(kind):
    X, y, qid, *_ = rows()
    words = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    frame = framed(X, qid).with_columns(bm25=pl.Series(words))
    if kind == "pandas":
        import pandas as pd

        frame = frame.to_pandas()
        frame["bm25"] = pd.Categorical(words, categories=["low", "middle", "high"])
    else:
        frame = frame.with_columns(pl.col("bm25").cast(pl.Enum(["low", "middle", "high"]) if kind == "enum" else pl.Categorical))
    model = ltr.Estimator(replace(TREES, feature_share=1.0)).fit(frame, y)
    order = model.categories_["bm25"]
    assert sorted(order) == ["high", "low", "middle"]
    coded = X.copy()
    coded[:, 0] = [order.index(word) for word in words]
    expected = ltr.Estimator(replace(TREES, feature_share=1.0, categorical=["bm25"])).fit(framed(coded, qid), y)
    assert model.model_.digest == expected.model_.digest
    if kind != "enum":
        strange = pl.DataFrame({**dict(zip(("pagerank", "length", "age"), X[:, 1:].T, strict=True)), "bm25": ["huge"] * len(X)})
        coded[:, 0] = np.nan
        assert np.array_equal(model.predict(strange), expected.predict(coded))


# --- what is refused ------------------------------------------------------------------------------------------------------

X2, Y2 = np.ones((2, 3)), [1, 0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((X2, Y2), r"give the query of each row by exactly one of column 'qid', qid, group; given: none"),
        ((X2, Y2, [1, 1], [2]), "given: qid and group"),
        ((framed(np.ones((2, 4)), ["a", "a"]), Y2, [1, 1]), "given: column 'qid' and qid"),
        ((X2, [1, 0, 1], [1, 1]), r"y: shape \(3,\) for 2 rows of X"),
        ((X2, Y2, [1]), r"qid: shape \(1,\) for 2 rows of X"),
        ((X2, Y2, [1, None]), "qid: row 1 is missing"),
        ((X2, Y2, None, [1, 2]), "group: sizes of the queries, whole numbers from 1 that sum to 2"),
        ((np.ones(2), Y2, [1, 1]), r"X: shape \(2,\); expected rows of documents"),
        ((np.ones((0, 3)), [], []), r"X: shape \(0, 3\)"),
        ((pl.DataFrame({"title": ["a", "b"], "qid": [1, 1]}), Y2), "column 'title': .*features are numbers"),
        ((pl.DataFrame({"qid": [1, 1]}), Y2), "2 rows and 0 features"),
        ((X2, [-1, 0], [1, 1]), "a label must be a finite number, 0 or more"),
    ],
)
def test_what_cannot_be_ranked_is_named(arguments, says):
    with pytest.raises(ValueError, match=says):
        ltr.Estimator(ltr.LeastSquares()).fit(*arguments)


def test_what_is_no_ranker_measure_or_pair_is_named():
    X, y, qid, *_ = rows()
    for model, valid, says in (
        (ltr.Estimator(ltr.LambdaMART), None, "Estimator: model=.*LambdaMART.* is not a ranker, such as"),
        (ltr.Estimator("lambdamart"), None, "model='lambdamart' is not a ranker"),
        (ltr.Estimator(TREES, measure="ndgc"), None, "unknown measure 'ndgc'; did you mean ndcg"),
        (ltr.Estimator(TREES), [], r"valid: list is neither \(X, y\) nor"),
        (ltr.Estimator(TREES), X, r"valid: ndarray is neither \(X, y\) nor \(X, y, qid\)"),
    ):
        with pytest.raises(ValueError, match=says):
            model.fit(X, y, qid, valid=valid)


def test_scoring_before_fitting_and_other_widths_are_refused():
    X, y, qid, *_ = rows()
    with pytest.raises(ValueError, match="call fit before"):
        ltr.Estimator(TREES).predict(X)
    exceptions = pytest.importorskip("sklearn.exceptions")
    with pytest.raises(exceptions.NotFittedError, match="call fit before"):
        ltr.Estimator(TREES).predict(X)
    model = ltr.Estimator(TREES).fit(X, y, qid)
    with pytest.raises(ValueError, match="expected 4 features, as in fit"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"X: shape \(4,\); expected rows of documents, columns of 4 features, as in fit"):
        model.predict(X[0])
    with pytest.raises(ValueError, match="lower 'errors' is better, but this measure must be maximised"):
        model.set_params(measure="errors").score(X, y, qid)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"eval_set": []}, r"eval_set: an empty list is neither \(X, y\) nor \(X, y, qid\)"),
        ({"eval_set": [SETS[0][0]]}, "eval_set: ndarray is neither"),
        ({"eval_set": [SETS[0]], "valid": SETS[0]}, "valid and eval_set: both are validation queries; give one"),
        ({"eval_qid": [SETS[0][2]]}, "eval_qid needs eval_set"),
        ({"eval_set": [SETS[0]], "eval_qid": SETS[0][2]}, "eval_qid: a list with one entry for each of the 1 sets"),
        ({"eval_set": [SETS[0][:2]]}, "give the query of each row by exactly one of"),
        ({"eval_metric": ["map", "MAP"]}, "several different ones"),
    ],
)
def test_what_is_wrong_with_validation_sets_is_named(given, says):
    X, y, qid, *_ = rows()
    with pytest.raises(ValueError, match=says):
        ltr.Estimator(TREES).fit(X, y, qid, **given)


def test_what_only_trees_know_is_refused_by_others():
    X, y, qid, *_ = rows()
    for given, says in (
        ({"callbacks": [print]}, "LeastSquares: does not support callbacks; LambdaMART does"),
        ({"eval_set": SETS}, "LeastSquares: does not support several eval_set"),
        ({"init_model": ltr.LeastSquares()}, "LeastSquares: does not support an init_model"),
    ):
        with pytest.raises(ValueError, match=says):
            ltr.Estimator(ltr.LeastSquares()).fit(X, y, qid, **given)
    with pytest.raises(ValueError, match="eval_metric: Column chooses no iteration by a measure"):
        ltr.Estimator(ltr.Column(feature="f1")).fit(X, y, qid, eval_metric="map")


def test_pandas_own_missing_values_sparse_matrices_and_columns_of_labels():
    pd, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    X, y, qid, *_ = rows()
    X = np.round(X)
    X[:, 1] = X[:, 1] > 0
    plain = X.copy()
    plain[2, 0] = plain[3, 1] = plain[4, 2] = np.nan
    frame = pd.DataFrame(X, columns=["bm25", "pagerank", "length", "age"])
    frame = frame.astype({"bm25": "Int64", "pagerank": "boolean", "length": "Float64"})
    frame.loc[2, "bm25"] = frame.loc[3, "pagerank"] = frame.loc[4, "length"] = pd.NA
    expected = ltr.Estimator(TREES).fit(plain, y, qid)
    labels = pd.Series(y).astype("Int64")
    for given in (y, y[:, None], labels, labels.to_frame()):
        model = ltr.Estimator(TREES).fit(frame, given, qid)
        assert model.model_.digest == ltr.Estimator(TREES).fit(framed(plain, qid), y).model_.digest
        assert np.array_equal(model.predict(frame), expected.predict(plain))
    full = ltr.Estimator(TREES).fit(X, y, qid)
    assert ltr.Estimator(TREES).fit(sparse.csr_matrix(X), y, qid).model_.digest == full.model_.digest
    assert np.array_equal(full.predict(sparse.csr_matrix(X)), full.predict(X))
    with pytest.raises(ValueError, match="y: <U4; labels are numbers, 0 and up"):
        ltr.Estimator(TREES).fit(X, ["good"] * len(y), qid)


def test_a_start_keeps_its_categories():
    """Categories of another order, and new ones, have the places that the trees of the start know."""
    rng = np.random.default_rng(4)
    words = rng.choice(["ad", "be", "ce", "de"], 600)
    frame = pd.DataFrame({"qid": np.repeat(np.arange(30), 20), "x": rng.normal(size=600), "site": pd.Categorical(words)})
    y = np.isin(words, ["be", "de"]) + (frame["x"] > 0.5).to_numpy().astype(int)
    trees = ltr.LambdaMART(n_trees=10, n_leaves=6, min_docs_in_leaf=5, categorical=["site"], stop_on=None)
    first = ltr.Estimator(trees).fit(frame, y)
    more = replace(trees, n_trees=11, learning_rate=1e-9)
    for order in (["de", "ad", "ce", "be"], ["aa", "ad", "be", "ce", "de"]):
        again = frame.assign(site=pd.Categorical(words, categories=order))
        continued = ltr.Estimator(more).fit(again, y, init_model=first)
        assert continued.categories_["site"][:4] == ["ad", "be", "ce", "de"]
        assert np.allclose(continued.predict(again), first.predict(frame), atol=1e-6)
    plain = frame.assign(site=words)
    continued = ltr.Estimator(more).fit(plain, y, init_model=first)
    assert continued.categories_ == first.categories_
    assert np.allclose(continued.predict(plain), first.predict(frame), atol=1e-6), "whatever the column's type is now"
    codes = frame["site"].cat.codes
    for given in (codes, pd.Categorical(codes)):
        with pytest.raises(ValueError, match="its categories of 'site' are such as 'ad', and here they are such as 0"):
            ltr.Estimator(more).fit(frame.assign(site=given), y, init_model=first)
    news = np.where(np.arange(600) % 50 == 0, "new", words)
    with_news = [ltr.Estimator(more).fit(frame.assign(site=given), y, init_model=first) for given in (news, pd.Categorical(news))]
    assert [one.categories_["site"] for one in with_news] == 2 * [["ad", "be", "ce", "de", "new"]]
    assert with_news[0].model_.digest == with_news[1].model_.digest
    with pytest.raises(ValueError, match="init_model: a LambdaMART does not know the categories of 'site'"):
        ltr.Estimator(more).fit(frame, y, init_model=first.model_)


def test_a_start_that_read_numbers_is_not_gone_on_with_by_categories():
    rng = np.random.default_rng(4)
    halves = rng.integers(0, 6, 600) + 0.5
    frame = pd.DataFrame({"qid": np.repeat(np.arange(30), 20), "x": rng.normal(size=600), "site": halves})
    trees = ltr.LambdaMART(n_trees=10, n_leaves=6, min_docs_in_leaf=5, stop_on=None)
    first = ltr.Estimator(trees).fit(frame, halves > 3)
    with pytest.raises(ValueError, match="init_model: it read 'site' as numbers, and here it holds categories"):
        ltr.Estimator(replace(trees, n_trees=11)).fit(frame.assign(site=pd.Categorical(halves)), halves > 3, init_model=first)
    empty = frame.assign(site=pd.Categorical([None] * 600, categories=[]))
    assert ltr.Estimator(replace(trees, n_trees=11)).fit(empty, halves > 3, init_model=first).model_.trees.n_trees == 11


CODES = np.random.default_rng(2).integers(0, 6, 240)
SITES = pd.DataFrame({"x": np.random.default_rng(3).normal(size=240), "c": pd.Categorical(np.array(list("abcdef"))[CODES])})
WORTH, OF_20 = np.array([3, 0, 4, 1, 0, 2])[CODES], np.repeat(np.arange(20), 12)
BY_SITE = ltr.LambdaMART(n_trees=5, min_docs_in_leaf=3, feature_share=1, cat_smooth=0.0)


def test_a_fit_that_is_refused_or_interrupted_leaves_what_there_was():
    """Categories are places: old trees would read those of the new data."""
    estimator = ltr.Estimator(BY_SITE).fit(SITES, WORTH, OF_20)
    before = estimator.score(SITES, WORTH, OF_20)
    turned = SITES.assign(c=SITES["c"].cat.reorder_categories(list("fedcba")))
    with pytest.raises(ValueError, match="a label must be a finite number"):
        estimator.fit(turned, -WORTH, OF_20)
    with pytest.raises(ZeroDivisionError):
        estimator.fit(turned, WORTH, OF_20, callbacks=lambda now: 1 / 0)
    assert estimator.score(SITES, WORTH, OF_20) == before
    assert estimator.categories_ == {"c": list("abcdef")}


def test_the_members_of_an_average_split_by_categories_as_one_of_them_does():
    average = ltr.Estimator(ltr.Average(of=(BY_SITE, ltr.LeastSquares()))).fit(SITES, WORTH, OF_20).model_
    assert average.members[0].trees.categorical.tolist() == [1]
    named = ltr.Average(of=(replace(BY_SITE, categorical=["c"]), ltr.LeastSquares()))
    assert ltr.Estimator(named).fit(SITES, WORTH, OF_20).model_.digest == average.digest


def test_rankers_of_numbers_say_that_they_take_categories_for_amounts():
    says = r"column 'c': LeastSquares reads numbers, and takes the places of these 6 categories for amounts; ltr.LambdaMART splits"
    for ranker in (ltr.LeastSquares(), ltr.Average(of=(BY_SITE, ltr.LeastSquares()))):
        with pytest.warns(UserWarning, match=says):
            ltr.Estimator(ranker).fit(SITES, WORTH, OF_20)
    ordered, two = SITES.assign(c=SITES["c"].cat.as_ordered()), SITES.assign(c=pd.Categorical(SITES["c"] == "a"))
    with warnings.catch_warnings(action="error"):
        for ranker, table in ((BY_SITE, SITES), (ltr.Column("x"), SITES), (ltr.LeastSquares(), ordered), (ltr.LeastSquares(), two)):
            ltr.Estimator(ranker).fit(table, WORTH, OF_20)


def test_a_net_without_validation_queries_watched_the_training_ones_alone():
    X, y, qid, *_ = rows()
    assert list(ltr.Estimator(ltr.LambdaRank(epochs=3)).fit(X, y, qid).evals_result_) == ["train"]
    assert list(ltr.Estimator(ltr.LambdaRank(epochs=3)).fit(X, y, qid, valid=(X, y, qid)).evals_result_) == ["train", "valid"]


def test_no_rows_have_no_scores():
    X, y, qid, *_ = rows()
    fitted = ltr.Estimator(TREES).fit(X, y, qid)
    assert fitted.predict(X[:0]).tolist() == fitted.model_.predict(X[:0]).tolist() == []


def test_threads_may_be_a_number_of_numpy():
    X, y, qid, *_ = rows()
    assert (
        ltr.Estimator(TREES, n_jobs=np.int64(1)).fit(X, y, qid).model_.digest == ltr.Estimator(TREES).fit(X, y, qid).model_.digest
    )


def test_validation_queries_are_routed_where_that_is_asked_for(routing):
    X, y, qid, *_ = rows()
    estimator = ltr.Estimator(replace(TREES, n_trees=5))
    with pytest.raises(Exception, match="eval_set"):
        Pipeline([("scale", StandardScaler()), ("rank", estimator)]).fit(X, y, qid=qid, eval_set=[(X, y, qid)])
    asked = Pipeline([("scale", StandardScaler()), ("rank", clone(estimator).set_fit_request(eval_set=True))])
    asked.fit(X, y, qid=qid, eval_set=[(StandardScaler().fit(X).transform(X), y, qid)])
    assert len(asked[-1].evals_result_["valid"]["ndcg@10"]) == 5
    with pytest.raises(TypeError, match="fit has no argument 'eval_sets' to be routed; there are qid, sample_weight, group"):
        estimator.set_fit_request(eval_sets=True)


def test_a_score_counts_what_is_at_no_rank_as_evaluate_does():
    features, labels = np.array([[np.nan], [3.0], [1.0], [2.0]], np.float32), np.array([2.0, 0, 1, 0])
    fitted = ltr.Estimator(ltr.Column("f1"), measure="ndcg").fit(features, labels, group=[4])
    ranked = ltr.evaluate(labels, [-np.inf, 3, 1, 2], [0, 4], "ndcg")["ndcg"][0]
    assert fitted.score(features, labels, group=[4]) == pytest.approx(ranked)
    assert ranked < ltr.evaluate(labels, [-9, 3, 1, 2], [0, 4], "ndcg")["ndcg"][0]


def test_a_score_goes_by_the_gains_of_the_ranker():
    X, y = np.array([[3.0], [2.0], [1.0]]), [0, 3, 1]
    model = ltr.Estimator(ltr.Column("f1", conventions=ltr.Conventions(gain="linear"))).fit(X, y, group=[3])
    assert model.score(X, y, group=[3]) == pytest.approx((3 / np.log2(3) + 1 / 2) / (3 + 1 / np.log2(3)))
