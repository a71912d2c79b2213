"""LambdaMART as a whole: it learns, stops, and gives one model for one data set."""

import itertools
import os
import re
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import ltr
from ltr.data.queries import Queries, canonical, concatenate, select
from ltr.data.queries import keep as keep_documents
from ltr.data.synthetic import World
from ltr.objectives.preferences import Preferences
from ltr.objectives.terms import Term
from ltr.trees import lambdamart
from ltr.trees.grower import grow_from
from ltr.trees.histograms import HistogramBuffers
from tests.conftest import JIT, make_queries
from tests.ltr.data.test_queries import shuffled

SMALL = {"n_trees": 12, "n_leaves": 5, "min_docs_in_leaf": 5, "query_share": 1.0, "feature_share": 1.0}


def mean(model, queries, measure="ndcg_10"):
    labels = {"label": queries.labels, **queries.sources}
    return np.nanmean(
        ltr.evaluate(labels, model.predict(queries.features), queries.offsets, [measure])[ltr.Measure.of(measure).key]
    )


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


@pytest.mark.usefixtures("all_threads")
def test_one_digest_for_any_order_of_rows_and_any_threads():
    train, valid = make_queries(50, seed=1), make_queries(20, seed=2)
    fit = ltr.LambdaMART(**SMALL).fit
    reference = fit(train, valid).digest
    assert fit(shuffled(train, 5), shuffled(valid, 6)).digest == reference
    with ltr.threads(1):
        assert fit(train, valid).digest == reference


FIT = """
import ltr, sys
from ltr.data.synthetic import World
queries, _ = World(n_features=20).queries(int(sys.argv[1]), 50, 1)
print(ltr.LambdaMART(n_trees=5, stop_on=None).fit(queries).digest)
"""


def digest_elsewhere(n_queries, threads):
    """The digest that another process gets with so many threads."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(threads)}
    ran = subprocess.run([sys.executable, "-c", FIT, str(n_queries)], env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.mark.skipif(not JIT, reason="50,000 rows are for compiled code")
@pytest.mark.parametrize("n_queries", [1000, pytest.param(14_000, marks=pytest.mark.long)])
def test_one_digest_whatever_the_threads_the_process_and_the_order(n_queries):
    world = World(n_features=20)
    queries, _ = world.queries(n_queries, 50, 1)
    model = ltr.LambdaMART(n_trees=5, stop_on=None)
    reference = model.fit(queries).digest
    assert model.fit(shuffled(queries)).digest == reference
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(model.fit, queries).result().digest == reference
    assert {digest_elsewhere(n_queries, threads) for threads in (1, 2, 4)} == {reference}


def test_early_stopping_keeps_the_best_iteration():
    train, valid = make_queries(40, seed=1), make_queries(30, seed=2)
    model = ltr.LambdaMART(n_trees=60, n_leaves=8, min_docs_in_leaf=3, learning_rate=0.5, patience=5).fit(train, valid)
    best = int(np.argmax(model.curve.valid)) + 1
    assert model.trees.n_trees == best
    assert len(model.curve.valid) == min(best + 5, 60)
    assert mean(model, valid) == pytest.approx(model.curve.valid.max())
    everything = replace(model, stop_on=None).fit(train, valid)
    assert everything.trees.n_trees == 60


@pytest.mark.parametrize("sparse", [False, True])
def test_no_memory_is_held_for_leaves_that_no_tree_can_have(sparse):
    """131,072 leaves of 136 features were 36 GB whatever the documents, which numpy could not allocate."""
    queries = make_queries(12)
    queries = replace(queries, features=csr_array(queries.features)) if sparse else queries
    options = {"n_trees": 3, "min_docs_in_leaf": 2, "query_share": 1, "feature_share": 1, "stop_on": None}
    reference = ltr.LambdaMART(**options, n_leaves=queries.n_documents).fit(queries)
    tracemalloc.start()
    model = ltr.LambdaMART(**options, n_leaves=131_072).fit(queries)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.digest == reference.digest
    assert np.diff(model.trees.leaf_starts).min() > 5
    assert model.n_leaves == 131_072
    assert most < 50e6  # 4.3 GB of dense ones, 1.1 of sparse ones


def test_a_perfect_ranking_still_pushes_and_equal_labels_stop_with_a_word():
    flat = Queries(np.arange(40, dtype=np.float32).reshape(40, 1), np.ones(40), np.array([0, 20, 40]))
    model = ltr.LambdaMART(**SMALL, stop_on=None).fit(flat)
    assert model.trees.n_trees == 0
    assert model.remarks == ("stopped after 0 trees: all gradients are zero",)
    assert model.predict(flat.features).tolist() == [0.0] * 40


def test_an_objective_without_curvature_is_told_what_to_take():
    def signs(scores, queries):
        return np.sign(queries.labels - scores), np.zeros(len(scores))

    queries = make_queries(20)
    with pytest.raises(ValueError, match="second derivatives are all 0; set gain: least_squares and leaf: gradient"):
        ltr.LambdaMART(**SMALL, objective=signs, stop_on=None).fit(queries)
    fitted = ltr.LambdaMART(**SMALL, objective=signs, stop_on=None, gain="least_squares", leaf="gradient").fit(queries)
    assert fitted.trees.n_trees > 0


def test_a_category_that_is_no_whole_number_is_refused_when_scoring_too():
    rng = np.random.default_rng(1)
    site = rng.integers(0, 4, 200).astype(np.float32)
    queries = Queries(np.column_stack((site, rng.normal(size=200))), (site % 2) * 3, np.arange(0, 201, 20), names=("site", "bm25"))
    model = ltr.LambdaMART(**SMALL, categorical=["site"], stop_on=None).fit(queries)
    assert model.trees.n_codes.any()
    rows = np.array([[1.0, 0.5], [np.nan, 0.5], [-1.0, 0.5], [9.0, 0.5], [1.5, 0.5]])
    assert np.isfinite(model.predict(rows[:4])).all(), "missing and unseen ones"
    for features in (rows, csr_array(rows)):
        with pytest.raises(
            ValueError, match=r"row 4, column 0 is categorical and has the value 1\.5; categories are whole numbers"
        ):
            model.predict(features)


def test_bad_input_is_named():
    train = make_queries(10)
    for change, rule in (({"n_trees": 0}, "n_trees=0"), ({"n_leaves": 1}, "n_leaves=1"), ({"gain": "x"}, "gain='x'")):
        with pytest.raises(ValueError, match=rule):
            ltr.LambdaMART(**change)
    with pytest.raises(ValueError, match="'sigmoid' has no hessian"):
        ltr.LambdaMART(objective=(Term("ndcg", cost="sigmoid"),))
    with pytest.raises(ValueError, match="'local_gradient' has no hessian"):
        ltr.LambdaMART(objective=(Term("ndcg", construction="local_gradient"),), gain="least_squares")
    with pytest.raises(ValueError, match="cannot make two leaves"):
        ltr.LambdaMART(min_docs_in_leaf=10_000).fit(train)
    features = train.features.copy()
    features[0, 1] = np.inf
    with pytest.raises(ValueError, match="feature 'f2' has an infinite value"):
        ltr.LambdaMART(**SMALL).fit(replace(train, features=features))
    with pytest.raises(ValueError, match="feature 'f2' has an infinite value"):
        ltr.Binned(replace(train, features=features))
    for as_sparse in (False, True):
        bad, own = (
            replace(one, features=csr_array(one.features)) if as_sparse else one
            for one in (replace(train, features=features), train)
        )
        with pytest.raises(ValueError, match="feature 'f2' has an infinite value in the validation queries"):
            ltr.LambdaMART(**SMALL).fit(own, bad)
    with pytest.raises(ValueError, match="feature 'f2' has an infinite value"):
        ltr.RankBoost().fit(replace(train, features=features))
    features[0, 1] = 0.5
    with pytest.raises(ValueError, match=r"feature 'f2' is categorical and has the value .*; categories are whole numbers"):
        ltr.LambdaMART(categorical=["f2"]).check(replace(train, features=features))
    features[:, 1] = 2**24 + 2
    with pytest.raises(ValueError, match="feature 'f2' is categorical and has the value 16777218; "):
        ltr.LambdaMART(categorical=["f2"]).check(replace(train, features=features))
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


RESUMED = {
    "plain": {},
    "sampled": {"query_share": 0.6, "feature_share": 0.5},
    "scheduled": {
        "objective": (Term("ndcg"), Term("ndcg@3", weight=ltr.Schedule(0.1, "linear", 0.05))),
        "gain": "least_squares",
        "leaf": "gradient",
        "normalise": "query",
    },
    "stopping": {"patience": 3, "learning_rate": 0.7},
}


@pytest.mark.parametrize("name", RESUMED)
def test_stopped_and_resumed_is_never_stopped(name, tmp_path):
    train, valid = make_queries(50, seed=1), make_queries(30, seed=2)
    whole = ltr.LambdaMART(**{**SMALL, **RESUMED[name]})
    part = replace(whole, n_trees=5).fit(train, valid)
    ltr.save(part, tmp_path)
    reference = whole.fit(train, valid)
    assert (reference.digest == part.digest) == (name == "stopping"), "it stopped within the first part"
    for start in (part, ltr.load(tmp_path)):
        resumed = whole.fit(train, valid, start=start)
        assert resumed.digest == reference.digest
    assert np.array_equal(whole.fit(train, valid, start=part).curve.valid, reference.curve.valid)


@pytest.mark.parametrize("base", [None, "f1"])
def test_going_on_grows_no_tree_twice(base, tmp_path, monkeypatch):
    train, valid = make_queries(50, seed=1), make_queries(30, seed=2)
    whole = ltr.LambdaMART(**SMALL, base=base)
    reference = whole.fit(train, valid)
    part = replace(whole, n_trees=8).fit(train, valid)
    assert part.trees.n_trees < 8, "some trees were left out"
    assert part.trees.n_trees + part.rest.n_trees == 8
    grown = []
    monkeypatch.setattr("ltr.trees.shards.grow_from", lambda *of: (grown.append(1), grow_from(*of))[1])
    for begun, n_grown in ((part, SMALL["n_trees"] - 8), (replace(part, rest=None), SMALL["n_trees"] - part.trees.n_trees)):
        grown.clear()
        resumed = whole.go_on(begun, train, valid)
        assert resumed.digest == reference.digest
        assert np.array_equal(resumed.curve.valid, reference.curve.valid)
        assert len(grown) == n_grown
    ltr.save(part, tmp_path)
    assert ltr.load(tmp_path).rest is None


@pytest.mark.parametrize("objective", ["map", "err", "ndcg"])
def test_with_a_base_too_stopped_and_resumed_is_never_stopped(objective):
    """Its values, and then tree after tree: added in another order, sums differ in their last bits."""
    train, valid = make_queries(50, seed=1), make_queries(30, seed=2)
    for seed in range(1, 5):
        whole = ltr.LambdaMART(**SMALL, base="f2", objective=objective, stop_on=None, seed=seed)
        part = replace(whole, n_trees=5).fit(train, valid)
        assert whole.fit(train, valid, start=part).digest == whole.fit(train, valid).digest


@pytest.mark.parametrize("stop_on", ["mrr", ("err", "mrr", "ndcg_3")])
def test_what_patience_had_ended_is_not_gone_on_with(stop_on):
    """The tree after the last may be a new best, and training went on from it."""
    ended = 0
    for seed in range(30):
        train, valid = make_queries(30, seed=seed), make_queries(6, seed=100 + seed)
        whole = ltr.LambdaMART(**{**SMALL, "n_trees": 20}, stop_on=stop_on, patience=2, seed=1)
        reference = whole.fit(train, valid)
        resumed = whole.go_on(replace(whole, n_trees=8).fit(train, valid), train, valid)
        assert resumed.digest == reference.digest
        assert np.array_equal(resumed.curve.valid, reference.curve.valid)
        ended += len(reference.curve.valid) <= 8
    assert ended > 15


def test_a_draw_without_a_split_is_not_the_end():
    """LightGBM draws from features that vary; of all others a draw of half of ten had none in most, and training ended there."""
    rng = np.random.default_rng(0)
    features = np.zeros((1000, 10), np.float32)
    features[:, 3] = rng.normal(size=1000)
    labels = np.clip(np.round(features[:, 3] + 0.5 * rng.normal(size=1000) + 1), 0, 4)
    offsets = np.arange(0, 1001, 10)
    one_feature = ltr.Queries(features, labels, offsets)
    few_queries = ltr.Queries(rng.normal(size=(1000, 10)), np.where(np.arange(1000) < 30, labels, 0.0), offsets)
    for seed in range(3):
        model = ltr.LambdaMART(n_trees=30, n_leaves=4, stop_on=None, seed=seed)
        assert model.fit(one_feature).trees.n_trees == 30
        for share in (0.5, 1.0):
            drawn = replace(model, query_share=0.5, feature_share=share, min_docs_in_leaf=5)
            assert drawn.fit(few_queries).trees.n_trees == 30
    nothing = ltr.Queries(np.zeros((1000, 10)), labels, offsets)
    assert ltr.LambdaMART(n_trees=30, stop_on=None).fit(nothing).remarks == ("stopped after 0 trees: no split is admissible",)


@pytest.mark.timeout(120)
def test_categories_without_a_gradient_go_with_missing_values_and_training_ends():
    """Those of queries without a relevant document: they were counted on the other side, and the same split was found for ever."""
    column = np.concatenate((np.tile([0.0] * 2 + [1] * 4 + [np.nan] * 4, 10), np.full(100, 2.0)))
    labels = np.concatenate((np.tile([3.0] * 2 + [0] * 8, 10), np.zeros(100)))
    queries = Queries(column[:, None], labels, np.arange(0, 201, 10))
    model = ltr.LambdaMART(
        n_trees=3, n_leaves=4, categorical=["f1"], min_docs_in_leaf=30, stop_on=None, query_share=1, feature_share=1
    )
    assert model.fit(queries).trees.documents.tolist() == [40, 160, 60, 140, 40, 160]


def test_adapting_to_other_data_keeps_the_first_trees():
    first = ltr.LambdaMART(**SMALL, stop_on=None).fit(make_queries(50, seed=1))
    other = make_queries(40, seed=9)
    adapted = ltr.LambdaMART(**{**SMALL, "n_trees": 20}, stop_on=None).fit(other, start=first)
    assert adapted.trees.first(12).value.tolist() == first.trees.value.tolist()
    assert mean(adapted, other) > mean(first, other)
    with pytest.raises(ValueError, match="a start must be a fitted model on the same features"):
        ltr.LambdaMART(base="f2").fit(other, start=first)
    with pytest.raises(ValueError, match="start must be a fitted LambdaMART, not of type Estimator"):
        ltr.LambdaMART().fit(other, start=ltr.Estimator(first))


def test_sampling_is_keyed_by_query():
    train = make_queries(80, seed=1)
    model = ltr.LambdaMART(**{**SMALL, "query_share": 0.5, "feature_share": 0.5}, stop_on=None)
    reference = model.fit(train)
    assert model.fit(shuffled(train, 3)).digest == reference.digest
    assert replace(model, seed=2).fit(train).digest != reference.digest
    starts = reference.trees.leaf_starts
    grown_on = [reference.trees.documents[a:b].sum() for a, b in itertools.pairwise(starts)]
    assert 0.3 < np.mean(grown_on) / train.n_documents < 0.7
    assert len(set(grown_on)) > 6
    used = [
        set(reference.trees.feature[a:b].tolist())
        for a, b in zip(starts[:-1] - np.arange(12), starts[1:] - np.arange(1, 13), strict=True)
    ]
    assert max(map(len, used)) <= round(0.5 * train.n_features)
    assert mean(reference, train) > 0.6


def test_scores_fall_where_the_sample_did_not_look():
    """Documents that a tree was not grown on move by the leaf they fall into: the running scores are the model's."""
    train = make_queries(60, seed=3)
    features = train.features.copy()
    features[::7, 1] = np.nan
    model = ltr.LambdaMART(**{**SMALL, "query_share": 0.3}).fit(
        replace(train, features=features), replace(train, features=features)
    )
    last = model.trees.n_trees
    assert mean(model, replace(train, features=features)) == pytest.approx(model.curve.valid[last - 1])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"monotone": {"f1": -1}}, "monotone: the trees of the start were grown without it, and are kept as they are"),
        (
            {"interactions": [["f1"], ["f2"]]},
            "interactions: the trees of the start were grown with others, and are kept as they are",
        ),
    ],
)
def test_a_start_keeps_no_promise_that_it_was_not_grown_by(asked, said):
    train = make_queries(20)
    free = ltr.LambdaMART(**SMALL, stop_on=None).fit(train)
    more = replace(ltr.LambdaMART(**SMALL, stop_on=None), n_trees=SMALL["n_trees"] + 2, **asked)
    with pytest.raises(ValueError, match=said):
        more.fit(train, start=free)
    held = replace(more, n_trees=SMALL["n_trees"]).fit(train)
    assert more.fit(train, start=held).digest == more.fit(train).digest
    neither = replace(more, monotone={"f1": 0}, interactions=())
    assert neither.fit(train, start=replace(held, interactions=())).trees.n_trees == more.n_trees, "0 promises nothing"


def test_weights_that_are_all_0_at_the_first_tree_are_refused():
    queries, rising = make_queries(20), ltr.Schedule(0.0, "linear", 0.03)
    for objective in ((Term("ndcg", weight=rising),), (Term("ndcg", weight=rising), Term("map", weight=rising))):
        model = ltr.LambdaMART(**SMALL, stop_on=None, objective=objective)
        with pytest.raises(ValueError, match="objective: all term weights are 0 for the first tree; at least one must be positive"):
            model.fit(queries)
        start = ltr.LambdaMART(**{**SMALL, "n_trees": 2}, stop_on=None).fit(queries)
        assert model.fit(queries, start=start).trees.n_trees == model.n_trees
    assert ltr.LambdaRank(objective=(Term("ndcg", weight=rising),), epochs=2).fit(queries).weights is not None


def test_pairs_that_are_given_have_no_pair_cost_to_tell():
    queries = make_queries(20)
    first = queries.offsets[:-1][np.diff(queries.offsets) > 1]
    pairs = Preferences(first, first + 1)
    assert ltr.LambdaMART(**SMALL, stop_on=None).fit(queries, preferences=pairs).remarks == ()


@pytest.mark.parametrize("kinds", [{"gain": "newton", "leaf": "newton"}, {"gain": "least_squares", "leaf": "gradient"}])
def test_monotone_features(kinds):
    train = make_queries(80, seed=5)
    free = ltr.LambdaMART(n_trees=30, n_leaves=12, min_docs_in_leaf=3, stop_on=None, **kinds)
    held = replace(free, monotone={"f1": 1, "f2": -1})
    rng = np.random.default_rng(0)
    points = np.repeat(rng.normal(size=(50, train.n_features)), 40, axis=0).astype(np.float32)
    for column, sign in ((0, 1), (1, -1)):
        line = points.copy()
        line[:, column] = np.tile(np.linspace(-3, 3, 40), 50)

        def falls(model, line=line, sign=sign):
            return (sign * np.diff(model.fit(train).predict(line).reshape(50, 40), axis=1)).min()

        assert falls(held) >= 0
        assert falls(free) < 0
    assert mean(held.fit(train), train) > 0.55
    with pytest.raises(ValueError, match="no feature 'nope'"):
        replace(held, monotone={"nope": 1}).fit(train)
    with pytest.raises(ValueError, match="leaves of the gain's kind"):
        ltr.LambdaMART(monotone={"f1": 1}, gain="newton", leaf="gradient")


def test_training_starts_from_a_base_models_scores(tmp_path):
    train = make_queries(60, seed=7)
    scored = replace(train, features=train.features.copy())
    scored.features[:, 1] = 3 * train.features[:, 0]
    model = ltr.LambdaMART(**SMALL, base="f2", stop_on=None).fit(scored)
    scores = model.predict(scored.features)
    assert np.array_equal(scores, scored.features[:, 1].astype(float) + model.trees.scores(scored.features))
    gradients, _ = ltr.Objective(canonical(scored))(canonical(scored).features[:, 1].astype(float), 0)
    first = model.trees.first(1)
    leaf = first.leaves(canonical(scored).features)[:, 0]
    assert all(np.sign(gradients[leaf == k].sum()) == np.sign(first.value[k]) for k in range(len(first.value)))
    ltr.save(model, tmp_path)
    assert np.array_equal(ltr.load(tmp_path).predict(scored.features), scores)
    found = ltr.certify(model.surface(scored.features), scored, "ndcg", epsilon=0.2, delta=0.2)
    assert found.value == pytest.approx(mean(model, scored, "ndcg"))
    scored.features[3, 1] = np.nan
    with pytest.raises(ValueError, match="base 'f2' has a missing or infinite value in row"):
        model.predict(scored.features)


def test_a_query_of_weight_two_is_a_query_seen_twice():
    train = make_queries(30, seed=8)
    weights = np.ones(30)
    weights[4] = 2.0
    twice = concatenate([train, replace(select(train, np.array([4])), keys=np.array([5], np.uint64))])
    model = ltr.LambdaMART(n_trees=3, n_leaves=4, min_docs_in_leaf=1, query_share=1.0, stop_on=None)
    weighted = model.fit(replace(train, weights=weights))
    assert weighted.predict(train.features) == pytest.approx(model.fit(twice).predict(train.features), abs=1e-6)
    assert weighted.digest == model.fit(shuffled(replace(train, weights=weights))).digest != model.fit(train).digest
    with pytest.raises(ValueError, match="weights: must be one number from 1e-15 to 1e15"):
        replace(train, weights=np.zeros(30))
    with pytest.raises(ValueError, match="document_weights: must be one number, 0 or from 1e-15 to 1e15, for each of the"):
        replace(train, document_weights=np.full(train.n_documents, 1e16))
    for weight in (1e-15, 1e15):
        every = replace(train, weights=np.full(30, weight), document_weights=np.full(train.n_documents, weight))
        assert model.fit(every).predict(train.features) == pytest.approx(model.fit(train).predict(train.features), abs=1e-6)


def test_three_tiers_with_missing_labels():
    """Judged, clicks and freshness, the last known for half of the documents: each term pushes its own measure."""
    train = make_queries(80, seed=6)
    rng = np.random.default_rng(1)
    fresh = np.where(rng.random(train.n_documents) < 0.5, np.nan, np.round(3 * (train.features[:, 3] > 0.3)))
    queries = replace(train, sources={**train.sources, "freshness": fresh})
    judged = ltr.LambdaMART(**SMALL, stop_on=None)
    tiers = replace(
        judged, objective=(Term("ndcg"), Term("cndcg", weight=0.2, pairs="same_label"), Term("ndcg:freshness", weight=0.3))
    )
    assert mean(tiers.fit(queries), queries, "ndcg:freshness") > mean(judged.fit(queries), queries, "ndcg:freshness") + 0.05
    assert mean(tiers.fit(queries), queries) > 0.6
    with pytest.raises(ValueError, match="no label source 'freshness'"):
        tiers.fit(train)
    with pytest.raises(ValueError, match=r"click labels are shares in \[0, 1\]; there is 3"):
        replace(judged, objective=(Term("cndcg:freshness"),)).fit(queries)


def test_rankings_do_not_depend_on_sigma_even_where_leaves_are_bounded():
    queries = make_queries(60, seed=4)
    model = ltr.LambdaMART(n_trees=12, n_leaves=8, min_docs_in_leaf=3, learning_rate=0.5, largest_leaf=0.4, stop_on=None)
    reference = model.fit(queries).predict(queries.features)
    assert not np.array_equal(replace(model, largest_leaf=10.0).fit(queries).predict(queries.features), reference)
    for sigma in (0.25, 2.0):
        assert np.array_equal(sigma * replace(model, sigma=sigma).fit(queries).predict(queries.features), reference)
    papers = replace(model, gain="least_squares", leaf="newton", l2=5.0)
    reference = papers.fit(queries).predict(queries.features)
    for sigma in (0.25, 2.0):
        own = replace(papers, sigma=sigma).fit(queries).predict(queries.features)
        assert np.array_equal(sigma * own, reference), "gains count documents, whatever sigma is"


# --- weights of documents -------------------------------------------------------------------------------------------------


def test_a_weight_multiplies_a_documents_own_gradient_and_hessian():
    """As in LightGBM, where leaves of one document each do not depend on weights either."""
    train = make_queries(40, seed=8)
    weights = np.random.default_rng(0).uniform(0.2, 3, train.n_documents)
    model = ltr.LambdaMART(n_trees=1, n_leaves=4, min_docs_in_leaf=5, query_share=1.0, feature_share=1.0, stop_on=None)
    fitted = model.fit(replace(train, document_weights=weights))
    gradient, hessian = model.objective_over(train)(np.zeros(train.n_documents), 0)
    leaf = fitted.trees.leaves(train.features)[:, 0]
    expected = np.bincount(leaf, weights * gradient) / np.bincount(leaf, weights * hessian)
    assert fitted.trees.value == pytest.approx(0.05 * expected, rel=1e-6)
    mixed = shuffled(replace(train, document_weights=weights))
    assert model.fit(mixed).digest == fitted.digest != model.fit(train).digest
    assert model.fit(replace(train, document_weights=np.ones(train.n_documents))).digest == model.fit(train).digest
    assert mixed.digest == replace(train, document_weights=weights).digest != train.digest


def test_rankers_without_a_use_for_weights_of_documents_refuse_them():
    train = make_queries(20, seed=8)
    weighted = replace(train, document_weights=np.ones(train.n_documents))
    with pytest.raises(ValueError, match=r"LeastSquares.fit: it does not support weights of documents; ltr.LambdaMART does"):
        ltr.LeastSquares().fit(weighted)
    for wrong in (np.ones(3), np.zeros(train.n_documents), -np.ones(train.n_documents)):
        with pytest.raises(ValueError, match="document_weights: must be one number, 0 or from 1e-15 to 1e15"):
            ltr.LambdaMART(n_trees=1).fit(replace(train, document_weights=wrong))
    rest = replace(train, document_weights=np.arange(train.n_documents) >= train.offsets[1])
    assert not select(rest, [0]).document_weights.any(), "a query without any weight is one among others"


# --- leaves again ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{}, {"gain": "least_squares", "leaf": "gradient", "l2": 2.0}, {"base": "f2", "sigma": 2.0}])
def test_leaves_again_on_the_same_queries_are_the_same_bytes(change):
    train = make_queries(50, seed=1)
    model = ltr.LambdaMART(**{**SMALL, **change}, stop_on=None).fit(train)
    again = model.refit_leaves(shuffled(train), keep=0.0)
    assert again.digest == model.digest
    assert model.refit_leaves(make_queries(20, seed=2), keep=1.0).digest == model.digest


def test_leaves_of_other_queries_keep_the_splits_and_a_share_of_the_old_values():
    train, other = make_queries(50, seed=1), make_queries(60, seed=9)
    other = replace(other, labels=4 - other.labels, document_weights=np.linspace(0.5, 2, other.n_documents))
    model = ltr.LambdaMART(**SMALL, stop_on=None).fit(train)
    halves = model.refit_leaves(other, keep=0.5)
    assert np.array_equal(halves.trees.threshold, model.trees.threshold)
    assert mean(model.refit_leaves(other, keep=0.0), other) > mean(halves, other) > mean(model, other)
    objective, scores = model.objective_over(other), np.zeros(other.n_documents)
    for k in range(model.trees.n_trees):
        tree, found = model.trees.between(k, k + 1), halves.trees.between(k, k + 1)
        gradient, hessian = (side * other.document_weights for side in objective(scores, k))
        for leaf in range(len(tree.value)):
            own = tree.leaves(other.features)[:, 0] == leaf
            new = 0.05 * np.clip(gradient[own].sum() / hessian[own].sum(), -10, 10) if own.any() else tree.value[leaf]
            assert found.value[leaf] == pytest.approx(0.5 * tree.value[leaf] + 0.5 * new, rel=1e-6)
        scores = scores + found.scores(other.features)
    assert halves.remarks == ("leaves refitted to 60 queries, keeping 0.5 of each",)


def towards_labels(scores, queries):
    """LightGBM's ``regression``."""
    return queries.labels - scores, np.ones(len(scores))


def test_leaves_again_are_lightgbms():
    lightgbm = pytest.importorskip("lightgbm")
    train, rng = make_queries(40, n_features=3, seed=4), np.random.default_rng(0)
    train, other = (replace(train, labels=np.abs(k * train.features[:, 0] + rng.normal(size=train.n_documents))) for k in (1, 2))
    ours = ltr.LambdaMART(
        objective=towards_labels, n_trees=5, n_leaves=5, min_docs_in_leaf=10, learning_rate=0.3, query_share=1.0, feature_share=1.0,
        stop_on=None,
    ).fit(train)  # fmt: skip
    settings = {"objective": "regression", "boost_from_average": False, "num_leaves": 5, "min_data_in_leaf": 10, "learning_rate": 0.3,
                "min_sum_hessian_in_leaf": 0, "min_data_in_bin": 1, "max_bin": 1000, "verbose": -1, "num_threads": 1}  # fmt: skip
    data = lightgbm.Dataset(train.features.astype(np.float64), train.labels, params=settings)
    theirs = lightgbm.train(settings, data, 5)
    assert ours.predict(train.features) == pytest.approx(theirs.predict(train.features), abs=1e-5)
    again = theirs.refit(other.features.astype(np.float64), other.labels, decay_rate=0.7)
    expected = again.predict(other.features)
    assert ours.refit_leaves(other, keep=0.7).predict(other.features) == pytest.approx(expected, abs=1e-5)


def test_leaves_that_cannot_be_refitted_are_named():
    train = make_queries(50, seed=1)
    model = ltr.LambdaMART(**SMALL).fit(train)
    for one, keep, says in (
        (model, 1.5, "keep=1.5 is out of range; it is a number from 0 to 1"),
        (ltr.LambdaMART(**SMALL, monotone={"f1": 1}).fit(train), 0.5, "leaves that move freely do not stay monotone"),
        (ltr.LambdaMART(), 0.5, "this model is not fitted"),
    ):
        with pytest.raises(ValueError, match=says):
            one.refit_leaves(train, keep=keep)
    with pytest.raises(ValueError, match="the queries have other features than the model"):
        model.refit_leaves(make_queries(20, n_features=3))


# --- features that may meet -----------------------------------------------------------------------------------------------


def paths(trees):
    """The set of features on each path from a root to a leaf."""
    for k in range(trees.n_trees):
        tree = trees.between(k, k + 1)
        waiting = [(0, frozenset())]
        while waiting:
            node, seen = waiting.pop()
            if node < 0:
                yield seen
                continue
            seen = seen | {int(tree.feature[node])}
            waiting += [(int(tree.left[node]), seen), (int(tree.right[node]), seen)]


GROUPS = [("f1", "f2"), ("f2", "f3", "f4")]


def interacting():
    """Labels that every product of two of five features explains."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(900, 5)).astype(np.float32)
    value = sum(features[:, a] * features[:, b] for a, b in itertools.combinations(range(5), 2)) + features.sum(axis=1)
    labels = np.searchsorted(np.quantile(value, [0.5, 0.7, 0.85, 0.95]), value).astype(float)
    return canonical(Queries(features, labels, np.arange(0, 901, 10)))


def test_features_of_different_groups_do_not_meet_on_a_path():
    train = interacting()
    settings = {**SMALL, "n_trees": 20, "n_leaves": 12}
    model = ltr.LambdaMART(**settings, interactions=GROUPS, stop_on=None)
    fitted = model.fit(train)
    allowed = [{0, 1}, {1, 2, 3}, {4}]
    found = [*paths(fitted.trees)]
    assert all(any(path <= group for group in allowed) for path in found)
    assert {4} in found, "a feature without a group stands alone"
    assert any(len(path) == 3 for path in found)
    free = replace(model, interactions=()).fit(train)
    assert not all(any(path <= group for group in allowed) for path in paths(free.trees))
    assert replace(model, interactions=[["f1", "f2", "f3", "f4", "f5"]]).fit(train).digest == free.digest
    assert model.fit(shuffled(train)).digest == fitted.digest


def test_groups_are_those_of_xgboost():
    """Splits by XGBoost's rule: the same trees on the same gradients, where XGBoost bins exactly and grows best first."""
    xgboost = pytest.importorskip("xgboost")
    train = interacting()
    few = np.round(train.features * 8) / 8
    train = canonical(Queries(few, train.labels, train.offsets))
    ours = ltr.LambdaMART(
        objective=towards_labels, interactions=GROUPS, n_trees=3, n_leaves=8, min_docs_in_leaf=1, learning_rate=0.3, query_share=1.0,
        feature_share=1.0, largest_leaf=1000.0, stop_on=None,
    ).fit(train)  # fmt: skip
    settings = {"objective": "reg:squarederror", "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": 8, "max_depth": 0,
                "eta": 0.3, "lambda": 0, "min_child_weight": 0, "max_bin": 1000, "base_score": 0.0, "nthread": 1,
                "interaction_constraints": "[[0, 1], [1, 2, 3]]"}  # fmt: skip
    theirs = xgboost.train(settings, xgboost.DMatrix(train.features, train.labels), 3)
    assert ours.predict(train.features) == pytest.approx(theirs.predict(xgboost.DMatrix(train.features)), abs=1e-4)


def test_groups_that_are_none_are_named(tmp_path):
    train = make_queries(30)
    for groups in ("f1", ["f1", "f2"], [[]], [[1, 2]]):
        with pytest.raises(ValueError, match=r"interactions=.*; give groups of feature names, such as"):
            ltr.LambdaMART(interactions=groups)
    with pytest.raises(ValueError, match="no feature 'f9' in this data set"):
        ltr.LambdaMART(**SMALL, interactions=[["f1", "f9"]]).fit(train)
    model = ltr.LambdaMART(**SMALL, interactions=GROUPS).fit(train)
    ltr.save(model, tmp_path)
    assert ltr.load(tmp_path).interactions == tuple(GROUPS)


def test_names_of_other_tools_are_answered_with_ours():
    of_estimators = {"ltr.Estimator(…, n_jobs=…)", "ltr.Estimator(…, verbose=…)"}
    for theirs, ours in ltr.LambdaMART.elsewhere.items():
        assert ours in ("", *ltr.LambdaMART().parameters, *of_estimators)
        told = rf"did you mean {re.escape(ours)}\?" if ours else "it has no equivalent here"
        with pytest.raises(TypeError, match=rf"LambdaMART: no parameter '{theirs}'; {told}"):
            ltr.LambdaMART(**{theirs: 1})
    page = (Path(__file__).parents[3] / "docs" / "coming-from.md").read_text()
    told = set(re.findall(r"\w+", page))
    synonyms = {"num_iterations", "num_boost_round", "num_trees", "max_leaves", "shrinkage_rate", "min_data_in_leaf", "lambda_l2",
                "feature_fraction", "early_stopping_round", "early_stopping", "min_split_loss", "boosting_type",
                "num_threads", "nthread", "thread_count", "verbosity", "verbose_eval"}  # fmt: skip
    assert set(ltr.LambdaMART.elsewhere) - synonyms <= told


def test_every_option_that_the_tables_of_other_tools_name_is_answered():
    page = (Path(__file__).parents[3] / "docs" / "coming-from.md").read_text()
    tables = page[page.index("## LightGBM") : page.index("## RankLib")]
    own = {*ltr.LambdaMART().parameters}
    values = {"dart", "rf", "goss", "lambdarank", "rank_xendcg", "rank", "topk", "ndcg", "position"}
    for theirs, here in re.findall(r"^\| ([^|]+) \| ([^|]+) \|", tables, re.MULTILINE):
        if here.strip() == "–" or {*re.findall(r"^`(\w+)", here)} & own:
            assert {*re.findall(r"`(\w+)", theirs)} - own - values <= {*ltr.LambdaMART.elsewhere}, theirs


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_weights_of_documents_are_lightgbms(seed):
    """Weights near 1, by which LightGBM estimates that a leaf of one document has one."""
    lightgbm = pytest.importorskip("lightgbm")
    train, rng = make_queries(40, n_features=3, seed=seed), np.random.default_rng(seed)
    labels, weights = np.abs(train.features[:, 0] + rng.normal(size=train.n_documents)), rng.uniform(0.7, 1.3, train.n_documents)
    ours = ltr.LambdaMART(
        objective=towards_labels, n_trees=4, n_leaves=5, min_docs_in_leaf=1, learning_rate=0.3, query_share=1.0, feature_share=1.0,
        stop_on=None,
    ).fit(replace(train, labels=labels, document_weights=weights))  # fmt: skip
    settings = {"objective": "regression", "boost_from_average": False, "num_leaves": 5, "min_data_in_leaf": 1, "learning_rate": 0.3,
                "min_sum_hessian_in_leaf": 0, "min_data_in_bin": 1, "max_bin": 1000, "verbose": -1, "num_threads": 1}  # fmt: skip
    data = lightgbm.Dataset(train.features.astype(np.float64), labels, weight=weights, params=settings)
    theirs = lightgbm.train(settings, data, 4)
    assert ours.predict(train.features) == pytest.approx(theirs.predict(train.features), abs=1e-6)


def categorised(n=4000, missing=0.0, seed=1) -> Queries:
    """A number with few digits, and a site of twelve that decides; labels of any size."""
    rng = np.random.default_rng(seed)
    site, number = rng.integers(0, 12, n), rng.normal(size=n).round(1)
    labels = np.abs(number + np.random.default_rng(9).normal(size=12)[site] + 0.5 * rng.normal(size=n))
    site = np.where(rng.random(n) < missing, np.nan, site)
    return Queries(np.column_stack([number, site]).astype(np.float32), labels, np.arange(0, n + 1, 20), names=("number", "site"))


@pytest.mark.parametrize(("smooth", "l2"), [(1e-9, 0.0), (5.0, 3.0)])
def test_splits_by_categories_are_lightgbms(smooth, l2):
    lightgbm = pytest.importorskip("lightgbm")
    queries = categorised()
    ours = ltr.LambdaMART(
        objective=towards_labels, n_trees=6, n_leaves=8, min_docs_in_leaf=20, learning_rate=0.3, query_share=1.0, feature_share=1.0, stop_on=None,
        categorical=["site"], cat_smooth=smooth, cat_l2=l2,
    ).fit(queries)  # fmt: skip
    settings = {"objective": "regression", "boost_from_average": False, "num_leaves": 8, "min_data_in_leaf": 20, "learning_rate": 0.3,
                "min_sum_hessian_in_leaf": 0, "min_data_in_bin": 1, "cat_smooth": smooth, "cat_l2": l2, "max_cat_threshold": 100,
                "max_cat_to_onehot": 1, "min_data_per_group": 1, "verbose": -1, "num_threads": 1}  # fmt: skip
    theirs = lightgbm.train(settings, lightgbm.Dataset(queries.features, queries.labels, categorical_feature=[1]), 6)
    assert np.count_nonzero(ours.trees.n_codes) >= 6
    assert ours.predict(queries.features) == pytest.approx(theirs.predict(queries.features), abs=1e-6)


def test_unknown_and_rare_categories_go_where_missing_ones_go():
    queries = categorised(missing=0.1)
    model = ltr.LambdaMART(n_trees=10, n_leaves=8, stop_on=None, categorical=["site"], cat_smooth=0.1, cat_l2=0.1, max_bins=9).fit(
        queries
    )
    rows = np.tile(queries.features[:1], (15, 1))
    rows[:, 1] = [*range(12), 99, -1, np.nan]
    scores = model.predict(rows)
    kept = np.unique(model.trees.codes)
    assert 1 < len(kept) <= 8
    assert len(np.unique(scores[[k for k in range(15) if rows[k, 1] not in kept]])) == 1
    assert len(np.unique(scores)) > 2


def test_a_training_by_categories_goes_on_is_refitted_and_is_kept(tmp_path):
    queries, valid = categorised(1000, 0.1), categorised(400, 0.1, seed=2)
    model = ltr.LambdaMART(n_trees=12, n_leaves=6, categorical=["site"], cat_smooth=1.0, cat_l2=1.0, stop_on=None)
    whole = model.fit(queries)
    assert model.fit(queries, start=replace(model, n_trees=5).fit(queries)).digest == whole.digest
    order = np.random.default_rng(0).permutation(queries.n_queries)
    assert model.fit(select(queries, order)).digest == whole.digest
    assert model.fit(ltr.Binned(queries, categorical=["site"])).digest == whole.digest
    again = whole.refit_leaves(queries, keep=0.0)
    assert replace(whole, query_share=1.0).fit(queries).refit_leaves(valid).predict(valid.features).shape == (400,)
    assert again.trees.codes.tolist() == whole.trees.codes.tolist()
    ltr.save(whole, tmp_path / "m")
    loaded = ltr.load(tmp_path / "m")
    assert loaded.predict(valid.features).tolist() == whole.predict(valid.features).tolist()
    assert loaded.categorical == ("site",)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"categorical": "site"}, "categorical='site'; give names of features, each once"),
        ({"categorical": ["site", "site"]}, "names of features, each once"),
        ({"categorical": ["site"], "monotone": {"site": 1}}, "'site' is categorical, and categories have no order"),
        ({"categorical": ["site"], "base": "site"}, "'site' is categorical, and categories have no order"),
        ({"cat_l2": -1}, "cat_l2=-1 is out of range"),
    ],
)
def test_what_cannot_be_categories_is_refused(options, says):
    with pytest.raises(ValueError, match=says):
        ltr.LambdaMART(**options)


def test_data_that_cannot_be_split_by_categories_are_refused():
    queries = categorised(200)
    with pytest.raises(ValueError, match="no feature 'shop'"):
        ltr.LambdaMART(categorical=["shop"]).fit(queries)
    with pytest.raises(ValueError, match=r"feature 'number' is categorical and has the value -?\d"):
        ltr.LambdaMART(categorical=["number"]).fit(queries)
    with pytest.raises(ValueError, match=r"categorical=\['site'\], but the queries were binned with \[\]"):
        ltr.LambdaMART(categorical=["site"]).fit(ltr.Binned(queries))
    sparse = Queries(csr_array(queries.features), queries.labels, queries.offsets, names=queries.names)
    with pytest.raises(ValueError, match="categorical features are not yet read from sparse ones"):
        ltr.LambdaMART(categorical=["site"]).fit(sparse)


def test_linear_gains_are_learned_from_whatever_the_convention_is():
    queries = make_queries(40, seed=2)
    by_name = ltr.LambdaMART(**SMALL, objective="linear_ndcg", normalise="query").fit(queries)
    by_rule = ltr.LambdaMART(**SMALL, objective="ndcg", normalise="query", conventions=ltr.Conventions(gain="linear")).fit(queries)
    assert by_name.digest == by_rule.digest
    assert by_name.digest != ltr.LambdaMART(**SMALL, normalise="query").fit(queries).digest


def test_features_that_are_not_drawn_are_not_summed(monkeypatch):
    """Each tree of a training sums histograms of its own draw alone, and of all where all are asked for."""
    summed = []

    def choose(self, columns, allowed):
        summed.append(len(columns) if allowed is None else int(allowed.sum()))
        return own(self, columns, allowed)

    own = HistogramBuffers.choose
    monkeypatch.setattr(HistogramBuffers, "choose", choose)
    train = make_queries(40, n_features=20, seed=2)
    for share, most in ((0.3, 6), (1.0, 20)):
        summed.clear()
        ltr.LambdaMART(n_trees=5, n_leaves=4, min_docs_in_leaf=4, feature_share=share, stop_on=None).fit(train)
        assert summed == [most] * 5


def test_pairs_count_by_nearness_from_so_many_documents_on(monkeypatch, tmp_path):
    queries = make_queries(40, seed=2)
    by_cost = {cost: ltr.LambdaMART(**SMALL, objective=(Term(cost=cost),)).fit(queries) for cost in ("logistic", "logistic_near")}
    small = ltr.LambdaMART(**SMALL).fit(queries)
    assert small == by_cost["logistic"]
    monkeypatch.setattr(lambdamart, "NEAR_FROM", queries.n_documents - 1)
    model = ltr.LambdaMART(**SMALL)
    large = model.fit(queries)
    assert large == by_cost["logistic_near"] != small
    ltr.save(large, tmp_path / "m")
    assert ltr.load(tmp_path / "m").terms == (Term(cost="logistic_near"),)
    assert model.go_on(replace(model, n_trees=5).fit(queries), queries).digest == large.digest
    assert large.fit(queries) == large
    two = (Term(weight=0.9), Term("map"))
    costs = {
        "by map too": ({"objective": "map"}, "logistic_near"),
        "normalised": ({"normalise": "query"}, "logistic_near"),
        "of a weight": ({"objective": (Term(weight=1.0),)}, "logistic_near"),
        "of pairs of a label": ({"objective": (Term(pairs="same_label"),)}, "logistic_near"),
        "of several terms": ({"objective": two}, "logistic_near"),
        "asked for": ({"objective": (Term(cost="logistic"),)}, "logistic"),
        "of leaves by the papers": ({"gain": "least_squares", "leaf": "gradient"}, "logistic"),
        "of another construction": ({"objective": (Term(construction="ranknet"),)}, "logistic"),
    }
    for name, (given, cost) in costs.items():
        fitted = ltr.LambdaMART(**{**SMALL, **given}).fit(queries)
        assert {term.cost for term in fitted.terms} == {cost}, name
        said = f"pair cost logistic_near, for {queries.n_documents} documents with graded labels"
        assert (said in fitted.remarks) == (cost == "logistic_near"), name
    monkeypatch.setattr(lambdamart, "NEAR_FROM", queries.n_documents)
    assert ltr.LambdaMART(**SMALL).fit(queries).terms[0].cost == "logistic"
    gone_on = model.fit(queries, start=replace(large, trees=large.trees.first(3)))
    assert gone_on.digest == large.digest
    assert "pair cost logistic_near, as the trees that it goes on from" in gone_on.remarks
    mixed = replace(model, objective=(Term(weight=0.7), Term("map", weight=0.3, cost="logistic_near")))
    begun = replace(mixed, n_trees=3).fit(queries)
    assert [term.cost for term in begun.terms] == ["logistic", "logistic_near"]
    assert not any("pair cost" in remark for remark in begun.remarks), "it was written"
    assert mixed.fit(queries, start=begun).digest == mixed.fit(queries).digest, "a cost that was written is not that of the others"
    papers = {"gain": "least_squares", "leaf": "gradient", "objective": (Term(cost="sigmoid"),), "n_trees": 3}
    steep = ltr.LambdaMART(**{**SMALL, **papers}).fit(queries)
    assert model.fit(queries, start=steep).terms[0].cost == "logistic", "a cost without a hessian is not taken over"
    monkeypatch.setattr(lambdamart, "NEAR_FROM", queries.n_documents - 1)
    unjudged = np.where(np.arange(queries.n_documents) == 0, np.nan, queries.labels)
    assert ltr.LambdaMART(**SMALL).fit(replace(queries, labels=unjudged)).terms[0].cost == "logistic", (
        "unjudged ones are not counted"
    )
    binary = np.minimum(queries.labels, 1.0)
    beside = replace(queries, labels=binary, sources={**queries.sources, "grade": queries.labels, "click": binary})
    read = {"ndcg": "logistic", "cndcg": "logistic", "ndcg:grade": "logistic_near"}
    for measure, cost in read.items():
        for data in (beside, replace(beside, labels=queries.labels) if measure == "cndcg" else beside):
            assert ltr.LambdaMART(**SMALL, objective=measure).fit(data).terms[0].cost == cost, measure
    clicks = replace(queries, labels=binary)
    monkeypatch.setattr(lambdamart, "NEAR_FROM", 1)
    assert ltr.LambdaMART(**SMALL).fit(clicks).terms[0].cost == "logistic", "labels of two values may be clicks"


def test_leaves_of_trees_that_came_without_a_cost_are_refitted_by_the_one_of_these_data(monkeypatch):
    queries = make_queries(40, seed=2)
    monkeypatch.setattr(lambdamart, "NEAR_FROM", queries.n_documents - 1)
    model = ltr.LambdaMART(**SMALL, stop_on=None).fit(queries)
    imported = replace(model, objective=(Term(),))
    assert imported.refit_leaves(queries, keep=0.0).digest == model.refit_leaves(queries, keep=0.0).digest


def test_a_leaf_of_documents_without_weight_is_not_refitted():
    queries = make_queries(60, n_features=4, seed=8)
    model = ltr.LambdaMART(n_trees=1, n_leaves=4, min_docs_in_leaf=5, query_share=1, feature_share=1).fit(queries)
    leaf = model.ensemble.leaves(queries.features)[:, 0]
    weights = np.where(leaf == 0, 0.0, np.random.default_rng(1).uniform(0.2, 5, queries.n_documents))
    again = model.refit_leaves(replace(queries, document_weights=weights), keep=0.5)
    changed = again.ensemble.value != model.ensemble.value
    assert not changed[0]
    assert changed[1:].all()


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_trees_are_grown_on_documents_that_somebody_judged(share):
    """Where others hold no rank either, as if these were not there; with their ranks, leaves still count judged ones alone."""
    queries = make_queries(80, n_features=4, seed=3)
    rng = np.random.default_rng(2)
    features = rng.integers(0, 9, queries.features.shape).astype(np.float32)
    judged = rng.random(queries.n_documents) < 0.5
    judged[queries.offsets[:-1]] = True
    whole = canonical(replace(queries, features=features, labels=np.where(judged, queries.labels, np.nan), keys=queries.keys))
    alone = keep_documents(whole, ~np.isnan(whole.labels))
    rules = ltr.Conventions(unlabelled="condensed")
    model = ltr.LambdaMART(n_trees=8, min_docs_in_leaf=20, query_share=share, conventions=rules)
    first, second = (model.fit(some).ensemble for some in (whole, alone))
    for name in ("feature", "threshold", "left", "right", "documents"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name
    assert first.value == pytest.approx(second.value, rel=1e-5, abs=1e-8)
    assert first.documents.min() >= 20
    with_ranks = replace(model, conventions=ltr.Conventions()).fit(whole).ensemble
    assert with_ranks.documents.min() >= 20
    assert with_ranks.between(0, 1).documents.sum() <= alone.n_documents
    few = replace(whole, labels=np.where(np.arange(whole.n_documents) < 30, whole.labels, np.nan))
    with pytest.raises(ValueError, match=r"\d+ documents cannot make two leaves of min_docs_in_leaf=20"):
        model.fit(few)


@pytest.mark.parametrize(("gain", "leaf"), [("newton", "newton"), ("least_squares", "gradient")])
def test_leaves_refitted_on_the_same_queries_stay_where_nobody_judged_some(gain, leaf):
    queries = make_queries(80, n_features=4, seed=8)
    holes = np.random.default_rng(1).random(queries.n_documents) < 0.4
    queries = replace(queries, labels=np.where(holes, np.nan, queries.labels))
    model = ltr.LambdaMART(n_trees=4, n_leaves=6, min_docs_in_leaf=5, query_share=1, gain=gain, leaf=leaf, stop_on=None).fit(
        queries
    )
    again = model.refit_leaves(queries, keep=0.0)
    assert np.array_equal(again.ensemble.value, model.ensemble.value)
    nobody = model.ensemble.leaves(queries.features)[:, 0] == 0
    kept = model.refit_leaves(replace(queries, labels=np.where(nobody, np.nan, queries.labels)), keep=0.0).ensemble.value
    assert kept[0] == model.ensemble.value[0], "no judged document falls there"


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "two_class", "objective": "map"},
        {"loss": "balanced", "objective": "map", "gain": "least_squares", "leaf": "gradient"},
        {"unbiased": "pairwise"},
        {"unbiased": "additive"},
        {"unbiased": ltr.Unbiased("ipw", propensities=tuple(1 / np.arange(1, 31)))},
        {"objective": ltr.Term("ndcg", pairs="same_label")},
    ],
    ids=str,
)
def test_documents_that_are_left_out_are_as_if_they_were_not_there(options):
    queries = make_queries(50, n_features=4, seed=5)
    rng = np.random.default_rng(3)
    features = rng.integers(0, 6, queries.features.shape).astype(np.float32)
    labels = np.where(rng.random(queries.n_documents) < 0.35, np.nan, queries.labels)
    rank = np.arange(queries.n_documents) - np.repeat(queries.offsets[:-1], np.diff(queries.offsets)) + 1.0
    sources = {"position": np.where(np.isnan(labels), np.nan, rank)}
    whole = canonical(replace(queries, features=features, labels=labels, sources=sources, keys=queries.keys))
    rules = ltr.Conventions(unlabelled="condensed", threshold=1)
    model = ltr.LambdaMART(n_trees=5, min_docs_in_leaf=5, stop_on=None, conventions=rules, **options)
    with_them, without = (model.fit(some).predict(features) for some in (whole, keep_documents(whole, ~np.isnan(whole.labels))))
    assert np.abs(with_them - without).max() < 1e-5


def test_rankings_by_categories_do_not_depend_on_sigma():
    """What is added to their hessians is in its unit too."""
    queries = categorised(400)
    queries = replace(queries, labels=np.minimum(np.floor(queries.labels), 4))
    model = ltr.LambdaMART(n_trees=8, n_leaves=6, min_docs_in_leaf=5, learning_rate=0.5, categorical=["site"], stop_on=None)
    for change in ({"cat_smooth": 0.0, "cat_l2": 2.0}, {"cat_smooth": 2.0, "cat_l2": 0.0}):
        own = replace(model, **change)
        fitted = own.fit(queries)
        assert fitted.trees.n_codes.any()
        assert not np.array_equal(
            fitted.predict(queries.features), replace(own, cat_smooth=0.0, cat_l2=0.0).fit(queries).predict(queries.features)
        )
        for sigma in (0.25, 2.0):
            scaled = replace(own, sigma=sigma).fit(queries).predict(queries.features)
            assert np.array_equal(sigma * scaled, fitted.predict(queries.features))


@pytest.mark.parametrize(("share", "n", "drawn"), [(0.5, 8, 4), (0.27, 10, 3), (0.1, 3, 1), (0.34, 5, 2)])
def test_a_share_of_the_features_is_the_nearest_number_of_them(share, n, drawn):
    model = ltr.LambdaMART(feature_share=share)
    draws = [model._drawn(n, iteration) for iteration in range(20)]
    assert {int(allowed.sum()) for allowed in draws} == {drawn}
    assert len({allowed.tobytes() for allowed in draws}) > 1


INTERRUPTED = """
import gc, signal
import numpy as np
import ltr

class Late(Exception):
    pass

def late(*_):
    raise Late

rng = np.random.default_rng(0)
queries = ltr.Queries(rng.normal(size=(6000, 5)), rng.integers(0, 4, 6000), np.arange(0, 6001, 10))
ltr.LambdaMART(n_trees=2, patience=0).fit(queries)
gc.collect()  # what numba compiled with is gone: an exception from within its destructors would be swallowed
signal.signal(signal.SIGALRM, late)
for _ in range(6):
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        ltr.LambdaMART(n_trees=100_000, patience=0).fit(queries)
    except Late:
        print("late")
"""


@pytest.mark.skipif(not JIT, reason="only compiled code hands arrays over")
def test_a_fit_that_is_interrupted_raises_what_the_handler_raises():
    """Where a kernel hands arrays over to Python the process ended with SIGSEGV, in six of ten interruptions."""
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False, timeout=100)
    assert (ran.returncode, ran.stdout.split()) == (0, 6 * ["late"]), ran.stderr
