"""``search:`` of a ranker: the ranges that its parameters are drawn from, how many draws there are, and how soon a draw is given up.

Optuna suggests parameters inside of the function that trains (define by run); here a space stands in the configuration before anything is
trained, as in Optuna's ``ask(distributions)``, so that a bad one is told at once. `tasks.training.search` draws from it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from ltr.rankers.parameters import Span
from tasks.config.section import Strict

DIGITS = 4
"""To which drawn numbers are rounded: what people read and write is what is trained."""


class Dimension(Strict):
    """What one parameter may be: a range from `low` to `high`, or a `choice`.

    Attributes:
        log: every factor is as likely as its like: from 0.01 to 0.1 as often as from 0.1 to 1.
        whole: whole numbers only; a range of a parameter that is a whole number is so by itself.
        when: it is drawn only where an earlier choice of the space has one of these values, and stays as written elsewhere.
    """

    low: int | float | None = None
    high: int | float | None = None
    log: bool = False
    whole: bool = False
    choice: list[Any] | None = Field(None, min_length=2)
    when: dict[str, list[Any]] = {}

    @model_validator(mode="before")
    @classmethod
    def _short(cls, written: Any) -> Any:
        """A list is a choice; one value stands for a list of it in ``when``."""
        if isinstance(written, list):
            return {"choice": written}
        if isinstance(written, dict) and isinstance(written.get("when"), dict):
            when = {path: value if isinstance(value, list) else [value] for path, value in written["when"].items()}
            return {**written, "when": when}
        return written

    @model_validator(mode="after")
    def _check(self) -> "Dimension":
        if self.choice is not None:
            given = [name for name in ("low", "high", "log", "whole") if getattr(self, name) not in (None, False)]
            if given:
                raise ValueError(f"choice and {given[0]} exclude each other; give one")
            if any(one in self.choice[:k] for k, one in enumerate(self.choice)):
                raise ValueError(f"choice {self.choice} has a value twice")
            return self
        if self.low is None or self.high is None:
            raise ValueError("a range must have low and high; a choice must be a list of values")
        if not self.low < self.high:
            raise ValueError(f"low {self.low:g} must be below high {self.high:g}")
        if self.log and self.low <= 0:
            raise ValueError(f"low {self.low:g} with log: true; a logarithmic range must begin above 0")
        if self.whole and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise ValueError(f"{self.low:g} to {self.high:g} with whole: true; both ends must be whole numbers")
        return self

    @property
    def ends(self) -> list[Any]:
        """The values to try before anything is trained: both ends of the range, or every choice."""
        return list(self.choice) if self.choice is not None else [self.low, self.high]

    @property
    def bounds(self) -> tuple[float, float]:
        """Both ends of a range."""
        assert self.low is not None
        assert self.high is not None
        return float(self.low), float(self.high)

    def holds(self, value: Any) -> bool:
        """Whether a value may be drawn."""
        if self.choice is not None:
            return value in self.choice
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        low, high = self.bounds
        return low <= value <= high and (not self.whole or float(value).is_integer())

    def at_end(self, value: Any) -> str | None:
        """Where a drawn number lies within a fiftieth of the range from an end: ``smallest`` or ``largest``."""
        if self.choice is not None or not self.holds(value):
            return None
        share = self.position(value)
        return "smallest" if share <= 0.02 else "largest" if share >= 0.98 else None

    def position(self, value: Any) -> float:
        """Where a value lies between the ends, in [0, 1]; of a choice by its place in the list."""
        if self.choice is not None:
            return self.choice.index(value) / (len(self.choice) - 1)
        low, high = self.bounds
        return math.log(value / low) / math.log(high / low) if self.log else (value - low) / (high - low)


Space = dict[str, Dimension]
"""Dotted path of a parameter → what it may be, in the order in which they are drawn."""


def _auto(written: Any) -> Any:
    if isinstance(written, str) and written != "auto":
        raise ValueError(f"{written!r} is not a search; write auto, or a mapping of {', '.join(Search.model_fields)}")
    return {} if written == "auto" else written


class Search(Strict):
    """Parameters that are drawn, not listed. ``search: auto`` is all of that with the kind's own space.

    Attributes:
        space: empty: the kind's own.
        trials: draws on each fold; the first one is the ranker as written.
        batch: draws between two looks at what came out. Results depend on it, and not on how many work.
        sampler: ``tpe`` (tree-structured Parzen estimators), ``random``, or ``cmaes`` (ranges only).
        halving: of the draws that have been trained for so long, one in so many goes on, three times as long where it is 3; 0: all are
            trained to their end.
        rungs: lengths at which that is asked, the whole one among them.
        standard_errors: of the paired difference over validation queries, by which the best draw has to be better than the ranker as written to
            be chosen; otherwise that one is (Breiman et al. 1984, section 3.4.3). 0: the best is, however little better.
    """

    space: Space = {}
    trials: int = Field(27, ge=1, le=10_000)
    batch: int = Field(9, ge=1, le=1_000)
    sampler: Literal["tpe", "random", "cmaes"] = "tpe"
    halving: int = Field(3, ge=0, le=100)
    rungs: int = Field(3, ge=2, le=10)
    standard_errors: float = Field(1.0, ge=0, le=10)

    @model_validator(mode="after")
    def _check(self) -> "Search":
        if self.halving == 1:
            raise ValueError(
                "halving: 1 would keep every trial; use 0 to train all trials to the end, or 2 or more to keep one in so many"
            )
        seen: Space = {}
        for path, dimension in self.space.items():
            for parent, values in dimension.when.items():
                if parent not in seen or seen[parent].choice is None:
                    choices = [name for name, one in seen.items() if one.choice is not None]
                    raise ValueError(
                        f"space.{path}.when: {parent!r} must be a choice listed before it; choose from: {', '.join(choices) or 'none'}"
                    )
                for value in values:
                    if not seen[parent].holds(value):
                        raise ValueError(f"space.{path}.when: {parent} is never {value!r}; choose from: {seen[parent].choice}")
            seen[path] = dimension
        if self.space:
            self.require_drawn(self.space)
        return self

    def require_drawn(self, space: Space) -> None:
        """Raises ValueError where the sampler cannot draw from a space."""
        for path, dimension in space.items() if self.sampler == "cmaes" else ():
            if dimension.choice is not None or dimension.when:
                raise ValueError(f"space.{path}: cmaes draws numbers, and this is a choice or depends on one; use tpe or random")
        if self.sampler == "cmaes" and len(space) == 1:
            raise ValueError("sampler: cmaes needs two or more parameters; use tpe or random")

    def lengths(self, whole: int) -> list[int]:
        """After how many iterations of `whole` it is asked who goes on, the last of them `whole`."""
        if not self.halving:
            return [whole]
        return sorted({max(1, round(whole / self.halving**k)) for k in range(self.rungs)})


MaybeSearch = Annotated[Search | None, BeforeValidator(_auto)]
"""A search, ``auto``, or none."""


def typed(space: Space, spans: Mapping[str, Span]) -> Space:
    """The space with every range's kind of number known: whole ones where the parameter takes nothing else.

    Raises:
        ValueError: for ends that are not whole numbers, of a parameter that is.
    """
    made = {}
    for path, dimension in space.items():
        if path in spans and spans[path].whole and dimension.choice is None:
            try:
                made[path] = Dimension(**{**dimension.model_dump(exclude_unset=True), "whole": True})
            except ValueError:
                raise ValueError(f"search.space.{path}: {dimension.low:g} to {dimension.high:g}; {path} is {spans[path]}") from None
        else:
            made[path] = dimension
    return made


def _log(low: float, high: float, **more: Any) -> Mapping[str, Any]:
    return {"low": low, "high": high, "log": True, **more}


def _trees(written: Mapping[str, Any]) -> Mapping[str, Any]:
    costs = ["logistic", "logistic_near"]
    first, *more = written["objective"]
    plain = not more and first["cost"] in costs and first["construction"] == "ranknet_weighted"
    return {
        "learning_rate": _log(0.02, 0.3),
        "n_leaves": _log(4, 64),
        "min_docs_in_leaf": _log(5, 200),
        "query_share": {"low": 0.5, "high": 1.0},
        "feature_share": {"low": 0.3, "high": 1.0},
        **({"objective.0.cost": costs} if plain else {}),
    }


def _nets(written: Mapping[str, Any]) -> Mapping[str, Any]:
    units = {"hidden": _log(2, 40)} if written["hidden"] else {}
    return {
        "learning_rate": _log(1e-4, 0.03),
        **units,
        "normalise": ["none", "query"],
        "shrink_probability": {"low": 0.0, "high": 1.0},
    }


def _weighed(written: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"C": _log(written["C"] / 1000, written["C"] * 1000)}


SPACES: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "lambdamart": _trees,
    "lambdarank": _nets,
    "ranksvm": _weighed,
    "svmmap": _weighed,
    "conditional": _weighed,
    "listwise": _weighed,
    "least_squares": lambda _: {"ridge": _log(0.001, 10_000)},
}
"""The space of each kind that has one of its own, from its parameters as they are written."""


def space_of(kind: str, written: Mapping[str, Any], search: Search, spans: Mapping[str, Span]) -> Space:
    """The space of a search, or the kind's own where it has none.

    Raises:
        ValueError: for a kind without a space of its own.
    """
    if search.space:
        return typed(search.space, spans)
    if kind not in SPACES:
        raise ValueError(f"search: {kind} has no space of its own; write search.space")
    return typed({path: Dimension.model_validate(one) for path, one in SPACES[kind](written).items()}, spans)
