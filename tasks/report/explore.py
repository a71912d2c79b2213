"""What the page's script draws from (``page.js``): per-query values, rankings of the queries that changed most, curves and points of cells.

All of it is in the page, so each part has its share of two megabytes, beside the page's tables: of many queries some are taken, and curves are thinned.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ltr
from ltr.data.queries import Queries, select
from ltr.metrics.measure import fewer_is_better
from tasks.evidence.drawing import title_of
from tasks.evidence.segments import Changes, changes
from tasks.records import Trained, number_of
from tasks.report.outcome import RunOutcome
from tasks.store.cells import CellFolder, CurveFile, read_curve
from tasks.store.datasets import about_queries, open_queries
from tasks.store.values import names_of, read_values, values_of
from tasks.training.scoring import scores_of

VALUES, QUERIES = 90_000, 5_000
"""Per-query values in the page, over all rankers and measures, and queries; of more some are taken, evenly."""
POINTS = 20_000
"""Points of all curves together."""
RANKED = 40
"""Queries whose documents are in the page."""
TOP = 10
"""Documents of a ranking."""
_NAME = 60
"""Characters of the name of a query or a document."""


@dataclass(frozen=True)
class Ranking:
    """How each ranker orders the documents of one test query.

    Attributes:
        query: its place among the test queries, fold behind fold and each fold by name.
        name: with its text where that is known.
        documents: those among the first `TOP` of some ranker; `labels`: theirs, None where not judged.
        ranks: ``[rankers][documents]``, from 1.
    """

    query: int
    name: str
    documents: tuple[str, ...]
    labels: tuple[float | None, ...]
    ranks: tuple[tuple[int, ...], ...]

    def top(self, ranker: int) -> list[int]:
        """The first documents of a ranker, in its order."""
        order = sorted(range(len(self.documents)), key=lambda k: self.ranks[ranker][k])
        return [k for k in order if self.ranks[ranker][k] <= TOP]

    def beside(self, one: int, other: int) -> list[tuple[int, int]]:
        """Rank by rank, the documents of two rankers."""
        return list(zip(self.top(one), self.top(other), strict=True))

    def shown_label(self, document: int) -> str:
        """The label as the page shows it."""
        label = self.labels[document]
        return "–" if label is None else f"{label:g}"

    def share(self, document: int) -> float:
        """The label as a share of the highest one here."""
        return round((self.labels[document] or 0.0) / max(1.0, *(label or 0.0 for label in self.labels)), 3)


@dataclass(frozen=True)
class QueryValues:
    """Per-query values of the chosen cells: ``[rankers, measures, queries]``, NaN where undefined, and `names` of the queries."""

    rankers: tuple[str, ...]
    measures: tuple[str, ...]
    names: tuple[str, ...]
    values: NDArray[np.float64]

    @cached_property
    def places(self) -> list[str]:
        """The queries' places as names, which sort as the places do: a name of a query may stand in two folds."""
        n = self.values.shape[-1]
        return [f"{k:0{len(str(n))}d}" for k in range(n)]


@dataclass(frozen=True)
class Lost:
    """Queries on which the best ranker is worse than another: in words, and the documents of those that lose most."""

    text: str
    other: str
    at: int
    rankings: tuple[tuple[Ranking, float, float], ...]


@dataclass(frozen=True)
class Explored:
    """What there is to explore; `values` is None where cells kept no values, or not of the same queries."""

    outcome: RunOutcome
    values: QueryValues | None
    rankings: tuple[Ranking, ...]

    @property
    def measure(self) -> str:
        """The key of the measure that is shown first: the selecting one, where it is in the table."""
        measures = self.outcome.standings.measures
        return self.outcome.config.select_key if self.outcome.config.select_key in measures else measures[0]

    def lost(self) -> list[Lost]:
        """What the best ranker loses against each other one."""
        if self.values is None:
            return []
        taken, best, known = self.values, self.outcome.best, {ranking.query: ranking for ranking in self.rankings}
        m = taken.measures.index(self.measure)
        found = []
        for other in (name for name in taken.rankers if name != best):
            own, theirs = (taken.values[taken.rankers.index(name), m] for name in (best, other))
            changed = _changes(taken, best, other, self.measure)
            rows = [known[k] for k in (int(row.query) for row in changed.harmed) if k in known]
            text = f"Where {best} is worse than {other} by {title_of(self.measure)}: {changed.n_harmed:,} of {number_of(changed.n_harmed + changed.n_helped + changed.n_same, 'query')}"
            shown = tuple((one, float(own[one.query]), float(theirs[one.query])) for one in rows)
            found.append(Lost(text, other, taken.rankers.index(other), shown))
        return found

    def json(self) -> str:
        """For a ``script`` element: no ``<`` in it ends or begins anything."""
        outcome, standings = self.outcome, self.outcome.standings
        rankers, chosen = list(standings.rows), {trained.cell.label for trained in outcome.chosen}
        cells = [
            {
                "row": row,
                "label": trained.cell.label,
                "ranker": rankers.index(trained.ranker),
                "chosen": trained.cell.label in chosen,
                "point": {path: _plain(value) for path, value in trained.cell.point.items()},
                **{split: [_short(trained.result.metrics.get(f"{split}_{m}")) for m in standings.measures] for split in ("valid", "test")},
            }
            for row, trained in enumerate(outcome.cells)
            if trained.ranker in rankers
        ]  # fmt: skip
        told = {
            "measures": [{"title": title_of(m), "fewer": fewer_is_better(m)} for m in standings.measures],
            "measure": standings.measures.index(self.measure),
            "rankers": rankers,
            "best": rankers.index(outcome.best),
            "cells": cells,
            "curves": _curves([trained for trained in outcome.cells if trained.ranker in rankers]),
            "queries": self._queries(),
            "rankings": [asdict(ranking) for ranking in self.rankings],
        }
        return json.dumps(told, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")

    def _queries(self) -> Mapping[str, Any] | None:
        if self.values is None:
            return None
        _, _, n = self.values.values.shape
        most = min(QUERIES, max(50, VALUES // self.values.values[..., 0].size))
        even = np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)
        taken = np.union1d(even, np.array([ranking.query for ranking in self.rankings], np.int64))
        return {
            "n": n,
            "at": None if len(taken) == n else taken.tolist(),
            # Here for their documents alone: counted, they would be too many of the most changed.
            "beside": np.setdiff1d(taken, even).tolist(),
            "names": [self.values.names[k] for k in taken.tolist()],
            "values": [[[_short(v) for v in own[taken].tolist()] for own in row] for row in self.values.values],
        }


def explored(outcome: RunOutcome) -> Explored:
    """Gathers what there is to explore of a run."""
    values = _test_values(outcome)
    found = Explored(outcome, values, ())
    if values is None or len(values.rankers) < 2:
        return found
    return Explored(outcome, values, tuple(_rankings(outcome, values, most_changed(values, found.measure, outcome.best))))


def most_changed(taken: QueryValues, measure: str, best: str) -> list[int]:
    """At most `RANKED` queries: of each pair of rankers, those with the best one first, the most harmed and the most helped in turn."""
    rest = [name for name in taken.rankers if name != best]
    pairs = [*((best, other) for other in rest), *((a, b) for k, a in enumerate(rest) for b in rest[k + 1 :])]
    lists = [rows for a, b in pairs for found in [_changes(taken, a, b, measure)] for rows in (found.harmed, found.helped)]
    found = dict.fromkeys(int(rows[k].query) for k in range(RANKED) for rows in lists if k < len(rows))
    return list(found)[:RANKED]


def _changes(taken: QueryValues, a: str, b: str, measure: str) -> Changes:
    """Queries by their places (`QueryValues.places`)."""
    m = taken.measures.index(measure)
    own, theirs = (taken.values[taken.rankers.index(name), m] for name in (a, b))
    return changes((a, b, measure), taken.places, own, theirs, 5)


def _test_values(outcome: RunOutcome) -> QueryValues | None:
    measures, rankers = outcome.standings.measures, tuple(outcome.standings.rows)
    frames = {name: [folder.values for folder in outcome.folders[name]] for name in rankers}
    if not measures or not all(path.is_file() for paths in frames.values() for path in paths):
        return None
    read = {name: [read_values(path, "test") for path in paths] for name, paths in frames.items()}
    names = [[query for frame in folds for query in frame["query"].to_list()] for folds in read.values()]
    if any(one != names[0] for one in names):
        return None
    values = [[np.concatenate([values_of(frame, m) for frame in folds]) for m in measures] for folds in read.values()]
    texts: dict[str, str] = {}
    for fold in outcome.folds:
        texts |= _texts(open_queries(fold.test))
    shown = [f"{query} · {texts[query]}" if texts.get(query, query) != query else query for query in names[0]]
    return QueryValues(rankers, tuple(measures), tuple(name[:_NAME] for name in shown), np.array(values))


def _texts(queries: Queries) -> dict[str, str]:
    said = queries.attributes.get("text")
    return {} if said is None else {name: text for name, text in zip(names_of(queries), said.tolist(), strict=True) if text}


@dataclass(frozen=True)
class _Scored:
    """A query as one ranker orders it: by rows of the original file, which name a document whatever features a ranker sees, its name and
    label, and its rank."""

    documents: Mapping[int, tuple[str, float]]
    ranks: Mapping[int, int]


def _rankings(outcome: RunOutcome, taken: QueryValues, wanted: Sequence[int]) -> list[Ranking]:
    """Rankings of the wanted queries, by their places; none where a model is not here."""
    starts = np.cumsum([0, *(about_queries(fold.test).queries for fold in outcome.folds)]).tolist()
    scored: dict[int, list[_Scored]] = {k: [] for k in sorted(wanted)}
    for name in taken.rankers:
        for trained in outcome.chosen_of(name):
            if not CellFolder.of(trained.result.key).model.is_dir():
                return []
            start, end = starts[trained.fold : trained.fold + 2]
            own = [k for k in scored if start <= k < end]
            for k, one in zip(own, _scored(trained, [k - start for k in own]), strict=True):
                scored[k].append(one)
    return [
        _ranking(k, taken.names[k], ones)
        for k, ones in scored.items()
        if all(one.ranks.keys() == ones[0].ranks.keys() for one in ones)
    ]


def _ranking(query: int, name: str, scored: Sequence[_Scored]) -> Ranking:
    first = [row for row in sorted(scored[0].ranks) if min(one.ranks[row] for one in scored) <= TOP]
    told = [scored[0].documents[row] for row in first]
    labels = tuple(None if math.isnan(label) else label for _, label in told)
    return Ranking(
        query, name, tuple(name for name, _ in told), labels, tuple(tuple(one.ranks[row] for row in first) for one in scored)
    )


def _scored(trained: Trained, places: Sequence[int]) -> list[_Scored]:
    """The queries at these places, counted by name."""
    queries, model = open_queries(trained.cell.data.test), ltr.load(CellFolder.of(trained.result.key).model)
    by_name = sorted(range(queries.n_queries), key=names_of(queries).__getitem__)
    found = []
    for place in places:
        rows = slice(*queries.offsets[by_name[place] :][:2].tolist())
        order = np.lexsort((queries.position[rows], -scores_of(model, select(queries, np.array([by_name[place]])))))
        position = queries.position[rows].tolist()
        if queries.documents is None:
            names = [f"row {row - min(position) + 1}" for row in position]
        else:
            names = [one.decode("utf-8", "backslashreplace")[:_NAME] for one in queries.documents[rows].tolist()]
        documents = dict(zip(position, zip(names, queries.labels[rows].tolist(), strict=True), strict=True))
        found.append(_Scored(documents, {position[row]: rank for rank, row in enumerate(order.tolist(), 1)}))
    return found


def _curves(cells: Sequence[Trained]) -> list[Mapping[str, Any]]:
    found = {k: read_curve(CellFolder.of(trained.result.key).curve) for k, trained in enumerate(cells)}
    read = {k: curve for k, curve in found.items() if curve is not None and curve.iteration}
    most = max(8, POINTS // (2 * max(1, len(read))))

    def thinned(curve: CurveFile, values: Sequence[float | None]) -> list[tuple[int, float]]:
        points = [(at, round(value, 4)) for at, value in zip(curve.iteration, values, strict=True) if value is not None]
        step = (len(points) - 1) / (most - 1)
        return points if len(points) <= most else [points[round(k * step)] for k in range(most)]

    return [
        {
            "cell": k,
            "measure": title_of(str(curve.measure)),
            "train": thinned(curve, curve.train),
            "valid": thinned(curve, curve.valid),
        }
        for k, curve in read.items()
    ]


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 9)


def _plain(value: object) -> bool | float | str | None:
    """Numbers as they are, everything else as people read it: whole numbers of more digits than a browser has, too."""
    if isinstance(value, int) and abs(value) > 2**53:
        return str(value)
    if value is None or isinstance(value, bool) or (isinstance(value, int | float) and math.isfinite(value)):
        return value
    return str(value)


def page_script() -> str:
    """The page's script."""
    return Path(__file__).with_name("page.js").read_text(encoding="utf-8")
