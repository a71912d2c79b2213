"""A measure along a line of rankings, exactly, and without looking at every ranking anew.

The scores (1 − α)·a + α·b change their order only where two documents of a query cross, at α = d_a/(d_a − d_b) for score differences
d_a and d_b of opposite sign. Between two crossings no measure changes, so its mean over the queries is a step function of α with
finitely many steps. A sweep goes from crossing to crossing, as along the lines of an arrangement (Bentley & Ottmann 1979): only the
documents that meet there change places, and the measure is taken again only where that changed a gain above its cutoff; a sum over ranks,
such as NDCG, changes by what these documents bring. Of a measure with a cutoff k, documents with k others that are above them all the way
never matter and are not crossed at all. Powell's method and
RankLib's coordinate ascent (Metzler & Croft 2007) try some points of such a line and may miss the best step between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit, types
from numpy.typing import ArrayLike

from ltr.data.arrays import floats_of
from ltr.data.brief import Brief
from ltr.kernels.kernel import F8, F8_1D, I8, I8_1D, Bools, Floats, Ints, Ints32, inner, ready
from ltr.kernels.ranking import by_score, sort_falling
from ltr.metrics.evaluation import NOT_RANKED, tie_groups
from ltr.metrics.many import READING, Judged, Reading, value_at
from ltr.metrics.measure import fewer_is_better, value_kernel

_TOGETHER = 1e-12
"""Crossings no further apart than this are one: three documents that meet in a point are found to within rounding."""
_AFRESH = 1024
"""Changes of a sum after which it is taken again as a whole, so that rounding does not add up."""
_NARROW = 1e-9
"""Intervals shorter than this are left out where there are others: scores in there differ by little more than rounding."""


@dataclass(frozen=True)
class Mixtures(Brief):
    """A measure as a function of α in (0, 1).

    Attributes:
        alphas: ``float64 [crossings]``, rising: where the mean may change.
        values: ``float64 [crossings + 1]``, the mean in the open intervals between 0, `alphas` and 1.
        ends: the mean of the first ranker alone and of the second.
        measure: key of the measure.
    """

    alphas: Floats
    values: Floats
    ends: tuple[float, float]
    measure: str

    @property
    def best(self) -> tuple[float, float, float]:
        """The interval of α with the best mean, the longest if there are several, and that mean: its ends, then the value."""
        edges = np.concatenate(([0.0], self.alphas, [1.0]))
        widths = np.diff(edges)
        worth = np.where(
            widths >= min(_NARROW, widths.max()), -self.values if fewer_is_better(self.measure) else self.values, -np.inf
        )
        equals = np.flatnonzero(worth >= worth.max() - 1e-12)
        k = equals[np.argmax(widths[equals])]
        return float(edges[k]), float(edges[k + 1]), float(self.values[k])


def mix_scores(first: ArrayLike, second: ArrayLike, alpha: float) -> Floats:
    """(1 − α)·first + α·second, ``float64 [documents]``.

    Raises:
        ValueError: for other numbers of scores.
    """
    one, other = floats_of("first", first), floats_of("second", second)
    if one.shape != other.shape:
        raise ValueError(f"mix_scores: first has {one.size:,} scores and second {other.size:,}; both are of the same documents")
    return (1 - alpha) * one + alpha * other


def between(judged: Judged, first: Floats, second: Floats) -> Mixtures:
    """Every mixture of two rankers' scores, ``float64 [documents]`` each and finite; −∞ in both for a document that is at no rank.

    Raises:
        ValueError: for any other score that is not finite, or a measure that is defined on no query.
    """
    _require_finite(first, second)
    walk = ready(_walk_all, types.UniTuple(I8, 3)(F8_1D, *_OF_ALL, I8, I8, I8, F8_1D, F8_1D, F8_1D))
    given = first[judged.rows], second[judged.rows], judged.offsets, judged.factor, judged.gains, judged.reading
    (at, step), sums = np.empty((2, 1024 + 2 * len(judged.rows))), np.zeros(3)
    query, n, defined = walk(*given, 0, 0, 0, at, step, sums)
    while query < len(judged.offsets) - 1:
        at, step = (np.append(one, np.empty(len(one))) for one in (at, step))
        query, n, defined = walk(*given, query, n, defined, at, step, sums)
    at, step = at[:n], step[:n]
    order = np.argsort(at, kind="stable")
    distinct, places = np.unique(at[order], return_index=True)
    rises = np.add.reduceat(step[order], places) if len(places) else step
    ends = judged.mean(sums[1:], defined)
    values = judged.mean(sums[0] + np.append(0.0, np.cumsum(rises)), defined)
    return Mixtures(distinct, values, (float(ends[0]), float(ends[1])), judged.measure.key)


def mean_of(judged: Judged, scores: Floats) -> float:
    """The mean of the measure for one ranking, ``scores float64 [documents]``, −∞ for a document that is at no rank.

    Raises:
        ValueError: for any other score that is not finite, or a measure that is defined on no query.
    """
    _require_finite(scores)
    total, defined = ready(_sum_of, types.Tuple((F8, I8))(*_OF_ALL))(
        scores[judged.rows], judged.offsets, judged.factor, judged.gains, judged.reading
    )
    return float(judged.mean(np.array(total), defined))


def _require_finite(*of_systems: Floats) -> None:
    """What the kernels take for granted: they would write outside their arrays."""
    at_no_rank = np.logical_and.reduce([scores == NOT_RANKED for scores in of_systems])
    for scores in of_systems:
        wrong = ~np.isfinite(scores) & ~at_no_rank
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(f"score {scores[row]} of document {row}: scores that are mixed must be finite")


_OF_ALL = (F8_1D, I8_1D, F8_1D, F8_1D, READING)


@njit(cache=True)
def _sum_of(scores: Floats, offsets: Ints, factor: Floats, gains: Floats, reading: Reading) -> tuple[float, int]:
    """The sum of a ranking's values over the queries where they are defined, and how many these are."""
    total, defined = 0.0, 0
    for q in range(len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        found = 0.0
        if factor[q] != 0.0:
            found = _value_of(scores[a:b], gains[a:b], reading)
        if not np.isnan(factor[q] * found):
            total += factor[q] * found
            defined += 1
    return total, defined


@njit(cache=True)
def _walk_all(
    first: Floats,
    second: Floats,
    offsets: Ints,
    factor: Floats,
    gains: Floats,
    reading: Reading,
    query: int,
    n: int,
    defined: int,
    at: Floats,
    steps: Floats,
    sums: Floats,
) -> tuple[int, int, int]:
    """Of the queries from `query` on, one behind the other: writes where a value changes, and by how much, behind the `n` that were found before;
    and adds up the values at α just above 0, at 0 and at 1, of `defined` queries before. Returns these three as they are then; the first
    is the query that there was no room for, or the number of queries."""
    for q in range(query, len(offsets) - 1):
        a, b = offsets[q], offsets[q + 1]
        if factor[q] == 0.0:
            defined += 1
            continue
        alphas, values, at_first, at_second = _walk(first[a:b], second[a:b], gains[a:b], reading)
        if np.isnan(factor[q] * values[0]):
            continue
        if n + len(alphas) > len(at):
            return q, n, defined
        defined += 1
        sums[0] += factor[q] * values[0]
        sums[1] += factor[q] * at_first
        sums[2] += factor[q] * at_second
        for k in range(len(alphas)):
            at[n + k], steps[n + k] = alphas[k], factor[q] * (values[k + 1] - values[k])
        n += len(alphas)
    return len(offsets) - 1, n, defined


@njit(cache=True)
def _value_of(scores: Floats, gains: Floats, reading: Reading) -> float:
    """`value_at` of the documents that have ranks; where only those above a cutoff matter, the rest is not ranked."""
    n, cutoff = _listed(scores), reading.cutoff
    if n == len(scores) and (not reading.cut or cutoff >= n):
        whole: float = value_at(scores, gains, reading)
        return whole
    near = np.empty(len(scores), np.bool_)
    level, m = -np.inf, 0
    if reading.cut and cutoff < n:
        level = _highest(scores, cutoff)
    for d in range(len(scores)):
        near[d] = scores[d] >= level and scores[d] > NOT_RANKED
        m += near[d]
    above, own = _kept_first(scores, near)[:m], _kept_first(gains, near)
    order, ranked = by_score(above), own.copy()
    ends = np.arange(1, n + 1)
    groups = tie_groups(above, order, ends) if reading.in_expectation else m
    for k in range(m, n):
        ends[groups] = k + 1
        groups += 1
    for k in range(m):
        ranked[k] = own[order[k]]
    found: float = value_kernel(reading.value)(ranked, ends[:groups], reading.curve, cutoff)
    return found


@njit(cache=True)
def _listed(scores: Floats) -> int:
    """How many documents have a rank."""
    n = 0
    for score in scores:
        n += score > NOT_RANKED
    return n


@njit(cache=True)
def _kept_first(values: Floats, kept: Bools) -> Floats:
    """The values that are kept, then the others, each in the order given: of a mask numba compiles every use anew, for half a second each."""
    parted, k = np.empty(len(values)), 0
    for wanted in (True, False):
        for d in range(len(values)):
            if kept[d] == wanted:
                parted[k] = values[d]
                k += 1
    return parted


@njit(cache=True)
def _walk(first: Floats, second: Floats, gains: Floats, reading: Reading) -> tuple[Floats, Floats, float, float]:
    """Where a query's value changes along α, its values between, and those at both ends.

    Documents with equal scores in both rankings are tied all the way; where ties count in expectation they are one *unit*:

        documents, by falling first score, then second     a b c d e
        units: from where, how many                        0:1 1:2 3:2        (b = c, d = e)

    A unit's place is the number of documents above it; where two units cross, each one's place moves by the other's size.
    """
    curve, cutoff, value, in_expectation = reading.curve, reading.cutoff, value_kernel(reading.value), reading.in_expectation
    at_first, at_second = _value_of(first, gains, reading), _value_of(second, gains, reading)
    kept, n = np.empty(len(first), np.bool_), _listed(first)
    for d in range(len(first)):
        kept[d] = first[d] > NOT_RANKED
    n_listed, ranked = n, _kept_first(gains, kept)
    first, second = _kept_first(first, kept)[:n], _kept_first(second, kept)[:n]
    if reading.cut and cutoff < n:
        near = _contenders(first, second, cutoff)
        parted, n = _kept_first(ranked[:n], near), 0
        for d in range(len(parted)):
            ranked[d] = parted[d]
            if near[d]:
                n += 1
        first, second = _kept_first(first, near)[:n], _kept_first(second, near)[:n]
    order = _by_both(first, second)
    begin, size, units = np.empty(n, np.int64), np.empty(n, np.int64), 0
    for k in range(n):
        d, e = order[k], order[k - 1]
        if in_expectation and k and first[d] == first[e] and second[d] == second[e]:
            size[units - 1] += 1
        else:
            begin[units], size[units] = k, 1
            units += 1
    a, b, own = np.empty(units), np.empty(units), np.empty(n)
    for u in range(units):
        a[u], b[u] = first[order[begin[u]]], second[order[begin[u]]]
    for k in range(n):
        own[k] = ranked[order[k]]
    alive = _alive(b, size, units, cutoff) if reading.cut and cutoff < n else np.arange(units)
    # `place` is where a unit's documents are now; those that never matter stand behind all others
    place, ends = np.empty(units, np.int64), np.empty(n_listed, np.int64)
    matters, filled = np.zeros(units, np.bool_), 0
    for k in range(len(alive)):
        matters[alive[k]] = True
    for wanted in (True, False):
        for u in range(units):
            if matters[u] == wanted:
                place[u] = filled
                for k in range(size[u]):
                    ranked[filled + k] = own[begin[u] + k]
                filled += size[u]
    grouped, mean = units < n, np.empty(units)
    for u in range(units):
        total = 0.0
        for k in range(begin[u], begin[u] + size[u]):
            total += own[k]
        mean[u] = total / size[u]
    groups = _ends(place, size, units, filled, ends)
    times, above, below = _crossings(a, b, alive)
    alphas, values, found, added = np.empty(len(times)), np.empty(len(times) + 1), 0, 0
    values[0] = value(ranked, ends[:groups], curve, cutoff)
    k = 0
    while k < len(times):
        start, change = k, 0.0
        while k < len(times) and times[k] - times[start] <= _TOGETHER:
            u, v = above[k], below[k]
            change -= _brings(u, place, size, mean, curve) + _brings(v, place, size, mean, curve)
            place[u] += size[v]
            place[v] -= size[u]
            change += _brings(u, place, size, mean, curve) + _brings(v, place, size, mean, curve)
            k += 1
        changed = False
        for j in range(start, k):
            for u in (above[j], below[j]):
                for i in range(size[u]):
                    position, gain = place[u] + i, own[begin[u] + i]
                    changed |= ranked[position] != gain and (position < cutoff or not reading.cut)
                    ranked[position] = gain
        if changed or grouped:
            added = added + 1 if reading.additive else 0
            now = values[found] + change
            if added % _AFRESH == 0:
                groups = _ends(place, size, units, filled, ends) if grouped else groups
                now = value(ranked, ends[:groups], curve, cutoff)
            if now != values[found]:
                alphas[found] = times[start]
                found += 1
                values[found] = now
    return alphas[:found].copy(), values[: found + 1].copy(), at_first, at_second


@njit(cache=True)
def _by_both(first: Floats, second: Floats) -> Ints:
    """Positions by falling first score, then falling second, then as they stand."""
    by_second, n = by_score(second), len(first)
    then, order = np.empty(n), np.empty(n, np.int64)
    for k in range(n):
        then[k] = first[by_second[k]]
    by_first = by_score(then)
    for k in range(n):
        order[k] = by_second[by_first[k]]
    return order


@inner()
def _brings(u: int, place: Ints, size: Ints, mean: Floats, curve: Floats) -> float:
    """What a unit adds to Σ gain · curve where it stands."""
    total = 0.0
    for rank in range(place[u], place[u] + size[u]):
        total += mean[u] * curve[rank]
    return total


@njit(cache=True)
def _contenders(first: Floats, second: Floats, cutoff: int) -> Bools:
    """The documents that the `cutoff` ones which are high in both rankings are not all above, in both: others never come into the
    ranks that matter."""
    n = len(first)
    lows = first.min(), second.min()
    widths = first.max() - lows[0], second.max() - lows[1]
    both = np.empty(n)
    for d in range(n):
        one = (first[d] - lows[0]) / (widths[0] or 1.0)
        other = (second[d] - lows[1]) / (widths[1] or 1.0)
        both[d] = min(one, other)
    level = _highest(both, cutoff)
    corner = np.full(2, np.inf)  # of the documents that are that high, unscaled: scaling may make equal what is not
    for d in range(n):
        if both[d] >= level:
            corner[0], corner[1] = min(corner[0], first[d]), min(corner[1], second[d])
    kept = np.empty(n, np.bool_)
    for d in range(n):
        kept[d] = first[d] >= corner[0] or second[d] >= corner[1]
    return kept


@njit(cache=True)
def _highest(values: Floats, k: int) -> float:
    """The k-th highest by Hoare's selection, as np.partition finds it, which takes numba seconds to compile."""
    left, low, high = values.copy(), 0, len(values) - 1
    while low < high:
        middle, i, j = left[(low + high) // 2], low, high
        while i <= j:
            while left[i] > middle:
                i += 1
            while left[j] < middle:
                j -= 1
            if i <= j:
                left[i], left[j] = left[j], left[i]
                i, j = i + 1, j - 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    found: float = left[k - 1]
    return found


@njit(cache=True)
def _alive(b: Floats, size: Ints, units: int, cutoff: int) -> Ints:
    """The units that fewer than `cutoff` documents are above all the way: those before them, with no lower second score."""
    kept, n = np.empty(units, np.int64), 0
    highest = np.full(cutoff, -np.inf)  # second scores of the documents before, falling
    for u in range(units):
        if highest[cutoff - 1] >= b[u]:
            continue
        kept[n] = u
        n += 1
        for _ in range(min(size[u], cutoff)):
            k = cutoff - 1
            while k > 0 and highest[k - 1] < b[u]:
                highest[k] = highest[k - 1]
                k -= 1
            highest[k] = b[u]
    return kept[:n]


@njit(cache=True)
def _ends(place: Ints, size: Ints, units: int, filled: int, ends: Ints) -> int:
    """Writes the ends of the units in ranked order, and of single documents from `filled` on; returns how many there are."""
    marked = np.zeros(len(ends), np.bool_)
    for u in range(units):
        marked[place[u] + size[u] - 1] = True
    groups = 0
    for k in range(len(ends)):
        if marked[k] or k >= filled:
            ends[groups] = k + 1
            groups += 1
    return groups


@njit(cache=True)
def _crossings(a: Floats, b: Floats, alive: Ints) -> tuple[Floats, Ints32, Ints32]:
    """The α in (0, 1) at which two units change places, rising, and which is above before and which after."""
    n = 0
    for i in range(len(alive)):
        for j in range(i + 1, len(alive)):
            n += 1 if b[alive[i]] < b[alive[j]] else 0
    times, above, below = np.empty(n), np.empty(n, np.int32), np.empty(n, np.int32)
    n = 0
    for i in range(len(alive)):
        for j in range(i + 1, len(alive)):
            u, v = alive[i], alive[j]
            if b[u] < b[v]:
                of_first, of_second = a[u] - a[v], b[v] - b[u]
                time = of_first / (of_first + of_second)
                if 0.0 < time < 1.0:
                    times[n], above[n], below[n] = time, u, v
                    n += 1
    order, sooner = np.empty(n, np.int64), np.empty(n)
    for k in range(n):
        sooner[k] = -times[k]
    sort_falling(sooner, order)
    of_times, of_above, of_below = np.empty(n), np.empty(n, np.int32), np.empty(n, np.int32)
    for k in range(n):
        of_times[k], of_above[k], of_below[k] = times[order[k]], above[order[k]], below[order[k]]
    return of_times, of_above, of_below
