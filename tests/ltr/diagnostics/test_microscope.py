"""The microscope against gradients taken pair by pair, and label errors that were planted."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries, canonical
from ltr.data.synthetic import World
from ltr.diagnostics.microscope import FLOOR, look, ranks
from tests.conftest import JIT, make_queries


def pair_gradients(labels, scores):
    """λ_ij of RankNet × |ΔNDCG| on each i by each partner j, ``[n, n]``."""
    rank = np.argsort(np.argsort(-scores, kind="stable"))
    discount, gain = 1 / np.log2(2.0 + rank), 2.0**labels - 1
    ideal = (np.sort(gain)[::-1] / np.log2(2.0 + np.arange(len(gain)))).sum()
    change = np.abs((gain[:, None] - gain) * (discount[:, None] - discount)) / max(ideal, 1e-300)
    sign = np.sign(gain[:, None] - gain)
    return sign * change / (1 + np.exp(sign * (scores[:, None] - scores)))


def test_partners_and_gradients_pair_by_pair():
    queries = make_queries(15, seed=4, largest=12)
    scores = np.random.default_rng(0).normal(size=queries.n_documents)
    found = look([(1, scores)], queries)
    shares, gradients = [], np.zeros(queries.n_documents)
    for first, last in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        labels = queries.labels[first:last]
        pairs = pair_gradients(labels, scores[first:last])
        gradients[first:last] = pairs.sum(axis=1)
        for i in np.flatnonzero(labels >= 3):
            if abs(pairs[i].sum()) >= FLOOR:
                shares.append([pairs[i, labels == v].sum() / pairs[i].sum() for v in range(5)])
    assert found.gradient == pytest.approx(gradients)
    assert found.lost == pytest.approx(np.abs(gradients))
    assert found.partners[0] == pytest.approx(np.mean(shares, axis=0))
    assert found.partners.sum() == pytest.approx(1.0)


def test_agreement_is_of_signs_or_no_click_gradient():
    queries = make_queries(15, seed=4, largest=12)
    scores = np.random.default_rng(0).normal(size=queries.n_documents)
    found = look([(1, scores)], queries)
    for name, pairs in (("all", "all"), ("same_label", "same_label")):
        mine = ltr.Objective(queries, [ltr.Term("ndcg")])(scores, 0)[0]
        other = ltr.Objective(queries, [ltr.Term("cndcg", pairs=pairs)])(scores, 0)[0]
        agree = [c == 0 or ((c > 0) == (l > 0) and l != 0) for c, l in zip(other, mine, strict=True)]
        assert found.agreement[name] == pytest.approx([np.mean(agree)])
    assert look([(1, scores)], replace(queries, sources={})).agreement == {}


def test_top_labels_and_moves_by_hand():
    queries = Queries(np.zeros((5, 1)), np.array([2.0, 0, 0, 4, np.nan]), np.array([0, 3, 5]))
    stages = [(1, np.array([3.0, 2, 1, 0, 0])), (2, np.array([1.0, 2, 3, 0, 1]))]
    found = look(stages, queries, top=1)
    assert found.labels.tolist() == [0, 2, 4]
    assert found.top_labels.tolist() == [[0, 0.5, 0.5], [1, 0, 0]]
    assert found.rank.tolist() == [3, 2, 1, 2, 1]
    assert np.isnan(found.moved[0])
    assert (found.moved[1], found.moved_top[1]) == (0.8, 1.0)


@pytest.mark.parametrize("n", range(1, 6))
def test_lost_is_the_least_gradient_of_the_later_half(n):
    queries, rng = make_queries(6, seed=4), np.random.default_rng(0)
    stages = [(k, rng.normal(size=queries.n_documents)) for k in range(n)]
    of_each = np.array([np.abs(look([stage], queries).gradient) for stage in stages])
    assert look(stages, queries).lost.tolist() == of_each[n // 2 :].min(axis=0).tolist()


@pytest.mark.skipif(not JIT, reason="thousands of gradients are for compiled code")
def test_gradients_of_no_more_than_the_later_half_are_in_memory():
    queries, alive = make_queries(150, seed=4), []

    def stages(n):
        for k in range(n):
            alive.append(tracemalloc.get_traced_memory()[0] / (8 * queries.n_documents))
            yield k, np.full(queries.n_documents, float(k))

    tracemalloc.start()
    look(stages(61), queries)
    tracemalloc.stop()
    assert alive[-1] - alive[1] < 55, "in arrays of a number a document: all 60 stood there"


def test_ranks_keep_equal_scores_as_they_stand():
    assert ranks(np.array([1.0, 1, 2, 5, 5]), np.array([0, 3, 5])).tolist() == [2, 3, 1, 1, 2]


def test_stages_of_trees_and_nets():
    queries = make_queries(30, seed=1)
    trees = ltr.LambdaMART(n_trees=7, n_leaves=4, min_docs_in_leaf=3, stop_on=None).fit(queries)
    stages = dict(trees.stages(queries.features, 3))
    assert list(stages) == [3, 6, 7]
    assert stages[6] == pytest.approx(replace(trees, trees=trees.trees.first(6)).predict(queries.features), abs=1e-12)
    assert stages[7] == pytest.approx(trees.predict(queries.features), abs=1e-12)
    net = ltr.LambdaRank(epochs=7, keep_epochs=(2, 4, 5)).fit(queries)
    stages = dict(net.stages(queries.features, 2))
    assert list(stages) == [2, 4, 7]
    shorter = ltr.LambdaRank(epochs=4).fit(queries)
    assert np.array_equal(stages[4], dict(shorter.stages(queries.features, 1))[4])
    assert len(look(trees.stages(queries.features, 3), queries).iteration) == 3
    with pytest.raises(ValueError, match="at least one stage"):
        look([], queries)


@pytest.mark.long
@pytest.mark.skipif(not JIT, reason="hundreds of trees are for compiled code")
def test_wrong_labels_are_among_the_lost_causes():
    """One label in a hundred is wrong, perfect for irrelevant or the other way: most of as many lost causes are these."""
    found = []
    for seed in range(2):
        queries, _ = World(n_features=30, noise=0.1, seed=seed).queries(1000, 30, 0)
        rng, n = np.random.default_rng(seed), queries.n_documents // 100
        wrong = rng.choice(np.flatnonzero((queries.labels == 0) | (queries.labels >= 3)), n, replace=False)
        labels = queries.labels.copy()
        labels[wrong] = np.where(labels[wrong] == 0, 4.0, 0.0)
        planted = canonical(replace(queries, labels=labels, sources={"wrong": np.isin(np.arange(len(labels)), wrong)}))
        model = ltr.LambdaMART(n_trees=200, n_leaves=15, learning_rate=0.1, query_share=1.0, feature_share=1.0, stop_on=None).fit(
            planted
        )
        seen = look(model.stages(planted.features, 40), planted)
        found.append(planted.sources["wrong"][seen.lost_causes(n)].mean())
    assert np.mean(found) >= 0.8, found
