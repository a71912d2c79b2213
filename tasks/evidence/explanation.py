"""A model's numbers by the rules of another tool, and which rule moves them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import ltr
from ltr.data.queries import Queries
from ltr.metrics.evaluation import Shift, explain
from ltr.metrics.measure import why_undefined
from tasks.records import DataError
from tasks.training.scoring import scores_of


@dataclass(frozen=True)
class Explanation:
    """A measure's mean by our rules and by another tool's (the same where none is named), and what each rule moves; None and `why` where
    it is undefined on every query by ours."""

    measure: str
    value: float | None
    theirs: float | None
    shifts: tuple[Shift, ...] = ()
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def explained(
    model: ltr.Ranker, queries: Queries, measures: Sequence[str], conventions: ltr.Conventions, tool: str | None = None
) -> list[Explanation]:
    """Means of a model on a data set, each measure once; with `tool`, its number by that tool's rules and what each rule moves.

    Raises:
        DataError: where each measure is undefined on every query.
        ValueError: for an unknown tool or measure.
    """
    labels, scores = {"label": queries.labels, **queries.sources}, scores_of(model, queries)

    def mean(measure: ltr.Measure, rules: ltr.Conventions) -> float:
        values = ltr.evaluate(labels, scores, queries.offsets, [measure], rules, queries.position, queries.documents)[measure.key]
        return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")

    rows = []
    for measure in dict.fromkeys(map(ltr.Measure.of, measures)):
        value, shifts = explain(measure, conventions, tool, mean) if tool else (mean(measure, conventions), [])
        theirs = shifts[-1].value if shifts else value
        if np.isnan(value):
            why = why_undefined(measure, queries.source(measure.source), conventions)
            rows.append(Explanation(measure.key, None, None if np.isnan(theirs) else theirs, why=why))
        else:
            rows.append(Explanation(measure.key, value, theirs, tuple(shifts)))
    if all(row.theirs is None for row in rows):
        raise DataError(rows[0].why)
    return rows
