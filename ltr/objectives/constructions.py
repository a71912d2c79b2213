"""Constructions: one ranked query → λ and second derivative of every document, and the number of effective pairs.

For a pair of documents with gains g_i > g_j and o = s_i − s_j, +σ·|ΔM(i,j)|·ρ with ρ = 1/(1 + e^{σo}) is added to the λ of i and
subtracted from that of j (Donmez 2009 eq. 7; scores move *along* λ), σ²·|ΔM|·ρ(1 − ρ) is added to both second derivatives (Svore 2011
eq. 8). Construction, measure and *pair cost* are plain functions that are combined here, so the code costs their sum and not their
product. All of them take the documents of a query by descending score.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ltr.kernels.kernel import F8, F8_1D, I8, Address, Floats, Kernel, inner, kernel_at, record_type
from ltr.kernels.ranking import sort_falling
from ltr.metrics.measure import N_AUX, prepare_kernel, row_kernel, value_kernel
from ltr.objectives.pair_costs import cost_kernel


class Weighting(NamedTuple):
    """What a construction weighs pairs by.

    Attributes:
        curve, cutoff: of the measure.
        sigma: of the pair cost.
        value, prepare, row: addresses of the measure's kernels.
        cost: address of the pair cost.
    """

    curve: Floats
    cutoff: int
    sigma: float
    value: Address
    prepare: Address
    row: Address
    cost: Address


CONSTRUCTION = I8(F8_1D, F8_1D, F8_1D, record_type(Weighting, F8_1D, I8, F8, I8, I8, I8, I8), F8_1D, F8_1D)
"""``construction(scores, gains, groups, weighting, gradient, hessian) → effective pairs``."""
construction_kernel = kernel_at(CONSTRUCTION)
"""What compiled code calls at the address of a construction."""

_SIDE_BY_SIDE = 2048
"""Pairs that are gathered before the pair cost is applied to them, or one row of pairs where a query is longer."""


@inner()
def _lay_row(
    t: int, floor: float, scale: float, change: Floats, scores: Floats, gains: Floats, groups: Floats, o: Floats, weight: Floats
) -> None:
    """Score differences (upper gain less lower) and signed weights (0: no pair) of t and every lower rank, ``[n − t − 1]``."""
    score, gain, group = scores[t], gains[t], groups[t]
    below_scores, below_gains, below_groups, below_change = scores[t + 1 :], gains[t + 1 :], groups[t + 1 :], change[t + 1 :]
    for k in range(np.uint64(len(o))):
        gap = score - below_scores[k]
        o[k] = gap if gain > below_gains[k] else -gap
    for k in range(np.uint64(len(o))):
        size = scale * below_change[k]
        size = size if size > floor else floor
        signed = size if gain > below_gains[k] else -size
        weight[k] = signed if below_gains[k] != gain else 0.0
    for k in range(np.uint64(len(o))):
        weight[k] = weight[k] if below_groups[k] == group else 0.0


@inner()
def _apply(weight: Floats, slope: Floats, bend: Floats) -> int:
    """Gradients and hessians of pairs, in place of slopes and bends; the number of effective pairs."""
    effective = 0
    for k in range(np.uint64(len(weight))):
        slope[k] *= weight[k]
        bend[k] *= abs(weight[k])
        effective += 1 if weight[k] != 0.0 else 0
    return effective


@inner()
def _add_row(t: int, slope: Floats, bend: Floats, gradient: Floats, hessian: Floats) -> None:
    """Adds the pairs of t and every lower rank; the sums run in four strands, always in the same order."""
    n = len(slope)
    below, below_hessian = gradient[t + 1 :], hessian[t + 1 :]
    for k in range(np.uint64(n)):
        below[k] -= slope[k]
        below_hessian[k] += bend[k]
    a = b = c = d = e = f = g = h = 0.0
    for k in range(0, n - 3, 4):
        a, b, c, d = a + slope[k], b + slope[k + 1], c + slope[k + 2], d + slope[k + 3]
        e, f, g, h = e + bend[k], f + bend[k + 1], g + bend[k + 2], h + bend[k + 3]
    for k in range(n - n % 4, n):
        a, e = a + slope[k], e + bend[k]
    gradient[t] += (a + b) + (c + d)
    hessian[t] += (e + f) + (g + h)


@inner()
def _all_pairs(
    floor: float,
    scale: float,
    scores: Floats,
    gains: Floats,
    groups: Floats,
    weighting: Weighting,
    gradient: Floats,
    hessian: Floats,
) -> int:
    """Every pair of different gain in one group, weighted by max(floor, scale·|ΔM|). Several rows of pairs are gathered and go through
    the pair cost together: short loops would cost more than their work."""
    n, curve, cutoff = len(scores), weighting.curve, weighting.cutoff
    row, cost = row_kernel(weighting.row), cost_kernel(weighting.cost)
    aux, change = np.empty((N_AUX, n + 1)), np.zeros(n)
    room = max(n, _SIDE_BY_SIDE)
    o, weight, slope, bend = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    measured = prepare_kernel(weighting.prepare)(gains, curve, cutoff, aux)
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
            _lay_row(t, floor, scale, change, scores, gains, groups, o[size:end], weight[size:end])
            size, t = end, t + 1
        cost(0, weighting.sigma, scores[0] - scores[n - 1], o[:size], slope, bend)
        effective += _apply(weight[:size], slope, bend)
        at = 0
        for k in range(first, t):
            end = at + n - k - 1
            _add_row(k, slope[at:end], bend[at:end], gradient, hessian)
            at = end
        first = t
    return effective


@njit(cache=True)
def ranknet_weighted(scores: Floats, gains: Floats, groups: Floats, weighting: Weighting, gradient: Floats, hessian: Floats) -> int:
    """Every pair of different gain in one group, weighted by |ΔM| (D section 4, "RankNetWeightPairs")."""
    effective: int = _all_pairs(0.0, 1.0, scores, gains, groups, weighting, gradient, hessian)
    return effective


@njit(cache=True)
def ranknet(scores: Floats, gains: Floats, groups: Floats, weighting: Weighting, gradient: Floats, hessian: Floats) -> int:
    """Every pair of different gain in one group, all alike: |ΔM| = 1 (B section 2)."""
    effective: int = _all_pairs(1.0, 0.0, scores, gains, groups, weighting, gradient, hessian)
    return effective


@njit(cache=True)
def spring_smooth(scores: Floats, gains: Floats, groups: Floats, weighting: Weighting, gradient: Floats, hessian: Floats) -> int:
    """`ranknet_weighted` with |ΔM| replaced by max(1, 100·|ΔM|): every pair of different gain pulls (D section 7)."""
    effective: int = _all_pairs(1.0, 100.0, scores, gains, groups, weighting, gradient, hessian)
    return effective


@njit(cache=True)
def local_cost(scores: Floats, gains: Floats, groups: Floats, weighting: Weighting, gradient: Floats, hessian: Floats) -> int:
    """`ranknet_weighted` over neighbours in the ranking only (D section 7)."""
    n, curve, cutoff = len(scores), weighting.curve, weighting.cutoff
    row, cost = row_kernel(weighting.row), cost_kernel(weighting.cost)
    aux = np.empty((N_AUX, n + 1))
    change, o, slope, bend = np.empty(n), np.zeros(n), np.empty(n), np.empty(n)
    effective = 0
    for t in range(min(prepare_kernel(weighting.prepare)(gains, curve, cutoff, aux), n - 1)):
        b = t + 1
        row(t, gains, curve, cutoff, aux, change)
        if gains[t] != gains[b] and groups[t] == groups[b] and change[b] > 0.0:
            up = 1.0 if gains[t] > gains[b] else -1.0
            o[b] = up * (scores[t] - scores[b])
            cost(b, weighting.sigma, scores[0] - scores[n - 1], o[: b + 1], slope, bend)
            gradient[t] += up * change[b] * slope[b]
            gradient[b] -= up * change[b] * slope[b]
            hessian[t] += change[b] * bend[b]
            hessian[b] += change[b] * bend[b]
            effective += 1
    return effective


@njit(cache=True)
def local_gradient(scores: Floats, gains: Floats, groups: Floats, weighting: Weighting, gradient: Floats, hessian: Floats) -> int:
    """Neighbours u above v: δ = (M − M with the two swapped)/(s_u − s_v + 1/σ) is added to u and taken from v (D section 7).

    The margin 1/σ keeps close scores apart. There is no hessian.
    """
    n, curve, cutoff = len(scores), weighting.curve, weighting.cutoff
    row = row_kernel(weighting.row)
    aux = np.empty((N_AUX, n + 1))
    change = np.empty(n)
    effective = 0
    for t in range(min(prepare_kernel(weighting.prepare)(gains, curve, cutoff, aux), n - 1)):
        b = t + 1
        row(t, gains, curve, cutoff, aux, change)
        if gains[t] != gains[b] and groups[t] == groups[b] and change[b] > 0.0:
            delta = change[b] / (scores[t] - scores[b] + 1.0 / weighting.sigma)
            delta = delta if gains[t] > gains[b] else -delta
            gradient[t] += delta
            gradient[b] -= delta
            effective += 1
    return effective


@njit(cache=True)
def discrete_bounded(scores: Floats, gains: Floats, groups: Floats, weighting: Weighting, gradient: Floats, hessian: Floats) -> int:
    """Each document towards its ideal rank r*: sign(r − r*)·min(1, 100·|M(moved to r*) − M|) (D section 7).

    The ideal ranking is by gain, equal gains as they stand; the documents between r and r* move up by one. Gradients do not sum to
    zero, there is no hessian, and a document without a group feels no gradient. Counts documents, not pairs.
    """
    n, curve, cutoff = len(scores), weighting.curve, weighting.cutoff
    value = value_kernel(weighting.value)
    ends = np.arange(1, n + 1)
    before = value(gains, ends, curve, cutoff)
    if np.isnan(before):
        return 0
    ideal = np.empty(n, np.int64)
    sort_falling(gains, ideal)
    moved = np.empty(n)
    effective = 0
    for target in range(n):
        r = ideal[target]
        if r == target or np.isnan(groups[r]):
            continue
        moved[:] = gains
        if target < r:
            moved[target + 1 : r + 1] = gains[target:r]
        else:
            moved[r:target] = gains[r + 1 : target + 1]
        moved[target] = gains[r]
        step = min(1.0, 100.0 * abs(value(moved, ends, curve, cutoff) - before))
        gradient[r] += step if r > target else -step
        effective += step > 0.0
    return effective


CONSTRUCTIONS: dict[str, Kernel] = {
    "ranknet_weighted": ranknet_weighted,
    "spring_smooth": spring_smooth,
    "local_gradient": local_gradient,
    "local_cost": local_cost,
    "discrete_bounded": discrete_bounded,
    "ranknet": ranknet,
}
"""Every construction, a kernel of the signature `CONSTRUCTION`, by the name that terms call it by."""
