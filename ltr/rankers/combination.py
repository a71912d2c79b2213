"""The best mixture of two rankers for any measure, exactly (Burges 2010 section 7.1; Wu et al. 2010).

The scores (1 − α)·a + α·b change their order only where two documents of a query cross, at α = d_a/(d_a − d_b) for score differences
d_a and d_b of opposite sign. Between two crossings no measure changes, so its mean over the queries is a step function of α with
finitely many steps: all of them are computed, query by query, and added up.
"""

import itertools
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ltr.data.queries import Queries, canonical
from ltr.kernels.kernel import Floats, Floats32, Ints
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import evaluate
from ltr.metrics.measure import Measure, fewer_is_better
from ltr.rankers.base import Arrays, Ranker, Tick, check_data, learned
from ltr.rankers.surface import Surface, linear_surface


@dataclass(frozen=True)
class Mixtures:
    """A measure as a function of α in (0, 1).

    Attributes:
        alphas: ``float64 [crossings]``, rising: where the mean may change.
        values: ``float64 [crossings + 1]``, the mean in the open intervals between 0, `alphas` and 1.
        ends: the mean of the first ranker alone and of the second.
        measure: key of the measure.
    """

    alphas: Floats
    values: Floats
    ends: tuple[float, float]
    measure: str

    @property
    def best(self) -> tuple[float, float, float]:
        """The interval of α with the best mean, the longest if there are several, and that mean: its ends, then the value."""
        edges = np.concatenate(([0.0], self.alphas, [1.0]))
        worth = -self.values if fewer_is_better(self.measure) else self.values
        equals = np.flatnonzero(worth >= worth.max() - 1e-12)
        k = equals[np.argmax(np.diff(edges)[equals])]
        return float(edges[k]), float(edges[k + 1]), float(self.values[k])


def mix_scores(first: ArrayLike, second: ArrayLike, alpha: float) -> Floats:
    """(1 − α)·first + α·second."""
    return (1 - alpha) * np.asarray(first, np.float64) + alpha * np.asarray(second, np.float64)


def combine(
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    offsets: ArrayLike,
    measure: str | Measure,
    conventions: Conventions | None = None,
) -> Mixtures:
    """Every mixture of two rankers' scores.

    Args:
        labels: of the measure's source, ``[documents]``.
        first, second: scores ``[documents]``, finite.
        offsets: ``[queries + 1]``.

    Raises:
        ValueError: for shapes that differ, or a measure that is defined on no query.
    """
    y, a, b = (np.asarray(array, np.float64) for array in (labels, first, second))
    starts, measure = np.asarray(offsets, np.int64), Measure.of(measure)
    if not y.shape == a.shape == b.shape:
        raise ValueError(f"combine: {y.shape} labels, and scores of shapes {a.shape} and {b.shape}")
    ends = [_mean(_values(y, scores, starts, measure, conventions)) for scores in (a, b)]
    alphas, steps, base, defined = [], [], 0.0, 0
    for begin, end in itertools.pairwise(starts):
        crossings = _crossings(a[begin:end], b[begin:end])
        middles = 0.5 * (np.append(0.0, crossings) + np.append(crossings, 1.0))
        mixtures = mix_scores(a[begin:end], b[begin:end], middles[:, None])
        tiled = np.arange(len(middles) + 1) * (end - begin)
        values = _values(np.tile(y[begin:end], len(middles)), mixtures.ravel(), tiled, measure, conventions)
        if not np.isnan(values[0]):
            defined += 1
            base += values[0]
            alphas.append(crossings)
            steps.append(np.diff(values))
    at, step = np.concatenate(alphas), np.concatenate(steps)
    order = np.argsort(at, kind="stable")
    distinct, places = np.unique(at[order], return_index=True)
    sums = np.add.reduceat(step[order], places) if len(places) else step
    return Mixtures(distinct, (base + np.append(0.0, np.cumsum(sums))) / defined, (ends[0], ends[1]), measure.key)


@dataclass(frozen=True)
class Combination(Ranker):
    """The best mixture of two rankers whose scores are the two features: (1 − α)·first + α·second.

    Args:
        measure: to mix for.
        conventions: label rules.
        alpha: once fitted, the middle of the interval where the measure is best; 0 or 1 where one ranker alone is better.
    """

    kind: ClassVar[str] = "combination"
    complete_features: ClassVar[bool] = True
    n_inputs: ClassVar[int | None] = 2
    measure: str = "ndcg_10"
    alpha: float | None = learned(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        Measure.of(self.measure)

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """A fitted copy; validation queries are not used.

        Raises:
            ValueError: unless there are two features, both finite.
        """
        check_data(self, queries, valid)
        queries, measure = canonical(queries), Measure.of(self.measure)
        if queries.n_features != 2 or not np.isfinite(queries.features).all():
            raise ValueError(f"a combination mixes two finite columns of scores; given {queries.n_features}")
        first, second = queries.features.T.astype(np.float64)
        found = combine(queries.source(measure.source), first, second, queries.offsets, measure, self.conventions)
        low, high, best = found.best
        sign = -1 if measure.definition.fewer_is_better else 1
        options = [(sign * best, 0.5 * (low + high)), (sign * found.ends[0], 0.0), (sign * found.ends[1], 1.0)]
        value, alpha = max(options, key=lambda option: option[0])
        remark = f"α {alpha:.4f}: {measure.key} {sign * value:.4f}, best in ({low:.4f}, {high:.4f}); {len(found.alphas)} crossings"
        return replace(self, alpha=alpha, names=queries.names, remarks=(remark,))

    def _scores(self, features: Floats32) -> Floats:
        assert self.alpha is not None
        return mix_scores(features[:, 0], features[:, 1], self.alpha)

    def _surface(self, features: Floats32) -> Surface:
        assert self.alpha is not None
        return linear_surface(np.array([1 - self.alpha, self.alpha]), features)

    def _learned_arrays(self) -> Arrays:
        return {"alpha": np.array([self.alpha])}

    def _with_arrays(self, arrays: Arrays) -> Self:
        alpha = arrays["alpha"]
        if alpha.shape != (1,) or alpha.dtype != np.float64 or not 0 <= alpha[0] <= 1 or len(self.names) != 2:
            raise ValueError(f"alpha {alpha} and {len(self.names)} features; one number in [0, 1] mixes two")
        return replace(self, alpha=float(alpha[0]))

    @property
    def export_form(self) -> str | None:
        """Weights of the two scores."""
        return "linear"

    @property
    def linear_weights(self) -> Floats | None:
        """1 − α and α; None before `fit`."""
        return None if self.alpha is None else np.array([1 - self.alpha, self.alpha])

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """The measure it mixes for."""
        return (Measure.of(self.measure),)


def _crossings(a: Floats, b: Floats) -> Floats:
    """The values of α in (0, 1) at which two documents of a query change places, rising."""
    i, j = np.triu_indices(len(a), 1)
    of_first, of_second = a[i] - a[j], b[i] - b[j]
    cross = of_first * of_second < 0
    alphas = np.unique(of_first[cross] / (of_first[cross] - of_second[cross]))
    return alphas[(alphas > 0) & (alphas < 1)]


def _values(
    labels: Floats,
    scores: Floats,
    offsets: Ints,
    measure: Measure,
    conventions: Conventions | None,
) -> Floats:
    return evaluate({"label": labels, measure.source: labels}, scores, offsets, [measure], conventions)[measure.key]


def _mean(values: Floats) -> float:
    if np.isnan(values).all():
        raise ValueError("combine: the measure is undefined on every query")
    return float(np.nanmean(values))
