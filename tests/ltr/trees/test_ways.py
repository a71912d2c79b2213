"""Trees that take position bias out of clicks, over pages in several parts: one model however they are divided, interrupted or not."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import select
from ltr.objectives.shown import ONLY_FEATURES
from ltr.objectives.unbiased import Unbiased
from ltr.rankers.fair_pages import TOLD
from ltr.rankers.verdict import NAIVE
from ltr.trees import lambdamart
from ltr.trees.regression_em import TREES
from ltr.trees.shards import Shard, ShardLost
from tests.ltr.objectives.test_unbiased import FEWER, LOOKS, SMALL, judged, needs_jit, pages
from tests.ltr.trees.test_shards import asking, parts_of

EM = Unbiased("ipw", estimate="regression_em", least=0.01)
HOWS = {
    "pairwise": Unbiased("pairwise"), "believing pairs": Unbiased("pairwise", regularisation=0.0), "additive": Unbiased("additive"),
    "given": Unbiased("ipw", propensities=tuple(LOOKS)), "interventions": Unbiased("ipw"), "regression_em": EM,
}  # fmt: skip


@pytest.fixture
def few_rounds(monkeypatch):
    """Of expectation maximisation, as many as tell that it is the same."""
    monkeypatch.setitem(TREES, "n_trees", 20)


def weighted_pages():
    """Some pages count more, some documents less, and one page goes deeper than all others."""
    queries, rng = pages(n_queries=30, per_query=3), np.random.default_rng(0)
    ranks = queries.sources["position"].copy()
    ranks[ranks == 8] = np.where(np.arange((ranks == 8).sum()) == 7, 8, np.nan)
    labels = np.where(np.isnan(ranks), np.nan, queries.labels)
    weights = {"weights": rng.integers(1, 4, queries.n_queries) / 2, "document_weights": rng.uniform(0.5, 2, queries.n_documents)}
    return replace(queries, labels=labels, sources={"position": ranks}, **weights)


@needs_jit
@pytest.mark.parametrize("name", HOWS)
def test_one_digest_for_any_parts(name, few_rounds):
    model = ltr.LambdaMART(**{**SMALL, "query_share": 0.8}, **FEWER, unbiased=HOWS[name])
    for train, counts in ((pages(n_queries=30, per_query=3), (1, 2)), (weighted_pages(), (3,))):
        reference = model.fit(train)
        for n in counts:
            found = model.fit_shards(asking(parts_of(model, train, n)))
            assert found.digest == reference.digest
            assert np.array_equal(found.biases, reference.biases)
            assert found.remarks == reference.remarks
    assert found.biases.shape[2] == 8


@needs_jit
@pytest.mark.parametrize("name", ["pairwise", "additive", "regression_em"])
def test_a_lost_part_leaves_what_was_learned_to_go_on_from(name, few_rounds):
    train, valid = pages(n_queries=30, per_query=3), judged(2, 20)
    model = ltr.LambdaMART(**{**SMALL, "stop_on": "ndcg@3"}, **FEWER, unbiased=HOWS[name])
    answers, asked, found = asking(parts_of(model, train, 2)), [], {}

    def ask(question, *arguments):
        asked.append((question, arguments))
        if len([of for question, of in asked if question == "step" and of[1].n_leaves == SMALL["n_leaves"]]) == 5:
            raise ShardLost("part 1 is lost")
        return answers(question, *arguments)

    with pytest.raises(ShardLost) as lost:
        model.fit_shards(ask, valid, looks=found)
    assert lost.value.so_far.trees.n_trees == 4
    assert list(found) == ([EM] if name == "regression_em" else [])
    again, questions = asking(parts_of(model, train, 3)), []
    resumed = model.fit_shards(
        lambda *asked: (questions.append(asked[0]), again(*asked))[1], valid, start=lost.value.so_far, looks=found
    )
    assert questions.count("step") == FEWER["n_trees"] - 4
    reference = model.fit(train, valid)
    assert resumed.digest == reference.digest
    assert np.array_equal(resumed.biases, reference.biases)
    assert resumed.remarks == reference.remarks
    assert resumed.curve.valid.tolist() == reference.curve.valid.tolist()


@needs_jit
def test_what_is_lost_before_the_first_tree_is_no_model(few_rounds):
    train = pages(n_queries=30, per_query=3)
    model = ltr.LambdaMART(**SMALL, **FEWER, unbiased=EM)
    answers = asking(parts_of(model, train, 2))

    def ask(question, *arguments):
        if question == "step" and arguments[0] == 15:
            raise ShardLost("part 1 is lost")
        return answers(question, *arguments)

    with pytest.raises(ShardLost) as lost:
        model.fit_shards(ask)
    assert lost.value.so_far is None
    begun = replace(model, n_trees=3).fit(train)
    assert model.fit_shards(asking(parts_of(model, train, 2)), start=begun).digest == model.fit(train).digest


@needs_jit
def test_a_choice_that_was_interrupted_trains_no_way_twice():
    train, valid = pages(n_queries=30, per_query=3), judged(2)
    model = ltr.LambdaMART(**{**SMALL, **FEWER, "n_trees": 4}, unbiased="auto")
    answers, steps, finished, start = asking(parts_of(model, train, 2)), [], {}, None

    def ask(question, *arguments):
        if question == "step":
            steps.append(arguments[0])
            if len(steps) in (7, 12):
                raise ShardLost("part 1 is lost")
        return answers(question, *arguments)

    for kept in ([NAIVE], [NAIVE, "ipw"]):
        with pytest.raises(ShardLost) as lost:
            model.fit_shards(ask, valid, start=start, finished=finished)
        assert list(finished) == kept
        start = lost.value.so_far
        assert start.unbiased == ltr.Unbiased(("ipw", "pairwise")[len(kept) - 1])
    found = model.fit_shards(ask, valid, start=start, finished=finished)
    assert steps == [0, 1, 2, 3, 0, 1, 2, 2, 3, 0, 1, 2, 2, 3, 0, 1, 2, 3]
    reference = model.fit(train, valid)
    assert found.digest == reference.digest
    assert found.remarks == reference.remarks


@needs_jit
@pytest.mark.parametrize("by_clicks", [False, True])
def test_parts_choose_the_way_that_all_pages_choose(by_clicks):
    train, valid = pages(n_queries=30, per_query=3), pages(n_queries=20, per_query=4) if by_clicks else judged(2)
    model = ltr.LambdaMART(**{**SMALL, **FEWER, "n_trees": 4}, unbiased="auto")
    reference = model.fit(train, valid)
    found = model.fit_shards(asking(parts_of(model, train, 2)), valid)
    assert found.digest == reference.digest
    assert found.unbiased == reference.unbiased
    assert found.remarks == reference.remarks


@needs_jit
def test_the_largest_label_is_that_of_all_parts():
    """It was the third smallest, by which clicks on validation pages were judgments."""
    train, valid = pages(n_queries=30, per_query=3), pages(n_queries=20, per_query=4)
    rank = np.arange(train.n_documents)
    train = replace(train, labels=np.where(train.labels > 0, 1 + rank % 4, 0.0))
    valid = replace(valid, labels=4 * valid.labels)
    model = ltr.LambdaMART(**{**SMALL, **FEWER, "n_trees": 3, "stop_on": "ndcg_10"}, unbiased="additive")
    whole, parts = model.fit(train, valid), model.fit_shards(asking(parts_of(model, train, 2)), valid)
    assert TOLD in whole.remarks
    assert parts.remarks == whole.remarks
    assert parts.digest == whole.digest


def test_parts_say_where_features_alone_tell_documents_from_ranks():
    train = pages(jitter=0.0, n_queries=8, per_query=2)
    model = ltr.LambdaMART(**{**SMALL, "min_docs_in_leaf": 5, "n_trees": 2}, unbiased="additive")
    assert model.fit_shards(asking(parts_of(model, train, 2))).remarks[-1] == ONLY_FEATURES


def test_what_one_part_has_wrong_is_told():
    train = pages(n_queries=8, per_query=2)
    ranks = train.sources["position"].copy()
    ranks[99] = 0.0
    wrong = replace(train, sources={"position": ranks})
    halves = [select(wrong, np.arange(half, half + 8)) for half in (0, 8)]
    for kind in ("pairwise", "additive", "ipw"):
        model = ltr.LambdaMART(**SMALL, n_trees=2, unbiased=kind)
        with pytest.raises(ValueError, match=r"unbiased: document 99 has the position 0"):
            model.fit_shards(asking([Shard(model, half) for half in halves]))
    model = ltr.LambdaMART(**SMALL, n_trees=2, unbiased=EM)
    unclicked = replace(train, labels=np.zeros(train.n_documents))
    with pytest.raises(ValueError, match="no click in the log"):
        model.fit_shards(asking(parts_of(model, unclicked, 2)))


@needs_jit
def test_all_ways_of_auto_learn_by_one_cost(monkeypatch):
    """What is compared is the way alone, also of pages with labels of three values."""
    trained, costs = ltr.LambdaMART._trained, {}

    def watched(self, *given):
        fitted = trained(self, *given)
        costs[self.unbiased and self.unbiased.kind] = fitted.terms[0].cost
        return fitted

    monkeypatch.setattr(lambdamart, "NEAR_FROM", 1)
    monkeypatch.setattr(ltr.LambdaMART, "_trained", watched)
    shown = pages(n_queries=30, per_query=3)
    for labels, cost in ((shown.labels, "logistic"), (shown.labels * (1 + np.arange(shown.n_documents) % 2), "logistic_near")):
        ltr.LambdaMART(**SMALL, **FEWER, unbiased="auto").fit(replace(shown, labels=labels), judged(2, 20))
        assert costs == dict.fromkeys((None, "pairwise", "additive", "ipw"), cost)
