"""The table of several data sets by hand."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.records import MICRO
from tasks.report.study import gather, markdown, write_study


@pytest.fixture
def values(tmp_path):
    """Two data sets, of one fold and of two; three rankers."""
    rng = np.random.default_rng(0)

    def stored(name, mean, n):
        noise = 0.01 * rng.normal(size=n)
        path = tmp_path / f"{name}.parquet"
        frame = {"split": ["test"] * n, "query": [f"q{k}" for k in range(n)], "map": mean + noise - noise.mean()}
        pl.DataFrame({**frame, "errors": 5 - 2 * frame["map"]}).write_parquet(path)
        return str(path)

    return {
        "A": [{"base": [stored("a1", 0.4, 50)], "other": [stored("a2", 0.38, 50)], "new": [stored("a3", 0.5, 50)]}],
        "B": [{
            "base": [stored("b1", 0.6, 30), stored("b2", 0.7, 20)], "other": [stored("b3", 0.6, 30), stored("b4", 0.72, 20)],
            "new": [stored("b5", 0.3, 30), stored("b6", 0.3, 20)],
        }],
    }  # fmt: skip


def test_places_micro_averages_wins_and_marks(values, tmp_path):
    table = gather.fn(values, ["map", "errors"], ["base", "other"])
    cells = table.cells
    assert cells["new"]["map"]["A"].mean == pytest.approx(0.5)
    assert cells["base"]["map"]["B"].mean == pytest.approx(0.65)
    assert [cells[r]["map"]["B"].place for r in ("base", "other", "new")] == [2, 1, 3]
    assert [cells[r]["errors"]["A"].place for r in ("base", "other", "new")] == [2, 3, 1]
    assert cells["new"]["map"][MICRO].mean == pytest.approx(0.5 * 0.5 + 0.5 * 0.3)
    assert list(table.wins.values()) == [0, 2, 2]
    assert (cells["new"]["map"]["A"].level, cells["new"]["map"]["B"].level) == (95, -95)
    assert (cells["new"]["errors"]["A"].level, cells["base"]["map"]["A"].level) == (95, 0)
    assert [cell.mark for cell in table.lines("map")[2]] == ["+", "−", ""]
    found = pl.read_parquet(values["A"][0]["new"][0])["map"]
    assert cells["new"]["map"]["A"].se == pytest.approx(found.std() / np.sqrt(50))
    spreads = [cells["new"]["map"][name].spread for name in "AB"]
    assert f"| new | **0.5000** {spreads[0]} + | 0.3000 {spreads[1]} − | 0.4000 |" in markdown(table)
    page = write_study(table, "a <study>", tmp_path / "s.html").read_text()
    assert "a &lt;study&gt;" in page
    assert f'<td class="p1">0.5000<sup>+</sup> <small>{spreads[0]}</small></td>' in page
    assert "Number of columns, of 4, in which a ranker is best: other 2, new 2." in page


def stored(path, queries, values):
    pl.DataFrame({"split": "test", "query": queries, "map": values}).write_parquet(path)
    return str(path)


def test_repetitions_of_the_same_queries_are_one_mean_a_query(tmp_path):
    files = [
        stored(tmp_path / f"{k}.parquet", ["p", "q", "r"], values) for k, values in enumerate(([0.2, 0.4, None], [0.4, 0.8, None]))
    ]
    cell = gather.fn({"A": [{"one": [file]} for file in files]}, ["map"], []).cells["one"]["map"]["A"]
    assert (cell.mean, cell.n) == (pytest.approx((0.3 + 0.6) / 2), 2)
    assert cell.se == pytest.approx(np.std([0.3, 0.6], ddof=1) / np.sqrt(2))


def test_a_query_that_other_folds_have_in_another_repetition_counts_once(tmp_path):
    folds = ([("p", 0.2), ("q", 0.4)], [("r", 0.9)]), ([("r", 0.7), ("p", 0.4)], [("q", None)])
    files = [
        [stored(tmp_path / f"{k}-{j}.parquet", *zip(*fold, strict=True)) for j, fold in enumerate(repetition)]
        for k, repetition in enumerate(folds)
    ]
    cell = gather.fn({"A": [{"one": own} for own in files]}, ["map"], []).cells["one"]["map"]["A"]
    assert cell.n == 3
    assert cell.se == pytest.approx(np.std([0.3, 0.4, 0.8], ddof=1) / np.sqrt(3))


def test_a_fold_in_which_nothing_is_defined_has_no_part_in_the_mean(tmp_path):
    def files(name, *folds):
        return [stored(tmp_path / f"{name}{k}.parquet", [f"{k}p", f"{k}q"], values) for k, values in enumerate(folds)]

    values = {"base": files("b", [0.2, 0.4], [None, None]), "none": files("n", [None, None], [None, None])}
    cells = gather.fn({"A": [values]}, ["map"], ["base"]).cells
    assert cells["base"]["map"]["A"].mean == pytest.approx(0.3)
    assert np.isnan(cells["none"]["map"]["A"].mean)
    assert [cells[name]["map"]["A"].place for name in ("base", "none")] == [1, 0]


def test_repetitions_of_other_queries_stand_behind_one_another(tmp_path):
    files = [stored(tmp_path / f"{k}.parquet", [f"p{k}", f"q{k}"], values) for k, values in enumerate(([0.2, 0.4], [0.4, 0.8]))]
    cell = gather.fn({"A": [{"one": [file]} for file in files]}, ["map"], []).cells["one"]["map"]["A"]
    assert (cell.mean, cell.n) == (pytest.approx(0.45), 4)


def test_a_ranker_that_failed_in_one_repetition_is_missing(tmp_path):
    file = stored(tmp_path / "a.parquet", ["p", "q"], [0.2, 0.4])
    table = gather.fn({"A": [{"one": [file], "two": [file]}, {"one": [file]}]}, ["map"], [])
    assert table.cells["two"]["map"] == {}
    assert "| two | – | – |" in markdown(table)


def test_a_measure_that_a_data_set_has_nowhere_is_a_dash_and_nobody_s_win(tmp_path):
    def stored(name, value, undefined):
        path = tmp_path / f"{name}.parquet"
        frame = pl.DataFrame(
            {"split": ["test"] * 3, "query": ["1", "2", "3"], "ndcg": [value] * 3, "map": [None if undefined else value] * 3}
        )
        frame.with_columns(pl.col("map").cast(pl.Float64)).write_parquet(path)
        return [str(path)]

    values = {
        dataset: [{ranker: stored(f"{dataset}{ranker}", value, dataset == "none") for ranker, value in (("a", 0.5), ("b", 0.25))}]
        for dataset in ("some", "none")
    }
    table = gather.fn(values, ["ndcg", "map"], [])
    assert table.wins == {"a": 3, "b": 0}
    assert table.lines("map")[0][1] is None
    assert "nan" not in markdown(table)
    assert "nan" not in write_study(table, "s", tmp_path / "s.html").read_text()


def test_the_best_baseline_has_the_fewest_errors(workplace):
    rng, n, folder = np.random.default_rng(0), 30, Path()
    for name, shift in (("good", 0.0), ("bad", 5.0), ("own", 2.5)):
        pl.DataFrame(
            {"split": ["test"] * n, "query": [f"q{k:02d}" for k in range(n)], "errors": shift + rng.random(n)}
        ).write_parquet(folder / name)
    table = gather.fn({"d": [{name: [str(folder / name)] for name in ("good", "bad", "own")}]}, ["errors"], ["good", "bad"])
    assert table.cells["own"]["errors"]["d"].level == -95
