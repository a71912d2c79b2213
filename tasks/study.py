"""One table of several data sets: the best three of each column, micro-averages, wins, and tests against the best baseline."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.metrics import significance
from ltr.metrics.measure import fewer_is_better
from tasks.evaluate import read_values
from tasks.figures import label_of

MICRO = "micro-average"


@task(cache_policy=NO_CACHE, name="gather", task_run_name="gather")
def gather(values: Mapping[str, Mapping[str, Sequence[str]]], measures: Sequence[str], baselines: Sequence[str]) -> dict[str, Any]:
    """Rankers × (measure, data set).

    Args:
        values: by data set and ranker the per-query values of its folds.
        measures: keys.
        baselines: the best of these in a column is what all others are tested against there.

    Returns:
        ``datasets``, ``measures``, ``baselines`` and ``rows``: for each ranker ``cells`` by data set and measure (``mean`` of the folds'
        means, ``n`` queries, ``place`` in the column, ``level``: 95 or 90 where significantly better than the best baseline, negative
        where worse), ``micro`` by measure (the means weighted by queries) with ``micro_place``, and ``wins`` (columns it is best in).
    """
    rankers = list(next(iter(values.values())))
    rows: dict[str, Any] = {r: {"cells": {d: {} for d in values}, "micro": {}, "micro_place": {}, "wins": 0} for r in rankers}
    for measure in measures:
        sign = -1 if fewer_is_better(measure) else 1
        for dataset, files in values.items():
            taken = {ranker: [_values(path, measure) for path in paths] for ranker, paths in files.items()}
            means = {ranker: float(np.mean([np.nanmean(part) for part in parts])) for ranker, parts in taken.items()}
            pooled = {ranker: np.concatenate(parts) for ranker, parts in taken.items()}
            best = max(baselines, key=lambda name: sign * means[name]) if baselines else None
            for ranker in rankers:
                rows[ranker]["cells"][dataset][measure] = {
                    "mean": means[ranker],
                    "n": int((~np.isnan(pooled[ranker])).sum()),
                    "place": _place(means, ranker, sign),
                    "level": _level(pooled[ranker], pooled[best], sign) if best and ranker not in baselines else 0,
                }
                rows[ranker]["wins"] += means[ranker] == max(means.values(), key=lambda mean: sign * mean)
        weights = {d: rows[rankers[0]]["cells"][d][measure]["n"] for d in values}
        micro = {r: sum(weights[d] * rows[r]["cells"][d][measure]["mean"] for d in values) / sum(weights.values()) for r in rankers}
        for ranker in rankers:
            rows[ranker]["micro"][measure] = micro[ranker]
            rows[ranker]["micro_place"][measure] = _place(micro, ranker, sign)
    return {"datasets": list(values), "measures": list(measures), "baselines": list(baselines), "rows": rows}


def _values(path: str, measure: str) -> NDArray[np.float64]:
    return read_values(Path(path), "test")[measure].cast(float).fill_null(float("nan")).to_numpy()


def _place(means: Mapping[str, float], ranker: str, sign: int) -> int:
    return 1 + sum(sign * other > sign * means[ranker] for other in means.values())


def _level(ours: NDArray[np.float64], theirs: NDArray[np.float64], sign: int) -> int:
    try:
        found = significance.paired_t(ours, theirs)
    except ValueError:
        return 0
    return int(np.sign(sign * found.difference)) * found.level


def lines(table: Mapping[str, Any], measure: str) -> list[list[dict[str, Any]]]:
    """The cells of one measure's part of the table: a line a ranker, a cell a data set, then the micro-average."""
    found = []
    for row in table["rows"].values():
        cells = [{**row["cells"][d][measure], "mark": _mark(row["cells"][d][measure]["level"])} for d in table["datasets"]]
        found.append([*cells, {"mean": row["micro"][measure], "place": row["micro_place"][measure], "mark": ""}])
    return found


def _mark(level: int) -> str:
    return {95: "+", 90: "(+)", -95: "−", -90: "(−)", 0: ""}[level]


def markdown(table: Mapping[str, Any]) -> str:
    parts = []
    for measure in table["measures"]:
        parts += [
            "| " + " | ".join((label_of(measure), *table["datasets"], MICRO)) + " |",
            "|---" * (len(table["datasets"]) + 2) + "|",
        ]
        for name, cells in zip(table["rows"], lines(table, measure), strict=True):
            parts.append(f"| {name} | " + " | ".join(f"{_strong(cell)} {cell['mark']}".strip() for cell in cells) + " |")
        parts.append("")
    return "\n".join(parts)


def _strong(cell: Mapping[str, Any]) -> str:
    return f"**{cell['mean']:.4f}**" if cell["place"] == 1 else f"{cell['mean']:.4f}"


_STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2rem auto; padding: 0 1rem; color: #1b2430 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin-bottom: 1.6rem }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #dfe4ea; text-align: right } th:first-child, td:first-child { text-align: left }
.p1 { background: #cfe9d5; font-weight: 600 } .p2 { background: #f6efc3 } .p3 { background: #ecdcc8 } sup { color: #22577a }"""


def write_study(table: Mapping[str, Any], title: str, path: Path) -> Path:
    """The table as a page; the best three of each column are shaded."""
    parts = [f"<h1>{html.escape(title)}</h1>"]
    for measure in table["measures"]:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in (label_of(measure), *table["datasets"], MICRO))
        body = "".join(
            f"<tr><td>{html.escape(name)}</td>"
            + "".join(f'<td class="p{min(c["place"], 4)}">{c["mean"]:.4f}<sup>{c["mark"]}</sup></td>' for c in cells)
            + "</tr>"
            for name, cells in zip(table["rows"], lines(table, measure), strict=True)
        )
        parts.append(f"<table><tr>{head}</tr>{body}</table>")
    columns = len(table["datasets"]) * len(table["measures"])
    wins = ", ".join(f"{html.escape(name)} {row['wins']}" for name, row in table["rows"].items() if row["wins"])
    parts.append(f"<p>Best in a column, of {columns}: {wins}.</p>")
    against = ", ".join(map(html.escape, table["baselines"])) or "none named"
    parts.append(
        f"<p>Shaded: the best three of a column. +: better than the best baseline of the column at 95 %, in brackets at 90 %, −: worse "
        f"(paired t; baselines: {against}). The micro-average weighs data sets by their queries.</p>"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    path.write_text(f"{head}{''.join(parts)}</html>\n")
    return path
