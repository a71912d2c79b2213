"""The log doctor: what a session log holds, who clicks, whether positions can be told from it, and how much of the judged data it covers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.data.propensities import ties
from ltr.data.queries import Queries
from tasks.config.click_labels import ClickLog
from tasks.data.click_log import (
    by_pair,
    implausible,
    open_log,
    place_in,
    ranks_in_words,
    results_in,
    shown_results,
    told_of_form,
    unreadable,
    why_crowded,
)
from tasks.data.clicks import judged_pairs
from tasks.data.files import located
from tasks.data.similar_queries import counted, spellings, written_alike
from tasks.data.ubi import is_ubi
from tasks.records import DataError, Finding, Level, number_of
from tasks.store.datasets import open_queries
from tasks.store.seal import digest_of_file, unchanged
from tasks.store.state import Noted, made_once

RANKS_TOLD = 10
"""Ranks of the position curve that are named."""
Said = tuple[Level, str]


@task(cache_policy=NO_CACHE, name="check log", task_run_name="check log")
def check_log(log: ClickLog, names: Sequence[str]) -> list[Finding]:
    """`log_findings` beside stored data sets, looked for once a log.

    Raises:
        DataError: as `log_findings`.
    """
    path = located(log.log)
    digest = digest_of_file(path)
    recipe = {"check_log": 13, "log": log.decides(digest), "data": list(names)}

    def found() -> Noted:
        with unchanged({path: digest}):
            return Noted(findings=tuple(log_findings(log, [open_queries(name) for name in names])))

    return [replace(finding, subject=log.log.name) for finding in made_once(recipe, found).findings]


def log_findings(log: ClickLog, sets: Sequence[Queries]) -> list[Finding]:
    """Everything the doctor has to say about a session log, beside the judged documents of some data sets.

    Raises:
        DataError: for a log that cannot be read, and data without ids.
    """
    judged = pl.concat([judged_pairs(queries, str(log.log)).filter(~np.isnan(queries.labels)) for queries in sets]).unique()
    frame, page = open_log(log)
    rank_fault: Said | None = None
    try:
        frame, page = open_log(log, ranks=True)
    except DataError as error:
        missing = log.rank not in frame.collect_schema().names()
        why = f"no column {log.rank!r} (clicks.rank)" if missing else str(error).removeprefix(f"{log.log}, ")
        rank_fault = ("note" if missing else "warning", f"{why}: position bias cannot be estimated")
    if not frame.head(1).collect().height:
        return [Finding("error", log.log.name, "it has no rows")]
    columns = frame.collect_schema().names()
    frame, nameless = results_in(log, frame, page)
    shown, sessions = shown_results(log, frame, page), _sessions(log, frame, page)
    if not sessions.height:
        return [Finding("error", log.log.name, "no row of it has a query and a document")]
    said: list[Said] = [
        *(("note", note) for note in told_of_form(log)),
        *(("note", note) for note in nameless),
        ("note", _size(shown, sessions, rank_fault is None)),
        *_unread(log, columns),
        *_unplaced(log, frame, page),
        *_pages(log, sessions, rank_fault is None),
        *_bots(sessions),
    ]
    said += [rank_fault] if rank_fault else _positions(log, shown)
    said += [("note", _coverage(shown, judged)), *_alike(sets)]
    return [Finding(level, log.log.name, text) for level, text in said]


def _sessions(log: ClickLog, frame: pl.LazyFrame, page: list[str]) -> pl.DataFrame:
    """One row a session: its ``pages``, ``rows`` of the log, ``results`` (a document once a page), ``clicks`` (clicked results), and pages
    that are ``crowded`` (two documents at one rank) or whose last click is ``shared`` by several results."""
    order, last = pl.col("_order"), pl.col("_order").max()
    results = frame.group_by([*page, log.document]).agg(order.max(), pl.col("_rank").min(), pl.len().alias("rows"))
    pages = results.group_by(page).agg(
        pl.col("rows").sum(),
        pl.len().alias("results"),
        (order > 0).sum().alias("clicks"),
        (pl.col("_rank").n_unique() < pl.len()).alias("crowded"),
        ((last > 0) & ((order == last).sum() > 1)).alias("shared"),
    )
    return (
        pages.group_by(pl.col(log.session).cast(pl.String).fill_null("").alias("session"))
        .agg(pl.len().alias("pages"), pl.col("rows", "results", "clicks", "crowded", "shared").sum())
        .cast({pl.UInt32: pl.Int64})
        .sort("session")
        .collect(engine="streaming")
    )


def _total(frame: pl.DataFrame, column: str) -> int:
    return int(frame[column].cast(pl.Int64).sum())


def _size(shown: pl.DataFrame, sessions: pl.DataFrame, ranked: bool) -> str:
    counts = (("page", "pages"), ("impression", "results"), ("click", "clicks"))
    sizes = ", ".join(number_of(_total(sessions, column), noun) for noun, column in counts)
    ranks = f", {ranks_in_words(np.unique(shown['rank'].to_numpy()))}" if ranked else ""
    return f"{number_of(sessions.height, 'session')}, {sizes} ({_total(shown, 'last'):,} the last of their page){ranks}"


def _pages(log: ClickLog, sessions: pl.DataFrame, ranked: bool) -> Iterator[Said]:
    """What is odd about rows and pages."""
    rows, results, pages = (_total(sessions, name) for name in ("rows", "results", "pages"))
    crowded, shared = (_total(sessions, name) for name in ("crowded", "shared"))
    if rows > results:
        yield (
            "warning",
            f"{rows - results:,} of {number_of(rows, 'row')} repeat a document on the same page: it counts as shown once, at its first rank, and as clicked if any of its rows is",
        )
    if not _total(sessions, "clicks"):
        yield "warning", f"no result is clicked: every label is 0 (clicks.click names the column {log.click!r})"
    if ranked and crowded:
        yield "warning", f"{number_of(crowded, 'page')} of {pages:,} with several documents at one rank: {why_crowded(log)}"
    if shared:
        yield (
            "note",
            f"on {shared:,} of {number_of(pages, 'page')} several results share the last click; each counts as the last",
        )


def _unread(log: ClickLog, columns: Sequence[str]) -> Iterator[Said]:
    """A column that by its name tells the pages of a session apart, and is not asked."""
    name, read = "interaction", {log.query, log.document, log.session, log.click, log.rank, log.text}
    if log.interaction is None and name in {*columns} - read and not is_ubi(log.log):
        yield (
            "warning",
            f"column {name!r} is ignored: a page is identified by session and query only (clicks.interaction: {name} reads it)",
        )


def _unplaced(log: ClickLog, frame: pl.LazyFrame, page: list[str]) -> Iterator[Said]:
    """Clicked results none of whose rows has a rank: as far as the log says, they were not shown."""
    kind = frame.collect_schema().get(log.rank)
    if kind is None or unreadable(kind):
        return
    clicked, placed = pl.col("_order").max() > 0, place_in(frame, log.rank).is_not_null().any()
    results = frame.group_by([*page, log.document]).agg(clicked.alias("clicked"), placed.alias("placed"))
    unplaced = (pl.col("clicked") & ~pl.col("placed")).sum().alias("unplaced")
    counts = results.select(pl.col("placed").any(), pl.col("clicked").sum(), unplaced)
    ranked, every, left = counts.collect(engine="streaming").row(0)
    if ranked and left:
        yield (
            "warning",
            f"{left:,} of {number_of(every, 'clicked result')} without a rank, so nothing says that the result was shown: a label that counts "
            "clicks takes each for an impression that was clicked; leave them out of the log, as click models do",
        )


def _bots(sessions: pl.DataFrame) -> Iterator[Said]:
    """Sessions with more results or clicks than a person's."""
    results, clicks = (float(np.median(sessions[name].to_numpy())) for name in ("results", "clicks"))
    bots = sessions.filter(implausible(sessions)).sort("clicks", "results", "session", descending=[True, True, False])
    if bots.height:
        first, share = bots.row(0, named=True), _total(bots, "clicks") / max(_total(sessions, "clicks"), 1)
        yield (
            "warning",
            f"{number_of(bots.height, 'session')} with implausibly many results or clicks, {share:.1%} of all clicks (session "
            f"{first['session'][:40]!r}: {number_of(first['results'], 'result')}, {number_of(first['clicks'], 'click')}; the median session has "
            f"{results:g} and {clicks:g}): leave programs out of the log",
        )


def _positions(log: ClickLog, shown: pl.DataFrame) -> Iterator[Said]:
    """Clicks by rank, and whether position bias can be separated from relevance."""
    by_rank = shown.group_by("rank").agg(pl.col("impressions", "all").sum()).sort("rank")
    rates = [f"{rank}: {clicks / times:.1%}" for rank, times, clicks in by_rank.head(RANKS_TOLD).rows()]
    yield "note", f"click-through rate by rank, {', '.join(rates)}{' …' if by_rank.height > RANKS_TOLD else ''}"
    if not shown["all"].sum():
        return
    for clicks in dict.fromkeys(label.clicks for label in log.labels.values() if label.debias) or ("all",):
        document, rank, _, clicked = by_pair(shown, clicks)
        times = np.bincount(document)[np.bincount(document, clicked) > 0]
        movers = f"{(times > 1).sum():,} of {number_of(len(times), 'clicked document')} shown at several ranks"
        group = ties(document, rank, clicked)
        tied, apart = np.flatnonzero(group == 0) + 1, np.flatnonzero(group > 0) + 1
        if len(tied) > 1:
            rest = f", not with {ranks_in_words(apart)}" if len(apart) else ""
            yield (
                "note",
                f"{movers}: position bias can be separated from relevance at {ranks_in_words(tied)}{rest} ({clicks} clicks)",
            )
        else:
            yield (
                "warning",
                f"{movers}: position bias cannot be separated from relevance ({clicks} clicks): click labels stay biased, and debias cannot correct them",
            )


def _coverage(shown: pl.DataFrame, judged: pl.DataFrame) -> str:
    """How much of the judged documents was shown, and of the shown ones judged."""
    pairs = shown.select("query", "document").unique()
    queries = judged.select("query").unique()
    both, known = (pairs.join(side, on=side.columns, how="semi") for side in (judged, queries))
    found = queries.join(pairs, on="query", how="semi").height

    def share(part: int, whole: int) -> str:
        return f" ({part / whole:.1%})" if whole else ""

    return (
        f"{found:,} of {number_of(queries.height, 'judged query')} in the log; {both.height:,} of {number_of(judged.height, 'judged document')} "
        f"shown{share(both.height, judged.height)}; {both.height:,} of {number_of(pairs.height, 'shown document')} judged"
        f"{share(both.height, pairs.height)}, or {both.height:,} of {known.height:,}{share(both.height, known.height)} of judged queries"
    )


def _alike(sets: Sequence[Queries]) -> Iterator[Said]:
    """Judged queries that the log cannot tell apart: each gets the clicks of all."""
    ids = np.unique(np.concatenate([queries.ids for queries in sets if queries.ids is not None]))
    found, two = written_alike(spellings(counted(pl.Series("id", np.char.decode(ids, "utf-8", "backslashreplace")))))
    if found:
        yield (
            "warning",
            f"{found:,} of {len(ids):,} judged queries differ from another only in letter case, spaces or Unicode's form (such as {two}), "
            "so each gets the clicks of both, even if one is used for training and the other for testing: ids of different queries must differ in more than that",
        )
