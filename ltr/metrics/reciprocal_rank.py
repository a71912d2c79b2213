"""Reciprocal rank, in expectation over ties (Donmez 2009 eq. 2; changes by swaps: eq. 11)."""

import numpy as np
from numba import njit

from ltr.kernels.kernel import Floats, Ints
from ltr.metrics.dcg import any_positive
from ltr.metrics.gains import binary, reciprocal_rank_discount
from ltr.metrics.measure import Definition, register


@njit(cache=True)
def rr_value(gains: Floats, ends: Ints, curve: Floats, cutoff: int) -> float:
    """1 / rank of the first relevant document (D eq. 2); in a tied group, its expectation; 0 where those that there are have no rank."""
    start = 0
    for end in ends:
        relevant, size = 0.0, end - start
        for k in range(start, end):
            relevant += gains[k]
        if relevant > 0.0:
            total, none_yet = 0.0, 1.0
            for k in range(start, min(end, cutoff)):
                first = relevant / (size - (k - start))
                if first >= 1.0:
                    return total + none_yet / (k + 1.0)
                total += none_yet * first / (k + 1.0)
                none_yet *= 1.0 - first
            return total
        start = end
    return 0.0 if any_positive(gains[start:]) else np.nan


@njit(cache=True)
def rr_prepare(gains: Floats, curve: Floats, cutoff: int, aux: Floats) -> int:
    """aux[0, 0] and aux[0, 1]: ranks (from 0) of the first two relevant documents, the number of documents where missing."""
    first = second = len(gains)
    for k in range(len(gains)):
        if gains[k] > 0.0:
            if first == len(gains):
                first = k
            else:
                second = k
                break
    aux[0, 0], aux[0, 1] = first, second
    return min(first + 1, cutoff, len(gains)) if first < len(gains) else 0


@njit(cache=True)
def rr_seed_row(t: int, gains: Floats, curve: Floats, cutoff: int, aux: Floats, out: Floats) -> None:
    """1/t − 1/r where a relevant document at b climbs over the first relevant rank r, t < r ≤ b (D eq. 11); else 0."""
    first = int(aux[0, 0])
    before = 1.0 / (first + 1.0) if first < cutoff else 0.0
    for b in range(t + 1, len(gains)):
        out[b] = 1.0 / (t + 1.0) - before if t < first and gains[b] > 0.0 else 0.0


@njit(cache=True)
def rr_exact_row(t: int, gains: Floats, curve: Floats, cutoff: int, aux: Floats, out: Floats) -> None:
    """`rr_seed_row`, and what D eq. 11 leaves out: the first relevant document itself sinks, to b or below the second."""
    rr_seed_row(t, gains, curve, cutoff, aux, out)
    if t == int(aux[0, 0]):
        for b in range(t + 1, len(gains)):
            if gains[b] == 0.0:
                rank = min(int(aux[0, 1]), b)
                out[b] = 1.0 / (t + 1.0) - (1.0 / (rank + 1.0) if rank < cutoff else 0.0)


register(
    Definition(
        name="mrr",
        title="Reciprocal rank",
        formula="1 / rank of the first relevant document; its swap changes are those of the paper",
        paper="Donmez 2009 eq. 2 and 11",
        gain=binary,
        curve=reciprocal_rank_discount,
        value=rr_value,
        prepare=rr_prepare,
        row=rr_seed_row,
        labels="binary",
    )
)
register(
    Definition(
        name="mrr_exact",
        title="Reciprocal rank, all swaps",
        formula="the same; trains on swaps that sink the first relevant document too",
        paper="Donmez 2009 eq. 2",
        gain=binary,
        curve=reciprocal_rank_discount,
        value=rr_value,
        prepare=rr_prepare,
        row=rr_exact_row,
        labels="binary",
    )
)
