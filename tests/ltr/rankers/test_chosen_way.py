"""``unbiased: auto``: every way is trained, and validation queries choose: by judgments, or by clicks where there are none."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.synthetic import clicked_pages
from ltr.rankers.fair_pages import AS_THEY_ARE, TOLD
from ltr.rankers.verdict import NAIVE
from ltr.trees.regression_em import TREES
from tests.ltr.objectives.test_unbiased import FEWER, LOOKS, MORE, SMALL, judged, needs_jit, pages

NET = {"hidden": 4, "epochs": 4, "learning_rate": 0.01}


def other_pages(jitter=1.0, n_queries=30):
    """Pages to choose by."""
    queries = judged(3, n_queries)
    return clicked_pages(queries, queries.features[:, 0].astype(float) + 0.3 * queries.labels, 4, LOOKS, jitter=jitter)


@needs_jit
def test_strong_bias_is_taken_out_and_the_model_is_that_of_its_way():
    given = {**SMALL, **MORE, "query_share": 0.8}
    chosen = ltr.LambdaMART(**given, unbiased="auto").fit(pages(), judged(2, 300))
    assert chosen.unbiased.kind in ("additive", "ipw", "pairwise")
    assert chosen.remarks[0].startswith(f"unbiased: auto keeps {chosen.unbiased.kind}; beside ndcg_10")
    assert "at 95 %" in chosen.remarks[0]
    alone = ltr.LambdaMART(**given, unbiased=chosen.unbiased.kind).fit(pages(), judged(2, 300))
    assert chosen.digest == alone.digest
    assert chosen.remarks[1:] == alone.remarks


@needs_jit
def test_where_clicks_as_they_are_rank_best_they_are_kept(tmp_path):
    naive = ltr.LambdaMART(**SMALL, **FEWER)
    queries = pages(n_queries=30, per_query=3)
    scores = naive.fit(queries).predict(judged(2).features)
    its_own = replace(judged(2), labels=(scores > np.quantile(scores, 0.9)).astype(float))
    chosen = replace(naive, unbiased="auto").fit(queries, its_own)
    assert chosen.unbiased is None
    assert chosen.biases is None
    assert f"keeps {NAIVE};" in chosen.remarks[0]
    ltr.save(chosen, tmp_path)
    assert ltr.load(tmp_path).digest == naive.fit(queries).digest
    more = replace(naive, n_trees=12, unbiased="auto")
    assert more.fit(queries, its_own, start=chosen).digest == replace(naive, n_trees=12).fit(queries).digest
    assert more.go_on(chosen, queries, its_own).remarks[0].startswith("unbiased: auto keeps")


@needs_jit
def test_ways_that_pages_do_not_allow_are_left_out():
    fixed = pages(jitter=0.0, n_queries=30, per_query=3)
    auto = ltr.LambdaMART(**SMALL, **FEWER, unbiased="auto")
    assert "ipw" not in auto.fit(fixed, judged(2)).remarks[0]
    known = replace(auto, unbiased=ltr.Unbiased("auto", propensities=tuple(LOOKS)))
    assert "ipw" in known.fit(fixed, judged(2)).remarks[0]
    of_precision = replace(auto, objective="map").fit(pages(n_queries=30, per_query=3), judged(2))
    assert "ipw" not in of_precision.remarks[0]
    assert "pairwise" in of_precision.remarks[0]


def test_what_nothing_can_be_chosen_by():
    queries = pages(n_queries=8, per_query=2)
    auto = ltr.LambdaMART(**SMALL, unbiased="auto")
    for ranker in (auto, ltr.LambdaRank(unbiased="auto")):
        with pytest.raises(ValueError, match="auto chooses on validation queries, judged ones or pages, and there are none"):
            ranker.fit(queries)
    with pytest.raises(ValueError, match="no label source 'position'"):
        auto.fit(replace(queries, sources={}), judged(2))
    with pytest.raises(ValueError, match="auto has no regularisation; its ways are taken as they come"):
        ltr.Unbiased("auto", regularisation=1.0)


def test_judgments_beside_ranks_are_judgments():
    """They were taken for clicks, by `auto` and by `stop_on`; and where only some documents had been shown, for nothing at all."""
    model, train, valid = ltr.LambdaMART(**SMALL, n_trees=3, unbiased="auto"), pages(n_queries=30, per_query=3), judged(2)
    wanted = model.fit(train, valid)
    assert "100 judged queries" in wanted.remarks[0]
    ranks = np.arange(valid.n_documents) % 8 + 1.0
    assert valid.labels.max() > 1
    for shown in (np.ones(valid.n_documents, bool), ranks < 5):
        found = model.fit(train, replace(valid, sources={"position": np.where(shown, ranks, np.nan)}))
        assert found.remarks == wanted.remarks
        assert found.digest == wanted.digest
    additive = replace(model, unbiased="additive", stop_on="ndcg_10")
    assert TOLD not in additive.fit(train, replace(valid, sources={"position": ranks})).remarks


def test_clicks_in_a_source_of_their_own_choose():
    """Whether validation queries are pages was asked of labels, whatever was learned from."""
    train, valid = (
        replace(of, labels=np.full(of.n_documents, np.nan), sources={**of.sources, "click": of.labels})
        for of in (pages(n_queries=30, per_query=3), other_pages())
    )
    model = ltr.LambdaMART(**SMALL, n_trees=3, unbiased="auto")
    by_label = model.fit(pages(n_queries=30, per_query=3), other_pages())
    found = replace(model, objective="ndcg:click").fit(train, valid)
    assert "by clicks and not by judgments (120 validation pages" in found.remarks[0]
    assert (found.remarks[0], found.digest) == (by_label.remarks[0], by_label.digest)
    unclicked = replace(judged(2), sources={name: np.full(judged(2).n_documents, np.nan) for name in ("click", "position")})
    told = (
        replace(model, objective="ndcg:click", stop_on="ndcg_10")
        .fit(replace(train, labels=train.sources["click"]), unclicked)
        .remarks[0]
    )
    assert "100 judged queries" in told


def test_training_pages_may_have_no_judgments():
    """Trees were refused for it, after ten."""
    train, valid = pages(n_queries=30, per_query=3), judged(2)
    unjudged = replace(train, labels=np.full(train.n_documents, np.nan), sources={**train.sources, "click": train.labels})
    valid = replace(valid, sources={"click": np.full(valid.n_documents, np.nan)})
    trees = ltr.LambdaMART(**{**SMALL, "stop_on": "ndcg_10"}, n_trees=12, objective="ndcg:click")
    found, wanted = trees.fit(unjudged, valid), replace(trees, objective="ndcg").fit(train, valid)
    assert found.digest == wanted.digest
    assert np.array_equal(found.curve.valid, wanted.curve.valid)
    assert np.isnan(found.curve.train).all()
    with pytest.raises(
        ValueError, match=r"LambdaRank: stop_on: ndcg_10 is undefined.*, of the training queries, whose values the learning rate"
    ):
        ltr.LambdaRank(**NET, objective="ndcg:click").fit(unjudged, valid)


@pytest.mark.parametrize("wrong", [1.5, np.nan])
def test_a_page_with_a_rank_that_is_none_is_told(wrong):
    """It was said instead that the log is silent."""
    valid = other_pages()
    ranks = valid.sources["position"].copy()
    ranks[7] = wrong
    with pytest.raises(ValueError, match=r"document \d+ has the position .*are pages; judged ones need no ranks"):
        ltr.LambdaMART(**SMALL, unbiased="auto").fit(pages(n_queries=30, per_query=3), replace(valid, sources={"position": ranks}))


def test_clicks_may_be_graded():
    """A page's labels are clicks as long as they are none that nothing is learned from."""
    train, valid = (replace(of, labels=2 * of.labels) for of in (pages(n_queries=30, per_query=3), other_pages()))
    for ranker in (ltr.LambdaMART(**{**SMALL, "stop_on": "ndcg_10"}, n_trees=3), ltr.LambdaRank(**NET)):
        assert "by clicks and not by judgments" in replace(ranker, unbiased="auto").fit(train, valid).remarks[0]
        assert TOLD in replace(ranker, unbiased="additive").fit(train, valid).remarks
        above = replace(valid, labels=np.where(np.arange(valid.n_documents) == 5, 3.0, valid.labels))
        assert "judged queries" in replace(ranker, unbiased="auto").fit(train, above).remarks[0]
        assert TOLD not in replace(ranker, unbiased="additive").fit(train, above).remarks


@needs_jit
def test_only_ipw_learns_from_propensities_of_regression_em(monkeypatch):
    """Every way took its objective, with which `additive` learned something else and the others failed."""
    monkeypatch.setitem(TREES, "n_trees", 20)
    train, valid = pages(n_queries=30, per_query=3), other_pages()
    model = ltr.LambdaMART(**{**SMALL, "stop_on": "ndcg_10"}, n_trees=3)
    for kind in ("pairwise", "additive"):
        by_trees = replace(model, unbiased=ltr.Unbiased(kind, estimate="regression_em")).fit(train, valid)
        plain = replace(model, stop_on=None, unbiased=kind).fit(train)
        n = by_trees.trees.n_trees
        assert TOLD in by_trees.remarks
        assert np.array_equal(by_trees.biases[: n + 1], plain.biases[: n + 1])
        assert np.array_equal(by_trees.trees.value, plain.trees.first(n).value)
    for by in (valid, judged(2)):
        found = replace(model, unbiased=ltr.Unbiased("auto", estimate="regression_em")).fit(train, by)
        assert all(f"{way} " in found.remarks[0] for way in ("ipw", "pairwise", "additive"))


def test_given_propensities_say_when_to_stop_whatever_the_way():
    fixed, valid = pages(jitter=0.0, n_queries=30, per_query=3), other_pages(0.0)
    for kind in ("additive", "pairwise"):
        how = ltr.Unbiased(kind, propensities=tuple(LOOKS))
        model = ltr.LambdaMART(**{**SMALL, "stop_on": "ndcg_10"}, n_trees=3, unbiased=how).fit(fixed, valid)
        assert TOLD in model.remarks
        with pytest.raises(ValueError, match="shown at rank 8, and propensities end at rank 3"):
            replace(model, unbiased=replace(how, propensities=(1.0, 0.5, 0.3))).fit(fixed, valid)
        silent = replace(model, unbiased=kind).fit(fixed, valid)
        assert AS_THEY_ARE in silent.remarks
        assert np.array_equal(model.biases, silent.biases[: len(model.biases)]), "which they are no part of otherwise"


@needs_jit
@pytest.mark.parametrize("ranker", [ltr.LambdaMART(**SMALL, **FEWER), ltr.LambdaRank(**NET)], ids=["trees", "net"])
def test_pages_choose_by_their_clicks(ranker, tmp_path):
    chosen = replace(ranker, unbiased="auto").fit(pages(per_query=4), other_pages())
    said, kept = chosen.remarks[0], NAIVE if chosen.unbiased is None else chosen.unbiased.kind
    assert f"unbiased: auto keeps {kept}, by clicks and not by judgments (120 validation pages of 30 queries)" in said
    for way in ("ipw", "pairwise", "additive", *(["dla"] if ranker.kind == "lambdarank" else [])):
        assert f"{way} " in said
    alone = replace(ranker, unbiased=chosen.unbiased).fit(pages(per_query=4), other_pages())
    assert chosen.digest == alone.digest
    assert chosen.remarks[1:] == alone.remarks
    ltr.save(chosen, tmp_path)
    begun = ltr.load(tmp_path)
    assert replace(ranker, unbiased="auto").go_on(begun, pages(per_query=4), other_pages()).remarks == chosen.remarks


@pytest.mark.parametrize("ranker", [ltr.LambdaMART(**SMALL, n_trees=3), ltr.LambdaRank(**NET)], ids=["trees", "net"])
def test_a_log_that_cannot_tell_keeps_clicks_as_they_are(ranker):
    fixed = pages(jitter=0.0, n_queries=30, per_query=3)
    chosen = replace(ranker, unbiased="auto").fit(fixed, other_pages(0.0))
    assert chosen.unbiased is None
    assert f"auto keeps {NAIVE}: the validation queries have no judgments, and the log does not say" in chosen.remarks[0]
    assert (
        "(no clicked document was shown at two ranks: examination probabilities (propensities) cannot be estimated; give"
        in chosen.remarks[0]
    )
    assert chosen.digest == ranker.fit(fixed, other_pages(0.0)).digest
    few = replace(ranker, unbiased="auto").fit(pages(n_queries=30, per_query=3), other_pages(n_queries=2))
    assert "validation pages of 2 queries are too few to be halved" in few.remarks[0]
    known = replace(ranker, unbiased=ltr.Unbiased("auto", propensities=tuple(LOOKS))).fit(fixed, other_pages(0.0))
    assert "by clicks and not by judgments" in known.remarks[0]


@pytest.mark.parametrize("ranker", [ltr.LambdaMART(**SMALL, n_trees=3), ltr.LambdaRank(**NET)], ids=["trees", "net"])
def test_what_was_learned_of_ranks_has_names(ranker):
    queries = pages(n_queries=30, per_query=3)
    assert ranker.fit(queries).position_bias == {}
    for way, names in (("ipw", {"propensity"}), ("pairwise", {"t_plus", "t_minus"}), ("additive", {"bias"})):
        model = replace(ranker, unbiased=way).fit(queries)
        assert set(model.position_bias) == names
        for line in model.position_bias.values():
            assert line.shape == (8,)
            assert f"{line[1]:.2f} {line[2]:.2f}" in model.remarks[-1]
    assert model.position_bias["bias"][0] == 0


def test_a_net_that_goes_on_has_chosen_already():
    queries = pages(n_queries=30, per_query=3)
    net = ltr.LambdaRank(**{**NET, "epochs": 2})
    begun = net.fit(queries)
    with pytest.raises(ValueError, match="auto starts again"):
        replace(net, unbiased="auto").fit(queries, other_pages(), start=begun.states[2])
    counting = replace(net, unbiased="auto", count_pairs=1).fit(queries, other_pages())
    assert "dla" not in counting.remarks[0]
