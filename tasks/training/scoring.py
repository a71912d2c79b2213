"""A ranker's measures on a data set."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import ltr
from ltr.data.queries import Queries


def evaluate(
    ranker: ltr.Ranker, queries: Queries, measures: Sequence[str], conventions: ltr.Conventions
) -> dict[str, NDArray[np.float64]]:
    """Values ``{key: float64 [queries]}`` of a ranker's ranking of a data set."""
    labels = {"label": queries.labels, **queries.sources}
    scores = ranker.predict(queries.features)
    return ltr.evaluate(labels, scores, queries.offsets, measures, conventions, queries.position, queries.documents)
