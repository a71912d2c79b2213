"""A section for every kind of ranker, made of the core's own parameters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, create_model, model_validator

import ltr
from ltr.diagnostics.optimality import n_directions
from ltr.rankers.base import parameters_of
from tasks.config.search_section import Dimension, MaybeSearch, Search, Space, space_of
from tasks.config.section import Grid, Section, Strict, add_fields, at, parameters_from, put, several


class Conventions(Section):
    """The label rules of a run; see `ltr.Conventions`."""

    core: ClassVar[type] = ltr.Conventions


class Schedule(Section):
    """A weight that grows with the iteration; see `ltr.Schedule`."""

    core: ClassVar[type] = ltr.Schedule


class Term(Section):
    """One part of an objective; see `ltr.Term`."""

    core: ClassVar[type] = ltr.Term
    measure: str = "ndcg"
    weight: Annotated[float, Field(ge=0, le=1)] | Schedule | None = None


class Unbiased(Section):
    """How position bias is taken out of clicks; see `ltr.Unbiased`."""

    core: ClassVar[type] = ltr.Unbiased


def _of_kind(written: Any) -> Any:
    return {"kind": written} if isinstance(written, str) else written


MaybeUnbiased = Annotated[Unbiased | None, BeforeValidator(_of_kind)]
"""A kind's name stands for it as it comes."""


def _terms(written: Any) -> Any:
    terms = several(written)
    return [{"measure": one} if isinstance(one, str) else one for one in terms] if isinstance(terms, list | tuple) else terms


Terms = Annotated[tuple[Term, ...], BeforeValidator(_terms)]
"""An objective; a measure's name stands for a term of it."""
Stopping = str | tuple[str, ...] | None
"""Measures that training may be stopped by, without the functions that only Python can name."""

for _section in (Conventions, Schedule, Term, Unbiased):
    add_fields(_section, parameters_from(_section.core), first=True)


class Polish(Strict):
    """Climbing on from the trained weights to a local optimum of `measure`, by default the one that selects (`ltr.polish`), in at most so
    many `steps`; validation queries say whether the place is better than where training ended. ``polish: true`` is all of that.
    """

    measure: str | None = None
    steps: int = Field(1000, ge=1)
    epsilon: float = Field(0.01, gt=0, lt=1)
    delta: float = Field(0.01, gt=0, lt=1)

    @model_validator(mode="before")
    @classmethod
    def _true_is_enough(cls, written: Any) -> Any:
        return {} if written is True else written

    @model_validator(mode="after")
    def _check(self) -> "Polish":
        if self.measure:
            ltr.Measure.maximised(self.measure)
        n_directions(self.epsilon, self.delta)
        return self


MOST_CELLS = 1000
"""Of one ranker, whose scores another one learns from."""


def inputs(on: Sequence[str], best: int) -> tuple[str, ...]:
    """The features of a ranker on the scores of others: a name for each one's best cell, and for its second best, and so on."""
    return tuple(base if place == 1 else f"{base} {place}" for base in on for place in range(1, best + 1))


class RankerSection(Section):
    """A ranker: its model's own parameters, the share of the training queries it sees, whether it is polished, what is swept or searched,
    and the measure that selects where that is not the run's.

    `on` names other rankers: then the features are their chosen models' scores, or those of the `best` so many of each. It learns from one
    half of the validation queries, which those models were not fitted to, and is chosen on the other.
    """

    core: ClassVar[type[ltr.Ranker]]
    kind: str
    train_share: float = Field(1.0, gt=0, le=1)
    polish: Polish | None = None
    sweep: Grid = {}
    search: MaybeSearch = None
    select: str | None = None
    on: tuple[str, ...] = ()
    best: int = Field(1, ge=1, le=MOST_CELLS)

    @model_validator(mode="before")
    @classmethod
    def _an_average_is_of_all(cls, written: Any) -> Any:
        """What averages the scores of others averages all of them, unless it says which."""
        if "of" not in cls.model_fields or not isinstance(written, Mapping) or "of" in written:
            return written
        on, best = written.get("on"), written.get("best", 1)
        if not isinstance(on, list | tuple) or not isinstance(best, int) or best > MOST_CELLS:
            return written
        return {**written, "of": [{"kind": "column", "feature": name} for name in inputs(on, best)]}

    @property
    def inputs(self) -> tuple[str, ...]:
        """Of a ranker on the scores of others its features, by name."""
        return inputs(self.on, self.best)

    @model_validator(mode="after")
    def _check_best(self) -> "RankerSection":
        if self.best > 1 and not self.on:
            raise ValueError("best: it counts cells of each ranker that `on` names, and there is no `on`")
        if self.best > 1 and self.core.n_inputs is not None:
            raise ValueError(f"best: a {self.kind} mixes two rankers, the best cell of each")
        return self

    @model_validator(mode="after")
    def _check_polish(self) -> "RankerSection":
        if self.polish and (why := self.build().why_fixed):
            raise ValueError(f"polish: {self.kind}: {why}")
        return self

    @model_validator(mode="after")
    def _check_search(self) -> "RankerSection":
        """Every end of every range and every choice is tried on the parameters, before anything is trained."""
        if self.search is None:
            return self
        for given, key in ((self.sweep, "sweep"), (self.on, "on")):
            if given:
                raise ValueError(f"search: a ranker with {key} cannot be searched")
        self._check_halving(self.search)
        space = self.space
        try:
            self.search.require_drawn(space)
        except ValueError as error:
            raise ValueError(f"search.{error} (the default space of {self.kind}; set search.space to change it)") from None
        for path, dimension in self.space.items():
            when = {parent: values[0] for parent, values in dimension.when.items()}
            for value in dimension.ends:
                written = self.written()
                for place, one in {**when, path: value}.items():
                    put(written, place, one, "search.space")
                try:
                    type(self).model_validate(written)
                except ValidationError as error:
                    fault = error.errors()[0]
                    raise ValueError(f"search.space.{path}: {fault.get('ctx', {}).get('error') or fault['msg'].lower()}") from None
        return self

    def _check_halving(self, search: Search) -> None:
        counted = self.core.iterations_from
        if not search.halving:
            return
        if counted in search.space:
            raise ValueError(
                f"search.space.{counted}: halving decides how long a trial is trained; remove search.space.{counted}, or set halving: 0"
            )
        if "halving" in search.model_fields_set and self.whole_length is None:
            why = "it is polished" if self._may_be_polished else "it does not learn step by step"
            raise ValueError(f"search.halving: {self.kind} cannot go on from where it was, as {why}; set halving: 0")

    @property
    def _may_be_polished(self) -> bool:
        return bool(self.polish) or any(path.split(".")[0] == "polish" for path in (self.search.space if self.search else ()))

    @property
    def whole_length(self) -> int | None:
        """Iterations of a whole training, where a shorter one can go on; None where it cannot."""
        if self.core.iterations_from is None or not self.core.stepwise or self._may_be_polished:
            return None
        return int(getattr(self, self.core.iterations_from))

    @property
    def space(self) -> Space:
        """What is drawn in its search, in that order."""
        if not self.search:
            return {}
        found = space_of(self.kind, self.written(), self.search, self.core.spans)
        return {path: self._with_its_numbers(path, dimension) for path, dimension in found.items()}

    def _with_its_numbers(self, path: str, dimension: Dimension) -> Dimension:
        """A range of whole numbers where what lies deeper in a parameter takes nothing else."""
        low, high = dimension.low, dimension.high
        if (
            "." not in path
            or dimension.whole
            or low is None
            or high is None
            or not (float(low).is_integer() and float(high).is_integer())
        ):
            return dimension
        written = self.written()
        for parent, values in dimension.when.items():
            put(written, parent, values[0], "search.space")
        taken = []
        for value in (int(low), low + (high - low) / math.e):
            put(written, path, value, "search.space")
            try:
                taken.append(bool(type(self).model_validate(written)))
            except ValidationError:
                taken.append(False)
        whole = {"low": int(low), "high": int(high), "whole": True}
        return dimension.model_copy(update=whole) if taken == [True, False] else dimension

    @property
    def settings(self) -> dict[str, Any]:
        """What the parameters of the space are as they are written, but those left to the data (None)."""
        found: dict[str, Any] = {}
        for path, dimension in self.space.items():
            if all(parent in found and found[parent] in values for parent, values in dimension.when.items()):
                found[path] = at(self.written(), path)
        return {path: value for path, value in found.items() if value is not None}

    def written(self) -> dict[str, Any]:
        """The parameters as plain values, without what is swept, searched and selected by."""
        return self.model_dump(mode="json", exclude={"sweep", "search", "select"})

    def model(self, conventions: ltr.Conventions) -> ltr.Ranker:
        """The unfitted ranker."""
        ranker: ltr.Ranker = self.build()
        return replace(ranker, conventions=conventions)


def ranker_section(core: type[ltr.Ranker]) -> type[RankerSection]:
    """The section of a kind of ranker: its parameters but the conventions, which are the run's."""
    given = set(parameters_of(core)) - {"conventions"}
    own: dict[str, Any] = {"kind": (Literal.__getitem__(core.kind), ...)}
    if "objective" in given:
        own["objective"] = (Terms, (Term(),))
    if issubclass(core, ltr.LambdaMART):
        own |= {
            "stop_on": (Stopping, "ndcg_10"),
            "interactions": (tuple[tuple[str, ...], ...], ()),
            "categorical": (tuple[str, ...], ()),
        }
    if "unbiased" in given:
        own["unbiased"] = (MaybeUnbiased, None)
    if "of" in given:
        members: Any = tuple.__class_getitem__((any_ranker(), ...))
        own["of"] = (Annotated[members, BeforeValidator(_one_or_several), AfterValidator(_only_parameters)], ...)
    made = create_model(f"{core.__name__}Section", __base__=RankerSection, __doc__=core.__doc__, **own)
    made.core = core
    add_fields(made, parameters_from(core, frozenset(f.name for f in fields(core)) - given))
    return made


def _one_or_several(written: Any) -> Any:
    return [written] if isinstance(written, Mapping) else written


def _only_parameters(members: tuple[RankerSection, ...]) -> tuple[RankerSection, ...]:
    """Refuses keys that say how a ranker is trained and chosen in a run: those of the whole hold for its members."""
    for member in members:
        own = {name: field.default for name, field in RankerSection.model_fields.items() if name != "kind"}
        told = [name for name, default in own.items() if getattr(member, name) != default]
        if told:
            raise ValueError(
                f"{told[0]} of a {member.kind}: it belongs beside `of`, not into it (a sweep names of.0.learning_rate)"
            )
    return members


SECTIONS: dict[str, type[RankerSection]] = {}
"""The section of each kind of ranker."""


def any_ranker() -> Any:
    """The type of a ranker in a configuration: the sections of all kinds, told apart by ``kind``."""
    return Annotated[reduce(or_, SECTIONS.values()), Field(discriminator="kind")]


def read_ranker(written: Mapping[str, Any]) -> RankerSection:
    """The section of a ranker's written parameters, with its kind.

    Raises:
        ValueError: for a kind that was registered from outside, elsewhere only.
    """
    if (kind := str(written["kind"])) not in SECTIONS:
        raise ValueError(
            f"the process that trains it knows no kind of ranker {kind!r}; the file that registers it is to be imported there too"
        )
    return SECTIONS[kind](**written)


def read_conventions(written: Mapping[str, Any]) -> ltr.Conventions:
    """The core's label rules of written ones."""
    built: ltr.Conventions = Conventions(**written).build()
    return built


for _kind, _core in ltr.KINDS.items():
    SECTIONS[_kind] = ranker_section(_core)
