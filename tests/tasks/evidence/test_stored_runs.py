"""Finished runs held against each other; the whole of it is in `tests/flows/test_pipeline.py`."""

import numpy as np
import polars as pl
import pytest

from tasks.evidence.significance import PairTest
from tasks.evidence.stored_runs import _more_tests, compare_stored, scorecards
from tasks.records import DataError
from tasks.tracking.runs import Stored


def test_not_worse_is_not_more_errors():
    rng = np.random.default_rng(0)
    frames = {"a": [pl.DataFrame({"errors": rng.random(40)})], "b": [pl.DataFrame({"errors": 3 + rng.random(40)})]}
    pair = PairTest("errors", "a", "b", -3.0, 0.1, -30.0, 0.0, 40, 95)
    found = _more_tests(pair, frames, 0.1)
    assert (found.not_worse, found.few) == (("a",), "")


def test_that_too_few_queries_differ_to_show_either_not_worse_is_said():
    values = np.linspace(0.1, 0.9, 80)
    frames = {
        "a": [pl.DataFrame({"map": values})],
        "b": [pl.DataFrame({"map": np.where(np.arange(80) < 24, values[::-1], values)})],
    }
    found = _more_tests(PairTest("map", "a", "b", 0.0, 0.1, 0.0, 1.0, 80, 0), frames, 0.01)
    assert (found.not_worse, found.few) == (
        (),
        "map differs on 24 of 80 test queries; a test needs 30, or 20 if these are at least half",
    )
    assert _more_tests(PairTest("map", "a", "b", 0.0, 0.1, 0.0, 1.0, 80, 0), frames, None).few is None


def _stored(folder, name, seed):
    values = np.random.default_rng(seed).random((2, 20))
    queries = {"split": ["test"] * 20, "query": [f"q{k:02}" for k in range(20)]}
    pl.DataFrame({**queries, "ndcg_3": values[0], "map": values[1]}).write_parquet(folder / f"{name}.parquet")
    return Stored(name, (str(folder / f"{name}.parquet"),))


def test_a_measure_that_is_named_twice_is_compared_once_and_a_tier_is_refused(tmp_path):
    stored = [_stored(tmp_path, "a", 1), _stored(tmp_path, "b", 2)]
    found = compare_stored(stored, ["ndcg@3", "map", "ndcg_3"])
    assert found.measures == ("ndcg_3", "map")
    assert [pair.measure for pair in found.pairs] == ["ndcg_3", "map"]
    assert [tier.measure for tier in scorecards(stored, ["map", "ndcg@3"], 0.0, 0.95)[0].tiers] == ["map", "ndcg_3"]
    with pytest.raises(DataError, match="--tier ndcg_3: named twice"):
        scorecards(stored, ["ndcg@3", "map", "ndcg_3"], 0.0, 0.95)
    with pytest.raises(ValueError, match="level 95 lie in"):
        scorecards(stored, ["ndcg_3", "map"], 0.0, 95)


def test_a_scorecard_that_too_few_queries_leave_open_says_so(tmp_path):
    """Of 20 queries 9 differ, or all."""
    a, b, near = (_stored(tmp_path, name, seed) for name, seed in (("a", 1), ("b", 2), ("near", 1)))
    changed = pl.read_parquet(near.paths[0]).with_columns(map=pl.col("map") + pl.Series([0.1, -0.1, 0.1] * 3 + [0.0] * 11))
    changed.write_parquet(near.paths[0])
    few, enough = scorecards([a, near], ["ndcg_3", "map"], 0.0, 0.95), scorecards([a, b], ["ndcg_3", "map"], 0.0, 0.95)
    assert (few[0].comparison, enough[0].comparison) == ("open", "open")
    assert few[0].few == "map differs on 9 of 20 test queries; a test needs 30, or 20 if these are at least half"
    assert enough[0].few == ""
