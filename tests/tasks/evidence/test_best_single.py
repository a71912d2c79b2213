"""Every ranker against the best single ranking: intervals and tests by hand."""

import numpy as np
import pytest
from scipy import stats

from ltr.metrics.significance import holm
from tasks.config.reading import parse
from tasks.evidence.best_single import against_single
from tasks.records import ConfigError

RNG = np.random.default_rng(0)
A = RNG.random(30)
VALUES = {"bm25": A - 0.2, "dense": A, "rrf": A + 0.05 * RNG.normal(size=30), "learned": A + 0.1 + 0.05 * RNG.normal(size=30)}


def test_the_best_single_one_is_the_baseline_and_the_others_are_tested_against_it():
    found = against_single(VALUES, ["bm25", "dense"], "ndcg_10", 0.9)
    assert found.baseline == "dense"
    assert [row.ranker for row in found.rows] == sorted(VALUES, key=lambda name: -VALUES[name].mean())
    rows = {row.ranker: row for row in found.rows}
    assert (rows["dense"].difference, rows["dense"].p) == (None, None)
    for name in ("rrf", "learned"):
        row, paired = rows[name], VALUES[name] - VALUES["dense"]
        interval = stats.t.interval(0.9, 29, VALUES[name].mean(), stats.sem(VALUES[name]))
        assert row.interval == pytest.approx(interval)
        assert row.between == pytest.approx(stats.t.interval(0.9, 29, paired.mean(), stats.sem(paired)))
        assert row.p == pytest.approx(stats.ttest_rel(VALUES[name], VALUES["dense"]).pvalue)
    assert [rows["rrf"].holm_p, rows["learned"].holm_p] == pytest.approx(list(holm([rows["rrf"].p, rows["learned"].p])))
    assert rows["bm25"].holm_p is None
    (told,) = [line for line in found.sentences() if line.lstrip().startswith("bm25")]
    assert "Holm" not in told
    assert "Holm" in found.sentences()[1]
    assert "None" not in found.section()


def test_the_best_of_several_is_said_to_be_favoured():
    """Of ten equal rankings one of the others is far behind the best in most samples."""
    base, rng = RNG.random(100), np.random.default_rng(3)
    values = {f"s{k}": base + 0.1 * rng.normal(size=100) for k in range(10)}
    found = against_single(values, list(values), "ndcg_10", 0.95)
    assert min(row.p for row in found.rows if row.p is not None) < 0.05
    said = f"{found.baseline} was selected as the best of 10 single rankings on these same queries, which favours it"
    assert found.sentences()[-1].startswith(said)
    assert said in found.section()
    alone = against_single({name: VALUES[name] for name in ("dense", "rrf")}, ["dense"], "ndcg_10", 0.95)
    assert not any("favours" in line for line in (*alone.sentences(), alone.section()))


def test_undefined_queries_are_left_out():
    values = {"bm25": np.array([0.1, np.nan, 0.3, 0.4]), "rrf": np.array([0.2, 0.5, np.nan, 0.4])}
    row = next(row for row in against_single(values, ["bm25"], "map", 0.95).rows if row.ranker == "rrf")
    assert (row.n, row.difference) == (3, pytest.approx(0.05))


def test_it_is_told_and_shown():
    found = against_single({**VALUES, "<b>": VALUES["rrf"]}, ["bm25", "dense"], "ndcg_10", 0.95)
    assert found.sentences()[0] == "NDCG@10 on 30 test queries, with 95% intervals, against the best single ranking, dense:"
    assert found.sentences()[1].startswith("  learned  0.")
    assert "&lt;b&gt;" in found.section()
    assert found.tags() == {"best_single": "dense"}
    assert found.numbers()["best_single"]["rows"][0]["ranker"] == "learned"


def test_it_needs_a_single_ranking():
    with pytest.raises(ConfigError, match="best_single: no ranker is a single ranking"):
        parse({"data": {"files": "a"}, "best_single": {}})
    with pytest.raises(ConfigError, match="lower 'errors' is better, but this measure must be maximised"):
        parse({"data": {"files": "a"}, "rankers": {"a": {"kind": "column", "feature": "f1"}}, "best_single": {"measure": "errors"}})


def test_equal_differences_are_no_certainty_and_means_stay_on_their_scale():
    found = against_single({"bm25": np.full(4, 0.5), "new": np.full(4, 0.6)}, ["bm25"], "mrr", 0.95)
    by_name = {row.ranker: row for row in found.rows}
    low, high = by_name["new"].between
    assert low < 0 < 0.1 < high
    seen = 0.025 ** (1 / 4)
    assert by_name["new"].interval == pytest.approx((0.6 * seen, 0.6 * seen + 1 - seen)), (
        "of 4 values that are one number, between 0 and 1"
    )


def test_rankers_that_differ_on_no_query_are_not_known_to_be_one():
    found = against_single({"bm25": np.array([0.2, 0.4, 0.9]), "new": np.array([0.2, 0.4, 0.9])}, ["bm25"], "mrr", 0.95)
    (row,) = [row for row in found.rows if row.ranker == "new"]
    assert (row.difference, row.p) == (0, 1)
    assert row.between == pytest.approx((0.025 ** (1 / 3) - 1, 1 - 0.025 ** (1 / 3)))
