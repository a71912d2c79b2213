"""Drawing a ranker's parameters: who is trained next, and for how long.

Optuna (Akiba 2019) draws by ask and tell with a seeded sampler and an in-memory study, and hears of results in batches of a fixed size and
in the order of the draws, as its recipe for batch optimisation does it: its own parallel runs tell results as they come, so that the draws
depend on the clock. Successive halving (Jamieson 2016) within a batch: of all draws that have come to a length, one in so many goes on. As
training goes on exactly where it was, whoever is trained to the end is byte for byte what it would be without halving. The first draw, the
ranker as written, is trained to its end at once: it is often as good as any, there is soon something to use, and others are compared with
each other only.

    as written ── 300 trees                                                                      ─┐
    batch 1: 8 draws ── 33 trees ── best third of 8 ── 100 trees ── best third of 3 ── 300 trees ─┤ told
    batch 2: 9 draws ── 33 trees ── best third of 17, of them those of this batch ── …           ─┘ told
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.config.search_section import DIGITS, Dimension, Search, Space

_ROUNDING = 1e-9
"""Of a standard error."""


@dataclass(frozen=True)
class Wanted:
    """A draw that is to be trained: its number from 1, what was drawn, and which of the search's lengths it goes to, from 0."""

    number: int
    settings: Mapping[str, Any]
    rung: int


@dataclass(frozen=True)
class Came:
    """What came of a training.

    Attributes:
        value: on validation queries; None where it could not be trained.
        ended: it came to its end before its length: a longer training is the same.
    """

    value: float | None
    ended: bool = False


Wave = Generator[list[Wanted], Mapping[int, Came], None]
"""Gives what is to be trained at once, in its order, and takes what came of it by the number of the draw."""


def waves(search: Search, space: Space, written: Mapping[str, Any], n_rungs: int, seed: int) -> Wave:
    """A search from its beginning to its end. The first draw is the ranker as `written`, by dotted path.

    Args:
        search: how many draws, in which batches.
        space: of `search`, or the ranker's own.
        written: what the parameters of the space are where nothing is drawn.
        n_rungs: lengths that a draw is trained to, one after another.
        seed: of the draws.
    """
    draws = _Draws(search, space, seed)
    at: list[list[float]] = [[] for _ in range(n_rungs)]
    for first in range(1, search.trials + 1, search.batch):
        numbers = range(first, min(first + search.batch, search.trials + 1))
        batch = {number: written if number == 1 else draws.ask(number) for number in numbers}
        tries = {number: _Try() for number in numbers}
        whole, alive = [number for number in numbers if number == 1], [number for number in numbers if number > 1]
        for rung in range(n_rungs):
            to = dict.fromkeys(whole, n_rungs - 1) if rung == 0 else {}
            to |= dict.fromkeys(alive, rung)
            wanted = [Wanted(number, batch[number], where) for number, where in to.items() if not tries[number].ended]
            came = (yield wanted) if wanted else {}
            for number, where in to.items():
                tries[number].saw(where, came.get(number))
            alive = [number for number in alive if tries[number].values]
            at[rung] += [tries[number].value for number in alive]
            if rung < n_rungs - 1:
                alive = _going_on(alive, tries, at[rung], search.halving)
        for number in numbers:
            draws.tell(number, batch[number], tries[number].values, whole=number in (*whole, *alive))


def surely_better(values: NDArray[np.float64], written: NDArray[np.float64], standard_errors: float) -> bool:
    """Whether a draw's mean over validation queries is above that of the ranker as written by more than so many standard errors of the
    difference; ``float64 [queries]`` both, NaN where undefined. One query alone that differs is one standard error, and not above it."""
    paired = values - written
    paired = paired[~np.isnan(paired)]
    if len(paired) < 2:
        return bool(paired.sum() > 0)
    reach = standard_errors * paired.std(ddof=1) / math.sqrt(len(paired))
    return bool(paired.mean() > max(reach * (1 + _ROUNDING), 0.0))


@dataclass
class _Try:
    """A draw on its way: its values by rung, and whether it came to its end."""

    values: dict[int, float] = field(default_factory=dict)
    ended: bool = False

    def saw(self, rung: int, came: Came | None) -> None:
        """Notes what came of a rung; nothing new of a training that had ended before."""
        if came is None and self.ended:
            self.values[rung] = self.value
        elif came is None or came.value is None:
            self.values.clear()
        else:
            self.values[rung] = came.value
            self.ended = came.ended

    @property
    def value(self) -> float:
        """The last one."""
        return self.values[max(self.values)]


def _going_on(alive: Sequence[int], tries: Mapping[int, _Try], seen: Sequence[float], halving: int) -> list[int]:
    """Those of a batch that are among the best share of all that were `seen` at this length, earlier batches included."""
    best = sorted(seen, reverse=True)[: math.ceil(len(seen) / halving)]
    ordered = sorted(alive, key=lambda number: -tries[number].value)
    return sorted(number for number in ordered[: len(best)] if tries[number].value >= best[-1])


class _Draws:
    """An in-memory study of Optuna's, asked and told."""

    def __init__(self, search: Search, space: Space, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        samplers = {
            "random": lambda: optuna.samplers.RandomSampler(seed=seed),
            "tpe": lambda: optuna.samplers.TPESampler(seed=seed),
            "cmaes": lambda: optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False),
        }
        self.study = optuna.create_study(direction="maximize", sampler=samplers[search.sampler]())
        self.space = space
        self.asked: dict[int, Any] = {}

    def ask(self, number: int) -> Mapping[str, Any]:
        """The settings of a draw."""
        trial = self.asked[number] = self.study.ask()
        drawn: dict[str, Any] = {}
        for path, dimension in self.space.items():
            if all(parent in drawn and drawn[parent] in values for parent, values in dimension.when.items()):
                drawn[path] = _drawn(trial, path, dimension)
        return drawn

    def tell(self, number: int, settings: Mapping[str, Any], values: Mapping[int, float], whole: bool) -> None:
        """What came of a draw, by rung. Those that were given up are told as pruned: of less worth than whole ones, and among
        each other by how far they came."""
        from optuna.trial import TrialState, create_trial

        state = TrialState.COMPLETE if whole and values else TrialState.PRUNED
        last = values[max(values)] if state is TrialState.COMPLETE else None
        if number in self.asked:
            trial = self.asked.pop(number)
            for rung, value in values.items():
                trial.report(value, rung)
            self.study.tell(trial, last, state=state)
        elif settings and all(self.space[path].holds(value) for path, value in settings.items()):
            names = {path: name_of(self.space[path], value) for path, value in settings.items()}
            kinds = {path: distribution_of(self.space[path]) for path in settings}
            self.study.add_trial(
                create_trial(params=names, distributions=kinds, value=last, state=state, intermediate_values=dict(values))
            )


def _drawn(trial: Any, path: str, dimension: Dimension) -> Any:
    if dimension.choice is not None:
        return dimension.choice[trial.suggest_categorical(path, tuple(range(len(dimension.choice))))]
    low, high = dimension.bounds
    if dimension.whole:
        return trial.suggest_int(path, int(low), int(high), log=dimension.log)
    rounded = float(f"{trial.suggest_float(path, low, high, log=dimension.log):.{DIGITS}g}")
    return min(max(rounded, low), high)


def name_of(dimension: Dimension, value: Any) -> Any:
    """A value as Optuna knows it: a choice by its place."""
    return dimension.choice.index(value) if dimension.choice is not None else value


def distribution_of(dimension: Dimension) -> Any:
    """Optuna's distribution of a dimension; choices are numbers from 0, as its own may be plain values only."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if dimension.choice is not None:
        return CategoricalDistribution(tuple(range(len(dimension.choice))))
    low, high = dimension.bounds
    if dimension.whole:
        return IntDistribution(int(low), int(high), log=dimension.log)
    return FloatDistribution(low, high, log=dimension.log)
