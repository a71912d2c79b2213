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
