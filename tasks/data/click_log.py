"""Session logs as tables: checked, read lazily and in a stream; what stays in memory is one row a shown pair of query and document.
A log of OpenSearch's UBI is made a table first (`tasks.data.ubi`)."""

import difflib

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.config.click_labels import CLICKS, ClickLog
from tasks.data.files import located
from tasks.data.similar_queries import normalised
from tasks.data.tables import SEPARATORS, id_text, reading, require_even_lines, scan
from tasks.data.ubi import is_ubi, ubi_log
from tasks.records import DataError, number_of

MOST_CLICKS, MOST_RESULTS, TIMES = 50, 300, 20
"""A session of so many clicks, or so many results, and of so many times as many as the median session is no person's."""
PLACE = r"^\s*0*[1-9][0-9]{0,5}\s*$"
"""The form of a rank, 1 to 999999."""
_MOST_ORDER = 10**18
"""Beyond what an order of clicks may be, a time in nanoseconds say."""
_WHOLE = r"^\s*([0-9]+)\.0\s*$"
"""A whole number as it is written among others that are missing."""
_TRUE, _FALSE = r"(?i)^\s*true\s*$", r"(?i)^\s*false\s*$"


def implausible(sessions: pl.DataFrame) -> pl.Series:
    """Which sessions are no person's, by their ``results`` and ``clicks``."""
    results, clicks = (float(np.median(sessions[name].to_numpy())) for name in ("results", "clicks"))
    return (sessions["results"] >= max(MOST_RESULTS, TIMES * results)) | (sessions["clicks"] >= max(MOST_CLICKS, TIMES * clicks))


def told_of_form(log: ClickLog) -> list[str]:
    """Sentences about what a log that is no table was read as, and what of it was left out."""
    path = located(log.log)
    return ubi_log(path)[1] if is_ubi(path) else []


def open_log(log: ClickLog, ranks: bool = False, unplaced: bool = False) -> tuple[pl.LazyFrame, list[str]]:
    """The log with checked columns ``_order`` (of the last click; 0: none) and ``_rank`` (1 where no label needs it, unless `ranks`; null
    where a row has none, if `unplaced`); the columns of a page."""
    path, interaction = located(log.log), log.interaction
    if is_ubi(path):
        path, interaction = ubi_log(path)[0], interaction or "interaction"
    with reading(path):
        frame = scan(path)
        columns = frame.collect_schema()
        require_even_lines(path, frame)
    page = [log.session, *([interaction] if interaction else []), log.query]
    ranks = ranks or any(label.debias for label in log.labels.values())
    for column in (*page, log.document, log.click, *([log.rank] if ranks else []), *([log.text] if log.text else [])):
        if column not in columns:
            near = difflib.get_close_matches(column, columns.names(), n=2)
            raise DataError(
                f"{log.log}: no column {column!r}; {'did you mean ' + ' or '.join(near) + '?' if near else 'choose from: ' + ', '.join(columns.names())}"
            )
        if unreadable(columns[column]):
            raise DataError(f"{log.log}: column {column!r} holds {columns[column]}: a log must hold texts and numbers")
    names = {name: id_in(name, columns[name]) for name in (log.query, log.document, *([interaction] if interaction else []))}
    nameless = names[log.query].is_null() | names[log.document].is_null()
    if columns[log.session].is_float() or columns[log.session].is_decimal():
        frame = frame.with_columns(id_in(log.session, columns[log.session]))
    require_form(log, frame, log.session, r"(?s).", "every row must name its session", empty=False)
    order = pl.col(log.click)
    if columns[log.click].is_float():
        order = order.fill_nan(None)
    if columns[log.click].is_numeric() or columns[log.click] == pl.Boolean:
        if columns[log.click].is_numeric():
            _require_orders(log, frame.select(order.cast(pl.Float64).alias("value")))
        order = order.cast(pl.Int64)
    else:
        order = order.cast(pl.String).str.replace(_WHOLE, "$1").str.replace(_TRUE, "1").str.replace(_FALSE, "0")
        require_form(
            log,
            frame.select(order.alias(log.click)),
            log.click,
            r"^(\s*[0-9]{1,18}\s*(,\s*[0-9]{1,18}\s*)*)?$",
            "must be the order of the clicks on a result, such as 2 or 1,3, or empty",
        )
        order = order.fill_null("").str.split(",").list.eval(pl.element().str.strip_chars().cast(pl.Int64, strict=False)).list.max()
    rank = pl.lit(1)
    if ranks:
        rank = place_in(frame, log.rank)
        rank = rank if unplaced else pl.when(nameless).then(pl.lit("1")).otherwise(rank)  # such a row shows nothing at any
        require_form(
            log,
            frame.select(rank.alias(log.rank)),
            log.rank,
            PLACE,
            "must be the rank a result was shown at, 1 to 999999",
            empty=unplaced,
        )
        rank = rank.cast(pl.Int64, strict=not unplaced)
    return frame.with_columns(order.fill_null(0).alias("_order"), rank.alias("_rank"), **names), page


def unreadable(kind: pl.DataType) -> bool:
    """Whether a column of this type holds neither texts nor numbers."""
    return kind.is_nested() or kind in (pl.Binary, pl.Duration)


def results_in(log: ClickLog, frame: pl.LazyFrame, page: list[str]) -> tuple[pl.LazyFrame, list[str]]:
    """The rows of `open_log` that show a document for a query: a page without a result is no impression of one. And what is left out, in words.
    Where rows are, ``_last`` is the order of a page's last click, which may have been on one of them."""
    nameless = pl.col(log.query).is_null() | pl.col(log.document).is_null()
    left = int(frame.select(nameless.sum()).collect(engine="streaming").item())
    if not left:
        return frame, []
    with_last = frame.with_columns(_last=pl.col("_order").max().over(page))
    return with_last.filter(~nameless), [f"{number_of(left, 'row')} without query or document left out"]


def id_in(column: str, kind: pl.DataType) -> pl.Expr:
    """A column of ids as text (`tasks.data.tables.id_text`); blank ones, which polars writes in quotes, are missing ones."""
    text = id_text(pl.col(column), kind)
    return pl.when(text.str.strip_chars() != "").then(text)


def place_in(frame: pl.LazyFrame, column: str) -> pl.Expr:
    """The places in a column as text, null where a row has none. Where some rows have none, tools write 3.0 for 3."""
    value = pl.col(column).fill_nan(None) if frame.collect_schema()[column].is_float() else pl.col(column)
    text = value.cast(pl.String).str.replace(_WHOLE, "$1").str.strip_chars()
    return pl.when(text != "").then(text)


def _require_orders(log: ClickLog, values: pl.LazyFrame) -> None:
    """Raises DataError for the first number that is no order of a click."""
    value = pl.col("value")
    wrong = (
        values.with_row_index("row")
        .filter((value < 0) | (value >= _MOST_ORDER) | (value != value.floor()) | value.is_nan())
        .head(1)
    )
    for row, number in wrong.collect(engine="streaming").iter_rows():
        raise DataError(f"{_place(log, row)}: {log.click} {number:g}: must be the order of a click, 1 or more, or 0 for none")


def require_form(log: ClickLog, frame: pl.LazyFrame, column: str, pattern: str, rule: str, empty: bool = True) -> None:
    """Raises DataError for a value that is not of the form `pattern`, or missing unless `empty`, with its line and the `rule` in words."""
    fits = pl.col("value").str.contains(pattern).fill_null(empty)
    values = frame.select(pl.col(column).cast(pl.String).alias("value")).with_row_index("row")
    wrong = values.filter(~fits).head(1).collect(engine="streaming")
    for row, value in wrong.iter_rows():
        shown = "is empty" if value is None or value == "" else repr(value[:40])
        raise DataError(f"{_place(log, row)}: {column} {shown}: {rule}")


def _place(log: ClickLog, row: int) -> str:
    """A row, counted from 0, as people count it: a text's by its line."""
    return f"{log.log}, row {row + 1}" if log.log.suffix.lower() not in SEPARATORS else f"{log.log}, line {row + 2}"


def shown_results(log: ClickLog, frame: pl.LazyFrame, page: list[str]) -> pl.DataFrame:
    """One row a shown (query, document, rank): ``impressions``, and how many clicks there are by each way of counting (`CLICKS`).
    A document that a page shows twice was shown once, where it first stood."""
    last = [pl.col("_last").first()] if "_last" in frame.collect_schema() else []
    once = frame.group_by([*page, log.document]).agg(pl.col("_order").max(), pl.col("_rank").min(), *last)
    named = once.select(
        query=pl.col(log.query),
        document=pl.col(log.document),
        rank=pl.col("_rank"),
        order=pl.col("_order"),
        last_of_page=pl.col("_last") if last else pl.col("_order").max().over(page),
    )
    counted = (
        named.group_by("query", "document", "rank")
        .agg(
            pl.len().cast(pl.Int64).alias("impressions"),
            *(counts.sum().cast(pl.Int64).alias(name) for name, counts in CLICKS.items()),
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


def by_pair(shown: pl.DataFrame, clicks: str) -> tuple[NDArray[np.int64], ...]:
    """What `ltr.data.propensities` reads of `shown_results`: numbers of the pairs of query and document, ranks, impressions, and
    clicks as `clicks` counts them."""
    ordered = shown.sort("query", "document", "rank").with_columns(pair=pl.struct("query", "document").rank("dense") - 1)
    return tuple(ordered[column].cast(pl.Int64).to_numpy() for column in ("pair", "rank", "impressions", clicks))


def ranks_in_words(ranks: NDArray[np.int64]) -> str:
    """``rank 3``, ``ranks 2, 4–7``: ranks in rising order."""
    runs = np.split(ranks, np.flatnonzero(np.diff(ranks) > 1) + 1)
    named = ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
    return f"rank{'s' if len(ranks) > 1 else ''} {named}"


def why_crowded(log: ClickLog) -> str:
    """What to look at where pages have several documents at one rank."""
    if is_ubi(log.log):
        return "check that positions count results and that each page has a query_id of its own"
    if log.interaction is None:
        return "a session that asks a query twice needs clicks.interaction"
    return "check that clicks.rank counts results and that clicks.interaction is another for each page"


def typed_queries(log: ClickLog) -> pl.DataFrame:
    """One row a (normalised) ``query`` of a log: the ``text`` that was typed most often, and its result ``pages``.

    Raises:
        DataError: as `click_tables`.
    """
    frame, page = open_log(log)
    shown = frame.select(*dict.fromkeys([*page, log.text or log.query])).unique().collect(engine="streaming")
    named = shown.select(normalised(log.query).alias("query"), pl.col(log.text or log.query).cast(pl.String).alias("text"))
    counted = named.group_by("query", "text").len("pages").sort("pages", "text", descending=[True, False])
    return counted.group_by("query").agg(pl.col("text").first(), pl.col("pages").sum()).sort("query")
