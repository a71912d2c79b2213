"""``unbiased: auto``: each way to take position bias out of clicks is trained, and none; validation queries say which is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import Kind, Unbiased
from ltr.rankers.base import Ranker
from ltr.rankers.fair_pages import are_pages, shown_on
from ltr.rankers.page_verdict import PageVerdict, unsupported
from ltr.rankers.training import query_values
from ltr.rankers.verdict import NAIVE, verdict

R = TypeVar("R", bound=Ranker)


@dataclass(frozen=True)
class Auto:
    """What a choice depends on beside the data.

    Attributes:
        how: an `Unbiased` of the kind ``auto``.
        terms, normalise, conventions: of the ranker's objective.
        measure: by which judged queries choose.
        kinds: ways that the ranker knows.
        most: the largest label that is learned from, 1 at least.
    """

    how: Unbiased
    terms: Sequence[Term]
    normalise: str
    conventions: Conventions
    measure: str
    kinds: Sequence[Kind]
    most: float = 1.0


def chosen_way(auto: Auto, valid: Queries | None, looks: Callable[[Unbiased], Floats], fit: Callable[[Unbiased | None], R]) -> R:
    """The ranker, fitted in the way that validation queries like best, which its first remark says: by judgments, or, where they are pages,
    by clicks.

    Args:
        looks: propensities of the pages that are learned from, as an `Unbiased` of the kind ``ipw`` says; ValueError where they cannot be known.
        fit: the ranker in a way, or with clicks as they are.

    Raises:
        ValueError: without validation queries.
    """
    if valid is None:
        raise ValueError("unbiased: auto chooses on validation queries, judged ones or pages, and there are none")
    judge, term = None, auto.terms[0]
    if are_pages(valid, auto.how, Measure.of(term.measure).source, auto.most):
        shown_on(valid, auto.how, term)
        try:
            judge = PageVerdict(valid, auto.how, term, looks(replace(auto.how, kind="ipw")))
        except ValueError as error:
            naive = fit(None)
            return replace(naive, remarks=(unsupported(str(error).removeprefix("unbiased: ")), *naive.remarks))
    ways: dict[str, Unbiased | None] = {NAIVE: None}
    ways |= {way.kind: way for way in auto.how.ways(auto.terms, auto.normalise, auto.kinds, looks)}
    fitted = {name: fit(way) for name, way in ways.items()}
    if judge is not None:
        found = judge.verdict({name: one.predict(judge.queries.features) for name, one in fitted.items()})
    else:
        values = {
            name: query_values(auto.measure, valid, one.predict(valid.features), auto.conventions) for name, one in fitted.items()
        }
        found = verdict(values, Measure.of(auto.measure).key)
    return replace(fitted[found.kept], remarks=(found.sentence, *fitted[found.kept].remarks))
