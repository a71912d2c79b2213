"""Searches of one run: every ranker whose parameters are drawn, on every fold, side by side.

All searches take their next wave at once, so that workers are busy; a wave is told when all of it is trained. What is trained, and in
which order, is so decided by the configuration and its seed alone: a time (`budget`) only says where in that order it ends, and where it
ended is kept.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from time import monotonic

from flows.cells import AS_WRITTEN, cell_at, label_of, say_what_goes_on, train_all
from tasks.config.run_config import RunConfig
from tasks.evidence.drawing import title_of
from tasks.evidence.protocol import Evidence, asked_for
from tasks.records import Budget, Cell, CellResult, Failure, Fold, Look, Progress, Searched, Trained, Trial, point_title, time_of
from tasks.store.budgets import read_budget, write_budget
from tasks.store.cells import CellFolder, cell_key, read_curve
from tasks.store.state import core_digest, digest_of
from tasks.tracking.description import describe_fold
from tasks.tracking.store import BUDGET, SEARCHED
from tasks.tracking.tracker import Tracker
from tasks.training.search import Came, Wanted, Wave, waves


@dataclass(frozen=True)
class Searches:
    """What searches came to.

    Attributes:
        cells: of each draw the one that was trained longest, in the order of rankers, folds and draws.
        searches: every draw; `budget`: how far they got in their time, where they had one.
        failures: rankers of which no draw could be trained on some fold.
    """

    cells: tuple[Trained, ...] = ()
    searches: tuple[Searched, ...] = ()
    budget: Budget | None = None
    failures: tuple[Failure, ...] = ()


def search(config: RunConfig, folds: tuple[Fold, ...], tracker: Tracker, fresh: bool, progress: Progress) -> Searches:
    """Searches for every ranker that asks for it, and notes each draw in MLflow as it was trained longest. Draws that were given up have no
    model there, but for the best of all, which may be one whose rivals lost as they went on, and where evidence may choose them.
    """
    if not config.searched:
        return Searches()
    searches = [_Search(config, name, fold, folds) for name in config.searched for fold in range(len(folds))]
    clock = Clock(config, folds, fresh, len(searches), tracker.budget)
    progress.begin("searching")
    while any(one.wanted for one in searches):
        most = max(len(one.wanted) for one in searches)
        wave = [(one, one.wanted[k]) for k in range(most) for one in searches if k < len(one.wanted)]
        _train(config, wave, fresh, clock, progress)
        if clock.ended:
            break
        for one in searches:
            one.go_on()
            _note(config, one, tracker)
    if clock.ended:
        clock.reserve = None
        _train(config, [(one, last) for one in searches if (last := one.unfinished)], fresh, clock, progress)
        for one in searches:
            one.wanted = []
            _note(config, one, tracker)
    clock.note(complete=not clock.ended)
    if clock.budget is not None:
        tracker.say({SEARCHED: clock.key, BUDGET: json.dumps(asdict(clock.budget))})
    for one in searches:
        if one.longest:
            _note_draw(one, one.best, tracker, True)
    return Searches(
        tuple(one.longest[number] for one in searches for number in sorted(one.longest)),
        tuple(Searched(one.ranker, one.fold, tuple(one.trials[number] for number in sorted(one.trials))) for one in searches),
        clock.budget,
        tuple(Failure(one.name, f"no trial could be trained: {one.fault}") for one in searches if not one.longest),
    )


def _note(config: RunConfig, one: "_Search", tracker: Tracker) -> None:
    """Notes in MLflow what will not be trained any further."""
    free = any(type(evidence).choose is not Evidence.choose for evidence in asked_for(config))
    for number in one.decided():
        _note_draw(one, number, tracker, free or one.trials[number].whole)


def _note_draw(one: "_Search", number: int, tracker: Tracker, model: bool) -> None:
    """A draw as it was trained longest, with its model or without."""
    trained = one.longest[number]
    tracker.cell(trained.cell, trained.result, list(describe_fold(trained.cell.data)), {"trial": str(number)}, model)


def _train(config: RunConfig, wave: Sequence[tuple["_Search", Wanted]], fresh: bool, clock: "Clock", progress: Progress) -> None:
    """Trains draws of several searches in their order. Cells of two searches may be the same (two names of one ranker): both hear of it."""
    cells: list[Cell] = []
    of: dict[int, tuple[_Search, Wanted]] = {}
    for one, wanted in wave:
        try:
            cell = one.cell(wanted)
        except ValueError as error:
            one.failed(wanted, error)
            progress.done(f"{one.name} · trial {wanted.number}: {error}")
        else:
            cells.append(cell)
            of[id(cell)] = (one, wanted)

    there = set() if fresh else {key for cell in cells if CellFolder.of(key := cell_key(cell)).is_finished}
    if not fresh:
        say_what_goes_on(config, cells, there, progress)

    def finished(cell: Cell, result: CellResult) -> None:
        one, wanted = of[id(cell)]
        one.finished(wanted, Trained(cell, result))
        if clock.reserve is not None:
            clock.reserve[one.name] = one.to_finish
        clock.note()
        progress.done(told(cell, result, config.select_of(one.ranker), result.key in there) + clock.left)

    def failed(cell: Cell, error: Exception) -> None:
        one, wanted = of[id(cell)]
        one.failed(wanted, error)
        progress.done(f"{cell.label}: {error}")

    train_all(config, cells, fresh, finished, failed, clock.more)


def told(cell: Cell, result: CellResult, select: str, found: bool) -> str:
    """A cell's line on the terminal."""
    value = result.metrics.get(f"valid_{select}")
    shown = "undefined" if value is None else f"{value:.4f}"
    remarks = "; ".join(("found" if found else f"{result.seconds:.1f} s", *result.remarks))
    return f"{cell.label}: validation {title_of(select)} {shown} ({remarks})"


class _Search:
    """The search of one ranker on one fold."""

    def __init__(self, config: RunConfig, ranker: str, fold: int, folds: tuple[Fold, ...]) -> None:
        self.config, self.ranker, self.fold, self.folds = config, ranker, fold, folds
        self.name = label_of(ranker, "", fold if len(folds) > 1 else None)
        self.select = f"valid_{config.select_of(ranker)}"
        self.lengths = config.lengths(ranker)
        self.longest: dict[int, Trained] = {}
        self.trials: dict[int, Trial] = {}
        self.fault = ""
        self._came: dict[int, Came] = {}
        self._noted: set[int] = set()
        section = config.rankers[ranker]
        assert section.search is not None
        self._waves: Wave = waves(section.search, section.space, section.settings, len(self.lengths), config.seed)
        self.wanted: list[Wanted] = next(self._waves)

    def go_on(self) -> None:
        """Tells what came of the last wave, and hears what is wanted next: nothing, at the end."""
        if not self.wanted:
            return
        try:
            self.wanted = self._waves.send(self._came)
        except StopIteration:
            self.wanted = []
        self._came = {}

    def cell(self, wanted: Wanted) -> Cell:
        """The cell that trains a draw to its next length, from where it is.

        Raises:
            ValueError: for parameters that do not go together.
        """
        length, whole = self.lengths[wanted.rung], self.lengths[-1]
        point = self.config.point(self.ranker, wanted.settings, length)
        if length != whole:
            point = replace(point, settings={**point.settings, str(point.section.core.iterations_from): length})
        cell = cell_at(self.config, self.ranker, point, self.fold, self.folds)
        drawn = AS_WRITTEN if wanted.number == 1 else f"trial {wanted.number}: {point_title(wanted.settings)}"
        cut = f" ({length} of {whole})" if length != whole else ""
        label = label_of(self.ranker, f"{drawn}{cut}", self.fold if len(self.folds) > 1 else None)
        before = self.longest.get(wanted.number)
        return replace(cell, label=label, start=before.result.key if before else "", goes_on=length != whole)

    def finished(self, wanted: Wanted, trained: Trained) -> None:
        """A draw was trained to its next length."""
        value = trained.result.metrics.get(self.select)
        if value is None:
            key = self.select.removeprefix("valid_")
            raise ValueError(f"{key} is undefined on every validation query")
        length = self.lengths[wanted.rung]
        whole = wanted.rung == len(self.lengths) - 1
        ended = whole or self._stopped(trained.result.key, length)
        self._came[wanted.number] = Came(value, ended)
        self.longest[wanted.number] = trained
        so_far = self.trials.get(wanted.number, Trial(wanted.number, wanted.settings, (), False, 0.0))
        self.trials[wanted.number] = replace(
            so_far,
            looks=(*so_far.looks, Look(length or 0, value)),
            whole=ended,
            seconds=round(so_far.seconds + trained.result.seconds, 3),
            key=trained.result.key,
        )

    def _stopped(self, key: str, length: int | None) -> bool:
        """Whether training came to its end before its length."""
        curve = read_curve(CellFolder.of(key).curve)
        return curve is not None and length is not None and bool(curve.iteration) and curve.iteration[-1] < length

    def failed(self, wanted: Wanted, error: Exception) -> None:
        """A draw could not be trained: it is told as worse than all others."""
        self.fault = self.fault or str(error)
        self._came[wanted.number] = Came(None)
        so_far = self.trials.get(wanted.number, Trial(wanted.number, wanted.settings, (), False, 0.0))
        self.trials[wanted.number] = replace(so_far, fault=str(error))

    @property
    def best(self) -> int:
        """The draw with the highest validation value, the first where several tie; at least one could be trained."""
        return max(sorted(self.longest), key=lambda number: self.trials[number].value or 0.0)

    @property
    def unfinished(self) -> Wanted | None:
        """What trains the best draw but the first, which has its end behind it, to its own; None where it is there, or there is none."""
        drawn = [number for number in sorted(self.longest) if number > 1 or not self.trials[number].whole]
        number = max(drawn, key=lambda number: self.trials[number].value or 0.0, default=None)
        if number is None or self.trials[number].whole:
            return None
        return Wanted(number, self.trials[number].settings, len(self.lengths) - 1)

    @property
    def to_finish(self) -> float:
        """Seconds that `unfinished` will about take."""
        last = self.unfinished
        if last is None:
            return 0.0
        trial, whole = self.trials[last.number], self.lengths[-1]
        return trial.seconds * ((whole or 0) / max(trial.looks[-1].iterations, 1) - 1)

    def decided(self) -> list[int]:
        """Draws that will not be trained any further, each once."""
        open_still = {wanted.number for wanted in self.wanted}
        found = [number for number in sorted(self.longest) if number not in open_still | self._noted]
        self._noted |= set(found)
        return found


@dataclass
class Clock:
    """The time of a run's searches. Where a run was ended by it before, it ends at the same cell again, whatever else is asked of its models
    (`lambdaflow refit` is such a run).

    Attributes:
        ended: no other draw is trained, but the best of each search to its end.
        reserve: seconds that this will take, by search; None once it is under way.
    """

    config: RunConfig
    folds: tuple[Fold, ...]
    fresh: bool
    least: int
    """Cells that are trained whatever the time: one a search. So are those that a run that was killed had begun: they are found."""
    noted: Callable[[str, bool], Budget | None] = lambda key, of_this_run: None
    """How far this very run got, or the latest that searched the same, as MLflow has it: written from whichever folder, by whoever came to the end."""
    ended: bool = False
    cells: int = 0
    reserve: dict[str, float] | None = field(default_factory=dict)
    began: float = field(default_factory=lambda: monotonic())

    def __post_init__(self) -> None:
        self.key = digest_of([self.config.training_digest, [fold.roles for fold in self.folds], core_digest()])
        self.before = None
        if not self.fresh and self.config.budget is not None:
            here, self.before = read_budget(self.key), self.noted(self.key, True)
            if self.before is None and (here is None or here.ended or here.complete):
                self.before = self.noted(self.key, False)
            self.before = self.before or here
        self._kept: Budget | None = None

    @property
    def is_over(self) -> bool:
        """Whether an earlier run came to the end, of the time or of all draws."""
        return self.before is not None and (self.before.ended or self.before.complete)

    @property
    def used(self) -> float:
        """Seconds, those of an interrupted run before this one included."""
        if self.before is not None and self.is_over:
            return self.before.used
        return monotonic() - self.began + (self.before.used if self.before else 0.0)

    @property
    def left(self) -> str:
        """What is left of the time, in words; nothing where it is not limited, or was over in an earlier run."""
        if self.config.budget is None or self.is_over:
            return ""
        return f"; {time_of(max(self.config.budget - self.used, 0.0))} of {time_of(self.config.budget)} left"

    def more(self) -> bool:
        """Whether another cell may be begun, which is then counted; those that finish the best are not."""
        if self.reserve is None:
            return True
        if self.config.budget is not None:
            needed = self.used + sum(self.reserve.values())
            over = bool(self.before and self.before.ended) or needed >= self.config.budget
            if self.ended or (over and self.cells >= max(self.least, self.before.cells if self.before else 0)):
                self.ended = True
                return False
        self.cells += 1
        return True

    def note(self, complete: bool = False) -> None:
        """Keeps how far it is, or that all of it is done."""
        if self.config.budget is not None and not self.is_over:
            cells = max(self.cells, self.before.cells if self.before else 0)
            self._kept = Budget(self.config.budget, round(self.used, 1), cells, self.ended, complete)
            write_budget(self.key, self._kept)

    @property
    def budget(self) -> Budget | None:
        """How far the searches got; None where their time was not limited."""
        if self.config.budget is None:
            return None
        kept = self.before if self.is_over else self._kept
        used = round(self.used, 1) if kept is None else kept.used
        return Budget(self.config.budget, used, self.cells, self.ended, kept is not None and kept.complete)
