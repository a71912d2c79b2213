"""λ-gradients: the forces that move documents, and the objective that models are trained on.

For a pair of documents with gains g_i > g_j and o = s_i − s_j, the force +σ·|ΔM(i,j)|·ρ with ρ = 1/(1 + e^{σo}) is added to i and
subtracted from j (Donmez 2009 eq. 7; scores move *along* the force), the curvature σ²·|ΔM|·ρ(1 − ρ) is added to both (Svore
2011 eq. 8). A *construction* turns one ranked query into forces, given a measure's swap changes and a *pair cost*; all three are
plain functions that are combined here, so the code costs their sum and not their product.

`Objective` is the one seam between measures and models: closed over a data set and a list of terms, it maps ``(scores,
iteration)`` to ``(force, curvature)``. Several label sources, graded objectives (Svore 2011 eq. 10) and schedules (eq. 12) are
only lists of terms: a term's *tiers* say which pairs it may look at (equal and not NaN), its *weight* how much it counts when.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit, prange, types
from numpy.typing import NDArray

from ltr.exponential import exp
from ltr.gain_pairs import FARTHEST, fits, pull, pull_laid_out
from ltr.jit import F4_1D, F8, F8_1D, F8_2D, I4_1D, I8, I8_1D, ready
from ltr.measures import N_AUX, PREPARE, ROW, VALUE, Conventions, Measure, curve_of, gain_row, gains_of
from ltr.queries import Queries
from ltr.ranking import by_score

COST = types.void(I8, F8, F8_1D, F8_1D, F8_1D)
_POINTERS = tuple(types.FunctionType(kernel) for kernel in (VALUE, PREPARE, ROW, COST))
CONSTRUCTION = I8(F8_1D, F8_1D, F8_1D, F8_1D, I8, F8, *_POINTERS, F8_1D, F8_1D)


# --- pair costs: derivative and second derivative at score differences o[first:] ----------------------------------------


@njit(cache=True, error_model="numpy")
def logistic(first, sigma, o, slope, bend):
    """RankNet's cost log(1 + e^{−σo}) (B section 2): slope σρ, bend σ²ρ(1 − ρ), ρ = 1/(1 + e^{σo}); finite at any gap."""
    for k in range(np.uint64(first), np.uint64(len(o))):
        e = exp(-abs(sigma * o[k]))
        share = 1.0 / (1.0 + e)
        slope[k] = sigma * share * (e if o[k] > 0.0 else 1.0)
        bend[k] = sigma * sigma * e * share * share


@njit(cache=True, error_model="numpy")
def sigmoid(first, sigma, o, slope, bend):
    """The cost 1/(1 + e^{σo}) (S eq. 13–14, μ = 0): slope σρ(1 − ρ), falling for pairs far apart. Its curvature changes sign,
    so there is none: gradient leaves only."""
    for k in range(np.uint64(first), np.uint64(len(o))):
        e = exp(-abs(sigma * o[k]))
        slope[k] = sigma * e / ((1.0 + e) * (1.0 + e))
        bend[k] = 0.0


NEAR = 0.01
"""Of `logistic_near`: added to the distance that is divided by."""


@njit(cache=True, error_model="numpy")
def logistic_near(first, sigma, o, slope, bend):
    """`logistic` divided by 0.01 + |o| as soon as scores differ: pairs that are far apart already pull less. It is the half of
    LightGBM's ``lambdarank_norm`` that pays."""
    logistic(first, sigma, o, slope, bend)
    differ = False
    for k in range(np.uint64(first), np.uint64(len(o))):
        differ |= o[k] != 0.0
    if differ:
        for k in range(np.uint64(first), np.uint64(len(o))):
            nearness = 1.0 / (NEAR + abs(o[k]))
            slope[k] *= nearness
            bend[k] *= nearness


COSTS = {"logistic": logistic, "sigmoid": sigmoid, "logistic_near": logistic_near}


# --- constructions: one ranked query → forces and curvatures (ranked too), and the number of effective pairs -------------


_SIDE_BY_SIDE = 2048
"""Pairs that are laid side by side before their cost is taken, or one row of them where a query is longer."""


@njit(cache=True)
def _lay_row(t, floor, scale, change, scores, gains, tiers, o, weight):
    """Score differences (upper gain less lower) and signed weights (0: no pair) of t and every lower rank, ``[n − t − 1]``."""
    score, gain, tier = scores[t], gains[t], tiers[t]
    below_scores, below_gains, below_tiers, below_change = scores[t + 1 :], gains[t + 1 :], tiers[t + 1 :], change[t + 1 :]
    for k in range(np.uint64(len(o))):
        gap = score - below_scores[k]
        o[k] = gap if gain > below_gains[k] else -gap
    for k in range(np.uint64(len(o))):
        size = scale * below_change[k]
        size = size if size > floor else floor
        signed = size if gain > below_gains[k] else -size
        weight[k] = signed if below_gains[k] != gain else 0.0
    for k in range(np.uint64(len(o))):
        weight[k] = weight[k] if below_tiers[k] == tier else 0.0


@njit(cache=True)
def _apply(weight, slope, bend):
    """Forces and curvatures of pairs, in place of slopes and bends; the number of effective pairs."""
    effective = 0
    for k in range(np.uint64(len(weight))):
        slope[k] *= weight[k]
        bend[k] *= abs(weight[k])
        effective += 1 if weight[k] != 0.0 else 0
    return effective


@njit(cache=True)
def _add_row(t, pull, bent, force, curvature):
    """Adds the pairs of t and every lower rank; sums run in four strands and always the same order."""
    n = len(pull)
    below, below_curvature = force[t + 1 :], curvature[t + 1 :]
    for k in range(np.uint64(n)):
        below[k] -= pull[k]
        below_curvature[k] += bent[k]
    a = b = c = d = e = f = g = h = 0.0
    for k in range(0, n - 3, 4):
        a, b, c, d = a + pull[k], b + pull[k + 1], c + pull[k + 2], d + pull[k + 3]
        e, f, g, h = e + bent[k], f + bent[k + 1], g + bent[k + 2], h + bent[k + 3]
    for k in range(n - n % 4, n):
        a, e = a + pull[k], e + bent[k]
    force[t] += (a + b) + (c + d)
    curvature[t] += (e + f) + (g + h)


@njit(cache=True)
def _pull_pairs(floor, scale, scores, gains, tiers, curve, cutoff, sigma, prepare, row, cost, force, curvature):
    """Every pair of different gain in one tier, weighted by max(floor, scale·|ΔM|). Rows of pairs are laid side by side and go
    through the pair cost together: short loops would cost more than their work."""
    n = len(scores)
    aux, change = np.empty((N_AUX, n + 1)), np.zeros(n)
    room = max(n, _SIDE_BY_SIDE)
    o, weight, slope, bend = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    measured = prepare(gains, curve, cutoff, aux)
    rows = n - 1 if floor > 0.0 else min(measured, n - 1)
    effective = first = 0
    while first < rows:
        size, t = 0, first
        while t < rows and size + n - t - 1 <= room:
            if t < measured and scale > 0.0:
                row(t, gains, curve, cutoff, aux, change)
            else:
                change[:] = 0.0
            end = size + n - t - 1
            _lay_row(t, floor, scale, change, scores, gains, tiers, o[size:end], weight[size:end])
            size, t = end, t + 1
        cost(0, sigma, o[:size], slope, bend)
        effective += _apply(weight[:size], slope, bend)
        at = 0
        for k in range(first, t):
            end = at + n - k - 1
            _add_row(k, slope[at:end], bend[at:end], force, curvature)
            at = end
        first = t
    return effective


@njit(cache=True)
def ranknet_weighted(scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature):
    """Every pair of different gain in one tier, weighted by |ΔM| (D section 4, "RankNetWeightPairs")."""
    return _pull_pairs(0.0, 1.0, scores, gains, tiers, curve, cutoff, sigma, prepare, row, cost, force, curvature)


@njit(cache=True)
def _gain_pairs(near, scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature):
    if not fits(scores, tiers, sigma):
        return ranknet_weighted(scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature)
    aux = np.empty((N_AUX, len(scores) + 1))
    if not np.isnan(tiers[0]) and prepare(gains, curve, cutoff, aux) > 0:
        pull(scores, gains, curve, aux[0, 0], sigma, near, force, curvature)
    return 0


@njit(cache=True)
def gain_pairs(scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature):
    """`ranknet_weighted` for discounted gains and the logistic cost, by the loop of `ltr.gain_pairs`. It does not count."""
    return _gain_pairs(0.0, scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature)


@njit(cache=True)
def gain_pairs_near(scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature):
    """The same for `logistic_near`."""
    return _gain_pairs(NEAR, scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature)


@njit(cache=True)
def ranknet(scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature):
    """Every pair of different gain in one tier, all alike: |ΔM| = 1 (B section 2)."""
    return _pull_pairs(1.0, 0.0, scores, gains, tiers, curve, cutoff, sigma, prepare, row, cost, force, curvature)


@njit(cache=True)
def spring_smooth(scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature):
    """`ranknet_weighted` with |ΔM| replaced by max(1, 100·|ΔM|): every pair of different gain pulls (D section 7)."""
    return _pull_pairs(1.0, 100.0, scores, gains, tiers, curve, cutoff, sigma, prepare, row, cost, force, curvature)


@njit(cache=True)
def local_cost(scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature):
    """`ranknet_weighted` over neighbours in the ranking only (D section 7)."""
    n = len(scores)
    aux = np.empty((N_AUX, n + 1))
    change, o, slope, bend = np.empty(n), np.zeros(n), np.empty(n), np.empty(n)
    effective = 0
    for t in range(min(prepare(gains, curve, cutoff, aux), n - 1)):
        b = t + 1
        row(t, gains, curve, cutoff, aux, change)
        if gains[t] != gains[b] and tiers[t] == tiers[b] and change[b] > 0.0:
            up = 1.0 if gains[t] > gains[b] else -1.0
            o[b] = up * (scores[t] - scores[b])
            cost(b, sigma, o[: b + 1], slope, bend)
            force[t] += up * change[b] * slope[b]
            force[b] -= up * change[b] * slope[b]
            curvature[t] += change[b] * bend[b]
            curvature[b] += change[b] * bend[b]
            effective += 1
    return effective


@njit(cache=True)
def local_gradient(scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature):
    """Neighbours u above v: δ = (M − M with the two swapped)/(s_u − s_v + 1/σ) is added to u and taken from v (D section 7).

    The margin 1/σ keeps close scores apart. There is no curvature.
    """
    n = len(scores)
    aux = np.empty((N_AUX, n + 1))
    change = np.empty(n)
    effective = 0
    for t in range(min(prepare(gains, curve, cutoff, aux), n - 1)):
        b = t + 1
        row(t, gains, curve, cutoff, aux, change)
        if gains[t] != gains[b] and tiers[t] == tiers[b] and change[b] > 0.0:
            delta = change[b] / (scores[t] - scores[b] + 1.0 / sigma)
            delta = delta if gains[t] > gains[b] else -delta
            force[t] += delta
            force[b] -= delta
            effective += 1
    return effective


@njit(cache=True)
def discrete_bounded(scores, gains, tiers, curve, cutoff, sigma, value, prepare, row, cost, force, curvature):
    """Each document towards its ideal rank r*: sign(r − r*)·min(1, 100·|M(moved to r*) − M|) (D section 7).

    The ideal ranking is by gain, equal gains as they stand; the documents between r and r* move up by one. Forces do not sum to
    zero, there is no curvature, and a document without a tier feels no force. Counts documents, not pairs.
    """
    n = len(scores)
    ends = np.arange(1, n + 1)
    before = value(gains, ends, curve, cutoff)
    if np.isnan(before):
        return 0
    ideal = np.argsort(-gains, kind="mergesort")
    moved = np.empty(n)
    effective = 0
    for target in range(n):
        r = ideal[target]
        if r == target or np.isnan(tiers[r]):
            continue
        moved[:] = gains
        if target < r:
            moved[target + 1 : r + 1] = gains[target:r]
        else:
            moved[r:target] = gains[r + 1 : target + 1]
        moved[target] = gains[r]
        push = min(1.0, 100.0 * abs(value(moved, ends, curve, cutoff) - before))
        force[r] += push if r > target else -push
        effective += push > 0.0
    return effective


CONSTRUCTIONS = {
    "ranknet_weighted": ranknet_weighted,
    "spring_smooth": spring_smooth,
    "local_gradient": local_gradient,
    "local_cost": local_cost,
    "discrete_bounded": discrete_bounded,
    "ranknet": ranknet,
}
WITHOUT_CURVATURE = {"sigmoid", "local_gradient", "discrete_bounded"}
"""Pair costs and constructions that give no curvature: trees take gradient leaves and least-squares gain with them."""


# --- terms and schedules ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schedule:
    """A weight that grows with the iteration, clipped to [0, 1] (S eq. 12 and section 6.2).

    Args:
        start: w_0.
        kind: ``linear``: w_m = w_{m−1} + η; ``exponential``: w_m = w_{m−1} + e^{−η/m}.
        eta: η.
    """

    start: float
    kind: Literal["linear", "exponential"]
    eta: float

    def __post_init__(self) -> None:
        if self.kind not in ("linear", "exponential"):
            raise ValueError(f"schedule kind {self.kind!r} is not linear or exponential")
        if not 0 <= self.start <= 1:
            raise ValueError(f"schedule start {self.start:g} is outside [0, 1]")

    def at(self, iteration: int) -> float:
        """Weight at an iteration, from 0."""
        return _schedule(self, iteration)

    def saturation(self, iterations: int) -> int | None:
        """The first of so many iterations at which the weight has reached an end of [0, 1] for good, 1 or, for falling ones, 0."""
        end = 0.0 if self.kind == "linear" and self.eta < 0 else 1.0
        return next((m for m in range(iterations) if self.at(m) == end), None)


@lru_cache(maxsize=4096)
def _schedule(schedule: Schedule, iteration: int) -> float:
    weight = schedule.start
    for m in range(1, iteration + 1):
        weight += schedule.eta if schedule.kind == "linear" else float(np.exp(-schedule.eta / m))
    return min(max(weight, 0.0), 1.0)


@dataclass(frozen=True)
class Term:
    """One part of an objective.

    Args:
        measure: whose swap changes weight the pairs; it names its label source (``cndcg`` reads ``click``).
        weight: in [0, 1], or a schedule; None is what the other terms leave: 1 − Σ.
        pairs: ``all`` pairs of different gain, or ``same_label``: documents with a non-zero label of the measure's source and
            equal judged relevance (S section 4.2).
        cost: a name in `COSTS`.
        construction: a name in `CONSTRUCTIONS`.
    """

    measure: str | Measure = "ndcg"
    weight: float | Schedule | None = None
    pairs: Literal["all", "same_label"] = "all"
    cost: str = "logistic"
    construction: str = "ranknet_weighted"

    def __post_init__(self) -> None:
        Measure.of(self.measure)
        for name, known in ((self.cost, COSTS), (self.construction, CONSTRUCTIONS)):
            if name not in known:
                raise ValueError(f"unknown {'cost' if known is COSTS else 'construction'} {name!r}; known: {', '.join(known)}")
        if self.pairs not in ("all", "same_label"):
            raise ValueError(f"pairs {self.pairs!r} is not all or same_label")
        if isinstance(self.weight, int | float) and not 0 <= self.weight <= 1:
            raise ValueError(f"term weight {self.weight} is outside [0, 1]")


def saturations(terms: Sequence[Term], iterations: int) -> list[str]:
    """A sentence for each term whose scheduled weight stops moving within so many iterations."""
    found = [(term, term.weight.saturation(iterations)) for term in terms if isinstance(term.weight, Schedule)]
    return [
        f"the weight of {Measure.of(term.measure).key} is {term.weight.at(m):g} from iteration {m} on"
        for term, m in found
        if m is not None and isinstance(term.weight, Schedule)
    ]


def weights_at(terms: Sequence[Term], iteration: int) -> NDArray[np.float64]:
    """Weight of each term at an iteration, ``float64 [terms]``; a term without a weight gets what the others leave."""
    given = [w.at(iteration) if isinstance(w, Schedule) else w for w in (term.weight for term in terms)]
    rest = max(1.0 - sum(w for w in given if w is not None), 0.0) / max(given.count(None), 1)
    return np.array([rest if w is None else w for w in given], np.float64)


# --- the driver ---------------------------------------------------------------------------------------------------------

NORMALISE = {"none": 0, "query": 1, "term": 2}


class Plan(NamedTuple):
    """What forces of a query are made from, for every query.

    Attributes:
        offsets, shares: of the queries.
        gains, tiers: ``float64 [terms, documents]``.
        curves, cutoffs: of each term's measure.
        weights: ``float64 [terms]``, at this iteration.
        normalise: a value of `NORMALISE`.
        constructions, values, prepares, rows, costs: kernels, one a term.
        by_gain, laid_out, scales: from `_lay_out`, empty where it does not apply.
    """

    offsets: NDArray[np.int64]
    shares: NDArray[np.float64]
    gains: NDArray[np.float64]
    tiers: NDArray[np.float64]
    curves: NDArray[np.float64]
    cutoffs: NDArray[np.int64]
    weights: NDArray[np.float64]
    sigma: float
    normalise: int
    constructions: tuple[Any, ...]
    values: tuple[Any, ...]
    prepares: tuple[Any, ...]
    rows: tuple[Any, ...]
    costs: tuple[Any, ...]
    by_gain: NDArray[np.int32]
    laid_out: NDArray[np.float32]
    scales: NDArray[np.float64]


def plan_type(n_terms: int) -> Any:
    """Type of a `Plan` for so many terms."""
    kernels = [types.UniTuple(pointer, n_terms) for pointer in (types.FunctionType(CONSTRUCTION), *_POINTERS)]
    return types.NamedTuple([I8_1D, F8_1D, F8_2D, F8_2D, F8_2D, I8_1D, F8_1D, F8, I8, *kernels, I4_1D, F4_1D, F8_1D], Plan)


def forces_signature(n_terms: int) -> Any:
    return I8(I8, F8_1D, plan_type(n_terms), F8_1D, F8_1D)


@njit(cache=True)
def _by_deviation(values, also):
    """Both divided by the population standard deviation of `values`; left alone where it is zero (S section 5.3)."""
    deviation = np.sqrt(((values - values.mean()) ** 2).mean())
    if deviation > 0.0:
        values /= deviation
        also /= deviation


@njit(cache=True)
def query_forces(q, scores, plan, force, curvature):
    """Forces and curvatures ``[documents of q]`` at the query's `scores`; the number of effective pairs.

    Documents with equal scores rank in canonical order.
    """
    weights, sigma, kernels = plan.weights, plan.sigma, plan.constructions
    values, prepares, rows, costs = plan.values, plan.prepares, plan.rows, plan.costs
    first, last = plan.offsets[q], plan.offsets[q + 1]
    order = by_score(scores)
    n = len(scores)
    room = np.empty((5, n))
    ranked, gain, tier, pull, bend = room[0], room[1], room[2], room[3], room[4]
    for r in range(np.uint64(n)):
        ranked[r] = scores[np.uint64(order[r])]
    force[:] = 0.0
    curvature[:] = 0.0
    effective = 0
    for k in range(len(kernels)):
        if weights[k] == 0.0:
            continue
        own_gains, own_tiers = plan.gains[k, first:last], plan.tiers[k, first:last]
        for r in range(np.uint64(n)):
            at = np.uint64(order[r])
            gain[r], tier[r], pull[r], bend[r] = own_gains[at], own_tiers[at], 0.0, 0.0
        effective += kernels[k](
            ranked, gain, tier, plan.curves[k], plan.cutoffs[k], sigma, values[k], prepares[k], rows[k], costs[k], pull, bend
        )
        if plan.normalise == 2:
            _by_deviation(pull, bend)
        for r in range(np.uint64(n)):
            at = np.uint64(order[r])
            force[at] += weights[k] * pull[r]
            curvature[at] += weights[k] * bend[r]
    if plan.normalise == 1:
        _by_deviation(force, curvature)
    if plan.shares[q] != 1.0:
        force *= plan.shares[q]
        curvature *= plan.shares[q]
    return effective


@njit(cache=True, forceinline=True)
def _gain_forces(near, q, scores, plan, force, curvature):
    offsets, by_gain, laid_out, scales, sigma = plan.offsets, plan.by_gain, plan.laid_out, plan.scales, plan.sigma
    if np.isnan(scales[q]):
        return query_forces(q, scores, plan, force, curvature)
    order = by_score(scores)
    if not sigma * (scores[order[0]] - scores[order[-1]]) < FARTHEST:
        return query_forces(q, scores, plan, force, curvature)
    own, weight = slice(offsets[q], offsets[q + 1]), plan.weights[0] * plan.shares[q]
    if scales[q] > 0.0:
        pull_laid_out(scores, order, by_gain[own], laid_out[own], plan.curves[0], sigma, near, weight, force, curvature)
    else:
        force[:] = 0.0
        curvature[:] = 0.0
    return 0


@njit(cache=True)
def gain_forces(q, scores, plan, force, curvature):
    """`query_forces` of a single term whose construction is `gain_pairs`: documents are laid out by gain once and for all, and only
    their ranks are new. It does not count."""
    return _gain_forces(0.0, q, scores, plan, force, curvature)


@njit(cache=True)
def gain_forces_near(q, scores, plan, force, curvature):
    """The same for `gain_pairs_near`."""
    return _gain_forces(NEAR, q, scores, plan, force, curvature)


_LAID_OUT = {gain_pairs: gain_forces, gain_pairs_near: gain_forces_near}


@njit(cache=True)
def _lay_out(offsets, gains, tiers, curve, cutoff, prepare):
    """Places by gain, ``int32 [documents]`` within the query, gains over the ideal in this order, ``float32 [documents]``, and 1 / ideal
    of each query: 0 without a pair, NaN where not all its documents are of one tier."""
    by_gain, laid_out, scales = np.empty(len(gains), np.int32), np.empty(len(gains), np.float32), np.full(len(offsets) - 1, np.nan)
    for q in range(len(scales)):
        first, last = offsets[q], offsets[q + 1]
        own = gains[first:last]
        by_gain[first:last] = np.argsort(-own, kind="mergesort")
        if last - first > 1 and (tiers[first:last] == tiers[first]).all():
            aux = np.empty((N_AUX, last - first + 1))
            scales[q] = aux[0, 0] if prepare(own, curve, cutoff, aux) > 0 else 0.0
        for k in range(last - first):
            laid_out[first + k] = own[by_gain[first + k]] * scales[q]
    return by_gain, laid_out, scales


@njit(cache=True, parallel=True)
def _all_forces(
    scores, offsets, shares, gains, tiers, curves, cutoffs, weights, sigma, normalise, constructions, values, prepares, rows,
    costs, by_gain, laid_out, scales, forces, force, curvature, effective,
):  # fmt: skip
    """For every query; threads cannot be given a `Plan`, whose tuples hold kernels, but its parts."""
    for q in prange(len(offsets) - 1):
        plan = Plan(
            offsets, shares, gains, tiers, curves, cutoffs, weights, sigma, normalise, constructions, values, prepares, rows, costs,
            by_gain, laid_out, scales,
        )  # fmt: skip
        first, last = offsets[q], offsets[q + 1]
        effective[q] = forces(np.int64(q), scores[first:last], plan, force[first:last], curvature[first:last])


_NOTHING = (np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0))
"""In the place of what `_lay_out` gives."""
_LAY_OUT = types.Tuple((I4_1D, F4_1D, F8_1D))(I8_1D, F8_1D, F8_1D, F8_1D, I8, types.FunctionType(PREPARE))


class Objective:
    """``objective(scores, iteration) → (force, curvature)`` over one data set: all that a model learns about measures.

    Args:
        queries: the data set; its labels are read once. A query's weight multiplies its forces and curvatures.
        terms: what is to be improved, and how much each counts.
        conventions: label rules (threshold, gain, scale).
        sigma: steepness of the pair costs.
        normalise: divide a query's mixed forces by their standard deviation (``query``), each term's (``term``), or ``none``.
        exact: all pairs in float64; otherwise the default construction works in float32, with errors below 1e-5 of a force.

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
            raise ValueError(f"unknown normalise {normalise!r}; known: {', '.join(NORMALISE)}")
        if not terms:
            raise ValueError("an objective needs at least one term")
        measures = [Measure.of(term.measure) for term in terms]
        longest = max(int(np.diff(queries.offsets).max(initial=0)), 1)
        labels = [queries.source(measure.source) for measure in measures]
        curves = [curve_of(measure, longest, conventions) for measure in measures]
        self.queries = queries
        self.terms = tuple(terms)
        self._static = (
            queries.offsets,
            queries.shares,
            np.array([gains_of(m, l, conventions) for m, l in zip(measures, labels, strict=True)]),
            np.array([tiers_of(term, l, queries.labels) for term, l in zip(terms, labels, strict=True)]),
            np.array([curve for curve, _ in curves]),
            np.array([cutoff for _, cutoff in curves]),
        )
        self._sigma, self._normalise = float(sigma), NORMALISE[normalise]
        self._constructions = tuple(ready(CONSTRUCTIONS[term.construction], CONSTRUCTION) for term in terms)
        self._kernels = (
            tuple(ready(CONSTRUCTIONS[term.construction] if exact else _fastest(term), CONSTRUCTION) for term in terms),
            tuple(ready(measure.kind.value, VALUE) for measure in measures),
            tuple(ready(measure.kind.prepare, PREPARE) for measure in measures),
            tuple(ready(measure.kind.row, ROW) for measure in measures),
            tuple(ready(COSTS[term.cost], COST) for term in terms),
        )
        self.plan_type, self.forces_type = plan_type(len(terms)), forces_signature(len(terms))
        fast = None if exact or len(terms) > 1 or self._normalise else _LAID_OUT.get(_fastest(terms[0]))
        self._query_forces = ready(query_forces, self.forces_type)
        self.forces = ready(fast, self.forces_type) if fast else self._query_forces
        self._laid_out = self._lay_out() if fast else _NOTHING
        pointer = types.FunctionType(self.forces_type)
        self._all_forces = ready(_all_forces, types.void(F8_1D, *self.plan_type, pointer, F8_1D, F8_1D, I8_1D))

    def plan(self, iteration: int) -> Plan:
        """What ``self.forces(query, scores, plan, force, curvature)`` reads: for models that update after each query."""
        return Plan(*self._static, weights_at(self.terms, iteration), self._sigma, self._normalise, *self._kernels, *self._laid_out)

    def _lay_out(self) -> tuple[Any, ...]:
        offsets, _, gains, tiers, curves, cutoffs = self._static
        return tuple(ready(_lay_out, _LAY_OUT)(offsets, gains[0], tiers[0], curves[0], int(cutoffs[0]), self._kernels[2][0]))

    def __call__(self, scores: NDArray[np.float64], iteration: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Force and curvature ``float64 [documents]`` at `scores`; scores move along the force."""
        force, curvature, _ = self._drive(scores, self.plan(iteration), self.forces)
        return force, curvature

    def effective_pairs(self, scores: NDArray[np.float64], iteration: int = 0) -> NDArray[np.int64]:
        """Pairs with a non-zero λ, ``int64 [queries]`` (D section 7.2)."""
        counting = self.plan(iteration)._replace(constructions=self._constructions)
        return self._drive(scores, counting, self._query_forces)[2]

    def among(self, documents: NDArray[np.bool_]) -> "Objective":
        """The same objective with pairs of these documents only, ``bool [documents]``; the others keep their ranks."""
        offsets, shares, gains, tiers, curves, cutoffs = self._static
        other = copy(self)
        other._static = (offsets, shares, gains, np.where(documents, tiers, np.nan), curves, cutoffs)
        if self._laid_out is not _NOTHING:
            other._laid_out = other._lay_out()
        return other

    def _drive(self, scores: NDArray[np.float64], plan: Plan, forces: Any) -> tuple[Any, Any, Any]:
        force, curvature = np.empty(len(scores)), np.empty(len(scores))
        effective = np.empty(self.queries.n_queries, np.int64)
        self._all_forces(scores, *plan, forces, force, curvature, effective)
        return force, curvature, effective


def _fastest(term: Term) -> Any:
    """The kernel for a term's construction: a faster one where there is one."""
    general = CONSTRUCTIONS[term.construction]
    if term.construction != "ranknet_weighted" or Measure.of(term.measure).kind.row is not gain_row:
        return general
    return {"logistic": gain_pairs, "logistic_near": gain_pairs_near}.get(term.cost, general)


def asymmetry(objective: Objective, scores: NDArray[np.float64], step: float = 1e-6) -> float:
    """How far forces are from being the gradient of some cost: max |∂λ_i/∂s_j − ∂λ_j/∂s_i| over max |∂λ_i/∂s_j|.

    By Poincaré's lemma the forces at a fixed ranking are a gradient where this is 0 (B section 4.3). Central differences of
    `step`, which must be too small to change the ranking; 0 where all derivatives vanish.

    Args:
        objective: ``exact``, and over few documents: it is asked twice for each.
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


def tiers_of(term: Term, labels: NDArray[np.float64], judged: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pairs are formed of documents whose tiers are equal; NaN equals nothing and forms none."""
    if term.pairs == "same_label":
        return np.where(labels > 0, judged, np.nan)
    return np.where(np.isnan(labels), np.nan, 0.0)
