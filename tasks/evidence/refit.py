"""The settings that a run chose, trained once more on all its data: the model to use after a run over folds.

scikit-learn's ``refit`` does the same after a cross-validated search. Its own rules here: the point of the grid with the best mean over the
folds' validation queries, or that of the points which the folds' searches chose; where a guarantee chooses, the point that it took on most
folds; as many trees or epochs as the folds kept on average, as there are no queries left to stop on; no test numbers, for the same reason.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE
from pydantic import Field, model_validator

import ltr
from ltr.data.queries import concatenate, in_order
from ltr.rankers.fair_pages import have_ranks
from tasks.config.run_config import RunConfig, register_evidence
from tasks.data.folds import share
from tasks.data.known_again import marks
from tasks.evidence.guarantee import Guarantee, Promise
from tasks.evidence.protocol import Evidence, Found, Gathering, asked_for, render
from tasks.records import Cell, DataError, Fold, Trained, number_of, point_title
from tasks.store.cells import CellFolder, read_curve
from tasks.store.datasets import about_queries, keep_queries, open_queries
from tasks.store.state import Noted, made_once
from tasks.tracking.description import describe_fold, describe_run, logged_digests
from tasks.training.cell import polish_was_left, result_of, train

TEMPLATE = """<h2>Trained on all data</h2>
<ul>{% for sentence in sentences %}<li>{{ sentence }}</li>{% endfor %}</ul>
"""


@dataclass(frozen=True)
class Refitted(Found):
    """Models that were trained on all data.

    Attributes:
        run_id: of the run.
        models: by ranker.
        queries: that each learned from.
        versions: registered ones, by ranker.
        promised: of rankers under a guarantee, the folds in which these settings were promised to be harmless, and all folds.
    """

    place: ClassVar[int] = 20
    run_id: str
    models: dict[str, Trained]
    queries: int
    versions: dict[str, str]
    promised: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def tags(self) -> dict[str, str]:
        from tasks.tracking.store import REFIT

        return {REFIT: json.dumps({name: trained.result.key for name, trained in self.models.items()})}

    def sentences(self) -> list[str]:
        return [self._sentence(name, trained) for name, trained in self.models.items()]

    def printed(self) -> Mapping[str, Any]:
        """By ranker, what commands call its model, the digest, the version where it was registered, and the folds in which its settings were
        promised where there is a guarantee."""
        models = {
            name: {"name": f"{self.run_id[:8]}:{name}", "digest": trained.result.digest}
            | ({"version": self.versions[name]} if name in self.versions else {})
            | ({"promised_folds": self.promised[name][0]} if name in self.promised else {})
            for name, trained in self.models.items()
        }
        return {"refit": models}

    def _sentence(self, name: str, trained: Trained) -> str:
        settings = point_title(trained.cell.point)
        version = f", version {self.versions[name]}" if name in self.versions else ""
        n, folds = self.promised.get(name, (0, 0))
        promised = (
            f"promised in {n or 'none'} of {folds} folds" if folds > 1 else "promised" if n else "not promised" if folds else ""
        )
        about = "; ".join(filter(None, (settings, promised)))
        return (
            f"{name}{f' ({about})' if about else ''} trained on all {number_of(self.queries, 'query')}: "
            f"--model {self.run_id[:8]}:{name}{version}; no queries are left to measure it on"
        )

    def section(self) -> str:
        return render(TEMPLATE, sentences=self.sentences())


class Refit(Evidence):
    """Trains the chosen settings of `rankers`, by default of the best one on all validation queries (a run with stacks names its best by half
    of them), on all data: training, validation and test queries together. ``refit: true`` asks for that; with a `name` the model becomes a
    version in MLflow's registry. `of` is the run whose choice it is: on other data than that run's nothing is trained.
    """

    key: ClassVar[str] = "refit"
    last: ClassVar[bool] = True
    rankers: list[str] = []
    name: str | None = Field(None, pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_. -]*$")
    of: str | None = Field(None, exclude_if=lambda of: of is None)

    @model_validator(mode="before")
    @classmethod
    def _true_is_enough(cls, written: Any) -> Any:
        if isinstance(written, str | int | float | list) and written is not True:
            raise ValueError("true or false, or a section with rankers and a name")
        return {} if written is True else written

    def check(self, config: RunConfig) -> None:
        config.require_ranker("refit.rankers", *self.rankers)
        if config.data.clicked_pages:
            raise ValueError(
                "refit: data.clicked_pages makes clicks of training queries and leaves the others judged: no model is trained on both"
            )
        for name in self.rankers:
            if name not in config.alone:
                raise ValueError(f"refit.rankers: {name!r} learns from the scores of others, which all data do not have")
        if self.name and len(self.rankers) > 1:
            raise ValueError(f"refit.name: {self.name!r} is one model, and refit.rankers names {len(self.rankers)}")
        if not config.alone:
            raise ValueError("refit: no ranker learns from the data's own features")

    def check_data(self, config: RunConfig, folds: tuple[Fold, ...]) -> None:
        unbiased = {way.positions for way in config.ways}
        sets = {role: open_queries(name) for role, name in folds[0].roles.items()}
        for positions in sorted(unbiased | {ltr.Unbiased("ipw").positions}):
            pages = {role: have_ranks(queries, ltr.Unbiased("ipw", positions)) for role, queries in sets.items()}
            clicks = pages["train"] and np.isin(np.nan_to_num(sets["train"].labels), (0, 1)).all()
            judged = [
                {"valid": "validation"}.get(role, role)
                for role, queries in sets.items()
                if not pages[role] or (clicks and (np.nan_to_num(queries.labels) > 1).any())
            ]
            if pages["train"] and judged:
                raise DataError(
                    f"refit: training queries are pages with clicks, and {judged[0]} queries are judged: no model is trained on both "
                    "(leave refit out)"
                )
        if self.of is None:
            return
        from tasks.tracking.runs import find_run

        before, (_, _, entries) = find_run(self.of).data_digests(), describe_run(config, folds)
        now = logged_digests(entries)
        other = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if before and other:
            raise DataError(
                f"refit: the data have changed since run {self.of[:8]} ({', '.join(other[:3])}), so its choice no longer applies; "
                "run the configuration again, and refit that run"
            )

    def gather(self, run: Gathering) -> Refitted:
        """Trains the models and notes them in MLflow."""
        run.progress.begin("training on all data")
        names = self.rankers or [_best(run)]
        self._require_choice(run, names)
        data = Fold(all_queries(run.folds[0]))
        promises = {name: own for name in names if (own := _promises(run, name))}
        models = {name: self._refit(run, name, data, promises.get(name, {})) for name in names}
        promised = {name: _promised(run, models[name], own) for name, own in promises.items()}
        versions = {}
        if self.name:
            from tasks.tracking import registry

            for name, trained in models.items():
                run_id, categories = run.tracker.run_of(trained.result.key), trained.cell.columns.categories
                model = ltr.load(CellFolder.of(trained.result.key).model)
                learned = np.unique(marks(in_order(open_queries(data.train), model.names)))
                made = registry.registered(self.name, run_id, model, categories, learned)
                versions[name] = f"{made.number} of {self.name}"
        return Refitted(run.tracker.run_id, models, about_queries(data.train).queries, versions, promised)

    def _require_choice(self, run: Gathering, names: Sequence[str]) -> None:
        """Whether the run `of` chose the same: other code may choose another point, and so may a search within a time where what it had noted of it
        is gone."""
        if self.of is None:
            return
        from tasks.tracking.runs import chosen_cells, find_run, key_of

        before = chosen_cells(find_run(self.of))
        for name in (name for name in names if name in before):
            now = [trained for trained in run.chosen if trained.ranker == name]
            for then, own in zip(before[name], now, strict=True):
                chosen = [path.split(".")[0] for path in own.cell.point]
                settings = {path: str(own.cell.section[path]) for path in chosen if path in then.params}
                other = [path for path, value in settings.items() if then.params[path] != value]
                if key_of(then) != own.result.key and other:
                    why = "its search had a time budget, and its record is gone or of another version"
                    raise DataError(
                        f"refit: {name}: run {self.of[:8]} chose {other[0]} {then.params[other[0]]}, but {settings[other[0]]} is chosen now: "
                        f"{why if run.config.budget and name in run.config.searched else 'it was trained by another version'}; "
                        "write the settings out, or run the configuration again and refit that run"
                    )

    def _refit(self, run: Gathering, ranker: str, data: Fold, promises: Mapping[int, Promise]) -> Trained:
        own, chosen = ([trained for trained in some if trained.ranker == ranker] for some in (run.cells, run.chosen))
        if promises:
            kept = {fold for fold, made in promises.items() if made.promised} or set(promises)
            titles = [point_title(trained.cell.point) for trained in chosen if trained.fold in kept]
            own, chosen = most_taken(own, titles), most_taken(chosen, titles)
        if ranker in run.config.searched:
            own = on_every_fold(chosen, run.folds, run.config.seed)
        folds = best_point(own, f"valid_{run.config.select_of(ranker)}")
        cell = refit_cell(folds, data)
        train(cell)
        result = result_of(cell)
        run.tracker.cell(cell, result, list(describe_fold(cell.data)))
        return Trained(cell, result)


register_evidence(Refit)


def _best(run: Gathering) -> str:
    """The ranker with the best mean over the chosen cells' validation queries."""
    metric = f"valid_{run.config.select_key}"

    def mean(name: str) -> float:
        return float(np.mean([t.result.metrics[metric] for t in run.chosen if t.ranker == name]))

    return max(run.config.alone, key=mean)


def _promises(run: Gathering, ranker: str) -> dict[int, Promise]:
    """By fold, what a guarantee promises of a ranker; nothing of others."""
    rules = [evidence for evidence in asked_for(run.config) if isinstance(evidence, Guarantee)]
    return next((rule.promises(run, ranker) for rule in rules if ranker in rule.guaranteed(run.config)), {})


def _promised(run: Gathering, refitted: Trained, promises: Mapping[int, Promise]) -> tuple[int, int]:
    """In how many folds the settings of a model were promised, and how many there are."""
    folds = {one.fold for one in run.chosen if one.ranker == refitted.ranker and one.cell.point == refitted.cell.point}
    return sum(made.promised for fold, made in promises.items() if fold in folds), len(promises)


def on_every_fold(chosen: Sequence[Trained], folds: Sequence[Fold], seed: int) -> list[Trained]:
    """What the folds' searches chose, each trained on every fold where it can be, on the share of its training queries that the point has:
    searches draw other points on other folds."""
    cells = [
        replace(one.cell, fold=k, data=replace(fold, train=share(fold.train, one.cell.section["train_share"], seed)), start="")
        for one in chosen
        for k, fold in enumerate(folds)
    ]
    trained = []
    for cell in cells:
        with suppress(ValueError, ArithmeticError):  # as a draw may fail on a fold, which its search tells
            train(cell)
            trained.append(Trained(cell, result_of(cell)))
    return trained


def most_taken(trained: Sequence[Trained], titles: Sequence[str]) -> list[Trained]:
    """Of one ranker's cells those of the points that were taken on most folds, of which there is a title a fold."""
    counts = Counter(titles)
    return [one for one in trained if counts[point_title(one.cell.point)] == max(counts.values())]


def best_point(trained: Sequence[Trained], metric: str) -> list[Trained]:
    """Of one ranker's cells those of the point with the best mean over the folds, the first where several tie; points that could not be trained
    on as many folds as others are left out."""
    points: dict[str, list[Trained]] = {}
    for one in trained:
        points.setdefault(point_title(one.cell.point), []).append(one)
    folds = {title: len({one.fold for one in of}) for title, of in points.items()}  # a search's choice of two folds is there twice
    fullest = [of for title, of in points.items() if folds[title] == max(folds.values())]
    return max(fullest, key=lambda of: np.mean([one.result.metrics[metric] for one in of]))


def refit_cell(folds: Sequence[Trained], data: Fold) -> Cell:
    """The cell that trains the settings of these on other data, for as many iterations as they kept on average, and polishes the ranker unless
    validation queries refused that on most folds."""
    cell = folds[0].cell
    fitted = [ltr.load(CellFolder.of(one.result.key).model) for one in folds]
    section = as_long_as(fitted, cell.section)
    if cell.section.get("polish") and (counted := fitted[0].iterations_from):
        kept = [
            _best_epoch(one) if net.best_iteration is None else net.best_iteration for one, net in zip(folds, fitted, strict=True)
        ]
        section = {**section, counted: max(1, round(float(np.mean(kept))))}
    if 2 * sum(polish_was_left(one.result) for one in folds) > len(folds):  # all data have no validation queries to refuse it
        section = {**section, "polish": None}
    return replace(cell, label=f"{cell.ranker} · all data", fold=0, section=section, data=data)


def _best_epoch(polished: Trained) -> int:
    """Where a net was polished from, which it does not know any more: its best epoch, or its last where clicks say which is the best."""
    curve = read_curve(CellFolder.of(polished.result.key).curve)
    assert curve is not None
    by_training = polished.cell.section.get("keep") == "train"
    if by_training and polished.cell.section.get("unbiased"):
        return curve.iteration[-1]
    judged = curve.train if by_training else curve.valid
    known = [(value, -iteration) for iteration, value in zip(curve.iteration, judged, strict=True) if value is not None]
    return -max(known)[1]


def as_long_as(fitted: Sequence[ltr.Ranker], section: Mapping[str, Any]) -> Mapping[str, Any]:
    """The section of these rankers with the mean of the iterations that they kept, each member of an average with its copies' own; as it is
    where none was chosen, and where parts of the data choose them again (`ltr.Average` of `folds`)."""
    section = {**section}
    if section.get("folds"):
        return section
    if isinstance(fitted[0], ltr.Average):
        kinds = range(len(section["of"]))
        members = [[m for one in fitted if isinstance(one, ltr.Average) for m in one.members[k :: len(kinds)]] for k in kinds]
        section["of"] = [as_long_as(own, of) for own, of in zip(members, section["of"], strict=True)]
        counts = [one.counts / one.counts.sum() for one in fitted if isinstance(one, ltr.Average) and one.counts is not None]
        return section | ({"weights": np.mean(counts, axis=0).tolist(), "selection": 0} if counts else {})
    if section.get("objective"):  # as it was settled on the folds, from which all data may differ in size
        settled = zip(section["objective"], Counter(one.terms for one in fitted).most_common(1)[0][0], strict=True)
        section["objective"] = [{**term, "cost": own.cost} for term, own in settled]
    if "unbiased" in section:  # as it was chosen on most folds, which all data have no validation queries to choose on
        chosen = [json.dumps(one.parameters["unbiased"], sort_keys=True) for one in fitted]
        section["unbiased"] = json.loads(Counter(chosen).most_common(1)[0][0])
    kept = [one.best_iteration for one in fitted if one.best_iteration is not None and one.watched is not None]
    if (counted := fitted[0].iterations_from) and kept:
        section[counted] = max(1, round(float(np.mean(kept))))
    return section


@task(cache_policy=NO_CACHE, name="all data", task_run_name="all data")
def all_queries(fold: Fold) -> str:
    """Training, validation and test queries as one stored data set."""
    parts = dict.fromkeys(fold.roles.values())
    return made_once(
        {"all": 1, "fold": fold.roles}, lambda: Noted((keep_queries(concatenate([open_queries(name) for name in parts])),))
    ).data[0]
