"""When to stop, by pages: the measure by hand, that of judgments where clicks are many, and models that say how they were stopped."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.queries import Queries
from ltr.data.synthetic import clicked_pages
from ltr.objectives.shown import Shown, looks
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import Unbiased
from ltr.rankers.fair_pages import AS_THEY_ARE, TOLD, FairPages, PageMean
from ltr.rankers.training import mean_measure
from tests.ltr.objectives.test_unbiased import FEWER, LOOKS, SMALL, judged, needs_jit, pages
from tests.ltr.rankers.test_chosen_way import NET, other_pages
from tests.ltr.trees.test_shards import asking, parts_of

IPW = Unbiased("ipw", least=0.15)
COMES = "stop_on {} uses uncorrected clicks on validation pages; NDCG can correct them by examination probabilities".format
FAIR = FairPages(IPW, Term(), LOOKS)
WATCHING = {**SMALL, **FEWER, "stop_on": "ndcg_10"}


def by_hand(queries, scores, cutoff, gain):
    """Σ of the DCG of clicks over looks, over Σ of the largest that it can be."""
    found = most = 0.0
    for first, last in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        gains = []
        for label, rank in zip(queries.labels[first:last], queries.sources["position"][first:last], strict=True):
            shown = not np.isnan(label)
            gains.append(gain(label) / max(LOOKS[min(int(rank), 8) - 1], 0.15) if shown else 0.0)
        ranked = [gains[i] for i in np.argsort(-scores[first:last], kind="stable")]
        for own, of in ((ranked, 0), (sorted(gains, reverse=True), 1)):
            dcg = sum(g / np.log2(2 + k) for k, g in enumerate(own[:cutoff]))
            found, most = (found + dcg, most) if of == 0 else (found, most + dcg)
    return found / most


@pytest.mark.parametrize(("measure", "cutoff"), [("ndcg", 100), ("ndcg_3", 3)])
@pytest.mark.parametrize("gain", ["exp2", "linear"])
def test_the_mean_by_hand(measure, cutoff, gain):
    rng = np.random.default_rng(0)
    labels = rng.choice([0.0, 0.0, 1.0, 2.0, np.nan], 60)
    ranks = np.where(np.isnan(labels), np.nan, np.tile(np.arange(1.0, 13), 5))
    queries = Queries(rng.normal(size=(60, 1)), labels, np.arange(0, 61, 12), sources={"position": ranks})
    scores = rng.normal(size=60)
    found = PageMean(measure, queries, FAIR, ltr.Conventions(gain=gain))(scores)
    worth = {"exp2": lambda label: 2.0**label - 1, "linear": lambda label: label}[gain]
    assert found == pytest.approx(by_hand(queries, scores, cutoff, worth), rel=1e-12)


def test_clicks_that_all_ranks_drew_alike_are_ndcg_of_pages_with_one_click():
    """Where every page has one click, and all ranks are looked at alike, nothing changes."""
    queries = pages(n_queries=20, per_query=3)
    first = np.zeros(queries.n_documents)
    first[queries.offsets[:-1] + np.arange(queries.n_queries) % 8] = 1.0
    queries, scores = replace(queries, labels=first), np.random.default_rng(1).normal(size=len(first))
    alike = PageMean("ndcg_10", queries, replace(FAIR, looks=np.ones(8)), ltr.Conventions())
    assert alike(scores) == pytest.approx(mean_measure("ndcg_10", queries, scores, ltr.Conventions()), rel=1e-12)


def test_a_ranker_is_worth_what_attracts_and_not_what_stood_above():
    """Of one that repeats the page and one that nearly knows what attracts, clicks as they are like the first; over looks, the two stand to
    each other as the DCG of what attracts does."""
    shown = judged(4, 60)
    many = clicked_pages(shown, shown.features[:, 0].astype(float), 100, LOOKS, jitter=0.5)
    judgments = dict(zip(shown.row_digests.tolist(), shown.labels.tolist(), strict=True))
    labels = np.array([judgments[digest] for digest in many.row_digests.tolist()])
    attracts = 0.1 + 0.9 * (2**labels - 1) / 15
    repeats, knows = -many.sources["position"], labels + 3.0 * np.random.default_rng(0).normal(size=len(labels))

    def dcg(scores):
        order = np.argsort(-scores.reshape(-1, 8), axis=1)
        return (np.take_along_axis(attracts.reshape(-1, 8), order, axis=1) / np.log2(np.arange(2, 10))).sum()

    fair = PageMean("ndcg_10", many, replace(FAIR, how=Unbiased("ipw", least=0.05)), ltr.Conventions())
    as_they_are = [mean_measure("ndcg_10", many, scores, ltr.Conventions()) for scores in (repeats, knows)]
    assert as_they_are[0] > as_they_are[1] + 0.05
    assert dcg(knows) > dcg(repeats)
    assert fair(knows) / fair(repeats) == pytest.approx(dcg(knows) / dcg(repeats), abs=0.01)


def test_what_is_read_so():
    clicked = pages(n_queries=6, per_query=2)
    assert FairPages.reads("ndcg_10", clicked, IPW, Term())
    assert FairPages.reads("jk_ndcg", clicked, IPW, Term())
    assert FairPages.reads("linear_ndcg@10", clicked, IPW, Term())
    assert not FairPages.reads("map", clicked, IPW, Term())
    assert not FairPages.reads("cndcg", clicked, IPW, Term())
    assert not FairPages.reads("ndcg_10", judged(2, 10), IPW, Term())
    either, told = FairPages.watching(IPW, Term(), ("mrr", "ndcg"), (clicked,), lambda way: LOOKS)
    assert either is not None
    assert [*told] == [COMES("mrr"), TOLD]
    assert FairPages.watching(IPW, Term(), ("map",), (clicked,), lambda way: LOOKS) == (None, (COMES("map"),))
    assert FairPages.watching(IPW, Term(), ("map",), (judged(2, 10),), lambda way: LOOKS) == (None, ())
    unclicked = replace(clicked, labels=np.zeros(clicked.n_documents))
    with pytest.raises(ValueError, match="there is no click on any"):
        FAIR.mean("ndcg", unclicked, ltr.Conventions())


@needs_jit
@pytest.mark.parametrize("kind", ["ipw", "pairwise", "additive"])
def test_trees_stop_by_it_and_say_so(kind):
    train, valid = pages(n_queries=30, per_query=3), other_pages()
    model = ltr.LambdaMART(**WATCHING, unbiased=kind).fit(train, valid)
    assert model.remarks[-1] == TOLD
    known = looks(Unbiased("ipw"), Shown.on(train, Unbiased("ipw"), Term()).ask)
    mean = PageMean("ndcg_10", valid, FairPages(Unbiased(kind), Term(), known), ltr.Conventions())
    everything = ltr.LambdaMART(**{**WATCHING, "stop_on": None}, unbiased=kind).fit(train)
    values = [mean(scores) for _, scores in everything.stages(valid.features, 1)]
    np.testing.assert_allclose(model.curve.valid, values, rtol=1e-12)
    assert model.trees.n_trees == int(np.argmax(values)) + 1
    assert model.digest == ltr.LambdaMART(**WATCHING, unbiased=kind).fit_shards(asking(parts_of(model, train, 2)), valid).digest
    begun = ltr.LambdaMART(**{**WATCHING, "n_trees": 5}, unbiased=kind).fit(train, valid)
    gone_on = ltr.LambdaMART(**WATCHING, unbiased=kind).go_on(begun, train, valid)
    assert (gone_on.digest, gone_on.remarks) == (model.digest, model.remarks)


@needs_jit
def test_clicks_are_read_as_they_are_where_nothing_is_known_or_asked_for():
    train, valid = pages(jitter=0.0, n_queries=30, per_query=3), other_pages(0.0)
    unknown = ltr.LambdaMART(**WATCHING, unbiased="additive").fit(train, valid)
    assert AS_THEY_ARE in unknown.remarks
    plain = [
        mean_measure("ndcg_10", valid, scores, ltr.Conventions())
        for _, scores in replace(unknown, stop_on=None).fit(train).stages(valid.features, 1)
    ]
    np.testing.assert_allclose(unknown.curve.valid, plain, rtol=1e-12)
    naive = ltr.LambdaMART(**WATCHING).fit(train, valid)
    by_map = ltr.LambdaMART(**{**WATCHING, "stop_on": "mrr"}, conventions=ltr.Conventions(threshold=1), unbiased="additive")
    for model in (naive, by_map.fit(train, valid), ltr.LambdaMART(**WATCHING, unbiased="pairwise").fit(pages(), judged(2))):
        assert not {TOLD, AS_THEY_ARE} & {*model.remarks}
    assert COMES("mrr") in by_map.fit(train, valid).remarks


@pytest.mark.parametrize("kind", ["ipw", "additive", "dla"])
def test_nets_stop_by_it_too(kind):
    train, valid = pages(n_queries=30, per_query=3), other_pages()
    net = ltr.LambdaRank(**NET, unbiased=kind, keep_epochs=(4,)).fit(train, valid)
    assert net.remarks[-1] == TOLD
    known = looks(Unbiased("ipw"), Shown.on(train, Unbiased("ipw"), Term()).ask)
    mean = PageMean("ndcg_10", valid, FairPages(Unbiased(kind), Term(), known), ltr.Conventions())
    assert max(net.curve.valid) == pytest.approx(mean(net.predict(valid.features)), rel=1e-6)
    assert TOLD not in ltr.LambdaRank(**NET, unbiased=kind).fit(train).remarks


def test_what_biases_are_held_by_is_no_matter_of_how_clicks_are_counted():
    train, valid = pages(n_queries=30, per_query=3), other_pages()
    how = Unbiased("additive", regularisation=0.5)
    known = FairPages.watching(how, Term(), ("ndcg_10",), (valid,), lambda way: looks(way, Shown.on(train, way, Term()).ask))
    assert known[1] == (TOLD,)
    assert np.array_equal(known[0].looks, looks(Unbiased("ipw"), Shown.on(train, Unbiased("ipw"), Term()).ask))
