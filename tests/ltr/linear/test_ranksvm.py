"""RankSVM beside scikit-learn on explicit pairs."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import keep
from ltr.linear.ranksvm import _PARTS, _by_label, _hessian
from tests.conftest import make_queries


def test_ranksvm_is_scikit_learns_on_explicit_pairs():
    from sklearn.svm import LinearSVC

    queries = make_queries(30, seed=3, largest=15)
    pairs = [
        queries.features[i].astype(float) - queries.features[j]
        for a, b in itertools.pairwise(queries.offsets)
        for i in range(a, b)
        for j in range(a, b)
        if queries.labels[i] > queries.labels[j]
    ]
    signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
    peer = LinearSVC(loss="squared_hinge", dual=False, fit_intercept=False, C=0.05, tol=1e-8, max_iter=10_000)
    peer.fit(np.array(pairs) * signs[:, None], signs)
    ours = ltr.RankSVM(C=0.05, standardise=False).fit(queries)
    assert ours.weights == pytest.approx(peer.coef_[0], rel=1e-4)


@pytest.mark.parametrize("n_features", [4, 5])
def test_curvature_is_the_sum_over_the_pairs_that_cost(n_features):
    queries = make_queries(40, seed=5, largest=30)
    features = np.random.default_rng(0).normal(size=(queries.n_documents, n_features)).astype(np.float32)
    order, offsets, lower = _by_label(replace(queries, features=features, names=tuple("abcde"[:n_features])))
    features, labels = features[order], queries.labels[order]
    scores = features @ np.linspace(-1, 1, n_features)
    expected, costing = np.zeros((n_features, n_features)), 0
    for a, b in itertools.pairwise(offsets):
        for i, j in itertools.product(range(a, b), repeat=2):
            if labels[i] > labels[j] and scores[i] - scores[j] < 1:
                gap = features[i].astype(float) - features[j]
                expected, costing = expected + np.outer(gap, gap), costing + 1
    pairs = sum((labels[a:b, None] > labels[a:b]).sum() for a, b in itertools.pairwise(offsets))
    assert 0.2 * pairs < costing < 0.8 * pairs
    width = n_features + n_features % 2
    parts = np.full((_PARTS, width, width), np.nan)
    _hessian(features, scores, offsets, lower, parts)
    found = np.triu(parts.sum(axis=0)[:n_features, :n_features])
    assert found == pytest.approx(np.triu(expected), rel=1e-9)


def test_labels_that_are_all_alike_are_refused():
    queries = make_queries(5, seed=1)
    with pytest.raises(ValueError, match="RankSVM: no query has documents of different labels"):
        ltr.RankSVM().fit(replace(queries, labels=np.ones(queries.n_documents)))


@pytest.mark.parametrize("C", [1e-8, 1.0, 1e12, 1e16])
def test_features_twice_halve_their_weights_for_any_C(C):
    queries = make_queries(200, seed=3, largest=30)
    names = tuple(f"f{k}" for k in range(2 * queries.n_features))
    twice = replace(queries, features=np.column_stack([queries.features] * 2), names=names)
    once = ltr.RankSVM(C=2 * C, standardise=False).fit(queries)
    weights = ltr.RankSVM(C=C, standardise=False).fit(twice).weights.reshape(2, -1)
    assert np.abs(once.weights).max() > (1e-7 if C < 1 else 0.1)
    assert weights.sum(axis=0) == pytest.approx(once.weights, rel=1e-3, abs=1e-3 * np.abs(once.weights).max())


def test_documents_without_a_label_are_in_no_pair():
    queries = make_queries(30, seed=2)
    known = np.random.default_rng(0).random(queries.n_documents) < 0.7
    holes = replace(queries, labels=np.where(known, queries.labels, np.nan))
    ranker = ltr.RankSVM(standardise=False)
    assert ranker.fit(holes).weights == pytest.approx(ranker.fit(keep(queries, known)).weights, rel=1e-6)


def separable():
    """Queries whose labels are steps of a linear score: a weight vector orders every pair."""
    rng = np.random.default_rng(3)
    offsets = np.append(0, np.cumsum(rng.integers(1, 12, 100)))
    features = rng.normal(size=(offsets[-1], 4)).astype(np.float32)
    return ltr.Queries(features, np.clip(np.floor(2 + features @ [1.0, -0.5, 0.3, 2.0]), 0, 4), offsets)


@pytest.mark.parametrize("C", [1e-2, 1e2, 1e4, 1e6])
def test_the_minimum_is_reached_where_a_large_C_meets_data_that_can_be_separated(C):
    """The objective was 200 times its minimum there, and told as the end. Below: what the dual of the slacks comes to, which no minimum is below."""
    queries = separable()
    model = ltr.RankSVM(C=C, standardise=False).fit(queries)
    of_query, labels = queries.of_query, queries.labels
    upper, lower = np.nonzero((of_query[:, None] == of_query) & (labels[:, None] > labels))
    pairs = queries.features[upper].astype(float) - queries.features[lower]
    slacks = np.maximum(0, 1 - pairs @ model.weights)
    objective = 0.5 * (model.weights**2).sum() + C * (slacks**2).sum()
    duals = 2 * C * slacks
    below = duals.sum() - 0.5 * ((duals @ pairs) ** 2).sum() - (duals**2).sum() / (4 * C)
    assert below <= objective <= below * (1 + 1e-4)
    assert model.remarks[0].startswith(f"objective {objective:.4f} after ")


def test_too_few_iterations_are_told():
    remark = ltr.RankSVM(C=1e6, iterations=5).fit(separable()).remarks[0]
    assert remark.endswith(" after 5 Newton steps: iterations=5 end before the minimum")
