"""Least squares on the labels: the oldest baseline, and an exact check of loaders, folds and measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats, Floats32
from ltr.linear.linear_ranker import LinearRanker, Watch
from ltr.rankers.parameters import Span


@dataclass(frozen=True, kw_only=True)
class LeastSquares(LinearRanker):
    """Linear regression of the label on the features, with an intercept, which changes no ranking and is not kept.

    Args:
        ridge: λ in Σ(label − w·x − b)² + λ‖w‖².
    """

    kind: ClassVar[str] = "least_squares"
    certified: ClassVar[bool] = True
    ridge: float = 0.0
    standardise: bool = False

    spans: ClassVar[Mapping[str, Span]] = {"ridge": Span(0, 1e18)}

    def learn(self, queries: Queries, features: Floats32, watch: Watch) -> tuple[Floats, tuple[str, ...]]:
        """The solution by singular values (LAPACK's gelsd), of features from 0 to between 1 and 2, by powers of 2, so that none is lost beside
        larger ones; documents without a label are left out. BLAS adds up in an order of its own: the last digits depend on its threads and on
        the processor."""
        judged = ~np.isnan(queries.labels)
        columns, labels = features[judged].astype(np.float64), queries.labels[judged]
        columns -= columns.min(axis=0, initial=np.inf)
        exponents = np.frexp(columns.max(axis=0, initial=0))[1] - 1
        design = np.column_stack((np.ldexp(columns, -exponents), np.ones(len(labels))))
        if self.ridge:
            root = np.column_stack((np.diag(np.ldexp(np.sqrt(self.ridge), -exponents)), np.zeros(queries.n_features)))
            design, labels = np.vstack((design, root)), np.concatenate((labels, np.zeros(queries.n_features)))
        weights = np.asarray(np.ldexp(np.linalg.lstsq(design, labels, rcond=None)[0][:-1], -exponents), np.float64)
        watch(weights)
        return weights, ()

    @classmethod
    def of_weights(cls, weights: Mapping[str, float], names: tuple[str, ...]) -> Self:
        """The linear model with these weights by feature name, wherever they come from; features without one have weight 0.

        Raises:
            ValueError: for a weight of an unknown feature, or one that is not finite.
        """
        strange = [name for name in weights if name not in names]
        if strange:
            raise ValueError(f"weights of features that the data do not have: {', '.join(name[:60] for name in strange[:5])}")
        values = np.array([weights.get(name, 0.0) for name in names], np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"weight {values[~np.isfinite(values)][0]} is not finite")
        return cls(weights=values, names=names)
