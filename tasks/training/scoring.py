"""A ranker's measures on a data set."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import ltr
from ltr.data.queries import Queries, in_order, keep, select
from ltr.metrics.evaluation import NOT_RANKED
from tasks.records import RETRIEVED

_LOOKED_AT = 20
"""Queries that most rankers need to be seen to give different scores."""


def evaluate(
    ranker: ltr.Ranker, queries: Queries, measures: Sequence[str], conventions: ltr.Conventions
) -> dict[str, NDArray[np.float64]]:
    """Values ``{key: float64 [queries]}`` of a ranker's ranking of a data set."""
    labels = {"label": queries.labels, **queries.sources}
    scores = scores_of(ranker, queries)
    return ltr.evaluate(labels, scores, queries.offsets, measures, conventions, queries.position, queries.documents)


def scores_of(ranker: ltr.Ranker, queries: Queries) -> NDArray[np.float64]:
    """A ranker's scores of a data set, ``float64 [documents]``; −∞ where a document is in no ranking of its, as one that was judged and not
    retrieved."""
    queries = in_order(queries, ranker.names)
    return ranked(ranker.ranking_scores(queries.features), queries)


def ranked(scores: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
    """Scores, −∞ of documents that were judged and not retrieved."""
    retrieved = _retrieved(queries)
    return scores if retrieved is None else np.where(retrieved, scores, NOT_RANKED)


def ranks_by_chance(ranker: ltr.Ranker, queries: Queries) -> bool:
    """Whether several documents of a data set all have one score: by settings that leave nothing to learn (a `C` of 1e-30, for instance)."""
    first = select(queries, np.arange(min(_LOOKED_AT, queries.n_queries)))
    for some in (first, queries):
        scores = scores_of(ranker, some)
        ranked = scores[scores > NOT_RANKED]
        if len(ranked) > 1 and ranked.min() < ranked.max():
            return False
    return len(ranked) > 1


def retrieved_only(queries: Queries) -> Queries:
    """What there is to learn from."""
    retrieved = _retrieved(queries)
    return queries if retrieved is None else keep(queries, retrieved)


def _retrieved(queries: Queries) -> NDArray[np.bool_] | None:
    return queries.sources[RETRIEVED] > 0 if RETRIEVED in queries.sources else None
