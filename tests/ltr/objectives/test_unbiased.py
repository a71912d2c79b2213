"""Position bias: one iteration by brute force, what was put into clicks is found again, and one model for one set of pages."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries, keep
from ltr.data.synthetic import World, clicked_pages
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.preferences import Preferences
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import LEAST_SHARE, AdditiveObjective, InverseObjective, PairwiseObjective, Unbiased, in_words
from tests.conftest import JIT
from tests.ltr.data.test_queries import shuffled

LOOKS = np.array([1, 0.6, 0.4, 0.3, 0.2, 0.15, 0.1, 0.08])
MORE, FEWER = {"n_trees": 40, "learning_rate": 0.15}, {"n_trees": 8, "learning_rate": 0.15}
SMALL = {"n_leaves": 8, "stop_on": None, "query_share": 1.0, "feature_share": 1.0, "min_docs_in_leaf": 10}
KINDS = ("pairwise", "additive", "ipw")
needs_jit = pytest.mark.skipif(not JIT, reason="too slow without the JIT")


@cache
def judged(stream: int, n_queries: int = 100) -> Queries:
    return World(n_features=8, n_monomials=10, active=4, seed=3).queries(n_queries, 12, stream)[0]


@cache
def pages(jitter: float = 1.0, bias: bool = True, n_queries: int = 100, per_query: int = 12) -> Queries:
    """Pages that a feature has ordered, and labels a little."""
    queries = judged(1, n_queries)
    old = queries.features[:, 0].astype(np.float64) + 0.3 * queries.labels
    return clicked_pages(queries, old, per_query, LOOKS if bias else np.ones(8), jitter=jitter)


def value(model, measure="ndcg_10"):
    test = judged(2)
    return np.nanmean(ltr.evaluate(test.labels, model.predict(test.features), test.offsets, [measure])[measure])


def by_hand(queries, term, scores, upper, lower):
    """Gradient, hessian and the costs of upper and lower documents, pair by pair, of NDCG: gain 2^l − 1, discount 1/log₂(1 + rank)."""
    found = np.zeros((4, len(scores)))
    place = queries.sources["position"].astype(int) - 1
    for first, last in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        gains = 2.0 ** queries.labels[first:last] - 1
        order = np.argsort(-scores[first:last], kind="stable")
        rank = np.empty(last - first)
        rank[order] = np.arange(1, last - first + 1)
        ideal = (np.sort(gains)[::-1] / np.log2(1 + np.arange(1, last - first + 1))).sum()
        spread = np.ptp(scores[first:last])
        for i in range(last - first):
            for j in range(last - first):
                if gains[i] > gains[j]:
                    o = scores[first + i] - scores[first + j]
                    size = (gains[i] - gains[j]) * abs(1 / np.log2(1 + rank[i]) - 1 / np.log2(1 + rank[j])) / ideal
                    size /= 0.01 + abs(o) if term.cost == "logistic_near" and spread > 0 else 1.0
                    u, v = upper[place[first + i]], lower[place[first + j]]
                    rho = 1 / (1 + np.exp(o))
                    found[0, first + i] += size * rho / (u * v)
                    found[0, first + j] -= size * rho / (u * v)
                    found[1, [first + i, first + j]] += size * rho * (1 - rho) / (u * v)
                    found[2, first + i] += size * np.log(1 + np.exp(-o)) / v
                    found[3, first + j] += size * np.log(1 + np.exp(-o)) / u
    return found


@pytest.mark.parametrize("cost", ["logistic", "logistic_near"])
def test_an_iteration_of_pairs_by_hand(cost):
    queries, rng = pages(n_queries=6, per_query=2), np.random.default_rng(0)
    term, how, scores = Term(cost=cost), Unbiased("pairwise", regularisation=2.0), rng.normal(size=queries.n_documents)
    begun = rng.uniform(0.2, 1.0, (1, 2, 8))
    objective = PairwiseObjective(queries, term, how, ltr.Conventions(), 1.0, begun)
    gradient, hessian = objective(scores, 0)
    found = by_hand(queries, term, scores, *begun[0])
    np.testing.assert_allclose(gradient, found[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hessian, found[1], rtol=1e-9, atol=1e-12)
    place = queries.sources["position"].astype(int) - 1
    for side, costs in zip(objective.biases[1], found[2:], strict=True):
        sums = np.array([costs[place == rank].sum() for rank in range(8)])
        np.testing.assert_allclose(side, np.maximum((sums / sums[sums > 0][0]) ** (1 / 3), LEAST_SHARE), rtol=1e-9)
    again = objective(scores, 0)
    assert len(objective.biases) == 2
    assert np.array_equal(again[0], gradient)


def ending_early(queries, share=0.9, rank=4, seed=0):
    """The pages, of which this share ends at this rank."""
    short = np.random.default_rng(seed).random(queries.n_queries) < share
    return keep(queries, ~(short[queries.of_query] & (queries.sources["position"] > rank)))


def test_what_pairs_cost_is_counted_by_the_pages_that_show_a_rank():
    queries, rng = ending_early(pages(n_queries=6, per_query=4), 0.5), np.random.default_rng(0)
    shares = rng.uniform(0.5, 3.0, queries.n_queries)
    queries, scores = replace(queries, weights=shares), rng.normal(size=queries.n_documents)
    objective = PairwiseObjective(queries, Term(), Unbiased("pairwise", regularisation=2.0), ltr.Conventions(), 1.0)
    objective(scores, 0)
    place, of_row = queries.sources["position"].astype(int) - 1, np.repeat(shares, np.diff(queries.offsets))
    costs = by_hand(queries, Term(), scores, *np.ones((2, 8)))[2:] * of_row
    for side, own in zip(objective.biases[1], costs, strict=True):
        each = np.array([own[place == rank].sum() / of_row[place == rank].sum() for rank in range(8)])
        np.testing.assert_allclose(side, np.maximum((each / each[each > 0][0]) ** (1 / 3), LEAST_SHARE), rtol=1e-9)


def test_what_is_known_of_ranks_that_no_page_shows_stays():
    """It went to the least share: where a model went on with pages that show them, pairs of two such ranks counted 10,000 times in its first tree."""
    queries = pages(n_queries=30, per_query=2)
    low = replace(queries, sources={"position": queries.sources["position"] + 2.0})
    model = ltr.LambdaMART(**SMALL, **FEWER, unbiased="pairwise")
    known, begun = (model.fit(some).biases for some in (queries, low))
    assert np.array_equal(begun[:, :, 2:], known)
    assert (begun[:, :, :2] == 1.0).all()
    after = replace(model, n_trees=12).fit(queries, start=model.fit(low)).biases
    assert (after[9:, :, 8:] == after[8, :, 8:]).all()
    assert not np.array_equal(after[9, :, 1:8], after[8, :, 1:8])


@needs_jit
def test_ranks_that_few_pages_show_are_not_taken_for_ranks_that_few_look_at():
    """Of pages that mostly end at rank 4, sums alone gave ranks 5 to 8 a t⁺ of .01 to .02, and NDCG@10 was .67 for .87 of clicks as they are."""
    queries = ending_early(pages(jitter=100.0, per_query=30))
    model = ltr.LambdaMART(**SMALL, **MORE, unbiased=Unbiased("pairwise", regularisation=0.0)).fit(queries)
    np.testing.assert_allclose(model.biases[-1][0], LOOKS, atol=0.15)
    assert value(ltr.LambdaMART(**SMALL, **MORE, unbiased="pairwise").fit(queries)) > value(
        ltr.LambdaMART(**SMALL, **MORE).fit(queries)
    )


@pytest.mark.parametrize("measure", ["ndcg@3", "map", "err"])
def test_pairs_that_all_count_alike_are_those_of_the_objective(measure):
    queries, term = pages(n_queries=8, per_query=2), Term(measure)
    scores = np.random.default_rng(1).normal(size=queries.n_documents)
    biased = PairwiseObjective(queries, term, Unbiased("pairwise"), ltr.Conventions(), 1.5)(scores, 0)
    for found, expected in zip(biased, Objective(queries, (term,), sigma=1.5, exact=True)(scores, 0), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_step_of_additive_biases_by_hand():
    queries, rng = pages(n_queries=6, per_query=2), np.random.default_rng(0)
    weights = rng.uniform(0.5, 2, queries.n_documents)
    queries, begun, scores = replace(queries, document_weights=weights), rng.normal(size=(1, 1, 8)), rng.normal(size=len(weights))
    inner = Objective(queries, exact=True)
    objective = AdditiveObjective(inner, queries, Term(), Unbiased("additive", regularisation=0.3), 0.1, begun)
    gradient, hessian = objective(scores, 0)
    place = queries.sources["position"].astype(int) - 1
    expected = inner(scores + begun[0, 0, place], 0)
    assert np.array_equal(gradient, expected[0])
    assert np.array_equal(hessian, expected[1])
    for rank in range(8):
        own, b = place == rank, begun[0, 0, rank]
        slope = (gradient * weights)[own].sum() - 0.3 * own.sum() * b
        bend = (hessian * weights)[own].sum() + 0.3 * own.sum()
        assert objective.biases[1][0, rank] == pytest.approx(b + 0.1 * slope / (bend + 0.001), rel=1e-12)


@pytest.mark.parametrize("weighed", [False, True])
def test_inverse_propensities_weigh_clicks_and_keep_their_mean(weighed):
    queries, rng = pages(n_queries=6, per_query=3), np.random.default_rng(0)
    shares = rng.uniform(0.5, 3.0, queries.n_queries) if weighed else np.ones(queries.n_queries)
    queries = replace(queries, weights=shares) if weighed else queries
    of_row = np.repeat(shares, np.diff(queries.offsets))
    how, scores = Unbiased("ipw", propensities=tuple(LOOKS), least=0.25), rng.normal(size=queries.n_documents)
    objective = InverseObjective(Objective(queries), queries, Term(), how, np.maximum(LOOKS, how.least)[None, None])
    place, clicked = queries.sources["position"].astype(int) - 1, queries.labels > 0
    weight = 1 / np.maximum(LOOKS, 0.25)[place]
    gains = clicked * weight / np.average(weight[clicked], weights=of_row[clicked])
    expected = np.zeros(len(scores))
    for first, last in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        rank = np.empty(last - first)
        rank[np.argsort(-scores[first:last], kind="stable")] = np.arange(1, last - first + 1)
        for i in range(last - first):
            for j in range(last - first):
                gap = gains[first + i] - gains[first + j]
                if gap > 0:
                    force = gap * abs(1 / np.log2(1 + rank[i]) - 1 / np.log2(1 + rank[j]))
                    force *= of_row[first] / (1 + np.exp(scores[first + i] - scores[first + j]))
                    expected[[first + i, first + j]] += force, -force
    np.testing.assert_allclose(objective(scores, 0)[0], expected, rtol=1e-4, atol=1e-5)
    assert np.array_equal(np.array(objective.biases), np.broadcast_to(np.maximum(LOOKS, 0.25), (2, 1, 8)))


@needs_jit
@pytest.mark.parametrize("how", [Unbiased("pairwise", regularisation=0.0), Unbiased("additive")])
def test_the_bias_put_into_clicks_is_found_again(how):
    model = ltr.LambdaMART(**SMALL, **MORE, unbiased=how).fit(pages(jitter=100.0))
    last = model.biases[-1][0]
    learned = last - last[0] if how.kind == "additive" else np.log(last)
    assert np.corrcoef(learned, np.log(LOOKS))[0, 1] > 0.98
    assert np.polyfit(np.log(LOOKS), learned, 1)[0] == pytest.approx(1.1, abs=0.25)


@needs_jit
def test_debiased_is_better_where_clicks_are_biased_and_no_worse_where_they_are_not():
    naive = ltr.LambdaMART(**SMALL, **MORE).fit(pages())
    fair = ltr.LambdaMART(**SMALL, **MORE).fit(pages(bias=False))
    for kind, better in (("pairwise", 0.01), ("additive", 0.03), ("ipw", 0.01)):
        assert value(ltr.LambdaMART(**SMALL, **MORE, unbiased=kind).fit(pages())) > value(naive) + better, kind
        assert value(ltr.LambdaMART(**SMALL, **MORE, unbiased=kind).fit(pages(bias=False))) > value(fair) - 0.01, kind


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("kind", KINDS)
def test_one_model_for_any_order_of_rows_and_any_threads(kind):
    queries = pages(n_queries=30, per_query=3)
    model = ltr.LambdaMART(**SMALL, **FEWER, unbiased=kind).fit(queries)
    with ltr.threads(1):
        others = [ltr.LambdaMART(**SMALL, **FEWER, unbiased=kind).fit(own) for own in (queries, shuffled(queries, 4))]
    for other in others:
        assert other.digest == model.digest
        assert np.array_equal(other.biases, model.biases)


@pytest.mark.parametrize("kind", KINDS)
def test_stopped_saved_and_resumed_is_never_stopped(kind, tmp_path):
    queries = pages(n_queries=30, per_query=3)
    whole = ltr.LambdaMART(**SMALL, **FEWER, unbiased=kind)
    reference = whole.fit(queries)
    ltr.save(replace(whole, n_trees=5).fit(queries), tmp_path)
    for start in (ltr.load(tmp_path), reference.first(3)):
        resumed = whole.fit(queries, start=start)
        assert resumed.digest == reference.digest
        assert np.array_equal(resumed.biases, reference.biases)
        assert resumed.remarks == reference.remarks
    begun = replace(whole, n_trees=5, stop_on="ndcg@3").fit(queries, judged(2))
    stopped = replace(whole, stop_on="ndcg@3").fit(queries, judged(2))
    assert replace(whole, stop_on="ndcg@3").go_on(begun, queries, judged(2)).digest == stopped.digest
    assert in_words(whole.unbiased, stopped.biases[stopped.best_iteration]) == stopped.remarks[-1]


def test_a_start_that_learned_otherwise_begins_anew():
    queries = pages(n_queries=30, per_query=2)
    plain = ltr.LambdaMART(**SMALL, **FEWER).fit(queries)
    adapted = ltr.LambdaMART(**SMALL, **{**FEWER, "n_trees": 10}, unbiased="additive").fit(queries, start=plain)
    assert not adapted.biases[: plain.ensemble.n_trees + 1].any()
    assert adapted.biases[-1].any()


def test_leaves_refitted_to_the_same_pages_stay_where_they_are():
    queries = pages(n_queries=30, per_query=2)
    model = ltr.LambdaMART(**SMALL, **FEWER, unbiased="pairwise").fit(queries)
    refitted = model.refit_leaves(queries, keep=0.0)
    np.testing.assert_allclose(refitted.ensemble.value, model.ensemble.value, atol=1e-6)


def test_biases_of_other_shapes_are_no_model(tmp_path):
    model = ltr.LambdaMART(**SMALL, **FEWER, unbiased="additive").fit(pages(n_queries=30, per_query=2))
    for biases, rule in ((np.zeros((3, 2, 8)), "shape"), (np.full((3, 1, 8), np.nan), "not finite"), (np.zeros(3), "shape")):
        with pytest.raises(ValueError, match=rule):
            type(model).restored(model.parameters, {**model.arrays, "unbiased/biases": biases}, model.names)


def test_preferences_are_refused():
    queries = pages(n_queries=8, per_query=2)
    model = ltr.LambdaMART(**SMALL, unbiased="pairwise")
    with pytest.raises(ValueError, match="preferences have no positions"):
        model.fit(queries, preferences=Preferences([0], [1]))


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"unbiased": "cascade"}, "choose from: ipw, pairwise, additive, dla, auto"),
        ({"unbiased": "dla"}, "dla learns together with a net"),
        ({"unbiased": 3}, "not an ltr.Unbiased"),
        ({"unbiased": "pairwise", "objective": ("ndcg", "map")}, "the objective has 2"),
        ({"unbiased": "pairwise", "normalise": "query"}, "set normalise: none"),
        ({"unbiased": "pairwise", "objective": Term(construction="ranknet")}, "ranknet with logistic"),
        ({"unbiased": "ipw", "objective": "map"}, "which map does not have"),
        ({"unbiased": "additive", "loss": "two_class"}, "two_class"),
        ({"unbiased": "additive", "objective": lambda scores, queries: (scores, scores)}, "a function has none"),
    ],
)  # fmt: skip
def test_rankers_that_cannot_be_debiased(given, rule):
    with pytest.raises(ValueError, match=rule):
        ltr.LambdaMART(**given)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"kind": "pairwise", "regularisation": -1.0}, "regularisation=-1.0 is out of range"),
        ({"kind": "ipw", "regularisation": 1.0}, "ipw has no regularisation"),
        ({"kind": "additive", "propensities": (1.0, 0.0)}, "propensity of rank 2 is 0.0"),
        ({"kind": "ipw", "propensities": (1.0, 0.0)}, "propensity of rank 2 is 0.0"),
        ({"kind": "ipw", "propensities": (True, 0.5)}, "propensity of rank 1 is True"),
        ({"kind": "ipw", "propensities": 0.5}, "propensities=0.5; it is a list of numbers, of rank 1, 2"),
        ({"kind": "ipw", "propensities": "1"}, "propensities='1'; it is a list of numbers"),
        ({"kind": "ipw", "least": 0.0}, "least=0.0 is out of range"),
        ({"kind": "ipw", "least": True}, "least=True is out of range"),
        ({"kind": "pairwise", "regularisation": True}, "regularisation=True is out of range"),
        ({"kind": "ipw", "estimate": "em"}, "estimate='em' is out of range; choose from: interventions, regression_em"),
        ({"kind": "ipw", "estimate": "regression_em", "propensities": (1.0,)}, "propensities are given; leave one out"),
        ({"kind": "pairwise", "estimate": "regression_em", "propensities": (1.0,)}, "propensities are given; leave one out"),
        ({"kind": "ipw", "positions": ""}, "names the label source"),
    ],
)  # fmt: skip
def test_what_is_no_way_to_debias(given, rule):
    with pytest.raises(ValueError, match=rule):
        Unbiased(**given)


@pytest.mark.parametrize("wrong", [0.0, 1.5, np.nan, 1001.0])
def test_a_position_that_is_none_is_told_with_its_row(wrong):
    queries = pages(n_queries=6, per_query=2)
    ranks = queries.sources["position"].copy()
    ranks[7] = wrong
    for kind in KINDS:
        with pytest.raises(ValueError, match=r"document 7 has the position .*whole number from 1 to 1,000"):
            ltr.LambdaMART(**SMALL, unbiased=kind).fit(replace(queries, sources={"position": ranks}))
    documents = np.array([f"d{k}".encode() for k in range(queries.n_documents)])
    ids = np.array([f"page {k}".encode() for k in range(queries.n_queries)])
    with pytest.raises(ValueError, match=r"unbiased: document 'd7' of query 'page 0' has the position "):
        ltr.LambdaMART(**SMALL, unbiased="ipw").fit(replace(queries, ids=ids, documents=documents, sources={"position": ranks}))


def test_a_document_that_was_not_shown_has_no_part_in_it():
    queries = pages(n_queries=6, per_query=2)
    ranks, labels = queries.sources["position"].copy(), queries.labels.copy()
    ranks[7] = labels[7] = np.nan
    hidden = replace(queries, labels=labels, sources={"position": ranks})
    for how in map(Unbiased, KINDS[:2]):
        model = ltr.LambdaMART(**{**SMALL, "min_docs_in_leaf": 2}, **FEWER, unbiased=how)
        gradient, _ = model.objective_over(hidden)(np.zeros(hidden.n_documents), 0)
        assert gradient[7] == 0
        assert model.fit(hidden).biases is not None


def test_pages_learn_from_pairs_of_what_is_judged_where_the_rest_is_left_out():
    queries, rng = pages(n_queries=20), np.random.default_rng(3)
    known, scores = rng.random(queries.n_documents) < 0.7, rng.normal(size=queries.n_documents)
    some, rules = replace(queries, labels=np.where(known, queries.labels, np.nan)), ltr.Conventions(unlabelled="condensed")
    how = Unbiased("pairwise")
    found = PairwiseObjective(some, ltr.Term(), how, rules, 1.0)(scores, 0)
    alone = PairwiseObjective(keep(some, known), ltr.Term(), how, rules, 1.0)(scores[known], 0)
    for own, wanted in zip(found, alone, strict=True):
        assert own[known] == pytest.approx(wanted, abs=1e-12)
        assert not own[~known].any()
    assert np.abs(alone[0]).max() > 0.01


def test_ways_that_auto_tries_keep_where_positions_are_and_the_least_that_is_divided_by():
    auto = Unbiased("auto", positions="shown", least=0.3, propensities=(1.0, 0.5))
    asked = []
    found = auto.ways([Term()], "none", ("ipw", "pairwise", "additive", "dla"), lambda way: asked.append(way) or np.ones(2))
    assert [way.kind for way in found] == ["ipw", "pairwise", "additive", "dla"]
    assert {(way.positions, way.least) for way in found} == {("shown", 0.3)}
    assert {way.propensities for way in found} == {(1.0, 0.5)}, "by which all of them stop"
    by_trees = Unbiased("auto", estimate="regression_em").ways([Term()], "none", ("ipw", "additive"), lambda way: np.ones(2))
    assert {way.estimate for way in by_trees} == {"regression_em"}
    assert asked == found[:1]


def test_ten_ranks_are_told():
    bias = np.arange(24).reshape(2, 12) / 10
    first, second = (" ".join(f"{value:.2f}" for value in side[:10]) for side in bias)
    assert in_words(Unbiased("pairwise"), bias) == f"position bias of ranks 1, 2, … (pairwise): t+ {first}; t- {second}"
    assert in_words(Unbiased("additive"), 1 + bias[:1]).endswith(f": {first}"), "beside the first rank's"
