"""RankNet from explicit pairs of documents or from probabilities (Burges 2010 section 2).

A pair (upper, lower) carries P̄, the probability that `upper` should rank above `lower`; a plain preference has P̄ = 1. With
P = 1/(1 + e^{−σ(s_upper − s_lower)}) the cost is the cross entropy −P̄ log P − (1 − P̄) log(1 − P); its gradient on `upper` is
σ(P̄ − P), on `lower` the opposite, and its hessian σ²P(1 − P) on both. Preferences may contradict one another, even in a cycle.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from ltr.data.arrays import floats_of, ints_of
from ltr.data.brief import Brief
from ltr.data.queries import LEFT_OUT, Queries
from ltr.kernels.exponential import exp
from ltr.kernels.kernel import F8, F8_1D, I8_1D, Floats, Ints, address, record_type
from ltr.objectives.seam import gradients_signature


class PreferencePlan(NamedTuple):
    """All that the gradients of any query are computed from.

    Attributes:
        offsets, shares: of the queries.
        starts: first pair of each query, ``int64 [queries + 1]``.
        upper, lower, probability: of each pair, the rows of its documents and P̄.
    """

    offsets: Ints
    shares: Floats
    starts: Ints
    upper: Ints
    lower: Ints
    probability: Floats
    sigma: float


_PLAN = record_type(PreferencePlan, I8_1D, F8_1D, I8_1D, I8_1D, I8_1D, F8_1D, F8)


@dataclass(frozen=True)
class Preferences(Brief):
    """Pairs of documents of one query each, as rows of the data set they are given with.

    Args:
        upper, lower: ``int64 [pairs]``.
        probability: ``float64 [pairs]`` in [0, 1]; left out, 1.

    Raises:
        ValueError: for arrays that do not fit, rows that are no whole numbers, a document paired with itself, or a probability outside [0, 1].
    """

    upper: Ints
    lower: Ints
    probability: Floats = LEFT_OUT

    def __post_init__(self) -> None:
        upper, lower = (ints_of(f"preferences: {name}", getattr(self, name)) for name in ("upper", "lower"))
        given = np.ones(len(upper)) if self.probability is None else floats_of("preferences: probability", self.probability)
        if not len(upper) == len(lower) == len(given):
            raise ValueError(f"preferences: {len(upper)} upper, {len(lower)} lower documents and {len(given)} probabilities")
        if (upper == lower).any():
            raise ValueError(f"preferences: document {upper[upper == lower][0]} is paired with itself")
        if not ((given >= 0) & (given <= 1)).all():
            raise ValueError(f"preferences: probability {given[~((given >= 0) & (given <= 1))][0]} is outside [0, 1]")
        for name, value in (("upper", upper), ("lower", lower), ("probability", given)):
            object.__setattr__(self, name, value)

    def of_query(self, queries: Queries) -> Ints:
        """Which query each pair is of, ``int64 [pairs]``.

        Raises:
            ValueError: without a pair, and naming a row that does not exist, or two of different queries.
        """
        ends = np.concatenate((self.upper, self.lower))
        wrong = (ends < 0) | (ends >= queries.n_documents)
        if len(ends) == 0 or wrong.any():
            given = f"there is row {ends[wrong][0]}" if len(ends) else "there are 0 pairs"
            raise ValueError(f"preferences: rows from 0 to {queries.n_documents - 1} are documents; {given}")
        of_upper, of_lower = (np.searchsorted(queries.offsets, side, side="right") - 1 for side in (self.upper, self.lower))
        if (of_upper != of_lower).any():
            k = int(np.argmax(of_upper != of_lower))
            raise ValueError(f"preferences: documents {self.upper[k]} and {self.lower[k]} belong to different queries")
        return of_upper

    def reordered(self, queries: Queries, order: Ints | None) -> "Preferences":
        """The same pairs between rows of queries that are brought into this order (`ltr.data.queries.canonical_order`).

        Raises:
            ValueError: as `of_query`, of rows as they were given.
        """
        self.of_query(queries)
        if order is None:
            return self
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return Preferences(places[self.upper], places[self.lower], self.probability)

    def in_cycles(self, n_documents: int) -> int:
        """Documents that lie on a cycle of preferences (P̄ > ½), and so cannot all be satisfied."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        winner = np.where(self.probability >= 0.5, self.upper, self.lower)
        loser = np.where(self.probability >= 0.5, self.lower, self.upper)
        clear = self.probability != 0.5
        edges = coo_array((np.ones(clear.sum()), (winner[clear], loser[clear])), shape=(n_documents, n_documents))
        component = connected_components(edges, directed=True, connection="strong")[1]
        return int((np.bincount(component)[component] > 1).sum())


@njit(cache=True)
def preference_gradients(q: int, scores: Floats, plan: PreferencePlan, gradient: Floats, hessian: Floats) -> int:
    """Writes gradients and hessians ``[documents of q]`` of the query's pairs; returns how many there are."""
    first, sigma = plan.offsets[q], plan.sigma
    gradient[:] = 0.0
    hessian[:] = 0.0
    for k in range(plan.starts[q], plan.starts[q + 1]):
        i, j = plan.upper[k] - first, plan.lower[k] - first
        above = 1.0 / (1.0 + exp(-sigma * (scores[i] - scores[j])))
        slope = plan.shares[q] * sigma * (plan.probability[k] - above)
        bend = plan.shares[q] * sigma * sigma * above * (1.0 - above)
        gradient[i] += slope
        gradient[j] -= slope
        hessian[i] += bend
        hessian[j] += bend
    n_pairs: int = plan.starts[q + 1] - plan.starts[q]
    return n_pairs


@njit(cache=True, parallel=True)
def _all_preferences(scores: Floats, plan: PreferencePlan, gradient: Floats, hessian: Floats) -> None:
    for q in prange(len(plan.offsets) - 1):
        a, b = plan.offsets[q], plan.offsets[q + 1]
        preference_gradients(np.int64(q), scores[a:b], plan, gradient[a:b], hessian[a:b])


class PreferenceObjective:
    """``objective(scores, iteration) → (gradient, hessian)`` of given pairs; the seam of `ltr.objectives.lambda_objective.Objective`.

    Raises:
        ValueError: for a pair of documents of two queries, or a row that does not exist.
    """

    plan_type = _PLAN

    def __init__(self, queries: Queries, preferences: Preferences, sigma: float = 1.0) -> None:
        of_upper = preferences.of_query(queries)
        order = np.lexsort((preferences.probability, preferences.lower, preferences.upper))
        starts = np.searchsorted(of_upper[order], np.arange(queries.n_queries + 1))
        self.queries = queries
        self._plan = PreferencePlan(
            queries.offsets, queries.shares, starts.astype(np.int64), preferences.upper[order], preferences.lower[order],
            preferences.probability[order], float(sigma),
        )  # fmt: skip
        self.gradients = address(preference_gradients, gradients_signature(_PLAN))

    def plan(self, iteration: int) -> PreferencePlan:
        """What ``self.gradients(query, scores, plan, gradient, hessian)`` reads."""
        return self._plan

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """Gradient and hessian ``float64 [documents]`` at `scores`."""
        gradient, hessian = np.empty(len(scores)), np.empty(len(scores))
        _all_preferences(scores, self._plan, gradient, hessian)
        return gradient, hessian
