"""What came of a run, as the report, MLflow, the terminal and ``--json`` show it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import polars as pl
import yaml

import ltr
from ltr.objectives.terms import settled, weights_at
from ltr.rankers.fair_pages import are_pages, largest
from ltr.trees.lambdamart import NEARNESS
from tasks.config.run_config import RunConfig
from tasks.evidence.drawing import title_of
from tasks.evidence.protocol import Found
from tasks.evidence.significance import Standings
from tasks.records import Budget, Failure, Finding, Fold, ModelSummary, Searched, Trained, finite_or_none, number_of, point_title
from tasks.store.cells import CellFolder
from tasks.store.datasets import about_queries, open_queries
from tasks.store.state import digest_of
from tasks.store.values import read_values

SHOWN = 6
"""Rankers whose models are named in a line; ``--json`` has all."""


class _Dumper(yaml.SafeDumper):
    """Writes YAML 1.1 that says the same by 1.2, which configurations are read by: text that is a number to 1.2 alone, such as 0018 or 1e5, is quoted."""


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:0o[0-7_]+|(?:[0-9_]+\.?[0-9_]*|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?)$"),
    list("-+.0123456789"),
)


@dataclass(frozen=True)
class ObjectiveShape:
    """The terms of a ranker's objective at one weight of its grid: pair costs, and weights along its iterations where one is scheduled."""

    costs: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class RunOutcome:
    """What came of a run.

    Attributes:
        config: of the run; `run_id`: in MLflow.
        folds, findings: its data, and what the doctor found.
        cells: all that were trained, in the order of the grid; `chosen`: of each ranker and fold the chosen one.
        standings: rankers on the test queries.
        evidence: what was found beside.
        failures: what could not be trained, which is not in `config`.
        asked: the configuration as it was, where that is another.
        searches: every draw of rankers that are searched, fold by fold; `budget`: how far they got in their time.
        link: to the run in MLflow.
    """

    config: RunConfig
    run_id: str
    folds: tuple[Fold, ...]
    findings: tuple[Finding, ...]
    cells: tuple[Trained, ...]
    chosen: tuple[Trained, ...]
    standings: Standings
    evidence: tuple[Found, ...] = ()
    failures: tuple[Failure, ...] = ()
    asked: RunConfig | None = None
    searches: tuple[Searched, ...] = ()
    budget: Budget | None = None
    link: str = ""

    def chosen_of(self, ranker: str) -> list[Trained]:
        """The chosen cells of a ranker, fold by fold."""
        return [trained for trained in self.chosen if trained.ranker == ranker]

    @cached_property
    def models(self) -> dict[str, ModelSummary]:
        """Each ranker's model, or the models of its folds in one."""
        return {name: _summary(self.chosen_of(name)) for name in self.config.rankers}

    @cached_property
    def best(self) -> str:
        """The best ranker on validation queries. Where some learned from a half of these, all are judged by the other half."""
        if self._is_halved:
            return max(means := self._means_on_shared_queries(), key=means.__getitem__)
        return max(self.models, key=lambda name: self.models[name].metrics[f"valid_{self.config.select_key}"])

    @property
    def _is_halved(self) -> bool:
        """Whether a ranker on the scores of others learned from a half of the validation queries."""
        return len(self.config.alone) < len(self.config.rankers)

    def _means_on_shared_queries(self) -> dict[str, float]:
        """Each ranker's mean over the validation queries of which all have values, the mean over the folds."""
        of_folds = []
        for one_fold in zip(*self.folders.values(), strict=True):
            values = [
                read_values(folder.values, "valid").select("query", pl.col(self.config.select_key).alias(name))
                for name, folder in zip(self.folders, one_fold, strict=True)
            ]
            of_folds.append(
                reduce(lambda left, right: left.join(right, on="query", maintain_order="left"), values).drop("query").mean()
            )
        return pl.concat(of_folds).mean().row(0, named=True)

    @property
    def keys(self) -> dict[str, list[str]]:
        """Keys of each ranker's chosen cells, fold by fold."""
        return {name: [trained.result.key for trained in self.chosen_of(name)] for name in self.config.rankers}

    @property
    def folders(self) -> dict[str, list[CellFolder]]:
        """Folders of each ranker's chosen cells, fold by fold."""
        return {name: [CellFolder.of(key) for key in keys] for name, keys in self.keys.items()}

    @property
    def facts(self) -> list[str]:
        """The run's size, in words."""
        sizes = [" / ".join(f"{about_queries(name).queries:,}" for name in fold.roles.values()) for fold in self.folds]
        cut = "training / validation / test queries"
        return [
            number_of(len(self.folds), "fold"),
            f"{cut} by fold: {', '.join(sizes)}" if len(sizes) > 1 else f"{sizes[0]} {cut}",
            number_of(len(self.cells), "cell"),
            f"run {self.run_id[:8]}",
            *([f"models {self.called}"] if self.models else []),
            *([self.config.cut] if self.config.cut else []),
        ]

    @property
    def at_ends(self) -> list[str]:
        """Chosen settings beyond which better ones may lie, a sentence each."""
        told: dict[str, list[int]] = {}
        for trained in self.chosen:
            for note in self.ends_of(trained):
                told.setdefault(f"{trained.ranker}: {note}", []).append(trained.fold + 1)
        folds = len(self.folds)
        return [f"{note}{f' (in {len(of)} of {folds} folds)' if folds > 1 else ''}" for note, of in told.items()]

    def ends_of(self, trained: Trained) -> list[str]:
        """The settings of a chosen cell that are at an end of its grid or range, where a neighbour is not as good on validation queries."""
        select = f"valid_{self.config.select_of(trained.ranker)}"
        beside = [one for one in self.cells if (one.ranker, one.fold) == (trained.ranker, trained.fold)]
        here = trained.result.metrics.get(select)
        as_good = [one.cell.point for one in beside if here is not None and one.result.metrics.get(select, -np.inf) >= here]
        return self.config.at_ends(trained.ranker, trained.cell.point, as_good)

    @property
    def drawn(self) -> list[Trained]:
        """What figures over `plot_by` draw: each ranker's best cell on validation queries at each of its values, in each fold."""
        return drawn_cells(self.cells, self.config.plot_by, self.config.select_of)

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        as_they_are = ", of clicks as they are, which favour the order they were shown in" if self.by_clicks else ""
        half = ", on the half of the queries that no ranker learned from" if self._is_halved else ""
        return f"Best on validation {title_of(self.config.select_key)}{half}{as_they_are}: {self.best}."

    @cached_property
    def by_clicks(self) -> bool:
        """Whether validation queries are pages, whose clicks rankers are to be without the position bias of."""
        source, ways = ltr.Measure.of(self.config.select).source, self.config.ways
        folds = [fold for fold in self.folds if fold.valid and ways]
        sets = [(open_queries(fold.valid), largest(open_queries(fold.train).source(source))) for fold in folds]
        return any(are_pages(valid, way, source, most) for way in ways for valid, most in sets)

    @cached_property
    def config_text(self) -> str:
        """The configuration as resolved, in YAML, the same by 1.1 and 1.2."""
        written: str = yaml.dump((self.asked or self.config).resolved(), Dumper=_Dumper, sort_keys=False)
        return written

    def as_json(self) -> Mapping[str, Any]:
        """What ``--json`` prints."""
        failed = {"failed": [vars(failure) for failure in self.failures]} if self.failures else {}
        cut = {"cut": self.config.cut} if self.config.cut else {}
        models = {name: vars(model) for name, model in self.models.items()}
        beside = {name: said for found in self.evidence for name, said in found.printed().items()}
        told: Mapping[str, Any] = finite_or_none({"models": models, "names": self._names(), **beside})
        return {"run_id": self.run_id, **cut, **told, **failed}

    @property
    def called(self) -> str:
        """What commands call its models, in a line: each ranker's, of several folds the first and the last."""
        names = [f"{of[0]} … :{len(of)}" if len(of) > 1 else of[0].removesuffix(":1") for of in self._names().values()]
        return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")

    def _names(self) -> dict[str, list[str]]:
        """What commands call the models of each ranker, fold by fold."""
        run, folds = self.run_id[:8], range(1, len(self.folds) + 1)
        return {name: [f"{run}:{name}:{fold}" for fold in folds] for name in self.models}


def drawn_cells(cells: Sequence[Trained], path: str | None, select_of: Callable[[str], str]) -> list[Trained]:
    """Each ranker's cell that is best on validation queries at each value of a swept parameter, in each fold.

    Args:
        select_of: the measure that a ranker is chosen by (`RunConfig.select_of`).
    """
    best: dict[tuple[str, str, int], Trained] = {}
    for one in (one for one in cells if path in one.cell.point):
        place, select = (one.ranker, repr(one.cell.point[str(path)]), one.fold), f"valid_{select_of(one.ranker)}"
        if one.result.metrics.get(select) is not None and (
            place not in best or one.result.metrics[select] > best[place].result.metrics[select]
        ):
            best[place] = one
    return list(best.values())


class PartlyFailedError(ValueError):
    """A run of which something could not be trained; everything else is in its outcome, MLflow and the report."""

    def __init__(self, outcome: RunOutcome) -> None:
        super().__init__("\n".join(map(str, outcome.failures)))
        self.outcome = outcome


def _summary(chosen: Sequence[Trained]) -> ModelSummary:
    results = [trained.result for trained in chosen]
    digest = results[0].digest if len(results) == 1 else digest_of([result.digest for result in results])
    names = sorted({metric for result in results for metric in result.metrics})
    means = {name: float(np.mean([r.metrics[name] for r in results if name in r.metrics])) for name in names}
    return ModelSummary(digest, means)


def objective_shapes(config: RunConfig, trained: Sequence[Trained]) -> dict[str, ObjectiveShape]:
    """Of each ranker that learns by terms, at every weight of its grid; with the pair cost that its models say they learned by."""
    by_nearness = {one.ranker for one in trained if any(f"pair cost {NEARNESS}" in remark for remark in one.result.remarks)}
    found: dict[str, ObjectiveShape] = {}
    for name in config.rankers:
        for point in config.cells(name):
            label = f"{name}, {point_title({p: v for p, v in point.settings.items() if 'weight' in p})}".rstrip(", ")
            if label not in found:
                found[label] = _shape(point.section.build(), near=name in by_nearness)
    return found


def _shape(ranker: ltr.Ranker, near: bool) -> ObjectiveShape:
    terms = settled(ranker.terms, NEARNESS if near else "logistic")
    scheduled = any(isinstance(term.weight, ltr.Schedule) for term in terms)
    weights = [tuple(weights_at(terms, m).tolist()) for m in range(ranker.n_iterations)] if scheduled else []
    return ObjectiveShape(tuple(term.cost for term in terms), tuple(weights))
