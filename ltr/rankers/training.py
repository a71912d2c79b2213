"""What trees and nets share while they train: the measure they watch, the curve they leave, the objective they were told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.queries import Queries
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import evaluate
from ltr.metrics.measure import Measure, why_undefined
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.preferences import PreferenceObjective, Preferences
from ltr.objectives.terms import Schedule, Term


@dataclass(frozen=True)
class Curve:
    """A measure along training, ``float64 [evaluations]`` each; NaN where it was not taken."""

    iteration: NDArray[np.int64]
    train: NDArray[np.float64]
    valid: NDArray[np.float64]


def mean_measure(measure: str, queries: Queries, scores: NDArray[np.float64], conventions: Conventions) -> float:
    """Mean of a measure over the queries where it is defined.

    Raises:
        ValueError: where it is defined on none of them.
    """
    values = query_values(measure, queries, scores, conventions)
    if np.isnan(values).all():
        read = Measure.of(measure)
        raise ValueError(why_undefined(read, queries.source(read.source), conventions))
    return float(np.nanmean(values))


def query_values(measure: str, queries: Queries, scores: NDArray[np.float64], conventions: Conventions) -> NDArray[np.float64]:
    """A measure of each query, ``float64 [queries]``; NaN where it is undefined."""
    labels = {"label": queries.labels, **queries.sources}
    key = Measure.of(measure).key
    return evaluate(labels, scores, queries.offsets, [measure], conventions, queries.position, queries.documents)[key]


def objective_of(model: Any, queries: Queries, preferences: Preferences | None) -> Any:
    """What a model learns from: its own objective over `queries`, or preferences between their rows."""
    if preferences is not None:
        return PreferenceObjective(queries, preferences, model.sigma)
    return Objective(queries, model.objective, model.conventions, model.sigma, model.normalise)


def written_objective(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Terms and conventions of a model's written parameters."""

    def term(written: Mapping[str, Any]) -> Term:
        weight = written["weight"]
        return Term(**{**written, "weight": Schedule(**weight) if isinstance(weight, Mapping) else weight})

    return {"objective": tuple(map(term, parameters["objective"])), "conventions": Conventions(**parameters["conventions"])}
