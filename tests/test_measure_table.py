"""The table of measures in docs/measures.md is that of the measures there are."""

import runpy
from dataclasses import replace
from pathlib import Path

from ltr.metrics.measure import MEASURES

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "measure_table.py"))


def test_the_page_is_what_is_registered():
    page = SCRIPT["PAGE"].read_text(encoding="utf-8")
    assert page == SCRIPT["render"](page), "docs/measures.md and the registered measures differ: make results"
    assert all(f"| `{name}" in page for name in MEASURES)


def test_another_measure_changes_the_table():
    other = replace(MEASURES["map"], name="other", title="a|b", formula="x", paper="y")
    assert SCRIPT["row"](other) == "| `other`, `other@k` | a\\|b | x | y | binary |\n"
    page = "before\n<!-- measures -->\nold\n<!-- end -->\nafter\n"
    assert SCRIPT["render"](page).count("\n") == 4 + 2 + len(MEASURES)
