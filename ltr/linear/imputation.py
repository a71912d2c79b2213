"""Values for missing features, for rankers that need them all: one a feature, fitted on training queries, and indicators.

    x          → x with the feature's value in place of what is missing, and behind it, for each feature that training documents miss,
                 1 where it is missing and 0 where it is not

A score stays a function of one document, so a model that imputes ranks streams of rows and is exported like any other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ltr.data.queries import Queries
from ltr.kernels.kernel import Array, Floats, Floats32, Ints

Way = Literal["none", "median", "zero", "query-mean"]
"""``median`` over the documents that have the feature, ``zero``, or ``query-mean``: the mean over queries of each one's mean."""


@dataclass(frozen=True, eq=False)
class Imputation:
    """What is put in place of missing features.

    Attributes:
        values: ``float32 [features]``.
        indicated: ``int64 [indicators]``, the features that have an indicator, rising.
    """

    values: Floats32
    indicated: Ints

    def __post_init__(self) -> None:
        values, indicated = self.values, self.indicated
        if values.dtype != np.float32 or values.ndim != 1 or not np.isfinite(values).all():
            raise ValueError("values in place of missing features are not all finite numbers of float32")
        inside = np.append(np.insert(indicated, 0, -1), len(values))
        if indicated.dtype != np.int64 or indicated.ndim != 1 or (np.diff(inside) < 1).any():
            raise ValueError(f"indicators of missing features are not numbers of {len(values)} features, rising")

    def inputs(self, features: Floats32) -> Floats32:
        """Complete features and indicators, ``float32 [documents, features + indicators]``."""
        missing = np.isnan(features)
        return np.column_stack((np.where(missing, self.values, features), missing[:, self.indicated].astype(np.float32)))

    @property
    def arrays(self) -> dict[str, Array]:
        """As they are saved."""
        return {"imputed": self.values, "indicated": self.indicated}


def fit_imputation(way: Way, queries: Queries) -> Imputation:
    """The imputation of training queries; a feature that no document has is 0."""
    of = _WAYS[way]
    values = [of(column, queries.offsets) if not np.isnan(column).all() else 0.0 for column in queries.features.T]
    return Imputation(np.array(values, np.float32), np.flatnonzero(np.isnan(queries.features).any(axis=0)).astype(np.int64))


def _median(column: Floats32, offsets: Ints) -> float:
    return float(np.median(column[~np.isnan(column)].astype(np.float64)))


def _query_mean(column: Floats32, offsets: Ints) -> float:
    given = ~np.isnan(column)
    sums = np.add.reduceat(np.where(given, column, 0).astype(np.float64), offsets[:-1])
    counts = np.add.reduceat(given.astype(np.int64), offsets[:-1])
    means: Floats = sums[counts > 0] / counts[counts > 0]
    return float(np.cumsum(means)[-1] / len(means))


_WAYS: dict[str, Callable[[Floats32, Ints], float]] = {
    "median": _median,
    "zero": lambda column, offsets: 0.0,
    "query-mean": _query_mean,
}
