"""``unbiased: auto``: what judged queries say of clicks with bias and without, and what it cannot choose by."""

from dataclasses import replace

import numpy as np
import pytest

import ltr
from ltr.metrics.significance import paired_t
from ltr.trees.verdict import NAIVE, verdict
from tests.ltr.objectives.test_unbiased import FEWER, LOOKS, MORE, SMALL, judged, needs_jit, pages


def test_the_best_mean_is_kept_and_how_sure_that_is_is_said():
    rng = np.random.default_rng(0)
    naive = rng.uniform(size=40)
    values = {NAIVE: naive, "pairwise": naive + rng.normal(0.1, 0.1, 40), "additive": naive - 0.05 + rng.normal(0, 0.01, 40)}
    values["pairwise"][3] = np.nan
    found = verdict(values, "ndcg_10")
    test = paired_t(values["pairwise"], naive)
    assert found.kept == "pairwise"
    assert (
        f"keeps pairwise; beside ndcg_10 {naive.mean():.4f} of {NAIVE} (39 judged queries): pairwise {test.difference:+.4f}"
        in found.sentence
    )
    assert "at 95 %" in found.sentence
    assert "additive -0.0" in found.sentence
    assert found.sentence.endswith("Holm over 2")
    worse = verdict({NAIVE: naive, "additive": values["additive"]}, "ndcg_10")
    assert worse.kept == NAIVE
    assert "at 95 %" in worse.sentence
    assert "Holm" not in worse.sentence
    alike = verdict({NAIVE: naive, "additive": naive + rng.normal(0, 0.2, 40)}, "ndcg_10")
    assert "these queries do not tell them apart" in alike.sentence
    assert verdict({NAIVE: naive, "additive": naive}, "ndcg_10").kept == NAIVE


@needs_jit
def test_strong_bias_is_taken_out_and_the_model_is_that_of_its_way():
    given = {**SMALL, **MORE, "query_share": 0.8}
    chosen = ltr.LambdaMART(**given, unbiased="auto").fit(pages(), judged(2))
    assert chosen.unbiased.kind in ("additive", "ipw", "pairwise")
    assert chosen.remarks[0].startswith(f"unbiased: auto keeps {chosen.unbiased.kind}; beside ndcg_10")
    assert "at 95 %" in chosen.remarks[0]
    alone = ltr.LambdaMART(**given, unbiased=chosen.unbiased.kind).fit(pages(), judged(2))
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
    with pytest.raises(ValueError, match="judged validation queries, and there are none"):
        auto.fit(queries)
    with pytest.raises(ValueError, match=r"the validation queries are pages \(they have a 'position'\)"):
        auto.fit(queries, pages(n_queries=6, per_query=1))
    with pytest.raises(ValueError, match="no label source 'position'"):
        auto.fit(replace(queries, sources={}), judged(2))
    with pytest.raises(ValueError, match="auto has no regularisation; its ways are taken as they come"):
        ltr.Unbiased("auto", regularisation=1.0)
