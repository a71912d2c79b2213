"""Interleaved pages from a log: a click log whose rows say which ranker put the result there, or where each ranker had it."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from ltr.clicks.interleaving import Duel, Sessions, duels, preferences
from tasks.config.click_labels import ClickLog
from tasks.data.click_log import PLACE, id_in, open_log, place_in, require_form
from tasks.data.log_pages import plausible
from tasks.data.tables import reading
from tasks.records import DataError, number_of

RANK_OF = "rank_"
"""A column of this and a ranker's name holds where that ranker had the result; empty where it did not have it."""
_FIRST_IN_NONE = {"balanced": 0.02, "probabilistic": 0.2}
"""Share of pages whose first result is first in no list, beyond which ranks are not those that pages were made of. Balanced pages have none;
probabilistic ones at most 1 − 1/ζ(3) = .17, where lists are long and have nothing in common."""
LENGTH_OF = "length_"
"""A column of this and a ranker's name holds how many documents that ranker's list had, where that is known."""


@dataclass(frozen=True)
class Duels:
    """Rankers on interleaved pages.

    Attributes:
        rankers: their names, by number.
        pages: how many were shown, `clicked` of them with a click.
        duels: every two of them, at `level`.
        notes: what was left out.
    """

    rankers: tuple[str, ...]
    pages: int
    clicked: int
    duels: tuple[Duel, ...]
    notes: tuple[str, ...]
    level: float = 0.95

    def sentences(self) -> list[str]:
        """Each two rankers in words; of several, those that differ after Holm's correction differ significantly."""
        said = []
        for duel in self.duels:
            first, second = self.rankers[duel.first], self.rankers[duel.second]
            if (duel.low > 0 or duel.high < 0) and duel.holm_p < 1 - self.level:
                better, worse = (first, second) if duel.low > 0 else (second, first)
                said.append(f"{better} is preferred to {worse}")
            else:
                said.append(f"{first} and {second} do not differ significantly on these pages")
        return said


def analyse(log: ClickLog, team: str, method: str, level: float) -> Duels:
    """Rankers beside each other on a table of interleaved pages.

    Args:
        log: its columns, as of any click log.
        team: the column that names the ranker that a result was taken from; read for ``team-draft``.
        method: one of `ltr.clicks.interleaving.METHODS`.

    Raises:
        DataError: for columns that are missing, a rank that is none, and fewer than two rankers or pages.
    """
    notes: list[str] = []
    lists, results = _results(log, team, method)
    results = _one_a_place(plausible(results, notes), lists.places, notes).sort("page", "rank", "document")
    n_pages = results["page"].n_unique()
    if n_pages < 2:
        left = "".join(f"; {note}" for note in notes)
        raise DataError(f"{log.log}: {number_of(n_pages, 'page')} to compare rankers on; two or more are needed{left}")
    rankers = lists.rankers or sorted(results["team"].drop_nulls().unique())
    if len(rankers) < 2:
        raise DataError(f"{log.log}: column {team!r} names {number_of(len(rankers), 'ranker')}; two or more are needed")
    if method == "team-draft":
        _require_teams(log, results, team)
    sessions = _sessions(results, lists, rankers)
    if method == "probabilistic" and sessions.length is None and (sessions.rank == 0).any():
        notes.append(
            "some results are in one ranker's list only: with short lists, probabilistic pages prefer the longer one; add columns "
            f"{LENGTH_OF}{rankers[0]}, … (documents in each list) to correct this"
        )
    whose = results.group_by("page", maintain_order=True).agg(pl.col("session").first())["session"].rank("dense").to_numpy()
    if len(set(whose)) < n_pages:
        notes.append(
            f"some of the {number_of(len(set(whose)), 'session')} have several pages, so intervals and p-values are by Student's t over sessions"
        )
    try:
        found = duels(preferences(sessions, method), level, whose)
    except ValueError as error:
        raise DataError(f"{log.log}: {error}") from None
    notes += _gaps(results, lists.places, method)
    if method == "balanced":
        notes.append(
            "balanced pages can prefer a ranker whose users click at random, if one list is the other with a document moved up; "
            "team-draft and probabilistic pages do not"
        )
    clicked = results.filter("clicked")["page"].n_unique()
    return Duels(tuple(rankers), n_pages, clicked, tuple(found), tuple(notes), level)


@dataclass(frozen=True)
class _Lists:
    """Columns that say where each ranker had a result, and how long its list was; none where they are not read."""

    places: list[str]
    lengths: list[str]

    @property
    def rankers(self) -> list[str]:
        return [name.removeprefix(RANK_OF) for name in self.places]


def _lists_in(log: ClickLog, columns: list[str], team: str, method: str) -> _Lists:
    """What a method reads.

    Raises:
        DataError: where it is not there.
    """
    if method == "team-draft":
        if team not in columns:
            raise DataError(
                f"{log.log}: no column {team!r} (it must name the ranker of each result; --team COLUMN names another); choose from: {', '.join(columns)}"
            )
        return _Lists([], [])
    own = {log.session, log.interaction, log.query, log.document, log.click, log.rank, log.text}
    places = [name for name in columns if name.startswith(RANK_OF) and name not in own]
    if len(places) < 2:
        raise DataError(
            f"{log.log}: {method} needs where each ranker had a result: columns {RANK_OF}A and {RANK_OF}B, of at least two rankers"
        )
    lengths = [LENGTH_OF + name.removeprefix(RANK_OF) for name in places]
    lacking = [name for name in lengths if name not in columns]
    if method != "probabilistic" or len(lacking) == len(lengths):
        return _Lists(places, [])
    if lacking:
        raise DataError(f"{log.log}: no column {lacking[0]!r} (documents in the list), which the other rankers have")
    return _Lists(places, lengths)


def _results(log: ClickLog, team: str, method: str) -> tuple[_Lists, pl.DataFrame]:
    """What a method reads, and a row a result of a page: ``session``, ``query``, ``document``, ``page``, ``clicked``, ``rank``, ``rows``,
    ``team``, and what was read of lists."""
    frame, page = open_log(log, ranks=True, unplaced=True)
    kinds = frame.collect_schema()
    lists = _lists_in(log, [name for name in kinds.names() if name not in ("_order", "_rank")], team, method)
    with reading(log.log):
        frame = _with_places(log, frame, lists.places, "must be the rank of the result in the ranker's list, 1 to 999999, or empty")
        frame = _with_places(
            log, frame, lists.lengths, "must be the number of documents in the ranker's list, 1 to 999999", empty=False
        )
        results = (
            frame.with_columns(_team=id_in(team, kinds[team]) if method == "team-draft" else pl.lit(None, pl.String))
            # Of rows at one rank the earlier one comes first: by name, one ranker would be given all of them.
            .sort("_rank", nulls_last=True, maintain_order=True)
            .group_by([*page, log.document])
            .agg(
                clicked=pl.col("_order").max() > 0,
                rank=pl.col("_rank").min(),
                rows=pl.len(),
                team=pl.col("_team").drop_nulls().first(),
                **{f"list:{name}": pl.col(name).min() for name in (*lists.places, *lists.lengths)},
            )
            .collect(engine="streaming")
        )
    as_text = {column: pl.col(column).cast(pl.String).fill_null("") for column in {*page, log.session, log.query}}
    return lists, results.select(
        as_text[log.session].alias("session"),
        as_text[log.query].alias("query"),
        pl.col(log.document).alias("document"),
        pl.concat_str([as_text[column] for column in page], separator="\0").alias("page"),
        pl.col("clicked", "rank", "rows", "team"),
        *(pl.col(f"list:{name}").alias(name) for name in (*lists.places, *lists.lengths)),
    )


def _require_teams(log: ClickLog, results: pl.DataFrame, team: str) -> None:
    """Raises DataError for a clicked result of no ranker."""
    lacking = results.filter(pl.col("clicked") & pl.col("team").is_null())
    for session, document in lacking.select("session", "document").head(1).iter_rows():
        raise DataError(
            f"{log.log}: session {session[:40]!r}, document {document[:40]!r}: column {team!r} is empty: a clicked result must name the ranker it was taken "
            f"from ({lacking.height:,} of {number_of(int(results['clicked'].sum()), 'clicked result')} do not)"
        )


def _one_a_place(results: pl.DataFrame, places: list[str], notes: list[str]) -> pl.DataFrame:
    """Without pages on which a ranker has several documents at one rank, as no list has; how many is added to the notes."""
    twice = [pl.col(name).is_not_null() & pl.struct("page", name).is_duplicated() for name in places]
    if not twice or not len(wrong := results.filter(pl.any_horizontal(twice))["page"].unique()):
        return results
    n_pages = results["page"].n_unique()
    notes.append(
        f"{number_of(len(wrong), 'page')} of {n_pages:,} left out, on which a ranker has several documents at one rank of its list: "
        f"check {', '.join(places)}, and that clicks.interaction tells the pages of a session apart"
    )
    return results.filter(~pl.col("page").is_in(wrong.to_list()))


def _gaps(results: pl.DataFrame, places: list[str], method: str) -> list[str]:
    """A sentence where pages begin with what heads no list more often than pages made of these lists do."""
    if not places:
        return []
    first = results.filter(rank=1).select(best=pl.min_horizontal(places)).drop_nulls()["best"]
    late, most = int((first > 1).sum()), _FIRST_IN_NONE[method]
    if late <= len(first) * most + 3 * (len(first) * most * (1 - most)) ** 0.5:
        return []
    return [
        f"{number_of(late, 'page')} of {len(first):,} begin with a result that is first in no list, more than {method} pages do: count only documents that could be "
        f"shown in {', '.join(places)}, or clicks speak against the ranker whose best documents were out of stock"
    ]


def _sessions(results: pl.DataFrame, lists: _Lists, rankers: list[str]) -> Sessions:
    teams = {name: k for k, name in enumerate(rankers)}
    places = results.select(pl.col(lists.places).fill_null(0))
    return Sessions(
        (results["page"].rank("dense").cast(pl.Int64) - 1).to_numpy(),
        results["clicked"].to_numpy(),
        results["team"].replace_strict(teams, default=-1, return_dtype=pl.Int64).to_numpy(),
        np.ascontiguousarray(places.to_numpy(), np.int64).reshape(results.height, len(lists.places)),
        len(rankers),
        results.select(lists.lengths).to_numpy() if lists.lengths else None,
    )


def _with_places(log: ClickLog, frame: pl.LazyFrame, columns: list[str], rule: str, empty: bool = True) -> pl.LazyFrame:
    """The log with these columns as whole numbers, null where there is none."""
    for name in columns:
        frame = frame.with_columns(place_in(frame, name).alias(name))
        require_form(log, frame, name, PLACE, rule, empty)
    return frame.with_columns(pl.col(columns).cast(pl.Int64))
