"""RankSVM beside scikit-learn on explicit pairs."""

import itertools

import numpy as np
import pytest

import ltr
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
