"""OpenSearch's User Behavior Insights (UBI 1.3) as a session log: queries and events become shown results, and clicks in their order.

Real files are of several makers: times are ISO or epoch milliseconds, places count from 0 or from 1, attributes are null. So places are
counted from what each application does: from the place of documents in its queries' answers (``query_response_hit_ids``) where events name
these, otherwise from 0 where a 0 occurs. What a page showed is what its impression events say, or else its query's answer.
The judgments that OpenSearch's workbench makes of UBI read impressions and clicks in the same way, from its indexes.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from tasks.data.json_lines import SUFFIXES, Json, object_at, objects, text_of
from tasks.data.plain_number import plain_number
from tasks.records import DataError, number_of
from tasks.store import state
from tasks.store.seal import digest_of_file, is_whole, unchanged
from tasks.store.state import digest_of, made_whole, write_json

IMPRESSIONS = frozenset({"impression", "view", "product_impression"})
"""Actions that say a document was shown."""
CLICKS = frozenset({"click", "item_click", "product_click", "result_click", "add_to_cart", "purchase"})
"""Actions that somebody took on a result, which a click label counts."""
COLUMNS = {
    "session": pl.String,
    "interaction": pl.String,
    "query": pl.String,
    "document": pl.String,
    "click": pl.Int64,
    "rank": pl.Int64,
}
"""Of the log; ``interaction`` is the query's id: each is a page."""
_FARTHEST = 10**9
"""Beyond what a place may be."""
_READER = 8
"""Raised when the reader changes what it makes of the same bytes."""


def is_ubi(path: Path) -> bool:
    """Whether a log is read as UBI: by its suffix."""
    return path.suffix.lower() in SUFFIXES


def ubi_log(path: Path) -> tuple[Path, list[str]]:
    """A file of UBI as a table of `COLUMNS`, kept by its content; and sentences about what is in it.

    Raises:
        DataError: naming file, line, value and rule, for a line of another form, a time or a place that is none.
    """
    digest = digest_of_file(path)
    folder = state.root() / "ubi" / digest_of({"ubi": _READER, "file": digest})[:32]
    if not is_whole(folder):
        with unchanged({path: digest}):
            rows, notes = _rows(path)
        with made_whole(folder) as partial:
            rows.write_parquet(partial / "log.parquet")
            write_json(partial / "notes.json", notes)
    return folder / "log.parquet", json.loads((folder / "notes.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class _Event:
    """One event that names a document of a query."""

    query: str
    session: str
    client: str
    action: str
    document: str
    place: int | None
    time: float
    application: str


@dataclass
class _Read:
    """What the lines of a file say: texts and answers of queries by their ids, events, and what was left out."""

    texts: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)
    askers: dict[str, str] = field(default_factory=dict)
    events: list[_Event] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    without: Counter[str] = field(default_factory=Counter)

    def take(self, where: str, line: Json) -> None:
        """Takes one object in, which `where` names in errors."""
        query, asker = text_of(line.get("query_id")), text_of(line.get("client_id"))
        if text := text_of(line.get("user_query")):
            self.without["text"] += self.texts.setdefault(query, text) != text
        action = text_of(line.get("action_name"))
        if action:
            self._event(where, line, query, action)
            return
        answer = line.get("query_response_hit_ids")
        if not ("user_query" in line or "query_response_hit_ids" in line) or not query:
            raise DataError(
                f"{where}: {json.dumps(line)[:60]}: a line of UBI must have an action_name, or a query_id and a user_query"
            )
        self.askers.setdefault(query, asker)
        if not (answer is None or isinstance(answer, list)):
            raise DataError(f"{where}: query_response_hit_ids {json.dumps(answer)[:40]}: it must be a list of ids")
        if answer:
            documents = [text_of(document) for document in answer]
            self.without["answer"] += self.answers.setdefault(query, documents) != documents

    def _event(self, where: str, line: Json, query: str, action: str) -> None:
        self.actions[action] += 1
        if action not in IMPRESSIONS | CLICKS:
            return
        attributes = object_at(line, "event_attributes")
        document = text_of(object_at(attributes, "object").get("object_id"))
        session = text_of(line.get("session_id")) or text_of(attributes.get("session_id"))
        time = _time(where, line.get("timestamp"), self.events[-1].time if self.events else 0.0)
        place = _place(where, object_at(attributes, "position").get("ordinal"))
        if not query or not document:
            self.without["query" if not query else "document"] += 1
            return
        self.events.append(
            _Event(query, session, text_of(line.get("client_id")), action, document, place, time, text_of(line.get("application")))
        )


def _time(where: str, written: Any, before: float) -> float:
    """Seconds since 1970; those of the event before for none, so that events without a time stay where they are."""
    if written is None:
        return before
    try:
        if isinstance(written, str) and not written.strip().isdigit():
            moment = datetime.fromisoformat(written.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        return plain_number(written) / 1000
    except (ValueError, OverflowError):
        shown = json.dumps(written)[:40]
        raise DataError(f"{where}: timestamp {shown}: a time must be ISO 8601, or milliseconds since 1970") from None


def _place(where: str, written: Any) -> int | None:
    if written is None or written == "":
        return None
    try:
        place = plain_number(written)
        if not 0 <= place < _FARTHEST or place != int(place):
            raise ValueError
    except ValueError:
        shown = json.dumps(written)[:40]
        raise DataError(f"{where}: position.ordinal {shown}: a rank must be a whole number, 0 or more") from None
    return int(place)


def _rows(path: Path) -> tuple[pl.DataFrame, list[str]]:
    read = _Read()
    for number, line in objects(path):
        read.take(f"{path}, line {number}", line)
    bases = _bases(read.events, read.answers)
    pages = _pages(read)
    rows: list[tuple[str, str, str, str, int, int]] = []
    unplaced = untold = by_answer = elsewhere = unshown = 0
    for (session, query), events in pages.items():
        if query not in read.texts:
            untold += len(events)
            continue
        told = any(event.action in IMPRESSIONS for event in events)
        answer = [] if told else read.answers.get(query, [])
        by_answer += bool(answer)
        results = _results(events, answer, bases)
        unplaced += sum(place is None for place, _ in results.values())
        shown = {*answer, *(event.document for event in events if event.action in IMPRESSIONS)}
        unshown += sum(document not in shown for document, (place, _) in results.items() if place is not None)
        in_answer = {document: place for place, document in reversed([*enumerate(answer, 1)])}
        elsewhere += sum(
            _place_on_page(event, bases) not in (None, in_answer[event.document]) for event in events if event.document in in_answer
        )
        rows += [
            (session, query, read.texts[query], document, click, place)
            for document, (place, click) in results.items()
            if place is not None
        ]
    if not rows:
        raise DataError(f"{path}: no event shows or clicks a document of a known query (actions: {_listed(read.actions)})")
    frame = pl.DataFrame(rows, schema=COLUMNS, orient="row").sort("session", "interaction", "rank", "document")
    return frame, _notes(read, bases, (unplaced, untold, by_answer, elsewhere, unshown))


def _pages(read: _Read) -> dict[tuple[str, str], list[_Event]]:
    """The events of each page, by session and query, in their order; a query whose answer nobody acted on is a page without any.

    Where the file names sessions, these are what pages are of: an event that names none is of the only one that its query has. What is of none
    stands alone, for its client may come back for years. In a file without sessions a page is of its client.
    """
    named: dict[str, set[str]] = defaultdict(set)
    for event in read.events:
        if event.session:
            named[event.query].add(event.session)

    def session(query: str, own: str, client: str) -> str:
        only = next(iter(named[query])) if len(named.get(query, ())) == 1 else ""
        return own or only or ("" if named else client) or query

    pages: dict[tuple[str, str], list[_Event]] = defaultdict(list)
    for event in sorted(read.events, key=lambda event: event.time):
        pages[session(event.query, event.session, event.client), event.query].append(event)
    asked = {query for _, query in pages}
    for query in read.answers:
        if query not in asked:
            pages[session(query, "", read.askers.get(query, "")), query] = []
    return pages


def _results(events: Sequence[_Event], answer: Sequence[str], bases: dict[str, int]) -> dict[str, tuple[int | None, int]]:
    """The documents of a page: their places from 1, and the order of the last click on each, 0 for none."""
    found: dict[str, tuple[int | None, int]] = {}
    for k, document in enumerate(answer, 1):
        if document:
            found.setdefault(document, (k, 0))
    clicks = 0
    for event in events:
        place = _place_on_page(event, bases)
        known, click = found.get(event.document, (None, 0))
        if event.action in CLICKS:
            clicks += 1
            click = clicks
        found[event.document] = (place if known is None else known, click)
    return found


def _place_on_page(event: _Event, bases: dict[str, int]) -> int | None:
    """Counted from 1; none for a 0 where places count from 1."""
    return None if event.place is None else event.place + 1 - bases[event.application] or None


def _bases(events: Iterable[_Event], answers: dict[str, list[str]]) -> dict[str, int]:
    """By application the number of its first place, 0 or 1."""
    lowest: dict[str, int] = {}
    shifts: dict[str, Counter[int]] = defaultdict(Counter)
    for event in events:
        if event.place is None:
            lowest.setdefault(event.application, 1)
            continue
        lowest[event.application] = min(lowest.get(event.application, 1), event.place)
        answer = answers.get(event.query, [])
        if event.document in answer:
            shifts[event.application][event.place - answer.index(event.document)] += 1
    bases = {}
    for application, least in lowest.items():
        zero, one = (shifts[application][base] for base in (0, 1))
        bases[application] = int(one > zero) if zero + one else min(least, 1)
    return bases


def _begin_otherwise(events: Iterable[_Event], bases: dict[str, int]) -> list[str]:
    """A sentence for each application some of whose pages begin at the other one of 0 and 1, by their impressions: where it changed how it counts,
    the ranks of one kind are wrong by one."""
    first: dict[tuple[str, str], int] = {}
    for event in events:
        if event.action in IMPRESSIONS and event.place is not None:
            page = event.application, event.query
            first[page] = min(first.get(page, event.place), event.place)
    pages = Counter(application for application, _ in first)
    otherwise = Counter(application for (application, _), place in first.items() if place == 1 - bases[application])
    return [
        f"{number_of(count, 'page')} of {pages[name]:,} {'begins' if count == 1 else 'begin'} at {1 - bases[name]} in {name!r}, whose ranks are taken "
        f"to count from {bases[name]}: if it counted from 1 at one time and from 0 at another, the ranks of one of them are off by one; give each a "
        "file or an application of its own"
        for name, count in sorted(otherwise.items())
    ]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common(8)) + (", …" if len(counts) > 8 else "")


def _notes(read: _Read, bases: dict[str, int], lost: tuple[int, int, int, int, int]) -> list[str]:
    unplaced, untold, by_answer, elsewhere, unshown = lost
    read_actions = Counter({name: n for name, n in read.actions.items() if name in IMPRESSIONS | CLICKS})
    others = read.actions - read_actions
    notes = [
        f"UBI: {number_of(len(read.texts), 'query')}, {number_of(read.actions.total(), 'event')}; read: {_listed(read_actions)}"
    ]
    if others:
        notes.append(f"other actions, not read: {_listed(others)}")
    if by_answer:
        notes.append(
            f"{number_of(by_answer, 'page')} without impressions: its query's answer (query_response_hit_ids) is what it showed"
        )
    for base in (0, 1):
        if named := sorted(repr(name) for name, own in bases.items() if own == base):
            notes.append(f"ranks count from {base} in {', '.join(named)}")
    notes += _begin_otherwise(read.events, bases)
    counts = [
        (read.without["text"], "line", "with a different text for a query than before: left out"),
        (
            read.without["answer"],
            "line",
            "with a different answer to a query than before, such as its next page of results: left out",
        ),
        (
            elsewhere,
            "event",
            "at another rank than the document has in its query's answer, which counts as the first page of results: the answer's is taken",
        ),
        (
            unshown,
            "result",
            "named by clicks alone, by no impression and no answer: counted as shown only where clicked, so that every showing is a click",
        ),
        (read.without["query"], "event", "without a query_id: left out"),
        (read.without["document"], "event", "without an object_id: left out"),
        (untold, "event", "of queries whose text no line gives: left out"),
        (unplaced, "result", "without a rank: left out"),
    ]
    return notes + [f"{number_of(count, noun)} {what}" for count, noun, what in counts if count]
