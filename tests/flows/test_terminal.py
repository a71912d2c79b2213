"""The end of a run as it is printed: tables of runs, studies and comparisons."""

import io
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from flows.progress import steps
from flows.study import StudyOutcome
from flows.terminal import MOST_COLUMNS, show, show_changed, show_comparison, show_lines, show_scorecards, show_study
from tasks.config.reading import parse
from tasks.evidence.optimality import CertificateRecord, Certificates
from tasks.evidence.segments import ChangedQuery, Changes
from tasks.evidence.significance import Mean, PairTest, Standing, Standings, TierResult
from tasks.evidence.stored_runs import Scorecard
from tasks.records import MICRO, Cell, CellResult, Fold, Trained
from tasks.report.outcome import RunOutcome
from tasks.report.study import StudyCell, StudyTable

FOLD = Fold("t", "v", "e")
MEASURES = ("ndcg_3", "map")


def standings(measures=MEASURES, names=("trees", "linear")):
    """Each ranker worse than the one before it, by one tenth; the first beats the second at 95 % and by MAP at 90 %."""
    rows = {}
    for k, name in enumerate(names):
        levels = {m: {"b": 90 if m == "map" else 95} if k == 0 else {} for m in measures}
        rows[name] = Standing("abc"[k], {m: Mean(0.75 - 0.1 * k, 0.0125, 30, levels[m]) for m in measures})
    pair = PairTest(measures[0], *names[:2], 0.1, 0.02, 5.0, 0.00001, 30, 95)
    return Standings(tuple(measures), rows, (pair,))


def trained(ranker, value):
    cell = Cell(ranker, ranker, 0, {}, {}, FOLD, MEASURES, {})
    return Trained(cell, CellResult(f"key of {ranker}", f"digest of {ranker}", {"valid_ndcg_10": value, "test_map": 0.5}, 1.0))


@pytest.fixture
def outcome():
    config = parse(
        {"name": "small", "data": {"files": "x"}, "rankers": {"trees": {"kind": "lambdamart"}, "linear": {"kind": "lambdarank"}}}
    )
    chosen = (trained("trees", 0.7), trained("linear", 0.6))
    return RunOutcome(config, "0123456789abcdef", (FOLD,), (), chosen, chosen, standings())


def certificate(ranker, verdict):
    lines = [[0.5, 0.4]] * 4
    return CertificateRecord(
        ranker, None, verdict, "ndcg", 0.6, (0.1, 0.2), True, 1.0, lines, 0, 0, 0.0, 0.1, 0.1, 0.1, "", lines[:2], 22
    )


def printed(capsys):
    return capsys.readouterr().out


def row_of(text, name):
    """The cells of a row and of the two lines below it."""
    lines = text.splitlines()
    (at,) = [k for k, line in enumerate(lines) if re.match(rf"│ {re.escape(name)}\s*│", line)]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines[at : at + 3]]


def test_names_between_colons_are_no_pictures(capsys):
    """rich made an emoji of ``:a:`` in ``01234567:a:1``, the name of a model of the ranker ``a``."""
    told = "01234567:a:1 … :2, 01234567:star:1"
    show_lines([told], sys.stdout)
    show_comparison(replace(standings(names=(":a:", ":fire:")), pairs=()), sys.stdout)
    text = printed(capsys)
    assert text.splitlines()[0] == told
    assert ":fire:" in text
    with steps() as shown:
        shown.done("query :b: and :star:")
    assert capsys.readouterr().err == "  query :b: and :star:\n"


@pytest.mark.parametrize(("columns", "turned"), [(90, False), (60, True), (40, True)])
def test_a_narrow_terminal_cuts_no_number_off(outcome, monkeypatch, columns, turned):
    """At 60 columns standard errors of the six measures that there are by default were ``±.01…``, at 40 all numbers ``.…``."""
    names = ("ndcg_1", "ndcg_3", "ndcg_5", "ndcg_10", "map", "mrr", "err_10", "p_5")
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    show(replace(outcome, standings=standings(names)), written)
    text = re.sub(r"\x1b\[\d*m", "", written.getvalue())
    assert max(map(len, text.split("Letters")[0].splitlines())) <= columns
    assert [text.count(number) for number in (".7500", ".6500", "±.0125", "…")] == [8, 8, 16, 0]
    assert ("measure" in text) == turned


def test_a_run_is_a_table_of_rankers_and_measures(outcome, capsys):
    show(outcome, sys.stdout)
    text = printed(capsys)
    assert text.startswith("small: test queries")
    number, error, marks = row_of(text, "a  trees")
    assert number == ["a  trees", ".7500", ".7500"]
    assert error == ["", "±.0125", "±.0125"]
    assert marks == ["", "b", "(b)"]
    assert row_of(text, "b  linear")[0] == ["b  linear", ".6500", ".6500"]
    assert re.search(r"ranker\s*┃\s*NDCG@3\s*┃\s*MAP", text)
    letters = (
        "Letters: rankers that this one beats (paired t-test at 95 %, in brackets 90 %; not corrected for multiple comparisons)."
    )
    assert letters in " ".join(text.split())
    assert "Best on validation NDCG@10: trees." in text
    assert "Report: .lambdaflow/reports/small-01234567/report.html" in text


@pytest.mark.parametrize(
    ("mlflow", "prefect", "own"),
    [
        ("http://127.0.0.1:5000", None, "MLflow and Prefect"),
        ("http://127.0.0.1:5000", "http://prefect.example/api", "MLflow"),
        ("http://mlflow.example", None, "Prefect"),
        ("http://127.0.0.1:50001", None, "Prefect"),
        ("http://mlflow.example", "http://prefect.example/api", None),
    ],
)
def test_pages_of_others_are_not_promised(outcome, capsys, monkeypatch, mlflow, prefect, own):
    ours = "http://127.0.0.1:43210/api"
    monkeypatch.setenv("LAMBDAFLOW_OWN_SERVER", ours)
    monkeypatch.setenv("PREFECT_API_URL", prefect or ours)
    link = f"{mlflow}/#/experiments/1/runs/{outcome.run_id}{'0' * 60}"
    show(replace(outcome, link=link), sys.stdout)
    text = printed(capsys)
    assert re.findall(r"To view the run in (.*): lambdaflow ui   \(run 01234567\)\n", text) == [own] * (own is not None)
    assert text.endswith(f"\n{link}\n"), "one line, for whoever clicks on it"


def test_an_undefined_mean_is_a_dash(outcome, capsys):
    rows = dict(outcome.standings.rows)
    rows["linear"] = Standing("b", {"ndcg_3": Mean(None, None, 0, {}), "map": Mean(0.65, None, 1, {})})
    show(replace(outcome, standings=replace(outcome.standings, rows=rows)), sys.stdout)
    number, error, _ = row_of(printed(capsys), "b  linear")
    assert number == ["b  linear", "–", ".6500"]
    assert error == ["", "", "±–"]


def test_evidence_adds_columns_of_words_and_sentences(outcome, capsys):
    class Told(Certificates):
        def sentences(self):
            return ["linear is [not] told by [bold]markup[/bold]"]

    show(replace(outcome, evidence=(Told((certificate("linear", "optimum"),), ("trees", "linear")),)), sys.stdout)
    text = printed(capsys)
    assert "optimum of NDCG" in text
    assert row_of(text, "b  linear")[0] == ["b  linear", ".6500", ".6500", "optimum"]
    assert row_of(text, "a  trees")[0] == ["a  trees", ".7500", ".7500", "–"]
    assert "linear is [not] told by [bold]markup[/bold]" in text


def test_with_many_measures_they_are_the_rows(outcome, capsys):
    measures = [f"ndcg_{k}" for k in range(1, MOST_COLUMNS + 2)]
    show(
        replace(outcome, standings=standings(measures), evidence=(Certificates((certificate("linear", "not"),), ("linear",)),)),
        sys.stdout,
    )
    text = printed(capsys)
    assert re.search(r"measure\s*┃\s*a  trees\s*┃\s*b  linear", text)
    for k in range(1, MOST_COLUMNS + 2):
        assert row_of(text, f"NDCG@{k}")[0] == [f"NDCG@{k}", ".7500 ±.0125 b", ".6500 ±.0125"]
    assert "optimum of" not in text

    show(replace(outcome, standings=standings(measures[:-1])), sys.stdout)
    assert re.search(r"ranker\s*┃\s*NDCG@1\s*┃", printed(capsys))


@pytest.mark.parametrize("columns", [110, 60])
def test_a_comparison_of_many_measures_has_them_as_rows(monkeypatch, capsys, columns):
    """Of 23 measures each had a column of one letter."""
    monkeypatch.setenv("COLUMNS", str(columns))
    measures = [f"ndcg_{k}" for k in range(1, 24)]
    show_comparison(replace(standings(measures), pairs=()), sys.stdout)
    text = printed(capsys)
    for measure in range(1, 24):
        assert row_of(text, f"NDCG@{measure}")[0] == [f"NDCG@{measure}", ".7500 ±.0125 b", ".6500 ±.0125"]
    show_comparison(replace(standings(measures[:4]), pairs=()), sys.stdout)
    assert re.search(r"run\s*┃\s*NDCG@1\s*┃", printed(capsys))


def test_names_are_no_markup(outcome, capsys):
    names = ("[red]trees[/red]", "[bold]x")
    config = outcome.config.model_copy(update={"name": "[blue]run"})
    rows = {name: trained(name, 0.5) for name in names}
    renamed = config.model_copy(update={"rankers": dict(zip(names, config.rankers.values(), strict=True))})
    shown = replace(
        outcome, config=renamed, cells=tuple(rows.values()), chosen=tuple(rows.values()), standings=standings(names=names)
    )
    show(shown, sys.stdout)
    text = printed(capsys)
    assert "[blue]run: test queries" in text
    assert "a  [red]trees[/red]" in text
    assert "b  [bold]x" in text
    table = standings(names=names)
    (pair,) = table.pairs
    show_comparison(replace(table, pairs=(replace(pair, randomisation_p=0.5, not_worse=names[:1]),)), sys.stdout)
    means, tests = printed(capsys).split("Paired tests")
    assert "a  [red]trees[/red]" in means
    words = "".join(cell.strip() for cell in re.findall(r"│([^│\n]*)", tests))
    assert words.count("[red]") == 2, "the pair, and who is not worse"


def test_a_study_is_a_part_a_measure(capsys):
    def cells(first, second, micro, levels=(0, 0)):
        return {
            "one": StudyCell(first, 20, 1 if first > 0.5 else 2, levels[0]),
            "two": StudyCell(second, 25, 1 if second > 0.5 else 2, levels[1]),
            MICRO: StudyCell(micro, 45, 1),
        }

    own = {
        "RankSVM": {"ndcg_3": cells(0.4, 0.6, 0.51), "map": cells(0.4, 0.4, 0.4)},
        "[b]ListNet": {"ndcg_3": cells(0.55, 0.45, 0.49, (95, -90)), "map": cells(0.6, 0.7, 0.65, (90, 0))},
    }
    table = StudyTable(("one", "two"), ("ndcg_3", "map"), ("RankSVM",), own, {"RankSVM": 1, "[b]ListNet": 3, "none": 0})
    show_study(StudyOutcome("0123", {}, table, Path("study.html"), ()), "papers [table]", sys.stdout)
    text = printed(capsys)
    first, second = text.split("papers [table]: MAP")
    assert first.startswith("papers [table]: NDCG@3")
    assert re.search(r"ranker\s*┃\s*one\s*┃\s*two\s*┃\s*micro-average", first)
    assert row_of(first, "RankSVM")[0] == ["RankSVM", ".4000", ".6000", ".5100"]
    assert row_of(first, "[b]ListNet")[0] == ["[b]ListNet", ".5500+", ".4500(−)", ".4900"]
    assert row_of(second, "[b]ListNet")[0] == ["[b]ListNet", ".6000(+)", ".7000", ".6500"]
    assert "none 0" not in text
    assert "Columns in which a ranker is best: RankSVM 1, " in text
    assert "Report: study.html" in text


@pytest.mark.parametrize("n", [9, 14])
def test_many_data_sets_of_a_study_are_rows(capsys, n):
    """Of 14 data sets numbers stood on two lines each, ``.512`` and ``3+``."""
    datasets = tuple(f"collection {k}" for k in range(n))
    cells = {name: StudyCell(0.5 + k / 100, 20, 1, 95, 0.0123) for k, name in enumerate((*datasets, MICRO))}
    table = StudyTable(datasets, ("map",), (), {"trees": {"map": cells}, "net": {"map": cells}}, {"trees": n})
    show_study(StudyOutcome("0123", {}, table, Path("study.html"), ()), "s", sys.stdout)
    text = printed(capsys)
    assert re.search(r"data set\s*┃\s*trees\s*┃\s*net", text)
    assert row_of(text, "collection 8")[:2] == [["collection 8", ".5800+", ".5800+"], ["", "±.0123", "±.0123"]]
    assert row_of(text, MICRO)[0][1] == f".{50 + n}00+"


def test_a_comparison_has_the_means_and_every_pairs_tests(capsys):
    table = standings()
    (pair,) = table.pairs
    full = replace(pair, randomisation_p=0.0002, interval=(0.06, 0.14))
    show_comparison(replace(table, pairs=(full,)), sys.stdout)
    text = printed(capsys)
    assert re.search(r"│ a  trees\s*│\s*\.7500 b\s*│\s*\.7500 \(b\)", text)
    assert "Paired tests" in text
    words = " ".join(text.split("Paired tests")[1].replace("│", " ").split())
    assert "trees − linear" in words
    for number in ("+0.1000", "0.0200", "5.00", "1e-05", "0.0002", "+0.0600"):
        assert number in words
    assert "not worse" not in words

    show_comparison(replace(table, pairs=(replace(full, z=None, not_worse=("trees",)), replace(full, not_worse=()))), sys.stdout)
    text = printed(capsys)
    assert "∞" in text
    assert "neither" in text
    assert "is shown to be" not in text

    few = "map differs on 9 of 40 test queries"
    unshown = replace(full, not_worse=(), few=few)
    show_comparison(replace(table, pairs=(unshown, replace(unshown, b="bm25"))), sys.stdout)
    told = [line for line in printed(capsys).splitlines() if line.startswith("neither of")]
    assert told == [f"neither of trees and {other} is shown to be not worse: {few}" for other in ("linear", "bm25")]


def test_scorecards_say_what_the_tiers_amount_to(capsys):
    tiers = (TierResult("ndcg_3", -0.001, -0.004, 0.002, 0.005, "not worse"), TierResult("map", 0.02, 0.01, 0.03, 0.0, "better"))
    for comparison, amounts in (
        ("better", "[b]new is better than old"),
        ("worse", "[b]new is worse than old"),
        ("open", "[b]new and old do not differ significantly"),
    ):
        show_scorecards([Scorecard("[b]new", "old", 0.95, tiers, comparison)], sys.stdout)
        text = printed(capsys)
        assert "[b]new against old" in text
        assert f"Tier by tier, {amounts}. Bounds" in " ".join(text.split())
        assert "each at 95%" in text
        assert [cell.strip() for cell in text.split("│ 1 ")[1].split("\n")[0].split("│")][1:6] == [
            "NDCG@3", "-0.0010", "0.005", "-0.0040 … +0.0020", "not worse",
        ]  # fmt: skip


def test_a_scorecard_says_why_it_is_open(capsys):
    tiers = (TierResult("ndcg_3", -0.001, -0.4, 0.4, 0.005, "open"),)
    show_scorecards([Scorecard("new", "old", 0.95, tiers, "open", "ndcg_3 differs on 3 of 80 test queries")], sys.stdout)
    said = "new and old do not differ significantly: ndcg_3 differs on 3 of 80 test queries. Bounds"
    assert said in " ".join(printed(capsys).split())


def test_changed_queries_are_a_table_a_pair(capsys):
    harmed = ChangedQuery("q[1]", 0.2, 0.7, -0.5)
    helped = ChangedQuery("[b]q2", 0.9, 0.1, 0.8)
    show_changed([Changes("[i]new", "old", "ndcg_10", (harmed,), (helped,), 4, 5, 6)], sys.stdout)
    text = printed(capsys)
    assert "[i]new" in text
    assert re.search(r"│ harmed │ q\[1\]\s*│\s*0\.2000 │ 0\.7000 │\s*-0\.5000 │", text)
    assert re.search(r"│ helped │ \[b\]q2\s*│\s*0\.9000 │ 0\.1000 │\s*\+0\.8000 │", text)


def test_control_characters_do_not_reach_the_terminal(capsys):
    row = ChangedQuery("q\x1b[2J", 0.2, 0.5, -0.3)
    show_changed([Changes("new", "old", "ndcg_3", (row,), (), 1, 0, 3)], sys.stdout)
    text = printed(capsys)
    assert r"q\x1b[2J" in text
    assert "\x1b[2J" not in text


def test_one_query_has_no_standard_error(outcome, capsys):
    row = outcome.standings.rows["trees"]
    alone = replace(row, cells={name: replace(cell, se=None) for name, cell in row.cells.items()})
    show(replace(outcome, standings=replace(outcome.standings, rows={**outcome.standings.rows, "trees": alone})), sys.stdout)
    assert row_of(printed(capsys), "a  trees")[1][1].strip() == "±–"
