"""Expected reciprocal rank, in expectation over ties (Burges 2010 section 3; Chapelle et al. 2009)."""

import numpy as np
from numba import njit

from ltr.kernels.kernel import Floats, Ints
from ltr.metrics.dcg import any_positive
from ltr.metrics.gains import reciprocal_rank_discount, stop_probability
from ltr.metrics.measure import Definition, register


@njit(cache=True)
def err_value(gains: Floats, ends: Ints, curve: Floats, cutoff: int) -> float:
    """Σ_r (1/r) R_r Π_{i<r} (1 − R_i) (B section 3).

    In a tied group, E[Π of the first k factors 1 − R] is the mean over all k-subsets, built up one document at a time, for as many k as there
    are ranks down to the cutoff.
    """
    if not any_positive(gains):
        return np.nan
    total, passed, start = 0.0, 1.0, 0
    means = np.zeros(len(gains) + 1)
    for end in ends:
        size = end - start
        counted = min(size, cutoff - start)
        means[0] = 1.0
        for n in range(size):
            means[n + 1] = 0.0
            for k in range(min(n + 1, counted), 0, -1):
                means[k] = ((n + 1 - k) * means[k] + k * (1.0 - gains[start + n]) * means[k - 1]) / (n + 1.0)
        for k in range(counted):
            total += passed * curve[start + k] * (means[k] - means[k + 1])
        if end >= cutoff:
            break
        passed *= means[size]
        start = end
    return total


@njit(cache=True)
def err_prepare(gains: Floats, curve: Floats, cutoff: int, aux: Floats) -> int:
    """aux[0, k]: ERR down to rank k. aux[1, k]: Π over the top k of 1 − R."""
    aux[0, 0], aux[1, 0] = 0.0, 1.0
    for k in range(len(gains)):
        aux[0, k + 1] = aux[0, k] + curve[k] * gains[k] * aux[1, k]
        aux[1, k + 1] = aux[1, k] * (1.0 - gains[k])
    return min(cutoff, len(gains)) if any_positive(gains) else 0


@njit(cache=True)
def err_row(t: int, gains: Floats, curve: Floats, cutoff: int, aux: Floats, out: Floats) -> None:
    """The three places where ERR changes: at t, between the two by the factor (1 − R_b)/(1 − R_t), and at b (B section 3)."""
    for b in range(t + 1, len(gains)):
        factor = (1.0 - gains[b]) / (1.0 - gains[t])
        change = curve[t] * (gains[b] - gains[t]) * aux[1, t]
        change += (factor - 1.0) * (aux[0, b] - aux[0, t + 1])
        change += curve[b] * aux[1, b] * (factor * gains[t] - gains[b])
        out[b] = abs(change)


register(
    Definition(
        name="err",
        title="Expected reciprocal rank",
        formula="Σ (1/r)·R_r·Π_{i<r} (1 − R_i), stop probability R = (2^l − 1)/2^max_label",
        paper="Burges 2010 section 3",
        gain=stop_probability,
        curve=reciprocal_rank_discount,
        value=err_value,
        prepare=err_prepare,
        row=err_row,
    )
)
