"""Effective pairs: how many pairs are learned from, of which labels and where in the ranking (Donmez 2009 section 7.2).

A pair is effective if its λ is not zero. How many there are depends on the measure and the construction: NDCG@10 never learns from
two documents below rank 10, MRR only from documents above the first relevant one. The counts come with two bounds: all pairs of
different label, and all pairs on different sides of the threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit, prange, types

from ltr.data.arrays import scores_of
from ltr.data.brief import Brief
from ltr.data.offsets import group_of_rows
from ltr.data.queries import Queries
from ltr.kernels.kernel import F8_1D, I8, I8_1D, Address, Floats, Ints, Kernel, address, ready
from ltr.kernels.ranking import by_score, sort_falling
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import (
    N_AUX,
    PREPARE,
    ROW,
    VALUE,
    Measure,
    curve_of,
    prepare_kernel,
    ranking_gains,
    row_kernel,
    value_kernel,
)
from ltr.objectives.terms import Term, pair_groups

BANDS = (1, 3, 10, 30)
"""Last ranks of the bands by which pairs are counted, by their upper document; all lower ranks are one more band."""
_AT_ONCE = 512
"""Queries whose counts are held at a time: 20 MB where 32 labels are distinguished."""
_EVERY, _WEIGHTED, _NEIGHBOURS, _ALONE = range(4)
_EFFECTIVE = {
    "ranknet_weighted": _WEIGHTED,
    "spring_smooth": _EVERY,
    "ranknet": _EVERY,
    "local_gradient": _NEIGHBOURS,
    "local_cost": _NEIGHBOURS,
    "discrete_bounded": _ALONE,
}


@dataclass(frozen=True)
class Ledger(Brief):
    """Effective pairs of one term over a data set.

    Attributes:
        measure, construction: of the term.
        labels: the levels of its label source, descending.
        counts: ``int64 [levels, levels, bands]``: pairs of a document of the higher and one of the lower level, by the rank of
            the upper one. ``discrete_bounded`` moves documents: they are counted under (own level, own level).
        multilevel, binary: bounds: all pairs of different label, and of a relevant and another document.
    """

    measure: str
    construction: str
    labels: tuple[float, ...]
    counts: Ints
    multilevel: int
    binary: int

    @property
    def total(self) -> int:
        """Effective pairs of all labels and bands."""
        return int(self.counts.sum())


def ledger(queries: Queries, terms: Sequence[Term], scores: Floats, conventions: Conventions | None = None) -> list[Ledger]:
    """The effective pairs of each term at `scores`.

    Args:
        queries: the data set; the 32 highest labels of a source are distinguished, lower ones count as the lowest of these.
        terms: of the objective.
        scores: ``float64 [documents]``.
        conventions: label rules.

    Raises:
        ValueError: unless there is one finite score a document.
    """
    scores, conventions = scores_of("scores", scores, queries.n_documents), conventions or Conventions()
    return [_of_term(queries, term, scores, conventions) for term in terms]


def _of_term(queries: Queries, term: Term, scores: Floats, conventions: Conventions) -> Ledger:
    measure = Measure.of(term.measure)
    labels = queries.source(measure.source)
    gains = ranking_gains(measure, labels, conventions)
    curve, cutoff = curve_of(measure, max(int(np.diff(queries.offsets).max(initial=0)), 1), conventions)
    levels = np.unique(labels[~np.isnan(labels)])[::-1][:32]
    level = np.minimum(np.searchsorted(-levels, -np.nan_to_num(labels)), len(levels) - 1)
    relevant = labels >= (conventions.threshold if measure.source == "label" else np.finfo(np.float64).tiny)
    counts = np.zeros((len(levels), len(levels), len(BANDS) + 1), np.int64)
    definition = measure.definition
    kernels = address(definition.value, VALUE), address(definition.prepare, PREPARE), address(definition.row, ROW)
    groups = pair_groups(term, labels, queries.labels)
    kind = _EFFECTIVE.get(term.construction, _EVERY)
    for first in range(0, queries.n_queries if len(levels) else 0, _AT_ONCE):
        offsets = queries.offsets[first : first + _AT_ONCE + 1]
        of_queries = np.zeros((len(offsets) - 1, *counts.shape), np.int64)
        ready(_count, _COUNT)(scores, gains, groups, level, offsets, curve, cutoff, kind, *kernels, of_queries)
        counts += of_queries.sum(axis=0)
    return Ledger(
        measure.key,
        term.construction,
        tuple(levels.tolist()),
        counts,
        _pairs_within(queries.offsets, np.where(np.isnan(labels), -1, level)),
        _pairs_within(queries.offsets, np.where(np.isnan(labels), -1, relevant)),
    )


def _pairs_within(offsets: Ints, groups: Ints) -> int:
    """Pairs of documents of one query and of different groups; group −1 is left out."""
    kept = groups >= 0
    query = group_of_rows(offsets)[kept]
    sizes = np.bincount(query, minlength=len(offsets) - 1).astype(object)
    alike = np.unique(np.stack((query, groups[kept])), axis=1, return_counts=True)[1].astype(object)
    return int((sizes * sizes).sum() - (alike * alike).sum()) // 2


@njit(cache=True, parallel=True)
def _count(
    scores: Floats,
    gains: Floats,
    groups: Floats,
    level: Ints,
    offsets: Ints,
    curve: Floats,
    cutoff: int,
    kind: int,
    value: Address,
    prepare: Address,
    row: Address,
    counts: Ints,
) -> None:
    for q in prange(len(offsets) - 1):
        first, last = offsets[q], offsets[q + 1]
        order, n = by_score(scores[first:last]), 0
        for d in order:
            if not np.isnan(gains[first + d]):
                order[n] = first + d
                n += 1
        if n == 0:
            continue
        own_gains, own_groups, own_level = np.empty(n), np.empty(n), np.empty(n, np.int64)
        for t in range(n):
            own_gains[t], own_groups[t], own_level[t] = gains[order[t]], groups[order[t]], level[order[t]]
        aux, change = np.empty((N_AUX, n + 1)), np.zeros(n)
        rows = prepare_kernel(prepare)(own_gains, curve, cutoff, aux)
        ideal = np.empty(n, np.int64)
        sort_falling(own_gains, ideal)
        for t in range(n):
            band = 0
            for end in BANDS:
                band += t >= end
            if kind == _ALONE:
                defined = not np.isnan(value_kernel(value)(own_gains, np.arange(1, n + 1), curve, cutoff))
                moves = defined and not np.isnan(own_groups[t]) and _moves(t, ideal, own_gains, curve, cutoff, value_kernel(value))
                counts[q, own_level[t], own_level[t], band] += moves
                continue
            if t < rows:
                row_kernel(row)(t, own_gains, curve, cutoff, aux, change)
            else:
                change[:] = 0.0
            for b in range(t + 1, min(n, t + 2) if kind == _NEIGHBOURS else n):
                pair = own_gains[t] != own_gains[b] and own_groups[t] == own_groups[b]
                if pair and (kind == _EVERY or change[b] > 0.0):
                    higher, lower = min(own_level[t], own_level[b]), max(own_level[t], own_level[b])
                    counts[q, higher, lower, band] += 1


_COUNT = types.void(F8_1D, F8_1D, F8_1D, I8_1D, I8_1D, F8_1D, I8, I8, I8, I8, I8, types.Array(types.int64, 4, "C"))


@njit(cache=True)
def _moves(r: int, ideal: Ints, gains: Floats, curve: Floats, cutoff: int, value: Kernel) -> bool:
    """Whether the value changes when the document at rank r moves to its place in the ideal ranking."""
    n = len(gains)
    target = 0
    while ideal[target] != r:
        target += 1
    moved = np.empty(n)
    others = np.empty(n)
    k = 0
    for i in range(n):
        if i != r:
            others[k] = gains[i]
            k += 1
    moved[:target] = others[:target]
    moved[target] = gains[r]
    moved[target + 1 :] = others[target : n - 1]
    ends = np.arange(1, n + 1)
    changes: bool = value(moved, ends, curve, cutoff) != value(gains, ends, curve, cutoff)
    return changes
