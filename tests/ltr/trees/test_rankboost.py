"""Potentials pair by pair, and the first threshold beside all."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import keep
from ltr.trees.rankboost import potentials
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


@pytest.mark.parametrize("few", [(), (0,), (0, 2)])
def test_the_first_round_of_rankboost_is_the_best_threshold(few):
    queries = make_queries(20, seed=6)
    features = queries.features.copy()
    features[:, few] = np.round(features[:, few])
    queries = replace(queries, features=features)
    model = ltr.RankBoost(rounds=1, stop_on=None).fit(queries)
    r = {}
    pi, weights = np.empty(queries.n_documents), np.empty(queries.n_queries)
    potentials(np.zeros(queries.n_documents), queries.labels, queries.offsets, pi, weights)
    for f in range(queries.n_features):
        for x in queries.features[:, f]:
            r[f, x] = pi[queries.features[:, f] > x].sum() / weights.sum()
    feature, _ = max(r, key=lambda place: abs(r[place]))
    best = max(r.values(), key=abs)
    assert model.trees.feature[0] == feature
    assert model.trees.scores(features).max() == max(model.trees.value)
    assert abs(model.trees.gain[0]) == pytest.approx(abs(best))
    assert model.trees.value[1] == pytest.approx(0.5 * np.log((1 + best) / (1 - best)))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_feature_that_is_the_label_or_its_opposite_has_a_finite_weight(sign):
    labels = np.array([2.0, 0, 1, 0, 2, 1])
    features = (sign * labels[:, None]).astype(np.float32)
    model = ltr.RankBoost(rounds=3, stop_on=None).fit(ltr.Queries(features, np.minimum(labels, 1), np.array([0, 3, 6])))
    assert np.isfinite(model.predict(features)).all()
    assert (np.sign(model.trees.value[1]) == sign).all()


@pytest.mark.parametrize("stop_on", [None, "ndcg_10"])
def test_a_threshold_that_orders_all_pairs_is_the_last(stop_on):
    """Weights of pairs fell to 0 after 53 more of it, and the rest were 0/0."""
    labels = np.tile([1.0, 0, 0], 20)
    features = np.column_stack((labels, np.random.default_rng(1).normal(size=60))).astype(np.float32)
    queries = ltr.Queries(features, labels, np.arange(0, 61, 3))
    model = ltr.RankBoost(rounds=300, stop_on=stop_on).fit(queries, queries if stop_on else None)
    assert model.trees.n_trees == 1
    assert model.remarks == ("1 of 1 rounds kept",)
    assert (np.argsort(-model.predict(features).reshape(-1, 3), axis=1)[:, 0] == 0).all()


def test_two_thresholds_that_order_all_pairs_together_stay_finite():
    labels = np.tile([2.0, 1, 0], 20)
    features = np.column_stack((labels > 1, labels > 0)).astype(np.float32)
    model = ltr.RankBoost(rounds=5000, stop_on=None).fit(ltr.Queries(features, labels, np.arange(0, 61, 3)))
    assert np.isfinite(model.trees.value).all()
    assert (np.diff(model.predict(features).reshape(-1, 3), axis=1) < 0).all()


def test_leaves_count_the_documents_of_training():
    queries = make_queries(20, seed=6)
    features = queries.features.copy()
    features[np.random.default_rng(0).random(features.shape) < 0.2] = np.nan
    trees = ltr.RankBoost(rounds=5, stop_on=None).fit(replace(queries, features=features)).trees
    for k in range(trees.n_trees):
        tree = trees.between(k, k + 1)
        assert tree.documents.tolist() == np.bincount(tree.leaves(features)[:, 0], minlength=2).tolist()


def test_training_queries_are_measured_after_every_tenth_round():
    queries, valid = make_queries(30, seed=6), make_queries(20, seed=7)
    rules = ltr.Conventions(gain="linear")
    model = ltr.RankBoost(rounds=25, conventions=rules).fit(queries, valid)
    assert (np.flatnonzero(~np.isnan(model.curve.train)) + 1).tolist() == [10, 20]
    assert np.isfinite(model.curve.valid).all()
    best = int(np.argmax(model.curve.valid)) + 1
    assert model.trees.n_trees == best
    scores = model.predict(valid.features)
    found = ltr.evaluate(valid.labels, scores, valid.offsets, ["ndcg_10"], rules)["ndcg_10"]
    assert model.curve.valid[best - 1] == pytest.approx(np.nanmean(found))


def test_thresholds_are_between_values_of_judged_documents():
    queries = make_queries(20, seed=6)
    known = np.arange(queries.n_documents) % 3 > 0
    holes = replace(queries, labels=np.where(known, queries.labels, np.nan))
    model = ltr.RankBoost(rounds=5, stop_on=None, conventions=ltr.Conventions(unlabelled="condensed"))
    assert model.fit(holes).digest == model.fit(keep(queries, known)).digest
