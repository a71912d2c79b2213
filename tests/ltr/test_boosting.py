"""LambdaMART as a whole: it learns, stops, and gives one model for one data set."""

from dataclasses import replace

import numba
import numpy as np
import pytest

import ltr
from ltr.lambdas import Term
from ltr.queries import Queries
from ltr.synthetic import World
from tests.conftest import JIT, make_queries
from tests.ltr.test_queries import shuffled

SMALL = {"n_trees": 12, "n_leaves": 5, "min_docs_in_leaf": 5}


def mean(model, queries, measure="ndcg_10"):
    labels = {"label": queries.labels, **queries.sources}
    return np.nanmean(ltr.evaluate(labels, model.predict(queries.features), queries.offsets, [measure])[measure])


def test_it_learns_what_the_first_feature_says():
    train, test = make_queries(80, seed=1), make_queries(60, seed=2)
    model = ltr.LambdaMART(**SMALL).fit(train)
    untrained = np.nanmean(ltr.evaluate(test.labels, np.zeros(test.n_documents), test.offsets, ["ndcg_10"])["ndcg_10"])
    assert mean(model, test) > untrained + 0.1
    assert set(np.unique(model.trees.feature)) & {0}


@pytest.mark.parametrize("measure", ["ndcg", "map", "mrr", "err"])
@pytest.mark.parametrize("gain", ["newton", "least_squares"])
def test_every_measure_and_gain_improves_training(measure, gain):
    train = make_queries(60, seed=4)
    model = ltr.LambdaMART(**SMALL, gain=gain, objective=(Term(measure),)).fit(train)
    zeros = np.nanmean(ltr.evaluate(train.labels, np.zeros(train.n_documents), train.offsets, [measure])[measure])
    assert mean(model, train, measure) > zeros + 0.03


def test_one_digest_for_any_order_of_rows_and_any_threads():
    train, valid = make_queries(50, seed=1), make_queries(20, seed=2)
    fit = ltr.LambdaMART(**SMALL).fit
    reference = fit(train, valid).digest
    assert fit(shuffled(train, 5), shuffled(valid, 6)).digest == reference
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert fit(train, valid).digest == reference
    finally:
        numba.set_num_threads(before)


@pytest.mark.skipif(not JIT, reason="50,000 rows are for compiled code")
def test_one_digest_on_fifty_thousand_rows():
    world = World(n_features=20)
    queries, _ = world.queries(1000, 50, 1)
    model = ltr.LambdaMART(n_trees=5, stop_on=None)
    reference = model.fit(queries).digest
    assert model.fit(shuffled(queries)).digest == reference


def test_early_stopping_keeps_the_best_iteration():
    train, valid = make_queries(40, seed=1), make_queries(30, seed=2)
    model = ltr.LambdaMART(n_trees=60, n_leaves=8, min_docs_in_leaf=3, learning_rate=0.5, patience=5).fit(train, valid)
    best = int(np.argmax(model.curve.valid)) + 1
    assert model.trees.n_trees == best
    assert len(model.curve.valid) == min(best + 5, 60)
    assert mean(model, valid) == pytest.approx(model.curve.valid.max())
    everything = replace(model, stop_on=None).fit(train, valid)
    assert everything.trees.n_trees == 60


def test_a_perfect_ranking_still_pushes_and_equal_labels_stop_with_a_word():
    flat = Queries(np.arange(40, dtype=np.float32).reshape(40, 1), np.ones(40), np.array([0, 20, 40]))
    model = ltr.LambdaMART(**SMALL, stop_on=None).fit(flat)
    assert model.trees.n_trees == 0
    assert model.remarks == ("stopped after 0 trees: all forces are zero",)
    assert model.predict(flat.features).tolist() == [0.0] * 40


def test_bad_input_is_named():
    train = make_queries(10)
    for change, rule in (({"n_trees": 0}, "n_trees=0"), ({"n_leaves": 1}, "n_leaves=1"), ({"gain": "x"}, "gain='x'")):
        with pytest.raises(ValueError, match=rule):
            ltr.LambdaMART(**change)
    with pytest.raises(ValueError, match="'sigmoid' has no curvature"):
        ltr.LambdaMART(objective=(Term("ndcg", cost="sigmoid"),))
    with pytest.raises(ValueError, match="'local_gradient' has no curvature"):
        ltr.LambdaMART(objective=(Term("ndcg", construction="local_gradient"),), gain="least_squares")
    with pytest.raises(ValueError, match="cannot make two leaves"):
        ltr.LambdaMART(min_docs_in_leaf=10_000).fit(train)
    features = train.features.copy()
    features[0, 1] = np.inf
    with pytest.raises(ValueError, match="feature 2 has an infinite value"):
        ltr.LambdaMART(**SMALL).fit(replace(train, features=features))
    model = ltr.LambdaMART(**SMALL).fit(train)
    with pytest.raises(ValueError, match="fitted on 4 features"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="infinite"):
        model.predict(np.full((2, 4), np.inf))
    with pytest.raises(ValueError, match="not fitted"):
        ltr.LambdaMART().predict(np.zeros((2, 4)))


@pytest.mark.skipif(not JIT, reason="hundreds of trees are for compiled code")
def test_separable_data_do_not_overflow():
    rng = np.random.default_rng(0)
    labels = np.tile([1.0, 0.0], 50)
    queries = Queries((labels + 0.01 * rng.random(100))[:, None], labels, np.arange(0, 101, 2))
    model = ltr.LambdaMART(n_trees=900, learning_rate=1.0, min_docs_in_leaf=5, stop_on=None).fit(queries)
    assert np.isfinite(model.predict(queries.features)).all()
