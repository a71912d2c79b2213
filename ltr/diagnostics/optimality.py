"""The Monte-Carlo certificate of local optimality (Donmez 2009 section 5, Burges 2010 section 4.2).

Move the weights by η along random unit directions and watch the training measure. If at least a share ε of directions rose,
K = ⌈ln δ / ln(1 − ε)⌉ of them would show one with confidence 1 − δ; so K directions without a rise reject that.

Three things are not the papers'. A direction rises only if the measure is *strictly* higher at a step, and the verdict is withheld where too
many evaluations tie: with large weights and small steps no order changes, nothing can rise, and a bare test passes without saying anything.
Steps are relative to ‖w‖: of two linear models with the same rankings, absolute steps call the one with small weights an optimum (every step
leaves the neighbourhood) and the one with large weights none. And a step longer than ‖w‖ is drawn but does not count: beyond it lie
other models, not neighbours. The papers' absolute steps are there by ``relative=False``; a model that is linear in its weights is first
brought to ‖w‖ = 1, which changes no ranking, so that its verdict depends on rankings alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
from numba import njit, prange, types

from ltr.data.arrays import floats_of
from ltr.data.offsets import group_of_rows
from ltr.data.queries import Queries
from ltr.kernels.kernel import F8_1D, F8_2D, I8_1D, Floats, Ints, ready
from ltr.kernels.ranking import COUNTED, count_above, lanes_for
from ltr.metrics.conventions import Conventions
from ltr.metrics.many import READING, Judged, Reading, value_at
from ltr.metrics.measure import Measure, value_kernel
from ltr.rankers.parameters import SEED
from ltr.rankers.surface import Surface

NEAR = tuple(round(0.01 * k, 2) for k in range(1, 11))
"""Steps 0.01, 0.02, …, 0.1, of ‖w‖."""

COARSE = tuple(round(0.1 * k, 1) for k in range(1, 11))
"""The papers' steps η = 0.1, 0.2, …, 1."""

FINE = tuple(round(0.001 * k, 3) for k in range(1, 11))
"""Steps 0.001, 0.002, …, 0.01, of ‖w‖ or absolute."""

_BLOCK = 8
"""Queries whose values are added up by one thread at a time."""

_AT_ONCE = 4_000_000
"""Moved scores, and numbers of directions along one weight each, about, that are held in memory: 32 MB."""

_ROUNDING = 1e-9
"""By how much a step of ‖w‖ may come out longer."""

EQUAL = 1e-12
"""Means that differ by no more are equal: where one query gains what another loses, their sums differ by a rounding."""

MOST_DIRECTIONS = 1_000_000
"""Of one certificate."""

Verdict = Literal["optimum", "not", "inconclusive"]
"""What `Certificate.verdict` can be."""


def n_directions(epsilon: float = 0.01, delta: float = 0.01) -> int:
    """K = ⌈ln δ / ln(1 − ε)⌉; 459 for ε = δ = 0.01 (D section 5): if more than a share ε of all directions rose, so many of them at random would all
    fall with probability δ at most.

    Raises:
        ValueError: for a number that does not lie in (0, 1), and for more than `MOST_DIRECTIONS`.
    """
    if not (0 < epsilon < 1 and 0 < delta < 1):
        raise ValueError(f"epsilon {epsilon} and delta {delta} must lie in (0, 1)")
    found = np.ceil(np.log(delta) / np.log1p(-epsilon))
    if found > MOST_DIRECTIONS:
        raise ValueError(
            f"epsilon {epsilon} and delta {delta} would need {found:.3g} directions; the limit is {MOST_DIRECTIONS:,}; raise epsilon or delta"
        )
    return int(found)


@dataclass(frozen=True)
class Certificate:
    """Result of the test of one set of weights (`certify`).

    Attributes:
        verdict: ``optimum`` (no direction rises), ``not`` (some do) or ``inconclusive`` (too many evaluations tie).
        measure: key of the measure.
        value: its mean at the weights.
        steps: ``[steps]``, `relative` to `norm` or absolute; `norm`: ‖w‖ of the weights as they were tested, 1 where scores are linear in them.
        curves: mean of the measure ``float64 [directions, steps]``.
        rising: directions with a value higher by more than `EQUAL` at some step that is no longer than ‖w‖.
        rising_or_tied: the count of Donmez 2009, in which a tie is a rise.
        tie_share: share of evaluations equal to `value`, to `EQUAL`.
        upper_bound: one-sided Clopper–Pearson bound, at confidence 1 − δ, on the share of rising directions.
        epsilon, delta: of the test.
        why: the reason for the verdict ``inconclusive``.
        one_at_a_time: each weight was moved alone. These directions are no random sample, so neither `upper_bound` nor a confidence says anything
            about others.
    """

    verdict: Verdict
    measure: str
    value: float
    steps: tuple[float, ...]
    relative: bool
    norm: float
    curves: Floats = field(repr=False)
    rising: int
    rising_or_tied: int
    tie_share: float
    upper_bound: float
    epsilon: float
    delta: float
    why: str = ""
    one_at_a_time: bool = False


def certify(
    surface: Surface,
    queries: Queries,
    measure: str | Measure = "ndcg_10",
    conventions: Conventions | None = None,
    steps: Sequence[float] | None = None,
    epsilon: float = 0.01,
    delta: float = 0.01,
    largest_tie_share: float = 0.05,
    seed: int = 1,
    one_at_a_time: bool = False,
    relative: bool = True,
    tick: Callable[[float], object] | None = None,
) -> Certificate:
    """Tests whether the weights of a model are at a local optimum of a measure on its training queries.

    Args:
        surface: the model's scores as a function of its weights: ``model.surface(queries.features)``.
        queries: the training queries.
        measure, conventions: the measure and its conventions.
        steps: how far to move the weights; by default `NEAR` if `relative`, otherwise `COARSE`.
        epsilon, delta: with probability 1 − δ, the test finds a rising direction if a share ε of all directions rises.
        largest_tie_share: above this share of ties the verdict is ``inconclusive``.
        seed: random seed for the directions.
        one_at_a_time: move each weight alone, up and down, instead of along random directions, to test whether the gradient vanishes
            (B section 4.2).
        relative: whether steps are shares of ‖w‖; otherwise they are absolute.
        tick: called now and then with the share of the work that is done, above 0 to 1.

    Raises:
        ValueError: for arguments that are no surface or queries, rows that do not fit, steps, a share of ties or a seed out of range, or a measure that no
            query defines.
    """
    measure, conventions = Measure.maximised(measure), Conventions.of(conventions)
    if not isinstance(surface, Surface) or not isinstance(queries, Queries):
        raise ValueError(
            f"certify: given {type(surface).__name__} and {type(queries).__name__}; give model.surface(queries.features) and ltr.Queries"
        )
    if surface.n_documents != queries.n_documents:
        raise ValueError(f"{surface.n_documents} rows of features for {queries.n_documents} documents")
    surface = normalised(surface, queries.offsets)
    usual = NEAR if relative else COARSE
    steps = tuple(floats_of("certify: steps", usual if steps is None else steps).tolist()) or usual
    if not all(0 < step < np.inf for step in steps):
        raise ValueError(f"certify: steps={steps!r}; give lengths above 0")
    if seed not in SEED:
        raise ValueError(f"certify: seed={seed!r} is out of range; it is {SEED}")
    if not 0 <= largest_tie_share <= 1:
        raise ValueError(f"certify: largest_tie_share={largest_tie_share!r}; give a share, 0 to 1")
    start = surface.weights
    norm = length(start)
    ladder = tuple(step * norm if relative or surface.slopes is not None else step for step in steps)
    lots: Iterable[Floats] = (
        _axes(len(start)) if one_at_a_time else [random_directions(n_directions(epsilon, delta), len(start), seed)]
    )
    n, done, found = 2 * len(start) if one_at_a_time else n_directions(epsilon, delta), 0, []
    for lot in lots:
        told = None if tick is None else partial(_tell, tick, done / n, len(lot) / n)
        found.append(values_along(surface, lot, queries, measure, conventions, ladder, told))
        done += len(lot)
    base, curves = found[0][0], np.vstack([values for _, values in found])
    near = np.array([0 < step <= norm * (1 + _ROUNDING) for step in ladder])
    rises, ties = curves[:, near] > base + EQUAL, np.abs(curves[:, near] - base) <= EQUAL
    rising = int(rises.any(axis=1).sum())
    tie_share = float(ties.mean()) if near.any() else 1.0
    why = ""
    if not near.any():
        why = f"every step is longer than the weights (‖w‖ = {norm:.3g})" if norm else "all weights are 0"
    elif not rising and tie_share > largest_tie_share:
        why = f"{tie_share:.1%} of the evaluations are ties, so finding no improvement proves little"
    return Certificate(
        verdict="inconclusive" if why else "not" if rising else "optimum",
        measure=measure.key,
        value=base,
        steps=tuple(steps),
        relative=relative,
        norm=1.0 if norm and surface.slopes is not None else norm,
        curves=curves,
        rising=rising,
        rising_or_tied=int((rises | ties).any(axis=1).sum()),
        tie_share=tie_share,
        upper_bound=upper_bound(rising, len(curves), delta),
        epsilon=epsilon,
        delta=delta,
        why=why,
        one_at_a_time=one_at_a_time,
    )


def _tell(tick: Callable[[float], object], before: float, own: float, share: float) -> None:
    """That so much of a part of the work is done."""
    tick(before + own * share)


def upper_bound(rising: int, n: int, delta: float) -> float:
    """One-sided Clopper–Pearson bound, at confidence 1 − δ, on a share of which `rising` of `n` draws were seen."""
    from scipy import stats

    return 1.0 if rising == n else float(stats.beta.ppf(1 - delta, rising + 1, n - rising))


def length(weights: Floats) -> float:
    """‖w‖."""
    return float(np.sqrt((weights * weights).sum()))


def normalised(surface: Surface, offsets: Ints) -> Surface:
    """The surface of a model that is linear in its weights at ‖w‖ = 1, where it ranks the queries as before; any other one as it is, and one that
    is there already: another division would move its weights by a rounding. Where that would part documents of equal scores, as sums of whole
    numbers often are, the weights are only divided by a power of two, which rounds nothing."""
    norm = length(surface.weights)
    if surface.slopes is None or norm == 0 or abs(norm - 1) <= _ROUNDING:
        return surface
    unit = surface.weights / norm
    before, after = surface.slopes(0, surface.n_documents, np.array([surface.weights, unit]))
    if not _rank_alike(before, after, offsets):
        unit = np.ldexp(surface.weights, -int(np.frexp(np.abs(surface.weights).max())[1]))
    return replace(surface, weights=unit)


def _rank_alike(scores: Floats, others: Floats, offsets: Ints) -> bool:
    """Whether two scores ``float64 [documents]`` rank and tie the documents of each query alike."""
    of_query = group_of_rows(offsets)
    order = np.lexsort((scores, of_query))
    within = np.diff(of_query[order]) == 0
    one, other = (np.sign(np.diff(own[order]))[within] for own in (scores, others))
    return np.array_equal(one, other)


def random_directions(n: int, n_weights: int, seed: int | Sequence[int]) -> Floats:
    """Unit vectors ``float64 [n, weights]``, uniform on the sphere."""
    directions = np.random.default_rng(seed).normal(size=(n, n_weights))
    lengths: Floats = np.sqrt((directions**2).sum(axis=1, keepdims=True))
    return directions / lengths


def _axes(n_weights: int) -> Iterator[Floats]:
    """Each weight alone, all up and then all down, ``float64 [some of them, weights]`` at a time: trees have ten thousands of leaves, and all
    ways to move one at once would take the square of that."""
    at_once = max(_AT_ONCE // max(n_weights, 1), 1)
    for first in range(0, 2 * n_weights, at_once):
        number = np.arange(first, min(first + at_once, 2 * n_weights))
        lot = np.zeros((len(number), n_weights))
        lot[np.arange(len(number)), number % n_weights] = np.where(number < n_weights, 1.0, -1.0)
        yield lot


def values_along(
    surface: Surface,
    directions: Floats,
    queries: Queries,
    measure: Measure,
    conventions: Conventions,
    steps: tuple[float, ...],
    tick: Callable[[float], object] | None = None,
) -> tuple[float, Floats]:
    """Mean of the measure at the weights, and at every step along every direction ``[directions, steps]``. `tick` hears of the share that is done.

    Means are summed over fixed blocks of queries in a fixed order, so they do not depend on threads.
    """
    judged = Judged.of(queries, measure, conventions)
    offsets, rows, counted, gains, factor = queries.offsets, judged.rows, judged.offsets, judged.gains, judged.factor
    in_order, reading = np.array_equal(rows, np.arange(queries.n_documents)), judged.reading
    climb = ready(_climb, types.void(*_CLIMB))
    ladder, here = np.array(steps, np.float64), np.zeros(1)
    at_once = _AT_ONCE // (len(directions) * (1 if surface.slopes is not None else len(steps)))
    base, total, defined = 0.0, np.zeros((len(directions), len(steps))), 0
    for first, last in pairwise(_cuts(offsets, at_once)):
        own = counted[first : last + 1]
        a, b = int(offsets[first]), int(offsets[last])
        here_rows = rows[own[0] : own[-1]] - a
        n_blocks = -(-(last - first) // _BLOCK)

        def summed(
            origin: Floats, slopes: Floats, ladder: Floats,
            own: Ints = own, here_rows: Ints = here_rows, n_blocks: int = n_blocks, factor: Floats = factor[first:last],
        ) -> tuple[Floats, int]:  # fmt: skip
            sums, counts = np.zeros((n_blocks, len(slopes) * len(ladder))), np.zeros(n_blocks, np.int64)
            if not in_order:
                origin, slopes = origin[here_rows], np.take(slopes, here_rows, axis=1)
            climb(origin, slopes, ladder, own, gains, reading, factor, sums, counts)
            return sums.sum(axis=0), int(counts.sum())

        # Of eight long queries all directions at once would be too many.
        together = max(len(directions) * at_once // (2 * (b - a)), 1) * 2
        lots = [directions[k : k + together] for k in range(0, len(directions), together)]
        if surface.slopes is not None:
            origin = surface.slopes(a, b, surface.weights[None])[0]
            moved = np.concatenate([summed(origin, surface.slopes(a, b, lot), ladder)[0] for lot in lots])
        else:
            assert surface.scores is not None
            origin = surface.scores(a, b, np.zeros((1, len(surface.weights))), here)[0, 0]
            at_steps = (surface.scores(a, b, lot, ladder).reshape(-1, b - a) for lot in lots)
            moved = np.concatenate([summed(np.zeros(b - a), scores, np.ones(1))[0] for scores in at_steps])
        unmoved, n = summed(origin, np.zeros((1, b - a)), here)
        base, total, defined = base + float(unmoved[0]), total + moved.reshape(total.shape), defined + n
        if tick is not None:
            tick(last / queries.n_queries)
    return float(judged.mean(np.array(base), defined)), judged.mean(total, defined)


def _cuts(offsets: Ints, at_once: int) -> list[int]:
    """Queries at which to cut so that about `at_once` documents are held at a time; all pieces but the last are whole blocks."""
    cuts = [0]
    while cuts[-1] < len(offsets) - 1:
        wanted = int(np.searchsorted(offsets, offsets[cuts[-1]] + at_once, side="right")) - 1 - cuts[-1]
        cuts.append(min(cuts[-1] + max(wanted // _BLOCK, 1) * _BLOCK, len(offsets) - 1))
    return cuts


_CLIMB = (F8_1D, F8_2D, F8_1D, I8_1D, F8_1D, READING, F8_1D, F8_2D, I8_1D)


@njit(cache=True, parallel=True)
def _climb(
    origin: Floats,
    slopes: Floats,
    ladder: Floats,
    offsets: Ints,
    gains: Floats,
    reading: Reading,
    factor: Floats,
    sums: Floats,
    counts: Ints,
) -> None:
    """Adds up, block by block, the value of each query, times its factor, at the scores ``origin + ladder[e] · slopes[k]``; where that is
    0 the value need not be defined, where it is NaN the query does not count.

    Ranks are counted on rounded scores. If no two are equal there, their sum is 0 + 1 + … + (n − 1), the order is that of the
    exact scores, and there are no ties; otherwise the exact scores are ranked.
    """
    n_queries, n_steps, start = len(offsets) - 1, len(ladder), offsets[0]
    for block in prange(len(counts)):
        for q in range(block * _BLOCK, min(block * _BLOCK + _BLOCK, n_queries)):
            a, b = offsets[q] - start, offsets[q + 1] - start
            n = b - a
            own_origin, own_gains = origin[a:b], gains[offsets[q] : offsets[q + 1]]
            scores, ranked, ends = np.empty(n), np.empty(n), np.arange(1, n + 1)
            rounded = lanes_for(n)
            ranks = np.empty(len(rounded), np.int32)
            defined = factor[q] == 0.0
            for k in range(0 if defined else slopes.shape[0]):
                slope = slopes[k, a:b]
                for e in range(n_steps):
                    step = ladder[e]
                    for d in range(np.uint64(n)):
                        scores[d] = own_origin[d] + step * slope[d]
                        rounded[d] = np.float32(scores[d])
                    total = -1
                    if n <= COUNTED:
                        count_above(rounded, ranks)
                        total = 0
                        for d in range(np.uint64(n)):
                            total += ranks[d]
                    if 2 * total == n * (n - 1):
                        for d in range(np.uint64(n)):
                            ranked[ranks[d]] = own_gains[d]
                        found = value_kernel(reading.value)(ranked, ends, reading.curve, reading.cutoff)
                    else:
                        found = value_at(scores, own_gains, reading)
                    if not np.isnan(factor[q] * found):
                        defined = True
                        sums[block, k * n_steps + e] += factor[q] * found
            counts[block] += defined
