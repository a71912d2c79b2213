"""The inner loop of the default objective: pairs weighted by what a discounted gain (NDCG and its kin) changes by.

It computes what `ranknet_weighted` does with the logistic cost, for the measures whose swap change is
|(g_i − g_j)(D_i − D_j)| / ideal, in float32 and without a branch. Documents are laid out by gain, descending, so that the partners
of document i are all those beyond the run of its own gain:

    gains     4 4 | 3 3 3 | 1 1 1 1 1 | 0 0 0 0 0 0 0 0 . .     . padding: a gain above all, no pair
    i ────────┴─┴─┴─┘                                           four i at a time; partners: every j to the right of i's run;
                  └ lanes start here, at a multiple of 16       max(g_i − g_j, 0) makes the others nothing

Vectors of sixteen on every processor (`ltr.kernels.vectors`): λ's, and so trees, are the same bits on all that have FMA.

Gains do not change while a model is trained: where this is all of an objective, documents are laid out once (`write_pairs`), and only
their ranks and scores are new; as one term of several, query by query and group by group (`add_pairs`).

The logistic is factorised: with e = exp(σ(s − middle)) once a document, ρ = e_j / (e_i + e_j) needs one division a pair. Queries with
scores too far apart for float32 go to `ranknet_weighted`, which is also this kernel's twin in the tests.
"""

import numpy as np
from numba import njit

from ltr.kernels.exponential import exp
from ltr.kernels.kernel import Floats, Floats32, Ints, Ints32, inner
from ltr.kernels.ranking import sort_falling
from ltr.kernels.vectors import LANES, everywhere, larger, load, store, totals
from ltr.metrics.measure import N_AUX, prepare_kernel
from ltr.objectives.constructions import Weighting, ranknet_weighted
from ltr.objectives.pair_costs import NEAR

FARTHEST = 60.0
"""Largest σ·(highest − lowest score): e^±30 and their squares are far inside float32."""
_NO_PAIR = np.float32(1e30)


@inner(error_model="numpy", forceinline=True)
def _four(
    i: np.uint64,
    n: np.uint64,
    first: np.uint64,
    e: Floats32,
    g: Floats32,
    d: Floats32,
    s: Floats32,
    near: np.float32,
    sigmoid: bool,
    own_gradient: Floats32,
    own_hessian: Floats32,
) -> None:
    """Pairs of the documents i … i + 3 with all from `first` on, sixteen at a time. Two logistics share one division: 1/a = b/(ab)."""
    i1, i2, i3 = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
    none, one, closest = everywhere(np.float32(0)), everywhere(np.float32(1)), everywhere(near)
    e0, e1, e2, e3 = everywhere(e[i]), everywhere(e[i1]), everywhere(e[i2]), everywhere(e[i3])
    d0, d1, d2, d3 = everywhere(d[i]), everywhere(d[i1]), everywhere(d[i2]), everywhere(d[i3])
    s0, s1, s2, s3 = everywhere(s[i]), everywhere(s[i1]), everywhere(s[i2]), everywhere(s[i3])
    g0, g1 = everywhere(g[i]), everywhere(g[i1]) if i1 < n else none
    g2, g3 = everywhere(g[i2]) if i2 < n else none, everywhere(g[i3]) if i3 < n else none
    own0 = own1 = own2 = own3 = bend0 = bend1 = bend2 = bend3 = none
    for j in range(first, np.uint64(len(e)), np.uint64(LANES)):
        ej, gj, dj = load(e, j), load(g, j), load(d, j)
        gain0, gain1 = larger(g0 - gj, none), larger(g1 - gj, none)
        gain2, gain3 = larger(g2 - gj, none), larger(g3 - gj, none)
        if near > np.float32(0):
            sj = load(s, j)
            gain0, gain1 = gain0 / (closest + abs(s0 - sj)), gain1 / (closest + abs(s1 - sj))
            gain2, gain3 = gain2 / (closest + abs(s2 - sj)), gain3 / (closest + abs(s3 - sj))
        a0, a1, a2, a3 = e0 + ej, e1 + ej, e2 + ej, e3 + ej
        share01, share23 = one / (a0 * a1), one / (a2 * a3)
        a0, a1, a2, a3 = share01 * a1, share01 * a0, share23 * a3, share23 * a2
        f0, f1 = gain0 * abs(d0 - dj) * (ej * a0), gain1 * abs(d1 - dj) * (ej * a1)
        f2, f3 = gain2 * abs(d2 - dj) * (ej * a2), gain3 * abs(d3 - dj) * (ej * a3)
        c0, c1, c2, c3 = f0 * (e0 * a0), f1 * (e1 * a1), f2 * (e2 * a2), f3 * (e3 * a3)
        if sigmoid:
            f0, f1, f2, f3, c0, c1, c2, c3 = c0, c1, c2, c3, none, none, none, none
        own0, own1, own2, own3 = own0 + f0, own1 + f1, own2 + f2, own3 + f3
        bend0, bend1, bend2, bend3 = bend0 + c0, bend1 + c1, bend2 + c2, bend3 + c3
        store(own_gradient, j, load(own_gradient, j) - ((f0 + f1) + (f2 + f3)))
        store(own_hessian, j, load(own_hessian, j) + ((c0 + c1) + (c2 + c3)))
    own0_total, own1_total, own2_total, own3_total = totals(own0, own1, own2, own3)
    bend0_total, bend1_total, bend2_total, bend3_total = totals(bend0, bend1, bend2, bend3)
    own_gradient[i] += own0_total
    own_gradient[i1] += own1_total
    own_gradient[i2] += own2_total
    own_gradient[i3] += own3_total
    own_hessian[i] += bend0_total
    own_hessian[i1] += bend1_total
    own_hessian[i2] += bend2_total
    own_hessian[i3] += bend3_total


_LEVELS = 8


@inner()
def _by_gain(gains: Floats32) -> Ints:
    """Positions by float32 gain, descending, equal gains in the order given: level by level, as labels have few. Floats ≥ 0 are ordered
    as their bits are, and the maximum of integers runs in vector lanes."""
    n = np.uint64(len(gains))
    bits, order = gains.view(np.int32), np.empty(len(gains) + 1, np.int64)
    placed, above = np.uint64(0), np.int32(0x7FFFFFFF)
    for _ in range(_LEVELS):
        level = np.int32(-1)
        for k in range(n):
            level = max(level, bits[k] if bits[k] < above else np.int32(-1))
        for k in range(n):
            order[placed] = k
            placed += np.uint64(1) if bits[k] == level else np.uint64(0)
        if placed == n:
            return order[:n]
        above = level
    sort_falling(gains, order[:n])
    return order[:n]


@inner(forceinline=True)
def _all(
    n: int,
    e: Floats32,
    g: Floats32,
    d: Floats32,
    s: Floats32,
    near: np.float32,
    sigmoid: bool,
    own_gradient: Floats32,
    own_hessian: Floats32,
) -> None:
    """Every document with all those of lower gain; documents by gain, ``float32 [lanes]``."""
    run_end = 0
    for i in range(0, n, 4):
        while run_end < n and (run_end <= i or g[run_end] == g[i]):
            run_end += 1
        if run_end == n:
            break
        _four(np.uint64(i), np.uint64(n), np.uint64(run_end // LANES * LANES), e, g, d, s, near, sigmoid, own_gradient, own_hessian)


@inner(forceinline=True)
def write_pairs(
    scores: Floats,
    order: Ints,
    by_gain: Ints32,
    gains: Floats32,
    discount: Floats,
    sigma: float,
    near: float,
    sigmoid: bool,
    weight: float,
    gradient: Floats,
    hessian: Floats,
) -> None:
    """Writes gradients and hessians of one query to ``float64 [documents]``.

    Args:
        order: positions by score; by_gain: positions by gain, descending.
        gains: by gain, ``float32 [documents]``, beyond the lowest, divided by the ideal.
        discount: by rank.
        near, sigmoid: see `add_pairs`.
        weight: factor on all of it.
    """
    n = len(scores)
    lanes = (n + LANES - 1) // LANES * LANES
    room = np.zeros((8, lanes), np.float32)
    e, g, d, s, own_gradient, own_hessian, powers, seen = room[0], room[1], room[2], room[3], room[4], room[5], room[6], room[7]
    e[n:], g[n:] = np.float32(1), _NO_PAIR
    for k in range(np.uint64(n)):
        g[k] = gains[k]
    highest, lowest = scores[order[0]], scores[order[n - 1]]
    middle = 0.5 * (highest + lowest)
    for r in range(np.uint64(n)):
        seen[np.uint64(order[r])] = discount[r]
    for k in range(np.uint64(n)):
        powers[k] = exp(sigma * (scores[k] - middle))
    for k in range(np.uint64(n)):
        at = np.uint64(by_gain[k])
        e[k], s[k], d[k] = powers[at], scores[at] - middle, seen[at]
    _all(n, e, g, d, s, np.float32(near if highest > lowest else 0.0), sigmoid, own_gradient, own_hessian)
    for k in range(np.uint64(n)):
        at = np.uint64(by_gain[k])
        gradient[at], hessian[at] = weight * sigma * own_gradient[k], weight * sigma * sigma * own_hessian[k]


@inner(forceinline=True)
def add_pairs(
    scores: Floats,
    gains: Floats,
    discount: Floats,
    scale: float,
    sigma: float,
    near: float,
    sigmoid: bool,
    members: Ints,
    gradient: Floats,
    hessian: Floats,
) -> None:
    """Adds gradients and hessians of the pairs among some documents of a ranked query to ``float64 [documents]``.

    Args:
        scores, gains: by rank.
        discount: by rank; `scale`: 1 / ideal.
        near: where not 0 and scores of the query differ, a pair is divided by `near` plus the distance of its scores.
        sigmoid: whether the cost is that of `ltr.objectives.pair_costs.sigmoid`, whose slope is the logistic's hessian and which has none.
        members: ranks of the documents, rising.
    """
    n = len(members)
    lanes = (n + LANES - 1) // LANES * LANES
    room = np.zeros((8, lanes), np.float32)
    e, g, d, s, own_gradient, own_hessian, ranked_e, ranked_g = (
        room[0],
        room[1],
        room[2],
        room[3],
        room[4],
        room[5],
        room[6, :n],
        room[7, :n],
    )
    e[n:], g[n:] = np.float32(1), _NO_PAIR
    distance = np.float32(near if scores[0] > scores[len(scores) - 1] else 0.0)
    middle = 0.5 * (scores[members[0]] + scores[members[n - 1]])
    for k in range(np.uint64(n)):
        ranked_e[k] = exp(sigma * (scores[np.uint64(members[k])] - middle))
    lowest = gains[members[0]]
    for k in range(np.uint64(n)):
        lowest = min(lowest, gains[np.uint64(members[k])])
    for k in range(np.uint64(n)):
        ranked_g[k] = (gains[np.uint64(members[k])] - lowest) * scale
    order = _by_gain(ranked_g)
    for k in range(np.uint64(n)):
        at = np.uint64(order[k])
        rank = np.uint64(members[at])
        e[k], s[k], g[k], d[k] = ranked_e[at], scores[rank] - middle, ranked_g[at], discount[rank]
    _all(n, e, g, d, s, distance, sigmoid, own_gradient, own_hessian)
    for k in range(np.uint64(n)):
        rank = np.uint64(members[np.uint64(order[k])])
        gradient[rank] += sigma * own_gradient[k]
        hessian[rank] += sigma * sigma * own_hessian[k]


@inner()
def _next_group(groups: Floats, begun: int, members: Ints) -> int:
    """Writes the ranks of the documents that are in one group with that at rank `begun`; how many they are: 0 where an earlier rank is one
    of them, or it is in none."""
    group, n = groups[begun], 0
    if np.isnan(group):
        return 0
    for k in range(np.uint64(begun)):
        if groups[k] == group:
            return 0
    for k in range(np.uint64(begun), np.uint64(len(groups))):
        if groups[k] == group:
            members[n] = k
            n += 1
    return n


@inner()
def _gain_pairs(
    near: float,
    sigmoid: bool,
    scores: Floats,
    gains: Floats,
    groups: Floats,
    weighting: Weighting,
    gradient: Floats,
    hessian: Floats,
) -> int:
    n, sigma = len(scores), weighting.sigma
    if not (n > 1 and sigma * (scores[0] - scores[-1]) < FARTHEST):
        effective: int = ranknet_weighted(scores, gains, groups, weighting, gradient, hessian)
        return effective
    aux = np.empty((N_AUX, n + 1))
    if prepare_kernel(weighting.prepare)(gains, weighting.curve, weighting.cutoff, aux) > 0:
        room = np.empty(n, np.int64)
        for begun in range(n - 1):
            members = room[: _next_group(groups, begun, room)]
            if len(members) > 1:
                add_pairs(scores, gains, weighting.curve, aux[0, 0], sigma, near, sigmoid, members, gradient, hessian)
            if len(members) == n:
                break
    return 0


@njit(cache=True)
def gain_pairs(scores: Floats, gains: Floats, groups: Floats, weighting: Weighting, gradient: Floats, hessian: Floats) -> int:
    """`ranknet_weighted` for discounted gains and the logistic cost, by the loop of this file. It does not count effective pairs."""
    effective: int = _gain_pairs(0.0, False, scores, gains, groups, weighting, gradient, hessian)
    return effective


@njit(cache=True)
def gain_pairs_near(scores: Floats, gains: Floats, groups: Floats, weighting: Weighting, gradient: Floats, hessian: Floats) -> int:
    """`gain_pairs` for the cost `logistic_near`."""
    effective: int = _gain_pairs(NEAR, False, scores, gains, groups, weighting, gradient, hessian)
    return effective


@njit(cache=True)
def gain_pairs_sigmoid(
    scores: Floats, gains: Floats, groups: Floats, weighting: Weighting, gradient: Floats, hessian: Floats
) -> int:
    """`gain_pairs` for the cost `sigmoid`."""
    effective: int = _gain_pairs(0.0, True, scores, gains, groups, weighting, gradient, hessian)
    return effective
