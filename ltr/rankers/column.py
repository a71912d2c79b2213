"""A ranking that is there already: the score is a feature, and nothing is learned.

So BM25, or another system's run, is a row beside the rankers that are to replace it, measured and tested as they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ltr.data.queries import Queries
from ltr.rankers.base import checked_features, digest_of
from ltr.rankers.surface import Surface
from ltr.rankers.training import Curve

LAST = float(np.finfo(np.float32).min)
"""The score of a document that has none: finite, as measures need it, and below whatever a feature holds."""


@dataclass(frozen=True)
class Column:
    """Ranks by one feature. A missing value ranks last; an infinite one counts as the largest number of its sign.

    Args:
        feature: its name.
        descending: the highest value ranks first; otherwise the lowest.
    """

    kind: ClassVar[str] = "column"
    feature: str
    descending: bool = True
    names: tuple[str, ...] = field(default=(), repr=False)
    curve: Curve | None = field(default=None, repr=False, compare=False)
    remarks: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Callable[[], None] | None = None) -> "Column":
        """A copy that knows where the feature stands; nothing else is looked at.

        Raises:
            ValueError: where there is no such feature.
        """
        if self.feature not in queries.names:
            raise ValueError(f"column: no feature {self.feature!r} in this data set; it has {', '.join(queries.names[:5])} …")
        missing = int(np.isnan(queries.features[:, queries.names.index(self.feature)]).sum())
        told = (
            (f"{missing:,} of {queries.n_documents:,} training documents have no {self.feature} and rank last",) if missing else ()
        )
        return replace(self, names=queries.names, remarks=told)

    def predict(self, features: Any) -> NDArray[np.float64]:
        """Scores ``float64 [documents]``, higher is better, all finite."""
        values = checked_features(features, self.names)[:, self.names.index(self.feature)]
        return np.nan_to_num(values if self.descending else -values, nan=LAST).astype(np.float64)

    def surface(self, features: Any) -> Surface:
        """There is none.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"a column ({self.feature}) has no weights, and so no certificate of local optimality")

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.arrays)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        if not self.names:
            raise ValueError("this model is not fitted")
        return {"column": np.array([self.names.index(self.feature)]), "descending": np.array([self.descending])}

    @property
    def parameters(self) -> dict[str, Any]:
        return {"feature": self.feature, "descending": self.descending}

    @classmethod
    def restored(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> "Column":
        return cls(**parameters, names=names)
