"""Why one document stands above another: contributions against brute force, and changes that swap."""

import tracemalloc
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import ltr
from ltr.data.queries import in_order
from ltr.diagnostics.why_above import contributions_of, values_to_try, why_above
from tests.conftest import make_queries

QUERIES = make_queries(60, n_features=5, seed=3)
MODELS = {
    "trees": ltr.LambdaMART(n_trees=8, n_leaves=6, min_docs_in_leaf=5, stop_on=None),
    "stumps": ltr.RankBoost(rounds=10),
    "linear net": ltr.LambdaRank(epochs=3),
    "net": ltr.LambdaRank(hidden=4, epochs=3, learning_rate=0.01),
    "ridge": ltr.LeastSquares(ridge=1.0),
    "both": ltr.Average(of=[ltr.LeastSquares(), ltr.LambdaMART(n_trees=4, min_docs_in_leaf=5)]),
    "all": ltr.Average(of=[ltr.LeastSquares(), ltr.LambdaRank(hidden=2, epochs=2)]),
}
METHODS = {
    "trees": "tree Shapley", "stumps": "tree Shapley", "linear net": "linear", "net": "Shapley, exact", "ridge": "linear",
    "both": "mean of linear and tree Shapley", "all": "Shapley, exact",
}  # fmt: skip


@pytest.fixture(scope="module")
def models():
    return {name: model.fit(QUERIES) for name, model in MODELS.items()}


def ends(model, queries=QUERIES):
    """The rows with the highest score and the lowest."""
    scores = model.predict(queries.features)
    return int(scores.argmax()), int(scores.argmin())


def by_every_order(model, pair):
    """Baseline Shapley values from their definition."""
    n, total = pair.shape[1], np.zeros(pair.shape[1])
    orders = list(permutations(range(n)))
    for order in orders:
        mixed = pair[1].copy()
        before = model.predict(mixed[None])[0]
        for k in order:
            mixed[k] = pair[0, k]
            after = model.predict(mixed[None])[0]
            total[k] += after - before
            before = after
    return total / len(orders)


@pytest.mark.parametrize("name", MODELS)
def test_contributions_sum_to_the_difference(models, name):
    model = models[name]
    above, below = ends(model)
    why = why_above(model, QUERIES, above, below)
    assert why.method == METHODS[name]
    assert sum(reason.contribution for reason in why.reasons) == pytest.approx(why.difference, abs=1e-5)
    assert why.scores == pytest.approx(tuple(model.predict(QUERIES.features[[above, below]])))
    sizes = [abs(reason.contribution) for reason in why.reasons]
    assert sizes == sorted(sizes, reverse=True)
    assert all(reason.error == 0 for reason in why.reasons)


@pytest.mark.parametrize("name", ["linear net", "net", "ridge", "all"])
def test_contributions_are_shapley_values_of_turning_one_document_into_the_other(models, name):
    model = models[name]
    pair = QUERIES.features[list(ends(model))]
    assert contributions_of(model, pair, 0, 1)[1] == pytest.approx(by_every_order(model, pair), abs=2e-6)


def test_of_trees_they_are_differences_of_those_of_each_document(models):
    model = models["trees"]
    above, below = ends(model)
    values = model.explain(QUERIES.features[[above, below]])
    found = {reason.feature: reason.contribution for reason in why_above(model, QUERIES, above, below).reasons}
    assert [found[name] for name in model.names] == pytest.approx(values[0, :-1] - values[1, :-1])


def test_sampled_ones_lie_within_their_error_and_the_same_seed_samples_the_same(models, monkeypatch):
    model = models["net"]
    rows = ends(model)
    exact = {reason.feature: reason.contribution for reason in why_above(model, QUERIES, *rows).reasons}
    monkeypatch.setattr("ltr.diagnostics.why_above.EXACT", 2)
    sampled = why_above(model, QUERIES, *rows, orders=400)
    assert sampled.method == "Shapley, sampled"
    for reason in sampled.reasons:
        assert abs(reason.contribution - exact[reason.feature]) < 5 * reason.error + 1e-6
        assert 0 < reason.error < 0.1 * sampled.difference
    assert sum(reason.contribution for reason in sampled.reasons) == pytest.approx(sampled.difference), "each order sums to it"
    assert why_above(model, QUERIES, *rows, orders=400) == sampled
    assert why_above(model, QUERIES, *rows, orders=400, seed=2) != sampled


def test_missing_features_belong_to_their_feature():
    features = QUERIES.features.copy()
    features[::3, 1] = np.nan
    missing = replace(QUERIES, features=features)
    for model in (ltr.LeastSquares(impute="median"), ltr.LambdaRank(epochs=2), MODELS["trees"]):
        fitted = model.fit(missing)
        why = why_above(fitted, missing, *ends(fitted, missing))
        assert sum(reason.contribution for reason in why.reasons) == pytest.approx(why.difference, abs=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_changes_swap_the_two_and_no_smaller_one_does(models, name):
    model = models[name]
    order = np.argsort(-model.predict(QUERIES.features))
    scores = model.predict(QUERIES.features)[order]
    above, below = order[0], order[np.flatnonzero(scores < scores[0])[0] + 20]
    found = why_above(model, QUERIES, int(above), int(below)).changes
    assert found
    for change in found:
        row, other = (above, below) if change.above else (below, above)
        k, column = model.names.index(change.feature), QUERIES.features[:, model.names.index(change.feature)]

        def swaps(value, row=row, other=other, k=k, change=change):
            document = QUERIES.features[row].copy()
            document[k] = value
            mine, theirs = model.predict(np.stack([document, QUERIES.features[other]]))
            return mine < theirs if change.above else mine > theirs

        assert swaps(change.to)
        assert change.deviations == pytest.approx(abs(change.to - change.value) / column.std(dtype=np.float64))
        nearer = column[np.abs(column - np.float32(change.value)) < abs(change.to - change.value) * (1 - 1e-6)]
        assert not any(swaps(value) for value in nearer)
    assert [change.deviations for change in found] == sorted(change.deviations for change in found)


def test_what_is_no_pair_is_told(models):
    model = models["ridge"]
    above, below = ends(model)
    with pytest.raises(ValueError, match=f"row {below} with score .* does not rank above row {above} with"):
        why_above(model, QUERIES, below, above)
    with pytest.raises(ValueError, match="below=-1 is not a row; there are"):
        why_above(model, QUERIES, above, -1)
    with pytest.raises(ValueError, match=r"above=1.5 is not a row; there are"):
        why_above(model, QUERIES, 1.5, below)
    with pytest.raises(ValueError, match="does not rank above"):
        why_above(model, QUERIES, above, above)


def test_features_are_read_by_name(models):
    turned = tuple(reversed(QUERIES.names))
    model, other = models["trees"], in_order(QUERIES, turned)
    above, below = ends(model)
    assert why_above(model, other, above, below) == why_above(model, QUERIES, above, below)
    with pytest.raises(ValueError, match="why_above: the queries have no feature 'f3', which the model reads"):
        why_above(model, in_order(QUERIES, tuple(name for name in turned if name != "f3")), above, below)


def test_a_feature_that_the_model_does_not_read_costs_no_copy_of_the_others(models):
    """Of data in another form than the model's no more is copied than a column at a time."""
    more = np.zeros((20_000, 40), np.float32)
    more[: QUERIES.n_documents, 1:6] = QUERIES.features
    offsets = np.append(QUERIES.offsets, np.arange(QUERIES.n_documents + 10, 20_001, 10))
    offsets[-1] = len(more)
    names = ("other", *QUERIES.names, *(f"unread {k}" for k in range(34)))
    wide = ltr.Queries(more, np.zeros(len(more)), offsets, names=names)
    model = models["ridge"]
    above, below = ends(model)
    tried = values_to_try(model, QUERIES)
    expected = why_above(model, QUERIES, above, below, tried=tried)
    tracemalloc.start()
    try:
        assert why_above(model, wide, above, below, tried=tried) == expected
        assert tracemalloc.get_traced_memory()[1] < 100_000
        why_above(model, wide, above, below)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(more)
    finally:
        tracemalloc.stop()


def test_a_feature_of_one_value_or_missing_changes_too():
    """An indicator coded 1 or missing: to have it and to lack it are the changes there are."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 2)).astype(np.float32)
    features[:, 0] = np.where(rng.random(400) < 0.5, 1, np.nan)
    labels = np.where(np.isnan(features[:, 0]), 0.0, 2.0) + (features[:, 1] > 0)
    queries = ltr.Queries(features, labels, np.arange(0, 401, 10))
    model = ltr.LambdaMART(n_trees=9, n_leaves=6, min_docs_in_leaf=5, feature_share=1.0, stop_on=None).fit(queries)
    rows, scores = queries.features, model.predict(queries.features)
    has, lacks = np.flatnonzero(rows[:, 0] == 1), np.flatnonzero(np.isnan(rows[:, 0]))
    above, below = int(has[scores[has].argmin()]), int(lacks[scores[lacks].argmax()])
    by = {change.above: change for change in why_above(model, queries, above, below).changes if change.feature == "f1"}
    assert np.isnan([by[False].value, by[True].to]).all()
    assert (by[False].to, by[True].value, by[False].deviations, by[True].deviations) == (1, 1, np.inf, np.inf)


def test_categories_have_no_distance():
    rng = np.random.default_rng(1)
    features = np.column_stack((rng.integers(0, 12, 600), rng.normal(size=600))).astype(np.float32)
    labels = np.where(np.isin(features[:, 0], [1, 4, 11]), 2.0, 0.0) + (features[:, 1] > 1)
    queries = ltr.Queries(features, labels, np.arange(0, 601, 10))
    trees = ltr.LambdaMART(n_trees=9, n_leaves=6, min_docs_in_leaf=5, feature_share=1.0, categorical=["f1"], stop_on=None)
    for ranker in (trees, ltr.Average(of=[trees, ltr.RankBoost(rounds=3)])):
        model = ranker.fit(queries)
        assert model.split_by_categories == {"f1"}
        order = np.argsort(-model.predict(queries.features))
        lower = np.flatnonzero(np.diff(model.predict(queries.features)[order]) < 0)[0] + 20
        found = why_above(model, queries, int(order[0]), int(order[lower])).changes
        assert {change.deviations for change in found if change.feature == "f1"} == {np.inf}
        assert all(np.isfinite(change.deviations) for change in found if change.feature == "f2")
    assert ltr.LeastSquares().fit(queries).split_by_categories == set()
