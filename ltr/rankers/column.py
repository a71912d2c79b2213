"""An existing ranking: the score is a feature, and nothing is learned.

So BM25, or another system's run, is measured and tested like the rankers that are to replace it.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ltr.data.arrays import few_of
from ltr.data.queries import Queries
from ltr.data.runs import listing
from ltr.kernels.kernel import Bools, Floats, Floats32
from ltr.rankers.base import Arrays, Ranker, Tick, check_data
from ltr.rankers.surface import Surface

LAST = float(np.finfo(np.float32).min)
"""The score of a document that has none: finite, as measures require, and not above any value of a feature."""


@dataclass(frozen=True)
class Column(Ranker):
    """Ranks by one feature. A missing value scores last, and counts in a run's measures as not retrieved (`ranked`); an infinite one counts as
    the largest number of its sign.

    Args:
        feature: its name.
        descending: the highest value ranks first; otherwise the lowest.
    """

    kind: ClassVar[str] = "column"
    has_weights: ClassVar[bool] = False
    query_weights: ClassVar[bool] = True
    document_weights: ClassVar[bool] = True
    feature: str
    descending: bool = True

    def check(self, queries: Queries) -> None:
        """Raises ValueError where there is no such feature."""
        super().check(queries)
        if self.feature not in queries.names:
            raise ValueError(f"column: no feature {self.feature!r} in this data set; it has {few_of(queries.names)}")

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """A copy that knows the feature's position; nothing else is used.

        Raises:
            ValueError: where there is no such feature.
        """
        check_data(self, queries, valid)
        self.check(queries)
        fitted = replace(self, names=queries.names)
        without = int((~fitted.ranked(queries.features)).sum())
        said = f"{without:,} of {queries.n_documents:,} training documents have no {listing(self.feature, queries.names)} and are unranked (not retrieved)"
        return replace(fitted, remarks=(said,) if without else ())

    def n_missing(self, queries: Queries) -> int:
        """How many documents of a data set that has the feature miss it."""
        return int(np.isnan(queries.features[:, queries.names.index(self.feature)]).sum())

    def ranked(self, features: Floats32) -> Bools:
        """Those that have a value; of a normalised form of a run those that the run has."""
        own, listed = (self.names.index(name) for name in (self.feature, listing(self.feature, self.names)))
        has: Bools = ~(np.isnan(features[:, own]) | np.isnan(features[:, listed]))
        return has

    def _scores(self, features: Floats32) -> Floats:
        values = features[:, self.names.index(self.feature)]
        return np.nan_to_num(values if self.descending else -values, nan=LAST).astype(np.float64)

    def _surface(self, features: Floats32) -> Surface:
        raise ValueError(f"a column ({self.feature}) has no weights, and so no certificate of local optimality")

    def _learned_arrays(self) -> Arrays:
        return {"column": np.array([self.names.index(self.feature)]), "descending": np.array([self.descending])}

    def _with_arrays(self, arrays: Arrays) -> Self:
        if self.feature not in self.names:
            raise ValueError(f"no feature {self.feature!r} among {few_of(self.names)}")
        return self

    @property
    def features_read(self) -> tuple[str, ...]:
        """The one feature."""
        return (self.feature,)
