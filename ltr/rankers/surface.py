"""A model's scores over one data set as a function of its weights, which the certificate of local optimality explores."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numba import njit, prange

from ltr.data.brief import Brief
from ltr.kernels.kernel import Floats, Floats32


@dataclass(frozen=True)
class Surface(Brief):
    """The scores of a model over one data set as a function of its weights. Every model that can be certified has one,
    ``model.surface(features)``; it gives either `slopes` or `scores`.

    Attributes:
        weights: ``float64 [weights]``, those of the model.
        n_documents: of the data set.
        slopes: of a model that is linear in its weights, ``slopes(first, last, points)``: scores ``float64 [points, last − first]`` of the
            documents from `first` to `last` for weights ``points float64 [points, weights]``.
        scores: of another model, ``scores(first, last, directions, steps)``: ``float64 [directions, steps, last − first]`` at the
            weights moved by ``steps[e] · directions[k]``.
    """

    weights: Floats
    n_documents: int
    slopes: Callable[[int, int, Floats], Floats] | None = field(default=None, repr=False)
    scores: Callable[[int, int, Floats, Floats], Floats] | None = field(default=None, repr=False)


TILE = 128
"""Documents at a time whose features, as transposed float64, fit into the processor's second-level cache."""


@njit(cache=True)
def turn_documents(features: Floats32, first: int, last: int, columns: Floats) -> None:
    """Writes transposed features into ``columns float64 [features + 3, last − first]``; the last three rows are to be zeros, so that `combine`
    can take four at a time."""
    for d in range(last - first):
        for f in range(features.shape[1]):
            columns[f, d] = features[first + d, f]


@njit(cache=True, fastmath={"contract"})
def combine(columns: Floats, points: Floats, out: Floats) -> None:
    """out[k] = Σ_f points[k, f] · columns[f], with columns from `turn_documents`: two points and four features at a time, always in one order.
    `out` needs an extra row where the number of points is odd."""
    n_points, n_features = points.shape
    padded = np.zeros((n_points + 1, n_features + 3))
    for k in range(n_points):  # numba takes seconds to compile what an array is assigned to, for its error of unequal shapes
        for f in range(n_features):
            padded[k, f] = points[k, f]
    for k in range(0, n_points, 2):
        one, two = out[k], out[k + 1]
        one[:] = 0.0
        two[:] = 0.0
        for f in range(0, n_features, 4):
            a, b, c, d = columns[f], columns[f + 1], columns[f + 2], columns[f + 3]
            p0, p1, p2, p3 = padded[k, f], padded[k, f + 1], padded[k, f + 2], padded[k, f + 3]
            q0, q1, q2, q3 = padded[k + 1, f], padded[k + 1, f + 1], padded[k + 1, f + 2], padded[k + 1, f + 3]
            for i in range(np.uint64(out.shape[1])):
                one[i] += p0 * a[i] + p1 * b[i] + p2 * c[i] + p3 * d[i]
                two[i] += q0 * a[i] + q1 * b[i] + q2 * c[i] + q3 * d[i]


@njit(cache=True, parallel=True)
def _linear_slopes(features: Floats32, first: int, points: Floats, out: Floats) -> None:
    for tile in prange((out.shape[1] + TILE - 1) // TILE):
        a, b = tile * TILE, min(tile * TILE + TILE, out.shape[1])
        part = np.empty((len(points) + 1, b - a))
        columns = np.zeros((features.shape[1] + 3, b - a))
        turn_documents(features, first + a, first + b, columns)
        combine(columns, points, part)
        for k in range(len(points)):
            for i in range(b - a):
                out[k, a + i] = part[k, i]


def linear_surface(weights: Floats, features: Floats32) -> Surface:
    """The surface of a linear model: ``weights float64 [features]`` over ``features float32 [documents, features]``."""

    def slopes(first: int, last: int, points: Floats) -> Floats:
        out = np.empty((len(points), last - first))
        _linear_slopes(features, first, np.ascontiguousarray(points), out)
        return out

    return Surface(weights, len(features), slopes=slopes)
