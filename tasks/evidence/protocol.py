"""What every kind of evidence is: a section of the configuration that gathers something about the chosen rankers, and what it found, with
tags for MLflow, sentences for the terminal, and figures and a section for the page.

The pipeline, the page and the terminal go through whatever kinds are registered and know none of them. A new kind is one file: a subclass
of `Evidence`, a subclass of `Found`, and a call of `register_evidence`.

MLflow takes a second to import, and evidence is part of every configuration: its kinds import what they need of it where they need it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import jinja2
import numpy as np

import ltr
from ltr.metrics.measure import why_undefined
from tasks.config.run_config import RunConfig
from tasks.config.section import EvidenceSection
from tasks.records import DataError, Fold, Progress, Trained, number_of
from tasks.store.cells import CellFolder
from tasks.store.datasets import open_queries

if TYPE_CHECKING:
    from tasks.tracking.tracker import Tracker

_TEMPLATES = jinja2.Environment(autoescape=True, trim_blocks=True)


def render(template: str, **values: Any) -> str:
    """A jinja template with its values, which are escaped unless marked safe."""
    return _TEMPLATES.from_string(template).render(**values)


@dataclass(frozen=True)
class Gathering:
    """What evidence may look at.

    Attributes:
        config: of the run.
        folds: its data.
        cells: all that were trained, in the order of the grid.
        chosen: of each ranker and fold the cell that was chosen.
        tracker, progress: of the run.
    """

    config: RunConfig
    folds: tuple[Fold, ...]
    cells: tuple[Trained, ...]
    chosen: tuple[Trained, ...]
    tracker: "Tracker"
    progress: Progress

    def values_of(self, ranker: str) -> list[str]:
        """Files of the per-query values of a ranker's chosen cells, fold by fold."""
        return [values_path(trained) for trained in self.chosen if trained.ranker == ranker]

    def on_first_fold(self, rankers: list[str]) -> list[Trained]:
        """The chosen cells of some rankers on the first fold."""
        return [trained for trained in self.chosen if trained.ranker in rankers and trained.fold == 0]


def values_path(trained: Trained) -> str:
    """File of a cell's per-query values."""
    return str(CellFolder.of(trained.result.key).values)


@dataclass(frozen=True)
class TableColumn:
    """A column of the table of rankers: its title, and for some rankers a word with a style (``optimum``, ``not``, ``inconclusive``)."""

    title: str
    words: dict[str, str]


@dataclass(frozen=True)
class Artifact:
    """A file for MLflow, by the name it has there."""

    path: Path
    name: str


class Found(ABC):
    """What a piece of evidence found.

    Attributes:
        place: of its section on the page and its sentences on the terminal, smaller ones first.
        repeatable: the same is found again where data and models are the same, whatever the first time changed.
        of_first_fold: it looks at the models of the first fold alone.
    """

    place: ClassVar[int] = 100
    of_first_fold: ClassVar[bool] = False
    repeatable: ClassVar[bool] = True

    def tags(self) -> dict[str, str]:
        """Tags of the run in MLflow."""
        return {}

    def lasting_tags(self) -> dict[str, str]:
        """Those that say another thing only where a run that is repeated is to be told anew."""
        return self.tags()

    def printed(self) -> Mapping[str, Any]:
        """What ``--json`` prints beside the models, by a name of its kind: its numbers, where it does not say more or less."""
        return self.numbers()

    def sentences(self) -> list[str]:
        """Lines for the terminal, below the table."""
        return []

    def column(self) -> TableColumn | None:
        """A column of the table of rankers."""
        return None

    @cached_property
    def figures(self) -> dict[str, str]:
        """Figures that are files of their own, SVG by name: drawn once for these and for the section."""
        return {}

    def numbers(self) -> Mapping[str, Any]:
        """What a file of results keeps of it, by a name of its kind."""
        return {}

    def artifacts(self, folder: Path) -> list[Artifact]:
        """Further files for MLflow; those that do not exist yet are written into `folder`."""
        return []

    @abstractmethod
    def section(self) -> str:
        """The section of the page, as HTML that ends its own headings; empty where there is nothing to show."""


class Evidence(EvidenceSection, ABC):
    """A kind of evidence: its configuration, and how it is gathered.

    Attributes:
        last: it changes what is in use, and so is gathered when everything else is.
    """

    last: ClassVar[bool] = False

    def check_data(self, config: RunConfig, folds: tuple[Fold, ...]) -> None:
        """Checks that it can be gathered on these data, before anything is trained.

        Raises:
            DataError: saying why not.
        """

    def choose(self, run: Gathering) -> tuple[Trained, ...]:
        """The chosen cells as this evidence wants them; most kinds take the choice as it is."""
        return run.chosen

    @abstractmethod
    def gather(self, run: Gathering) -> Found:
        """Gathers the evidence about a run's chosen cells."""


def asked_for(config: RunConfig) -> list[Evidence]:
    """The evidence that a configuration asks for, in the order in which it is gathered."""
    asked = [cast(Evidence, section) for section in config.evidence]
    return sorted(asked, key=lambda evidence: evidence.last)


def require_pairs(
    key: str, measures: Sequence[str], role: str, names: Sequence[str], rules: ltr.Conventions, least: int = 2
) -> None:
    """Looks whether measures are defined, which no ranking decides, on so many queries of these stored data sets.

    Raises:
        DataError: naming the kind of evidence, whose paired test needs that.
    """
    for measure in map(ltr.Measure.of, measures):
        defined, whole, every = 0, 0, []
        for queries in map(open_queries, names):
            labels, nothing = {measure.source: queries.source(measure.source)}, np.zeros(queries.n_documents)
            values = ltr.evaluate(labels, nothing, queries.offsets, [measure], replace(rules, ties="expected"))[measure.key]
            defined, whole = defined + int((~np.isnan(values)).sum()), whole + queries.n_queries
            every.append(queries.source(measure.source))
        if not defined:
            raise DataError(
                f"{key}: {role} queries: {why_undefined(measure, np.concatenate(every), rules)}; leave {key} out otherwise"
            )
        if defined < least:
            raise DataError(
                f"{key}: {measure.key} is defined on {defined} of {number_of(whole, f'{role} query')}, and a paired test needs {least} or more: "
                f"give more queries, or leave {key} out"
            )
