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
def _curved(features, scores, direction, offsets, lower, parts):
    """The Hessian times a direction, a part a block of queries, whose features are read once: along = X·direction, then of every pair
    that costs 2·(along_i − along_j) to i and from j, then Xᵀ."""
    for block in prange(len(parts)):
        parts[block] = 0.0
        for q in range(block * _BLOCK, min(block * _BLOCK + _BLOCK, len(offsets) - 1)):
            first, n = offsets[q], offsets[q + 1] - offsets[q]
            along, factors = np.empty(n), np.zeros(n)
            for d in range(n):
                total = 0.0
                for k in range(np.uint64(features.shape[1])):
                    total += features[first + d, k] * direction[k]
                along[d] = total
            for i in range(n):
                short, own, pull = scores[first + i] - 1.0, along[i], 0.0
                for j in range(np.uint64(lower[first + i] - first), np.uint64(n)):
                    move = 2.0 * (own - along[j]) if scores[first + j] > short else 0.0
                    pull += move
                    factors[j] -= move
                factors[i] += pull
            for d in range(n):
                for k in range(np.uint64(features.shape[1])):
                    parts[block, k] += factors[d] * features[first + d, k]


def _by_label(queries: Queries) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the judged documents by query and falling label, offsets of the queries among them, and for each the place of the first
    document of its query with a lower label."""
    of_query = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    order = np.lexsort((-queries.labels, of_query))
    order = order[~np.isnan(queries.labels[order])]
    labels, groups = queries.labels[order], of_query[order]
    offsets = np.searchsorted(groups, np.arange(queries.n_queries + 1))
    changes = np.flatnonzero(np.append((np.diff(labels) != 0) | (np.diff(groups) != 0), True)) + 1
    lower = changes[np.searchsorted(changes, np.arange(len(order)), side="right")]
    return order, offsets, np.minimum(lower, offsets[groups + 1])


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
        order, offsets, lower = _by_label(queries)
        features = features[order]
        values, factors = np.empty(queries.n_queries), np.empty(len(order))
        parts = np.empty((-(-queries.n_queries // _BLOCK), features.shape[1]))
        at: list[NDArray[np.float64]] = [np.empty(0), np.empty(0)]

        def scores(w: NDArray[np.float64]) -> NDArray[np.float64]:
            if not np.array_equal(at[0], w):
                at[:] = w.copy(), products(features, w)
            return at[1]

        def value(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            _hinge(scores(w), offsets, lower, values, factors)
            return 0.5 * float((w * w).sum()) + self.C * float(np.cumsum(values)[-1]), w + self.C * transposed(features, factors)

        def curved(w: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
            _curved(features, scores(w), v, offsets, lower, parts)
            return v + self.C * np.cumsum(parts, axis=0)[-1]

        start = np.zeros(features.shape[1])
        steepest = float(np.sqrt((value(start)[1] ** 2).sum()))
        options: dict[str, Any] = {"maxiter": self.iterations, "gtol": 1e-5 * steepest}
        found = optimize.minimize(value, start, jac=True, hessp=curved, method="trust-ncg", options=options)
        watch(found.x)
        return np.asarray(found.x, np.float64), (f"objective {found.fun:.4f} after {found.nit} Newton steps",)
