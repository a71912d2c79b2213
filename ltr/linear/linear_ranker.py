"""What all linear rankers share: how they are fitted to a cost of scores, how they score, and how they are saved.

A cost takes scores and returns what a query costs and how that changes with each score, so that a ranker is only its loss; the features
enter in two products, which are computed in fixed blocks of rows: the same bits for any number of threads.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numba import njit, prange

from ltr.data.queries import Queries, canonical
from ltr.kernels.kernel import Floats, Floats32
from ltr.linear.imputation import Imputation, Way, fit_imputation
from ltr.metrics.measure import Measure
from ltr.rankers.base import Arrays, Ranker, Tick, check_data, learned
from ltr.rankers.features import Features, blocks_of, by_rows, checked_features
from ltr.rankers.surface import Surface, linear_surface
from ltr.rankers.training import Curve, judged, mean_measure

_BLOCK = 256
IMPUTE = "impute: median, zero or query-mean fills them in"
"""The way out of missing features, for messages."""


@njit(cache=True, parallel=True)
def _products(features: Floats32, weights: Floats, scores: Floats) -> None:
    for row in prange(len(features)):
        total = 0.0
        for k in range(np.uint64(features.shape[1])):
            total += features[row, k] * weights[k]
        scores[row] = total


@njit(cache=True, parallel=True)
def _transposed(features: Floats32, factors: Floats, parts: Floats) -> None:
    for block in prange(len(parts)):
        parts[block] = 0.0
        for row in range(block * _BLOCK, min(block * _BLOCK + _BLOCK, len(features))):
            for k in range(features.shape[1]):
                parts[block, k] += factors[row] * features[row, k]


def products(features: Floats32, weights: Floats) -> Floats:
    """X·w, ``float64 [documents]``."""
    scores = np.empty(len(features))
    _products(features, weights, scores)
    return scores


def transposed(features: Floats32, factors: Floats) -> Floats:
    """Xᵀ·factors, ``float64 [features]``, summed block by block."""
    parts = np.empty((-(-len(features) // _BLOCK), features.shape[1]))
    _transposed(features, factors, parts)
    sums: Floats = np.cumsum(parts, axis=0)[-1]
    return sums


Cost = Callable[[Floats], tuple[float, Floats]]
"""``cost(scores) → (value, derivative)``: the sum over the queries and ``float64 [documents]``."""
Watch = Callable[[Floats], None]
"""``watch(weights)``: called after every iteration with the weights ``float64 [features]``."""


def best_of_starts(
    starts: Sequence[Floats], cost: Cost, features: Floats32, C: float, iterations: int, watch: Watch | None = None
) -> tuple[Floats, list[float]]:
    """The weights of the start from which `minimise` comes lowest, and the values of all of them.

    Raises:
        ValueError: as `minimise`.
    """
    found = [minimise(cost, features, C, start, iterations, watch) for start in starts]
    return min(found, key=lambda pair: pair[1])[0], [value for _, value in found]


def minimise(
    cost: Cost,
    features: Floats32,
    C: float,
    start: Floats,
    iterations: int,
    watch: Watch | None = None,
) -> tuple[Floats, float]:
    """Weights that minimise cost(X·w) + ‖w‖²/C by L-BFGS from `start`, and the value there. `watch` is called with the weights of each iteration.

    Raises:
        ValueError: where the value is no number.
    """

    def value(weights: Floats) -> tuple[float, Floats]:
        loss, factors = cost(products(features, weights))
        return loss + (weights**2).sum() / C, transposed(features, factors) + 2 * weights / C

    from scipy import optimize

    found = optimize.minimize(
        value,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=watch,
        options={"maxiter": iterations, "maxfun": 4 * iterations, "ftol": 1e-10},
    )
    if not np.isfinite(found.fun):
        raise ValueError(
            f"the objective became {found.fun}: C={C:g} or the features are too large or small, or the cost is undefined; change C or rescale the features"
        )
    return np.asarray(found.x, np.float64), float(found.fun)


def standardised(features: Floats32) -> tuple[Floats32, Floats]:
    """Features of mean 0 and standard deviation 1, and the factor of each, ``float64 [features]``; constant features become 0."""
    blocks = [features[:, block] for block in blocks_of(features.shape[1])]
    mean, deviation = (np.concatenate([of(block, axis=0, dtype=np.float64) for block in blocks]) for of in (np.mean, np.std))
    scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0.0)
    return by_rows(lambda rows: (rows - mean) * scale, features), scale


@dataclass(frozen=True, kw_only=True)
class LinearRanker(Ranker):
    """A ranker whose score is w·x. A subclass defines how the weights are learned.

    Attributes:
        standardise: learn on features of mean 0 and standard deviation 1; the weights kept are for the features as given.
        impute: what stands for missing features (`ltr.linear.imputation`), where they are to be taken.
        stop_on: measure of the curve that `fit` leaves.
    """

    complete_features: ClassVar[bool] = True
    standardise: bool = True
    impute: Way = "none"
    stop_on: str = "ndcg_10"
    weights: Floats | None = learned(None)
    imputation: Imputation | None = learned(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        Measure.of(self.stop_on)

    @abstractmethod
    def learn(self, queries: Queries, features: Floats32, watch: Watch) -> tuple[Floats, tuple[str, ...]]:
        """Weights ``float64 [features]`` for `features`, those of the queries but standardised where asked for; and remarks. Features are
        complete here, and indicators of missing ones are features.

        Raises:
            ValueError: for labels that the ranker cannot learn from.
        """

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """A fitted copy; on validation queries only the curve is measured.

        Args:
            tick: called whenever the curve gets a point, after every iteration of most rankers; what it raises ends the training.

        Raises:
            ValueError: for a feature that is not finite, or labels that the ranker cannot learn from.
        """
        check_data(self, queries, valid)
        names, whole = queries.names, canonical(queries)
        fitted, queries = self.imputing(judged(whole, self.trained_for, self.conventions))
        whole = queries if whole.n_documents == queries.n_documents else fitted.completed(whole)
        valid = fitted.completed(valid) if valid is not None else None
        for role, one in (("training", None if whole is queries else whole), ("validation", valid)):
            if one is not None and not (finite := np.isfinite(one.features).all(axis=0)).all():
                name = one.names[int(np.argmin(finite))]
                raise ValueError(
                    f"{type(self).__name__}: feature {name!r} of the {role} queries is missing or infinite in a document"
                )
        features, scale = standardised(queries.features) if self.standardise else (queries.features, np.ones(queries.n_features))
        rows: list[tuple[float, float]] = []

        def watch(weights: Floats) -> None:
            if tick is not None:
                tick()
            taken = [
                mean_measure(self.stop_on, one, products(one.features, weights * scale), self.conventions)
                if one is not None
                else np.nan
                for one in (whole, valid)
            ]
            rows.append((taken[0], taken[1]))

        weights, remarks = self.learn(queries, features, watch)
        if not np.isfinite(weights * scale).all():
            raise ValueError(
                f"{type(self).__name__}: weights are no longer finite; its parameters or the features are too large: {self!r}"
            )
        train, values = (np.array([row[k] for row in rows], np.float64) for k in range(2))
        curve = Curve(np.arange(1, len(rows) + 1), train, values)
        return replace(fitted, weights=weights * scale, names=names, curve=curve, remarks=remarks)

    @property
    def needs_complete(self) -> bool:
        """Unless it imputes."""
        return self.impute == "none"

    def imputing(self, queries: Queries) -> tuple[Self, Queries]:
        """The ranker with its imputation fitted to training queries, and these as it learns from them.

        Raises:
            ValueError: for a feature that is infinite, or missing where nothing is imputed.
        """
        wrong = ~np.isfinite(queries.features) if self.needs_complete else np.isinf(queries.features)
        if wrong.any():
            name = queries.names[int(wrong.any(axis=0).argmax())]
            if self.needs_complete:
                infinite = bool(np.isinf(queries.features[:, int(wrong.any(axis=0).argmax())]).any())
                has = "infinite values" if infinite else f"missing values ({IMPUTE})"
                raise ValueError(f"{self.kind} needs complete features; {name!r} has {has}")
            raise ValueError(f"{self.kind} needs finite features; {name!r} has infinite values")
        fitted = self if self.impute == "none" else replace(self, imputation=fit_imputation(self.impute, queries))
        return fitted, fitted.completed(queries)

    def completed(self, queries: Queries) -> Queries:
        """Queries with the features that the weights are for."""
        if self.imputation is None:
            return queries
        names = (*queries.names, *(f"{queries.names[k]} is missing" for k in self.imputation.indicated))
        return replace(queries, features=self.imputation.inputs(queries.features), names=names)

    def _inputs(self, features: Floats32) -> Floats32:
        return features if self.imputation is None else self.imputation.inputs(features)

    def _scores(self, features: Floats32) -> Floats:
        assert self.weights is not None
        return products(self._inputs(features), self.weights)

    def _surface(self, features: Floats32) -> Surface:
        assert self.weights is not None
        return linear_surface(self.weights.copy(), self._inputs(features))

    def moved(self, weights: Floats) -> Self:
        """The ranker with other weights ``float64 [features]``."""
        return replace(self, weights=self._in_place_of(self.weights, weights))

    def _learned_arrays(self) -> Arrays:
        assert self.weights is not None
        return {"weights": self.weights, **(self.imputation.arrays if self.imputation else {})}

    def _with_arrays(self, arrays: Arrays) -> Self:
        weights, wide = arrays["weights"], len(self.names)
        if self.impute != "none":
            imputation = Imputation(arrays["imputed"], arrays["indicated"])
            if len(imputation.values) != wide:
                raise ValueError(f"{len(imputation.values)} values in place of {wide} features")
            return replace(self, imputation=imputation)._with_weights(weights, wide + len(imputation.indicated))
        return self._with_weights(weights, wide)

    def _with_weights(self, weights: Floats, wide: int) -> Self:
        if weights.shape != (wide,):
            raise ValueError(f"{weights.shape} weights for {wide} features")
        if weights.dtype != np.float64 or not np.isfinite(weights).all():
            raise ValueError(f"weights of {weights.dtype}, not all of them finite numbers of float64")
        return replace(self, weights=weights)

    def attributions(self, features: Features) -> Floats | None:
        """Weight × value; what the indicator of a missing feature adds is the feature's."""
        assert self.weights is not None
        array = checked_features(features, self.names)
        parts, wide = self._inputs(array) * self.weights, array.shape[1]
        if self.imputation is not None:
            parts[:, self.imputation.indicated] += parts[:, wide:]
        return np.column_stack((parts[:, :wide], np.zeros(len(array))))

    @property
    def export_form(self) -> str | None:
        """Weights by feature; missing features are another matter."""
        return "linear" if self.imputation is None else "linear with imputation"

    @property
    def linear_weights(self) -> Floats | None:
        """`weights`, which are for features as given; none where missing ones are imputed."""
        return self.weights if self.imputation is None else None

    @property
    def watched(self) -> Measure | None:
        """The measure of the curve, `stop_on`."""
        return Measure.of(self.stop_on)
