"""One table of several data sets: the best three of each column, micro-averages, wins, and tests against the best baseline."""

import html
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.metrics import significance
from ltr.metrics.measure import fewer_is_better, lowest_of
from tasks.evidence.drawing import heading_of, title_of
from tasks.records import MICRO
from tasks.report.outcome import RunOutcome
from tasks.report.publish import report_page
from tasks.store.values import read_values, values_of

Repetition = Mapping[str, Sequence[str]]
"""By ranker the files with the per-query values of its folds."""


@dataclass(frozen=True)
class StudyCell:
    """A ranker on one data set and measure.

    Attributes:
        mean: of the folds' means, and of repetitions.
        n: queries where it is defined.
        se: standard error of the mean over these queries, each with its mean over the repetitions; NaN of one query or a micro-average.
        place: in the column, 1 for the best; 0 where the measure is defined on no query.
        level: 95 or 90 where significantly better than the best baseline, negative where worse, otherwise 0.
    """

    mean: float
    n: int
    place: int
    level: int = 0
    se: float = math.nan

    @property
    def mark(self) -> str:
        """The level as a sign, in brackets at 90 %."""
        return {95: "+", 90: "(+)", -95: "−", -90: "(−)", 0: ""}[self.level]

    @property
    def spread(self) -> str:
        """The standard error as it stands behind a mean."""
        return "" if math.isnan(self.se) else f"±{self.se:.4f}"


@dataclass(frozen=True)
class StudyTable:
    """Rankers × (measure, data set).

    Attributes:
        cells: by ranker, measure and data set, where the ranker was trained; the micro-average over data sets, the means weighted by
            queries, is `MICRO`, and there where the ranker was trained on all of them.
        wins: columns that each ranker is best in.
    """

    datasets: tuple[str, ...]
    measures: tuple[str, ...]
    baselines: tuple[str, ...]
    cells: dict[str, dict[str, dict[str, StudyCell]]]
    wins: dict[str, int]

    @property
    def rankers(self) -> list[str]:
        """The rankers, in their order."""
        return list(self.cells)

    def micro_averages(self) -> dict[str, float]:
        """``{ranker}/{measure}`` → micro-average."""
        return {f"{r}/{m}": own[m][MICRO].mean for r, own in self.cells.items() for m in self.measures if MICRO in own[m]}

    def lines(self, measure: str) -> list[list[StudyCell | None]]:
        """The cells of one measure: a line a ranker, a cell a data set, then the micro-average; None where there is none, or the measure is defined on
        no query."""
        found = [[own[measure].get(dataset) for dataset in (*self.datasets, MICRO)] for own in self.cells.values()]
        return [[None if cell is None or math.isnan(cell.mean) else cell for cell in line] for line in found]


@task(cache_policy=NO_CACHE, name="gather", task_run_name="gather")
def gather(values: Mapping[str, Sequence[Repetition]], measures: Sequence[str], baselines: Sequence[str]) -> StudyTable:
    """The table of a study.

    Args:
        values: of each data set and repetition, the per-query values of the folds by ranker.
        measures: keys.
        baselines: the best of these in a column is what all others are tested against there.
    """
    rankers = list(dict.fromkeys(ranker for runs in values.values() for files in runs for ranker in files))
    cells: dict[str, dict[str, dict[str, StudyCell]]] = {ranker: {} for ranker in rankers}
    wins = dict.fromkeys(rankers, 0)
    for measure in measures:
        columns = {dataset: _column(runs, measure, baselines) for dataset, runs in values.items()}
        columns[MICRO] = _micro_average(columns, measure)
        for ranker in rankers:
            own = {dataset: column[ranker] for dataset, column in columns.items() if ranker in column}
            cells[ranker][measure] = own
            wins[ranker] += sum(cell.place == 1 for dataset, cell in own.items() if dataset != MICRO)
    return StudyTable(tuple(values), tuple(measures), tuple(baselines), cells, wins)


def _column(runs: Sequence[Repetition], measure: str, baselines: Sequence[str]) -> dict[str, StudyCell]:
    """All rankers on one data set that came to something in every repetition."""
    sign = -1 if fewer_is_better(measure) else 1
    rankers = [ranker for ranker in runs[0] if all(ranker in files for files in runs)]
    taken = {ranker: [[read_values(Path(path), "test") for path in files[ranker]] for files in runs] for ranker in rankers}
    means = {ranker: _mean_of_folds(repetitions, measure) for ranker, repetitions in taken.items()}
    joined = {ranker: _by_query(repetitions, measure) for ranker, repetitions in taken.items()}
    best = max((name for name in baselines if name in means), key=lambda name: sign * means[name], default=None)
    found = {}
    for ranker, own in joined.items():
        defined = own[~np.isnan(own)]
        level = _level(own, joined[best], measure) if best and ranker not in baselines else 0
        se = float(defined.std(ddof=1) / np.sqrt(len(defined))) if len(defined) > 1 else math.nan
        found[ranker] = StudyCell(means[ranker], len(defined), _place(means, ranker, sign), level, se)
    return found


def _mean_of_folds(repetitions: Sequence[Sequence[pl.DataFrame]], measure: str) -> float:
    """Of the folds that have a query where the measure is defined; NaN where none has."""
    folds = [values_of(part, measure) for parts in repetitions for part in parts]
    means = [np.nanmean(own) for own in folds if not np.isnan(own).all()]
    return float(np.mean(means)) if means else math.nan


def _by_query(repetitions: Sequence[Sequence[pl.DataFrame]], measure: str) -> NDArray[np.float64]:
    """Each query's mean over the repetitions, in whichever folds these have it; NaN where the measure is not defined. Queries are the same by
    name, those that several folds of a repetition call alike by their order."""
    values = [np.concatenate([values_of(part, measure) for part in parts]) for parts in repetitions]
    if len(values) == 1:
        return values[0]
    named = pl.concat(
        pl.concat([part.select("query") for part in parts]).with_columns(one=pl.int_range(pl.len()).over("query"))
        for parts in repetitions
    )
    query = named.select(pl.struct("query", "one").rank("dense"))["query"].to_numpy() - 1
    everything = np.concatenate(values)
    defined = ~np.isnan(everything)
    with np.errstate(invalid="ignore"):
        return np.bincount(query, np.where(defined, everything, 0.0)) / np.bincount(query, defined)


def _micro_average(columns: Mapping[str, Mapping[str, StudyCell]], measure: str) -> dict[str, StudyCell]:
    """Means over the data sets, weighted by the queries of each, of the rankers that are in all of them."""
    rankers = [ranker for ranker in next(iter(columns.values())) if all(ranker in column for column in columns.values())]
    if not rankers:
        return {}
    weights = {dataset: column[rankers[0]].n for dataset, column in columns.items()}
    total = sum(weights.values())
    if total == 0:
        return {}
    micro = {r: sum(weights[d] * column[r].mean for d, column in columns.items() if weights[d]) / total for r in rankers}
    sign = -1 if fewer_is_better(measure) else 1
    return {ranker: StudyCell(mean, total, _place(micro, ranker, sign)) for ranker, mean in micro.items()}


def _place(means: Mapping[str, float], ranker: str, sign: int) -> int:
    own = means[ranker]
    return 0 if math.isnan(own) else 1 + sum(sign * other > sign * own for other in means.values())


def _level(ours: NDArray[np.float64], theirs: NDArray[np.float64], measure: str) -> int:
    try:
        found = significance.paired_t(ours, theirs, lowest_of(measure))
    except ValueError:
        return 0
    better = -found.difference if fewer_is_better(measure) else found.difference
    return int(np.sign(better)) * found.level


def markdown(table: StudyTable) -> str:
    """The table in Markdown, a part a measure."""
    parts = []
    for measure in table.measures:
        parts += [
            "| " + " | ".join((title_of(measure), *table.datasets, MICRO)) + " |",
            "|---" * (len(table.datasets) + 2) + "|",
        ]
        for name, cells in zip(table.rankers, table.lines(measure), strict=True):
            parts.append(f"| {name} | " + " | ".join(map(_marked, cells)) + " |")
        parts.append("")
    return "\n".join(parts)


def _marked(cell: StudyCell | None) -> str:
    if cell is None:
        return "–"
    mean = f"**{cell.mean:.4f}**" if cell.place == 1 else f"{cell.mean:.4f}"
    return " ".join(part for part in (mean, cell.spread, cell.mark) if part)


_FAVOURED = "; the best of several is favoured, as it is the best on these queries: a ranker with − may be its equal"

_STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2rem auto; padding: 0 1rem; color: #1b2430 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin-bottom: 1.6rem; break-inside: avoid }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #dfe4ea; text-align: right } th:first-child, td:first-child { text-align: left }
.runs th, .runs td { text-align: left } a { color: inherit } .p1 { background: #cfe9d5; font-weight: 600 } .p2 { background: #f6efc3 } .p3 { background: #ecdcc8 } sup { color: #22577a }
@media (prefers-color-scheme: dark) { body { background: #1c1c1c; color: #dfe5ec } th, td { border-color: #363d47 } sup { color: #7fb8dd }
.p1 { background: #1f4a33 } .p2 { background: #474018 } .p3 { background: #453426 } }"""


def write_study(table: StudyTable, title: str, path: Path, runs: Sequence[RunOutcome] = ()) -> Path:
    """The table as a page; the best three of each column are shaded. Below it the runs that it is of, each with its own page and its models."""
    parts = [f"<h1>{html.escape(title)}</h1>"]
    for measure in table.measures:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in (heading_of(measure), *table.datasets, MICRO))
        body = "".join(
            f"<tr><td>{html.escape(name)}</td>"
            + "".join(
                f'<td class="p{min(c.place, 4)}">{c.mean:.4f}<sup>{c.mark}</sup> <small>{c.spread}</small></td>'
                if c
                else "<td>–</td>"
                for c in cells
            )
            + "</tr>"
            for name, cells in zip(table.rankers, table.lines(measure), strict=True)
        )
        parts.append(f"<table><tr>{head}</tr>{body}</table>")
    columns = len(table.datasets) * len(table.measures)
    wins = ", ".join(f"{html.escape(name)} {n}" for name, n in table.wins.items() if n)
    parts.append(f"<p>Number of columns, of {columns}, in which a ranker is best: {wins}.</p>")
    against = ", ".join(map(html.escape, table.baselines)) or "none named"
    parts.append(
        f"<p>Shaded: the best three of a column. +: significantly better than the best baseline of the column at 95 %, in brackets at 90 %; −: worse "
        f"(paired t-test; baselines: {against}{_FAVOURED if len(table.baselines) > 1 else ''}). ±: standard error over test queries, after averaging each query over repetitions. The micro-average weighs data sets by their number of queries.</p>"
    )
    parts.append(_runs(runs, path.parent) if runs else "")
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    path.write_text(f"{head}{''.join(parts)}</html>\n", encoding="utf-8")
    return path


def _runs(runs: Sequence[RunOutcome], folder: Path) -> str:
    rows = [
        f'<tr><td><a href="{quote(os.path.relpath(report_page(one), folder))}">{html.escape(one.config.name)}</a></td>'
        f"<td><code>{html.escape(one.called)}</code></td></tr>"
        for one in runs
    ]
    return f'<table class="runs"><tr><th>run</th><th>models, as named in commands</th></tr>{"".join(rows)}</table>'
