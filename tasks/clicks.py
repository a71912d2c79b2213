"""Session logs → click labels of judged documents (Svore 2011 section 6): last clicks over impressions, of equal or of similar queries.

The log is read lazily and in a stream; what stays in memory is one row a shown pair of query and document.
"""

import difflib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from ltr.data.propensities import propensities
from ltr.data.queries import Queries
from tasks.config import ClickLabel, ClickLog
from tasks.ingest import DataError, located
from tasks.similar import normalised, similar_clicks, similar_words


@dataclass(frozen=True)
class ClickFacts:
    """What a label and its join with the judged documents amount to."""

    impressions: int
    clicks: int
    labelled: int
    above_zero: int
    pairs: int
    """Pairs of one query with non-zero, different click labels and equal judged ones: what the graded objective learns from."""
    correlation: float
    """Kendall's τ of click labels and judged ones over documents that have both."""

    def __str__(self) -> str:
        return (
            f"{self.impressions:,} impressions, {self.clicks:,} clicks that count; {self.labelled:,} judged documents were shown, "
            f"{self.above_zero:,} have a click label above 0; {self.pairs:,} eligible click pairs; τ with judgments {self.correlation:.3f}"
        )


def attach_all(queries: Queries, log: ClickLog, label: str = "the data") -> tuple[Queries, list[str]]:
    """The data set with every label of the log as a source, and a sentence about each.

    Raises:
        DataError: for whatever is wrong with the log, and where it has nothing of the data.
    """
    judged = _judged(queries, label)
    tables, notes = click_tables(log, judged["query"].unique())
    for name, table in tables.items():
        queries, facts = attach(queries, table, name, label)
        notes.append(f"label {name!r}: {facts}")
    return queries, notes


def click_tables(log: ClickLog, judged: pl.Series | None = None) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """For each label of a log one row a pair of (normalised) query and document: ``query``, ``document``, ``impressions``,
    ``clicks`` and their ratio ``rate``; and sentences about what was estimated. `judged`: the queries whose similar ones matter.

    Raises:
        DataError: for a missing file or column, a click that is not a whole number or several with commas, a rank below 1.
    """
    frame, page = _opened(log)
    notes = []
    shown = _shown(log, frame, page)
    if any(label.debias for label in log.labels.values()):
        theta = _propensities(log, shown)
        notes.append("looks at ranks 1, 2, …: " + " ".join("–" if np.isnan(t) else f"{t:.2f}" for t in theta[:10]))
        at = pl.DataFrame({"rank": np.arange(1, len(theta) + 1), "look": np.nan_to_num(theta)}, schema_overrides={"rank": pl.Int64})
        shown = shown.join(at, on="rank", how="left").with_columns(looks=pl.col("impressions") * pl.col("look").fill_null(0.0))
    counts = shown.group_by("query", "document").agg(
        pl.col("impressions", "last", "all", *(["looks"] if "looks" in shown.columns else [])).sum()
    )
    tables = {}
    for name, label in log.labels.items():
        own = counts
        if label.queries == "similar":
            pairs, found = _similar(log, frame, counts, label, judged)
            notes.append(f"label {name!r}: {found:,} pairs of similar queries")
            own = pairs.join(counts, left_on="other", right_on="query").drop("other").group_by("query", "document").sum()
        base = pl.col("looks" if label.debias else "impressions")
        tables[name] = (
            own.filter((pl.col("impressions") >= label.min_impressions) & (base > 0))
            .select(
                "query", "document", pl.col("impressions").cast(pl.Int64), clicks=pl.col(label.clicks),
                rate=_rate(pl.col(label.clicks), base, label.prior, counts.select(pl.col(label.clicks).sum() / base.sum()).item()).clip(0, 1),
            )
            .sort("query", "document")
        )  # fmt: skip
    return tables, notes


def _rate(clicked: pl.Expr, shown: pl.Expr, prior: float, mean: float) -> pl.Expr:
    """Clicks over impressions, drawn towards the log's rate as if each pair had been shown `prior` times more."""
    return (clicked + prior * mean) / (shown + prior)


def _opened(log: ClickLog) -> tuple[pl.LazyFrame, list[str]]:
    """The log with checked columns ``_order`` (of the last click; 0: none) and, where a label needs it, ``_rank``; the columns of a page."""
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
    debias = any(label.debias for label in log.labels.values())
    for column in (*page, log.document, log.click, *([log.rank] if debias else []), *([log.text] if log.text else [])):
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
        _check(
            log,
            frame,
            log.click,
            r"^(\s*\d+\s*(,\s*\d+\s*)*)?$",
            "the order of the clicks on a result, such as 2 or 1,3, or nothing",
        )
        order = order.fill_null("").str.split(",").list.eval(pl.element().str.strip_chars().cast(pl.Int64, strict=False)).list.max()
    rank = pl.lit(1)
    if debias:
        _check(log, frame, log.rank, r"^\s*0*[1-9]\d{0,8}\s*$", "the place a result was shown at, 1 or more", empty=False)
        rank = pl.col(log.rank).cast(pl.String).str.strip_chars().cast(pl.Int64)
    text = [pl.col(column).cast(pl.String) for column in (log.query, log.document)]
    return frame.with_columns(order.fill_null(0).alias("_order"), rank.alias("_rank"), *text), page


def _check(log: ClickLog, frame: pl.LazyFrame, column: str, pattern: str, rule: str, empty: bool = True) -> None:
    fits = pl.col("value").str.contains(pattern).fill_null(empty)
    values = frame.select(pl.col(column).cast(pl.String).alias("value")).with_row_index("row", offset=2)
    wrong = values.filter(~fits).head(1).collect(engine="streaming")
    if wrong.height:
        raise DataError(f"{log.log}, line {wrong['row'][0]}: {column} {str(wrong['value'][0])[:40]!r}: {rule}")


def _shown(log: ClickLog, frame: pl.LazyFrame, page: list[str]) -> pl.DataFrame:
    """One row a shown (query, document, rank): ``impressions``, and the clicks that are the ``last`` of their page, and ``all``.
    A document that a page shows twice was shown once, where it first stood."""
    once = frame.group_by([*page, log.document]).agg(pl.col("_order").max(), pl.col("_rank").min())
    is_last = (pl.col("_order") > 0) & (pl.col("_order") == pl.col("_order").max().over(page))
    counted = (
        once.with_columns(is_last.alias("_last"))
        .group_by(pl.col(log.query).alias("query"), pl.col(log.document).alias("document"), pl.col("_rank").alias("rank"))
        .agg(
            pl.len().cast(pl.Int64).alias("impressions"),
            pl.col("_last").sum().cast(pl.Int64).alias("last"),
            (pl.col("_order") > 0).sum().cast(pl.Int64).alias("all"),
        )
        .collect(engine="streaming")
    )
    names = counted.select("query").unique().with_columns(normalised("query").alias("_normal"))
    return (
        counted.join(names, on="query")
        .with_columns(query=pl.col("_normal"))
        .drop("_normal")
        .group_by("query", "document", "rank")
        .sum()
    )


def _propensities(log: ClickLog, shown: pl.DataFrame) -> NDArray[np.float64]:
    """How often each rank is looked at, from all clicks of the log."""
    by_pair = shown.sort("query", "document", "rank").with_columns(pair=pl.struct("query", "document").rank("dense") - 1)
    document, rank, shown_at, clicked = (by_pair[c].cast(pl.Int64).to_numpy() for c in ("pair", "rank", "impressions", "all"))
    try:
        return propensities(document, rank, shown_at, clicked)
    except ValueError as error:
        raise DataError(f"{log.log}: {error}; a label with debias needs a log that shows documents at several ranks") from None


def asked(log: ClickLog) -> pl.DataFrame:
    """One row a (normalised) ``query`` of a log: the ``text`` that was typed most often, and its result ``pages``.

    Raises:
        DataError: as `click_tables`.
    """
    frame, page = _opened(log)
    shown = frame.select(*dict.fromkeys([*page, log.text or log.query])).unique().collect(engine="streaming")
    named = shown.select(normalised(log.query).alias("query"), pl.col(log.text or log.query).cast(pl.String).alias("text"))
    counted = named.group_by("query", "text").len("pages").sort("pages", "text", descending=[True, False])
    return counted.group_by("query").agg(pl.col("text").first(), pl.col("pages").sum()).sort("query")


# --- similar queries ------------------------------------------------------------------------------------------------------


def _similar(
    log: ClickLog, frame: pl.LazyFrame, counts: pl.DataFrame, label: ClickLabel, judged: pl.Series | None
) -> tuple[pl.DataFrame, int]:
    """Pairs ``query``, ``other`` of similar queries, each with itself; and how many are not themselves."""
    known = judged if judged is not None else counts["query"].unique()
    if label.by == "clicks":
        pairs = similar_clicks(counts.select("query", "document", clicks=pl.col("all")), known, label.similarity)
    else:
        typed = frame.select(query=pl.col(log.query), text=pl.col(log.text or log.query)).unique().collect(engine="streaming")
        pairs = similar_words(
            typed.select(normalised("query").alias("query"), normalised("text").alias("text")).unique(), known, label.similarity
        )
    others = pairs.filter(pl.col("query") != pl.col("other"))
    itself = known.to_frame("query").with_columns(other=pl.col("query"))
    return pl.concat((others, itself)), others.height


# --- the join with judged documents ---------------------------------------------------------------------------------------


def _judged(queries: Queries, label: str) -> pl.DataFrame:
    """The judged documents by normalised query and document id, in their order."""
    if queries.documents is None or queries.ids is None:
        raise DataError(f"{label}: click labels are joined by query and document id, and the documents have no id")
    return pl.DataFrame({
        "query": np.char.decode(np.repeat(queries.ids, np.diff(queries.offsets)), "utf-8", "replace"),
        "document": np.char.decode(queries.documents, "utf-8", "replace"),
    }).with_columns(normalised("query").alias("query"))  # fmt: skip


def attach(queries: Queries, table: pl.DataFrame, name: str = "click", label: str = "the data") -> tuple[Queries, ClickFacts]:
    """The data set with the label source `name`, from a table of `click_tables`.

    Raises:
        DataError: where the data have no document ids, or no pair of the log is in them (with three examples of each side).
    """
    judged = _judged(queries, label)
    joined = judged.join(table, on=["query", "document"], how="left", maintain_order="left")
    clicks = joined["rate"].fill_null(float("nan")).to_numpy().copy()
    if np.isnan(clicks).all():
        ours, theirs = (
            ", ".join(f"{q}/{d}" for q, d in side.select("query", "document").head(3).rows()) for side in (judged, table)
        )
        raise DataError(f"{label}: no document of the click log is in the data; query/document there: {theirs}; here: {ours}")
    both = ~np.isnan(clicks) & ~np.isnan(queries.labels)
    facts = ClickFacts(
        impressions=int(joined["impressions"].sum() or 0),
        clicks=int(joined["clicks"].sum() or 0),
        labelled=int((~np.isnan(clicks)).sum()),
        above_zero=int((clicks > 0).sum()),
        pairs=_eligible_pairs(queries, clicks),
        correlation=float(np.nan_to_num(stats.kendalltau(clicks[both], queries.labels[both]).statistic)) if both.sum() > 1 else 0.0,
    )
    return replace(queries, sources={**queries.sources, name: clicks}), facts


def _eligible_pairs(queries: Queries, clicks: Any) -> int:
    """Documents of a group (query, label) with non-zero clicks pair up unless their clicks are equal: counts of counts."""
    clicked = clicks > 0
    of_query = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))[clicked]
    groups = np.column_stack((of_query, queries.labels[clicked]))
    _, group_sizes = np.unique(groups, axis=0, return_counts=True)
    _, equal_sizes = np.unique(np.column_stack((groups, clicks[clicked])), axis=0, return_counts=True)
    return int((group_sizes * (group_sizes - 1) // 2).sum() - (equal_sizes * (equal_sizes - 1) // 2).sum())
