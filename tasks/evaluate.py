"""Per-query values of measures: taken once, kept as a table, averaged and compared later without scoring again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import ltr
from ltr.data.queries import Queries
from ltr.metrics.evaluation import explain
from ltr.metrics.measure import why_undefined
from tasks.ingest import DataError


def evaluate(
    model: ltr.Ranker, queries: Queries, measures: Sequence[str], conventions: ltr.Conventions
) -> dict[str, NDArray[np.float64]]:
    """Values ``{key: float64 [queries]}`` of a model's ranking of a data set."""
    labels = {"label": queries.labels, **queries.sources}
    scores = model.predict(queries.features)
    return ltr.evaluate(labels, scores, queries.offsets, measures, conventions, queries.position, queries.documents)


def table(values: Mapping[str, NDArray[np.float64]], queries: Queries, split: str) -> pl.DataFrame:
    """One row a query: split, query id and the measures; an undefined value is null."""
    columns = {key: pl.Series(array).fill_nan(None) for key, array in values.items()}
    return pl.DataFrame({"split": [split] * queries.n_queries, "query": names_of(queries), **columns})


def names_of(queries: Queries) -> list[str]:
    """What each query is called in a table of values: its id as written, or its key where it has none."""
    if queries.ids is None:
        return [f"{key:016x}" for key in queries.keys]
    return [key.decode("utf-8", "replace") for key in queries.ids.tolist()]


def means(frame: pl.DataFrame) -> dict[str, float]:
    """``{split}_{measure}`` → mean over the queries where it is defined; left out where there is none."""
    averages = frame.group_by("split", maintain_order=True).agg(pl.exclude("split", "query").mean())
    return {
        f"{row['split']}_{key}": value
        for row in averages.iter_rows(named=True)
        for key, value in row.items()
        if key != "split" and value is not None
    }


def read_values(path: str | Path, split: str) -> pl.DataFrame:
    """The stored per-query values of one split, by query."""
    return pl.read_parquet(path).filter(pl.col("split") == split).sort("query")


def explained(
    model: ltr.Ranker, queries: Queries, measures: Sequence[str], conventions: ltr.Conventions, tool: str | None = None
) -> list[dict[str, Any]]:
    """Means of a model on a data set; with `tool`, its number by that tool's rules and what each rule moves.

    Returns:
        For each measure ``measure``, ``value``, ``theirs`` and ``shifts`` (`ltr.metrics.evaluation.Shift` as plain values).
    """
    labels, scores = {"label": queries.labels, **queries.sources}, model.predict(queries.features)

    def mean(measure: ltr.Measure, rules: ltr.Conventions) -> float:
        values = ltr.evaluate(labels, scores, queries.offsets, [measure], rules, queries.position, queries.documents)[measure.key]
        return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")

    rows = []
    for measure in map(ltr.Measure.of, measures):
        if np.isnan(mean(measure, conventions)) and measure.source in labels:
            raise DataError(why_undefined(measure, queries.source(measure.source), conventions))
        value, shifts = explain(measure, conventions, tool, mean) if tool else (mean(measure, conventions), [])
        theirs = shifts[-1].value if shifts else value
        rows.append({"measure": measure.key, "value": value, "theirs": theirs, "shifts": [asdict(shift) for shift in shifts]})
    return rows
