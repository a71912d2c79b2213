"""Measures that are sums of discounted gains: NDCG with the logarithmic and the Järvelin–Kekäläinen discount or linear gains, and CNDCG over
clicks. They share their kernels and differ in gain and discount (`ltr.metrics.gains`).

Ties are in expectation: a tied document counts the mean gain of its group (McSherry & Najork 2008).
"""

from dataclasses import replace

import numpy as np
from numba import njit

from ltr.kernels.kernel import Floats, Ints, Kernel, inner
from ltr.kernels.ranking import sort_falling
from ltr.metrics.gains import clicked, graded, jarvelin_kekalainen_discount, linear, log_discount
from ltr.metrics.measure import Definition, Measure, register


@inner()
def _gain_sum(gains: Floats, ends: Ints, curve: Floats) -> float:
    """Σ gain · curve, a tied document counting the mean gain of its group."""
    total, start = 0.0, 0
    for end in ends:
        if curve[start] == 0.0:
            return total
        if end == start + 1:
            total += gains[start] * curve[start]
        else:
            gain, weight = 0.0, 0.0
            for k in range(start, end):
                gain += gains[k]
                weight += curve[k]
            total += gain * weight / (end - start)
        start = end
    return total


_LEVELS = 12
_BITS_OF_INFINITY = np.float64(np.inf).view(np.int64)


@inner()
def _float_of(bits: int) -> float:
    """The float that has these bits."""
    found: float = np.int64(bits).view(np.float64)
    return found


@inner()
def _ideal(gains: Floats, curve: Floats) -> float:
    """Σ gain · curve of the best ranking. Labels have few levels, so the highest remaining gain is found level by level; only a query
    with many different gains is sorted. Floats ≥ 0 are ordered as their bits are, and the maximum of integers runs in vector lanes."""
    bits, above = gains.view(np.int64), _BITS_OF_INFINITY
    total, rank = 0.0, np.int64(0)
    for _ in range(_LEVELS):
        if rank == len(gains) or curve[rank] == 0.0:
            return total
        found, count = np.int64(0), np.int32(0)
        for k in range(np.uint64(len(bits))):
            found = max(found, bits[k] if bits[k] < above else np.int64(0))
        if found == 0:
            return total
        for k in range(np.uint64(len(bits))):
            count += np.int32(1) if bits[k] == found else np.int32(0)
        above, level = found, _float_of(found)
        for k in range(rank, rank + count):
            total += level * curve[k]
        rank += count
    order = np.empty(len(gains), np.int64)
    sort_falling(gains, order)
    for k in range(rank, len(gains)):
        total += gains[order[k]] * curve[k]
    return total


@njit(cache=True)
def any_positive(gains: Floats) -> bool:
    """Whether any gain is above 0."""
    for gain in gains:
        if gain > 0.0:
            return True
    return False


@njit(cache=True)
def dcg_share_value(gains: Floats, ends: Ints, curve: Floats, cutoff: int) -> float:
    """DCG over ideal DCG (D eq. 3, S eq. 1 and 9)."""
    ideal = _ideal(gains, curve)
    return _gain_sum(gains, ends, curve) / ideal if ideal > 0.0 else np.nan


@njit(cache=True)
def dcg_share_prepare(gains: Floats, curve: Floats, cutoff: int, aux: Floats) -> int:
    """aux[0, 0]: 1 / ideal DCG. Only ranks above the cutoff matter, and none where no document has a gain."""
    ideal = _ideal(gains, curve)
    aux[0, 0] = 1.0 / ideal if ideal > 0.0 else 0.0
    return min(cutoff, len(gains)) if ideal > 0.0 else 0


@njit(cache=True)
def gain_row(t: int, gains: Floats, curve: Floats, cutoff: int, aux: Floats, out: Floats) -> None:
    """|(g_t − g_b)(D_t − D_b)| / ideal (D eq. 7)."""
    for b in range(t + 1, len(gains)):
        out[b] = abs((gains[t] - gains[b]) * (curve[t] - curve[b])) * aux[0, 0]


@njit(cache=True)
def gain_mean_value(gains: Floats, ends: Ints, curve: Floats, cutoff: int) -> float:
    """Σ gain · curve: precision with the curve 1/k, winner takes all with 1 at the first rank; NaN where no document has a gain."""
    return _gain_sum(gains, ends, curve) if any_positive(gains) else np.nan


@njit(cache=True)
def gain_mean_prepare(gains: Floats, curve: Floats, cutoff: int, aux: Floats) -> int:
    """aux[0, 0]: 1, so that `gain_row` divides by nothing."""
    aux[0, 0] = 1.0
    return min(cutoff, len(gains))


def steady(measure: Measure, gains: Floats, offsets: Ints, curve: Floats) -> tuple[Floats, Kernel]:
    """Gains and value kernel for measuring many rankings of the same queries: the ideal of an NDCG, which is the same for all of them,
    is computed once and the gains are divided by it."""
    if measure.definition.value is not dcg_share_value:
        return gains, measure.definition.value
    scaled = gains.copy()
    _divide_by_ideal(scaled, offsets, curve)
    return scaled, gain_mean_value


@njit(cache=True)
def _divide_by_ideal(gains: Floats, offsets: Ints, curve: Floats) -> None:
    for q in range(len(offsets) - 1):
        own = gains[offsets[q] : offsets[q + 1]]
        ideal = _ideal(own, curve)
        own /= ideal if ideal > 0.0 else 1.0


_NDCG = register(
    Definition(
        name="ndcg",
        title="NDCG",
        formula="DCG over ideal DCG: Σ (2^l − 1)/log₂(1 + r) down to the cutoff",
        paper="Donmez 2009 eq. 3, Svore 2011 eq. 1",
        gain=graded,
        curve=log_discount,
        value=dcg_share_value,
        prepare=dcg_share_prepare,
        row=gain_row,
        short_rules=frozenset({"zero"}),
    )
)
register(
    replace(
        _NDCG,
        name="jk_ndcg",
        title="NDCG of Järvelin and Kekäläinen",
        formula="NDCG with ranks 1 and 2 undiscounted, then 1/log₂ r: LETOR's",
        paper="Dubey 2009 section 1.6.3",
        curve=jarvelin_kekalainen_discount,
    )
)
register(
    replace(
        _NDCG,
        name="linear_ndcg",
        title="NDCG of linear gains",
        formula="NDCG with the label itself as gain, whatever `conventions.gain` says: trec_eval's",
        paper="Järvelin & Kekäläinen 2002",
        gain=linear,
    )
)
register(
    replace(
        _NDCG,
        name="cndcg",
        title="Click NDCG",
        formula="NDCG with the gain 2^(4c) − 1, c the click label",
        paper="Svore 2011 eq. 9",
        gain=clicked,
        labels="click",
        source="click",
    )
)
