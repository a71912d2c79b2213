"""LambdaRank nets: one layer (linear) or two (tanh units), moved along forces (Burges 2010 section 4; Donmez 2009).

A net's scores of one query's documents get forces from the objective; the weights move by rate · Σ force · ∂score/∂weight,
after every query or once an epoch. The training recipe is Donmez 2009 section 7: the weights returned are those of the best
epoch on validation over all restarts; a restart with new random weights where validation was flat for some epochs; where
training accuracy falls, the rate shrinks with a probability.

Features are standardised by the training data (a missing value becomes the mean), which the model carries with it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numba import njit, prange, types
from numpy.typing import NDArray

from ltr.exponential import tanh
from ltr.jit import F4_2D, F8, F8_1D, F8_2D, I8_1D, ready
from ltr.lambdas import NORMALISE, Objective, Term, forces_signature, plan_type
from ltr.measures import Conventions, Measure
from ltr.models import checked_features, digest_of
from ltr.optimality import Surface, combine, linear_surface, turned
from ltr.queries import Queries, canonical
from ltr.training import Curve, mean_measure, written_objective

_SUMS = {"reassoc", "nsz", "contract"}
"""Lets a dot product run in vector lanes; NaN and infinity keep their meaning. One machine always adds in one order."""


@dataclass(frozen=True)
class Weights:
    """Weights of a net. Linear: ``inner [1, features]``, ``outer [1] = 1`` fixed, no bias. Two layers with H units: ``inner [H,
    features]``, ``bias [H]``, ``outer [H]``; score = Σ_h outer_h · tanh(inner_h · x + bias_h)."""

    inner: NDArray[np.float64]
    bias: NDArray[np.float64]
    outer: NDArray[np.float64]
    hidden: int

    @property
    def flat(self) -> NDArray[np.float64]:
        """All free weights as one vector."""
        return self.inner.ravel().copy() if self.hidden == 0 else np.concatenate((self.inner.ravel(), self.bias, self.outer))

    def moved(self, flat: NDArray[np.float64]) -> "Weights":
        """A net of this shape with the weights `flat`."""
        if self.hidden == 0:
            return replace(self, inner=flat.reshape(1, -1).copy())
        cut = self.inner.size
        inner, bias, outer = flat[:cut], flat[cut : cut + self.hidden], flat[cut + self.hidden :]
        return replace(self, inner=inner.reshape(self.hidden, -1).copy(), bias=bias.copy(), outer=outer.copy())

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Scores ``float64 [documents]`` of standardised features."""
        scores, units = np.empty(len(features)), np.empty((len(features), max(self.hidden, 1)))
        _forward_all(features, self.inner, self.bias, self.outer, self.hidden > 0, units, scores)
        return scores


def random_weights(n_features: int, hidden: int, rng: np.random.Generator, size: float = 0.1) -> Weights:
    """Gaussian weights whose scores have a spread of about `size` on standardised features."""
    inner = rng.normal(0.0, 1.0 / np.sqrt(n_features), (max(hidden, 1), n_features))
    if hidden == 0:
        return Weights(size * inner, np.zeros(1), np.ones(1), 0)
    return Weights(inner, np.zeros(hidden), rng.normal(0.0, size / np.sqrt(hidden), hidden), hidden)


@njit(cache=True, fastmath=_SUMS)
def _forward(features, inner, bias, outer, two_layers, units, scores):
    for d in range(len(features)):
        total = 0.0
        for h in range(len(outer)):
            dot = bias[h]
            for f in range(features.shape[1]):
                dot += inner[h, f] * features[d, f]
            units[d, h] = tanh(dot) if two_layers else dot
            total += outer[h] * units[d, h]
        scores[d] = total


@njit(cache=True, parallel=True)
def _forward_all(features, inner, bias, outer, two_layers, units, scores):
    for block in prange((len(features) + 255) // 256):
        a, b = block * 256, min(block * 256 + 256, len(features))
        _forward(features[a:b], inner, bias, outer, two_layers, units[a:b], scores[a:b])


@njit(cache=True, fastmath=_SUMS)
def _backward(features, force, inner, bias, outer, two_layers, units, rate):
    """Weights move by rate · Σ_d force_d · ∂score_d/∂weight."""
    n_units = len(outer)
    step_outer = np.zeros(n_units)
    pull = np.empty((len(features), n_units))
    for d in range(len(features)):
        for h in range(n_units):
            if two_layers:
                step_outer[h] += force[d] * units[d, h]
                pull[d, h] = rate * force[d] * outer[h] * (1.0 - units[d, h] * units[d, h])
            else:
                pull[d, h] = rate * force[d]
    for h in range(n_units):
        for d in range(len(features)):
            step = pull[d, h]
            if step != 0.0:
                for f in range(features.shape[1]):
                    inner[h, f] += step * features[d, f]
                if two_layers:
                    bias[h] += step
    if two_layers:
        for h in range(n_units):
            outer[h] += rate * step_outer[h]


@njit(cache=True)
def _epoch(features, offsets, visits, plan, forces, inner, bias, outer, two_layers, rate):
    """One pass over the queries in the order `visits`, an update after each."""
    for q in visits:
        first, last = offsets[q], offsets[q + 1]
        documents = features[first:last]
        units, scores = np.empty((last - first, len(outer))), np.empty(last - first)
        force, curvature = np.empty(last - first), np.empty(last - first)
        _forward(documents, inner, bias, outer, two_layers, units, scores)
        forces(q, scores, plan, force, curvature)
        _backward(documents, force, inner, bias, outer, two_layers, units, rate)


@njit(cache=True, parallel=True)
def _two_layer_scores(features, first, inner, bias, outer, to_inner, to_bias, to_outer, steps, out):
    """out[k, e, d] = score of document first + d at weights moved by steps[e] along direction k. Units' dot products are linear in
    the step: they are added up once for all steps."""
    n_units, n_directions = len(outer), len(to_outer)
    for tile in prange((out.shape[2] + _TILE - 1) // _TILE):
        a, b = tile * _TILE, min(tile * _TILE + _TILE, out.shape[2])
        columns = turned(features, first + a, first + b)
        origin, slope, total = np.empty((n_units + 1, b - a)), np.empty((n_units + 1, b - a)), np.empty(b - a)
        combine(columns, inner, origin)
        for k in range(n_directions):
            combine(columns, to_inner[k], slope)
            for e in range(len(steps)):
                step = steps[e]
                total[:] = 0.0
                for h in range(n_units):
                    shift, factor = bias[h] + step * to_bias[k, h], outer[h] + step * to_outer[k, h]
                    here, along = origin[h], slope[h]
                    for d in range(np.uint64(b - a)):
                        total[d] += factor * tanh(here[d] + step * along[d] + shift)
                out[k, e, a:b] = total


_TILE = 128


def surface_of(weights: Weights, features: NDArray[np.float32]) -> Surface:
    """Of a net over standardised features."""
    if weights.hidden == 0:
        return linear_surface(weights.flat, features)

    def scores(first: int, last: int, directions: NDArray[np.float64], steps: NDArray[np.float64]) -> NDArray[np.float64]:
        moves = [weights.moved(direction) for direction in directions]
        out = np.empty((len(moves), len(steps), last - first))
        inner, bias, outer = (np.array([getattr(move, part) for move in moves]) for part in ("inner", "bias", "outer"))
        _two_layer_scores(features, first, weights.inner, weights.bias, weights.outer, inner, bias, outer, steps, out)
        return out

    return Surface(weights.flat, len(features), scores=scores)


@dataclass(frozen=True)
class LambdaRank:
    """A LambdaRank net.

    Args:
        hidden: 0 for the linear net, otherwise the number of tanh units.
        epochs: passes over the training queries (D section 7: 700); 0 leaves the random weights it starts from.
        learning_rate: first rate.
        update: after every ``query``, or ``full`` batch (the sum over all queries).
        flat_epochs: restart with new random weights after so many epochs without a better validation value; 0: never.
        shrink, shrink_probability: where training accuracy falls, rate × shrink with this probability (D: 0.8, 30 %).
        objective, sigma, normalise, conventions: see `Objective`.
        stop_on: the measure that "best", "flat" and "falls" speak of.
        keep: the best epoch on ``valid`` (when there are validation queries), or on ``train``, which is the place to look for
            a local optimum.
        seed: of weights, visiting order and shrinking.
    """

    kind: ClassVar[str] = "lambdarank"
    hidden: int = 0
    epochs: int = 100
    learning_rate: float = 0.001
    update: Literal["query", "full"] = "query"
    flat_epochs: int = 50
    shrink: float = 0.8
    shrink_probability: float = 0.3
    objective: Sequence[Term] = (Term(),)
    sigma: float = 1.0
    normalise: Literal["none", "query", "term"] = "none"
    conventions: Conventions = Conventions()
    stop_on: str = "ndcg_10"
    keep: Literal["valid", "train"] = "valid"
    seed: int = 1
    weights: Weights | None = field(default=None, repr=False)
    scaling: NDArray[np.float64] | None = field(default=None, repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)
    curve: Curve | None = field(default=None, repr=False, compare=False)
    remarks: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        rules = {
            "hidden": self.hidden >= 0,
            "epochs": self.epochs >= 0,
            "learning_rate": self.learning_rate > 0,
            "update": self.update in ("query", "full"),
            "keep": self.keep in ("valid", "train"),
            "flat_epochs": self.flat_epochs >= 0,
            "shrink": 0 < self.shrink <= 1,
            "sigma": self.sigma > 0,
            "normalise": self.normalise in NORMALISE,
            "seed": self.seed >= 0,
            "shrink_probability": 0 <= self.shrink_probability <= 1,
        }
        Measure.maximised(self.stop_on)
        for name, holds in rules.items():
            if not holds:
                raise ValueError(f"LambdaRank: {name}={getattr(self, name)!r} is out of range")

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Callable[[], None] | None = None) -> "LambdaRank":
        """A fitted copy of this model. Without validation queries, training ones decide which epoch is best. `tick` is called
        after every epoch; what it raises ends the training.

        Raises:
            ValueError: for an infinite feature or an objective that does not fit the data.
        """
        queries = canonical(queries)
        valid = canonical(valid) if valid is not None else queries
        scaling = _scaling(queries.features)
        features, valid_features = _standardised(queries.features, scaling), _standardised(valid.features, scaling)
        objective = Objective(queries, self.objective, self.conventions, self.sigma, self.normalise)
        best, best_value, best_epoch, restarts = None, -np.inf, 0, 0
        rate, before = self.learning_rate, -np.inf
        weights = random_weights(queries.n_features, self.hidden, np.random.default_rng([self.seed, restarts]))
        rows = []
        flat_since, flat_value = 0, -np.inf
        for epoch in range(self.epochs):
            rng = np.random.default_rng([self.seed, restarts, epoch + 1])
            weights = self._pass(weights, features, queries, objective, epoch, rate, rng)
            scores = weights.scores(features)
            if not np.isfinite(scores).all():
                raise ValueError(
                    f"LambdaRank: scores are no longer finite in epoch {epoch + 1}; learning_rate={self.learning_rate:g} is too large"
                )
            train = mean_measure(self.stop_on, queries, scores, self.conventions)
            value = (
                train if valid is queries else mean_measure(self.stop_on, valid, weights.scores(valid_features), self.conventions)
            )
            rows.append((epoch + 1, train, value))
            if tick is not None:
                tick()
            judged = train if self.keep == "train" else value
            if judged > best_value:
                best, best_value, best_epoch = weights, judged, epoch + 1
            if judged > flat_value:
                flat_since, flat_value = epoch, judged
            if train < before and rng.random() < self.shrink_probability:
                rate *= self.shrink
            before = train
            if 0 < self.flat_epochs <= epoch - flat_since:
                restarts += 1
                weights = random_weights(queries.n_features, self.hidden, np.random.default_rng([self.seed, restarts]))
                rate, before, flat_since, flat_value = self.learning_rate, -np.inf, epoch, -np.inf
        iteration, train_values, valid_values = (np.array(column) for column in (zip(*rows, strict=True) if rows else ((), (), ())))
        remarks = (f"best epoch {best_epoch} of {self.epochs}, {restarts} restarts",)
        curve = Curve(iteration, train_values, valid_values)
        return replace(self, weights=best or weights, scaling=scaling, names=queries.names, curve=curve, remarks=remarks)

    def _pass(
        self, weights: Weights, features: NDArray[np.float32], queries: Queries, objective: Objective, epoch: int, rate: float,
        rng: np.random.Generator,
    ) -> Weights:  # fmt: skip
        inner, bias, outer = weights.inner.copy(), weights.bias.copy(), weights.outer.copy()
        if self.update == "full":
            units, scores = np.empty((len(features), len(outer))), np.empty(len(features))
            _forward_all(features, inner, bias, outer, self.hidden > 0, units, scores)
            force, _ = objective(scores, epoch)
            _backward(features, force, inner, bias, outer, self.hidden > 0, units, rate)
        else:
            n_terms = len(self.objective)
            pointer = types.FunctionType(forces_signature(n_terms))
            signature = types.void(
                F4_2D,
                I8_1D,
                I8_1D,
                plan_type(n_terms),
                pointer,
                F8_2D,
                F8_1D,
                F8_1D,
                types.boolean,
                F8,
            )
            visits = rng.permutation(queries.n_queries)
            ready(_epoch, signature)(
                features,
                queries.offsets,
                visits,
                objective.plan(epoch),
                objective.forces,
                inner,
                bias,
                outer,
                self.hidden > 0,
                rate,
            )
        return Weights(inner, bias, outer, self.hidden)

    def standardised(self, features: Any) -> NDArray[np.float32]:
        """Features as the net sees them."""
        assert self.scaling is not None or not self.names
        array = checked_features(features, self.names)
        return _standardised(array, self.scaling)  # type: ignore[arg-type]

    def predict(self, features: Any) -> NDArray[np.float64]:
        """Scores ``float64 [documents]``, higher is better."""
        standardised = self.standardised(features)
        assert self.weights is not None
        return self.weights.scores(standardised)

    def surface(self, features: Any) -> Surface:
        """What `ltr.certify` walks on: all weights together."""
        standardised = self.standardised(features)
        assert self.weights is not None
        return surface_of(self.weights, standardised)

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.arrays)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        if self.weights is None or self.scaling is None:
            raise ValueError("this model is not fitted")
        return {"inner": self.weights.inner, "bias": self.weights.bias, "outer": self.weights.outer, "scaling": self.scaling}

    @property
    def parameters(self) -> dict[str, Any]:
        fitted = ("weights", "scaling", "names", "curve", "remarks")
        plain = replace(self, weights=None, scaling=None, curve=None)
        return {name: value for name, value in asdict(plain).items() if name not in fitted}

    @classmethod
    def restored(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> "LambdaRank":
        weights = Weights(arrays["inner"], arrays["bias"], arrays["outer"], parameters["hidden"])
        given = {**parameters, **written_objective(parameters)}
        return cls(**given, weights=weights, scaling=arrays["scaling"], names=names)


def _scaling(features: NDArray[np.float32]) -> NDArray[np.float64]:
    """Mean and standard deviation of each feature, ``float64 [2, features]``; a constant one gets deviation 1."""
    infinite = np.flatnonzero(np.isinf(features).any(axis=0))
    if len(infinite):
        raise ValueError(f"feature {infinite[0] + 1} has an infinite value; nets need finite or missing (NaN) ones")
    present = ~np.isnan(features)
    counts = np.maximum(present.sum(axis=0), 1)
    mean = np.where(present, features, 0).sum(axis=0, dtype=np.float64) / counts
    deviation = np.sqrt((np.where(present, features - mean, 0.0) ** 2).sum(axis=0) / counts)
    return np.stack((mean, np.where(deviation > 0, deviation, 1.0)))


def _standardised(features: NDArray[np.float32], scaling: NDArray[np.float64]) -> NDArray[np.float32]:
    array = ((features - scaling[0]) / scaling[1]).astype(np.float32)
    return np.nan_to_num(array, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
