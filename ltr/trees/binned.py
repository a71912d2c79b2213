"""Queries in the form that trees are grown on, made once for many trainings.

LightGBM's Dataset and XGBoost's QuantileDMatrix are made for this too. They fix the parameters of binning when they are first used; here
a ranker whose `max_bins` is another is refused. A training gives the bytes that it gives without.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ltr.data.named import Named
from ltr.data.queries import Queries, canonical_order
from ltr.data.sparse import is_sparse
from ltr.kernels.kernel import Bools, Bytes, Ints
from ltr.trees.binning import Bins, apply_bins, find_bins


@dataclass(frozen=True)
class Binned(Named):
    """Queries with binned features, for `ltr.LambdaMART.fit`.

    Args:
        queries: as `fit` takes them.
        max_bins: that of the rankers to be trained.
        categorical: names of features, likewise.

    Attributes:
        order: of the rows in canonical order, ``[documents]``; None where they are in it.
        bins: edges of each feature.
        binned: ``uint8 [blocks, documents, BLOCK]``, see `ltr.trees.binning.apply_bins`; a byte a value is what it takes beside the queries.

    Raises:
        ValueError: for what are no queries, sparse features, an infinite feature, or a number of bins that is not 2–255.
    """

    queries: Queries
    max_bins: int = 255
    categorical: Sequence[str] = ()
    order: Ints | None = field(init=False, repr=False, compare=False, metadata={"learned": True})
    bins: Bins = field(init=False, repr=False, compare=False, metadata={"learned": True})
    binned: Bytes = field(init=False, repr=False, compare=False, metadata={"learned": True})

    def __post_init__(self) -> None:
        if not isinstance(self.queries, Queries):
            raise ValueError(f"Binned: queries is a {type(self.queries).__name__}; it takes ltr.Queries(features, labels, offsets)")
        features = self.queries.features
        if is_sparse(features):
            raise ValueError("Binned: sparse features are binned in each training; give fit the queries themselves")
        object.__setattr__(self, "categorical", tuple(self.categorical))
        bins = find_bins(features, self.max_bins, which(self.categorical, self.queries.names))
        for name, value in (("order", canonical_order(self.queries)), ("bins", bins), ("binned", apply_bins(features, bins))):
            object.__setattr__(self, name, value)


def which(categorical: Sequence[str], names: tuple[str, ...]) -> Bools:
    """Which features are of categories, ``bool [features]``.

    Raises:
        ValueError: for a name that is no feature's.
    """
    unknown = [name for name in categorical if name not in names]
    if unknown:
        raise ValueError(f"categorical: no feature {unknown[0]!r}; there are {', '.join(names[:8])}")
    return np.isin(np.array(names), np.array(categorical, str)) if categorical else np.zeros(len(names), np.bool_)
