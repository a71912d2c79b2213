"""Rankings of good and bad documents, drawn once before a model is fitted (Dubey 2009 section 4).

Of a ranking only the order of good and bad documents matters, and for a score w·φ only how many of the others each is above:

    ranking      g1 b1 g2 b2 b3     of good g:  n_g = bad documents below it       g1: 3, g2: 2
                                    of bad b:   n_b = good documents below it      b1: 1, b2: 0, b3: 0

With φ(y) = Σ_{g,b} y_gb·(x_g − x_b) the best ranking differs from y by δφ(y) = φ(y_q) − φ(y) = Σ_g 2(n⁻ − n_g)·x_g − Σ_b 2n_b·x_b: one
whole number per document, and w·δφ is a sum over scores.

A walk flips the order of one good and one bad document at a time. The result is a ranking only where the two are in adjacent blocks
(runs of one class): g leaves its block at the bottom, or at the top, and b its own the other way.

    … [g g' g''] [b b' b''] …   flip (g, b)   … [g' g''] [b] [g] [b' b''] …
"""

from dataclasses import dataclass, replace

import numpy as np
from numba import njit, prange

from ltr.data.digests import GOLDEN, mix_one, salt_of
from ltr.data.offsets import offsets_from_sizes
from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats, Ints, Ints32, Words
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import evaluate
from ltr.metrics.measure import Measure

_ELEVEN = np.uint64(11)
_STATES = 11
"""Restart states of a skewed choice: from the best ranking to the worst in tenths."""


@dataclass(frozen=True)
class Sample:
    """Rankings of every query that has good and bad documents.

    Attributes:
        queries: ``int64 [kept]``, which queries these are.
        documents: ``int64 [Σ sizes]``, the rows of their judged documents, query by query; `sizes`: how many of each.
        starts: ``int64 [kept + 1]``, where each one's rankings begin.
        cells, counts: ``int64 [kept + 1]`` and ``int32 [cells]``: of each ranking δφ's whole number of each document, ranking by
            ranking, a query's from ``cells[q]`` on.
        pairs: ``float64 [kept]``: n⁺n⁻ of each.
        losses: ``float64 [rankings]``: Δ, the measure of the best ranking less that of this one.
    """

    queries: Ints
    documents: Ints
    sizes: Ints
    starts: Ints
    cells: Ints
    counts: Ints32
    losses: Floats
    pairs: Floats


def binary_labels(queries: Queries, source: str) -> Floats:
    """The labels of a source as 0 and 1; NaN stays.

    Raises:
        ValueError: for other than two levels, or where no query has both.
    """
    labels = queries.source(source)
    levels = np.unique(labels[~np.isnan(labels)])
    if len(levels) > 2:
        raise ValueError(
            f"labels of {source!r} have {len(levels)} levels, and conditional models need two: give 0 and 1, such as labels >= 2; in a "
            "configuration make some with data.binarise and read them, such as map:binary"
        )
    if len(levels) < 2:
        raise ValueError(f"labels of {source!r} are all {levels[0]:g}" if len(levels) else f"no document has a label {source!r}")
    return np.where(np.isnan(labels), np.nan, labels == levels[1])


@njit(cache=True)
def _drawn(state: Words) -> float:
    """The next uniform number in [0, 1) of a splitmix64 stream."""
    state[0] += GOLDEN
    return np.float64(mix_one(state[0]) >> _ELEVEN) / 9007199254740992.0


@njit(cache=True)
def _restart(order: Ints, good: int, share: float) -> None:
    """The ranking with this share of the bad documents above all good ones, and the rest below them."""
    n, place = len(order), 0
    n_bad = n - good
    above = int(share * n_bad + 0.5)
    for k in range(above):
        order[place] = good + k
        place += 1
    for k in range(good):
        order[place] = k
        place += 1
    for k in range(above, n_bad):
        order[place] = good + k
        place += 1


@njit(cache=True)
def flip(order: Ints, good: int, upper: int, lower: int) -> bool:
    """Flips the documents at two positions, one good (numbered below `good`) and one bad, if they are in adjacent blocks; returns whether
    they are."""
    first_is_good = order[upper] < good
    middle = upper + 1
    while middle <= lower and (order[middle] < good) == first_is_good:
        middle += 1
    for k in range(middle, lower + 1):
        if (order[k] < good) == first_is_good:
            return False
    above, below = order[upper], order[lower]
    for k in range(upper, middle - 1):
        order[k] = order[k + 1]
    for k in range(lower, middle, -1):
        order[k] = order[k - 1]
    order[middle - 1], order[middle] = below, above
    return True


@njit(cache=True)
def _step(order: Ints, place: Ints, good: int, state: Words, above: Ints, block: Ints) -> None:
    """One accepted step of a walk (C figure 2): pairs are drawn until one flips into a ranking, of a long query as many as it has documents.
    So a drawing looks at nothing but how many good documents are above each position, and in which block it is, which are written first."""
    n = len(order)
    n_bad = n - good
    goods, blocks = 0, 0
    for k in range(n):
        blocks += k > 0 and (order[k] < good) != (order[k - 1] < good)
        above[k], block[k] = goods, blocks
        goods += order[k] < good
    while True:
        pair = int(_drawn(state) * good * n_bad)
        g, b = place[pair // n_bad], place[good + pair % n_bad]
        n_g, n_b = n_bad - (g - above[g]), good - above[b]
        theta = (n_bad - n_g + n_b + 1) / (2 + n) if g < b else (good + n_g - n_b + 1) / (2 + n)
        if _drawn(state) < theta and abs(block[g] - block[b]) == 1:
            flip(order, good, min(g, b), max(g, b))
            for k in range(n):
                place[order[k]] = k
            return


@njit(cache=True)
def counts_of(order: Ints, good: int, counts: Ints32) -> None:
    """δφ's whole number of each document, good ones first: 2(n⁻ − n_g) and −2n_b."""
    bad_above, good_above = 0, 0
    for k in range(len(order)):
        if order[k] < good:
            counts[order[k]] = 2 * bad_above
            good_above += 1
        else:
            counts[order[k]] = -2 * (good - good_above)
            bad_above += 1


@njit(cache=True, parallel=True)
def _walks(
    keys: Words,
    goods: Ints,
    sizes: Ints,
    cells: Ints,
    n_samples: int,
    length: int,
    mix: float,
    skewed: bool,
    weights: Floats,
    counts: Ints32,
) -> None:
    """Draws the rankings of every query; the first is the best one."""
    for q in prange(len(keys)):
        n, good = sizes[q], goods[q]
        state = np.empty(1, np.uint64)
        state[0] = keys[q]
        order, place, above, block = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        _restart(order, good, 0.0)
        counts_of(order, good, counts[cells[q] : cells[q] + n])
        for s in range(1, n_samples):
            if (s - 1) % length == 0:
                u = _drawn(state)
                if skewed:
                    k = 0
                    while k < _STATES - 1 and u >= weights[q, k]:
                        k += 1
                    _restart(order, good, k / (_STATES - 1))
                else:
                    _restart(order, good, 0.0 if u < mix else 1.0)
                for k in range(n):
                    place[order[k]] = k
            _step(order, place, good, state, above, block)
            counts_of(order, good, counts[cells[q] + s * n : cells[q] + (s + 1) * n])


@dataclass(frozen=True)
class Walk:
    """How rankings of a query are drawn: by walks that restart now and then.

    Args:
        samples: rankings to draw per query (fewer remain where some are the same).
        length: steps of a walk before it restarts.
        restart: probability that a walk starts from the best ranking rather than the worst.
        begin: walks start instead from the ranking that has this share of the bad documents above all good ones, in tenths.
        skew: k: walks start instead from one of eleven rankings between these, with probability ∝ e^{kΔ}.

    Raises:
        ValueError: for numbers out of range.
    """

    samples: int = 100
    length: int = 20
    restart: float = 0.9
    skew: float | None = None
    begin: float | None = None

    def __post_init__(self) -> None:
        if self.samples < 1 or self.length < 1 or not 0 <= self.restart <= 1 or not 0 <= (self.begin or 0) <= 1:
            raise ValueError(
                f"samples {self.samples} and length {self.length} must be at least 1, restart {self.restart:g} and begin {self.begin} "
                "lie in [0, 1]"
            )


def draw(
    queries: Queries, measure: str | Measure, walk: Walk | None = None, seed: int = 1, conventions: Conventions | None = None
) -> Sample:
    """Draws rankings of every query that has good and bad documents, the best one always among them, none twice.

    Args:
        queries: in canonical order; random numbers are keyed by their keys.
        measure: whose loss is taken; it names the label source, which has two levels.
        walk: how they are drawn.
        seed: of the draws.
        conventions: label rules.

    Raises:
        ValueError: for labels of other than two levels, or no query with both.
    """
    walk = walk or Walk()
    samples, begin, skew = walk.samples, walk.begin, walk.skew
    measure, kept, orders, goods = _prepared(queries, measure)
    sizes = np.array([len(order) for order in orders], np.int64)
    cells = offsets_from_sizes(sizes * samples)
    weights = np.ones((len(kept), _STATES))
    if begin is not None:
        weights[:, : round(begin * (_STATES - 1))] = 0.0
    elif skew is not None:
        for q, (rows, good) in enumerate(zip(orders, goods, strict=True)):
            losses = _losses(queries, measure, rows, _restarts(len(rows), good), conventions)
            weights[q] = np.cumsum(np.exp(skew * losses - (skew * losses).max()))
        weights /= weights[:, -1:]
    counts = np.empty(int(cells[-1]), np.int32)
    _walks(
        queries.keys[kept] ^ salt_of((seed, 7)),
        goods,
        sizes,
        cells[:-1],
        samples,
        walk.length,
        float(walk.restart),
        skew is not None or begin is not None,
        weights,
        counts,
    )
    drawn = [counts[cells[k] : cells[k + 1]].reshape(samples, sizes[k]) for k in range(len(kept))]
    return gathered(queries, measure, kept, orders, goods * (sizes - goods), drawn, conventions)


def tells_rankings_apart(queries: Queries, measure: str | Measure, conventions: Conventions | None = None) -> bool:
    """Whether the measure of the best ranking and of the worst differ for any query.

    Raises:
        ValueError: for labels of other than two levels, or no query with both.
    """
    measure, _, orders, goods = _prepared(queries, measure)
    ends = ((rows, _restarts(len(rows), good)[[0, -1]]) for rows, good in zip(orders, goods.tolist(), strict=True))
    return any(_losses(queries, measure, rows, table, conventions)[1] > 0 for rows, table in ends)


def _restarts(n: int, good: int) -> Ints32:
    """δφ's whole numbers of the restart states, ``int32 [states, n]``, good documents first."""
    counts, order = np.empty((_STATES, n), np.int32), np.empty(n, np.int64)
    for k in range(_STATES):
        _restart(order, good, k / (_STATES - 1))
        counts_of(order, good, counts[k])
    return counts


def _prepared(queries: Queries, measure: str | Measure) -> tuple[Measure, Ints, list[Ints], Ints]:
    """The measure, the queries with both classes, their judged documents (rows, good ones first) and numbers of good ones."""
    measure = Measure.of(measure)
    labels = binary_labels(queries, measure.source)
    kept, orders, goods = [], [], []
    for q in range(queries.n_queries):
        rows = np.arange(queries.offsets[q], queries.offsets[q + 1])
        good, bad = rows[labels[rows] == 1], rows[labels[rows] == 0]
        if len(good) and len(bad):
            kept.append(q)
            orders.append(np.concatenate((good, bad)))
            goods.append(len(good))
    if not kept:
        raise ValueError(f"no query has both a relevant and another document by the labels of {measure.source!r}")
    return measure, np.array(kept, np.int64), orders, np.array(goods, np.int64)


def gathered(
    queries: Queries, measure: Measure, kept: Ints, orders: list[Ints], pairs: Ints, drawn: list[Ints32],
    conventions: Conventions | None,
) -> Sample:  # fmt: skip
    """The rankings of each query without repetition, the best one first, with their losses; documents in the data set's order."""
    tables, starts, places = [], [0], []
    for rows, counts in zip(orders, drawn, strict=True):
        best = counts[:1]
        others = np.unique(counts, axis=0)
        others = others[(others != best).any(axis=1)]
        distinct = np.vstack((best, others))
        in_order = np.argsort(rows)
        tables.append(np.ascontiguousarray(distinct[:, in_order]))
        places.append(rows[in_order])
        starts.append(starts[-1] + len(distinct))
    losses = np.concatenate(
        [_losses(queries, measure, rows, table, conventions) for rows, table in zip(places, tables, strict=True)]
    )
    sizes = np.array([len(rows) for rows in places], np.int64)
    cells = offsets_from_sizes([table.size for table in tables])
    return Sample(
        kept, np.concatenate(places), sizes, np.array(starts, np.int64), cells,
        np.concatenate([table.ravel() for table in tables]), losses, pairs.astype(np.float64),
    )  # fmt: skip


def _losses(queries: Queries, measure: Measure, rows: Ints, table: Ints32, conventions: Conventions | None) -> Floats:
    """Δ of each ranking: the best one's value less its own. A good document's rank is the number of bad ones above it plus that of the
    good ones above it, and likewise for bad ones."""
    labels = queries.source(measure.source)[rows]
    good = labels == labels.max()
    places = np.empty(table.shape)
    for which, above in ((good, table[:, good] // 2), (~good, int(good.sum()) + table[:, ~good] // 2)):
        places[:, which] = above + np.argsort(np.argsort(above, axis=1, kind="stable"), axis=1, kind="stable")
    tiled = np.tile(labels, len(table))
    offsets = np.arange(len(table) + 1) * len(rows)
    without_ties = replace(conventions or Conventions(), ties="stable")
    values = evaluate({"label": tiled, measure.source: tiled}, -places.ravel(), offsets, [measure], without_ties)[measure.key]
    worse: Floats = values[0] - values
    return worse
