"""Why one document of a query ranks above another, for people: in a sentence, as plain values, and drawn.

The worst pair of a query is the one whose swap would raise its DCG most: a document of a higher label that stands below one of a lower one.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ltr
from ltr.data.queries import Queries, select
from ltr.diagnostics.why_above import Change, Tried, WhyAbove, why_above
from ltr.metrics.gains import graded
from tasks.evidence.drawing import INK, colour, name_bars, svg, titled
from tasks.records import DataError, finite_or_none
from tasks.store.values import names_of
from tasks.training.scoring import scores_of

SHOWN = 12
"""Features in a drawing and a table; the others are summed up."""


@dataclass(frozen=True)
class ShownDocument:
    """A document of a ranking: its id, or its rank where it has none; rank from 1; label, None where it is not judged; and score."""

    name: str
    rank: int
    label: float | None
    score: float

    def __str__(self) -> str:
        judged = "not judged" if self.label is None else f"label {self.label:g}"
        return f"{self.name} (rank {self.rank}, {judged})"


@dataclass(frozen=True)
class ShownPair:
    """Why one document of a query ranks above another."""

    query: str
    above: ShownDocument
    below: ShownDocument
    why: WhyAbove
    note: str = ""
    """Why it is these two, where nobody named them and none ranks above one of a higher label."""

    def text(self, most: int = 3) -> str:
        """In a sentence, with as many reasons and the smallest change."""
        reasons = ", ".join(f"{r.feature} {r.contribution:+.3g}" for r in self.why.reasons[:most])
        change = f"; {self.change_text(self.why.changes[0])}" if self.why.changes else "; no change of one feature would swap them"
        told = f"{self.above} ranks above {self.below} by {self.why.difference:.3g}: {reasons}{change}"
        return f"{self.note}: {told}" if self.note else told

    def change_text(self, change: Change) -> str:
        """A change that swaps the two, in words."""
        whose = self.above.name if change.above else self.below.name
        far = "" if math.isinf(change.deviations) else f" ({change.deviations:.2g} standard deviations)"
        return f"they would swap if {change.feature} of {whose} were {_number(change.to)} instead of {_number(change.value)}{far}"

    def as_json(self) -> dict[str, Any]:
        """Plain values; None for what is missing or without end."""
        return finite_or_none(asdict(self) | {"difference": self.why.difference})

    def drawing(self) -> str:
        """Contributions as bars, SVG."""
        return svg(partial(_draw, self))


def pair_of(
    model: ltr.Ranker,
    queries: Queries,
    query: str,
    above: str | None = None,
    below: str | None = None,
    conventions: ltr.Conventions | None = None,
    tried: Sequence[Tried] | None = None,
) -> ShownPair:
    """Why one document of a query ranks above another: those named, by id or rank, otherwise the worst pair, or the first two where no pair
    is wrong. `conventions`: by which a pair is wrong; the model's own where left out. `tried`: as in `why_above`, for whoever asks of many queries.

    Raises:
        DataError: for a query or a document that is not there, and for two that stand the other way round.
    """
    names = names_of(queries)
    if query not in names:
        raise DataError(
            f"no query {query!r} in the data; choose from: {', '.join(sorted(names)[:8])}{' …' if len(names) > 8 else ''}"
        )
    place = names.index(query)
    start, end = (int(row) for row in queries.offsets[place:][:2])
    scores, labels = scores_of(model, select(queries, np.array([place]))), queries.labels[start:end]
    order, note = np.argsort(-scores, kind="stable"), ""
    if above is None and below is None:
        chosen = worst_pair(labels, scores, conventions or model.conventions)
        if chosen is None:
            chosen, note = _first_two(scores[order]), "no document ranks above one of a higher label; these are the first two"
        if chosen is None:
            raise DataError(f"query {query}: all its documents have the same score, or there is only one")
    else:
        chosen = _named(queries, query, (start, end), order, (above, below))
    first, second = chosen
    upper, lower = int(order[first]), int(order[second])
    if not np.isfinite(scores[lower]):
        raise DataError(f"query {query}: {_name(queries, start + lower, second)} is unranked (not retrieved)")
    if upper == lower:
        raise DataError(f"query {query}: --above and --below name the same document, {_name(queries, start + upper, first)}")
    if not scores[upper] > scores[lower]:
        said = (_name(queries, start + upper, first), _name(queries, start + lower, second))
        if scores[upper] == scores[lower]:
            raise DataError(f"query {query}: {said[0]} and {said[1]} have the same score ({scores[upper]:.6g})")
        raise DataError(
            f"query {query}: {said[0]} ({scores[upper]:.6g}) ranks below {said[1]} ({scores[lower]:.6g}); swap --above and --below"
        )
    why = why_above(model, queries, start + upper, start + lower, tried=tried)
    documents = [
        ShownDocument(
            _name(queries, start + row, rank), rank + 1, None if math.isnan(labels[row]) else float(labels[row]), float(scores[row])
        )
        for rank, row in ((first, upper), (second, lower))
    ]
    return ShownPair(query, documents[0], documents[1], why, note)


def worst_pair(labels: NDArray[np.float64], scores: NDArray[np.float64], conventions: ltr.Conventions) -> tuple[int, int] | None:
    """Ranks from 0 of the two documents of a query whose swap would raise its DCG most, by the conventions' gains and ranks; None where none
    would.

    Of two labels the swap of the first document of the one and the last of the other raises it most, so that only these are compared."""
    order = np.argsort(-scores, kind="stable")
    seen = np.isfinite(scores[order]) & ~(np.isnan(labels[order]) & (conventions.unlabelled == "condensed"))
    ranks = np.flatnonzero(seen)
    ranked, gains = scores[order][ranks], graded(np.nan_to_num(labels[order][ranks]), conventions)
    discounts = 1 / np.log2(np.arange(len(ranks)) + 2)
    levels, firsts = np.unique(gains, return_index=True)
    lasts = len(gains) - 1 - np.unique(gains[::-1], return_index=True)[1]
    most, worst = 0.0, None
    for first in np.sort(firsts).tolist():
        rises = np.where(
            ranked[first] > ranked[lasts], (levels - gains[first]) * (discounts[first] - discounts[lasts]), 0.0
        )  # fmt: skip
        if rises.max() > most:
            most, worst = float(rises.max()), (int(ranks[first]), int(ranks[lasts[rises == rises.max()].min()]))
    return worst


def _first_two(scores: NDArray[np.float64]) -> tuple[int, int] | None:
    """The first rank and the next one of a lower score, of scores in falling order."""
    lower = np.flatnonzero((scores < scores[0]) & np.isfinite(scores))
    return (0, int(lower[0])) if len(lower) else None


def _name(queries: Queries, row: int, rank: int) -> str:
    if queries.documents is None:
        return f"document {rank + 1}"
    return str(queries.documents[row].decode("utf-8", "backslashreplace"))


def _named(
    queries: Queries, query: str, rows: tuple[int, int], order: NDArray[np.intp], names: tuple[str | None, str | None]
) -> tuple[int, int]:
    """Ranks from 0 of two documents by their ids or ranks; the one that is not named is the first, or the next."""
    known = {_name(queries, rows[0] + int(row), rank): rank for rank, row in enumerate(order)}

    def rank_of(name: str) -> int:
        if name in known:
            return known[name]
        if name.isdigit() and 1 <= int(name) <= len(order):
            return int(name) - 1
        raise DataError(f"query {query}: no document {name!r}; it has {len(order)}, by id or by rank from 1 to {len(order)}")

    above, below = names
    if above is None:
        return 0, rank_of(str(below))
    return rank_of(above), rank_of(below) if below is not None else min(rank_of(above) + 1, len(order) - 1)


def _draw(pair: ShownPair, axes: Any) -> None:
    shown = [(r.feature, r.contribution, r.error) for r in pair.why.reasons[:SHOWN]]
    if rest := pair.why.reasons[SHOWN:]:
        shown.append((f"{len(rest)} others", sum(r.contribution for r in rest), 0.0))
    shown.reverse()
    values = [value for _, value, _ in shown]
    errors = [error for _, _, error in shown]
    axes.barh(
        range(len(shown)), values, xerr=errors if any(errors) else None, height=0.6,
        color=[colour(0) if value > 0 else colour(1) for value in values],
    )  # fmt: skip
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set(xlabel=f"share in the difference of the scores\n({pair.why.difference:.3g}); {pair.why.method}")
    axes.figure.set_figheight(1.2 + 0.22 * len(shown))
    name_bars(axes, [name for name, _, _ in shown])
    titled(axes, f"{pair.query}: {pair.above} above {pair.below}")


def _number(value: float) -> str:
    return "missing" if math.isnan(value) else f"{value:.4g}"
