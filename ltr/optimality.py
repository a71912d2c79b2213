"""The Monte-Carlo certificate of local optimality (Donmez 2009 section 5, Burges 2010 section 4.2).

Move the weights by η along random unit directions and watch the training measure. If at least a share ε of directions rose,
K = ⌈ln δ / ln(1 − ε)⌉ of them would show one with confidence 1 − δ; so K directions without a rise reject that. Unlike the paper,
a direction rises only if the measure is *strictly* higher at a step, and the verdict is withheld where too many evaluations
tie: with large weights and small steps no order changes, nothing can rise, and a bare test passes without saying anything.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit, prange, types
from numpy.typing import NDArray
from scipy import stats

from ltr.jit import F4_2D, F8_1D, F8_2D, I8, I8_1D, ready
from ltr.measures import VALUE, Conventions, Measure, curve_of, gains_of
from ltr.nets import Weights
from ltr.queries import Queries
from ltr.ranking import by_score

COARSE = tuple(round(0.1 * k, 1) for k in range(1, 11))
FINE = tuple(round(0.001 * k, 3) for k in range(1, 11))
_BLOCK = 16
_DIRECTIONS_AT_ONCE = 64

Verdict = Literal["optimum", "not", "inconclusive"]


def n_directions(epsilon: float = 0.01, delta: float = 0.01) -> int:
    """K = ⌈ln δ / ln(1 − ε)⌉; 459 for ε = δ = 0.01."""
    if not (0 < epsilon < 1 and 0 < delta < 1):
        raise ValueError(f"epsilon {epsilon} and delta {delta} must lie in (0, 1)")
    return int(np.ceil(np.log(delta) / np.log1p(-epsilon)))


@dataclass(frozen=True)
class Certificate:
    """What was found around one set of weights.

    Attributes:
        verdict: ``optimum`` (no direction rises), ``not`` (some do) or ``inconclusive`` (too many evaluations tie).
        measure: key of the measure.
        value: its mean at the weights.
        steps: η ``[steps]``; `norm`: ‖w‖, so η/‖w‖ is the relative step.
        curves: mean of the measure ``float64 [directions, steps]``.
        rising: directions with a strictly higher value at some step.
        rising_or_tied: D's own count, where a tie is a rise.
        tie_share: share of evaluations equal to `value`.
        upper_bound: one-sided Clopper–Pearson bound, at confidence 1 − δ, on the share of rising directions.
        epsilon, delta: of the test.
    """

    verdict: Verdict
    measure: str
    value: float
    steps: tuple[float, ...]
    norm: float
    curves: NDArray[np.float64]
    rising: int
    rising_or_tied: int
    tie_share: float
    upper_bound: float
    epsilon: float
    delta: float


def certify(
    weights: Weights,
    features: NDArray[np.float32],
    queries: Queries,
    measure: str | Measure = "ndcg_10",
    conventions: Conventions | None = None,
    steps: tuple[float, ...] = COARSE,
    epsilon: float = 0.01,
    delta: float = 0.01,
    largest_tie_share: float = 0.05,
    seed: int = 1,
    one_at_a_time: bool = False,
) -> Certificate:
    """Tests the weights of a net on its training queries.

    Args:
        weights: of a linear or two-layer net.
        features: ``float32 [documents, features]`` as the net sees them (standardised).
        queries: the training queries, rows as in `features`.
        measure, conventions: what is watched.
        steps: the ladder of η.
        epsilon, delta: see the module.
        largest_tie_share: above this share of ties the verdict is ``inconclusive``.
        seed: of the directions.
        one_at_a_time: move each weight alone, up and down, instead of random directions: the gradient vanishes (B section 4.2).

    Raises:
        ValueError: for rows that do not fit, or a measure that no query defines.
    """
    measure, conventions = Measure.maximised(measure), conventions or Conventions()
    if len(features) != queries.n_documents:
        raise ValueError(f"{len(features)} rows of features for {queries.n_documents} documents")
    start = weights.flat
    axes = np.eye(len(start))
    directions = np.vstack((axes, -axes)) if one_at_a_time else random_directions(n_directions(epsilon, delta), len(start), seed)
    base, curves = _walk(weights, directions, features, queries, measure, conventions, steps)
    rises, ties = curves > base, curves == base
    rising = int(rises.any(axis=1).sum())
    tie_share = float(ties.mean())
    verdict: Verdict = "not" if rising else "inconclusive" if tie_share > largest_tie_share else "optimum"
    bound = 1.0 if rising == len(directions) else float(stats.beta.ppf(1 - delta, rising + 1, len(directions) - rising))
    return Certificate(
        verdict=verdict,
        measure=measure.key,
        value=base,
        steps=tuple(steps),
        norm=float(np.sqrt((start * start).sum())),
        curves=curves,
        rising=rising,
        rising_or_tied=int((rises | ties).any(axis=1).sum()),
        tie_share=tie_share,
        upper_bound=bound,
        epsilon=epsilon,
        delta=delta,
    )


def random_directions(n: int, n_weights: int, seed: int) -> NDArray[np.float64]:
    """Unit vectors ``float64 [n, weights]``, uniform on the sphere."""
    directions = np.random.default_rng(seed).normal(size=(n, n_weights))
    return directions / np.sqrt((directions**2).sum(axis=1, keepdims=True))


def _walk(
    weights: Weights,
    directions: NDArray[np.float64],
    features: NDArray[np.float32],
    queries: Queries,
    measure: Measure,
    conventions: Conventions,
    steps: tuple[float, ...],
) -> tuple[float, NDArray[np.float64]]:
    """Mean of the measure at the weights, and at every step along every direction ``[directions, steps]``.

    Means are summed over fixed blocks of queries in a fixed order, so they do not depend on threads; and at unchanged ranking
    they are equal to the bit, which is what a tie means here.
    """
    gains = gains_of(measure, queries.source(measure.source), conventions)
    curve, cutoff = curve_of(measure, max(int(np.diff(queries.offsets).max(initial=0)), 1), conventions)
    value = ready(measure.kind.value, VALUE)
    n_blocks = -(-queries.n_queries // _BLOCK)
    ladder = np.array((0.0, *steps))
    pointer = types.FunctionType(VALUE)
    result = np.empty((len(directions), len(ladder)))
    for first in range(0, len(directions), _DIRECTIONS_AT_ONCE):
        chunk = directions[first : first + _DIRECTIONS_AT_ONCE]
        sums = np.zeros((n_blocks, len(chunk) * len(ladder)))
        counts = np.zeros(n_blocks, np.int64)
        if weights.hidden == 0:
            start, slopes = weights.inner[0], np.ascontiguousarray(chunk.T)
            kernel = ready(_walk_linear, types.void(F4_2D, I8_1D, F8_1D, F8_1D, I8, pointer, F8_1D, F8_1D, F8_2D, F8_2D, I8_1D))
            kernel(features, queries.offsets, gains, curve, cutoff, value, ladder, start, slopes, sums, counts)
        else:
            moved = [weights.moved(chunk_row) for chunk_row in chunk]
            inner = np.ascontiguousarray(np.concatenate([m.inner for m in moved]).T)
            bias, outer = np.array([m.bias for m in moved]), np.array([m.outer for m in moved])
            own = np.ascontiguousarray(weights.inner.T), weights.bias, weights.outer
            kernel = ready(
                _walk_two_layers,
                types.void(F4_2D, I8_1D, F8_1D, F8_1D, I8, pointer, F8_1D, F8_2D, F8_1D, F8_1D, F8_2D, F8_2D, F8_2D, F8_2D, I8_1D),
            )
            kernel(features, queries.offsets, gains, curve, cutoff, value, ladder, *own, inner, bias, outer, sums, counts)
        if counts.sum() == 0:
            raise ValueError(f"{measure.key} is undefined on every query: no relevant document anywhere")
        result[first : first + len(chunk)] = (sums.sum(axis=0) / counts.sum()).reshape(len(chunk), len(ladder))
    return float(result[0, 0]), result[:, 1:]


@njit(cache=True)
def _value_at(scores, gains, curve, cutoff, value):
    """The measure with ties in expectation."""
    n = len(scores)
    order = by_score(scores)
    ends = np.empty(n, np.int64)
    groups = 0
    for k in range(n):
        if k + 1 == n or scores[order[k + 1]] != scores[order[k]]:
            ends[groups] = k + 1
            groups += 1
    return value(gains[order], ends[:groups], curve, cutoff)


@njit(cache=True)
def _products(features, weights, out):
    """out[d] = features[d] @ weights for ``weights [features, columns]``, added up feature by feature: one order everywhere."""
    out[:] = 0.0
    for d in range(features.shape[0]):
        for f in range(features.shape[1]):
            x = np.float64(features[d, f])
            for c in range(weights.shape[1]):
                out[d, c] += x * weights[f, c]


@njit(cache=True, parallel=True)
def _walk_linear(features, offsets, gains, curve, cutoff, value, ladder, start, slopes, sums, counts):
    n_queries, n_steps = len(offsets) - 1, len(ladder)
    for block in prange(len(counts)):
        for q in range(block * _BLOCK, min(block * _BLOCK + _BLOCK, n_queries)):
            a, b = offsets[q], offsets[q + 1]
            origin, slope = np.empty((b - a, 1)), np.empty((b - a, slopes.shape[1]))
            _products(features[a:b], start.reshape(-1, 1), origin)
            _products(features[a:b], slopes, slope)
            defined = False
            for k in range(slopes.shape[1]):
                for e in range(n_steps):
                    found = _value_at(origin[:, 0] + ladder[e] * slope[:, k], gains[a:b], curve, cutoff, value)
                    if not np.isnan(found):
                        defined = True
                        sums[block, k * n_steps + e] += found
            counts[block] += defined


@njit(cache=True, parallel=True)
def _walk_two_layers(
    features, offsets, gains, curve, cutoff, value, ladder, own_inner, own_bias, own_outer, inner, bias, outer, sums, counts
):
    n_queries, n_steps, n_units = len(offsets) - 1, len(ladder), len(own_outer)
    for block in prange(len(counts)):
        for q in range(block * _BLOCK, min(block * _BLOCK + _BLOCK, n_queries)):
            a, b = offsets[q], offsets[q + 1]
            origin, slope = np.empty((b - a, n_units)), np.empty((b - a, inner.shape[1]))
            _products(features[a:b], own_inner, origin)
            _products(features[a:b], inner, slope)
            defined = False
            scores = np.empty(b - a)
            for k in range(len(bias)):
                for e in range(n_steps):
                    step = ladder[e]
                    for d in range(b - a):
                        total = 0.0
                        for h in range(n_units):
                            dot = origin[d, h] + own_bias[h] + step * (slope[d, k * n_units + h] + bias[k, h])
                            total += (own_outer[h] + step * outer[k, h]) * np.tanh(dot)
                        scores[d] = total
                    found = _value_at(scores, gains[a:b], curve, cutoff, value)
                    if not np.isnan(found):
                        defined = True
                        sums[block, k * n_steps + e] += found
            counts[block] += defined
