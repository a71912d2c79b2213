"""Session log → click labels (Svore 2011 section 6).

The label of a document for a query is the share of its impressions on which it was the last click of the result page (one
query in one session, or in one interaction of it): last
clicks say more about satisfaction than clicks. Shown and never clicked is 0; never shown has no label, which is not 0.
"""

import difflib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from ltr.queries import Queries
from tasks.config import ClickLog
from tasks.ingest import DataError, located


@dataclass(frozen=True)
class ClickFacts:
    """What the log and its join with the judged documents amount to."""

    impressions: int
    last_clicks: int
    labelled: int
    above_zero: int
    pairs: int
    """Pairs of one query with non-zero, different click labels and equal judged ones: what the graded objective learns from."""
    correlation: float
    """Kendall's τ of click labels and judged ones over documents that have both."""

    def __str__(self) -> str:
        return (
            f"{self.impressions:,} impressions, {self.last_clicks:,} last clicks; {self.labelled:,} judged documents were shown, "
            f"{self.above_zero:,} have a click label above 0; {self.pairs:,} eligible click pairs; τ with judgments {self.correlation:.3f}"
        )


def click_table(log: ClickLog) -> pl.DataFrame:
    """One row a (query, document) pair that was shown: ``impressions``, ``last_clicks`` and their ratio ``click``.

    Raises:
        DataError: for a missing file or column, or a click that is not a whole number or several with commas.
    """
    path = located(log.log)
    csv = path.suffix.lower() == ".csv"
    try:
        if path.suffix.lower() == ".parquet":
            frame = pl.scan_parquet(path)
        else:
            frame = pl.scan_csv(path, separator="," if csv else "\t", infer_schema=False, quote_char='"' if csv else None)
        columns = frame.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{log.log}: cannot be read: {str(error).splitlines()[0]}") from None
    page = [log.session, *([log.interaction] if log.interaction else []), log.query]
    for column in (*page, log.query, log.document, log.click):
        if column not in columns:
            near = difflib.get_close_matches(column, columns.names(), n=2)
            raise DataError(
                f"{log.log}: no column {column!r}; {'did you mean ' + ' or '.join(near) + '?' if near else 'there are: ' + ', '.join(columns.names())}"
            )
    order = pl.col(log.click)
    if columns[log.click].is_float():
        order = order.fill_nan(None)
    if columns[log.click].is_numeric() or columns[log.click] == pl.Boolean:
        order = order.cast(pl.Int64)
    else:
        _check_clicks(log, frame)
        order = order.fill_null("").str.split(",").list.eval(pl.element().str.strip_chars().cast(pl.Int64, strict=False)).list.max()
    shown = (
        frame.with_columns(
            order.fill_null(0).alias("_order"), pl.col(log.query).cast(pl.String), pl.col(log.document).cast(pl.String)
        )
        .group_by([*page, log.document])
        .agg(pl.col("_order").max())
    )
    is_last = (pl.col("_order") > 0) & (pl.col("_order") == pl.col("_order").max().over(page))
    return (
        shown.with_columns(is_last.alias("_last"))
        .group_by(pl.col(log.query).alias("query"), pl.col(log.document).alias("document"))
        .agg(pl.len().alias("impressions"), pl.col("_last").sum().cast(pl.Int64).alias("last_clicks"))
        .filter(pl.col("impressions") >= log.min_impressions)
        .with_columns(_rate(log.prior).alias("click"))
        .sort("query", "document")
        .collect(engine="streaming")
    )


def _rate(prior: float) -> pl.Expr:
    """Last clicks over impressions, drawn towards the rate of the whole log as if each pair had been shown `prior` times more."""
    last, shown = pl.col("last_clicks"), pl.col("impressions")
    return (last + prior * last.sum() / shown.sum()) / (shown + prior)


def _check_clicks(log: ClickLog, frame: pl.LazyFrame) -> None:
    wrong = (
        frame.select(pl.col(log.click).str.strip_chars().alias("click"))
        .with_row_index("row", offset=2)
        .filter(pl.col("click").is_not_null() & ~pl.col("click").str.contains(r"^(\s*\d+\s*(,\s*\d+\s*)*)?$"))
        .head(1)
        .collect()
    )
    if wrong.height:
        raise DataError(
            f"{log.log}, line {wrong['row'][0]}: click {wrong['click'][0][:40]!r}: the order of the clicks on a result, such as 2 or 1,3, or nothing"
        )


def attach(queries: Queries, table: pl.DataFrame, label: str = "the data") -> tuple[Queries, ClickFacts]:
    """The data set with the label source ``click``.

    Raises:
        DataError: where the data have no document ids, or no pair of the log is in them (with three examples of each side).
    """
    if queries.documents is None or queries.ids is None:
        raise DataError(f"{label}: click labels are joined by query and document id, and the documents have no id")
    judged = pl.DataFrame({
        "query": np.char.decode(np.repeat(queries.ids, np.diff(queries.offsets)), "utf-8", "replace"),
        "document": np.char.decode(queries.documents, "utf-8", "replace"),
    })  # fmt: skip
    joined = judged.join(table, on=["query", "document"], how="left", maintain_order="left")
    clicks = joined["click"].fill_null(float("nan")).to_numpy().copy()
    if np.isnan(clicks).all():
        ours, theirs = (
            ", ".join(f"{q}/{d}" for q, d in side.select("query", "document").head(3).rows()) for side in (judged, table)
        )
        raise DataError(f"{label}: no document of the click log is in the data; query/document there: {theirs}; here: {ours}")
    both = ~np.isnan(clicks) & ~np.isnan(queries.labels)
    facts = ClickFacts(
        impressions=int(joined["impressions"].sum() or 0),
        last_clicks=int(joined["last_clicks"].sum() or 0),
        labelled=int((~np.isnan(clicks)).sum()),
        above_zero=int((clicks > 0).sum()),
        pairs=_eligible_pairs(queries, clicks),
        correlation=float(np.nan_to_num(stats.kendalltau(clicks[both], queries.labels[both]).statistic)) if both.sum() > 1 else 0.0,
    )
    return replace(queries, sources={**queries.sources, "click": clicks}), facts


def _eligible_pairs(queries: Queries, clicks: Any) -> int:
    """Documents of a group (query, label) with non-zero clicks pair up unless their clicks are equal: counts of counts."""
    clicked = clicks > 0
    of_query = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))[clicked]
    groups = np.column_stack((of_query, queries.labels[clicked]))
    _, group_sizes = np.unique(groups, axis=0, return_counts=True)
    _, equal_sizes = np.unique(np.column_stack((groups, clicks[clicked])), axis=0, return_counts=True)
    return int((group_sizes * (group_sizes - 1) // 2).sum() - (equal_sizes * (equal_sizes - 1) // 2).sum())
