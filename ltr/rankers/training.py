"""What rankers share while they train: the measure they watch, and the curve they leave."""

from dataclasses import dataclass

import numpy as np

from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats, Ints
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import evaluate
from ltr.metrics.measure import Measure, why_undefined


@dataclass(frozen=True)
class Curve:
    """A measure along training, ``float64 [evaluations]`` each; NaN where it was not taken."""

    iteration: Ints
    train: Floats
    valid: Floats


def mean_measure(measure: str, queries: Queries, scores: Floats, conventions: Conventions) -> float:
    """Mean of a measure over the queries where it is defined.

    Raises:
        ValueError: where it is defined on none of them.
    """
    values = query_values(measure, queries, scores, conventions)
    if np.isnan(values).all():
        read = Measure.of(measure)
        raise ValueError(why_undefined(read, queries.source(read.source), conventions))
    return float(np.nanmean(values))


def query_values(measure: str, queries: Queries, scores: Floats, conventions: Conventions) -> Floats:
    """A measure of each query, ``float64 [queries]``; NaN where it is undefined."""
    labels = {"label": queries.labels, **queries.sources}
    key = Measure.of(measure).key
    return evaluate(labels, scores, queries.offsets, [measure], conventions, queries.position, queries.documents)[key]
