"""The table of several data sets by hand."""

import numpy as np
import polars as pl
import pytest

from tasks.report.study import MICRO, gather, markdown, write_study


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
        "A": {"base": [stored("a1", 0.4, 50)], "other": [stored("a2", 0.38, 50)], "new": [stored("a3", 0.5, 50)]},
        "B": {
            "base": [stored("b1", 0.6, 30), stored("b2", 0.7, 20)], "other": [stored("b3", 0.6, 30), stored("b4", 0.72, 20)],
            "new": [stored("b5", 0.3, 30), stored("b6", 0.3, 20)],
        },
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
    assert "| new | **0.5000** + | 0.3000 − | 0.4000 |" in markdown(table)
    page = write_study(table, "a <study>", tmp_path / "s.html").read_text()
    assert "a &lt;study&gt;" in page
    assert '<td class="p1">0.5000<sup>+</sup></td>' in page
    assert "Best in a column, of 4: other 2, new 2." in page
