"""Surfaces: scores at moved weights are the scores of a model with those weights."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.diagnostics.optimality import certify, random_directions
from ltr.rankers.surface import TILE, combine, linear_surface, turn_documents
from tests.conftest import make_queries

QUICK = {"epsilon": 0.1, "delta": 0.1}


@pytest.mark.parametrize("n_features", [1, 3, 4, 7])
@pytest.mark.parametrize("n_points", [1, 2, 5])
def test_products_of_turned_features_are_numpys(n_features, n_points):
    """Four features and two points go together; what is missing for a whole four or two is zeros, and a row to spare."""
    rng = np.random.default_rng(n_features)
    features, points = rng.normal(size=(20, n_features)).astype(np.float32), rng.normal(size=(n_points, n_features))
    columns = np.zeros((n_features + 3, 11))
    turn_documents(features, 3, 14, columns)
    assert np.array_equal(columns[:n_features], features[3:14].T)
    assert not columns[n_features:].any()
    out = np.full((n_points + n_points % 2, 11), np.nan)
    combine(columns, points, out)
    assert out[:n_points] == pytest.approx(points @ features[3:14].astype(float).T)


def test_a_linear_surface_has_the_scores_of_all_points():
    rng = np.random.default_rng(1)
    features, points = rng.normal(size=(3 * TILE + 5, 6)).astype(np.float32), rng.normal(size=(3, 6))
    surface = linear_surface(points[0], features)
    assert np.array_equal(surface.weights, points[0])
    assert (surface.n_documents, surface.scores) == (len(features), None)
    for first, last in ((0, len(features)), (7, 7 + TILE), (TILE, TILE), (2, 3)):
        want = points @ features[first:last].astype(float).T
        assert surface.slopes(first, last, points) == pytest.approx(want)
    turned_round = np.asfortranarray(points)
    assert np.array_equal(surface.slopes(0, 9, turned_round), surface.slopes(0, 9, points))


@pytest.mark.parametrize("model", [ltr.LeastSquares(), ltr.LambdaMART(n_trees=7, n_leaves=4, min_docs_in_leaf=3)])
def test_surfaces_of_other_models_are_their_scores(model):
    queries = make_queries(60, seed=3)
    fitted = model.fit(queries)
    surface = fitted.surface(queries.features)
    found = certify(surface, queries, "ndcg", steps=(0.5,), seed=9, **QUICK)
    moved = surface.weights / np.linalg.norm(surface.weights) + 0.5 * random_directions(22, len(surface.weights), 9)[13]
    by_hand = {
        "least_squares": lambda: queries.features.astype(float) @ moved,
        "lambdamart": lambda: replace(fitted, trees=replace(fitted.trees, value=moved)).predict(queries.features),
    }[model.kind]()
    for value, scores in ((found.value, fitted.predict(queries.features)), (found.curves[13, 0], by_hand)):
        assert value == pytest.approx(np.nanmean(ltr.evaluate(queries.labels, scores, queries.offsets, ["ndcg"])["ndcg"]), abs=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        ltr.LeastSquares(),
        ltr.LambdaRank(epochs=2),
        ltr.LambdaRank(hidden=3, epochs=2),
        ltr.LambdaMART(n_trees=3, n_leaves=4, min_docs_in_leaf=3),
        ltr.LambdaMART(n_trees=3, n_leaves=4, min_docs_in_leaf=3, base="f2"),
        ltr.RankBoost(rounds=5),
        ltr.Combination(),
    ],
    ids=lambda m: f"{m.kind}{getattr(m, 'hidden', '')}{getattr(m, 'base', None) or ''}",
)
def test_where_it_stands_a_surface_is_the_prediction(model):
    queries = make_queries(40, n_features=2, seed=3)
    fitted = model.fit(queries)
    surface = fitted.surface(queries.features)
    assert (surface.slopes is None) != (surface.scores is None)
    if surface.slopes is not None:
        found = surface.slopes(2, 30, surface.weights[None])[0]
    else:
        found = surface.scores(2, 30, np.ones((1, len(surface.weights))), np.zeros(1))[0, 0]
    assert found == pytest.approx(fitted.predict(queries.features)[2:30], abs=1e-6), "nets predict in float32"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_document_without_a_score_has_no_surface(value):
    """The kernels that rank would write outside their arrays, and did."""
    queries = make_queries(20, n_features=4, seed=1)
    features = queries.features.copy()
    features[5, 1] = value
    broken = replace(queries, features=features)
    for model in (ltr.LeastSquares(), ltr.LambdaRank(epochs=2), ltr.LambdaRank(epochs=2, hidden=3)):
        fitted = model.fit(queries)
        if np.isnan(value) and model.kind == "lambdarank":
            continue  # it takes the mean
        for asked in (lambda fitted=fitted: fitted.surface(features), lambda fitted=fitted: ltr.polish(fitted, broken, "ndcg")):
            with pytest.raises(ValueError, match=rf"row 5: feature 'f2' is {'missing' if np.isnan(value) else 'inf'}"):
                asked()
