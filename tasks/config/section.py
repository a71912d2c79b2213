"""What all parts of a configuration share: strict pydantic models, sections made of the core's dataclasses, and near misses of a key."""

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

import ltr


class Strict(BaseModel):
    """A part of a configuration: frozen, unknown keys refused, numbers finite, of at most 64 bits, and not true or false."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, written: Any) -> Any:
        """pydantic takes true for 1."""
        for name, given in written.items() if isinstance(written, Mapping) else ():
            inner = given.values() if isinstance(given, Mapping) else given if isinstance(given, list | tuple) else [given]
            if not any(isinstance(one, bool) for one in inner):
                continue  # what a field takes is asked of few values: a run may have thousands of points, and a point dozens of fields
            taken = _types(cls.model_fields[name].annotation) if name in cls.model_fields else {Any}
            if taken & {int, float} and not taken & {bool, Any}:
                raise ValueError(f"{name}: true and false are not numbers")
        return written

    @model_validator(mode="after")
    def _of_64_bits(self) -> Self:
        """Prefect's server fails at larger whole numbers, in every list of runs that has the one with it."""
        for name, given in vars(self).items():
            for one in given if isinstance(given, tuple) else (given,):
                if isinstance(one, int) and abs(one) >= 1 << 63:
                    raise ValueError(f"{name}: a whole number has at most 64 bits")
        return self


def _types(annotation: Any) -> set[Any]:
    """All types that are named in one."""
    if get_origin(annotation) is Literal:
        return {type(value) for value in get_args(annotation)}
    return set().union(*map(_types, get_args(annotation))) or {annotation}


class Section(Strict):
    """The configuration form of a dataclass of the core: the same parameters and defaults, unknown keys refused."""

    core: ClassVar[type]

    def build(self) -> Any:
        """The core's object; the core's own checks raise ValueError."""
        return self.core(**{f.name: _built(getattr(self, f.name)) for f in fields(self.core) if f.name in type(self).model_fields})

    @model_validator(mode="after")
    def _check(self) -> "Section":
        self.build()
        return self


def _built(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_built(item) for item in value)
    return value.build() if isinstance(value, Section) else value


def parameters_from(core: type, leave_out: frozenset[str] = frozenset()) -> dict[str, FieldInfo]:
    """The fields of a dataclass but those left out, as fields of a section: the same types and defaults."""
    hints, found = get_type_hints(core), {}
    for f in fields(core):
        default = f.default if f.default_factory is MISSING else f.default_factory()
        if f.name not in leave_out:
            hint = hints[f.name]
            found[f.name] = (
                FieldInfo.from_annotation(hint) if default is MISSING else FieldInfo.from_annotated_attribute(hint, default)
            )
    return found


def add_fields(section: type[BaseModel], added: Mapping[str, FieldInfo], first: bool = False) -> None:
    """Adds fields to a model that stands already, behind its own or before them; its own fields of the same names stay."""
    own = section.__pydantic_fields__
    new = {name: field for name, field in added.items() if name not in own}
    section.__pydantic_fields__ = {**new, **own} if first else {**own, **new}
    section.model_rebuild(force=True)


def several(written: Any) -> Any:
    """A list, also where one text stands for it."""
    return [written] if isinstance(written, str) else written


Measures = Annotated[list[str], BeforeValidator(several)]
"""Names of measures, or one of them."""
Grid = dict[str, Annotated[list[Any], Field(min_length=1)]]
"""Dotted path of a parameter → its values."""


_MULTIPLE = re.compile(r"x(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?")
"""A number times the parameter's own."""

Written = dict[str, Any]
"""A section's parameters as plain values, on their way between a file and the section."""


class EvidenceSection(Strict):
    """What a run is asked to find out about its rankers beside their means: a certificate, a guarantee, segments of queries, ….

    The configuration's part of it, of which each kind of evidence (`tasks.evidence`) is a subclass with what it gathers and shows.

    Attributes:
        key: its name in a configuration.
    """

    key: ClassVar[str]

    def check(self, config: Any) -> None:
        """Checks the section against the rest of a `tasks.config.run_config.RunConfig`.

        Raises:
            ValueError: naming the key, the value and the rule.
        """

    def measures(self) -> list[str]:
        """Measures that it reads, to be taken of every cell."""
        return []

    def decisive(self) -> list[str]:
        """Measures that it cannot do without on any set of queries."""
        return []

    def adapt(self, config: Any, ranker: str, written: Written) -> None:
        """Changes a ranker's parameters, as they are written, so that what it needs is kept while the ranker is trained."""


def _models(base: type[BaseModel] = Strict) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def near(key: str) -> str:
    """What may have been meant by an unknown key: our name of what LightGBM and others call so, a known one that it begins with, or that
    begins with it; otherwise the likest, and another that is nearly as like."""
    vocabulary = sorted({name for model in _models() for name in model.model_fields} - {key})
    theirs = {name: ours for kind in ltr.KINDS.values() for name, ours in getattr(kind, "elsewhere", {}).items()}
    if theirs.get(key) in vocabulary:
        return f"; did you mean {theirs[key]}?"
    begun = [name for name in vocabulary if min(len(name), len(key)) >= 5 and (name.startswith(key) or key.startswith(name))]
    if begun:
        return f"; did you mean {max(begun, key=len) if key.startswith(begun[0]) else begun[0]}?"
    found = difflib.get_close_matches(str(key), vocabulary, n=2, cutoff=0.7)
    likeness = [difflib.SequenceMatcher(None, str(key), name).ratio() for name in found]
    found = [name for name, ratio in zip(found, likeness, strict=True) if ratio > likeness[0] - 0.1]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def _paths(written: Any, before: str = "") -> Iterator[str]:
    """Dotted paths of all that a written section holds."""
    for key, value in written.items() if isinstance(written, dict) else enumerate(written) if isinstance(written, list) else ():
        yield f"{before}{key}"
        yield from _paths(value, f"{before}{key}.")


def near_path(key: str, written: Written, before: str = "") -> str:
    """Which parameter of a written section may have been meant, by its dotted path: ``cost`` is one of an objective's term. Where none is
    like it, `near`."""
    places = {path.rpartition(".")[2]: f"{before}{path}" for path in reversed([*_paths(written)])}
    found = difflib.get_close_matches(key, places, n=1, cutoff=0.7)
    return f"; did you mean {places[found[0]]}?" if found else near(key)


def has(section: BaseModel, path: str) -> bool:
    """Whether a section has the parameter that a dotted path begins with."""
    return path.split(".")[0] in type(section).model_fields


def at(written: Any, path: str) -> Any:
    """The value at a dotted path (``objective.1.weight``) of a written section, which has it."""
    for key in path.split("."):
        written = written[int(key) if isinstance(written, list) else key]
    return written


def number_at(written: Any, path: str) -> float | None:
    """The number at a dotted path; None where there is none."""
    try:
        found = at(written, path)
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    return None if isinstance(found, bool) or not isinstance(found, int | float) else found


def multiplied(value: Any, written: Any, path: str) -> Any:
    """A swept value; ``x0.5`` is half of the parameter's own number, rounded to a whole one where that is whole.

    Raises:
        ValueError: for a multiple of what is no number, and one beyond all numbers.
    """
    if not (isinstance(value, str) and _MULTIPLE.fullmatch(value)):
        return value
    own = number_at(written, path)
    if own is None:
        raise ValueError(f"sweep.{path}: {value} is a multiple of the parameter's own number, and it has none")
    if not math.isfinite(own * float(value[1:])):
        raise ValueError(f"sweep.{path}: {value} is beyond any number")
    return max(round(own * float(value[1:])), min(own, 1)) if isinstance(own, int) else float(f"{own * float(value[1:]):.6g}")


def put(written: Any, path: str, value: Any, where: str) -> None:
    """Sets the field at a dotted path (``objective.1.weight``) of a written section.

    Raises:
        ValueError: for a path that is not there, named with `where`.
    """
    at, name, keys = written, where.rpartition(".")[0], path.split(".")
    for depth, key in enumerate(keys, 1):
        if isinstance(at, list) and not (key.isdigit() and int(key) < len(at)):
            raise ValueError(f"{where}.{path}: there is no {name}.{key}; {name} has {len(at)}, counted from 0")
        if not isinstance(at, list) and not (isinstance(at, dict) and key in at):
            if not isinstance(at, dict):
                raise ValueError(f"{where}.{path}: {name} is {json.dumps(at)}")
            likely = near_path(key, at, "".join(f"{above}." for above in keys[: depth - 1]))
            raise ValueError(f"{where}.{path}: there is no such parameter{likely}")
        place: Any = int(key) if isinstance(at, list) else key
        if depth == len(keys):
            at[place] = value
        at, name = at[place], f"{name}.{key}"
