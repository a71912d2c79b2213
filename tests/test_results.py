"""The tables of docs/results.md are those of docs/benchmarks.json, and every benchmark writes its own there."""

import ast
import json
import platform

import pytest

from benchmarks import results
from benchmarks.pairs import Timing, columns

ENTRY = {
    "title": "Two things in turn",
    "machine": "x86-64, 2 threads",
    "date": "2026-01-31",
    "versions": {"numba": "0.68.1", "numpy": "2.4.6"},
    "columns": ["what", "seconds"],
    "rows": [["one", "0.5"], ["two", "1.0"]],
    "notes": "Both were warm.",
}
SCRIPTS = sorted(
    path for path in results.DOCS.parent.glob("benchmarks/*.py") if path.stem not in ("__init__", "lifelike", "pairs", "results")
)


def test_the_page_is_what_the_file_renders_to():
    page = results.PAGE.read_text(encoding="utf-8")
    assert page == results.render(page, results.read()), "docs/results.md and docs/benchmarks.json differ: make results"
    assert len(results.BLOCK.findall(page)) == page.count("<!-- benchmark:") == page.count("<!-- end -->")


def test_the_file_is_whole_and_in_its_own_order():
    tables = results.read()
    assert results.FILE.read_text(encoding="utf-8") == json.dumps(tables, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    for key, entry in tables.items():
        assert set(entry) == set(results.FIELDS), key
        assert all(len(row) == len(entry["columns"]) for row in entry["rows"]), key
        assert all(isinstance(cell, str) for row in entry["rows"] for cell in row), key


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_benchmark_records_what_it_prints(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    tables = [call for call in calls if getattr(call.func, "id", None) == "Table"]
    assert tables
    assert len(tables) == sum(getattr(call.func, "attr", None) == "record" for call in calls)


def test_an_entry_as_a_table():
    table = "| what | seconds |\n|---|---|\n| one | 0.5 |\n| two | 1.0 |\n"
    below = "*x86-64, 2 threads; 2026-01-31; numba 0.68.1, numpy 2.4.6.* Both were warm.\n"
    page = "before\n<!-- benchmark: a.b -->\nold\n<!-- end -->\nafter\n"
    made = results.render(page, {"a.b": ENTRY})
    assert made == f"before\n<!-- benchmark: a.b -->\n{table}\n{below}<!-- end -->\nafter\n"
    assert results.render(made, {"a.b": ENTRY}) == made
    unknown = {**ENTRY, "date": "", "versions": {}, "notes": ""}
    assert "\n*x86-64, 2 threads.*\n<!-- end -->" in results.render(page, {"a.b": unknown})
    with pytest.raises(ValueError, match=r"no table 'a\.b'; there are c"):
        results.render(page, {"c": ENTRY})


def test_a_record_takes_the_place_of_its_own_key_only(tmp_path):
    file = tmp_path / "benchmarks.json"
    results.record("b", ENTRY, file)
    results.record("a", {**ENTRY, "title": "first"}, file)
    results.record("b", {**ENTRY, "date": "2026-02-01"}, file)
    tables = json.loads(file.read_text(encoding="utf-8"))
    assert list(tables) == ["a", "b"]
    assert tables["a"]["title"] == "first"
    assert tables["b"] == {**ENTRY, "date": "2026-02-01"}
    assert [path.name for path in tmp_path.iterdir()] == ["benchmarks.json"]
    with pytest.raises(ValueError, match="a table has title, machine"):
        results.record("c", {"rows": []}, file)


def test_a_table_is_printed_and_recorded_with_its_machine_but_not_its_name(tmp_path, capsys):
    file = tmp_path / "benchmarks.json"
    table = results.Table("turns", "Two things in turn", columns("the other"), threads=1, file=file)
    table.add("one", *Timing([1.0, 2.0, 3.0], [4.0, 4.0, 4.0]).cells)
    table.note("All were warm.")
    with pytest.raises(ValueError, match="turns: 1 cells for 5 columns"):
        table.add("two")
    assert not file.exists()
    table.record()
    recorded = results.read(file)["turns"]
    assert recorded["rows"] == [["one", "2.0000", "4.0000", "0.500 (0.250–0.750)", "2.0×"]]
    assert recorded["notes"] == "All were warm."
    assert recorded["machine"].endswith(", 1 thread")
    assert platform.node() not in json.dumps(recorded)
    assert {"python", "numba", "numpy"} == set(recorded["versions"])
    printed = capsys.readouterr().out
    assert "| one | 2.0000 | 4.0000 | 0.500 (0.250–0.750) | 2.0× |" in printed
    assert "All were warm." in printed
    results.Table("small", "A try", ("what",), keep=False, file=file).record()
    assert set(results.read(file)) == {"turns"}
