"""The page: the same bytes for the same run, text that is escaped, and a section for every kind of evidence."""

from dataclasses import replace

import pytest

import tasks.evidence  # noqa: F401  (keys of a configuration)
from tasks.config.reading import parse
from tasks.evidence.significance import Mean, PairTest, Standing, Standings
from tasks.records import Cell, CellResult, Finding, Fold, Trained
from tasks.report.outcome import RunOutcome
from tasks.report.page import Figures, page, table_columns, write_plots, write_report
from tasks.store.datasets import keep_queries
from tests.conftest import make_queries
from tests.tasks.evidence.samples import CERTIFICATES, CHALLENGE, GUARANTEES, INSPECTIONS, SEGMENTS

RANKERS = {"linear": {"kind": "least_squares"}, "other": {"kind": "ranksvm"}}
CONFIG = parse({"data": {"files": "x"}, "rankers": RANKERS})


@pytest.fixture
def outcome(workplace):
    """The outcome of a run of two rankers, with evidence of every kind."""
    fold = Fold(*(keep_queries(make_queries(5, seed=seed)) for seed in range(3)))

    def trained(ranker):
        cell = Cell(ranker, ranker, 0, {}, {}, fold, ("ndcg_10",), {})
        return Trained(cell, CellResult(ranker, "ab" * 32, {"valid_ndcg_10": 0.5}, 1.0, ("a <remark>",)))

    cells = (trained("linear"), trained("other"))
    mean = Mean(0.5, 0.01, 10, {"b": 95})
    rows = {
        "linear": Standing("a", {"ndcg_10": mean}),
        "other": Standing("b", {"ndcg_10": replace(mean, mean=None, beats={})}),
    }
    standings = Standings(("ndcg_10",), rows, (PairTest("ndcg_10", "linear", "other", 0.1, 0.0, None, 0.0, 9, 95, 0.0),))
    found = (CHALLENGE, GUARANTEES, SEGMENTS, CERTIFICATES, INSPECTIONS)
    findings = (Finding("note", "<script>alert(1)</script>", "fine"),)
    return RunOutcome(CONFIG, "0123456789abcdef", (fold,), findings, cells, cells, standings, found)


def test_the_page_is_reproducible_and_escaped(outcome, tmp_path):
    first = write_report.fn(outcome, Figures.of(outcome), tmp_path / "a.html").read_bytes()
    assert write_report.fn(outcome, Figures.of(outcome), tmp_path / "b" / "b.html").read_bytes() == first
    assert b"<script>alert" not in first
    assert b"&lt;script&gt;" in first
    assert b"a &lt;remark&gt;" in first
    assert b"0.5000<sup>b</sup>" in first
    assert b"q&lt;1&gt;" in first
    assert b"NDCG@3, test" in first
    assert b"<th>t</th><th>p</th>" in first, "Student's"


def test_undefined_means_are_dashes(outcome):
    rows = page(outcome, Figures.of(outcome))["rows"]
    assert rows[1]["cells"][0].mean == "–"
    assert rows[0]["cells"][0].best


def test_evidence_brings_its_sections_its_column_and_its_files(outcome, tmp_path):
    figures = Figures.of(outcome)
    text = write_report.fn(outcome, figures, tmp_path / "a.html").read_text()
    places = [
        text.index(f"<h2>{title}</h2>") for title in ("Champion", "Guarantee", "Segments", "Local optimality", "λ microscope")
    ]
    assert places == sorted(places)
    (column,) = table_columns(outcome)
    assert (column.title, column.words) == ("optimum of NDCG", {"linear": "optimum"})
    assert "<th>optimum of NDCG</th>" in text
    assert '<span class="verdict optimum">optimum</span>' in text
    names = {path.name for path in write_plots(outcome, figures, tmp_path / "plots")}
    assert names >= {"optimality-linear.svg", "frontier-graded.svg", "moves-graded.svg", "measure-by-iteration.svg"}
    bare = write_report.fn(replace(outcome, evidence=()), figures, tmp_path / "b.html").read_text()
    assert "<h2>Champion</h2>" not in bare
    assert "optimum of" not in bare


def test_what_is_of_the_first_fold_alone_says_so(outcome, tmp_path):
    figures, told = Figures.of(outcome), "Of the models of the first fold."
    assert told not in write_report.fn(outcome, figures, tmp_path / "a.html").read_text()
    folds = write_report.fn(replace(outcome, folds=outcome.folds * 2), figures, tmp_path / "b.html").read_text()
    assert folds.count(told) == sum(found.of_first_fold for found in outcome.evidence) == 2
    assert folds.index("<h2>Local optimality</h2>") < folds.index(told) < folds.index("<h2>λ microscope</h2>")
    bare = replace(outcome, folds=outcome.folds * 2, evidence=(replace(CERTIFICATES, found=()),))
    assert told not in write_report.fn(bare, figures, tmp_path / "c.html").read_text()


def test_of_many_pairs_those_with_the_best_ranker_and_then_of_the_selecting_measure_are_shown(outcome, tmp_path, monkeypatch):
    names, measures = ("linear", "other", "third", "fourth"), ("map", "ndcg_10")
    tests = [PairTest(m, a, b, 0.1, 0.0, None, 0.0, 9, 95) for m in measures for k, a in enumerate(names) for b in names[k + 1 :]]
    many = replace(outcome, standings=replace(outcome.standings, pairs=tuple(tests)))
    assert "<summary>All paired comparisons</summary>" in write_report.fn(many, Figures.of(many), tmp_path / "a.html").read_text()
    monkeypatch.setattr("tasks.report.page.PAIRS", 8)
    shown = page(many, Figures.of(many))["pairs"]
    with_best = [one for one in tests if many.best in (one.a, one.b)]
    assert shown == [
        one for one in tests if one in with_best or one in [t for t in tests if t.measure == "ndcg_10" and t.a == "other"]
    ]
    text = write_report.fn(many, Figures.of(many), tmp_path / "b.html").read_text()
    assert "<summary>8 of 12 paired comparisons: those with linear first, then those in NDCG@10; <code>lambdaflow compare" in text


def test_headings_are_titles_of_measures_with_their_short_names(outcome, tmp_path):
    standings = outcome.standings
    (measure,) = standings.measures
    rows = {
        name: replace(row, cells={"err_10": row.cells[measure], "ndcg_10": row.cells[measure]})
        for name, row in standings.rows.items()
    }
    named = replace(outcome, standings=replace(standings, measures=("err_10", "ndcg_10"), rows=rows))
    text = write_report.fn(named, Figures.of(named), tmp_path / "a.html").read_text()
    assert "<th>Expected reciprocal rank@10<br><small>ERR@10</small></th><th>NDCG@10</th>" in text
