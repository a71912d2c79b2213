"""Missing features of linear rankers: fitted on training queries, part of the model, the same bytes however rows are ordered."""

import json
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries, canonical
from ltr.linear.imputation import Imputation, fit_imputation
from tests.conftest import make_queries

KINDS = [
    ltr.LeastSquares(),
    ltr.RankSVM(),
    ltr.AdaRank(rounds=5),
    ltr.Listwise(iterations=5),
    ltr.SVMmap(planes=20),
    ltr.ConditionalModel(measure="map", samples=5, iterations=5),
]


def gapped(n_queries=30, seed=0):
    queries = make_queries(n_queries, seed=seed, levels=2)
    queries.features[np.random.default_rng(seed).random(len(queries.labels)) < 0.3, 1] = np.nan
    return queries


def test_values_by_hand():
    nan = np.nan
    features = np.array([[1, nan, nan], [3, 8, nan], [8, nan, nan], [2, 2, nan], [nan, 4, nan]], np.float32)
    queries = Queries(features, np.zeros(5), np.array([0, 3, 5]))
    assert fit_imputation("median", queries).values.tolist() == [2.5, 4, 0]
    assert fit_imputation("zero", queries).values.tolist() == [0, 0, 0]
    made = fit_imputation("query-mean", queries)
    assert made.values.tolist() == [(12 / 3 + 2 / 1) / 2, (8 / 1 + 6 / 2) / 2, 0]
    assert made.indicated.tolist() == [0, 1, 2]
    assert made.inputs(features[:1]).tolist() == [[1, 5.5, 0, 0, 1, 1]]


@pytest.mark.parametrize("ranker", KINDS, ids=lambda ranker: ranker.kind)
def test_every_linear_kind_learns_scores_is_saved_and_certified(ranker, tmp_path):
    queries, other = gapped(), gapped(10, seed=5)
    ranker = replace(ranker, conventions=ltr.Conventions(threshold=1))
    with pytest.raises(ValueError, match=r"needs complete features; 'f2' .* \(impute: median, zero or query-mean"):
        ranker.fit(queries)
    fitted = replace(ranker, impute="median").fit(queries, other)
    made = fit_imputation("median", canonical(queries))
    assert np.array_equal(fitted.imputation.values, made.values)
    assert fitted.weights.shape == (5,)
    other.features[:3, 3] = np.nan  # nothing was missing there in training: filled in, without an indicator
    scores = fitted.predict(other.features)
    assert scores == pytest.approx(made.inputs(other.features).astype(float) @ fitted.weights)
    surface = fitted.surface(other.features)
    assert surface.slopes(0, len(scores), surface.weights[None])[0] == pytest.approx(scores)
    ltr.save(fitted, tmp_path)
    loaded = ltr.load(tmp_path)
    assert loaded.digest == fitted.digest
    assert np.array_equal(loaded.predict(other.features), scores)


def test_it_is_as_if_the_features_had_been_filled_in_before():
    queries = gapped()
    complete = replace(queries, features=fit_imputation("zero", queries).inputs(queries.features), names=())
    weights = ltr.LeastSquares(ridge=1).fit(complete).weights
    assert ltr.LeastSquares(ridge=1, impute="zero").fit(queries).weights == pytest.approx(weights, rel=1e-9)


@pytest.mark.parametrize("impute", ["median", "zero", "query-mean"])
def test_rows_in_any_order_give_the_same_bytes(impute):
    queries = gapped()
    order = np.concatenate([np.arange(*ends)[::-1] for ends in np.lib.stride_tricks.sliding_window_view(queries.offsets, 2)])
    turned = replace(queries, features=queries.features[order], labels=queries.labels[order], sources={}, position=order)
    ranker = ltr.RankSVM(impute=impute)
    assert ranker.fit(turned).digest == ranker.fit(replace(queries, sources={})).digest


def test_without_imputation_digests_are_what_they_were_and_with_it_they_cover_it(tmp_path):
    queries = make_queries(20)
    fitted = ltr.LeastSquares().fit(queries)
    assert set(fitted.arrays) == {"weights"}
    imputing = ltr.LeastSquares(impute="median").fit(queries)
    assert np.array_equal(imputing.predict(queries.features), fitted.predict(queries.features))
    assert imputing.digest != fitted.digest
    changed = replace(imputing, imputation=Imputation(imputing.imputation.values + 1, imputing.imputation.indicated))
    assert changed.digest != imputing.digest
    ltr.save(imputing, tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())
    about["parameters"]["impute"] = "none"
    (tmp_path / "model.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match="do not match the digest"):
        ltr.load(tmp_path)


@pytest.mark.parametrize(
    ("values", "indicated"),
    [([np.nan, 0], [0]), ([0, 0], [1, 0]), ([0, 0], [2]), ([0, 0], [-1]), ([0, 0], [0, 0])],
)
def test_damaged_arrays_are_refused(values, indicated):
    with pytest.raises(ValueError, match="missing features"):
        Imputation(np.array(values, np.float32), np.array(indicated, np.int64))


def test_infinite_features_are_refused_all_the_same():
    queries = gapped()
    queries.features[4, 0] = np.inf
    with pytest.raises(ValueError, match="ranksvm needs finite features; 'f1' has infinite values"):
        ltr.RankSVM(impute="median").fit(queries)


def test_what_each_feature_contributes_has_its_indicators_share():
    queries = gapped()
    fitted = ltr.RankSVM(impute="median").fit(queries)
    assert fitted.weights[4] != 0
    found, complete = fitted.attributions(queries.features), fitted.imputation.inputs(queries.features).astype(float)
    assert found.shape == (queries.n_documents, 5)
    assert found.sum(axis=1) == pytest.approx(fitted.predict(queries.features))
    assert found[:, 1] == pytest.approx(complete[:, 1] * fitted.weights[1] + complete[:, 4] * fitted.weights[4])
    assert fitted.linear_weights is None, "an indicator is no feature of other tools"
    assert fitted.export_form == "linear with imputation"


def test_values_of_another_number_of_features_are_refused():
    fitted = ltr.LeastSquares(impute="zero").fit(gapped())
    fewer = {"imputed": fitted.imputation.values[:3], "weights": fitted.weights[1:]}
    with pytest.raises(ValueError, match="3 values in place of 4 features"):
        type(fitted).restored(fitted.parameters, {**fitted.arrays, **fewer}, fitted.names)


def test_a_query_without_a_value_has_no_part_in_the_mean_over_queries():
    features = np.array([[1], [3], [np.nan], [np.nan], [8]], np.float32)
    queries = Queries(features, np.zeros(5), np.array([0, 2, 4, 5]))
    assert fit_imputation("query-mean", queries).values.tolist() == [(2 + 8) / 2]
