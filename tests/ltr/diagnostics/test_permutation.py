"""Losses by shuffles against the mean over all orders there are, and intervals against queries drawn again."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries, canonical, select
from ltr.data.synthetic import World
from tests.conftest import make_queries
from tests.ltr.data.test_queries import shuffled


def loss_over_all_orders(model, queries, column):
    """The expected loss of each query, by every permutation of the column within it."""
    found = []
    for q in range(queries.n_queries):
        own = select(queries, np.array([q]))

        def value(features, own=own):
            return ltr.evaluate(own.labels, model.predict(features), own.offsets, "ndcg_10")["ndcg_10"][0]

        after = []
        for order in itertools.permutations(range(own.n_documents)):
            mixed = own.features.copy()
            mixed[:, column] = own.features[list(order), column]
            after.append(value(mixed))
        found.append(value(own.features) - np.mean(after))
    return np.array(found)


def test_losses_are_those_over_all_orders():
    queries = make_queries(12, n_features=3, largest=4, clicks=False)
    model = ltr.LeastSquares().fit(queries)
    found = ltr.permutation_importance(model, queries, repetitions=200)
    for k, name in enumerate(queries.names):
        expected = loss_over_all_orders(model, queries, k)
        expected = expected[~np.isnan(expected)]
        assert found.n_queries == len(expected)
        assert found.loss[k] == pytest.approx(expected.mean(), abs=4.5 * found.deviation[k] / np.sqrt(200) + 1e-12), name
        assert found.high[k] - found.loss[k] == pytest.approx(found.loss[k] - found.low[k])
        error = expected.std(ddof=1) / np.sqrt(len(expected))
        if not error:
            assert found.high[k] == pytest.approx(1 - 0.025 ** (1 / len(expected))), "no query lost anything, of so few"
            continue
        assert found.high[k] - found.loss[k] == pytest.approx(2.2 * error, rel=0.15), "Student's, 11 degrees of freedom or fewer"


def test_what_is_not_read_or_the_same_within_a_query_loses_nothing():
    queries = make_queries(80, seed=1)
    features = queries.features.copy()
    features[:, 3] = np.repeat(np.arange(80), np.diff(queries.offsets))
    queries = replace(queries, features=features)
    model = ltr.LambdaMART(n_trees=5, min_docs_in_leaf=5, monotone={}, feature_share=1.0, interactions=[["f1", "f4"]]).fit(queries)
    found = ltr.permutation_importance(model, queries)
    assert (found.loss[3], found.low[3], found.high[3], found.deviation[3]) == (0, 0, 0, 0)
    assert found.loss.argmax() == 0
    assert found.low[0] > 0
    unused = ltr.permutation_importance(ltr.Column(feature="f2").fit(queries), queries)
    assert [name for name, loss in zip(unused.names, unused.loss, strict=True) if loss] == ["f2"]


def test_order_of_rows_and_what_else_is_asked_change_nothing():
    queries = make_queries(40, seed=2)
    model = ltr.LambdaMART(n_trees=5, min_docs_in_leaf=5).fit(queries)
    found = ltr.permutation_importance(model, queries)
    for other in (ltr.permutation_importance(model, shuffled(queries)), ltr.permutation_importance(model, queries, seed=1)):
        assert np.array_equal(other.loss, found.loss)
        assert np.array_equal(other.high, found.high)
    alone = ltr.permutation_importance(model, queries, features=["f2"])
    assert (alone.names, alone.loss[0], alone.low[0]) == (("f2",), found.loss[1], found.low[1])
    assert not np.array_equal(ltr.permutation_importance(model, queries, seed=2).loss, found.loss)


def test_twins_are_worth_something_together():
    queries = make_queries(60, seed=3)
    features = np.column_stack([queries.features, queries.features[:, 0]])
    queries = canonical(Queries(features, queries.labels, queries.offsets))
    model = ltr.LeastSquares(ridge=1.0).fit(queries)
    one, other, both = ltr.permutation_importance(model, queries, features=["f1", "f5", ("f1", "f5")]).loss
    assert both > 1.5 * max(one, other) > 0
    assert ltr.permutation_importance(model, queries, features=[("f1", "f5")]).names == ("f1+f5",)


def test_fewer_errors_are_better_and_the_lines_say_it():
    queries = make_queries(40, seed=4)
    found = ltr.permutation_importance(ltr.Column(feature="f1").fit(queries), queries, "errors", repetitions=1)
    assert found.loss[0] > 0
    assert np.isnan(found.deviation[0])
    lines = str(found).splitlines()
    assert lines[0].startswith(
        f"errors {found.value:.4f} loses, 1 shuffles within each of {found.n_queries} queries, intervals of 95%"
    )
    assert lines[1].startswith(f"f1  {found.loss[0]:+.4f}  (")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"features": "f1"}, "features='f1'; a list of names, and of groups"),
        ({"features": [()]}, "groups of names that are not empty"),
        ({"features": []}, r"features=\[\]; a list of names"),
        ({"features": ["f9"]}, "the model reads no feature 'f9'; it has f1, f2"),
        ({"measure": "ndgc"}, "unknown measure 'ndgc'; did you mean ndcg"),
        ({"repetitions": 0}, "repetitions=0, level=0.95, seed=1; repetitions are a whole number from 1"),
        ({"level": 1.0}, "a level lies between 0 and 1"),
    ],
)
def test_what_cannot_be_asked_is_named(given, says):
    queries = make_queries(20)
    with pytest.raises(ValueError, match=says):
        ltr.permutation_importance(ltr.LeastSquares().fit(queries), queries, **given)


def test_other_features_and_too_few_queries_are_refused():
    queries = make_queries(20)
    model = ltr.LeastSquares().fit(queries)
    with pytest.raises(ValueError, match="the queries have no feature 'f1', which the model reads"):
        ltr.permutation_importance(model, replace(queries, names=tuple("abcd")))
    with pytest.raises(ValueError, match="ndcg_10 is defined on 1 query; intervals need two"):
        ltr.permutation_importance(model, select(queries, np.array([int(np.diff(queries.offsets).argmax())])))


@pytest.mark.long
def test_intervals_hold_what_many_queries_show():
    world = World(n_features=8)
    model = ltr.LambdaMART(n_trees=30, stop_on=None).fit(world.queries(100, 12, 1)[0])
    many, _ = world.queries(8000, 12, 2)
    truth = ltr.permutation_importance(model, many, repetitions=3).loss
    held = np.zeros(8)
    for k in range(200):
        found = ltr.permutation_importance(model, select(many, np.arange(k * 40, (k + 1) * 40)), repetitions=3, seed=k + 5)
        held += (found.low <= truth) & (truth <= found.high)
    assert (held / 200 > 0.88).all()
    assert 0.92 < held.mean() / 200 < 0.98


def test_queries_that_all_lose_the_same_are_no_certainty():
    """Three queries that each lost 1, where a shuffle keeps the order of two documents as often as not, were said to lose 1 to 1."""
    features = np.tile([[1.0], [0.0]], (3, 1)).astype(np.float32)
    keys = np.array([1, 2, 3], np.uint64)
    queries = Queries(features, np.array([2.0, 0.0] * 3), np.array([0, 2, 4, 6]), keys=keys)
    model = ltr.LeastSquares.of_weights({"f1": 1.0}, ("f1",))
    found = [ltr.permutation_importance(model, queries, "wta", repetitions=1, seed=seed) for seed in range(40)]
    assert {float(one.loss[0]) for one in found} >= {0.0, 1.0}
    for one in found:
        assert one.low[0] < 0.5 < one.high[0]
