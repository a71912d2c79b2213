"""What travels through a run: frozen records, and the errors that end one. Plain values inside, so that they pass Prefect's serializer.

Ingested ─ Prepared ─ Fold ─ Cell ─ CellResult ─ Trained ─ RunOutcome
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

MICRO = "micro-average"
"""The column of a study over the queries of all data sets."""
RETRIEVED = "_retrieved"
"""A source of data that are judgments and runs: 0 for documents that are judged and in no run. No column of users is called so."""
OWN_PREFECT = "LAMBDAFLOW_OWN_SERVER"
"""Variable with the address of a Prefect server that was started for this folder, here or by the process that started this one."""


class DataError(ValueError):
    """Data that cannot be used: file, line or query, value and rule."""


class ConfigError(ValueError):
    """A configuration that cannot be run; one line a fault."""


class ExpectationError(ValueError):
    """A number that the configuration expects did not come out."""


class TrackingError(OSError):
    """MLflow does not take what is written, and will not soon."""


class WorkerError(OSError):
    """A process that trained a cell is gone."""


Level = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One line of the data doctor's report. An ``error`` stops training."""

    level: Level
    subject: str
    text: str


@dataclass(frozen=True)
class Ingested:
    """Files as one stored data set.

    Attributes:
        data: its name in the store.
        split_queries: queries that stood in several places.
        read: False where the store had it.
        notes: what was lost in reading, in sentences.
    """

    data: str
    split_queries: int
    read: bool
    notes: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that there is to say of the files."""
        return (*self.notes, *([brought_together(self.split_queries)] if self.split_queries else []))


def brought_together(split_queries: int) -> str:
    """What became of queries that stood in several places."""
    return f"{number_of(split_queries, 'query')} in several places of a file; the documents of each were brought together"


@dataclass(frozen=True)
class Prepared:
    """A stored data set with its labels, and what was done to it, in sentences."""

    data: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fold:
    """Names in the store of training, validation and test queries; without the latter two all queries are trained on."""

    train: str
    valid: str = ""
    test: str = ""

    @property
    def roles(self) -> dict[str, str]:
        """The names by role, of the sets that there are."""
        return {field.name: name for field in fields(self) if (name := getattr(self, field.name))}


@dataclass(frozen=True)
class Columns:
    """How the rows that a model learned from were read, and how rows for it are read where nobody says otherwise.

    Attributes:
        query, document, label: names of a table's columns.
        first_feature: number of the first feature of LETOR text.
        ignore: patterns of a table's columns that are no features: those that were left out, and attributes of queries.
        categories: of each column of categories their names, whose places are the values of the feature.
    """

    query: str = "query"
    document: str = "document"
    label: str = "label"
    first_feature: int = 1
    ignore: tuple[str, ...] = ()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_NAME_HOLDS = 250
"""Characters of a name in MLflow, of which PostgreSQL refuses more and SQLite keeps all; Prefect's indexes in PostgreSQL hold some thousands."""


def short_name(name: str) -> str:
    """What servers call a run or a task: its name, without its middle where it is too long, as a cell's ends with its fold."""
    half = _NAME_HOLDS // 2
    return name if len(name) <= _NAME_HOLDS else f"{name[: half - 1]}…{name[-half:]}"


@dataclass(frozen=True)
class Cell:
    """One cell of a sweep: a ranker with its parameters set, on one fold.

    Attributes:
        label: what people call it.
        ranker: its ranker's name; `fold`, from 0.
        point: what was set, by dotted path.
        section: the ranker's parameters, as a configuration has them.
        data: training queries (those that the ranker is shown), validation and test queries.
        measures: taken of it.
        conventions: label rules, as a configuration has them.
        columns: of the data's files; they are kept with the model.
        start: key of the cell that is this one with fewer iterations, from which its training goes on; `goes_on`: what it takes to go on
            from this one is kept. Neither decides anything but the time.
    """

    label: str
    ranker: str
    fold: int
    point: Mapping[str, Any]
    section: Mapping[str, Any]
    data: Fold
    measures: tuple[str, ...]
    conventions: Mapping[str, Any]
    columns: Columns = Columns()
    start: str = ""
    goes_on: bool = False

    @property
    def short_label(self) -> str:
        """What servers call it."""
        return short_name(self.label)


def printable(text: str) -> str:
    """A text with control characters by their numbers (``\\x1b``): they move a terminal's cursor and are not allowed in SVG."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


def finite_or_none(value: Any) -> Any:
    """Plain values as JSON has them: None for NaN and infinity, lists for tuples."""
    if isinstance(value, Mapping):
        return {name: finite_or_none(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def number_of(n: int, noun: str) -> str:
    """A number and what it counts, as people write it: ``1 query``, ``1,204 queries``."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else many}"


def percent(share: float) -> str:
    """A share in per cent with all its digits: ``95%``, ``97.5%``; 0.999 is no certainty."""
    return f"{100 * share:.6g}%"


def time_of(seconds: float) -> str:
    """Seconds as people write them: ``9m 40s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return " ".join(f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if n) or "0s"


def point_title(point: Mapping[str, Any]) -> str:
    """A point of a grid as people write it: ``learning_rate=0.1, objective.1.weight=0.3``."""
    return ", ".join(f"{path}={value}" for path, value in point.items())


@dataclass(frozen=True)
class CellResult:
    """What training a cell gave; model, per-query values and curve are in its folder (`tasks.store.cells.CellFolder`).

    Attributes:
        key: of the cell, independent of its name and place in a sweep.
        digest: of the model.
        metrics: means by ``{split}_{measure}``.
        seconds: of training, without those in which kernels are compiled.
        remarks: sentences about it.
    """

    key: str
    digest: str
    metrics: dict[str, float]
    seconds: float
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "remarks", tuple(self.remarks))


@dataclass(frozen=True)
class Trained:
    """A cell with its result."""

    cell: Cell
    result: CellResult

    @property
    def ranker(self) -> str:
        """The ranker's name."""
        return self.cell.ranker

    @property
    def fold(self) -> int:
        """The fold, from 0."""
        return self.cell.fold


@dataclass(frozen=True)
class Look:
    """A draw of a search after so many iterations (0: the whole training, of what cannot go on): its value on validation queries."""

    iterations: int
    value: float


@dataclass(frozen=True)
class Trial:
    """One draw of a search on one fold.

    Attributes:
        number: from 1, which is the ranker as written.
        settings: what was drawn, by dotted path.
        looks: what came of it, shortest training first; none where it could not be trained.
        whole: it was trained to its end.
        seconds: of training.
        key: of the cell that was trained longest; empty where there is none.
        fault: why it could not be trained.
    """

    number: int
    settings: Mapping[str, Any]
    looks: tuple[Look, ...]
    whole: bool
    seconds: float
    key: str = ""
    fault: str = ""

    @property
    def value(self) -> float | None:
        """The value after the longest training."""
        return self.looks[-1].value if self.looks else None


@dataclass(frozen=True)
class Searched:
    """A ranker's search on one fold: its trials by their number."""

    ranker: str
    fold: int
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class Budget:
    """How far a search got within its time.

    Attributes:
        seconds: that it was given; `used`: that went by.
        cells: that were trained, in the order in which a search without end would train them.
        ended: whether time ended it, and not the number of trials.
        complete: whether all trials were made: a repetition finds them, and its time is none of theirs.
    """

    seconds: float
    used: float = 0.0
    cells: int = 0
    ended: bool = False
    complete: bool = False


@dataclass(frozen=True)
class Failure:
    """Something of a run that came to nothing while the rest went on: a cell, a ranker, a kind of evidence; and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True)
class ModelSummary:
    """A ranker's model, or the models of its folds: digest, and the mean of their metrics."""

    digest: str
    metrics: dict[str, float]


@dataclass(frozen=True)
class LoggedDataset:
    """A data set as MLflow shows it: name, role in the run, digest, source and profile as JSON."""

    name: str
    role: str
    digest: str
    source: str
    profile: str


class Progress(Protocol):
    """Where a run says how far it is."""

    def begin(self, text: str, steps: int | None = None) -> None:
        """A stage begins, of so many steps where they are known."""

    def done(self, text: str) -> None:
        """A step of the stage is finished."""

    def say(self, text: str, style: str = "") -> None:
        """Something worth a line."""
