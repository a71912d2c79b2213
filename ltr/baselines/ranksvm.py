"""RankSVM (Joachims 2002) in the primal, by truncated Newton (Chapelle & Keerthi 2010): ½‖w‖² + C·Σ max(0, 1 − w·(x_i − x_j))² over the
pairs of a query with label i > label j.

Peers train on explicit differences of pairs, n² of them. Here pairs are visited and never kept: a query's loss, its derivative by
each score, and the product of its Hessian with a vector are sums over pairs of two numbers.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray
from scipy import optimize

from ltr.linear import LinearRanker, Watch, products, transposed
from ltr.queries import Queries

_BLOCK = 16


@njit(cache=True, parallel=True)
def _hinge(scores, offsets, lower, values, factors):
    """Σ max(0, 1 − s_i + s_j)² of each query, and its derivative by each score; documents i stand by label, those of lower ones from
    ``lower[i]`` on."""
    for q in prange(len(values)):
        last, total = offsets[q + 1], 0.0
        factors[offsets[q] : last] = 0.0
        for i in range(offsets[q], last):
            short, pull = 1.0 - scores[i], 0.0
            for j in range(np.uint64(lower[i]), np.uint64(last)):
                room = max(short + scores[j], 0.0)
                total += room * room
                pull += room
                factors[j] += 2.0 * room
            factors[i] -= 2.0 * pull
        values[q] = total


@njit(cache=True, parallel=True)
def _curved(features, columns, scores, direction, offsets, lower, higher, parts):
    """The Hessian times a direction, a part a block of queries: along = X·direction, then of every pair that costs
    2·(along_i − along_j) to i and from j, then Xᵀ. Every inner loop writes what it adds to, side by side: features are read by
    columns on the way in, by rows on the way out, and each pair is seen from both of its ends."""
    for block in prange(len(parts)):
        queries = range(block * _BLOCK, min(block * _BLOCK + _BLOCK, len(offsets) - 1))
        start, stop = offsets[queries.start], offsets[queries.stop]
        along, factors = np.zeros(stop - start), np.zeros(stop - start)
        for k in range(len(columns)):
            column, weight = columns[k, start:stop], direction[k]
            for d in range(np.uint64(len(column))):
                along[d] += column[d] * weight
        for q in queries:
            first, last = offsets[q], offsets[q + 1]
            own, place, force = along[first - start : last - start], scores[first:last], factors[first - start : last - start]
            for d in range(len(own)):
                below, above = np.uint64(lower[first + d] - first), np.uint64(higher[first + d] - first)
                here, score = own[d], place[d]
                for j in range(below, np.uint64(len(own))):
                    force[j] -= here - own[j] if score - place[j] < 1.0 else 0.0
                for i in range(above):
                    force[i] += own[i] - here if place[i] - score < 1.0 else 0.0
        part = parts[block]
        part[:] = 0.0
        fours = start + len(factors) // 4 * 4
        for d in range(start, fours, 4):
            x, y, z, u = features[d], features[d + 1], features[d + 2], features[d + 3]
            a, b, c, e = factors[d - start], factors[d - start + 1], factors[d - start + 2], factors[d - start + 3]
            for k in range(np.uint64(len(part))):
                part[k] += (a * x[k] + b * y[k]) + (c * z[k] + e * u[k])
        for d in range(fours, stop):
            for k in range(len(part)):
                part[k] += factors[d - start] * features[d, k]
        part *= 2.0


def _by_label(queries: Queries) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the judged documents of queries with two labels, by query and falling label; offsets of these queries; and for each
    document the places of the first of its query with a lower label and of the first with the same."""
    of_query = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    order = np.lexsort((-queries.labels, of_query))
    order = order[~np.isnan(queries.labels[order])]
    different = np.flatnonzero((np.diff(queries.labels[order]) != 0) & (np.diff(of_query[order]) == 0))
    order = order[np.isin(of_query[order], of_query[order][different])]
    labels, groups = queries.labels[order], of_query[order]
    offsets = np.append(np.flatnonzero(np.diff(groups, prepend=-1)), len(groups))
    levels = np.append(np.flatnonzero((np.diff(labels, prepend=np.nan) != 0) | (np.diff(groups, prepend=-1) != 0)), len(groups))
    level = np.searchsorted(levels, np.arange(len(order)), side="right")
    return order, offsets, levels[level], levels[level - 1]


@dataclass(frozen=True, kw_only=True)
class RankSVM(LinearRanker):
    """A linear RankSVM with squared hinge.

    Args:
        C: of the pairs' loss.
        iterations: of Newton's method at most.
    """

    kind: ClassVar[str] = "ranksvm"
    C: float = 0.01
    iterations: int = 100

    def __post_init__(self) -> None:
        if not self.C > 0 or self.iterations < 1:
            raise ValueError(f"RankSVM: C={self.C} must be above 0 and iterations={self.iterations} at least 1")

    def learn(self, queries: Queries, features: NDArray[np.float32], watch: Watch) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        order, offsets, lower, higher = _by_label(queries)
        features = features[order]
        columns = np.ascontiguousarray(features.T)
        values, factors = np.empty(len(offsets) - 1), np.empty(len(order))
        parts = np.empty((-(-len(values) // _BLOCK), features.shape[1]))
        at: list[NDArray[np.float64]] = [np.empty(0), np.empty(0)]

        def scores(w: NDArray[np.float64]) -> NDArray[np.float64]:
            if not np.array_equal(at[0], w):
                at[:] = w.copy(), products(features, w)
            return at[1]

        def value(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            _hinge(scores(w), offsets, lower, values, factors)
            return 0.5 * float((w * w).sum()) + self.C * float(np.cumsum(values)[-1]), w + self.C * transposed(features, factors)

        def curved(w: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
            _curved(features, columns, scores(w), v, offsets, lower, higher, parts)
            return v + self.C * np.cumsum(parts, axis=0)[-1]

        start = np.zeros(features.shape[1])
        steepest = float(np.sqrt((value(start)[1] ** 2).sum()))
        options: dict[str, Any] = {"maxiter": self.iterations, "gtol": 1e-5 * steepest}
        found = optimize.minimize(value, start, jac=True, hessp=curved, method="trust-ncg", options=options)
        watch(found.x)
        return np.asarray(found.x, np.float64), (f"objective {found.fun:.4f} after {found.nit} Newton steps",)
