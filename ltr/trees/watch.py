"""When boosting stops: the measures of `ltr.LambdaMART.stop_on` on every set of validation queries, tree by tree.

The rule is that of LightGBM's callback ``early_stopping``: the first measure, set by set, that has had no new best for so many trees ends
the training, and its best iteration is kept; where none does, that of the first one. XGBoost looks at the last measure of the last set only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeGuard, TypeVar, cast

import numpy as np

from ltr.data.plain_function import AnyFunction, PlainFunction
from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats, Floats32
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure
from ltr.rankers.fair_pages import FairPages, PageMean
from ltr.rankers.training import Curve, UndefinedMeasureError, mean_measure
from ltr.trees.ensemble import Trees
from ltr.trees.shards import Shard, Shards

_Told = TypeVar("_Told")


class Stopped(Protocol):
    """What is read of the ranker that is trained, an `ltr.LambdaMART`."""

    @property
    def stopping(self) -> tuple[str | PlainFunction, ...]:
        """Names of measures that rise, and functions."""
        ...

    @property
    def n_trees(self) -> int:
        """Trees at most."""
        ...

    @property
    def patience(self) -> int:
        """Trees without a new best; 0: any number."""
        ...

    @property
    def conventions(self) -> Conventions:
        """Label rules."""
        ...

    def offset(self, features: Floats32, names: tuple[str, ...]) -> Floats:
        """Scores before the first tree, ``float64 [documents]``."""
        ...


def is_function(given: object) -> TypeGuard[AnyFunction]:
    """Whether this is a function of a user's, as it was written."""
    return callable(given) and not isinstance(given, PlainFunction | type)


def read_stopping(given: object) -> str | PlainFunction | tuple[str | PlainFunction, ...] | None:
    """`LambdaMART.stop_on` as it is kept: names of measures that rise, and functions.

    Raises:
        ValueError: for a measure of which less is better, what is neither a measure nor a function, none, or one that is named twice.
    """
    if isinstance(given, list | tuple):
        several = [read_stopping(one) for one in given]
        names = [str(one if isinstance(one, PlainFunction) else Measure.of(cast(str, one))) for one in several]
        twice = [name for name in names if names.count(name) > 1]
        if twice and len({*map(id, given)}) == len(given) and all(map(callable, given)):
            raise ValueError(
                f"LambdaMART: stop_on: two functions have the name {twice[0]}, by which their values are kept; name them differently"
            )
        if not several or len({*names}) < len(names) or any(isinstance(one, tuple) for one in several):
            raise ValueError(f"LambdaMART: stop_on={given!r}; give a measure, several different ones, or None")
        return cast(tuple[str | PlainFunction, ...], tuple(several))
    if isinstance(given, PlainFunction) or given is None:
        return given
    if is_function(given):
        return PlainFunction.of(given)
    Measure.maximised(cast(str, given))
    return cast(str, given)


@dataclass
class _Values:
    """A measure of one set of validation queries along training."""

    values: list[float]
    best: int = 0
    best_value: float = -np.inf

    def add(self, n_trees: int, value: float) -> None:
        """One more tree."""
        self.values.append(value)
        if value > self.best_value:
            self.best, self.best_value = n_trees, value


def untold(n_trees: int) -> Curve:
    """Of trees on the same queries, what the measures were after each of which is to be found out again."""
    return Curve(np.arange(1, n_trees + 1), np.full(n_trees, np.nan), np.full(n_trees, -np.inf))


class Watch:
    """Measures along training: on validation queries after every tree, the first on training queries after every tenth.

    Args:
        begun, curve: of the training that goes on.
        fair: how clicks on validation pages are counted; None as they are.

    Attributes:
        kept: the values by whose best iteration the number of trees is chosen; None without any.
    """

    def __init__(
        self,
        model: Stopped,
        data: Shard | Shards,
        valid: tuple[Queries, ...],
        begun: Trees,
        curve: Curve | None,
        fair: FairPages | None = None,
    ) -> None:
        self.model, self.data, self.valid = model, data, valid
        self.rows: list[tuple[int, float]] = []
        before: list[float] = []
        if curve is not None:
            taken = curve.iteration <= begun.n_trees
            self.rows = list(zip(curve.iteration[taken].tolist(), curve.train[taken].tolist(), strict=True))
            before = curve.valid[taken].tolist()
        several = [(k, measure) for k in range(len(valid)) for measure in model.stopping]
        self.values = {one: _Values([np.nan] * len(self.rows)) for one in several}
        self.fair: dict[tuple[int, str | PlainFunction], PageMean | None] = {
            (k, measure): fair.mean(measure, valid[k], model.conventions)
            for k, measure in several
            if fair is not None and isinstance(measure, str)
        }
        self.kept = next(iter(self.values.values()), None)
        self.scores = [begun.added_to(model.offset(queries.features, queries.names), queries.features) for queries in valid]
        if self.kept is not None and begun.n_trees:
            self._begin(begun, before)

    def _begin(self, begun: Trees, before: list[float]) -> None:
        """Takes up what the first measure was `before`, and begins with what all are now."""
        for (k, measure), own in self.values.items():
            own.best, own.best_value = begun.n_trees, self._value(k, measure)
        everything = [*self.values]
        first = self.values[everything[0]]
        first.values = before
        if self.rows and (self.rows[-1][0], before[-1]) == (begun.n_trees, -np.inf):
            self._again(begun, everything)
        elif self.rows and (self.rows[-1][0], before[-1]) == (begun.n_trees, first.best_value):
            # The curve ends where this begins: the training was interrupted, and the best may be further back.
            best = int(np.nanargmax(before))
            first.best, first.best_value = self.rows[best][0], before[best]
            if len(everything) > 1:
                self._again(begun, everything[1:])

    def _again(self, begun: Trees, which: list[tuple[int, str | PlainFunction]]) -> None:
        """What these measures of `values` were after each tree, of which a curve says nothing."""
        now, self.scores = self.scores, [self.model.offset(queries.features, queries.names) for queries in self.valid]
        for one in which:
            self.values[one].values, self.values[one].best_value = [], -np.inf
        for n_trees in range(1, begun.n_trees + 1):
            for scores, queries in zip(self.scores, self.valid, strict=True):
                scores += begun.between(n_trees - 1, n_trees).scores(queries.features)
            for one in which:
                self.values[one].add(n_trees, self._value(*one))
        self.scores = now

    def _value(self, k: int, measure: str | PlainFunction) -> float:
        if (fair := self.fair.get((k, measure))) is not None:
            return fair(self.scores[k])
        return mean_measure(measure, self.valid[k], self.scores[k], self.model.conventions)

    def seen(self, n_trees: int, tree: Trees) -> bool:
        """Measures the scores after a tree; True when it is time to stop."""
        if not self.model.stopping:
            return False
        train = self._of_training() if n_trees % 10 == 0 else np.nan
        self.rows.append((n_trees, train))
        for scores, queries in zip(self.scores, self.valid, strict=True):
            scores += tree.scores(queries.features)
        for (k, measure), own in self.values.items():
            own.add(n_trees, self._value(k, measure))
        return self.over(n_trees)

    def _of_training(self) -> float:
        """The first measure on the training queries; NaN where these have no labels that it reads, as it may be clicks that are learned from."""
        try:
            return self.data.mean(self.model.stopping[0])
        except UndefinedMeasureError:
            return np.nan

    def over(self, n_trees: int) -> bool:
        """Whether a measure has had no new best for `patience` trees after so many; the first such one chooses their number, but of all trees
        that there may be the first of all does, as it does where none stops the training."""
        for own in self.values.values():
            if 0 < self.model.patience <= n_trees - own.best:
                self.kept = own if n_trees < self.model.n_trees else self.kept
                return True
        return False

    def last(self) -> dict[str, dict[str, float]]:
        """The values now, by set and measure."""
        return self._by_name(lambda own: own.values[-1])

    def history(self) -> dict[str, dict[str, Floats]]:
        """The values along training, by set and measure."""
        return self._by_name(lambda own: np.array(own.values, np.float64))

    def _by_name(self, of: Callable[[_Values], _Told]) -> dict[str, dict[str, _Told]]:
        found: dict[str, dict[str, _Told]] = {}
        for (k, measure), own in self.values.items():
            key = str(measure if isinstance(measure, PlainFunction) else Measure.of(measure))
            found.setdefault("valid" if len(self.valid) == 1 else f"valid_{k}", {})[key] = of(own)
        return found

    def curve(self) -> Curve:
        """The first measure after each tree so far, on the first validation queries."""
        iteration, train = zip(*self.rows, strict=True) if self.rows else ((), ())
        first = next(iter(self.values.values()), None)
        valid = first.values if first is not None else [np.nan] * len(self.rows)
        return Curve(np.array(iteration, np.int64), np.array(train, np.float64), np.array(valid, np.float64))
