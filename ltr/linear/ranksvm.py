"""RankSVM (Joachims 2002) in the primal, by Newton's method (Chapelle & Keerthi 2010): ½‖w‖² + C·Σ max(0, 1 − w·(x_i − x_j))² over the
pairs of a query with label i > label j.

Other implementations train on explicit differences of pairs, n² of them. Here pairs are visited but not stored: a query's loss and its
derivative by each score are sums over pairs of two numbers. The loss is piecewise quadratic, so that a handful of steps with its exact
Hessian reach the minimum, for small C and large; where a large C meets data that can be separated, these steps end far from it, and steps as
long as the objective falls go on (Keerthi & DeCoste 2005). The Hessian takes features² operations per document, and as many as there are
features per document and label (`_hessian`), but none per pair and feature; it is stored sixteen times, which is little for up to a thousand
features or so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ltr.data.queries import Queries, has_pairs
from ltr.kernels.kernel import Floats, Floats32, Ints
from ltr.kernels.ranking import by_score
from ltr.linear.linear_ranker import LinearRanker, Watch, products, transposed
from ltr.rankers.parameters import WEIGHT, Span, whole

_PARTS = 16
"""Partial sums over queries that are added up one after another: the same bits for any number of threads."""
_QUERIES = 16
"""Queries whose features are laid out at a time."""
_RADIUS = {"initial_trust_radius": 1e9, "max_trust_radius": 1e18}
"""A Newton step is taken whole: the loss is convex and piecewise quadratic."""
_NEAR = 1e-6
"""Share of the objective that another step would take off, as the Hessian foretells it, at the minimum."""
_RIDGE = 1e-12
"""Share of the Hessian's trace that is added to its diagonal, so that one that is singular up to rounding (a feature twice, with a large
C) can still be factorised."""


@njit(cache=True, parallel=True)
def _hinge(scores: Floats, offsets: Ints, lower: Ints, values: Floats, factors: Floats) -> None:
    """Σ max(0, 1 − s_i + s_j)² of each query, and its derivative by each score; documents are sorted by label, descending, and those of a
    lower label than i begin at ``lower[i]``."""
    for q in prange(len(values)):
        last, total = offsets[q + 1], 0.0
        factors[offsets[q] : last] = 0.0
        for i in range(offsets[q], last):
            short, slope = 1.0 - scores[i], 0.0
            for j in range(np.uint64(lower[i]), np.uint64(last)):
                room = max(short + scores[j], 0.0)
                total += room * room
                slope += room
                factors[j] += 2.0 * room
            factors[i] -= 2.0 * slope
        values[q] = total


@njit(cache=True)
def _differences(features: Floats, scores: Floats, lower: Ints, sums: Floats) -> None:
    """sums[i] = Σ (x_i − x_j) over the pairs of document i that cost, ``float64 [documents, features]``, for one query.

    A pair costs something where the upper score is less than 1 above the lower one. So when the documents of a label are visited by
    descending score, their partners of lower label are a growing prefix of the whole order; by ascending score, so are those of higher
    label. Every partner is added once per label.
    """
    n, n_features, order, running = len(scores), np.uint64(features.shape[1]), by_score(scores), np.empty(features.shape[1])
    first = 0
    while first < n:
        end = lower[first]
        for upwards in range(2):
            running[:], count, at = 0.0, 0, 0
            for r in range(n if (first if upwards else n - end) > 0 else 0):
                own = order[n - 1 - r if upwards else r]
                if not first <= own < end:
                    continue
                while at < n:
                    other = order[n - 1 - at if upwards else at]
                    gap = scores[other] - scores[own] if upwards else scores[own] - scores[other]
                    if not gap < 1.0:
                        break
                    if other < first if upwards else other >= end:
                        for k in range(n_features):
                            running[k] += features[other, k]
                        count += 1
                    at += 1
                for k in range(n_features):
                    sums[own, k] += count * features[own, k] - running[k]
        first = end


@njit(cache=True, fastmath={"contract"}, forceinline=True)
def _add_products(features: Floats, sums: Floats, part: Floats) -> None:
    """part += Σ x·sumᵀ, its upper triangle, four documents and two of its rows at a time: both are even."""
    n_features, two = np.uint64(len(part)), np.uint64(2)
    for d in range(np.uint64(0), np.uint64(len(features)), np.uint64(4)):
        e, f, g = d + np.uint64(1), d + two, d + np.uint64(3)
        for k in range(np.uint64(0), n_features, two):
            m = k + np.uint64(1)
            x, y, z, u = features[d, k], features[e, k], features[f, k], features[g, k]
            other_x, other_y, other_z, other_u = features[d, m], features[e, m], features[f, m], features[g, m]
            for l in range(k, n_features):
                p, q, r, t = sums[d, l], sums[e, l], sums[f, l], sums[g, l]
                part[k, l] += (x * p + y * q) + (z * r + u * t)
                part[m, l] += (other_x * p + other_y * q) + (other_z * r + other_u * t)


@njit(cache=True)
def _curvature_of(first: int, last: int, features: Floats32, scores: Floats, offsets: Ints, lower: Ints, part: Floats) -> None:
    """`_hessian` of the queries from `first` to before `last`."""
    part[:] = 0.0
    for begin in range(first, last, _QUERIES):
        end = min(begin + _QUERIES, last)
        start, stop = offsets[begin], offsets[end]
        n = (stop - start + 3) // 4 * 4
        own, sums = np.zeros((n, len(part))), np.zeros((n, len(part)))
        for d in range(stop - start):
            for f in range(features.shape[1]):
                own[d, f] = features[start + d, f]
        for q in range(begin, end):
            a, b = offsets[q] - start, offsets[q + 1] - start
            _differences(own[a:b], scores[start + a : start + b], lower[start + a : start + b] - (start + a), sums[a:b])
        _add_products(own, sums, part)


@njit(cache=True, parallel=True)
def _hessian(features: Floats32, scores: Floats, offsets: Ints, lower: Ints, parts: Floats) -> None:
    """The upper triangle of Σ (x_i − x_j)(x_i − x_j)ᵀ over the pairs that cost something, in parts of neighbouring queries, a column wider
    where the number of features is odd. With S the sums of `_differences` it is Xᵀ·S, so that no operation is per pair and feature."""
    n_queries = len(offsets) - 1
    for block in prange(len(parts)):
        first, last = n_queries * block // len(parts), n_queries * (block + 1) // len(parts)
        _curvature_of(first, last, features, scores, offsets, lower, parts[block])


def _by_label(queries: Queries) -> tuple[NDArray[np.intp], Ints, Ints]:
    """Rows of the judged documents of queries with two labels, by query and falling label; offsets of these queries; and for each
    document the position of the first of its query with a lower label."""
    of_query = queries.of_query
    order = np.lexsort((-queries.labels, of_query))
    order = order[~np.isnan(queries.labels[order])]
    different = np.flatnonzero((np.diff(queries.labels[order]) != 0) & (np.diff(of_query[order]) == 0))
    order = order[np.isin(of_query[order], of_query[order][different])]
    labels, groups = queries.labels[order], of_query[order]
    offsets = np.append(np.flatnonzero(np.diff(groups, prepend=-1)), len(groups))
    levels = np.append(np.flatnonzero((np.diff(labels, prepend=np.nan) != 0) | (np.diff(groups, prepend=-1) != 0)), len(groups))
    level = np.searchsorted(levels, np.arange(len(order)), side="right")
    return order, offsets, levels[level]


def _farther(
    value: Callable[[Floats], tuple[float, Floats]], hessian: Callable[[Floats], Floats], weights: Floats, steps: int
) -> tuple[Floats, int, bool]:
    """Newton's method from `weights` on, with steps as long as the objective falls along them: where it is led, after how many steps, `steps` at
    most, and whether it ended there by itself."""
    from scipy import linalg, optimize

    for taken in range(steps + 1):
        cost, slope = value(weights)
        if 0.5 * (slope * slope).sum() <= _NEAR * cost:  # no Hessian is less than the identity
            return weights, taken, True
        direction = -linalg.cho_solve(linalg.cho_factor(hessian(weights)), slope)

        def rise(step: float, here: Floats = weights, direction: Floats = direction) -> float:
            return float((value(here + step * direction)[1] * direction).sum())

        first, far = rise(0.0), 1.0
        if -0.5 * first <= _NEAR * cost:
            return weights, taken, True
        if taken == steps:
            break
        while rise(far) < 0.0:  # the objective is strictly convex: it rises somewhere
            far *= 2.0
        reached = weights + float(optimize.brentq(rise, 0.0, far, rtol=1e-9)) * direction
        if not value(reached)[0] < cost:  # what is left is rounding
            return weights, taken, True
        weights = reached
    return weights, steps, False


@dataclass(frozen=True, kw_only=True)
class RankSVM(LinearRanker):
    """A linear RankSVM with squared hinge loss. With more than 64 features its last bits are those of one BLAS thread, which runs set.

    Args:
        C: of the pairs' loss.
        iterations: of Newton's method at most.
    """

    kind: ClassVar[str] = "ranksvm"
    C: float = 0.01
    iterations: int = 100

    spans: ClassVar[Mapping[str, Span]] = {"C": WEIGHT, "iterations": whole(1)}

    def check(self, queries: Queries) -> None:
        """Raises ValueError where no query has documents of different labels."""
        super().check(queries)
        if not has_pairs(queries):
            raise ValueError("RankSVM: no query has documents of different labels")

    def learn(self, queries: Queries, features: Floats32, watch: Watch) -> tuple[Floats, tuple[str, ...]]:
        """The minimum of the objective, by Newton's method from w = 0.

        Raises:
            ValueError: where no query has documents of different labels.
        """
        self.check(queries)
        order, offsets, lower = _by_label(queries)
        features = features[order]
        values, factors = np.empty(len(offsets) - 1), np.empty(len(order))
        n_features = features.shape[1]
        parts = np.empty((_PARTS, n_features + n_features % 2, n_features + n_features % 2))

        def value(w: Floats) -> tuple[float, Floats]:
            _hinge(products(features, w), offsets, lower, values, factors)
            return 0.5 * float((w * w).sum()) + self.C * float(np.cumsum(values)[-1]), w + self.C * transposed(features, factors)

        def hessian(w: Floats) -> Floats:
            _hessian(features, products(features, w), offsets, lower, parts)
            upper = 2.0 * self.C * np.add.reduce(parts)[:n_features, :n_features]
            whole: Floats = np.triu(upper) + np.triu(upper, 1).T + (1.0 + _RIDGE * np.trace(upper)) * np.eye(len(w))
            return whole

        from scipy import optimize

        start = np.zeros(n_features)
        steepest = float(np.sqrt((value(start)[1] ** 2).sum()))
        options: dict[str, float] = {"maxiter": self.iterations, "gtol": 1e-5 * steepest, **_RADIUS}
        found = optimize.minimize(value, start, jac=True, hess=hessian, method="dogleg", options=options)
        weights, more, ended = _farther(value, hessian, np.asarray(found.x, np.float64), self.iterations - found.nit)
        watch(weights)
        told = "" if ended else f": iterations={self.iterations} end before the minimum"
        return weights, (f"objective {value(weights)[0]:.4f} after {found.nit + more} Newton steps{told}",)
