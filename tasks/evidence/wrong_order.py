"""Which features put documents in the wrong order: reasons over the worst pair (`tasks.evidence.reasons`) of each of many queries."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import ltr
from ltr.data.queries import Queries
from ltr.diagnostics.why_above import values_to_try, why_above
from tasks.config.click_labels import ClickLog
from tasks.evidence.reasons import worst_pair
from tasks.evidence.segments import described, segments_of
from tasks.records import DataError, number_of
from tasks.store.values import names_of
from tasks.training.scoring import scores_of


@dataclass(frozen=True)
class FeatureShare:
    """A feature in the worst pairs of many queries.

    Attributes:
        contribution: to the difference of scores, mean; `size`: mean of its absolute value.
        first: pairs where it is the largest reason for the wrong order.
        nearest: pairs that the smallest change of it would put right.
    """

    feature: str
    contribution: float
    size: float
    first: int
    nearest: int


@dataclass(frozen=True)
class Summary:
    """Reasons over the worst pairs of some queries, the largest first.

    Attributes:
        segment: which queries; `queries`: how many; `pairs`: of them with a pair in the wrong order.
        method: how contributions were found.
    """

    segment: str
    queries: int
    pairs: int
    method: str
    features: tuple[FeatureShare, ...]

    def text(self) -> str:
        """Of which queries it is, in words."""
        return (
            f"{self.segment}: {number_of(self.queries, 'query')}, {self.pairs:,} of them with at least one pair in the wrong order"
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def summary_of(
    model: ltr.Ranker,
    queries: Queries,
    segment: str | None = None,
    log: ClickLog | None = None,
    orders: int = 50,
    conventions: ltr.Conventions | None = None,
) -> Summary:
    """Reasons over the worst pairs of all queries, or of a segment (``language=de``). `conventions`: as in `pair_of`.

    Raises:
        DataError: for a segment that is none.
    """
    chosen = _queries_of(queries, segment, log) if segment else range(queries.n_queries)
    scores, tried, found = scores_of(model, queries), values_to_try(model, queries), []
    for k in chosen:
        start, end = (int(row) for row in queries.offsets[k:][:2])
        if pair := worst_pair(queries.labels[start:end], scores[start:end], conventions or model.conventions):
            order = np.argsort(-scores[start:end], kind="stable")
            above, below = (start + int(order[rank]) for rank in pair)
            found.append(why_above(model, queries, above, below, orders, tried=tried))
    contributions = np.zeros((len(found), len(model.names)))
    first, nearest = np.zeros(len(model.names), np.int64), np.zeros(len(model.names), np.int64)
    at = {name: place for place, name in enumerate(model.names)}
    for row, why in enumerate(found):
        for reason in why.reasons:
            contributions[row, at[reason.feature]] = reason.contribution
        if why.reasons:
            first[int(contributions[row].argmax())] += 1
        if why.changes:
            nearest[at[why.changes[0].feature]] += 1
    sizes = np.abs(contributions).mean(axis=0) if found else np.zeros(len(model.names))
    means = contributions.mean(axis=0) if found else sizes
    rows_shown = [k for k in np.argsort(-sizes, kind="stable").tolist() if sizes[k] > 0]
    features = tuple(
        FeatureShare(model.names[k], float(means[k]), float(sizes[k]), int(first[k]), int(nearest[k])) for k in rows_shown
    )
    methods = " or ".join(sorted({why.method for why in found}))
    return Summary(segment or "all queries", len(chosen), len(found), methods, features)


def _queries_of(queries: Queries, segment: str, log: ClickLog | None) -> Sequence[int]:
    """Queries of a segment ``attribute=value``."""
    name, equals, value = segment.partition("=")
    known = [*queries.attributes, "documents", *(("length", "popularity") if log else ())]
    if not equals or name not in known:
        raise DataError(f"--segment {segment}: an attribute and its value, language=de; attributes: {', '.join(known)}")
    about = described(queries, [name], log)
    masks = dict(segments_of(about[f"attribute.{name}"], name))
    if value not in masks:
        raise DataError(f"--segment {segment}: {name} is {', '.join(masks)}")
    place = {query: k for k, query in enumerate(names_of(queries))}
    return [place[query] for query in about["query"].to_numpy()[masks[value]].tolist()]
