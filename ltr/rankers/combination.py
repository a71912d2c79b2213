"""The best mixture of two rankers for any measure, exactly (Burges 2010 section 7.1; Wu et al. 2010).

Their scores are mixed as (1 − α)·a + α·b, and every α there is is looked at (`ltr.rankers.line_search`). Of several systems:
`ltr.rankers.fusion`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ltr.data.arrays import floats_of, offsets_of
from ltr.data.queries import Queries, canonical
from ltr.kernels.kernel import Floats, Floats32
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import labels_of
from ltr.metrics.many import Judged
from ltr.metrics.measure import Measure
from ltr.rankers.base import Arrays, Ranker, Tick, check_data, learned
from ltr.rankers.column import LAST
from ltr.rankers.line_search import Mixtures, between, mean_of, mix_scores
from ltr.rankers.surface import Surface, linear_surface


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
        ValueError: for shapes that differ, a label below 0, offsets that do not fit, or a measure that is defined on no query.
    """
    y, a, b = (floats_of(name, array) for name, array in (("labels", labels), ("first", first), ("second", second)))
    if not y.shape == a.shape == b.shape:
        raise ValueError(f"combine: {y.shape} labels, and scores of shapes {a.shape} and {b.shape}")
    starts, measure = offsets_of(offsets, len(y)), Measure.of(measure)
    judged = Judged.of_labels(labels_of("labels", y), starts, measure, Conventions.of(conventions))
    return between(judged, a, b)


def _mixed(first: Floats32, second: Floats32, alpha: float) -> Floats:
    """`mix_scores`, exact where a document is `LAST` by one of them, beside which the other's score would be rounded away: it is below all
    that both have a score of, and above or below others of its kind by the other's score."""
    mixed = mix_scores(first, second, alpha)
    for share, one, other in ((1 - alpha, first, second), (alpha, second, first)):
        lost = (one == LAST) & (other != LAST)
        if share > 0 and lost.any():
            mixed[lost] = share * 2.0**100 * (_place(other[lost]) * 2.0**-50 - 1)
    return mixed


def _place(scores: Floats32) -> Floats:
    """The numbers of float32, counted from 0 in their order."""
    bits = scores.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits).astype(np.float64)


@dataclass(frozen=True)
class Combination(Ranker):
    """The best mixture of two rankers whose scores are the two features: (1 − α)·first + α·second. Documents that one of them has no score
    of are below all others, in the order of the other ranker.

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
            given = f"{queries.n_features}" if queries.n_features != 2 else "two with missing or infinite scores"
            raise ValueError(f"a combination mixes two finite columns of scores; given {given}")
        first, second = queries.features[:, 0], queries.features[:, 1]
        judged = Judged.of(queries, measure, self.conventions)
        found = between(judged, first.astype(np.float64), second.astype(np.float64))
        low, high, _ = found.best
        sign = -1 if measure.definition.fewer_is_better else 1
        # Crossings are those of exact numbers: of scores far apart in size, a mixture may round one of them away.
        options = [(sign * mean_of(judged, _mixed(first, second, at)), at) for at in (0.5 * (low + high), 0.0, 1.0)]
        reached = sign * options[0][0]
        value, alpha = max(options, key=lambda option: option[0])
        where = f"best in ({low:.4f}, {high:.4f})" if 0 < alpha < 1 else f"one alone; mixed at best {reached:.4f}"
        remark = f"α {alpha:.4f}: {measure.key} {sign * value:.4f}, {where}; {len(found.alphas)} crossings"
        return replace(self, alpha=alpha, names=queries.names, remarks=(remark,))

    def _scores(self, features: Floats32) -> Floats:
        assert self.alpha is not None
        return _mixed(features[:, 0], features[:, 1], self.alpha)

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
