"""A net of one layer (linear) or two (tanh units): weights, scores, and steps along gradients (Burges 2010 section 4).

Compiled loops over documents; dot products run in vector lanes, added up in one order on every processor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numba import njit, prange

from ltr.kernels.exponential import tanh
from ltr.kernels.kernel import Address, Array, Bools, Floats, Floats32, Ints
from ltr.kernels.vectors import LANES, everywhere, fused, load, load_some, totals
from ltr.objectives.seam import gradients_kernel
from ltr.rankers.surface import TILE, Surface, combine, linear_surface, turn_documents

BLOCK = 256
"""Documents that are taken at once where all are."""
GROUPS = 64
"""Of blocks, each summed by itself: more than threads, and the same for any number of them."""


@dataclass(frozen=True)
class Weights:
    """Weights of a net. Linear: ``inner [1, features]``, ``outer [1] = 1`` fixed, no bias. Two layers with H units: ``inner [H,
    features]``, ``bias [H]``, ``outer [H]``; score = Σ_h outer_h · tanh(inner_h · x + bias_h)."""

    inner: Floats
    bias: Floats
    outer: Floats
    hidden: int

    @property
    def flat(self) -> Floats:
        """All free weights as one vector."""
        return self.inner.ravel().copy() if self.hidden == 0 else np.concatenate((self.inner.ravel(), self.bias, self.outer))

    def moved(self, flat: Floats) -> "Weights":
        """A net of this shape with the weights `flat`."""
        if self.hidden == 0:
            return replace(self, inner=flat.reshape(1, -1).copy())
        cut = self.inner.size
        inner, bias, outer = flat[:cut], flat[cut : cut + self.hidden], flat[cut + self.hidden :]
        return replace(self, inner=inner.reshape(self.hidden, -1).copy(), bias=bias.copy(), outer=outer.copy())

    @property
    def arrays(self) -> dict[str, Array]:
        """All but the number of hidden units, by name."""
        return {"inner": self.inner, "bias": self.bias, "outer": self.outer}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], hidden: int) -> "Weights":
        """The weights of these `arrays`, for a net with this number of hidden units.

        Raises:
            ValueError: for arrays of other shapes or types, or weights that are not finite.
        """
        inner, bias, outer = (arrays[name] for name in ("inner", "bias", "outer"))
        units = max(hidden, 1)
        if inner.shape[:-1] != (units,) or outer.shape != (units,) or bias.shape != (units,):
            raise ValueError(f"weights of shapes {inner.shape}, {bias.shape} and {outer.shape} for {hidden} hidden units")
        if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in (inner, bias, outer)):
            raise ValueError("weights that are not all finite numbers of float64")
        return cls(inner, bias, outer, hidden)

    def scores(self, features: Floats32) -> Floats:
        """Scores ``float64 [documents]`` of standardised features."""
        scores, units = np.empty(len(features)), np.empty((max(self.hidden, 1), len(features)))
        forward_all(features, self.inner, self.bias, self.outer, self.hidden > 0, units, scores)
        return scores


def random_weights(n_features: int, hidden: int, rng: np.random.Generator, size: float = 0.1) -> Weights:
    """Gaussian weights whose scores have a spread of about `size` on standardised features."""
    inner = rng.normal(0.0, 1.0 / np.sqrt(n_features), (max(hidden, 1), n_features))
    if hidden == 0:
        return Weights(size * inner, np.zeros(1), np.ones(1), 0)
    return Weights(inner, np.zeros(hidden), rng.normal(0.0, size / np.sqrt(hidden), hidden), hidden)


@njit(cache=True)
def _dots(features: Floats32, inner: Floats32, bias: Floats, out: Floats) -> None:
    """out[h, d] = inner[h] · features[d] + bias[h] in float32, four documents at a time. Where fewer are left the last one fills their places:
    every document's products are added in one order, so that equal documents have equal scores wherever they stand, on every processor."""
    n, n_features = features.shape
    whole = n_features // LANES * LANES
    rest = n_features - whole
    x, weights = features.reshape(-1), inner.reshape(-1)
    for h in range(len(bias)):
        for d in range(0, n, 4):
            d1, d2, d3 = min(d + 1, n - 1), min(d + 2, n - 1), min(d + 3, n - 1)
            own, row, row1, row2, row3 = h * n_features, d * n_features, d1 * n_features, d2 * n_features, d3 * n_features
            a = b = c = e = everywhere(np.float32(0))
            for f in range(0, whole, LANES):
                w = load(weights, own + f)
                a, b = fused(w, load(x, row + f), a), fused(w, load(x, row1 + f), b)
                c, e = fused(w, load(x, row2 + f), c), fused(w, load(x, row3 + f), e)
            if rest > 0:
                w = load_some(weights, own + whole, rest)
                a, b = fused(w, load_some(x, row + whole, rest), a), fused(w, load_some(x, row1 + whole, rest), b)
                c, e = fused(w, load_some(x, row2 + whole, rest), c), fused(w, load_some(x, row3 + whole, rest), e)
            a_total, b_total, c_total, e_total = totals(a, b, c, e)
            out[h, d], out[h, d1], out[h, d2], out[h, d3] = (
                a_total + bias[h],
                b_total + bias[h],
                c_total + bias[h],
                e_total + bias[h],
            )


@njit(cache=True)
def _forward(
    features: Floats32, inner: Floats32, bias: Floats, outer: Floats, two_layers: bool, units: Floats, scores: Floats
) -> None:
    """Scores, and the units ``[units, documents]`` that `_backward` reads."""
    _dots(features, inner, bias, units)
    scores[:] = 0.0
    for h in range(len(outer)):
        for d in range(np.uint64(len(scores))):
            if two_layers:
                units[h, d] = tanh(units[h, d])
            scores[d] += outer[h] * units[h, d]


@njit(cache=True, parallel=True)
def forward_all(
    features: Floats32, inner: Floats, bias: Floats, outer: Floats, two_layers: bool, units: Floats, scores: Floats
) -> None:
    """Scores ``float64 [documents]``, and units ``[units, documents]`` for `backward_all`; dot products in float32."""
    narrow = inner.astype(np.float32)
    for block in prange((len(features) + BLOCK - 1) // BLOCK):
        a, b = block * BLOCK, min(block * BLOCK + BLOCK, len(features))
        own = np.empty((len(outer), b - a))
        _forward(features[a:b], narrow, bias, outer, two_layers, own, scores[a:b])
        units[:, a:b] = own


@njit(cache=True, fastmath={"contract"})
def _backward(
    features: Floats32,
    gradient: Floats,
    factors: Floats,
    two_layers: bool,
    units: Floats,
    rate: float,
    inner: Floats,
    bias: Floats,
    outer: Floats,
) -> None:
    """Moves the weights by rate · Σ_d gradient_d · ∂score_d/∂weight, summed in float32 over the documents and added in float64; `factors` are
    the outer weights of the scores."""
    n, n_features = features.shape
    slopes, step = np.zeros(n + 3, np.float32), np.empty(n_features, np.float32)
    for h in range(len(outer)):
        step_bias, step_outer, factor = 0.0, 0.0, factors[h]
        for d in range(n):
            unit = units[h, d]
            slope = gradient[d] * factor * (1.0 - unit * unit) if two_layers else gradient[d]
            slopes[d] = slope
            step_bias += slope
            step_outer += gradient[d] * unit
        step[:] = np.float32(0)
        for d in range(0, n - 3, 4):
            x0, x1, x2, x3 = features[d], features[d + 1], features[d + 2], features[d + 3]
            p0, p1, p2, p3 = slopes[d], slopes[d + 1], slopes[d + 2], slopes[d + 3]
            for f in range(np.uint64(n_features)):
                step[f] += p0 * x0[f] + p1 * x1[f] + p2 * x2[f] + p3 * x3[f]
        for d in range(n - n % 4, n):
            x0, p0 = features[d], slopes[d]
            for f in range(np.uint64(n_features)):
                step[f] += p0 * x0[f]
        for f in range(np.uint64(n_features)):
            inner[h, f] += rate * step[f]
        if two_layers:
            bias[h] += rate * step_bias
            outer[h] += rate * step_outer


@njit(cache=True, parallel=True)
def backward_all(
    features: Floats32, gradient: Floats, inner: Floats, bias: Floats, outer: Floats, two_layers: bool, units: Floats, rate: float
) -> None:
    """`_backward` of all documents: blocks that stay in the cache for all units, sums over fixed groups of blocks in a fixed order."""
    n_blocks = (len(features) + BLOCK - 1) // BLOCK
    n_groups, (n_units, n_features) = min(n_blocks, GROUPS), inner.shape
    of_inner, of_bias, of_outer = (
        np.zeros((n_groups, n_units, n_features)),
        np.zeros((n_groups, n_units)),
        np.zeros((n_groups, n_units)),
    )
    for group in prange(n_groups):
        for block in range(group * n_blocks // n_groups, (group + 1) * n_blocks // n_groups):
            a, b = block * BLOCK, min(block * BLOCK + BLOCK, len(features))
            own = units[:, a:b].copy()
            _backward(features[a:b], gradient[a:b], outer, two_layers, own, rate, of_inner[group], of_bias[group], of_outer[group])
    for group in range(n_groups):
        inner += of_inner[group]
        bias += of_bias[group]
        outer += of_outer[group]


@njit(cache=True)
def epoch_by_query(
    features: Floats32,
    offsets: Ints,
    visits: Ints,
    plan: object,
    gradients: Address,
    inner: Floats,
    bias: Floats,
    outer: Floats,
    two_layers: bool,
    rate: float,
) -> None:
    """One pass over the queries in the order `visits`, with an update after each; `plan` is what the kernel at `gradients` reads."""
    for q in visits:
        first, last = offsets[q], offsets[q + 1]
        documents = features[first:last]
        units, scores = np.empty((len(outer), last - first)), np.empty(last - first)
        gradient, hessian = np.empty(last - first), np.empty(last - first)
        _forward(documents, inner.astype(np.float32), bias, outer, two_layers, units, scores)
        gradients_kernel(gradients, plan)(q, scores, plan, gradient, hessian)
        _backward(documents, gradient, outer, two_layers, units, rate, inner, bias, outer)


@njit(cache=True, parallel=True)
def _two_layer_scores(
    features: Floats32,
    first: int,
    inner: Floats,
    bias: Floats,
    outer: Floats,
    to_inner: Floats,
    to_bias: Floats,
    to_outer: Floats,
    turning: Bools,
    steps: Floats,
    out: Floats,
) -> None:
    """out[k, e, d] = score of document first + d at weights moved by steps[e] along direction k. Units' dot products are linear in
    the step: they are added up once for all steps. What units give that a direction does not turn (`turning` false), all but one where one
    weight moves, is computed once for all."""
    n_units, n_directions = len(outer), len(to_outer)
    for tile in prange((out.shape[2] + TILE - 1) // TILE):
        a, b = tile * TILE, min(tile * TILE + TILE, out.shape[2])
        columns = np.zeros((features.shape[1] + 3, b - a))
        turn_documents(features, first + a, first + b, columns)
        origin, slope, total = np.empty((n_units + 1, b - a)), np.empty((n_units + 1, b - a)), np.empty(b - a)
        combine(columns, inner, origin)
        still = np.empty((n_units, b - a))
        for h in range(n_units):
            for d in range(b - a):
                still[h, d] = tanh(origin[h, d] + bias[h])
        for k in range(n_directions):
            for h in range(0, n_units, 2):  # two at a time, as `combine` takes them
                if turning[k, h] or (h + 1 < n_units and turning[k, h + 1]):
                    combine(columns, to_inner[k, h : h + 2], slope[h : h + 2])
            for e in range(len(steps)):
                step = steps[e]
                total[:] = 0.0
                for h in range(n_units):
                    shift, factor = bias[h] + step * to_bias[k, h], outer[h] + step * to_outer[k, h]
                    here, along, given = origin[h], slope[h], still[h]
                    if turning[k, h]:
                        for d in range(np.uint64(b - a)):
                            total[d] += factor * tanh(here[d] + step * along[d] + shift)
                    else:
                        for d in range(np.uint64(b - a)):
                            total[d] += factor * given[d]
                out[k, e, a:b] = total


def surface_of(weights: Weights, features: Floats32) -> Surface:
    """The surface of a net over standardised features ``float32 [documents, features]``."""
    if weights.hidden == 0:
        return linear_surface(weights.flat, features)

    def scores(first: int, last: int, directions: Floats, steps: Floats) -> Floats:
        moves = [weights.moved(direction) for direction in directions]
        out = np.empty((len(moves), len(steps), last - first))
        inner, bias, outer = (np.array([getattr(move, part) for move in moves]) for part in ("inner", "bias", "outer"))
        turning = inner.any(axis=2) | (bias != 0)
        _two_layer_scores(features, first, weights.inner, weights.bias, weights.outer, inner, bias, outer, turning, steps, out)
        return out

    return Surface(weights.flat, len(features), scores=scores)
