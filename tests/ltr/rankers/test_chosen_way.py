"""``unbiased: auto``: every way is trained, and validation queries choose: by judgments, or by clicks where there are none."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.data.synthetic import clicked_pages
from ltr.rankers.verdict import NAIVE
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
        "(no clicked document was shown at two ranks: how often a rank is looked at cannot be estimated; give" in chosen.remarks[0]
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
    with pytest.raises(ValueError, match="auto begins anew"):
        replace(net, unbiased="auto").fit(queries, other_pages(), start=begun.states[2])
    counting = replace(net, unbiased="auto", count_pairs=1).fit(queries, other_pages())
    assert "dla" not in counting.remarks[0]
