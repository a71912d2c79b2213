"""One page a run, self-contained: who is better and by how much, with what certainty, at an optimum or not, from which data.

The page has a frame of its own (``page.html``) and puts in the sections that the run's evidence brings. Its script (``page.js``) makes it one
to explore; without scripts it says the same in tables and figures.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import jinja2
from markupsafe import Markup
from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.evidence.drawing import heading_of, title_of
from tasks.evidence.protocol import TableColumn
from tasks.evidence.significance import Mean, PairTest, best_mean, marks
from tasks.records import Finding, Trained
from tasks.report.explore import explored, page_script
from tasks.report.figures import (
    curve_figure,
    importance_figure,
    objective_figures,
    pairs_figures,
    position_bias_figure,
    swept_figures,
)
from tasks.report.outcome import RunOutcome, objective_shapes
from tasks.report.searches import search_figures, search_sentences
from tasks.store.cells import CellFolder

PAIRS = 2_000
"""Paired comparisons in the page: all of 59 rankers on 7 measures, 11,977, took a megabyte and a half."""


@dataclass(frozen=True)
class Figures:
    """Figures of the chosen cells, and of searches, by the names that they have as files of their own."""

    curves: Mapping[str, str]
    importances: Mapping[str, str]
    position_biases: Mapping[str, str]
    searches: Mapping[str, str]

    @classmethod
    def of(cls, outcome: RunOutcome) -> Self:
        """Draws them, which takes longer than to write the page."""

        def of_each(kind: str, draw: Callable[[str, Sequence[CellFolder]], str | None]) -> dict[str, str]:
            return {f"{kind}-{name}": svg for name, folders in outcome.folders.items() if (svg := draw(name, folders))}

        return cls(
            of_each("curve", curve_figure),
            of_each("importance", importance_figure),
            of_each("position-bias", position_bias_figure),
            search_figures(outcome),
        )


@task(cache_policy=NO_CACHE, name="report", task_run_name="report")
def write_report(outcome: RunOutcome, figures: Figures, path: Path) -> Path:
    """Writes the page of a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_template().render(**page(outcome, figures)), encoding="utf-8")
    return path


@cache
def _template() -> jinja2.Template:
    return jinja2.Environment(autoescape=True, trim_blocks=True).from_string(
        Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    )


@dataclass(frozen=True)
class ShownMean:
    """A mean as the page shows it."""

    mean: str
    se: str
    marks: str
    best: bool


@dataclass(frozen=True)
class ShownCell:
    """A cell of the sweep as the page shows it."""

    label: str
    chosen: bool
    valid: str
    test: str
    seconds: str
    digest: str
    remarks: str


def page(outcome: RunOutcome, figures: Figures) -> Mapping[str, Any]:
    """What the template shows, formatted."""
    standings, config = outcome.standings, outcome.config
    best = {m: best_mean(m, [row.cells[m].mean for row in standings.rows.values()]) for m in standings.measures}
    columns = table_columns(outcome)
    conventions = config.conventions.model_dump(mode="json")
    chosen = {trained.cell.label for trained in outcome.chosen}
    found = explored(outcome)
    return {
        "name": config.name,
        "facts": outcome.facts,
        "summary": outcome.summary,
        "cut": config.cut,
        "measures": [(heading_of(m), title_of(m)) for m in standings.measures],
        "columns": [column.title for column in columns],
        "rows": [
            {
                "name": name,
                "letter": row.letter,
                "words": [column.words.get(name) for column in columns],
                "cells": [_shown_mean(row.cells[m], best[m]) for m in standings.measures],
            }
            for name, row in standings.rows.items()
        ],
        "n_folds": len(outcome.folds),
        "conventions": "Conventions: " + ", ".join(f"{k} {v}" for k, v in conventions.items()) + ".",
        "sections": [(Markup(found.section()), found.of_first_fold) for found in outcome.evidence],
        "objectives": objective_figures(objective_shapes(config, outcome.cells)),
        "best": outcome.best,
        "best_at": list(standings.rows).index(outcome.best),
        "lost": found.lost(),
        "data": Markup(found.json()),
        "script": Markup(page_script()),
        "curves": list(figures.curves.values()),
        "figures": [*training_figures(outcome), *figures.importances.values(), *figures.position_biases.values()],
        "searches": search_sentences(outcome),
        "search_figures": list(figures.searches.values()),
        "at_ends": outcome.at_ends,
        "cells": [_shown_cell(trained, config.select_key, trained.cell.label in chosen) for trained in outcome.cells],
        "select": title_of(config.select_key),
        "pairs": shown_pairs(outcome),
        "n_pairs": len(standings.pairs),
        "findings": [*(Finding("error", failure.what, failure.why) for failure in outcome.failures), *outcome.findings],
        "config": outcome.config_text,
    }


def shown_pairs(outcome: RunOutcome) -> list[PairTest]:
    """Paired tests of the page, at most `PAIRS`: of more those with the best ranker come first, then those in the selecting measure."""
    pairs, best, select = outcome.standings.pairs, outcome.best, outcome.config.select_key

    def rank(place: int) -> tuple[bool, bool]:
        return best not in (pairs[place].a, pairs[place].b), pairs[place].measure != select

    return [pairs[place] for place in sorted(sorted(range(len(pairs)), key=rank)[:PAIRS])]


def table_columns(outcome: RunOutcome) -> list[TableColumn]:
    """Columns that the evidence adds to the table of rankers."""
    return [column for found in outcome.evidence if (column := found.column())]


def training_figures(outcome: RunOutcome) -> list[str]:
    """Measures against what was swept, and effective pairs."""
    config, measures = outcome.config, outcome.standings.measures
    swept = swept_figures(outcome.drawn, config.plot_by, measures)
    return [figure for figure in (*swept, *pairs_figures(outcome.cells, measures)) if figure]


def write_plots(outcome: RunOutcome, figures: Figures, folder: Path) -> list[Path]:
    """The figures of curves, importances, ranks, searches and evidence as files of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {**figures.curves, **figures.importances, **figures.position_biases, **figures.searches}
    for evidence in outcome.evidence:
        drawn |= evidence.figures
    paths = []
    for name, figure in drawn.items():
        if figure:
            paths.append(folder / f"{name}.svg")
            paths[-1].write_text(figure, encoding="utf-8")
    return paths


def _shown_mean(cell: Mean, best: float | None) -> ShownMean:
    if cell.mean is None:
        return ShownMean("–", "–", "", False)
    se = "–" if cell.se is None else f"{cell.se:.4f}"
    return ShownMean(f"{cell.mean:.4f}", se, marks(cell.beats), cell.mean == best)


def _shown_cell(trained: Trained, select: str, chosen: bool) -> ShownCell:
    result = trained.result

    def shown(split: str) -> str:
        value = result.metrics.get(f"{split}_{select}")
        return "–" if value is None else f"{value:.4f}"

    remarks = "; ".join(result.remarks)
    return ShownCell(
        trained.cell.label, chosen, shown("valid"), shown("test"), f"{result.seconds:.1f}", result.digest[:12], remarks
    )
