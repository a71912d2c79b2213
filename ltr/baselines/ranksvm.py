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


@njit(cache=True, parallel=True)
def _hinge(scores, labels, offsets, values, factors):
    """Σ max(0, 1 − s_i + s_j)² of each query, and its derivative by each score."""
    for q in prange(len(values)):
        total = 0.0
        for i in range(offsets[q], offsets[q + 1]):
            factors[i] = 0.0
        for i in range(offsets[q], offsets[q + 1]):
            pull = 0.0
            for j in range(offsets[q], offsets[q + 1]):
                room = 1.0 - scores[i] + scores[j] if labels[i] > labels[j] else 0.0
                room = max(room, 0.0)
                total += room * room
                pull += room
                factors[j] += 2.0 * room
            factors[i] -= 2.0 * pull
        values[q] = total


@njit(cache=True, parallel=True)
def _curved(scores, along, labels, offsets, factors):
    """The Hessian by the scores times `along`: 2·(along_i − along_j) of every pair that costs, to i and from j."""
    for q in prange(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            factors[i] = 0.0
        for i in range(offsets[q], offsets[q + 1]):
            pull = 0.0
            for j in range(offsets[q], offsets[q + 1]):
                costs = labels[i] > labels[j] and scores[i] - scores[j] < 1.0
                move = 2.0 * (along[i] - along[j]) if costs else 0.0
                pull += move
                factors[j] -= move
            factors[i] += pull


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
        labels, offsets = queries.labels, queries.offsets
        values, factors = np.empty(queries.n_queries), np.empty(queries.n_documents)

        def value(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            _hinge(products(features, w), labels, offsets, values, factors)
            return 0.5 * float((w * w).sum()) + self.C * float(np.cumsum(values)[-1]), w + self.C * transposed(features, factors)

        def curved(w: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
            moved = np.empty(queries.n_documents)
            _curved(products(features, w), products(features, v), labels, offsets, moved)
            return v + self.C * transposed(features, moved)

        options: dict[str, Any] = {"maxiter": self.iterations, "gtol": 1e-6}
        start = np.zeros(features.shape[1])
        found = optimize.minimize(value, start, jac=True, hessp=curved, method="trust-ncg", callback=watch, options=options)
        return np.asarray(found.x, np.float64), (f"objective {found.fun:.4f} after {found.nit} Newton steps",)
