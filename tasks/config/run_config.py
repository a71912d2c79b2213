"""The configuration of a run, and of a study: the only schema, for YAML files, ``--set`` on the command line and Prefect's form.

A configuration file is a short difference from good defaults; a user's first one names data files and nothing else. Rankers and kinds of
evidence are registered: those of the house when `tasks.evidence` is imported, others by `register_ranker` and `register_evidence`.
"""

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

import ltr
from ltr.rankers.fair_pages import ways_of
from tasks.config.data_section import Data
from tasks.config.ranker_section import SECTIONS, Conventions, RankerSection, any_ranker, ranker_section
from tasks.config.section import EvidenceSection, Grid, Measures, Strict, add_fields, has, multiplied, near_path, number_at, put
from tasks.records import Failure

MOST_CELLS = 10_000
"""Of one fold in one run."""
APART = 10
"""How many times larger one ranker's own number may be than another's with which it shares a sweep."""


def _seconds(written: Any) -> Any:
    """``90``, ``90s``, ``10m``, ``1.5h`` and ``1h30m`` as seconds; anything else as it is, for the schema to refuse."""
    if not isinstance(written, str):
        return written
    parts = re.fullmatch(r"(?:([\d.]+)h)?(?:([\d.]+)m)?(?:([\d.]+)s)?", written.strip())
    try:
        found = [float(part or 0) for part in parts.groups()] if parts and written.strip() else []
    except ValueError:
        found = []
    if not found:
        raise ValueError(f"{written!r} is not a time; write it as 90s, 10m or 1h30m")
    return found[0] * 3600 + found[1] * 60 + found[2]


Budget = Annotated[Annotated[float, Field(gt=0)] | None, BeforeValidator(_seconds)]
"""Seconds; hours, minutes and seconds are understood."""


class Expect(Strict):
    """Numbers that must come out, or the run fails: ``{ranker: {test_ndcg_10: 0.41}}``."""

    tolerance: float = Field(0.0001, gt=0)
    values: dict[str, dict[str, float]]


def _default_rankers() -> dict[str, RankerSection]:
    return {"lambdamart": SECTIONS["lambdamart"](kind="lambdamart"), "linear": SECTIONS["lambdarank"](kind="lambdarank")}


def _searched_rankers() -> dict[str, dict[str, Any]]:
    """``rankers: auto``: three that are searched, and the average of what is chosen of each, by weights that half of the validation
    queries find: a net may be far behind trees, and the other way round."""
    searched: dict[str, dict[str, Any]] = {
        "trees": {"kind": "lambdamart", "search": "auto"},
        "linear": {"kind": "lambdarank", "search": "auto"},
        "net": {"kind": "lambdarank", "hidden": 10, "search": "auto"},
    }
    columns = [{"kind": "column", "feature": name} for name in searched]
    return {**searched, "average": {"kind": "average", "on": list(searched), "of": columns, "selection": 8}}


NOT_SWEPT = frozenset({"kind", "sweep", "search", "select", "on", "best"})
"""What a section has beside parameters of its ranker."""


def _counted(written: Any) -> tuple[str, int]:
    """The parameter of a written section that counts its iterations, and how many there are; an empty name where there is none, or what is set there is
    no whole number, which the schema refuses."""
    kind = written.get("kind") if isinstance(written, Mapping) else None
    name = SECTIONS[kind].core.iterations_from if isinstance(kind, str) and kind in SECTIONS else None
    value = written.get(name, SECTIONS[str(kind)].model_fields[name].default) if name else None
    if not name or isinstance(value, bool) or not isinstance(value, int | float) or not float(value).is_integer():
        return "", 0
    return name, int(value)


@dataclass(frozen=True)
class GridPoint:
    """A point of a ranker's grid: what was set, by dotted path, and the section with it set."""

    settings: Mapping[str, Any]
    section: RankerSection


class RunConfig(Strict):
    """One run: data, rankers and what is swept, measured, tested and certified.

    `scale` is the share of the queries that is used, `length` the share of its trees or epochs that every ranker trains; what is cut is
    told beside the numbers. `budget` is the time for everything that is searched, in seconds; ``rankers: auto`` searches trees, a linear net
    and a net of two layers, and averages them.
    """

    name: str = "run"
    data: Data
    rankers: dict[str, RankerSection] = Field(default_factory=_default_rankers, min_length=1)
    sweep: Grid = {}
    select: str = "ndcg_10"
    measures: Measures = Field(["ndcg_1", "ndcg_3", "ndcg_5", "ndcg_10", "map", "mrr"], min_length=1)
    conventions: Conventions = Conventions()
    budget: Budget = None
    plot_by: str | None = None
    expect: Expect | None = None
    seed: int = Field(1, ge=0, lt=1 << 63)
    scale: float = Field(1.0, gt=0, le=1)
    length: float = Field(1.0, gt=0, le=1)
    workers: int = Field(1, ge=1)
    parts: int = Field(1, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _false_is_none(cls, written: Any) -> Any:
        """``refit: false`` asks for no refit, as leaving it out does; so of every kind of evidence."""
        if not isinstance(written, dict):
            return written
        return {key: value for key, value in written.items() if not (key in EVIDENCE and value is False)}

    @model_validator(mode="before")
    @classmethod
    def _auto(cls, written: Any) -> Any:
        return (
            {**written, "rankers": _searched_rankers()}
            if isinstance(written, dict) and written.get("rankers") == "auto"
            else written
        )

    @model_validator(mode="after")
    def _check(self) -> "RunConfig":
        for what, name in [("name", self.name), *(("ranker name", name) for name in self.rankers)]:
            if not re.fullmatch(r"[A-Za-z0-9_ -][A-Za-z0-9_. -]{0,99}", name):
                raise ValueError(
                    f"{what} {name!r}: must be 1 to 100 letters, digits, '_', '-', '.' and spaces, and not begin with '.'"
                )
        for measure in self.measures:
            ltr.Measure.of(measure)
        for measure in self.selecting:
            ltr.Measure.maximised(measure)
        self._check_sweep()
        self._check_search()
        self._check_stacks()
        for section in self.evidence:
            section.check(self)
        self._check_expected()
        self._check_cells()
        self._check_shared()
        return self

    def _check_cells(self) -> None:
        sizes = {name: math.prod(len(values) for values in self.grid(name).values()) for name in self.rankers}
        sizes |= {name: search.trials for name in self.searched if (search := self.rankers[name].search)}
        if sum(sizes.values()) > MOST_CELLS:
            shown = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
            raise ValueError(
                f"sweep: {sum(sizes.values()):,} cells per fold ({shown}); at most {MOST_CELLS:,} are trained in one run"
            )
        for name in self.rankers:
            self.cells(name)

    def _check_sweep(self) -> None:
        if self.plot_by and not any(self.plot_by in {**self.sweep, **ranker.sweep} for ranker in self.rankers.values()):
            raise ValueError(f"plot_by: {self.plot_by!r} is not swept")
        for ranker, swept in (("", self.sweep), *((f"rankers.{name}.", ranker.sweep) for name, ranker in self.rankers.items())):
            for path in swept:
                if path.split(".")[0] in NOT_SWEPT:
                    raise ValueError(
                        f"{ranker}sweep.{path}: {path.split('.')[0]} cannot be swept; define a separate ranker for each value"
                    )
        for path in self.sweep:
            if not any(has(ranker, path) for ranker in self.rankers.values()):
                key, written = path.split(".")[0], {k: v for ranker in self.rankers.values() for k, v in ranker.written().items()}
                raise ValueError(f"sweep.{path}: no ranker has a parameter {key!r}{near_path(key, written)}")
            if all(ranker.search for ranker in self.rankers.values() if has(ranker, path)):
                raise ValueError(
                    f"sweep.{path}: every ranker that has it is searched, and a search takes no values of a sweep; set "
                    f"rankers.NAME.search.space.{path}"
                )

    def _check_shared(self) -> None:
        """Refuses numbers that rankers share whose own are of other sizes: a rate for trees leaves a net in ruins."""
        for path, values in self.sweep.items():
            numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
            sharing = [
                name
                for name, ranker in self.rankers.items()
                if has(ranker, path) and path not in ranker.sweep and not ranker.search
            ]
            own = {name: number_at(self.rankers[name].written(), path) for name in sharing}
            sized = {name: value for name, value in own.items() if value}
            if not numbers or not sized:
                continue
            least, most = min(sized, key=lambda name: sized[name]), max(sized, key=lambda name: sized[name])
            if sized[most] > APART * sized[least]:
                raise ValueError(
                    f"sweep.{path}: {most} has {sized[most]:g} and {least} {sized[least]:g}, and no number suits both; sweep multiples of "
                    f"each one's own ([x0.5, x1, x2]), or give each ranker a sweep"
                )

    def _check_search(self) -> None:
        if self.budget is not None and not self.searched:
            raise ValueError(
                f"budget: {self.budget:g} s is set but no ranker is searched; set search: auto in a ranker, or rankers: auto"
            )
        for name in self.expect.values if self.expect else ():
            if name in self.searched:
                raise ValueError(f"expect.values: {name} is searched, so its values may vary; use a ranker with fixed parameters")

    def _check_stacks(self) -> None:
        for name, ranker in self.rankers.items():
            for base in ranker.on:
                if base not in self.rankers or self.rankers[base].on:
                    bases = [other for other, section in self.rankers.items() if not section.on]
                    raise ValueError(
                        f"rankers.{name}.on: {base!r} is not a ranker on the data's own features; choose from: {', '.join(bases)}"
                    )
                search = self.rankers[base].search
                there = search.trials if search else len(self.cells(base))
                if ranker.best > there:
                    raise ValueError(f"rankers.{name}.best: {ranker.best} cells of {base}, which has {there}")
            if len(set(ranker.inputs)) < len(ranker.inputs):
                raise ValueError(
                    f"rankers.{name}.on: two of the scores would have the same name; rename the rankers, and list each once"
                )
            if ranker.core.n_inputs is not None and len(ranker.on) not in (0, ranker.core.n_inputs):
                raise ValueError(f"rankers.{name}.on: a {ranker.kind} mixes two rankers")

    def _check_expected(self) -> None:
        reported = [f"test_{ltr.Measure.of(measure).key}" for measure in self.measures]
        for name, values in self.expect.values.items() if self.expect else ():
            self.require_ranker("expect.values", name)
            for metric in values:
                if metric not in reported:
                    raise ValueError(f"expect.values.{name}: {metric!r} is not reported; choose from: {', '.join(reported)}")

    def require_ranker(self, key: str, *names: str) -> None:
        """Raises ValueError, naming the key, where a name is no ranker's."""
        for name in names:
            if name not in self.rankers:
                raise ValueError(f"{key}: no ranker {name!r}; choose from: {', '.join(self.rankers)}")

    def without(self, rankers: Sequence[str]) -> tuple["RunConfig", tuple[Failure, ...]]:
        """The run as it is without some rankers, and what else has to go: rankers on their scores, evidence about them."""
        gone = {**dict.fromkeys(rankers, ""), **{n: base for n, r in self.rankers.items() for base in r.on if base in rankers}}
        left = self.model_copy(update={"rankers": {name: ranker for name, ranker in self.rankers.items() if name not in gone}})
        lost = [Failure(name, f"it learns from the scores of {base}") for name, base in gone.items() if base]
        for section in self.evidence:
            try:
                section.check(left)
            except ValueError as error:
                lost.append(Failure(section.key, str(error)))
                left = left.model_copy(update={section.key: None})
        return left, tuple(lost)

    @property
    def evidence(self) -> tuple[EvidenceSection, ...]:
        """What is asked for beside means, in the order in which its kinds were registered."""
        found = (getattr(self, key, None) for key in EVIDENCE)
        return tuple(section for section in found if section is not None)

    @property
    def core_conventions(self) -> ltr.Conventions:
        """The label rules."""
        built: ltr.Conventions = self.conventions.build()
        return built

    @property
    def all_measures(self) -> list[str]:
        """All measures to take: those reported, the one that selects, and what evidence reads."""
        read = [measure for section in self.evidence for measure in section.measures()]
        return list(dict.fromkeys(str(ltr.Measure.of(measure)) for measure in (*self.measures, *self.selecting, *read)))

    @property
    def select_key(self) -> str:
        """Key of the measure that selects."""
        return ltr.Measure.of(self.select).key

    @property
    def selecting(self) -> list[str]:
        """The measures by which cells are chosen."""
        return [self.select, *(ranker.select for ranker in self.rankers.values() if ranker.select)]

    def select_of(self, ranker: str) -> str:
        """Key of the measure by which a ranker's cells are chosen: its own, or else the run's."""
        return ltr.Measure.of(self.rankers[ranker].select or self.select).key

    @property
    def cut(self) -> str:
        """What the run leaves out of the data or of the training, in words; empty where nothing is."""
        cuts = [
            f"{share:.3g} of the {what}"
            for what, share in (("queries", self.scale), ("trees and epochs", self.length))
            if share < 1
        ]
        return "cut to " + " and ".join(cuts) if cuts else ""

    @property
    def alone(self) -> list[str]:
        """Rankers on the data's own features, not on the scores of others."""
        return [name for name, ranker in self.rankers.items() if not ranker.on]

    def cells(self, ranker: str) -> list[GridPoint]:
        """Every point of a ranker's grid, those that come to the same parameters (``x1`` and ``x1.1`` of 4 leaves) once. The ranker's own sweep wins
        over the run's; `length` cuts trees and epochs.

        Raises:
            ValueError: for a value that the ranker refuses, naming the point.
        """
        grid, points = self.grid(ranker), dict[str, GridPoint]()
        for values in itertools.product(*grid.values()):
            point = self.point(ranker, dict(zip(grid, values, strict=True)))
            points.setdefault(point.section.model_dump_json(), point)
        return [*points.values()]

    @property
    def ways(self) -> tuple[ltr.Unbiased, ...]:
        """How its rankers, at any of their points or draws, take position bias out of clicks."""
        sections = [point.section for name in self.rankers for point in self.cells(name)]
        for name in self.searched:
            for path, of in self.rankers[name].space.items():
                when = {parent: values[0] for parent, values in of.when.items()}
                ways = of.ends if path.split(".")[-1] == "unbiased" else ()
                sections += [self.point(name, {**when, path: value}).section for value in ways]
        return tuple(dict.fromkeys(way for section in sections for way in ways_of(section.build())))

    def lengths(self, ranker: str) -> list[int | None]:
        """After how many iterations a draw of a ranker's search is looked at, the last of them the whole training; None is that where no
        shorter one can go on, or is looked at: then draws may be of lengths themselves."""
        section = self.rankers[ranker]
        whole = self.point(ranker, {}).section.whole_length if section.whole_length is not None else None
        return [*section.search.lengths(whole)] if section.search and section.search.halving and whole else [None]

    @property
    def searched(self) -> list[str]:
        """Rankers whose parameters are drawn."""
        return [name for name, ranker in self.rankers.items() if ranker.search]

    def grid(self, ranker: str) -> Grid:
        """What is swept of a ranker: the values by dotted path; nothing of one that is searched."""
        section = self.rankers[ranker]
        if section.search:
            return {}
        swept = {path: values for path, values in self.sweep.items() if has(section, path)} | section.sweep
        written = section.written()
        return {path: [multiplied(value, written, path) for value in values] for path, values in swept.items()}

    def point(self, ranker: str, settings: Mapping[str, Any], length: int | None = None) -> GridPoint:
        """A ranker with some of its parameters set, by dotted path; `length`: trained for so many iterations, and not the whole of them.

        Raises:
            ValueError: for a value that the ranker refuses, naming the point.
        """
        section = self.rankers[ranker]
        where = f"rankers.{ranker}.{'search' if section.search else 'sweep'}"
        written = self._settled(ranker)
        for path, value in settings.items():
            put(written, path, deepcopy(value), where)  # what is cut below is this point's, and not the configuration's
        members = written.get("of")
        for own in (written, *(members if isinstance(members, list | tuple) else ())):
            name, number = _counted(own)
            if name:
                own[name] = max(min(number, 1), length if length and own is written else round(number * self.length))
        for asked in self.evidence:
            asked.adapt(self, ranker, written)
        try:
            return GridPoint(settings, type(section).model_validate(written))
        except ValidationError as error:
            fault = error.errors()[0]
            said = fault.get("ctx", {}).get("error") or fault["msg"].lower()
            raise ValueError(f"{where} at {dict(settings)}: {said}") from None

    def _settled(self, ranker: str) -> dict[str, Any]:
        """A ranker's parameters as plain values, with those of the run where it names none of its own."""
        section = self.rankers[ranker]
        written, categories = section.written(), [] if section.on else self.data.of_categories
        seed = written["seed"] if "seed" in section.model_fields_set else self.seed
        for part, plain in ((section, written), *zip(getattr(section, "of", ()), written.get("of", ()), strict=True)):
            for name, value in (
                ("seed", seed), ("stop_on", section.select or self.select), ("categorical", categories),
            ):  # fmt: skip
                if name in plain and name not in part.model_fields_set:
                    plain[name] = value
        if written["polish"] and not written["polish"]["measure"]:
            written["polish"]["measure"] = section.select or self.select
        return written

    def resolved(self) -> dict[str, Any]:
        """The configuration as plain values, every ranker with what it has from the run: what is read from it trains the same models, though
        nobody can tell any more what was written and what was left out."""
        written = self.model_dump(mode="json")
        for name, section in self.rankers.items():
            written["rankers"][name] |= self._settled(name)
            if section.search and section.whole_length is None:
                written["rankers"][name]["search"]["halving"] = 0  # which it cannot do, and is refused where it is asked for
        return written

    def at_ends(self, ranker: str, settings: Mapping[str, Any], as_good: Sequence[Mapping[str, Any]] = ()) -> list[str]:
        """The settings that are at an end of three or more numbers, or of a range: better ones may lie beyond, ``C 0.1 is the largest
        tried``. An end whose neighbour is one of the points that are as good is none: nothing changes there any more; nor is the end of a range
        where a draw from within is as good, or better and not surely so. Nor is what is drawn against (`plot_by`), which is looked at over its whole range."""
        found = []
        section = self.rankers[ranker]

        def limits(path: str) -> tuple[float, ...]:
            span = section.core.spans.get(path)
            return (span.least, span.most) if span else ()

        for path, dimension in section.space.items():
            if which := dimension.at_end(settings.get(path)):
                end = dimension.low if which == "smallest" else dimension.high
                if end in limits(path):
                    continue  # nothing lies beyond
                if any(path in point and dimension.at_end(point[path]) != which for point in as_good):
                    continue
                found.append(f"{path} {settings[path]:g} is at the {which} value of its range, {end:g}")
        for path, values in self.grid(ranker).items():
            numbers = sorted({v for v in values if isinstance(v, int | float) and not isinstance(v, bool)})
            if path != self.plot_by and len(numbers) == len(values) >= 3 and settings.get(path) in (numbers[0], numbers[-1]):
                which, neighbour = ("smallest", numbers[1]) if settings[path] == numbers[0] else ("largest", numbers[-2])
                if settings[path] not in limits(path) and {**settings, path: neighbour} not in as_good:
                    found.append(f"{path} {settings[path]:g} is the {which} tried")
        return found

    @property
    def training_digest(self) -> str:
        """`digest` without the run's name and what is asked of models that are trained: equal for runs that train and choose alike."""
        asked = ("name", "measures", "workers", "parts", "plot_by", "expect", *EVIDENCE)
        written = {key: value for key, value in self.resolved().items() if key not in asked}
        return sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()

    @property
    def digest(self) -> str:
        """sha256 of everything that can change a number (not how many work at it)."""
        written = {key: value for key, value in self.resolved().items() if key not in ("workers", "parts")}
        return sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()


EVIDENCE: dict[str, type[EvidenceSection]] = {}
"""Kinds of evidence by their key in a configuration."""


def register_evidence(section: type[EvidenceSection]) -> type[EvidenceSection]:
    """Makes a kind of evidence a key of every run's configuration.

    Raises:
        ValueError: for a key that is taken.
    """
    if section.key in RunConfig.model_fields:
        raise ValueError(f"a run has a key {section.key!r} already")
    EVIDENCE[section.key] = section
    optional: Any = section | None
    add_fields(RunConfig, {section.key: FieldInfo.from_annotated_attribute(optional, None)})
    return section


def register_ranker(core: type[ltr.Ranker]) -> None:
    """Makes a kind of ranker known to configurations and to `ltr.load`.

    Raises:
        ValueError: for a kind that is taken.
    """
    if core.kind in SECTIONS:
        raise ValueError(f"there is a kind of ranker {core.kind!r} already")
    ltr.KINDS[core.kind] = core
    SECTIONS[core.kind] = ranker_section(core)
    _tell_rankers()


def _tell_rankers() -> None:
    by_name: Any = dict.__class_getitem__((str, any_ranker()))
    field = FieldInfo.from_annotation(by_name)
    field.default_factory, field.metadata = _default_rankers, RunConfig.model_fields["rankers"].metadata
    RunConfig.__pydantic_fields__["rankers"] = field
    RunConfig.model_rebuild(force=True)


_tell_rankers()


@dataclass(frozen=True)
class StudyConfig:
    """Rankers on several data sets, as the papers' tables have them: a configuration with ``datasets`` in place of ``data``.

    Attributes:
        runs: by their names.
        datasets: the names of the runs of each data set, several where something is repeated.
        baselines: rankers whose best is what the others are tested against, column by column.
    """

    name: str
    runs: dict[str, RunConfig]
    datasets: dict[str, tuple[str, ...]]
    baselines: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Its name, and what its runs leave out (`RunConfig.cut`)."""
        return ", ".join([self.name, *dict.fromkeys(run.cut for run in self.runs.values() if run.cut)])
