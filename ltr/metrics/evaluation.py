"""Measures of rankings, query by query, under the conventions of any tool.

`evaluate` checks its arguments; its kernel ranks every query once and reads all measures off that ranking, queries in parallel, each
writing its own cells. `explain` breaks the difference from another tool's number down, rule by rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numba import njit, prange, types
from numpy.typing import ArrayLike, NDArray

from ltr.data.arrays import floats_of, ids_of, ints_of, offsets_of
from ltr.data.offsets import offsets_from_sizes
from ltr.kernels.kernel import (
    F8_1D,
    F8_2D,
    I1,
    I8,
    I8_1D,
    Address,
    Array,
    Bools,
    Floats,
    Ints,
    address,
    addresses,
    inner,
    kernel_at,
    ready,
    record_type,
)
from ltr.kernels.ranking import RANK, SORT, rank, rank_kernel, sort_falling, sort_kernel
from ltr.metrics.conventions import PRESETS, Conventions
from ltr.metrics.measure import VALUE, Gain, Measure, curve_of, gains_of, value_kernel

NOT_RANKED = -np.inf
"""The score of a document that is at no rank."""
_BLOCKS = 64
"""Of queries that follow one another, among which threads share the work."""


@inner()
def _in_order(values: Floats) -> bool:
    for k in range(1, len(values)):
        if values[k] < values[k - 1]:
            return False
    return True


@njit(cache=True)
def tie_groups(scores: Floats, order: Ints, ends: Ints) -> int:
    """Writes the ends of the groups of equal scores in ranked order; returns how many there are."""
    groups = 0
    for k in range(len(order)):
        if k + 1 == len(order) or scores[order[k + 1]] != scores[order[k]]:
            ends[groups] = k + 1
            groups += 1
    return groups


class Sorters(NamedTuple):
    """Addresses of `_rank_query` and of what it is given, `rank` and `sort_falling`."""

    of_query: Address
    rank: Address
    sort_falling: Address


@njit(cache=True)
def _rank_query(scores: Floats, tie_breaker: Floats, group_ties: bool, sorters: Sorters, order: Ints, ends: Ints) -> int:
    """Ranks one query: writes its documents by score, descending, then by tie breaker, ``int64 [documents]``, and the ends of the groups
    that count as tied; returns how many these are, 0 where no two scores are tied."""
    n, own, as_given = len(scores), scores, group_ties or _in_order(tie_breaker)
    by_tie_breaker = np.empty(0 if as_given else n, np.int64)
    if not as_given:
        own = np.empty(n)
        for k in range(n):
            own[k] = -tie_breaker[k]
        sort_kernel(sorters.sort_falling)(own, by_tie_breaker)
        for k in range(n):
            own[k] = scores[by_tie_breaker[k]]
    alone = rank_kernel(sorters.rank)(own, order) or not group_ties
    n_groups = 0 if alone else tie_groups(own, order, ends)
    if not as_given:
        for k in range(n):
            order[k] = by_tie_breaker[order[k]]
    return n_groups


_SORTERS = record_type(Sorters, I8, I8, I8)
_RANK_QUERY = I8(F8_1D, F8_1D, I1, _SORTERS, I8_1D, I8_1D)
_rank_query_kernel = kernel_at(_RANK_QUERY)


class Readings(NamedTuple):
    """Measures as compiled code reads them, those of the same gains beside each other.

    Attributes:
        gains: ``float64 [kinds of gains, documents]``.
        kind: of each measure, ``int64 [measures]``.
        curves, cutoffs: ``float64 [measures, longest query]`` and ``int64 [measures]``.
        values: addresses of their kernels, ``int64 [measures]``.
    """

    gains: Floats
    kind: Ints
    curves: Floats
    cutoffs: Ints
    values: Array


@njit(cache=True, parallel=True)
def _values(
    scores: Floats, tie_breaker: Floats, offsets: Ints, group_ties: bool, sorters: Sorters, readings: Readings, values: Floats
) -> None:
    """Ranks every query once and writes all its measures, ``float64 [measures, queries]``. What a query needs besides, the others of its
    block use again."""
    n_queries = len(offsets) - 1
    for block in prange(_BLOCKS):
        begin, end, longest = n_queries * block // _BLOCKS, n_queries * (block + 1) // _BLOCKS, np.int64(0)
        for q in range(begin, end):
            longest = max(longest, offsets[q + 1] - offsets[q])
        order, ends, gains = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest)
        singles = np.empty(longest, np.int64)
        for k in range(longest):
            singles[k] = k + 1
        for q in range(begin, end):
            first, n = offsets[q], offsets[q + 1] - offsets[q]
            n_groups = _rank_query_kernel(sorters.of_query)(
                scores[first : first + n], tie_breaker[first : first + n], group_ties, sorters, order[:n], ends[:n]
            )
            ranked = n
            while ranked > 0 and scores[first + order[ranked - 1]] == NOT_RANKED:
                ranked -= 1
            own_ends = ends[: n_groups - (ranked < n)] if n_groups else singles[:ranked]
            for m in range(len(readings.kind)):
                if m == 0 or readings.kind[m] != readings.kind[m - 1]:
                    of_kind = readings.gains[readings.kind[m]]
                    for k in range(n):
                        gains[k] = of_kind[first + order[k]]
                values[m, q] = value_kernel(readings.values[m])(gains[:n], own_ends, readings.curves[m], readings.cutoffs[m])


_READINGS = record_type(Readings, F8_2D, I8_1D, F8_2D, I8_1D, I8_1D)
_VALUES = types.void(F8_1D, F8_1D, I8_1D, I1, _SORTERS, _READINGS, F8_2D)


def evaluate(
    labels: ArrayLike | Mapping[str, ArrayLike],
    scores: ArrayLike,
    offsets: ArrayLike,
    measures: str | Measure | Iterable[str | Measure],
    conventions: Conventions | None = None,
    position: ArrayLike | None = None,
    documents: NDArray[np.bytes_] | None = None,
) -> dict[str, Floats]:
    """Computes measures for each query.

    Args:
        labels: judged relevance ``[documents]`` (NaN: not judged), or several label sources by name
            (``{"label": …, "click": …}``).
        scores: ``[documents]``, higher is better; −∞ for an unranked document, such as a judged one that a run did not retrieve: it has
            no rank and counts only in the ideal ranking (trec_eval's rule).
        offsets: ``[queries + 1]``, first document of each query, then the number of documents.
        measures: one or several names such as ``ndcg@10`` or ``map``.
        conventions: tie, empty-query and label rules.
        position: original row of each document, for ``ties="stable"`` (default: the order given).
        documents: document ids, for ``ties="docid"``, which are compared as text.

    Returns:
        ``{key: float64 [queries]}``; NaN for a query without a judged document and, with ``empty="skip"``, for one on which the measure
        is undefined, so average with ``numpy.nanmean``.

    Raises:
        ValueError: for shapes that do not fit, a score that is NaN or +∞, an unknown measure or label source.

    >>> evaluate([2, 0, 1], [0.1, 0.3, 0.2], [0, 3], ["ndcg@10", "mrr"])["mrr"]
    array([0.33333333])
    """
    sources = {k: floats_of(k, v) for k, v in (labels if isinstance(labels, Mapping) else {"label": labels}).items()}
    scores = floats_of("scores", scores)
    offsets = offsets_of(offsets, len(scores))
    conventions = Conventions.of(conventions)
    wrong = ~(scores < np.inf)
    if wrong.any():
        raise ValueError(
            f"score {scores[wrong][0]} of document {np.flatnonzero(wrong)[0]}: scores must be finite, or -inf for an unranked document"
        )
    for name, values in sources.items():
        if values.shape != scores.shape:
            raise ValueError(f"{name}: labels of shape {values.shape} for {len(scores)} scores")
        labels_of(name, values)
    if position is not None:
        position = ints_of("position", position)
        if position.shape != scores.shape:
            raise ValueError(
                f"position has {len(position)} {'entry' if len(position) == 1 else 'entries'}; there are {len(scores)} scores"
            )
    if documents is not None:
        given = np.asarray(documents)
        if given.shape != scores.shape:
            raise ValueError(
                f"documents has {given.size} {'entry' if given.size == 1 else 'entries'}; there are {len(scores)} scores"
            )
        by_id, numbered = conventions.ties == "docid", given.dtype.kind in "iuO"
        documents = ids_of("documents", given.astype(np.str_) if numbered else given, len(scores)) if by_id else None
    by_source: dict[str, list[Measure]] = {}
    several = measures if isinstance(measures, Iterable) and not isinstance(measures, str) else [measures]
    for measure in map(Measure.of, several):
        if measure.source not in sources:
            raise ValueError(f"{measure.key} needs the label source {measure.source!r}; given: {', '.join(sources)}")
        by_source.setdefault(measure.source, []).append(measure)
    found: dict[str, Floats] = {}
    for source, wanted in by_source.items():
        found |= _of_source(wanted, sources[source], scores, offsets, conventions, position, documents)
    return found


def labels_of(name: str, values: Floats) -> Floats:
    """The labels ``float64 [documents]`` of a source.

    Raises:
        ValueError: for one below 0.
    """
    if np.fmin.reduce(values, initial=0.0) < 0:
        raise ValueError(f"{name}: a label of {np.nanmin(values):g}; labels must be 0 or more, or NaN for not judged")
    return values


def _of_source(
    measures: Sequence[Measure],
    labels: Floats,
    scores: Floats,
    offsets: Ints,
    conventions: Conventions,
    position: ArrayLike | None,
    documents: NDArray[np.bytes_] | None,
) -> dict[str, Floats]:
    """Measures that read one label source."""
    if conventions.unlabelled == "condensed":
        judged = ~np.isnan(labels)
        labels, scores, offsets = labels[judged], scores[judged], offsets_from_sizes(judged)[offsets]
        position = None if position is None else np.asarray(position)[judged]
        documents = None if documents is None else documents[judged]
    sizes = np.diff(offsets)
    breaker = tie_breaker(conventions.ties, labels, position, documents)
    kinds: dict[Gain, list[Measure]] = {}
    for measure in measures:
        kinds.setdefault(measure.definition.gain, []).append(measure)
    gains = [gains_of(alike[0], labels, conventions) for alike in kinds.values()]
    by_kind = [(k, measure) for k, alike in enumerate(kinds.values()) for measure in alike]
    curves = [curve_of(measure, max(int(sizes.max(initial=0)), 1), conventions) for _, measure in by_kind]
    readings = Readings(
        gains[0][None] if len(gains) == 1 else np.array(gains),
        np.array([k for k, _ in by_kind]),
        np.array([curve for curve, _ in curves]),
        np.array([cutoff for _, cutoff in curves]),
        addresses((measure.definition.value for _, measure in by_kind), VALUE),
    )
    sorters = Sorters(address(_rank_query, _RANK_QUERY), address(rank, RANK), address(sort_falling, SORT))
    values = np.empty((len(by_kind), len(sizes)))
    ready(_values, _VALUES)(scores, breaker, offsets, conventions.ties == "expected", sorters, readings, values)
    judged = has_judgment(labels, offsets)
    found = {
        measure: _empty_ruled(measure, row, sizes, judged, conventions) for (_, measure), row in zip(by_kind, values, strict=True)
    }
    return {measure.key: found[measure] for measure in measures}


def has_judgment(labels: Floats, offsets: Ints) -> Bools:
    """Whether somebody judged a document of the query, ``bool [queries]``."""
    missing = np.isnan(labels)
    before = offsets_from_sizes(~missing)[offsets] if missing.any() else offsets
    judged: Bools = np.diff(before) > 0
    return judged


def _empty_ruled(measure: Measure, values: Floats, sizes: Ints, judged: Bools, conventions: Conventions) -> Floats:
    factors = query_factors(measure, sizes, judged, conventions)
    values = np.where(factors == 0, 0.0, values * factors)
    worth = {"skip": np.nan, "zero": 0.0, "one": 1.0}[conventions.empty]
    return np.where(np.isnan(values) & judged, worth, values)


def query_factors(measure: Measure, sizes: Ints, judged: Bools, conventions: Conventions) -> Floats:
    """What the measure of a query is multiplied by, ``float64 [queries]``, for having fewer documents than the cutoff; 0: it is 0, even
    where it is undefined. NaN where nobody judged a document: the query is in no list of judgments, so that no tool counts it."""
    factors: Floats = np.where(judged, 1.0, np.nan)
    if not measure.cutoff or conventions.short not in measure.definition.short_rules:
        return factors
    if conventions.short == "zero":
        return factors * (sizes >= measure.cutoff)
    return factors * (measure.cutoff / np.clip(sizes, 1, measure.cutoff))


def tie_breaker(ties: str, labels: Floats, position: ArrayLike | None, documents: NDArray[np.bytes_] | None) -> Floats:
    """By what equal scores are ranked, the lowest first, ``float64 [documents]``; empty where they are not."""
    if ties == "expected":
        return np.empty(0)
    if ties == "worst":
        return np.nan_to_num(labels, nan=0.0)
    if ties == "docid":
        if documents is None:
            raise ValueError("ties='docid' needs document ids")
        return -np.unique(documents, return_inverse=True)[1].astype(np.float64)
    return np.arange(len(labels), dtype=np.float64) if position is None else np.require(position, np.float64, ["C", "W"])


@dataclass(frozen=True)
class Shift:
    """What one rule does to the mean of a measure.

    Attributes:
        rule: a field of `Conventions`, or ``discount`` or ``cutoff``.
        ours, theirs: its values.
        alone: change of the mean when only this rule is changed.
        value: the mean after this rule and all before it were changed.
    """

    rule: str
    ours: str
    theirs: str
    alone: float
    value: float


def explain(
    measure: str | Measure, ours: Conventions, tool: str, value: Callable[[Measure, Conventions], float]
) -> tuple[float, list[Shift]]:
    """Why another tool's number differs: our mean, and the shift of every rule in which the tool differs.

    Args:
        measure: in our terms; the tool may mean another form of NDCG by it.
        ours: our conventions.
        tool: a name in `PRESETS`.
        value: mean of a measure under conventions, for instance over `evaluate`.

    Raises:
        ValueError: listing the known tools.
    """
    if tool not in PRESETS:
        raise ValueError(f"unknown convention {tool!r}; choose from: {', '.join(PRESETS)}")
    measure = Measure.of(measure)
    other, theirs = PRESETS[tool], PRESETS[tool].rules_of(measure.name)
    start = value(measure, ours)
    shifts: list[Shift] = []
    current_measure, current = measure, ours
    if measure.name in ("ndcg", "jk_ndcg") and measure.name != other.ndcg:
        current_measure = replace(measure, name=other.ndcg)
        after = value(current_measure, ours)
        shifts.append(Shift("discount", measure.name, other.ndcg, after - start, after))
    if measure.cutoff is not None and measure.name in other.uncut:
        current_measure = replace(measure, cutoff=None)
        after = value(current_measure, ours)
        shifts.append(Shift("cutoff", str(measure.cutoff), "none", after - start, after))
    for rule in fields(Conventions):
        mine, its = getattr(ours, rule.name), getattr(theirs, rule.name)
        if mine != its and rule.name != "max_label":  # no tool fixes the scale of the labels
            current = replace(current, **{rule.name: its})
            alone = value(measure, replace(ours, **{rule.name: its})) - start
            shifts.append(Shift(rule.name, str(mine), str(its), alone, value(current_measure, current)))
    return start, shifts
