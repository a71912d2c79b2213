"""Session logs → click labels of judged documents (Svore 2011 section 6): clicks over impressions, of equal or of similar queries."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ltr.data.propensities import propensities, ties
from ltr.data.queries import Queries
from tasks.config.click_labels import CLICKS, ClickLabel, ClickLog
from tasks.data.click_log import by_pair, open_log, ranks_in_words, results_in, shown_results
from tasks.data.click_models import model_tables
from tasks.data.similar_queries import normalised, similar_clicks, similar_words
from tasks.records import DataError, number_of


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
            f"{number_of(self.impressions, 'impression')}, {number_of(self.clicks, 'click')} counted; {number_of(self.labelled, 'judged document')} "
            f"shown, {self.above_zero:,} with a click label above 0; {number_of(self.pairs, 'eligible click pair')}; "
            f"τ with judgments {self.correlation:.3f}"
        )


def attach_all(queries: Queries, log: ClickLog, label: str = "the data") -> tuple[Queries, list[str]]:
    """The data set with every label of the log as a source, and a sentence about each.

    Raises:
        DataError: for whatever is wrong with the log, and where it has nothing of the data.
    """
    judged = judged_pairs(queries, label)
    tables, notes = click_tables(log, judged.select("query").unique().with_columns(part=0))
    for name, table in tables.items():
        queries, facts = attach(queries, table, name, label)
        notes.append(f"label {name!r}: {facts}")
    return queries, notes


def attach_apart(parts: Sequence[Queries], log: ClickLog) -> tuple[list[Queries], list[str]]:
    """Training, validation and test queries with the labels that pool the clicks of similar queries made again: the clicks of each query
    count in one part only. Otherwise a model would learn from clicks that it is measured by.

    A query that is in no part counts in the first one that has a query similar to it.

    Returns:
        The data sets, and a sentence about each label of which that made a difference.

    Raises:
        DataError: as `click_tables`.
    """
    names = log.pooled
    judged = [judged_pairs(queries, "the data").select("query").unique().with_columns(part=k) for k, queries in enumerate(parts)]
    tables, notes = click_tables(log, pl.concat(judged).unique("query", keep="first", maintain_order=True), names)
    found = list(parts)
    for name, table in tables.items():
        found = [replace(queries, sources={**queries.sources, name: _rates(_joined(queries, table))}) for queries in found]
    return found, [note for note in notes if "different parts" in note]


def click_tables(
    log: ClickLog, judged: pl.DataFrame | None = None, names: Collection[str] | None = None
) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """For each label of a log one row a pair of (normalised) query and document: ``query``, ``document``, ``impressions``,
    ``clicks`` and their ratio ``rate``; and sentences about what was estimated.

    Args:
        judged: ``query`` and ``part``, the queries whose similar ones matter, once each; clicks are pooled within a part. None: all
            queries of the log, which are one part.
        names: the labels that are wanted; None: all.

    Raises:
        DataError: for a missing file or column, a click that is not a whole number or several with commas, a rank below 1.
    """
    frame, page = open_log(log)
    frame, notes = results_in(log, frame, page)
    shown = shown_results(log, frame, page)
    if not shown.height:
        raise DataError(f"{log.log}: no row of it has a query and a document")
    labels = {name: label for name, label in log.labels.items() if names is None or name in names}
    counted = {label.clicks for label in labels.values() if label.debias}
    looks = {clicks: _looks(log, shown, clicks) for clicks in CLICKS if clicks in counted}
    notes += [note for theta in looks.values() for note in theta.notes]
    of_pairs = _summed(shown.with_columns(base=pl.col("impressions")))
    tables: dict[str, pl.DataFrame] = {}
    if any(label.model for label in labels.values()):
        tables, told = model_tables(log)
        notes += told
    for name, label in labels.items():
        if label.model:
            continue
        counts = _summed(looks[label.clicks].counted(shown)) if label.debias else of_pairs
        own = counts
        if label.queries == "similar":
            everyone = counts.select("query").unique().with_columns(part=0) if judged is None else judged
            pairs, found, apart = _similar(log, frame, counts, label, everyone)
            notes.append(f"label {name!r}: {number_of(found, 'pair')} of similar queries")
            if apart:
                notes.append(
                    f"label {name!r}: {number_of(apart, 'pair')} of similar queries in different parts (training, validation, test): their clicks "
                    "are not pooled"
                )
            own = _summed(pairs.join(counts, left_on="other", right_on="query"), "other")
        clicked, base = pl.col(label.clicks), pl.col("base")
        mean = int(counts[label.clicks].sum()) / math.fsum(counts["base"])
        tables[name] = (
            own.filter((pl.col("impressions") >= label.min_impressions) & (base > 0))
            .select(
                "query",
                "document",
                pl.col("impressions").cast(pl.Int64),
                clicks=clicked,
                rate=_rate(clicked, base, label.prior, mean).clip(0, 1),
            )
            .sort("query", "document")
        )
    return tables, notes


def _summed(shown: pl.DataFrame, also_by: str = "rank") -> pl.DataFrame:
    """One row a pair of query and document: impressions, clicks by each way of counting, and ``base``, which clicks are divided by. `also_by`
    tells the rows of a pair apart: numbers with fractions are added in its order, whatever that of the rows, and of polars's threads."""
    ordered = shown.sort("query", "document", also_by)
    whole = pl.col("impressions", *CLICKS).sum()
    found = ordered.group_by("query", "document", maintain_order=True).agg(whole, pl.len().alias("rows"))
    first = np.cumsum(found["rows"].to_numpy()) - found["rows"].to_numpy()
    return found.drop("rows").with_columns(base=pl.Series(np.add.reduceat(ordered["base"].to_numpy(), first.astype(np.int64))))


def _rate(clicked: pl.Expr, shown: pl.Expr, prior: float, mean: float) -> pl.Expr:
    """Clicks over impressions, drawn towards the log's rate as if each pair had been shown `prior` times more."""
    return (clicked + prior * mean) / (shown + prior)


@dataclass(frozen=True)
class _Looks:
    """How often ranks 1, 2, … are looked at, ``theta [ranks]``, NaN where that is not known, and what there is to say of it."""

    theta: NDArray[np.float64]
    notes: tuple[str, ...]

    def counted(self, shown: pl.DataFrame) -> pl.DataFrame:
        """The shown results with their impressions as looks, in ``base``; what is shown where nobody looks has none."""
        at = pl.DataFrame({"rank": np.arange(1, len(self.theta) + 1), "look": np.nan_to_num(self.theta)})
        looked = shown.join(at.cast({"rank": pl.Int64}), on="rank", how="left")
        return looked.with_columns(base=pl.col("impressions") * pl.col("look").fill_null(0.0))


def _looks(log: ClickLog, shown: pl.DataFrame, clicks: str) -> _Looks:
    """How often each rank is looked at, from the clicks that a label counts."""
    document, rank, impressions, clicked = by_pair(shown, clicks)
    try:
        theta = propensities(document, rank, impressions, clicked)
    except ValueError as error:
        raise DataError(f"{log.log}: {error}; a label with debias needs a log that shows documents at several ranks") from None
    found = " ".join("–" if np.isnan(t) else f"{t:.2f}" for t in theta[:10])
    notes = [f"examination probability at ranks 1, 2, … ({clicks} clicks): {found}"]
    group = ties(document, rank, clicked)[rank - 1]
    for rows, said in (
        (
            group > 0,
            "had clicks but no tie to the others (documents clicked at one and shown at the other, in both directions), so their examination "
            "probability is estimated from the click-through rate; without it, {} shown only there would get no label",
        ),
        (group < 0, "had no counted click: examination is taken to be 0, which leaves {} shown only there without a label"),
    ):
        if rows.any():
            only = number_of(np.setdiff1d(document[rows], document[~rows]).size, "document")
            notes.append(f"{ranks_in_words(np.unique(rank[rows]))} {said.format(only)}")
    return _Looks(theta, tuple(notes))


def _similar(
    log: ClickLog, frame: pl.LazyFrame, counts: pl.DataFrame, label: ClickLabel, judged: pl.DataFrame
) -> tuple[pl.DataFrame, int, int]:
    """Pairs ``query``, ``other`` of similar queries of one part, each with itself; how many are not themselves; and how many more there
    are of queries in different parts."""
    known = judged["query"]
    if label.by == "clicks":
        pairs = similar_clicks(counts.select("query", "document", clicks=pl.col("all")), known, label.similarity)
    else:
        typed = frame.select(query=pl.col(log.query), text=pl.col(log.text or log.query)).unique().collect(engine="streaming")
        pairs = similar_words(
            typed.select(normalised("query").alias("query"), normalised("text").alias("text")).unique(), known, label.similarity
        )
    others = pairs.filter(pl.col("query") != pl.col("other")).join(judged, on="query", maintain_order="left")
    of_other = judged.select(other="query", part_other="part")
    placed = others.join(of_other, on="other", how="left", maintain_order="left")
    within = placed.filter(pl.col("part") == pl.coalesce("part_other", pl.col("part").min().over("other"))).select("query", "other")
    itself = known.to_frame("query").with_columns(other=pl.col("query"))
    return pl.concat((within, itself)), within.height, others.height - within.height


def judged_pairs(queries: Queries, label: str) -> pl.DataFrame:
    """The judged documents by normalised query and document id, in their order."""
    if queries.documents is None or queries.ids is None:
        raise DataError(f"{label}: click labels are joined by query and document id, and the documents have no id")
    return pl.DataFrame({
        "query": np.char.decode(np.repeat(queries.ids, np.diff(queries.offsets)), "utf-8", "backslashreplace"),
        "document": np.char.decode(queries.documents, "utf-8", "backslashreplace"),
    }).with_columns(normalised("query").alias("query"))  # fmt: skip


def attach(queries: Queries, table: pl.DataFrame, name: str = "click", label: str = "the data") -> tuple[Queries, ClickFacts]:
    """The data set with the label source `name`, from a table of `click_tables`.

    Raises:
        DataError: where the data have no document ids, or no pair of the log is in them (with three examples of each side).
    """
    joined = _joined(queries, table, label)
    clicks = _rates(joined)
    if not table.height:
        raise DataError(
            f"{label}: the click label {name!r}: no document of the log has as many impressions as min_impressions requires"
        )
    if np.isnan(clicks).all():
        ours, theirs = (
            ", ".join(f"{q}/{d}" for q, d in side.select("query", "document").head(3).rows()) for side in (joined, table)
        )
        raise DataError(f"{label}: no document of the click log is in the data; query/document there: {theirs}; here: {ours}")
    from scipy import stats

    both = ~np.isnan(clicks) & ~np.isnan(queries.labels)
    facts = ClickFacts(
        impressions=int(joined["impressions"].sum() or 0),
        clicks=int(joined["clicks"].sum() or 0),
        labelled=int(both.sum()),
        above_zero=int((clicks[both] > 0).sum()),
        pairs=_eligible_pairs(queries, clicks),
        correlation=float(np.nan_to_num(stats.kendalltau(clicks[both], queries.labels[both]).statistic)) if both.sum() > 1 else 0.0,
    )
    return replace(queries, sources={**queries.sources, name: clicks}), facts


def _joined(queries: Queries, table: pl.DataFrame, label: str = "the data") -> pl.DataFrame:
    """The judged documents with what the log says of them, null where it has nothing."""
    return judged_pairs(queries, label).join(table, on=["query", "document"], how="left", maintain_order="left")


def _rates(joined: pl.DataFrame) -> NDArray[np.float64]:
    return joined["rate"].fill_null(float("nan")).to_numpy().copy()


def _eligible_pairs(queries: Queries, clicks: NDArray[np.float64]) -> int:
    """Documents of a group (query, label) with non-zero clicks pair up unless their clicks are equal: counts of counts."""
    clicked = clicks > 0
    of_query = queries.of_query[clicked]
    groups = np.column_stack((of_query, queries.labels[clicked]))
    _, group_sizes = np.unique(groups, axis=0, return_counts=True)
    _, equal_sizes = np.unique(np.column_stack((groups, clicks[clicked])), axis=0, return_counts=True)
    return int((group_sizes * (group_sizes - 1) // 2).sum() - (equal_sizes * (equal_sizes - 1) // 2).sum())
