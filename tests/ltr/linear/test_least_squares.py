"""Least squares beside numpy's, ridge by its normal equations, and weights from elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from tests.conftest import make_queries


def test_least_squares_is_numpys(queries):
    design = np.column_stack((queries.features, np.ones(queries.n_documents)))
    weights = np.linalg.lstsq(design.astype(float), queries.labels, rcond=None)[0]
    assert ltr.LeastSquares().fit(queries).weights == pytest.approx(weights[:-1])
    assert np.abs(ltr.LeastSquares(ridge=1e6).fit(queries).weights).max() < 1e-3


def test_ridge_is_the_solution_of_its_normal_equations_and_leaves_the_intercept_free(queries):
    x, y = queries.features.astype(float), queries.labels
    x, y = x - x.mean(axis=0), y - y.mean()
    want = np.linalg.solve(x.T @ x + 3.0 * np.eye(x.shape[1]), x.T @ y)
    assert ltr.LeastSquares(ridge=3.0).fit(queries).weights == pytest.approx(want)
    shifted = replace(queries, labels=queries.labels + 100)
    assert ltr.LeastSquares(ridge=3.0).fit(shifted).weights == pytest.approx(want)


def test_documents_without_a_label_are_left_out():
    queries = make_queries(20, seed=4)
    judged = np.arange(queries.n_documents) % 3 > 0
    holes = replace(queries, labels=np.where(judged, queries.labels, np.nan))
    design = np.column_stack((queries.features, np.ones(queries.n_documents))).astype(float)[judged]
    want = np.linalg.lstsq(design, queries.labels[judged], rcond=None)[0]
    assert ltr.LeastSquares().fit(holes).weights == pytest.approx(want[:-1])


def test_weights_from_elsewhere():
    model = ltr.LeastSquares.of_weights({"b": 2.0, "a": -1.0}, ("a", "b", "c"))
    assert model.weights.tolist() == [-1.0, 2.0, 0.0]
    assert model.predict(np.array([[1.0, 10.0, 5.0]])).tolist() == [19.0]
    with pytest.raises(ValueError, match="weights of features that the data do not have: d"):
        ltr.LeastSquares.of_weights({"d": 1.0}, ("a", "b"))
    with pytest.raises(ValueError, match="weight nan is not finite"):
        ltr.LeastSquares.of_weights({"a": float("nan")}, ("a", "b"))
    with pytest.raises(ValueError, match="ridge=-1 is out of range; it is a number from 0"):
        ltr.LeastSquares(ridge=-1)


@pytest.mark.parametrize("spoiler", [1e15, 1e30, "times"])
def test_large_columns_hide_no_others(queries, spoiler):
    """A constant, or times in nanoseconds, beside features of size 1, and a signal of 1e-20."""
    times = 1.7e18 + 1e15 * np.random.default_rng(2).random(queries.n_documents)
    beside = times if spoiler == "times" else np.full(queries.n_documents, spoiler)
    model = ltr.LeastSquares().fit(queries)
    wide = replace(
        queries, features=np.column_stack((queries.features, beside)).astype(np.float32), names=(*queries.names, "large")
    )
    scores = ltr.LeastSquares().fit(wide).predict(wide.features)
    assert np.corrcoef(model.predict(queries.features), scores)[0, 1] > 0.95
    small = replace(queries, features=(queries.features * np.float32(1e-20)))
    assert ltr.LeastSquares().fit(small).predict(small.features) == pytest.approx(
        model.predict(queries.features), rel=1e-4, abs=1e-5
    )
