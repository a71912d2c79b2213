"""Standings by hand: fold means, standard errors, and who beats whom."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ltr
from ltr.metrics.significance import holm
from tasks.evidence.significance import marks, standings
from tasks.store.values import write_values


def write(path, values, queries=None):
    n = len(values)
    frame = pl.DataFrame(
        {"split": ["test"] * n, "query": queries or [f"q{k:03}" for k in range(n)], "ndcg_10": values, "map": values}
    )
    frame.write_parquet(path)
    return str(path)


def test_standings(tmp_path):
    rng = np.random.default_rng(0)
    base = rng.random(60)
    paths = {
        "a": [write(tmp_path / "a1", base[:40]), write(tmp_path / "a2", base[40:])],
        "b": [write(tmp_path / "b1", base[:40] + 0.1 + 0.01 * rng.normal(size=40)), write(tmp_path / "b2", base[40:] + 0.1)],
        "c": [write(tmp_path / "c1", base[:40]), write(tmp_path / "c2", base[40:])],
    }
    table = standings.fn(paths, ["ndcg_10", "map"])
    cell = table.rows["b"].cells["ndcg_10"]
    assert cell.beats == {"a": 95, "c": 95}
    assert marks(cell.beats) == "ac"
    assert table.rows["a"].cells["map"].beats == {}
    assert table.rows["a"].cells["map"].mean == pytest.approx((base[:40].mean() + base[40:].mean()) / 2)
    assert table.rows["a"].cells["map"].se == pytest.approx(base.std(ddof=1) / np.sqrt(60))
    assert len(table.pairs) == 6
    assert all(pair.holm_p >= pair.p for pair in table.pairs)


def test_what_was_not_asked_for_is_not_written(tmp_path):
    table = standings.fn({name: [write(tmp_path / name, [0.1, value])] for name, value in (("a", 0.2), ("b", 0.4))}, ["map"])
    (pair,) = table.as_json()["pairs"]
    assert pair.keys().isdisjoint(("randomisation_p", "interval", "not_worse", "few"))


def test_every_ranker_has_a_letter(tmp_path):
    path = write(tmp_path / "a", [0.1, 0.2])
    table = standings.fn({f"r{k}": [path] for k in range(54)}, ["map"])
    assert [table.rows[f"r{k}"].letter for k in (0, 25, 26, 51, 52, 53)] == ["a", "z", "A", "Z", "[53]", "[54]"]


def test_undefined_queries_and_rows_in_another_order(tmp_path):
    values = [0.1, None, 0.9, 0.4]
    names = ["q1", "q2", "q3", "q4"]
    paths = {"a": [write(tmp_path / "a", values, names)], "b": [write(tmp_path / "b", values[::-1], names[::-1])]}
    table = standings.fn(paths, ["map"])
    assert table.pairs[0].difference == 0
    assert table.pairs[0].n == 3
    assert table.rows["a"].cells["map"].n == 3


def test_a_measure_nowhere_defined_is_blank(tmp_path):
    table = standings.fn({"a": [write(tmp_path / "a", pl.Series([None, None], dtype=pl.Float64))]}, ["map"])
    assert table.rows["a"].cells["map"].mean is None


def test_marks():
    assert marks({"b": 90, "a": 95}) == "a(b)"


def _standings(measure, *values):
    n, folder, paths = len(values[0]), Path(), {}
    q = ltr.Queries(
        np.ones((n, 1), np.float32), np.ones(n), np.arange(n + 1), ids=np.array([f"q{k:03d}".encode() for k in range(n)])
    )
    for k, own in enumerate(values):
        frame = pl.DataFrame({"split": ["test"] * n, "query": [f"q{j:03d}" for j in range(n)], measure: own})
        write_values(folder / f"{k}.parquet", [frame], {}, q)
        paths["abcdef"[k]] = [str(folder / f"{k}.parquet")]
    return standings.fn(paths, [measure])


def test_what_is_significant_at_90_alone_is_in_brackets(workplace):
    rng = np.random.default_rng(0)
    x = rng.normal(size=12)
    x = (x - x.mean()) / x.std(ddof=1)
    found = _standings("map", (0.5 + 0.1 * x + 0.1 * 1.95 / np.sqrt(12)).tolist(), [0.5] * 12)  # t = 1.95, p = .077
    assert found.rows["a"].cells["map"].beats == {"b": 90}


def test_who_has_fewer_errors_is_better(workplace):
    rng = np.random.default_rng(0)
    few, many = rng.random(30), 3 + rng.random(30)
    assert _standings("errors", few.tolist(), many.tolist()).rows["a"].cells["errors"].beats == {"b": 95}


def test_p_values_of_all_pairs_are_corrected_together(workplace):
    rng = np.random.default_rng(0)
    found = _standings("map", *(rng.random(30).tolist() for _ in range(3)))
    assert [pair.holm_p for pair in found.pairs] == holm([pair.p for pair in found.pairs]).tolist()
