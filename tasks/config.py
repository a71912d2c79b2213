"""The configuration of a run: the only schema, for YAML files, ``--set`` on the command line and Prefect's form.

A configuration file is a short difference from good defaults; a user's first one names data files and nothing else.
Unknown keys are errors that name the near misses. Ranker sections have exactly the parameters of the core's models.
"""

import difflib
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Union, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator, model_validator

import ltr
from ltr.diagnostics.optimality import COARSE


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


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


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def section_of(core: type, base: type[Section] = Section, leave_out: frozenset[str] = frozenset(), **changed: Any) -> Any:
    """The section of a dataclass: its fields but those left out, with `changed` types and defaults."""
    hints = get_type_hints(core)
    parameters = {f.name: (hints[f.name], _default(f)) for f in fields(core) if f.name not in leave_out and f.name not in changed}
    required = {name: (hint, ...) if default is MISSING else (hint, default) for name, (hint, default) in parameters.items()}
    made = create_model(f"{core.__name__}Section", __base__=base, __doc__=core.__doc__, **(required | changed))
    made.core = core
    return made


Conventions = section_of(ltr.Conventions)
Schedule = section_of(ltr.Schedule)
Term: Any = section_of(
    ltr.Term,
    measure=(str, "ndcg"),
    weight=(Annotated[float, Field(ge=0, le=1)] | Schedule | None, None),
)


Grid = dict[str, Annotated[list[Any], Field(min_length=1)]]
"""Dotted path of a parameter → its values."""
CERTIFIED = ("lambdarank", "least_squares")
"""Kinds that get a certificate unless others are named."""
COMPLETE = ("least_squares", "conditional", "ranksvm", "svmmap", "adarank", "listwise")
"""Kinds that take no missing feature."""
MAGNIFIED = ("lambdamart", "lambdarank")
"""Kinds that learn step by step, by forces that the microscope sees."""


class RankerSection(Section):
    """A ranker: its model's own parameters, the share of the training queries it sees, and what is swept.

    `on` names other rankers: then the features are their chosen models' scores. It learns from one half of the validation queries,
    which those models were not fitted to, and is chosen on the other.
    """

    train_share: float = Field(1.0, gt=0, le=1)
    sweep: Grid = {}
    on: tuple[str, ...] = ()

    def model(self, conventions: ltr.Conventions) -> Any:
        """The unfitted model."""
        model = self.build()
        return replace(model, conventions=conventions) if hasattr(model, "conventions") else model


_FITTED = frozenset({"trees", "weights", "scaling", "names", "curve", "remarks", "states", "pairs", "conventions", "alpha"})


def _ranker_section(core: type) -> Any:
    changed: dict[str, Any] = {"kind": (Literal[core.kind], ...)}  # type: ignore[attr-defined]
    if "objective" in get_type_hints(core):
        changed["objective"] = (tuple[Term, ...], (Term(),))
    return section_of(core, RankerSection, _FITTED, **changed)


SECTIONS: dict[str, Any] = {kind: _ranker_section(core) for kind, core in ltr.KINDS.items()}
Ranker = Annotated[Union[tuple(SECTIONS.values())], Field(discriminator="kind")]  # type: ignore[valid-type]  # noqa: UP007


class ClickLabel(Strict):
    """How a click label is derived from a log: (clicks + prior · the log's mean rate) / (impressions + prior).

    `clicks` counts the last click of each page, or all of them. `queries` says whose clicks count for a query: those of ``equal``
    ones (letter case, spaces and Unicode's variants apart; S section 6's "="), or of ``similar`` ones too ("~"): with a similarity
    of at least `similarity` `by` their sets of words (Jaccard), or the documents clicked for them (cosine). With `debias` an
    impression counts as much as its rank is looked at (`ltr.data.propensities`), so that the rate is not that of the position.
    """

    clicks: Literal["last", "all"] = "last"
    queries: Literal["equal", "similar"] = "equal"
    by: Literal["words", "clicks"] = "words"
    similarity: float = Field(0.75, gt=0, le=1)
    debias: bool = False
    min_impressions: int = Field(1, ge=1)
    prior: float = Field(0.0, ge=0)


class ClickLog(ClickLabel):
    """A session log, one row a shown result, as CSV, TSV or Parquet, and the labels it gives.

    `session` and `interaction` name the columns whose values together are one result page; `click` the order of clicks on a
    result (``2`` or ``1,3``; empty or 0: not clicked); `rank` the place it was shown at, from 1; `text` what was typed, where
    `query` holds a number. What a label is made of, said here, is the label ``click``; `more` names further ones.
    """

    log: Path
    query: str = "query"
    document: str = "document"
    session: str = "session"
    interaction: str | None = None
    click: str = "click"
    rank: str = "rank"
    text: str | None = None
    more: dict[str, ClickLabel] = {}

    @property
    def labels(self) -> dict[str, ClickLabel]:
        """Every label of the log by its source's name."""
        return {"click": self, **self.more}


class Generate(Strict):
    """Artificial data with simulated sessions (`ltr.data.synthetic`): training, validation and test queries.

    Every query has so many `sessions`, and so many of a `similar` query, the same with one more word; the label ``click`` comes of the
    first, `more` names further ones.
    """

    queries: tuple[int, int, int] = (1000, 500, 1000)
    documents: int = Field(50, ge=2)
    features: int = Field(300, ge=2)
    noise: float = Field(0.3, ge=0)
    sessions: int = Field(20, ge=1)
    similar: int = Field(0, ge=0)
    more: dict[str, ClickLabel] = {}
    seed: int = 1


class Data(Strict):
    """Where the data are and how they are cut into training, validation and test queries. One of:

    - ``train``, ``valid`` and ``test``: files of each;
    - ``parts``: files to rotate as LETOR does (fold i: all but two for training, the next for validation, the next for test);
    - ``files``: cut by query into `folds` folds, or once by `shares`;
    - ``qrels``: TREC judgments; then the scores of ``runs`` are all there is to rank by, and they are cut as ``files`` are;
    - ``generate``: artificial data.

    `attributes` names columns that say something of a query, alike in all its rows; nothing is learned from them. One of the name
    ``text`` is what was typed.
    `runs` are TREC runs by name; beside files their scores become features of these names, joined by query and document id.
    """

    train: list[Path] = []
    valid: list[Path] = []
    test: list[Path] = []
    parts: list[Path] = []
    files: list[Path] = []
    qrels: list[Path] = []
    runs: dict[str, list[Path]] = {}
    generate: Generate | None = None
    folds: int = Field(1, ge=1)
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    query: str = "query"
    document: str = "document"
    label: str = "label"
    weight: str | None = None
    sources: list[str] = []
    attributes: list[str] = []
    first_feature: Literal[0, 1] = 1
    drop: list[str] = []
    drop_telling: bool = True
    clean: bool = False
    binarise: float | None = None
    binarise_into: Literal["binary", "label"] = "binary"
    clicks: ClickLog | None = None

    @property
    def known(self) -> list[str]:
        """Attributes that queries can be told apart by: columns, and those that need none."""
        columns = [name for name in self.attributes if name != "text"]
        made = [
            "documents",
            *(["length"] if self.clicks or "text" in self.attributes else []),
            *(["popularity"] if self.clicks else []),
        ]
        return list(dict.fromkeys([*columns, *made]))

    @field_validator("train", "valid", "test", "parts", "files", "qrels", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | Path) else value

    @field_validator("runs", mode="before")
    @classmethod
    def _one_each_is_a_list(cls, value: Any) -> Any:
        return {name: cls._one_is_a_list(paths) for name, paths in value.items()} if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _check(self) -> "Data":
        ways = {"train": self.train, "parts": self.parts, "files": self.files, "qrels": self.qrels, "generate": self.generate}
        given = [name for name, value in ways.items() if value]
        if len(given) != 1:
            raise ValueError(f"name the data by exactly one of {', '.join(ways)}; given: {', '.join(given) or 'none'}")
        if self.train and not (self.valid and self.test):
            raise ValueError("train needs valid and test beside it (or use files, which are cut by query)")
        if 0 < len(self.parts) < 3:
            raise ValueError(
                f"parts: {len(self.parts)} files cannot be rotated into training, validation and test; give at least 3"
            )
        cut = ("files", "qrels")
        for key, needs in (("valid", ("train",)), ("test", ("train",)), ("folds", cut), ("shares", cut)):
            if getattr(self, key) != type(self).model_fields[key].default and given[0] not in needs:
                raise ValueError(f"{key} goes with {' or '.join(needs)}, and the data are named by {given[0]}")
        if self.qrels and not self.runs:
            raise ValueError("qrels needs runs beside it: TREC runs, whose scores are the features")
        if self.runs and self.generate:
            raise ValueError("runs goes with files of data, and these are generated")
        for name, paths in self.runs.items():
            if not paths or name in (self.query, self.document, self.label):
                raise ValueError(
                    f"runs.{name}: a run has at least one file, and a name that is not the query's, document's or label's"
                )
        if self.folds == 2:
            raise ValueError("folds: 2 leaves nothing to train on (one part validates, one tests); give 1 or at least 3")
        names = [*self.sources, *(self.clicks.labels if self.clicks else ())]
        names += ["binary"] if self.binarise is not None and self.binarise_into == "binary" else []
        for name in names:
            if name == self.label or names.count(name) > 1 or name == "label":
                raise ValueError(f"two label sources are named {name!r}: rename one (data.sources, data.clicks.more)")
        taken = [self.query, self.document, self.label, self.weight, *self.sources]
        for k, name in enumerate(self.attributes):
            if name in taken or name in self.attributes[:k]:
                raise ValueError(
                    f"attributes: the column {name!r} is named twice (or is the query, document, label, weight or a source)"
                )
            if not re.fullmatch(r"[^/\\\0]+", name):
                raise ValueError(f"attributes: {name!r}: rename the column; the name of an attribute has no slash and is not empty")
        if self.attributes and self.generate:
            raise ValueError("attributes: generated data have no column beside features; name the data by files")
        if min(self.shares) <= 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError(f"shares {list(self.shares)} must be positive and sum to 1")
        return self


class Optimality(Strict):
    """The certificate of local optimality; `rankers` empty: every net and linear model. A ranker trained for another measure is
    looked at with this one too.

    `fine` also takes the steps η = 0.001, 0.002, …; `one_at_a_time` also moves each weight alone; `early_epochs` are kept of every
    net and looked at too; `escape` goes on training for the measure, so many epochs, from every place looked at.
    """

    measure: str = "ndcg"
    rankers: list[str] = []
    epsilon: float = Field(0.01, gt=0, lt=1)
    delta: float = Field(0.01, gt=0, lt=1)
    steps: tuple[float, ...] = COARSE
    fine: bool = False
    one_at_a_time: bool = False
    early_epochs: tuple[Annotated[int, Field(ge=1)], ...] = ()
    escape: int = Field(0, ge=0)


class Microscope(Strict):
    """What the λ's do while rankers learn (S figures 2–4), and the documents that stay lost; `rankers` empty: all trees and nets.

    After every so many trees or epochs: how λ of the measure `first` agrees with that of `second`, whence the forces on highly
    relevant documents come, which labels stand in the `top` ranks and how much moves there. `lost`: documents listed at the end.
    """

    rankers: list[str] = []
    every: int = Field(10, ge=1)
    first: str = "ndcg"
    second: str = "cndcg"
    top: int = Field(3, ge=1)
    lost: int = Field(100, ge=0)

    @model_validator(mode="after")
    def _check(self) -> "Microscope":
        ltr.Measure.of(self.first), ltr.Measure.of(self.second)
        return self


class Guarantee(Strict):
    """What a ranker may not harm, and what it is to improve (S sections 1 and 4; SPEC's "tier one unharmed").

    `tiers` are measures, the most important first. Of each ranker's cells the one is chosen that gains most on the last tier over the
    chosen `baseline`, among those shown on validation queries to lose no more than `margin` on any other tier, at `level`
    (Holm's correction over the cells).
    """

    baseline: str
    rankers: list[str] = []
    tiers: list[str] = Field(["ndcg_3", "cndcg_3"], min_length=2)
    margin: float = Field(0.005, ge=0)
    level: float = Field(0.95, gt=0.5, lt=1)


class Champion(Strict):
    """The model in use: the version of the registered model `name` that the registry calls ``champion``. A run's best ranker on
    validation queries takes its place where test queries show it better: on one of `tiers`, or on several (the most important first) no
    worse than by `margin` on each until one is better; every bound one-sided at `level`.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_. -]*$")
    tiers: list[str] = Field(["ndcg_10"], min_length=1)
    margin: float = Field(0.005, ge=0)
    level: float = Field(0.95, gt=0.5, lt=1)


class Segments(Strict):
    """How rankers stand against a `baseline` among queries of one kind, and the queries that they change most; `rankers` empty: all
    others.

    `by` names attributes of queries: columns (`data.attributes`), ``documents``, ``length`` and ``popularity`` (`tasks.segments`);
    empty: every column, and ``documents``. Segments of fewer than `fewest` queries get no test. So many `queries` are listed as most
    harmed, and as most helped. `measure` left out is `select`.
    """

    baseline: str
    rankers: list[str] = []
    by: list[str] = []
    measure: str | None = None
    fewest: int = Field(10, ge=2)
    queries: int = Field(10, ge=0)

    @model_validator(mode="after")
    def _check(self) -> "Segments":
        if self.measure is not None:
            ltr.Measure.of(self.measure)
        return self


class Expect(Strict):
    """Numbers that must come out, or the run fails: ``{ranker: {test_ndcg_10: 0.41}}``."""

    tolerance: float = Field(0.0001, gt=0)
    values: dict[str, dict[str, float]]


def _default_rankers() -> dict[str, Any]:
    return {"lambdamart": SECTIONS["lambdamart"](kind="lambdamart"), "linear": SECTIONS["lambdarank"](kind="lambdarank")}


class RunConfig(Strict):
    """One run: data, rankers and what is swept, measured, tested and certified."""

    name: str = "run"
    data: Data
    rankers: dict[str, Ranker] = Field(default_factory=_default_rankers, min_length=1)  # type: ignore[valid-type]
    sweep: Grid = {}
    select: str = "ndcg_10"
    measures: list[str] = ["ndcg_1", "ndcg_3", "ndcg_5", "ndcg_10", "map", "mrr"]
    conventions: Conventions = Conventions()  # type: ignore[valid-type]
    optimality: Optimality | None = None
    guarantee: Guarantee | None = None
    champion: Champion | None = None
    microscope: Microscope | None = None
    segments: Segments | None = None
    plot_by: str | None = None
    trace: list[str] = []
    expect: Expect | None = None
    seed: int = Field(1, ge=0)
    scale: float = Field(1.0, gt=0, le=1)
    workers: int = Field(1, ge=1)
    parts: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _check(self) -> "RunConfig":
        for what, name in [("name", self.name), *(("ranker name", name) for name in self.rankers)]:
            if not re.fullmatch(r"[A-Za-z0-9_ -][A-Za-z0-9_. -]*", name):
                raise ValueError(f"{what} {name!r}: letters, digits, '_', '-', '.' and spaces only, and no '.' in front")
        for measure in self.measures:
            ltr.Measure.of(measure)
        tiers = self.all_tiers
        for measure in (self.select, *([self.optimality.measure] if self.optimality else []), *tiers):
            ltr.Measure.maximised(measure)
        if self.plot_by and not any(self.plot_by in {**self.sweep, **r.sweep} for r in self.rankers.values()):  # type: ignore[attr-defined]
            raise ValueError(f"plot_by: {self.plot_by!r} is not swept")
        for path in self.sweep:
            if not any(_has(ranker, path) for ranker in self.rankers.values()):
                raise ValueError(f"sweep.{path}: no ranker has a parameter {path.split('.')[0]!r}{_near(path.split('.')[0])}")
        for name, ranker in self.rankers.items():
            for base in ranker.on:  # type: ignore[attr-defined]
                if base not in self.rankers or self.rankers[base].on:  # type: ignore[attr-defined]
                    bases = [other for other, section in self.rankers.items() if not section.on]  # type: ignore[attr-defined]
                    raise ValueError(
                        f"rankers.{name}.on: {base!r} is no ranker on the data's own features; these are: {', '.join(bases)}"
                    )
            if ranker.kind == "combination" and len(ranker.on) not in (0, 2):  # type: ignore[attr-defined]
                raise ValueError(f"rankers.{name}.on: a combination mixes two rankers")
        named = {"optimality.rankers": self.optimality.rankers if self.optimality else []}
        named |= {"trace": self.trace}
        named |= {"microscope.rankers": self.microscope.rankers if self.microscope else []}
        if self.guarantee:
            named |= {"guarantee.baseline": [self.guarantee.baseline], "guarantee.rankers": self.guarantee.rankers}
        if self.segments:
            named |= {"segments.baseline": [self.segments.baseline], "segments.rankers": self.segments.rankers}
        for key, name in ((key, name) for key, names in named.items() for name in names):
            if name not in self.rankers:
                raise ValueError(f"{key}: no ranker {name!r}; there are: {', '.join(self.rankers)}")
        for name in self.optimality.rankers if self.optimality else []:
            if self.rankers[name].kind == "column":  # type: ignore[attr-defined]
                raise ValueError(f"optimality.rankers: {name!r} is a column: it has no weights, and so no certificate")
        for name in self.microscope.rankers if self.microscope else []:
            if self.rankers[name].kind not in MAGNIFIED:  # type: ignore[attr-defined]
                raise ValueError(f"microscope.rankers: {name!r} does not learn step by step; that do: {', '.join(MAGNIFIED)}")
        for name in self.trace:
            if self.rankers[name].kind != "conditional":  # type: ignore[attr-defined]
                raise ValueError(f"trace: {name!r} is no conditional model")
        for name in (self.guarantee.baseline, *self.guaranteed) if self.guarantee else ():
            if self.rankers[name].on:  # type: ignore[attr-defined]
                raise ValueError(
                    f"guarantee: {name!r} is chosen on half of the validation queries and cannot be paired with others"
                )
        if self.guarantee and not self.guaranteed:
            raise ValueError(f"guarantee: no ranker beside the baseline {self.guarantee.baseline!r}")
        if self.segments and not self.contrasted:
            raise ValueError(f"segments: no ranker beside the baseline {self.segments.baseline!r}")
        for name in self.segments.by if self.segments else ():
            if name not in self.data.known:
                raise ValueError(
                    f"segments.by: no attribute {name!r}; there are: {', '.join(self.data.known)} (data.attributes names columns, and data.clicks gives length and popularity)"
                )
        reported = [f"test_{ltr.Measure.of(measure).key}" for measure in self.measures]
        for name, values in self.expect.values.items() if self.expect else ():
            if name not in self.rankers:
                raise ValueError(f"expect.values: no ranker {name!r}; there are: {', '.join(self.rankers)}")
            for metric in values:
                if metric not in reported:
                    raise ValueError(f"expect.values.{name}: {metric!r} is not reported; there are: {', '.join(reported)}")
        for name in self.rankers:
            self.cells(name)
        return self

    @property
    def core_conventions(self) -> ltr.Conventions:
        return self.conventions.build()  # type: ignore[attr-defined]

    @property
    def all_measures(self) -> list[str]:
        """All measures to take: those reported, the one that selects, those of the tiers and the segments'."""
        segmented = [self.segments.measure] if self.segments and self.segments.measure else []
        return list(dict.fromkeys(str(ltr.Measure.of(m)) for m in (*self.measures, self.select, *self.all_tiers, *segmented)))

    @property
    def all_tiers(self) -> list[str]:
        """Measures of the guarantee and of the champion."""
        return [measure for rule in (self.guarantee, self.champion) if rule for measure in rule.tiers]

    @property
    def magnified(self) -> list[str]:
        """Rankers that are looked at through the microscope."""
        if self.microscope is None:
            return []
        learn = [name for name, ranker in self.rankers.items() if ranker.kind in MAGNIFIED]  # type: ignore[attr-defined]
        return self.microscope.rankers or learn

    @property
    def guaranteed(self) -> list[str]:
        """Rankers that are held against the guarantee's baseline."""
        if self.guarantee is None:
            return []
        alone = [name for name, ranker in self.rankers.items() if not ranker.on]  # type: ignore[attr-defined]
        return [name for name in self.guarantee.rankers or alone if name != self.guarantee.baseline]

    @property
    def segmented(self) -> list[str]:
        """Attributes that the segments are made by."""
        if self.segments is None:
            return []
        columns = [name for name in self.data.attributes if name in self.data.known]
        return list(dict.fromkeys(self.segments.by or [*columns, "documents"]))

    @property
    def contrasted(self) -> list[str]:
        """Rankers that are held against the segments' baseline."""
        if self.segments is None:
            return []
        return [name for name in dict.fromkeys(self.segments.rankers or self.rankers) if name != self.segments.baseline]

    def cells(self, ranker: str) -> list[tuple[dict[str, Any], RankerSection]]:
        """Every point of a ranker's grid: what was set, and the section with it set. The ranker's own sweep wins over the
        run's; `scale` shrinks trees, epochs and the fewest documents of a leaf."""
        section: RankerSection = self.rankers[ranker]
        grid = {path: values for path, values in self.sweep.items() if _has(section, path)}
        grid |= section.sweep
        points = []
        for values in itertools.product(*grid.values()):
            point = dict(zip(grid, values, strict=True))
            written = section.model_dump(mode="json", exclude={"sweep"})
            for name, value in (("seed", self.seed), ("stop_on", self.select)):
                if name in written and name not in section.model_fields_set:
                    written[name] = value
            for path, value in point.items():
                _put(written, path, value, f"rankers.{ranker}.sweep")
            if self.optimality and "keep_epochs" in written:
                written["keep_epochs"] = sorted({*written["keep_epochs"], *self.optimality.early_epochs})
            for length in ("n_trees", "epochs", "min_docs_in_leaf"):
                if length in written:
                    written[length] = max(min(written[length], 1), round(written[length] * self.scale))
            if ranker in self.magnified and "keep_epochs" in written:
                looks = range(self.microscope.every, written["epochs"], self.microscope.every)  # type: ignore[union-attr]
                written["keep_epochs"] = sorted({*written["keep_epochs"], *looks})
            try:
                points.append((point, type(section).model_validate(written)))
            except ValidationError as error:
                fault = error.errors()[0]
                raise ValueError(
                    f"rankers.{ranker}.sweep at {point}: {fault.get('ctx', {}).get('error') or fault['msg'].lower()}"
                ) from None
        return points

    @property
    def digest(self) -> str:
        """sha256 of everything that can change a number (not how many work at it)."""
        written = self.model_dump(mode="json", exclude={"workers", "parts"})
        return sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class StudyConfig:
    """The same rankers on several data sets, as the papers' tables have them: a configuration with ``datasets`` in place of ``data``.

    Attributes:
        runs: one run a data set, by its name.
        baselines: rankers whose best is what the others are tested against, column by column.
    """

    name: str
    runs: dict[str, RunConfig]
    baselines: tuple[str, ...] = ()


def _has(section: Any, path: str) -> bool:
    """Whether a section has the parameter that a dotted path begins with."""
    return path.split(".")[0] in type(section).model_fields


def _put(written: Any, path: str, value: Any, where: str) -> None:
    """Sets the field at a dotted path (``objective.1.weight``) of a written section."""
    at, name, keys = written, where.rpartition(".")[0], path.split(".")
    for depth, key in enumerate(keys, 1):
        if isinstance(at, list) and not (key.isdigit() and int(key) < len(at)):
            raise ValueError(f"{where}.{path}: there is no {name}.{key}; {name} has {len(at)}, counted from 0")
        if not isinstance(at, list) and not (isinstance(at, dict) and key in at):
            rule = f"{name} is {json.dumps(at)}" if not isinstance(at, dict) else "there is no such parameter" + _near(key)
            raise ValueError(f"{where}.{path}: {rule}")
        place: Any = int(key) if isinstance(at, list) else key
        if depth == len(keys):
            at[place] = value
        at, name = at[place], f"{name}.{key}"


# --- reading, with one clear line for whatever is wrong ------------------------------------------------------------------


class ConfigError(ValueError):
    """A configuration that cannot be run; one line a fault."""


def _vocabulary() -> list[str]:
    models = (
        RunConfig,
        Data,
        Generate,
        ClickLog,
        ClickLabel,
        Optimality,
        Guarantee,
        Microscope,
        Segments,
        Expect,
        Term,
        Conventions,
        Schedule,
        *SECTIONS.values(),
    )
    return sorted({name for model in models for name in model.model_fields})


def _near(key: str) -> str:
    """What may have been meant by an unknown key: the likest known one, and another that is nearly as like."""
    near = difflib.get_close_matches(str(key), _vocabulary(), n=2, cutoff=0.7)
    likeness = [difflib.SequenceMatcher(None, str(key), name).ratio() for name in near]
    near = [name for name, ratio in zip(near, likeness, strict=True) if ratio > likeness[0] - 0.1]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _path(fault: Any) -> str:
    """Where a fault is, without the alternatives that pydantic tried there."""
    kinds = fault["loc"][2:3]
    parts = [
        str(p) for p in fault["loc"] if (str(p) not in SECTIONS or p not in kinds) and not re.search(r"\[|-float$|Section$", str(p))
    ]
    return ".".join(parts)


def _explain(error: ValidationError, where: str) -> ConfigError:
    lines, faults = [], [(_path(fault), fault) for fault in error.errors()]
    for path, fault in faults:
        if fault["type"].endswith("_type") and any(other.startswith(path) for other, f in faults if f is not fault):
            continue  # another alternative at this place says more
        if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            lines.append(f"{where}: unknown key {path!r}{_near(str(fault['loc'][-1]))}")
        elif fault["type"] == "value_error":
            lines.append(f"{where}: {path + ': ' if path else ''}{fault['ctx']['error']}")
        else:
            shown = json.dumps(fault["input"], default=str)
            lines.append(f"{where}: {path}: {fault['msg'].lower()} (given: {shown if len(shown) <= 60 else shown[:57] + '...'})")
    return ConfigError("\n".join(dict.fromkeys(lines)))


def parse(written: Mapping[str, Any], where: str = "configuration") -> RunConfig:
    """A `RunConfig` of plain values.

    Raises:
        ConfigError: one line a fault, each with the key, the value and the rule.
    """
    try:
        return RunConfig.model_validate(written)
    except ValidationError as error:
        raise _explain(error, where) from None


def read(path: str | Path, overrides: Iterable[str] = (), data_of: str | Path | None = None) -> RunConfig:
    """Reads a YAML file; `overrides` are ``key.path=value`` with values in YAML. Paths are relative to the working directory.
    Data and conventions are those of the configuration `data_of`, where one is given.

    Raises:
        ConfigError: for a file that is missing or not YAML, and for whatever `parse` refuses.
    """
    written = _written(path)
    if data_of is not None:
        other = _written(data_of)
        written |= {"name": f"{written.get('name', 'run')}-{other.get('name', Path(data_of).stem)}"}
        written |= {section: other[section] for section in ("data", "conventions") if section in other}
    override_all(written, overrides)
    return parse(written, str(path))


def read_study(path: str | Path, overrides: Iterable[str] = ()) -> StudyConfig | None:
    """The study in a YAML file; None where it names no ``datasets``.

    Raises:
        ConfigError: as `read`; for a data set that is no mapping of ``data`` and ``conventions``; for an unknown baseline.
    """
    written = _written(path)
    if "datasets" not in written:
        return None
    override_all(written, overrides)
    datasets, baselines, name = written.pop("datasets"), written.pop("baselines", []), str(written.pop("name", "study"))
    if not isinstance(datasets, dict) or not datasets:
        raise ConfigError(f"{path}: datasets: name each data set, with its data and conventions")
    runs = {}
    for label, about in datasets.items():
        strange = sorted(set(about) - {"data", "conventions"}) if isinstance(about, dict) else [str(about)]
        if strange:
            raise ConfigError(f"{path}: datasets.{label}: a data set has data and conventions, not {strange[0]!r}")
        runs[str(label)] = parse({**written, **about, "name": f"{name}-{label}"}, f"{path}: datasets.{label}")
    rankers = next(iter(runs.values())).rankers
    for baseline in baselines:
        if baseline not in rankers:
            raise ConfigError(f"{path}: baselines: no ranker {baseline!r}; there are: {', '.join(rankers)}")
    return StudyConfig(name, runs, tuple(baselines))


def _written(path: str | Path) -> dict[str, Any]:
    try:
        written = yaml.safe_load(Path(path).read_text()) or {}
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror.lower() if error.strerror else error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(
            f"{path}{f', line {mark.line + 1}' if mark else ''}: not YAML: {getattr(error, 'problem', error)}"
        ) from None
    if not isinstance(written, dict):
        raise ConfigError(f"{path}: a configuration is a mapping of keys, not {type(written).__name__}")
    return written


def override_all(written: dict[str, Any], overrides: Iterable[str]) -> None:
    """Sets ``key.path=value`` (values in YAML) in a written configuration; keys below ``sweep`` are paths themselves."""
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise ConfigError(f"--set {override}: write it as key.path=value")
        at = written
        *parents, last = key.split(".")
        if parents and parents[0] == "sweep":
            parents, last = ["sweep"], ".".join([*parents[1:], last])
        for part in parents:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise ConfigError(f"--set {override}: {part!r} is not a section")
        try:
            at[last] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise ConfigError(f"--set {override}: {value!r} is not YAML") from None
