"""`Objective`: the one seam between measures and models.

Closed over a data set and a list of terms, it maps ``(scores, iteration)`` to ``(gradient, hessian)``: of each document its λ, along
which scores move, and the second derivative. A term's pair groups say which pairs it uses (documents of equal group, not NaN), its
weight how much it counts at each iteration.
"""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit, prange, types

from ltr.data.arrays import scores_of
from ltr.data.queries import Queries
from ltr.kernels.kernel import (
    F4_1D,
    F8,
    F8_1D,
    F8_2D,
    I4_1D,
    I8,
    I8_1D,
    Address,
    Bools,
    Floats,
    Floats32,
    Ints,
    Ints32,
    Kernel,
    NumbaType,
    address,
    addresses,
    inner,
    ready,
    record_type,
)
from ltr.kernels.ranking import RANK, by_score, rank, rank_kernel, sort_falling
from ltr.metrics.conventions import Conventions
from ltr.metrics.dcg import dcg_share_prepare, gain_row
from ltr.metrics.measure import N_AUX, PREPARE, ROW, VALUE, Measure, curve_of, prepare_kernel, ranking_gains
from ltr.objectives.constructions import CONSTRUCTION, CONSTRUCTIONS, Weighting, construction_kernel
from ltr.objectives.dcg_pairs import FARTHEST, gain_pairs, gain_pairs_near, gain_pairs_sigmoid, write_pairs
from ltr.objectives.pair_costs import COST, COSTS, NEAR
from ltr.objectives.seam import gradients_kernel, gradients_signature
from ltr.objectives.terms import Term, pair_groups, settled, weights_at

NORMALISE = {"none": 0, "query": 1, "term": 2}
"""What is divided by its standard deviation: nothing, a query's gradients, or each term's gradients of a query; as plans have it."""


class Plan(NamedTuple):
    """All that the gradients of any query are computed from.

    Attributes:
        offsets, shares: of the queries.
        gains, groups: ``float64 [terms, documents]``; a gain is NaN where a document holds no rank.
        curves, cutoffs: of each term's measure.
        weights: ``float64 [terms]``, at this iteration.
        normalise: a value of `NORMALISE`.
        constructions, values, prepares, rows, costs: addresses of kernels, ``int64 [terms]``.
    """

    offsets: Ints
    shares: Floats
    gains: Floats
    groups: Floats
    curves: Floats
    cutoffs: Ints
    weights: Floats
    sigma: float
    normalise: int
    constructions: Ints
    values: Ints
    prepares: Ints
    rows: Ints
    costs: Ints


class LaidOut(NamedTuple):
    """A single term whose construction is `gain_pairs`, with documents laid out by gain once and for all: only their ranks are new.

    Attributes:
        offsets, shares: of the queries.
        curve: of the measure.
        weight: of the term, at this iteration.
        by_gain, gains, scales: from `_lay_out`.
        rank: address of `ltr.kernels.ranking.rank`.
    """

    offsets: Ints
    shares: Floats
    curve: Floats
    weight: float
    sigma: float
    by_gain: Ints32
    gains: Floats32
    scales: Floats
    rank: Address


class LaidOutFirst(NamedTuple):
    """A plan for `gradients_either_way`: a `LaidOut` and the address of its kernel, and a `Plan` and the address of its kernel for the
    queries that the first leaves."""

    laid_out: LaidOut
    quick: Address
    plan: Plan
    general: Address


_PLAN = record_type(Plan, I8_1D, F8_1D, F8_2D, F8_2D, F8_2D, I8_1D, F8_1D, F8, I8, I8_1D, I8_1D, I8_1D, I8_1D, I8_1D)
_LAID_OUT = record_type(LaidOut, I8_1D, F8_1D, F8_1D, F8, F8, I4_1D, F4_1D, F8_1D, I8)
_LAID_OUT_FIRST = record_type(LaidOutFirst, _LAID_OUT, I8, _PLAN, I8)
_GENERAL, _QUICK, _EITHER = (gradients_signature(plan) for plan in (_PLAN, _LAID_OUT, _LAID_OUT_FIRST))


@inner()
def _by_deviation(values: Floats, also: Floats, counted: Floats) -> None:
    """Both divided by the population standard deviation of the `counted` of these values; left alone where it is zero (S section 5.3)."""
    deviation = np.sqrt(((counted - counted.mean()) ** 2).mean()) if len(counted) else 0.0
    if deviation > 0.0:
        values /= deviation
        also /= deviation


@njit(cache=True)
def query_gradients(q: int, scores: Floats, plan: Plan, gradient: Floats, hessian: Floats) -> int:
    """Writes gradients and hessians ``[documents of q]`` at the query's `scores`; returns the number of effective pairs.

    Documents with equal scores rank in canonical order. Those whose gain in a term is NaN hold no rank in it.
    """
    weights = plan.weights
    first, last = plan.offsets[q], plan.offsets[q + 1]
    order = by_score(scores)
    n = len(scores)
    room = np.empty((5, n))
    ranked, gain, group, own_gradient, own_hessian = room[0], room[1], room[2], room[3], room[4]
    places, counted = np.empty(n, np.int64), np.zeros(n, np.bool_)
    gradient[:] = 0.0
    hessian[:] = 0.0
    effective = 0
    for k in range(len(weights)):
        if weights[k] == 0.0:
            continue
        own_gains, own_groups = plan.gains[k, first:last], plan.groups[k, first:last]
        m = 0
        for r in range(np.uint64(n)):
            at = np.uint64(order[r])
            if own_gains[at] == own_gains[at]:
                places[m], counted[at] = at, True
                ranked[m], gain[m], group[m], own_gradient[m], own_hessian[m] = scores[at], own_gains[at], own_groups[at], 0.0, 0.0
                m += 1
        if m == 0:
            continue
        kernels = plan.values[k], plan.prepares[k], plan.rows[k], plan.costs[k]
        weighting = Weighting(plan.curves[k], plan.cutoffs[k], plan.sigma, *kernels)
        construction = construction_kernel(plan.constructions[k])
        effective += construction(ranked[:m], gain[:m], group[:m], weighting, own_gradient[:m], own_hessian[:m])
        if plan.normalise == 2:
            _by_deviation(own_gradient[:m], own_hessian[:m], own_gradient[:m])
        for r in range(np.uint64(m)):
            at = np.uint64(places[r])
            gradient[at] += weights[k] * own_gradient[r]
            hessian[at] += weights[k] * own_hessian[r]
    if plan.normalise == 1:
        _by_deviation(gradient, hessian, gradient if counted.all() else gradient[counted])
    if plan.shares[q] != 1.0:
        gradient *= plan.shares[q]
        hessian *= plan.shares[q]
    return effective


@inner(forceinline=True)
def _gain_gradients(near: float, sigmoid: bool, q: int, scores: Floats, plan: LaidOut, gradient: Floats, hessian: Floats) -> int:
    offsets, scales, sigma = plan.offsets, plan.scales, plan.sigma
    if np.isnan(scales[q]):
        return -1
    order = np.empty(len(scores), np.int64)
    rank_kernel(plan.rank)(scores, order)
    if not sigma * (scores[order[0]] - scores[order[-1]]) < FARTHEST:
        return -1
    own, weight = slice(offsets[q], offsets[q + 1]), plan.weight * plan.shares[q]
    if scales[q] > 0.0:
        write_pairs(scores, order, plan.by_gain[own], plan.gains[own], plan.curve, sigma, near, sigmoid, weight, gradient, hessian)
    else:
        gradient[:] = 0.0
        hessian[:] = 0.0
    return 0


@njit(cache=True)
def gain_gradients(q: int, scores: Floats, plan: LaidOut, gradient: Floats, hessian: Floats) -> int:
    """`query_gradients` from a `LaidOut`; −1, and nothing is written, for queries of several groups or with scores too far apart for
    float32. It does not count effective pairs."""
    effective: int = _gain_gradients(0.0, False, q, scores, plan, gradient, hessian)
    return effective


@njit(cache=True)
def gain_gradients_near(q: int, scores: Floats, plan: LaidOut, gradient: Floats, hessian: Floats) -> int:
    """`gain_gradients` for the construction `gain_pairs_near`."""
    effective: int = _gain_gradients(NEAR, False, q, scores, plan, gradient, hessian)
    return effective


@njit(cache=True)
def gain_gradients_sigmoid(q: int, scores: Floats, plan: LaidOut, gradient: Floats, hessian: Floats) -> int:
    """`gain_gradients` for the construction `gain_pairs_sigmoid`."""
    effective: int = _gain_gradients(0.0, True, q, scores, plan, gradient, hessian)
    return effective


_QUICKEST: dict[Kernel, Kernel] = {
    gain_pairs: gain_gradients,
    gain_pairs_near: gain_gradients_near,
    gain_pairs_sigmoid: gain_gradients_sigmoid,
}


@njit(cache=True)
def gradients_either_way(q: int, scores: Floats, plan: LaidOutFirst, gradient: Floats, hessian: Floats) -> int:
    """The quick kernel's gradients of a query, or those of the general one where it leaves them."""
    effective: int = gradients_kernel(plan.quick, plan.laid_out)(q, scores, plan.laid_out, gradient, hessian)
    if effective < 0:
        effective = gradients_kernel(plan.general, plan.plan)(q, scores, plan.plan, gradient, hessian)
    return effective


@njit(cache=True)
def _lay_out(
    offsets: Ints,
    gains: Floats,
    groups: Floats,
    curve: Floats,
    cutoff: int,
    prepare: Address,
    by_gain: Ints32,
    laid_out: Floats32,
    scales: Floats,
) -> None:
    """Writes positions by gain, ``int32 [documents]`` within the query, gains beyond the query's lowest over the ideal in this order,
    ``float32 [documents]``, and 1 / ideal of each query: 0 without a pair, NaN where not all its documents are of one group. Differences alone
    count, and of large gains float32 would lose them."""
    for q in range(len(scales)):
        first, last = offsets[q], offsets[q + 1]
        own, order = gains[first:last], np.empty(last - first, np.int64)
        sort_falling(own, order)
        alike = last > first
        for k in range(first + 1, last):
            alike &= groups[k] == groups[first]
        scales[q] = 0.0 if last - first == 1 else np.nan
        if alike and last - first > 1:
            aux = np.empty((N_AUX, last - first + 1))
            scales[q] = aux[0, 0] if prepare_kernel(prepare)(own, curve, cutoff, aux) > 0 else 0.0
        for k in range(last - first):
            by_gain[first + k] = order[k]
            laid_out[first + k] = (own[order[k]] - own[order[-1]]) * scales[q]


@njit(cache=True, parallel=True)
def _all_gradients(scores: Floats, plan: Plan, gradients: Address, gradient: Floats, hessian: Floats, effective: Ints) -> None:
    """`query_gradients` of every query whose `effective` is −1, in parallel."""
    for q in prange(len(effective)):
        if effective[q] < 0:
            first, last = plan.offsets[q], plan.offsets[q + 1]
            of_query = gradients_kernel(gradients, plan)
            effective[q] = of_query(np.int64(q), scores[first:last], plan, gradient[first:last], hessian[first:last])


@njit(cache=True, parallel=True)
def _all_quick_gradients(
    scores: Floats, plan: LaidOut, gradients: Address, gradient: Floats, hessian: Floats, effective: Ints
) -> None:
    """`gain_gradients` of every query, in parallel."""
    for q in prange(len(effective)):
        first, last = plan.offsets[q], plan.offsets[q + 1]
        of_query = gradients_kernel(gradients, plan)
        effective[q] = of_query(np.int64(q), scores[first:last], plan, gradient[first:last], hessian[first:last])


_LAY_OUT = types.void(I8_1D, F8_1D, F8_1D, F8_1D, I8, I8, I4_1D, F4_1D, F8_1D)
_ALL, _ALL_QUICK = (types.void(F8_1D, plan, I8, F8_1D, F8_1D, I8_1D) for plan in (_PLAN, _LAID_OUT))


class Objective:
    """``objective(scores, iteration) → (gradient, hessian)`` over one data set: all that a model learns about measures.

    Args:
        queries: the data set, whose labels do not change meanwhile. A query's weight multiplies its gradients and hessians.
        terms: what to improve, and how much each counts.
        conventions: label rules (threshold, gain, scale).
        sigma: steepness of the pair costs.
        normalise: divide a query's mixed gradients by their standard deviation (``query``), each term's (``term``), or ``none``.
        exact: all pairs in float64; otherwise the default construction works in float32, with errors below 1e-5 of a gradient.

    Raises:
        ValueError: naming an unknown name, a missing label source or a weight out of range.
    """

    def __init__(
        self,
        queries: Queries,
        terms: Sequence[Term] = (Term(),),
        conventions: Conventions | None = None,
        sigma: float = 1.0,
        normalise: str = "none",
        exact: bool = False,
    ) -> None:
        conventions = conventions or Conventions()
        if normalise not in NORMALISE:
            raise ValueError(f"unknown normalise {normalise!r}; choose from: {', '.join(NORMALISE)}")
        if not terms:
            raise ValueError("an objective needs at least one term")
        terms = settled(terms)
        measures = [Measure.of(term.measure) for term in terms]
        longest = max(int(np.diff(queries.offsets).max(initial=0)), 1)
        curves = [curve_of(measure, longest, conventions) for measure in measures]
        self.queries = queries
        self.terms = terms
        self.conventions = conventions
        self._shares = queries.shares
        self._curves, self._cutoffs = np.array([curve for curve, _ in curves]), np.array([cutoff for _, cutoff in curves])
        gains_and_groups = self._read_labels()
        self.sigma, self._normalise, self._exact = float(sigma), NORMALISE[normalise], exact
        quick = None if exact or len(terms) > 1 or self._normalise else _QUICKEST.get(_fastest(terms[0]))
        self._quick = quick and address(quick, _QUICK)
        self._laid_out = self._lay_out(*gains_and_groups) if quick else None
        self._held = None if quick else gains_and_groups

    def _read_labels(self) -> tuple[Floats, Floats]:
        """Gains and pair groups of the documents, ``float64 [terms, documents]`` both."""
        measures = [Measure.of(term.measure) for term in self.terms]
        labels = [self.queries.source(measure.source) for measure in measures]
        gains = [ranking_gains(m, l, self.conventions) for m, l in zip(measures, labels, strict=True)]
        groups = [pair_groups(term, l, self.queries.labels) for term, l in zip(self.terms, labels, strict=True)]
        return np.array(gains), np.array(groups)

    @property
    def _gains_and_groups(self) -> tuple[Floats, Floats]:
        self._held = self._held or self._read_labels()
        return self._held

    # What is not needed is not compiled or held: a single NDCG seldom needs a `Plan` and its kernels.

    @cached_property
    def _constructions(self) -> Ints:
        return addresses((CONSTRUCTIONS[term.construction] for term in self.terms), CONSTRUCTION)

    @cached_property
    def _taken(self) -> Ints:
        """Constructions for a `Plan`."""
        return self._constructions if self._exact else addresses(map(_fastest, self.terms), CONSTRUCTION)

    @cached_property
    def _kernels(self) -> tuple[Ints, ...]:
        definitions = [Measure.of(term.measure).definition for term in self.terms]
        return (
            addresses((definition.value for definition in definitions), VALUE),
            addresses((definition.prepare for definition in definitions), PREPARE),
            addresses((definition.row for definition in definitions), ROW),
            addresses((COSTS[term.cost] for term in self.terms), COST),
        )

    @cached_property
    def _general(self) -> Address:
        return address(query_gradients, _GENERAL)

    @property
    def plan_type(self) -> NumbaType:
        """Of what `plan` returns."""
        return _LAID_OUT_FIRST if self._quick else _PLAN

    @cached_property
    def gradients(self) -> Address:
        """Of a kernel that writes a query's gradient and hessian, ``float64 [documents of the query]``, and returns how many pairs are
        effective."""
        return address(gradients_either_way, _EITHER) if self._quick else self._general

    def plan(self, iteration: int) -> Plan | LaidOutFirst:
        """What ``gradients(query, scores, plan, gradient, hessian)`` reads, for models that update after each query."""
        plan = self._plan(iteration)
        return LaidOutFirst(self._quick_plan(iteration), self._quick, plan, self._general) if self._quick else plan

    def _plan(self, iteration: int) -> Plan:
        static = (self.queries.offsets, self._shares, *self._gains_and_groups, self._curves, self._cutoffs)
        return Plan(*static, weights_at(self.terms, iteration), self.sigma, self._normalise, self._taken, *self._kernels)

    def _quick_plan(self, iteration: int) -> LaidOut:
        assert self._laid_out is not None
        weight = float(weights_at(self.terms, iteration)[0])
        return LaidOut(
            self.queries.offsets, self._shares, self._curves[0], weight, self.sigma, *self._laid_out, address(rank, RANK)
        )

    def _lay_out(self, gains: Floats, groups: Floats) -> tuple[Ints32, Floats32, Floats]:
        offsets, curve, cutoff, n_documents = self.queries.offsets, self._curves[0], int(self._cutoffs[0]), gains.shape[1]
        by_gain, laid_out, scales = np.empty(n_documents, np.int32), np.empty(n_documents, np.float32), np.empty(len(offsets) - 1)
        prepare = address(Measure.of(self.terms[0].measure).definition.prepare, PREPARE)
        ready(_lay_out, _LAY_OUT)(offsets, gains[0], groups[0], curve, cutoff, prepare, by_gain, laid_out, scales)
        return by_gain, laid_out, scales

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """Gradient and hessian ``float64 [documents]`` at `scores`; scores move along the gradient.

        Raises:
            ValueError: unless there is one finite score a document.
        """
        scores = scores_of("scores", scores, self.queries.n_documents)
        gradient, hessian = np.empty(len(scores)), np.empty(len(scores))
        effective = np.full(self.queries.n_queries, -1)
        if self._quick:
            plan = self._quick_plan(iteration)
            ready(_all_quick_gradients, _ALL_QUICK)(scores, plan, self._quick, gradient, hessian, effective)
        if effective.min(initial=0) < 0:
            self._drive(scores, self._plan(iteration), gradient, hessian, effective)
        return gradient, hessian

    def effective_pairs(self, scores: Floats, iteration: int = 0) -> Ints:
        """Pairs with a non-zero λ, ``int64 [queries]`` (D section 7.2).

        Raises:
            ValueError: unless there is one finite score a document.
        """
        scores = scores_of("scores", scores, self.queries.n_documents)
        effective = np.full(self.queries.n_queries, -1)
        counting = self._plan(iteration)._replace(constructions=self._constructions)
        self._drive(scores, counting, np.empty(len(scores)), np.empty(len(scores)), effective)
        return effective

    def among(self, documents: Bools) -> "Objective":
        """The same objective with pairs of these documents only, ``bool [documents]``; the others keep their ranks."""
        gains, groups = self._gains_and_groups
        return self._of(gains, np.where(documents, groups, np.nan))

    def _of(self, gains: Floats, groups: Floats) -> "Objective":
        other = copy(self)
        other._held = gains, groups
        if self._quick:
            other._laid_out = other._lay_out(gains, groups)
        return other

    def weighing(self, factors: Floats) -> "Objective":
        """The same objective with the gains of documents times `factors`, ``float64 [documents]``, and not divided by the ideal of their
        query: a term's NDCG is then a DCG.

        Raises:
            ValueError: for a measure that is not divided by an ideal DCG.
        """
        offsets, (gains, groups) = self.queries.offsets, self._gains_and_groups
        for term in self.terms:
            if Measure.of(term.measure).definition.prepare is not dcg_share_prepare:
                raise ValueError(f"{term.measure} does not weigh gains; ndcg, jk_ndcg, linear_ndcg and cndcg do")
        if len(self.terms) > 1:
            raise ValueError(f"gains are weighed in an objective of one term, and this one has {len(self.terms)}")
        weighed, of_query = gains * factors, self.queries.of_query
        held = np.nan_to_num(weighed[0])
        falling = held[np.lexsort((-held, of_query))]
        ranks = np.arange(len(falling)) - offsets[of_query]
        ideals = np.add.reduceat(falling * self._curves[0][ranks], offsets[:-1]) if len(falling) else np.zeros(0)
        other = self._of(weighed, groups)
        other._shares = self._shares * np.where(ideals > 0, ideals, 1.0)
        return other

    def _drive(self, scores: Floats, plan: Plan, gradient: Floats, hessian: Floats, effective: Ints) -> None:
        """Gradients of the queries whose `effective` is −1."""
        ready(_all_gradients, _ALL)(scores, plan, self._general, gradient, hessian, effective)


def _fastest(term: Term) -> Kernel:
    """The kernel for a term's construction: a faster one where there is one."""
    general = CONSTRUCTIONS[term.construction]
    if term.construction != "ranknet_weighted" or Measure.of(term.measure).definition.row is not gain_row:
        return general
    faster: dict[str, Kernel] = {"logistic": gain_pairs, "logistic_near": gain_pairs_near, "sigmoid": gain_pairs_sigmoid}
    return faster.get(term.cost, general)


def asymmetry(objective: Objective, scores: Floats, step: float = 1e-6) -> float:
    """How far gradients are from being the gradient of some cost: max |∂λ_i/∂s_j − ∂λ_j/∂s_i| over max |∂λ_i/∂s_j|.

    By Poincaré's lemma the gradients at a fixed ranking are a gradient where this is 0 (B section 4.3). Central differences of
    `step`, which must be too small to change the ranking; 0 where all derivatives vanish.

    Args:
        objective: ``exact``, and over few documents: it is evaluated twice for each.
        scores: ``float64 [documents]``, no two of a query closer than ``2·step``.

    Raises:
        ValueError: for scores of one query that are too close.
    """
    jacobian = np.empty((len(scores), len(scores)))
    for first, last in zip(objective.queries.offsets[:-1], objective.queries.offsets[1:], strict=True):
        if (np.diff(np.sort(scores[first:last])) <= 2 * step).any():
            raise ValueError(f"scores of a query are closer than {2 * step:g}: a step would change the ranking")
    for j in range(len(scores)):
        moved = np.zeros(len(scores))
        moved[j] = step
        jacobian[:, j] = (objective(scores + moved, 0)[0] - objective(scores - moved, 0)[0]) / (2 * step)
    largest = np.abs(jacobian).max(initial=0.0)
    return float(np.abs(jacobian - jacobian.T).max(initial=0.0) / largest) if largest > 1e-9 else 0.0
