"""Pairs of different label: how many are out of order, and Kendall's τ over them."""

import numpy as np
from numba import njit

from ltr.kernels.kernel import Floats, Ints
from ltr.metrics.gains import plain, reciprocal_rank_discount
from ltr.metrics.measure import Definition, register


@njit(cache=True)
def _pairs(gains: Floats, ends: Ints) -> tuple[float, float]:
    """Pairs of different gain, and how many of them are out of order; a tie is half an error. Documents at no rank are tied below the others.
    O(documents × levels)."""
    levels = np.unique(gains)
    level = np.searchsorted(levels, gains)
    above, group = np.zeros(len(levels)), np.zeros(len(levels))
    pairs, errors, start = 0.0, 0.0, 0
    for g in range(len(ends) + 1):
        end = ends[g] if g < len(ends) else len(gains)
        group[:] = 0.0
        for k in range(start, end):
            group[level[k]] += 1.0
        lower_above, lower_beside, all_above = 0.0, 0.0, above.sum()
        for l in range(len(levels)):
            errors += group[l] * (lower_above + 0.5 * lower_beside)
            pairs += group[l] * (all_above - above[l] + lower_beside)
            lower_above += above[l]
            lower_beside += group[l]
        above += group
        start = end
    return pairs, errors


@njit(cache=True)
def errors_value(gains: Floats, ends: Ints, curve: Floats, cutoff: int) -> float:
    """Pairs of different label in the wrong order (B figure 1); fewer is better."""
    pairs, errors = _pairs(gains, ends)
    return errors if pairs > 0.0 else np.nan


@njit(cache=True)
def tau_value(gains: Floats, ends: Ints, curve: Floats, cutoff: int) -> float:
    """Kendall's τ over the pairs of different label: (pairs in order − pairs out of order) / pairs."""
    pairs, errors = _pairs(gains, ends)
    return 1.0 - 2.0 * errors / pairs if pairs > 0.0 else np.nan


@njit(cache=True)
def errors_prepare(gains: Floats, curve: Floats, cutoff: int, aux: Floats) -> int:
    """aux[0, k]: number of the gain's level, from the lowest. aux[1, 0]: levels. aux[2, 0]: what one error counts."""
    levels = np.unique(gains)
    aux[0, : len(gains)] = np.searchsorted(levels, gains)
    aux[1, 0], aux[2, 0] = len(levels), 1.0
    return len(gains) if len(levels) > 1 else 0


@njit(cache=True)
def tau_prepare(gains: Floats, curve: Floats, cutoff: int, aux: Floats) -> int:
    """As `errors_prepare`; aux[2, 0]: 2/pairs, by which each error lowers τ."""
    rows: int = errors_prepare(gains, curve, cutoff, aux)
    if rows > 0:
        aux[2, 0] = 2.0 / _pairs(gains, np.arange(1, len(gains) + 1))[0]
    return rows


@njit(cache=True)
def errors_row(t: int, gains: Floats, curve: Floats, cutoff: int, aux: Floats, out: Floats) -> None:
    """|2·[s(t, b) + Σ_{t<k<b} (s(t, k) + s(k, b))]| / 2 with s the sign of the difference in gain: the pairs that turn."""
    between = np.zeros(int(aux[1, 0]))
    lower = higher = 0
    for b in range(t + 1, len(gains)):
        turned = 0.0
        if gains[t] != gains[b]:
            turned = (1.0 if gains[t] > gains[b] else -1.0) + lower - higher
            level = int(aux[0, b])
            for l in range(len(between)):
                turned += between[l] if l > level else -between[l] if l < level else 0.0
        out[b] = abs(turned) * aux[2, 0]
        between[int(aux[0, b])] += 1.0
        lower += gains[b] < gains[t]
        higher += gains[b] > gains[t]


register(
    Definition(
        name="tau",
        title="Kendall's τ",
        formula="(pairs in order − pairs out of order) / pairs of different label",
        paper="Kendall 1938",
        gain=plain,
        curve=reciprocal_rank_discount,
        value=tau_value,
        prepare=tau_prepare,
        row=errors_row,
        whole=True,
        lowest=-1.0,
    )
)
register(
    Definition(
        name="errors",
        title="Pairwise errors",
        formula="pairs of different label in the wrong order, a tie half of one (with `ties: expected`); fewer is better",
        paper="Burges 2010 figure 1",
        gain=plain,
        curve=reciprocal_rank_discount,
        value=errors_value,
        prepare=errors_prepare,
        row=errors_row,
        whole=True,
        fewer_is_better=True,
    )
)
