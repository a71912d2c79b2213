"""Session logs as the pages that click models read: what cannot be a page is left out by a rule, and counted."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import polars as pl

from ltr.clicks.pages import DEEPEST, Pages
from ltr.data.digests import chosen, drawn_parts
from ltr.data.offsets import offsets_from_sizes
from ltr.kernels.kernel import Bools, Ints, Words
from tasks.config.click_labels import ClickLog
from tasks.data.click_log import implausible, open_log, why_crowded
from tasks.data.similar_queries import counted, normalised, spellings
from tasks.data.tables import reading
from tasks.records import DataError, number_of

SPLIT = 12
"""What sessions are held out by, beside the seed and their own id."""


@dataclass(frozen=True)
class LogPages:
    """A log's result pages.

    Attributes:
        pages: columns of what was shown and clicked.
        pairs: ``query`` (normalised) and ``document``, a row a pair in the order of its number.
        session: ``int64 [pages]``, a number for each session.
        keys: ``uint64 [sessions]``, a digest of each session's id.
        written: how often each query is written in each way in the log (`counted`).
        notes: what was left out, in sentences.
    """

    pages: Pages
    pairs: pl.DataFrame
    session: Ints
    keys: Words
    written: pl.DataFrame
    notes: tuple[str, ...]

    def as_written(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table with each (normalised) ``query`` as the log writes it, most often where it does in several ways."""
        names = spellings(self.written).select("query", _written=pl.col("written").list.first())
        joined = table.join(names, on="query", how="left", maintain_order="left")
        return joined.with_columns(query=pl.coalesce("_written", "query")).drop("_written")

    def held_out(self, share: float, seed: int) -> Bools:
        """Which pages are of a share of the sessions that depends on their ids and the seed alone, ``bool [pages]``."""
        return chosen(self.keys, share, (seed, SPLIT))[self.session]

    def parts(self, n: int, seed: int) -> Ints:
        """Which of `n` parts each page is in, ``int64 [pages]``, whole sessions, drawn alike."""
        return drawn_parts(self.keys, n, (seed, SPLIT))[self.session]


def log_pages(log: ClickLog) -> LogPages:
    """Every page of a log.

    Raises:
        DataError: for whatever is wrong with the log's columns, and where no page, or no click, is left.
    """
    frame, page = open_log(log, ranks=True, unplaced=True)
    notes: list[str] = []
    with reading(log.log):
        results = (
            frame.group_by([*page, log.document])
            .agg(
                clicked=pl.col("_order").max() > 0,
                rank=pl.col("_rank").min(),
                rows=pl.len(),
            )
            .select(
                *(pl.col(column).cast(pl.String).fill_null("").alias(f"page{k}") for k, column in enumerate(page)),
                document=pl.col(log.document),
                clicked="clicked",
                rank="rank",
                rows="rows",
            )
            .collect(engine="streaming")
        )
    results = results.rename({"page0": "session", f"page{len(page) - 1}": "query"})
    keys = ["session", *(["page1"] if len(page) > 2 else []), "query"]
    results = plausible(results, notes)
    pages = results.group_by(keys).agg(pl.col("document", "rank", "clicked").sort_by("rank")).sort(keys)
    crowded = pages["rank"].list.n_unique() < pages["rank"].list.len()
    if crowded.any():
        count = number_of(int(crowded.sum()), "page")
        notes.append(f"{count} of {pages.height:,} with several documents at one rank left out: {why_crowded(log)}")
        pages = pages.filter(~crowded)
    if not pages.height:
        raise DataError(f"{log.log}: no page is left to fit click models to{''.join(f'; {note}' for note in notes)}")
    made = _numbered(pages, tuple(notes))
    if not made.pages.click.any():
        raise DataError(f"{log.log}: no result is clicked (clicks.click names the column {log.click!r})")
    return made


def plausible(results: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Results that people were shown.

    Args:
        results: ``session``, ``query``, ``document``, ``rank``, ``clicked``, and ``rows`` of the log that each was.
        notes: to which is added what was left out.
    """
    return _of_people(_shown(results, notes), notes)


def _shown(results: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Results that were shown, each once a page, at ranks that a page has."""
    n_rows = int(results["rows"].sum())
    results = results.filter(pl.col("document").is_not_null() & (pl.col("query") != ""))
    n_named = int(results["rows"].sum())
    repeated = n_named - results.height
    if repeated:
        notes.append(
            f"{number_of(repeated, 'row')} that repeat a document on the same page: it counts as shown once, at its first rank, and as clicked if any of its rows is"
        )
    if n_rows > n_named:
        notes.append(f"{number_of(n_rows - n_named, 'result')} without query or document left out")
    placeless = pl.col("rank").is_null()
    for rule, text in (
        (placeless & pl.col("clicked"), "clicked and not shown (no rank)"),
        (placeless & ~pl.col("clicked"), "without a rank"),
        (pl.col("rank") > DEEPEST, f"below rank {DEEPEST}"),
    ):
        left = results.filter(~rule.fill_null(False))
        if left.height < results.height:
            notes.append(f"{number_of(results.height - left.height, 'result')} {text} left out")
            results = left
    return results


def _of_people(results: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Without sessions that have more results or clicks than a person's."""
    if not results.height:
        return results
    sessions = results.group_by("session").agg(results=pl.len().cast(pl.Int64), clicks=pl.col("clicked").sum().cast(pl.Int64))
    bots = sessions.filter(implausible(sessions)).sort("clicks", "results", "session", descending=[True, True, False])
    if not bots.height:
        return results
    first, clicks = bots.row(0, named=True), int(sessions["clicks"].sum())
    notes.append(
        f"{number_of(bots.height, 'session')} with implausibly many results or clicks left out, with {bots['clicks'].sum() / max(clicks, 1):.1%} of "
        f"all clicks (session {first['session'][:40]!r}: {number_of(first['results'], 'result')}, {number_of(first['clicks'], 'click')})"
    )
    return results.join(bots, on="session", how="anti")


def _numbered(pages: pl.DataFrame, notes: tuple[str, ...]) -> LogPages:
    sessions = pages["session"].unique().sort()
    session = pages.select("session").join(
        sessions.to_frame().with_row_index("number"), on="session", how="left", maintain_order="left"
    )["number"]
    rows = pages.select(query=normalised("query"), document="document", rank="rank", clicked="clicked").explode(
        "document", "rank", "clicked"
    )
    pairs = rows.select("query", "document").unique().sort("query", "document")
    numbered = pairs.with_row_index("pair")
    pair = rows.join(numbered, on=["query", "document"], how="left", maintain_order="left")["pair"]
    sizes = pages["rank"].list.len().cast(pl.Int64).to_numpy()
    digests = b"".join(blake2b(name.encode(), digest_size=8).digest() for name in sessions)
    return LogPages(
        Pages(
            offsets_from_sizes(sizes),
            pair.cast(pl.Int64).to_numpy(),
            rows["rank"].to_numpy(),
            rows["clicked"].to_numpy(),
            pairs.select(pl.col("query").rank("dense").cast(pl.Int64) - 1)["query"].to_numpy(),
        ),
        pairs,
        session.cast(pl.Int64).to_numpy(),
        np.frombuffer(digests, np.dtype("<u8")).astype(np.uint64),
        counted(pages["query"]),
        notes,
    )
