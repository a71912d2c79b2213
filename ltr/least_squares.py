"""Least squares on the labels: the oldest baseline, and an exact check of a loader, folds and measures."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ltr.models import checked_features, digest_of
from ltr.optimality import Surface, linear_surface
from ltr.queries import Queries, canonical
from ltr.training import Curve


@dataclass(frozen=True)
class LeastSquares:
    """Linear regression of the label on the features, with intercept and optional ridge (not on the intercept).

    Args:
        ridge: λ in Σ(label − w·x − b)² + λ‖w‖².
    """

    kind: ClassVar[str] = "least_squares"
    ridge: float = 0.0
    weights: NDArray[np.float64] | None = field(default=None, repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)
    curve: Curve | None = field(default=None, repr=False, compare=False)
    remarks: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.ridge < 0:
            raise ValueError(f"LeastSquares: ridge={self.ridge} is negative")

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Callable[[], None] | None = None) -> "LeastSquares":
        """A fitted copy. Documents without a label are left out.

        Raises:
            ValueError: for a feature that is not finite.
        """
        queries = canonical(queries)
        judged = ~np.isnan(queries.labels)
        features = queries.features[judged].astype(np.float64)
        if not np.isfinite(features).all():
            raise ValueError("least squares needs finite features without missing values")
        design = np.column_stack((features, np.ones(len(features))))
        labels = queries.labels[judged]
        if self.ridge:
            root = np.sqrt(self.ridge) * np.eye(queries.n_features, queries.n_features + 1)
            design, labels = np.vstack((design, root)), np.concatenate((labels, np.zeros(queries.n_features)))
        return replace(self, weights=np.asarray(np.linalg.lstsq(design, labels, rcond=None)[0], np.float64), names=queries.names)

    @classmethod
    def of_weights(cls, weights: Mapping[str, float], names: tuple[str, ...]) -> "LeastSquares":
        """The linear model with these weights by feature name, however they were found; a feature without one has weight 0.

        Raises:
            ValueError: for a weight of a feature that is not there, or that is not finite.
        """
        strange = [name for name in weights if name not in names]
        if strange:
            raise ValueError(f"weights of features that the data do not have: {', '.join(strange[:5])}")
        values = np.array([*(weights.get(name, 0.0) for name in names), 0.0], np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"weight {values[~np.isfinite(values)][0]} is not finite")
        return cls(weights=values, names=names)

    def predict(self, features: Any) -> NDArray[np.float64]:
        """Scores ``float64 [documents]``, higher is better."""
        array = checked_features(features, self.names)
        assert self.weights is not None
        return (array * self.weights[:-1]).sum(axis=1) + self.weights[-1]

    def surface(self, features: Any) -> Surface:
        """What `ltr.certify` walks on; the intercept moves no ranking and is left out."""
        assert self.weights is not None
        return linear_surface(self.weights[:-1].copy(), checked_features(features, self.names))

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.arrays)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        if self.weights is None:
            raise ValueError("this model is not fitted")
        return {"weights": self.weights}

    @property
    def parameters(self) -> dict[str, Any]:
        return {"ridge": asdict(replace(self, curve=None))["ridge"]}

    @classmethod
    def restored(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> "LeastSquares":
        return cls(**parameters, weights=arrays["weights"], names=names)
