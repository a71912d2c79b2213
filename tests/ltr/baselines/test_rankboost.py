"""Potentials pair by pair, and the first threshold beside all."""

import itertools

import numpy as np
import pytest

import ltr
from ltr.baselines.rankboost import potentials
from tests.conftest import make_queries


def test_potentials_pair_by_pair():
    queries = make_queries(10, seed=5)
    scores = np.random.default_rng(0).normal(size=queries.n_documents)
    found, weights = np.empty(queries.n_documents), np.empty(queries.n_queries)
    potentials(scores, queries.labels, queries.offsets, found, weights)
    want = np.zeros(queries.n_documents)
    for a, b in itertools.pairwise(queries.offsets):
        for i, j in itertools.permutations(range(a, b), 2):
            if queries.labels[i] > queries.labels[j]:
                want[i] += np.exp(scores[j] - scores[i])
                want[j] -= np.exp(scores[j] - scores[i])
    assert found == pytest.approx(want)


def test_the_first_round_of_rankboost_is_the_best_threshold():
    queries = make_queries(20, seed=6)
    model = ltr.RankBoost(rounds=1, stop_on=None).fit(queries)
    r = {}
    pi, weights = np.empty(queries.n_documents), np.empty(queries.n_queries)
    potentials(np.zeros(queries.n_documents), queries.labels, queries.offsets, pi, weights)
    for f in range(queries.n_features):
        for x in queries.features[:, f]:
            r[f, x] = pi[queries.features[:, f] > x].sum() / weights.sum()
    best = max(r.values(), key=abs)
    assert abs(model.trees.gain[0]) == pytest.approx(abs(best))
    assert model.trees.value[1] == pytest.approx(0.5 * np.log((1 + best) / (1 - best)))
