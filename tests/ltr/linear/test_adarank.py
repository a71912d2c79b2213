"""The first round beside all features."""

import numpy as np
import pytest

import ltr
from tests.conftest import make_queries


def test_adarank_begins_with_the_best_feature():
    queries = make_queries(30, seed=7)
    model = ltr.AdaRank(rounds=1, measure="ndcg_5", standardise=False).fit(queries)
    alone = {
        (k, sign): np.nanmean(
            ltr.evaluate(queries.labels, sign * queries.features[:, k].astype(float), queries.offsets, ["ndcg_5"])["ndcg_5"]
        )
        for k in range(4)
        for sign in (1, -1)
    }
    (k, sign), value = max(alone.items(), key=lambda pair: pair[1])
    assert np.flatnonzero(model.weights).tolist() == [k]
    assert model.weights[k] == pytest.approx(sign * 0.5 * np.log((1 + value) / (1 - value)))


@pytest.mark.parametrize("ties", ["stable", "docid", "expected"])
def test_ties_are_those_of_the_convention(ties):
    """Of features that tie much, by file order and by document id too: what it says of its training is the value of its model."""
    drawn = make_queries(30, seed=3)
    rng = np.random.default_rng(0)
    queries = ltr.Queries(
        rng.integers(0, 3, drawn.features.shape), drawn.labels, drawn.offsets,
        position=rng.permutation(drawn.n_documents), documents=np.array([b"d%05d" % k for k in rng.permutation(drawn.n_documents)]),
    )  # fmt: skip
    rules = ltr.Conventions(ties=ties)
    model = ltr.AdaRank(rounds=20, measure="ndcg_5", conventions=rules).fit(queries)
    scores = model.predict(queries.features)
    values = ltr.evaluate(queries.labels, scores, queries.offsets, ["ndcg_5"], rules, queries.position, queries.documents)["ndcg_5"]
    assert f"training ndcg_5 {np.nanmean(values):.4f}" in model.remarks[-1]


def by_hand(queries, rounds):
    """Weights after each round and the mean of NDCG@5 that they reach, by the formulas of the module."""
    columns = queries.features.astype(float)

    def values(scores):
        return ltr.evaluate(queries.labels, scores, queries.offsets, ["ndcg_5"])["ndcg_5"]

    alone = {(k, sign): values(sign * columns[:, k]) for sign in (1, -1) for k in range(columns.shape[1])}
    weights, shares, found = np.zeros(columns.shape[1]), np.full(queries.n_queries, 1 / queries.n_queries), []
    for _ in range(rounds):
        (k, sign), own = max(alone.items(), key=lambda pair: pair[1] @ shares)
        weights = weights.copy()
        weights[k] += sign * 0.5 * np.log((shares @ (1 + own)) / (shares @ (1 - own)))
        reached = values(columns @ weights)
        shares = np.exp(-reached) / np.exp(-reached).sum()
        found.append((weights, reached.mean()))
    return found


def test_rounds_are_those_of_the_formulas_and_end_where_none_is_better():
    rng = np.random.default_rng(2)
    labels, noise = np.tile([2.0, 1, 0, 0, 0, 1, 0, 0], 30), rng.normal(size=(240, 3))
    known = np.arange(240)[:, None] // 80 == np.arange(3)  # each feature of a third of the queries
    features = np.where(known, labels[:, None] * [1, 1, -1] + 0.3 * noise, noise).astype(np.float32)
    queries = ltr.Queries(features, labels, np.arange(0, 241, 8))
    rounds = by_hand(queries, 30)
    values = [value for _, value in rounds]
    for patience in (1, 4):
        best = next(k for k in range(30) if max(values[k + 1 : k + 1 + patience]) <= values[k])
        best = max(range(best + 1), key=values.__getitem__)
        model = ltr.AdaRank(measure="ndcg_5", standardise=False, patience=patience, rounds=30).fit(queries)
        assert model.weights == pytest.approx(rounds[best][0])
        assert len(model.curve.train) == best + 1 + patience
    assert len({tuple(np.flatnonzero(weights)) for weights, _ in rounds}) > 1


def test_a_measure_of_which_less_is_better_is_refused():
    with pytest.raises(ValueError, match="lower 'errors' is better, but this measure must be maximised"):
        ltr.AdaRank(measure="errors")


def test_a_feature_that_is_the_label_has_a_finite_weight():
    labels = np.tile([2.0, 1, 0], 8)
    queries = ltr.Queries(labels[:, None], labels, np.arange(0, 25, 3))
    model = ltr.AdaRank(measure="ndcg_5", patience=1).fit(queries)
    assert np.isfinite(model.weights).all()
    assert model.weights[0] > 0


def test_features_that_order_no_pair_have_weights_all_the_same():
    """With the worst of all ties τ is −1 there, whose α is that of 10⁻¹²: it was a "math domain error"."""
    queries = ltr.Queries(np.ones((8, 2)), np.arange(8) % 3.0, np.array([0, 4, 8]))
    model = ltr.AdaRank(measure="tau", standardise=False, conventions=ltr.Conventions(ties="worst")).fit(queries)
    assert np.isfinite(model.weights).all()
