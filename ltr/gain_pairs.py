"""The inner loop of the default objective: pairs weighted by what a discounted gain (NDCG and its kin) changes by.

It computes what `ltr.lambdas.ranknet_weighted` does with the logistic cost, for the measures whose swap change is
|(g_i − g_j)(D_i − D_j)| / ideal, in float32 and without a branch. Documents are laid out by gain, descending, so that the partners
of document i are all that lie beyond its own gain's run:

    gains     4 4 | 3 3 3 | 1 1 1 1 1 | 0 0 0 0 0 0 0 0 . .     . padding: a gain above all, no pair
    i ────────────┘                                             partners: every j to the right of i's run;
          └ lanes start here, at a multiple of 16                max(g_i − g_j, 0) makes the others nothing

The logistic is factorised: with e = exp(σ(s − middle)) once a document, ρ = e_j / (e_i + e_j) needs one division a pair. Queries of
several tiers, or with scores too far apart for float32, go to `ranknet_weighted`, which is also this kernel's twin in the tests.
"""

import numpy as np
from numba import njit

from ltr.exponential import exp
from ltr.ranking import by_score

LANES = 16
FARTHEST = 60.0
"""Largest σ·(highest − lowest score): e^±30 and their squares are far inside float32."""
_NO_PAIR = np.float32(1e30)


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "nsz"})
def _partners(ei, gi, di, si, first, e, g, d, s, near, pulled, bent):
    """Pairs of one document with all from `first` on; what they pull it and bend it by."""
    own, own_bend = np.float32(0), np.float32(0)
    for j in range(np.uint64(first), np.uint64(len(e))):
        gain = gi - g[j]
        gain = gain if gain > np.float32(0) else np.float32(0)
        if near > np.float32(0):
            gain = gain / (near + abs(si - s[j]))
        share = np.float32(1) / (ei + e[j])
        f = gain * abs(di - d[j]) * (e[j] * share)
        c = f * (ei * share)
        own += f
        own_bend += c
        pulled[j] -= f
        bent[j] += c
    return own, own_bend


@njit(cache=True)
def pull(scores, gains, discount, scale, sigma, near, force, curvature):
    """Adds forces and curvatures of one ranked query to ``float64 [documents]``.

    Args:
        scores, gains: by rank.
        discount: by rank; `scale`: 1 / ideal.
        near: where not 0 and scores differ, a pair is divided by `near` plus the distance of its scores.
    """
    n = len(scores)
    order = by_score(gains)
    lanes = (n + LANES - 1) // LANES * LANES
    e, g, d = np.ones(lanes, np.float32), np.full(lanes, _NO_PAIR), np.zeros(lanes, np.float32)
    s = np.zeros(lanes, np.float32)
    distance = np.float32(near if scores[0] > scores[n - 1] else 0.0)
    middle = 0.5 * (scores[0] + scores[n - 1])
    for k in range(n):
        at = order[k]
        e[k] = exp(sigma * (scores[at] - middle))
        s[k] = scores[at] - middle
        g[k] = gains[at] * scale
        d[k] = discount[at]
    pulled, bent = np.zeros(lanes, np.float32), np.zeros(lanes, np.float32)
    run_end = 0
    for i in range(n):
        if i == run_end:
            while run_end < n and g[run_end] == g[i]:
                run_end += 1
        if run_end == n:
            break
        own, own_bend = _partners(e[i], g[i], d[i], s[i], run_end // LANES * LANES, e, g, d, s, distance, pulled, bent)
        pulled[i] += own
        bent[i] += own_bend
    for k in range(n):
        force[order[k]] += sigma * pulled[k]
        curvature[order[k]] += sigma * sigma * bent[k]


@njit(cache=True)
def fits(scores, tiers, sigma):
    """Whether `pull` may take the query: ranked scores close enough, and one tier."""
    for k in range(len(tiers)):
        if tiers[k] != tiers[0]:
            return False
    return len(scores) > 1 and sigma * (scores[0] - scores[-1]) < FARTHEST
