"""The order of documents by score: the inner loop of measures, λ's and certificates.

Short queries are ranked by counting, which has no branches and runs in vector lanes: a document's rank is the number of documents
with a higher score, or an equal one and an earlier place. Counting is done on scores rounded to float32, twice as many to a
vector; rounding keeps the order of two scores or makes them a tie, so one pass of insertion sort by the exact scores completes it.
"""

import numpy as np
from numba import njit, types

from ltr.kernels.kernel import F8_1D, I1, I8_1D, Floats, Floats32, Ints, Ints32, inner, kernel_at

COUNTED = 1000
"""Queries of up to this many documents are ranked by counting, longer ones by sorting: whichever is faster."""
RANK = I1(F8_1D, I8_1D)
"""The signature of `rank`, for kernels that are given its address: it is then compiled once and not with each of them."""
SORT = types.void(F8_1D, I8_1D)
"""The signature of `sort_falling`, likewise."""
rank_kernel, sort_kernel = kernel_at(RANK), kernel_at(SORT)
"""What compiled code calls at their addresses."""
_LANES = 8
_RUN = 16
_LOWEST = np.float32(-np.inf)


@njit(cache=True)
def lanes_for(n: int) -> Floats32:
    """Scratch ``float32 [lanes]`` for `count_above`, filled with what ranks below every score."""
    return np.full((n + _LANES - 1) // _LANES * _LANES, _LOWEST, np.float32)


@njit(cache=True)
def count_above(rounded: Floats32, ranks: Ints32) -> None:
    """ranks[j] = number of scores above rounded[j], both ``[lanes]``. Four scores at a time are compared with all."""
    one, none = np.int32(1), np.int32(0)
    lanes = np.uint64(len(rounded))
    ranks[:] = none
    for i in range(np.uint64(0), lanes, np.uint64(4)):
        a, b, c, d = rounded[i], rounded[i + np.uint64(1)], rounded[i + np.uint64(2)], rounded[i + np.uint64(3)]
        for j in range(lanes):
            s = rounded[j]
            ranks[j] += (one if a > s else none) + (one if b > s else none) + (one if c > s else none) + (one if d > s else none)


@njit(cache=True)
def sort_falling(values: Floats, order: Ints) -> None:
    """Writes the positions ``int64 [values]`` by value, descending, equal values in the order given, NaN last: insertion in runs, which
    are then merged. `numpy.argsort` compiled would take several times as long to compile, in every kernel that sorts."""
    n, size = len(values), _RUN
    for k in range(n):
        place = k
        while place % _RUN and _is_above(values[k], values[order[place - 1]]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
    merged = np.empty(n, np.int64)
    while size < n:
        for begin in range(0, n, 2 * size):
            middle, end = min(begin + size, n), min(begin + 2 * size, n)
            a, b = begin, middle
            for k in range(begin, end):
                from_b = a == middle or (b < end and _is_above(values[order[b]], values[order[a]]))
                merged[k] = order[b] if from_b else order[a]
                b += from_b
                a += not from_b
        for k in range(n):
            order[k] = merged[k]
        size *= 2


@inner()
def _is_above(a: float, b: float) -> bool:
    """a > b, with NaN below all numbers."""
    return a == a and not b >= a


@njit(cache=True)
def rank(scores: Floats, order: Ints) -> bool:
    """Writes the positions ``int64 [documents]`` by score, descending, equal scores in the order given; returns whether all scores are
    known to differ.

    Scores that differ as float32 fill every rank. Otherwise some rank stays empty: NaN, which is above nothing.
    """
    n = len(scores)
    if n > COUNTED:
        sort_falling(scores, order)
        return False
    rounded = lanes_for(n)
    for j in range(n):
        rounded[j] = np.float32(scores[j])
    ranks = np.empty(len(rounded), np.int32)
    count_above(rounded, ranks)
    ranked, one, none = np.full(n, np.nan), np.int32(1), np.int32(0)
    for j in range(n):
        order[ranks[j]] = j
        ranked[ranks[j]] = scores[j]
    falls = none
    for k in range(np.uint64(1), np.uint64(n)):
        falls += one if ranked[k - np.uint64(1)] > ranked[k] else none
    if falls == n - 1:
        return True
    taken = np.zeros(n, np.int32)
    for j in range(n):
        order[ranks[j] + taken[ranks[j]]] = j
        taken[ranks[j]] += np.int32(1)
    for k in range(1, n):
        j, place = order[k], k
        while place > 0 and scores[order[place - 1]] < scores[j]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j
    return False


@njit(cache=True)
def by_score(scores: Floats) -> Ints:
    """Positions ``int64 [documents]`` by score, descending, equal scores in the order given."""
    order = np.empty(len(scores), np.int64)
    rank(scores, order)
    return order
