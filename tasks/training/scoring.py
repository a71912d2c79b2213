"""A ranker's measures on a data set."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import ltr
from ltr.data.queries import Queries, keep
from tasks.records import RETRIEVED


def evaluate(
    ranker: ltr.Ranker, queries: Queries, measures: Sequence[str], conventions: ltr.Conventions
) -> dict[str, NDArray[np.float64]]:
    """Values ``{key: float64 [queries]}`` of a ranker's ranking of a data set."""
    labels = {"label": queries.labels, **queries.sources}
    scores = scores_of(ranker, queries)
    return ltr.evaluate(labels, scores, queries.offsets, measures, conventions, queries.position, queries.documents)


def scores_of(ranker: ltr.Ranker, queries: Queries) -> NDArray[np.float64]:
    """A ranker's scores of a data set, ``float64 [documents]``: documents that were judged and not retrieved, which no ranking could have,
    are below all others."""
    scores = ranker.predict(queries.features)
    if RETRIEVED in queries.sources:
        scores = np.where(queries.sources[RETRIEVED] > 0, scores, np.nextafter(scores.min(), -np.inf))
    return scores


def retrieved_only(queries: Queries) -> Queries:
    """What there is to learn from."""
    return keep(queries, queries.sources[RETRIEVED] > 0) if RETRIEVED in queries.sources else queries
