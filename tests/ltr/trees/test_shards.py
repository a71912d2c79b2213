"""Queries in several parts: the same edges, the same model as of all of them at once, and what is refused."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, BrokenBarrierError

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries, canonical, select
from ltr.kernels.machines import Machines
from ltr.objectives.terms import Term
from ltr.trees import binning, lambdamart, partition
from ltr.trees.shards import Shard, ShardLost
from tests.conftest import JIT, make_queries
from tests.ltr.data.test_queries import shuffled

SMALL = {"n_trees": 12, "n_leaves": 7, "min_docs_in_leaf": 9}
TERMS = (Term("ndcg_5"), Term("map", weight=0.3, cost="logistic_near"), Term("cndcg", weight=0.2, pairs="same_label"))

MODELS = {
    "plain": {},
    "terms": {"objective": TERMS, "normalise": "query"},
    "drawn": {"query_share": 0.6, "feature_share": 0.5},
    "stopping": {"n_trees": 40, "learning_rate": 0.7, "patience": 4},
    "gradient": {"gain": "least_squares", "leaf": "gradient"},
    "monotone": {"monotone": {"f1": 1, "f2": -1}, "max_bins": 16},
    "interactions": {"interactions": [["f1", "f2"], ["f2", "f3", "f9"]], "n_leaves": 12, "l2": 0.5},
    "large": {"n_leaves": 40, "min_docs_in_leaf": 2, "n_trees": 6},
    "two classes": {"loss": "two_class"},
    "balanced": {"loss": "balanced", "objective": (Term("map"),)},
    "from a base": {"base": "f3", "min_docs_in_leaf": 25},
    "everything": {"objective": TERMS, "query_share": 0.7, "feature_share": 0.6, "min_docs_in_leaf": 30, "patience": 5},
}


def data(n_queries=90, seed=1) -> Queries:
    """Coarse, fine and missing features, and weights."""
    queries = make_queries(n_queries, n_features=18, seed=seed, largest=14)
    features, rng = queries.features.copy(), np.random.default_rng(seed)
    features[rng.random(len(features)) < 0.3, 1] = np.nan
    features[:, 3] = np.round(features[:, 3] * 3)
    features[:, 4] = np.nan
    features[:, 5] = 0.0
    features[rng.random(len(features)) < 0.5, 17] = -0.0
    return canonical(replace(queries, features=features, weights=rng.integers(1, 4, n_queries) / 2))


def split(queries: Queries, n: int) -> list[Queries]:
    """`n` parts of very different sizes, the queries dealt at random, rows in any order."""
    rng = np.random.default_rng(n)
    cuts = np.sort(rng.choice(np.arange(1, queries.n_queries), n - 1, replace=False))
    return [shuffled(select(queries, own), n) for own in np.split(rng.permutation(queries.n_queries), cuts)]


def parts_of(model, queries, n):
    return [Shard(model, part) for part in split(queries, n)]


def asking(shards, exchanged=None):
    """`Ask` over shards of this process, each with a thread, that meet to exchange arrays; `exchanged` notes the bytes that the first one sends."""
    n, meeting = len(shards), Barrier(len(shards))
    boxes = [[None] * n for _ in range(n)]

    def machine(place):
        def exchange(sent):
            for to, array in enumerate(sent):
                assert array.dtype == np.int64
                boxes[to][place] = array.copy()
            if place == 0 and exchanged is not None:
                exchanged.append(sum(array.nbytes for array in sent[1:]))
            meeting.wait()
            received = list(boxes[place])
            meeting.wait()
            return received

        return Machines(place, n, exchange)

    for place, shard in enumerate(shards):
        shard.machines = machine(place)

    def answer(shard, question, arguments):
        try:
            return shard.answer(question, *arguments)
        except BaseException as error:
            meeting.abort()
            return error

    def ask(question, *arguments):
        with ThreadPoolExecutor(n) as threads:
            answers = list(threads.map(lambda shard: answer(shard, question, arguments), shards))
        meeting.reset()
        failed = [error for error in answers if isinstance(error, BaseException)]
        for error in sorted(failed, key=lambda error: isinstance(error, BrokenBarrierError)):
            raise error
        return answers

    return ask


@pytest.mark.parametrize("max_bins", [2, 16, 255, np.resize([2, 255, 3, 40], 10)])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_edges_of_parts_are_those_of_the_whole(n, max_bins):
    rng = np.random.default_rng(7)
    queries = data(300 if JIT else 60)
    features = queries.features.copy()
    features[:, 6] = np.exp(8 * features[:, 6])
    features[:, 7] = rng.choice(np.nextafter(np.float32(1), np.float32(rng.integers(0, 3, 20))), len(features))
    features[:, 8] = rng.integers(-150, 150, len(features))
    features[:, 9] = rng.choice([-1e-45, 0.0, -0.0, 1e-45, 3e38, -3e38], len(features)).astype(np.float32)
    queries = replace(queries, features=features)
    max_bins = np.resize(max_bins, features.shape[1])
    answers, asked = asking(parts_of(ltr.LambdaMART(), queries, n)), []

    def ask(question, *arguments):
        asked.append(question)
        return answers(question, *arguments)

    whole, found = binning.find_bins(features, max_bins), binning.find_bins_by(ask, features.shape[1], max_bins)
    assert asked.count("not_above") <= (0 if n == 1 else 32 * 2)
    assert found.starts.tolist() == whole.starts.tolist()
    assert found.edges.tobytes() == whole.edges.tobytes()


@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.long), 4])
@pytest.mark.parametrize("name", MODELS)
def test_one_digest_for_any_parts(name, n):
    train, valid = data(), data(30, seed=2)
    model = ltr.LambdaMART(**{**SMALL, **MODELS[name]})
    if model.base:
        train, valid = (replace(q, features=np.nan_to_num(q.features)) for q in (train, valid))
    reference = model.fit(train, valid)
    found = model.fit_shards(asking(parts_of(model, train, n)), valid)
    assert found.digest == reference.digest
    assert len(found.curve.valid) > 4
    assert found.curve.valid.tolist() == reference.curve.valid.tolist()
    assert found.curve.train.tobytes() == reference.curve.train.tobytes()
    assert found.remarks == reference.remarks
    whole = replace(model, stop_on=None)
    everything = whole.fit_shards(asking(parts_of(whole, train, n)))
    assert everything.digest == whole.fit(train).digest
    assert everything.trees.n_trees == whole.n_trees


def test_the_minimum_of_documents_is_counted_over_all_parts(monkeypatch):
    """Hessian apart from counts: sides that look large enough are not, and features are counted before they win."""
    train = data()
    weights = np.where(np.arange(train.n_queries) < 30, 1e-3, 1.0)
    train = replace(train, weights=weights)
    model = ltr.LambdaMART(n_trees=5, n_leaves=16, min_docs_in_leaf=40, stop_on=None)
    counted, whole = [], model.fit(train)
    split, subtract, in_bins = partition.questions()
    monkeypatch.setattr(partition, "questions", lambda: (split, subtract, lambda *of: (counted.append(1), in_bins(*of))[1]))
    found = model.fit_shards(asking(parts_of(model, train, 3)))
    assert found.digest == whole.digest
    assert found.trees.documents.min() >= 40
    assert counted


def test_parts_hold_memory_for_the_leaves_that_all_documents_can_fill():
    train = make_queries(12, seed=2)
    model = ltr.LambdaMART(n_trees=2, n_leaves=1000, min_docs_in_leaf=4, stop_on=None)
    shards = parts_of(model, train, 3)
    assert model.fit_shards(asking(shards)).digest == model.fit(train).digest
    assert {len(shard.data.histograms) for shard in shards} == {2 * (train.n_documents // 4)}


def test_pairs_count_by_nearness_where_all_parts_have_so_many_documents(monkeypatch):
    train, model = make_queries(40, seed=3), ltr.LambdaMART(n_trees=4, n_leaves=5, min_docs_in_leaf=5)
    monkeypatch.setattr(lambdamart, "NEAR_FROM", train.n_documents // 3)
    whole, found = model.fit(train), model.fit_shards(asking(parts_of(model, train, 3)))
    assert whole.terms[0].cost == found.terms[0].cost == "logistic_near"
    odd = np.arange(train.n_queries) % 2 == 1
    clicks = np.minimum(train.labels, 1.0) * (1.0 + np.repeat(odd, np.diff(train.offsets)))
    halves = [select(replace(train, labels=clicks), np.flatnonzero(half)) for half in (odd, ~odd)]
    assert [len(Shard(model, half).graded[1]) for half in halves] == [2, 2]
    assert model.fit_shards(asking([Shard(model, half) for half in halves])).terms[0].cost == "logistic_near", "0, 1 and 2 in all"
    assert model.fit_shards(asking(parts_of(model, halves[0], 2))).terms[0].cost == "logistic"
    assert whole.digest == found.digest != replace(model, objective=(Term(cost="logistic"),)).fit(train).digest


@pytest.mark.parametrize("judged", ["half", "all but one query", "a quarter", "none"])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_part_of_which_nothing_was_judged_only_has_scores(judged, share):
    queries = make_queries(40, seed=4)
    first = {"half": 20, "all but one query": 39, "a quarter": 10, "none": 0}[judged]
    known = np.repeat(np.arange(40) < first, np.diff(queries.offsets))
    queries = replace(queries, labels=np.where(known, queries.labels, np.nan))
    model = ltr.LambdaMART(n_trees=6, n_leaves=4, min_docs_in_leaf=2, query_share=share, stop_on=None)
    whole = model.fit(queries)
    assert whole.trees.n_trees == (0 if judged == "none" else 6)
    for n in (2, 3, 5):
        parts = [Shard(model, select(queries, rows)) for rows in np.array_split(np.arange(40), n)]
        found = model.fit_shards(asking(parts))
        assert (found.digest, found.remarks) == (whole.digest, whole.remarks)


def test_nothing_to_learn_stops_with_the_same_word():
    train = data(40)
    flat = replace(train, labels=np.ones(train.n_documents))
    model = ltr.LambdaMART(**SMALL, stop_on=None)
    assert model.fit_shards(asking(parts_of(model, flat, 2))).remarks == ("stopped after 0 trees: all gradients are zero",)
    alike = replace(train, features=np.zeros_like(train.features))
    assert model.fit_shards(asking(parts_of(model, alike, 2))).remarks == ("stopped after 0 trees: no split is admissible",)


def test_a_lost_part_leaves_the_trees_so_far_to_go_on_from():
    train, valid = data(), data(30, seed=2)
    model = ltr.LambdaMART(**SMALL)
    answers, steps = asking(parts_of(model, train, 2)), []

    def ask(question, *arguments):
        steps.extend([question] * (question == "step"))
        if len(steps) == 4:
            raise ShardLost("part 1 is lost")
        return answers(question, *arguments)

    with pytest.raises(ShardLost) as lost:
        model.fit_shards(ask, valid)
    assert lost.value.so_far.trees.n_trees == 3
    resumed = model.fit_shards(asking(parts_of(model, train, 4)), valid, start=lost.value.so_far)
    assert resumed.digest == model.fit(train, valid).digest


def test_what_does_not_belong_together_is_refused():
    train = data(40)
    model = ltr.LambdaMART(**SMALL)
    one, other = split(train, 2)
    with pytest.raises(ValueError, match="a query is in two of the parts"):
        model.fit_shards(asking([Shard(model, one), Shard(model, one)]))
    renamed = replace(other, names=tuple(f"g{k}" for k in range(18)))
    with pytest.raises(ValueError, match="the parts have different features"):
        model.fit_shards(asking([Shard(model, one), Shard(model, renamed)]))
    infinite = replace(other, features=np.where(np.arange(18) == 16, np.inf, other.features))
    with pytest.raises(ValueError, match="feature 'f17' has an infinite value"):
        model.fit_shards(asking([Shard(model, one), Shard(model, infinite)]))
    with pytest.raises(ValueError, match="cannot make two leaves"):
        replace(model, min_docs_in_leaf=10_000).fit_shards(asking(parts_of(model, train, 2)))
    unclicked = replace(train, labels=np.zeros(train.n_documents))
    two = replace(model, loss="two_class")
    with pytest.raises(ValueError, match="0 documents are relevant"):
        two.fit_shards(asking(parts_of(two, unclicked, 2)))


def test_features_are_binned_where_they_lie():
    queries = shuffled(make_queries(20))
    model = ltr.LambdaMART(n_trees=3, min_docs_in_leaf=5)
    assert Shard(model, queries).features is queries.features
    assert model.fit(queries).digest == model.fit(canonical(queries)).digest


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(
    "more", [{}, {"gain": "least_squares", "leaf": "gradient"}, {"min_docs_in_leaf": 25, "max_bins": 12}], ids=str
)
def test_parts_agree_about_categories(n, more):
    queries = data(60)
    features = queries.features.copy()
    rng = np.random.default_rng(3)
    features[:, 4] = rng.choice(40, len(features), p=np.arange(1, 41) / 820)
    features[:, 4][rng.random(len(features)) < 0.1] = np.nan
    train = replace(queries, features=features, labels=np.clip(queries.labels + (features[:, 4] % 3 == 0), 0, 4))
    name = train.names[4]
    model = ltr.LambdaMART(**{**SMALL, "stop_on": None, "categorical": [name], "cat_smooth": 1.0, "cat_l2": 1.0, **more})
    whole = model.fit(train)
    assert len(whole.trees.codes)
    assert model.fit_shards(asking(parts_of(model, train, n))).digest == whole.digest


def test_a_draw_without_a_split_is_not_the_end_in_parts_either():
    rng = np.random.default_rng(0)
    features = np.zeros((1000, 10), np.float32)
    features[:, 3] = rng.normal(size=1000)
    labels = np.clip(np.round(features[:, 3] + 0.5 * rng.normal(size=1000) + 1), 0, 4)
    queries = canonical(Queries(features, labels, np.arange(0, 1001, 10)))
    model = ltr.LambdaMART(n_trees=10, n_leaves=4, stop_on=None)
    found = model.fit_shards(asking(parts_of(model, queries, 2)))
    assert found.trees.n_trees == 10
    assert found.digest == model.fit(queries).digest


@pytest.mark.timeout(120)
def test_categories_without_a_gradient_end_no_later_in_parts():
    column = np.concatenate((np.tile([0.0] * 2 + [1] * 4 + [np.nan] * 4, 10), np.full(100, 2.0)))
    labels = np.concatenate((np.tile([3.0] * 2 + [0] * 8, 10), np.zeros(100)))
    queries = canonical(Queries(column[:, None], labels, np.arange(0, 201, 10)))
    whole = {"stop_on": None, "query_share": 1.0, "feature_share": 1.0}
    model = ltr.LambdaMART(n_trees=3, n_leaves=4, categorical=["f1"], min_docs_in_leaf=30, **whole)
    assert model.fit_shards(asking(parts_of(model, queries, 2))).digest == model.fit(queries).digest
