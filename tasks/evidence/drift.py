"""Whether data have moved between two runs: a profile is kept of each run's training data, and the next one's is held against it.

By the population stability index Σ (p − q)·ln(p/q) over deciles of the older data (of labels that are few: over each of them), one more bin on each side of their range and one for
missing values, as credit scoring has it (Siddiqi 2006): below 0.1 nothing, from 0.25 a shift. Shares are those of half a document more in every bin
that either has filled, so that one that is empty now counts and is not infinite. Documents of a query resemble each other, and of few queries the index is large by chance: it is no shift
below what chance makes of it some once in a thousand times.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from ltr.data.queries import Queries

SHIFTED = 0.25
RARELY = 0.001
"""How often so many queries come so far apart by chance that it is called a shift all the same."""
_BINS, _MOST_LABELS = 10, 50


@dataclass(frozen=True)
class Histogram:
    """Edges, and documents of each bin (edge k − 1, edge k], of those above the last edge, and of those without a value; and their `_scatter`,
    None of one query and in profiles of earlier releases."""

    edges: list[float]
    counts: list[int]
    scatter: float | None = None


@dataclass(frozen=True)
class Profile:
    """Deciles and counts of every feature, and of every label source: what `drift` needs of the older data."""

    documents: int
    queries: int
    features: dict[str, Histogram]
    labels: dict[str, Histogram]

    def as_json(self) -> str:
        """The profile as text."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> "Profile":
        """The profile of a text that `as_json` gave.

        Raises:
            ValueError: for any other text.
        """
        found = TypeAdapter(cls).validate_json(text)
        for name, bins in (found.features | found.labels).items():
            if len(bins.counts) != len(bins.edges) + 2:
                raise ValueError(f"profile: {name!r} has {len(bins.edges)} edges and {len(bins.counts)} counts")
        return found


@dataclass(frozen=True)
class Drift:
    """How far one feature or label source has moved; the index is None where it is new or gone.

    Attributes:
        by_chance: whether so few queries that have not moved come so far apart once in a thousand times or more.
    """

    kind: Literal["features", "labels"]
    name: str
    index: float | None
    text: str
    by_chance: bool = False

    @property
    def shifted(self) -> bool:
        """Whether it has moved."""
        return self.index is None or (self.index >= SHIFTED and not self.by_chance)


def profile(queries: Queries) -> Profile:
    """The profile of a data set."""
    by_query = queries.of_query
    features = {name: _counted(values, _edges(values), by_query) for name, values in _features(queries).items()}
    labels = {name: _counted(values, _each_value(values), by_query) for name, values in _labels(queries).items()}
    return Profile(queries.n_documents, queries.n_queries, features, labels)


def _features(queries: Queries) -> dict[str, NDArray[Any]]:
    return {name: queries.features[:, k] for k, name in enumerate(queries.names)}


def _labels(queries: Queries) -> dict[str, NDArray[Any]]:
    return {"label": queries.labels, **queries.sources}


def drift(older: Profile, queries: Queries) -> tuple[Drift, ...]:
    """The index of every feature and label source that both have, the largest first, behind those that only one has."""
    found = [
        *_moved("features", older.features, _features(queries), older, queries),
        *_moved("labels", older.labels, _labels(queries), older, queries),
    ]
    return tuple(sorted(found, key=lambda entry: -np.inf if entry.index is None else -entry.index))


def _moved(
    kind: Literal["features", "labels"],
    known: dict[str, Histogram],
    columns: dict[str, NDArray[Any]],
    older: Profile,
    queries: Queries,
) -> Iterable[Drift]:
    by_query = queries.of_query
    for name in (name for name in {**known, **columns} if (name in known) != (name in columns)):
        yield Drift(kind, name, None, f"{name} is {'new' if name in columns else 'gone'}")
    for name, values in columns.items():
        if name in known:
            before, places = np.array(known[name].counts), _places(values, np.array(known[name].edges))
            index, distance = _apart(before, np.bincount(places, minlength=len(before)))
            reach = _by_chance(places, by_query, older.queries, known[name])
            yield Drift(kind, name, index, f"{name}: stability index {index:.2f}", bool(distance < reach))


def shifted(found: Iterable[Drift]) -> list[str]:
    """What has moved, in words."""
    return [entry.text for entry in found if entry.shifted]


def _edges(values: NDArray[Any]) -> NDArray[Any]:
    present = values[~np.isnan(values)]
    return _with_ends(present, np.quantile(present, np.arange(1, _BINS) / _BINS)) if len(present) else present


def _each_value(values: NDArray[Any]) -> NDArray[Any]:
    """An edge at each label, or deciles of more than `_MOST_LABELS` of them."""
    present = values[~np.isnan(values)]
    labels = np.unique(present)
    return _with_ends(present, labels) if 0 < len(labels) <= _MOST_LABELS else _edges(values)


def _with_ends(present: NDArray[Any], edges: NDArray[Any]) -> NDArray[Any]:
    """The edges and those of the range: nothing of these values is below the first or above the last."""
    return np.unique([np.nextafter(present.min(), -np.inf), *edges, present.max()])


def _counted(values: NDArray[Any], edges: NDArray[Any], by_query: NDArray[Any]) -> Histogram:
    places = _places(values, edges)
    counts = np.bincount(places, minlength=len(edges) + 2)
    return Histogram(edges.astype(float).tolist(), counts.tolist(), _scatter(places, by_query))


def _places(values: NDArray[Any], edges: NDArray[Any]) -> NDArray[Any]:
    """The bin of each document, the last one of those without a value."""
    return np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values))


def _by_chance(places: NDArray[Any], by_query: NDArray[Any], older: int, before: Histogram) -> float:
    """How far documents of other queries of the same kind come apart by chance but `RARELY`: of two samples, of so many queries and of so many
    `older` ones. On average it is the `_scatter`; its law is taken for F's, of as many degrees as there are bins but one, and queries but one. Where
    all are in one bin now nothing varies, and they are taken to vary as they did `before`, or, where that is not known, every query for one draw
    from the bins that were filled then. Of one query nothing is known."""
    from scipy.special import fdtri

    n_queries = int(by_query.max()) + 1
    if (now := _scatter(places, by_query)) is None:
        return float("inf")
    degrees = len(np.unique(places)) - 1 or int(np.count_nonzero(before.counts)) - 1
    mean = now or (before.scatter or 0.0) * older / n_queries or degrees / n_queries
    return mean * (1 + n_queries / older) * float(fdtri(max(degrees, 1), n_queries - 1, 1 - RARELY))


def _scatter(places: NDArray[Any], by_query: NDArray[Any]) -> float | None:
    """The variance of each bin's share over the share, in sum, where documents of one query are one draw together (Liang & Zeger 1986); None of
    one query."""
    n, bins, n_queries = len(places), int(places.max()) + 1, int(by_query.max()) + 1
    if n_queries < 2:
        return None
    of_query = np.bincount(by_query * bins + places, minlength=n_queries * bins).reshape(-1, bins)
    share = of_query.sum(axis=0) / n
    off = of_query - of_query.sum(axis=1)[:, None] * share
    variance = (off * off).sum(axis=0) / (n * n) * (n_queries / (n_queries - 1))
    return float((variance / np.maximum(share, 0.5 / n)).sum())


def _apart(before: NDArray[Any], now: NDArray[Any]) -> tuple[float, float]:
    """The stability index, and what it is of shares that hardly differ, χ²'s distance, which no empty bin makes large. A bin that is empty in both has no say: the
    same half a document is another share of 20 than of 10,000."""
    filled = (before > 0) | (now > 0)
    q, p = ((counts[filled] + 0.5) / (counts[filled] + 0.5).sum() for counts in (before, now))
    return float(((p - q) * np.log(p / q)).sum()), float((2 * (p - q) ** 2 / (p + q)).sum())
