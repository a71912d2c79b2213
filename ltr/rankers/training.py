"""What rankers share while they train: the measures they watch, the curve they leave, and whom they tell about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ltr.data.brief import Brief
from ltr.data.plain_function import PlainFunction, numbers_from
from ltr.data.queries import Queries, keep
from ltr.kernels.kernel import Floats, Ints
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import evaluate
from ltr.metrics.measure import Measure, why_undefined


@dataclass(frozen=True)
class Curve(Brief):
    """A measure along training, ``float64 [evaluations]`` each; NaN where it was not taken."""

    iteration: Ints
    train: Floats
    valid: Floats


@dataclass(frozen=True)
class Progress:
    """What callbacks are told after every iteration.

    Attributes:
        iteration: how many iterations there are now.
        n_iterations: how many there will be at most.
        values: by validation set and measure, ``{"valid": {"ndcg@10": 0.41}}``.
        so_far: gives the ranker as it is now, to save it or to look at it.
    """

    iteration: int
    n_iterations: int
    values: Mapping[str, Mapping[str, float]]
    so_far: Callable[[], Any] = field(repr=False, compare=False)


Callback = Callable[[Progress], object]
"""Called after every iteration; where it returns something true, the training ends with what there is."""


def checked_callbacks(given: Callback | Sequence[Callback] | None) -> tuple[Callback, ...]:
    """Callbacks as they are called: several, one or none.

    Raises:
        ValueError: for what cannot be called with a `Progress`, such as another tool's callback.
    """
    several = given if isinstance(given, list | tuple) else () if given is None else (given,)
    for one in several:
        maker = type(one).__module__.split(".")[0]
        if not callable(one) or maker in ("lightgbm", "xgboost", "catboost"):
            raise ValueError(
                f"callbacks: {type(one).__name__} of {maker} must be a function of the progress (iteration, n_iterations, values); "
                "for early stopping set patience=50 (rankers), for logging verbose=print (estimators)"
            )
    return tuple(several)


def judged(queries: Queries, measures: Sequence[Measure], conventions: Conventions) -> Queries:
    """What is learned from: by ``unlabelled: condensed`` only the documents that somebody has judged, for one of these measures or, where there
    are none, at all; the same object where it is all of them."""
    if conventions.unlabelled == "zero":
        return queries
    sources = {measure.source for measure in measures} or {"label"}
    known = np.logical_or.reduce([~np.isnan(queries.source(source)) for source in sources])
    return queries if known.all() or not known.any() else keep(queries, known)


class UndefinedMeasureError(ValueError):
    """A measure is defined on none of the queries."""


def mean_measure(measure: str | PlainFunction, queries: Queries, scores: Floats, conventions: Conventions) -> float:
    """Mean of a measure over the queries where it is defined.

    Args:
        measure: a measure's name, or a function of (scores, queries) that gives a number, or one for each query, NaN where it is undefined.

    Raises:
        UndefinedMeasureError: where it is defined on none of them.
        ValueError: where a function gives something else.
    """
    if isinstance(measure, PlainFunction):
        return _own_mean(measure, queries, scores)
    values = query_values(measure, queries, scores, conventions)
    if np.isnan(values).all():
        read = Measure.of(measure)
        raise UndefinedMeasureError(why_undefined(read, queries.source(read.source), conventions))
    return float(np.nanmean(values))


def _own_mean(measure: PlainFunction, queries: Queries, scores: Floats) -> float:
    expected = f"a number, or one for each of the {queries.n_queries} queries"
    values = numbers_from(measure.name, measure(scores, queries), expected)
    if values.shape not in ((), (queries.n_queries,)):
        raise ValueError(f"{measure.name} gave an array of shape {values.shape}; expected {expected}")
    if np.isinf(values).any() or np.isnan(values).all():
        raise ValueError(f"{measure.name} gave {'infinity' if np.isinf(values).any() else 'NaN'}; expected {expected}, finite")
    return float(np.nanmean(values))


def query_values(measure: str, queries: Queries, scores: Floats, conventions: Conventions) -> Floats:
    """A measure of each query, ``float64 [queries]``; NaN where it is undefined."""
    labels = {"label": queries.labels, **queries.sources}
    key = Measure.of(measure).key
    return evaluate(labels, scores, queries.offsets, [measure], conventions, queries.position, queries.documents)[key]
