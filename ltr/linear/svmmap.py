"""SVMmap (Yue, Finley, Radlinski & Joachims 2007): a structural SVM whose loss is 1 − AP, trained by cutting planes.

With Ψ(y) = Σ_{g,b} y_gb·(x_g − x_b)/(n⁺n⁻), a weight vector costs ½‖w‖² + C·ξ where ξ is the mean over the queries of
max_y Δ(y) − w·(Ψ(y_q) − Ψ(y)). The ranking that attains the maximum is found exactly: good and bad documents are each sorted by score, and
every bad one is placed where it gains most, which does not depend on the others (their theorem). One plane for all queries is added at a
time (Joachims 2009) until none is violated by more than `tolerance`; `solve_dual` weighs the planes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit, prange

from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats, Floats32, Ints
from ltr.linear.linear_ranker import LinearRanker, Watch, products, transposed
from ltr.metrics.measure import Measure, gains_of
from ltr.rankers.parameters import WEIGHT, Span, whole

_GAP = 1e-3
"""How closely the dual is solved, as a share of what a plane has to be violated by."""
_MOST_STEPS = 10_000_000


@njit(cache=True)
def most_violated(scores: Floats, relevant: Floats, factors: Floats) -> float:
    """Δ of the ranking that maximises Δ(y) + w·Ψ(y), and in `factors` Ψ(y_q) − Ψ(y) as a weight of each document."""
    order = np.argsort(-scores, kind="mergesort")
    good, bad = order[relevant[order] > 0], order[relevant[order] == 0]
    n_good, n_bad = len(good), len(bad)
    factors[:] = 0.0
    if n_good == 0 or n_bad == 0:
        return 0.0
    above = np.zeros(n_good, np.int64)
    for j in range(1, n_bad + 1):
        best, best_at, total = 0.0, n_good, 0.0
        for k in range(n_good, 0, -1):
            loss = (j / (j + k) - (j - 1.0) / (j + k - 1.0)) / n_good
            total += loss - 2.0 * (scores[good[k - 1]] - scores[bad[j - 1]]) / (n_good * n_bad)
            if total > best:
                best, best_at = total, k - 1
        for k in range(best_at, n_good):
            above[k] += 1
            factors[good[k]] += 2.0 / (n_good * n_bad)
            factors[bad[j - 1]] -= 2.0 / (n_good * n_bad)
    precision = 0.0
    for k in range(n_good):
        precision += (k + 1.0) / (k + 1.0 + above[k])
    return 1.0 - precision / n_good


@njit(cache=True, parallel=True)
def _planes(scores: Floats, relevant: Floats, offsets: Ints, losses: Floats, factors: Floats) -> None:
    for q in prange(len(losses)):
        a, b = offsets[q], offsets[q + 1]
        losses[q] = most_violated(scores[a:b], relevant[a:b], factors[a:b])


@dataclass(frozen=True, kw_only=True)
class SVMmap(LinearRanker):
    """A linear ranker that bounds 1 − AP by a structural SVM (Yue et al. 2007).

    Args:
        measure: ``map``, perhaps of another label source (``map:binary``).
        C: weight of the slack.
        tolerance: planes that are violated by less are not added.
        planes: cutting planes at most.
    """

    kind: ClassVar[str] = "svmmap"
    measure: str = "map"
    C: float = 100.0
    tolerance: float = 0.0001
    planes: int = 300

    spans: ClassVar[Mapping[str, Span]] = {
        "C": WEIGHT,
        "tolerance": Span(0, 1, above=True, below=True),
        "planes": whole(1, 100_000),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        measure = Measure.of(self.measure)
        if measure.name != "map" or measure.cutoff is not None:
            raise ValueError(
                f"SVMmap: measure {self.measure!r}: SVMmap optimises average precision over the whole ranking; use map or map:SOURCE"
            )

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """Average precision, of the label source that `measure` names."""
        return (Measure.of(self.measure),)

    def check(self, queries: Queries) -> None:
        """Raises ValueError where no query has both a relevant and another document."""
        super().check(queries)
        self._relevant(queries)

    def _relevant(self, queries: Queries) -> Floats:
        measure = Measure.of(self.measure)
        relevant: Floats = np.nan_to_num(gains_of(measure, queries.source(measure.source), self.conventions))
        found = np.add.reduceat((relevant > 0).astype(np.int64), queries.offsets[:-1])
        if not ((found > 0) & (found < np.diff(queries.offsets))).any():
            raise ValueError(f"SVMmap: no query has both a relevant and another document by the labels of {measure.source!r}")
        return relevant

    def learn(self, queries: Queries, features: Floats32, watch: Watch) -> tuple[Floats, tuple[str, ...]]:
        """The weights after the last plane.

        Raises:
            ValueError: where no query has both a relevant and another document.
        """
        relevant = self._relevant(queries)
        losses, factors = np.empty(queries.n_queries), np.empty(queries.n_documents)
        normals, heights = np.empty((0, features.shape[1])), np.empty(0)
        gram = np.empty((0, 0))
        weights, alphas, slack = np.zeros(features.shape[1]), np.empty(0), 0.0
        ended = ""
        for _ in range(self.planes):
            _planes(products(features, weights), relevant, queries.offsets, losses, factors)
            normal = transposed(features, factors) / queries.n_queries
            height = float(np.cumsum(losses)[-1]) / queries.n_queries
            if height - float((normal * weights).sum()) <= slack + self.tolerance:
                break
            normals, heights = np.vstack((normals, normal)), np.append(heights, height)
            beside = (normals * normal).sum(axis=1)
            gram = np.vstack((np.column_stack((gram, beside[:-1])), beside))
            alphas = np.append(alphas, 0.0)
            solve_dual(gram, heights, self.C, _GAP * self.tolerance * self.C, alphas)
            weights = (alphas[:, None] * normals).sum(axis=0)
            slack = max(0.0, float((heights - (normals * weights).sum(axis=1)).max()))
            watch(weights)
        else:
            ended = f"; stopped by planes={self.planes}, not by tolerance={self.tolerance:g}"
        if not weights.any():
            raise ValueError(
                f"SVMmap: all weights are 0; no plane is violated by more than tolerance={self.tolerance:g}, or C={self.C:g} is too small"
            )
        return weights, (f"{len(heights)} planes; slack {slack:.4f}{ended}",)


@njit(cache=True)
def solve_dual(gram: Floats, heights: Floats, largest: float, gap: float, dual: Floats) -> None:
    """max heights·α − ½ αᵀ·gram·α with α ≥ 0 and Σ α ≤ largest, to within `gap` of the maximum: from those in `dual`, which is written to.

    Sequential minimal optimisation (Platt 1998), pairs by second order (Fan, Chen & Lin 2005): what is left of `largest` is one more α,
    which has no gradient, and each step moves weight from one of them to that of the steepest gradient. scipy's SLSQP takes the cube of the
    number of planes for a step, minutes where C is large.
    """
    n = len(heights)
    alphas, falls = np.zeros(n + 1), np.zeros(n + 1)
    alphas[n] = largest
    for k in range(n):
        alphas[k] = dual[k]
        alphas[n] -= dual[k]
    alphas[n] = max(alphas[n], 0.0)
    for k in range(n):
        falls[k] = -heights[k]
        for j in range(n):
            falls[k] += gram[k, j] * alphas[j]
    for _ in range(_MOST_STEPS):
        to = 0
        for k in range(1, n + 1):
            if falls[k] < falls[to]:
                to = k
        away, best, moved, open_gap = -1, 0.0, 0.0, 0.0
        own = gram[to, to] if to < n else 0.0
        for k in range(n + 1):
            steeper = falls[k] - falls[to]
            if alphas[k] <= 0.0 or steeper <= 0.0:
                continue
            open_gap += alphas[k] * steeper
            curvature = own
            if k < n:
                curvature += gram[k, k] - (2.0 * gram[to, k] if to < n else 0.0)
            step = min(steeper / curvature, alphas[k]) if curvature > 0.0 else alphas[k]
            gain = step * (steeper - 0.5 * step * curvature)
            if gain > best:
                away, best, moved = k, gain, step
        if open_gap <= gap or away < 0:
            break
        alphas[to] += moved
        alphas[away] -= moved
        for k in range(n):
            falls[k] += moved * ((gram[k, to] if to < n else 0.0) - (gram[k, away] if away < n else 0.0))
    for k in range(n):
        dual[k] = alphas[k]
