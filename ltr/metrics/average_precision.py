"""Average precision, in expectation over ties (Donmez 2009 eq. 1; changes by swaps: eq. 9)."""

import numpy as np
from numba import njit

from ltr.kernels.kernel import Floats, Ints
from ltr.metrics.gains import binary, relevant_counted
from ltr.metrics.measure import Definition, register


@njit(cache=True)
def ap_value(gains: Floats, ends: Ints, curve: Floats, cutoff: int) -> float:
    """(1/R) Σ_{r ≤ L} l(r)·P@r (D eq. 1); in a tied group a relevant document has a share of the others above it. The divisor for R
    relevant documents is ``curve[R − 1]``, those that are at no rank among them."""
    total, found, start = 0.0, 0.0, 0
    if len(ends) == len(gains):  # no ties: no branches
        for k in range(min(cutoff, len(gains))):
            found += gains[k]
            total += gains[k] * found / (k + 1.0)
        for k in range(cutoff, len(gains)):
            found += gains[k]
        return total / curve[int(found) - 1] if found > 0.0 else np.nan
    for end in ends:
        if end == start + 1:
            if gains[start] > 0.0:
                found += 1.0
                total += found / end if start < cutoff else 0.0
            start = end
            continue
        relevant, size = 0.0, end - start
        for k in range(start, end):
            relevant += gains[k]
        others = (relevant - 1.0) / (size - 1.0)
        for k in range(start, min(end, cutoff)):
            total += relevant / size * (found + 1.0 + (k - start) * others) / (k + 1.0)
        found += relevant
        start = end
    for k in range(start, len(gains)):
        found += gains[k]
    return total / curve[int(found) - 1] if found > 0.0 else np.nan


@njit(cache=True)
def ap_prepare(gains: Floats, curve: Floats, cutoff: int, aux: Floats) -> int:
    """aux[0, k]: relevant in the top k. aux[1, k]: Σ l(r)/r over the top k, no further than the cutoff. aux[2, 0]: 1/R by the rules."""
    for k in range(len(gains)):
        aux[0, k + 1] = aux[0, k] + gains[k] if k else gains[0]
        before = aux[1, k] if k else 0.0
        aux[1, k + 1] = before + (gains[k] / (k + 1.0) if k < cutoff else 0.0)
    aux[0, 0] = aux[1, 0] = 0.0
    relevant = aux[0, len(gains)]
    aux[2, 0] = 1.0 / curve[int(relevant) - 1] if relevant > 0.0 else 0.0
    return min(cutoff, len(gains)) if 0.0 < relevant < len(gains) else 0


@njit(cache=True)
def ap_row(t: int, gains: Floats, curve: Floats, cutoff: int, aux: Floats, out: Floats) -> None:
    """(1/R)·[(n + 1)/t − m/b + Σ_{t<k<b} l(k)/k], either of the two on top (D eq. 9); b beyond the cutoff loses its own term."""
    for b in range(t + 1, len(gains)):
        if gains[t] == gains[b]:
            out[b] = 0.0
        else:
            change = (aux[0, t] + 1.0) / (t + 1.0) + aux[1, b] - aux[1, t + 1]
            if b < cutoff:
                change -= aux[0, b + 1] / (b + 1.0)
            out[b] = abs(change) * aux[2, 0]


register(
    Definition(
        name="map",
        title="Average precision",
        formula="(1/R) Σ of the precision at each relevant document, R of them; its mean over the queries is MAP",
        paper="Donmez 2009 eq. 1",
        gain=binary,
        curve=relevant_counted,
        value=ap_value,
        prepare=ap_prepare,
        row=ap_row,
        labels="binary",
    )
)
