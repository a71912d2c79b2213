"""What an objective is made of: terms, each with a measure, a weight or a schedule of it, a pair cost and a construction.

Several label sources, graded objectives (Svore 2011 eq. 10) and schedules (eq. 12) are only lists of terms.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from ltr.data.arrays import plain_number
from ltr.data.named import Named
from ltr.data.queries import Queries
from ltr.kernels.kernel import Bools, Floats
from ltr.metrics.measure import Measure
from ltr.objectives.constructions import CONSTRUCTIONS
from ltr.objectives.pair_costs import COSTS

Written = Mapping[str, Any]
"""Plain values by name, as a model's file has them."""

WITHOUT_HESSIAN = {"sigmoid", "local_gradient", "discrete_bounded"}
"""Pair costs and constructions that give no hessian: trees take gradient leaves and least-squares gain with them."""


AUTO = "auto"
"""A pair cost that is not settled before the data are known."""
ROUNDING = 1e-9
"""By which weights may sum above 1."""
MOST_LOOKED_AT = 100_000
"""Iterations whose weights are added up beforehand; nobody trains more."""


@dataclass(frozen=True)
class Schedule(Named):
    """A weight that grows with the iteration, clipped to [0, 1] (S eq. 12 and section 6.2).

    Args:
        start: w_0.
        kind: ``linear``: w_m = w_{m−1} + η; ``exponential``: w_m = w_{m−1} + e^{−η/m}.
        eta: η.
    """

    start: float
    kind: Literal["linear", "exponential"]
    eta: float

    def __post_init__(self) -> None:
        for name in ("start", "eta"):
            object.__setattr__(self, name, _number_of(f"schedule {name}", getattr(self, name)))
        if self.kind not in ("linear", "exponential"):
            raise ValueError(f"schedule kind {self.kind!r} is not linear or exponential")
        if not 0 <= self.start <= 1:
            raise ValueError(f"schedule start {self.start:g} is outside [0, 1]")
        if not -700 <= self.eta <= 1e6:
            raise ValueError(f"schedule eta {self.eta:g} is outside [-700, 1e6]")

    def at(self, iteration: int) -> float:
        """Weight at an iteration, from 0."""
        return _path(self, 1 << iteration.bit_length())[iteration]

    def saturation(self, iterations: int) -> int | None:
        """The first of this many iterations from which on the weight stays at an end of [0, 1]: 1, or 0 where it falls; None if none."""
        end = 0.0 if self.kind == "linear" and self.eta < 0 else 1.0
        return next((m for m in range(iterations) if self.at(m) == end), None)


def _number_of(what: str, given: object) -> int | float:
    """A number as JSON can hold it."""
    number = plain_number(given)
    if not isinstance(number, int | float) or isinstance(number, bool):
        raise ValueError(f"{what} {given!r} is not a number")
    return number


@lru_cache(maxsize=64)
def _path(schedule: Schedule, iterations: int) -> list[float]:
    """The weight at each of the first iterations."""
    linear = schedule.kind == "linear"
    steps = (schedule.eta if linear else math.exp(-schedule.eta / m) for m in range(1, iterations))
    return [min(max(weight, 0.0), 1.0) for weight in accumulate(steps, initial=schedule.start)]


@dataclass(frozen=True)
class Term(Named):
    """One part of an objective.

    Args:
        measure: whose swap changes weight the pairs; it names its label source (``cndcg`` reads ``click``).
        weight: in [0, 1], or a schedule; None is what the other terms leave: 1 − Σ.
        pairs: ``all`` pairs of different gain, or ``same_label``: documents with a non-zero label of the measure's source and
            equal judged relevance (S section 4.2).
        cost: a name in `COSTS`; ``auto``: ``logistic``, but as `ltr.LambdaMART` says of large data.
        construction: a name in `CONSTRUCTIONS`.
    """

    measure: str | Measure = "ndcg"
    weight: float | Schedule | None = None
    pairs: Literal["all", "same_label"] = "all"
    cost: str = AUTO
    construction: str = "ranknet_weighted"

    def __post_init__(self) -> None:
        Measure.of(self.measure)
        for what, name, known in (("cost", self.cost, (AUTO, *COSTS)), ("construction", self.construction, tuple(CONSTRUCTIONS))):
            if name not in known:
                raise ValueError(f"unknown {what} {name!r}; choose from: {', '.join(known)}")
        if self.pairs not in ("all", "same_label"):
            raise ValueError(f"pairs {self.pairs!r} is not all or same_label")
        if self.weight is not None and not isinstance(self.weight, Schedule):
            object.__setattr__(self, "weight", _number_of("term weight", self.weight))
        if isinstance(self.weight, int | float) and not 0 <= self.weight <= 1:
            raise ValueError(f"term weight {self.weight} is outside [0, 1]")

    def __repr__(self) -> str:
        """What is not as it comes."""
        told = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default]
        return f"Term({', '.join(told)})"


def terms_of(given: "str | Measure | Term | Iterable[str | Measure | Term]", iterations: int = 1) -> tuple[Term, ...]:
    """The terms of an objective; a measure stands for a term of it.

    Raises:
        ValueError: for none, for what is neither a term nor a measure, and for weights that sum above 1 at one of so many iterations.

    >>> terms_of("map") == (Term("map"),)
    True
    """
    several: list[object] = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    terms = tuple(map(_term, several or [given]))
    scheduled = any(isinstance(term.weight, Schedule) for term in terms)
    for m in range(min(iterations, MOST_LOOKED_AT) if scheduled and len(terms) > 1 else 1):
        total = sum(w.at(m) if isinstance(w, Schedule) else w for w in (term.weight for term in terms) if w is not None)
        if total > 1 + ROUNDING:
            raise ValueError(
                f"objective: the weights of the terms sum to {total:.4g}{f' at iteration {m}' if scheduled else ''}; at most 1"
            )
    return terms


def settled(terms: Iterable[Term], cost: str = "logistic") -> tuple[Term, ...]:
    """The terms with this pair cost where theirs is `AUTO`."""
    return tuple(replace(term, cost=cost) if term.cost == AUTO else term for term in terms)


def _term(given: object) -> Term:
    if isinstance(given, Term):
        return given
    if not isinstance(given, str | Measure):
        raise ValueError(f"objective: {given!r} is not an ltr.Term or measure; give one or several, such as 'ndcg' or 'map'")
    return Term(str(given))


def terms_from(written: Sequence[Written]) -> tuple[Term, ...]:
    """The terms that plain values describe, as a model's file has them."""

    def term(one: Written) -> Term:
        weight = one["weight"]
        return Term(**{**one, "weight": Schedule(**weight) if isinstance(weight, Mapping) else weight})

    return tuple(map(term, written))


def saturations(terms: Sequence[Term], iterations: int) -> list[str]:
    """A sentence for each term whose scheduled weight stops moving within this many iterations."""
    found = [(term, term.weight.saturation(iterations)) for term in terms if isinstance(term.weight, Schedule)]
    return [
        f"the weight of {Measure.of(term.measure).key} is {term.weight.at(m):g} from iteration {m} on"
        for term, m in found
        if m is not None and isinstance(term.weight, Schedule)
    ]


def weights_at(terms: Sequence[Term], iteration: int) -> Floats:
    """Weight of each term at an iteration, ``float64 [terms]``; a term without a weight gets what the others leave."""
    given = [w.at(iteration) if isinstance(w, Schedule) else w for w in (term.weight for term in terms)]
    rest = max(1.0 - sum(w for w in given if w is not None), 0.0) / max(given.count(None), 1)
    return np.array([rest if w is None else w for w in given], np.float64)


def in_pairs(terms: Iterable[Term], queries: Queries) -> Bools:
    """Whether a document may be in a pair of some term, ``bool [documents]``: without a label of any term's it is in none."""
    groups = (pair_groups(term, queries.source(Measure.of(term.measure).source), queries.labels) for term in terms)
    found: Bools = np.logical_or.reduce([~np.isnan(own) for own in groups])
    return found


def pair_groups(term: Term, labels: Floats, judged: Floats) -> Floats:
    """Groups ``float64 [documents]``: pairs are formed of documents of equal group; NaN equals nothing and forms none."""
    if term.pairs == "same_label":
        return np.where(labels > 0, judged, np.nan)
    return np.where(np.isnan(labels), np.nan, 0.0)
