"""Queries in the form that trees are grown on, made once for many trainings.

LightGBM's Dataset and XGBoost's QuantileDMatrix are made for this too. They fix the parameters of binning when they are first used; here
a ranker that asks for other bins is refused. A training gives the bytes that it gives without.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from ltr.data.arrays import few_of
from ltr.data.named import Named
from ltr.data.queries import Queries, canonical_order
from ltr.data.sparse import is_sparse
from ltr.kernels.kernel import Bools, Bytes, Ints
from ltr.trees.binning import Bins, apply_bins, find_bins, naming


class Binning(Protocol):
    """What features are binned by."""

    @property
    def max_bins(self) -> int:
        """Bins of a feature at most."""
        ...

    @property
    def max_bins_by_feature(self) -> Mapping[str, int]:
        """By name, where they are others."""
        ...

    @property
    def categorical(self) -> Sequence[str]:
        """Names of features whose values are categories."""
        ...


BINNING = ("max_bins", "max_bins_by_feature", "categorical")
"""The parameters that rankers and `Binned` queries have to agree on."""


@dataclass(frozen=True)
class Binned(Named):
    """Queries with binned features, for `ltr.LambdaMART.fit`.

    Args:
        queries: training queries, as for `fit`.
        max_bins, max_bins_by_feature, categorical: as in the rankers to be trained.

    Attributes:
        order: the rows in canonical order, ``[documents]``; None if they already are.
        bins: edges of each feature.
        binned: ``uint8 [blocks, documents, BLOCK]``, see `ltr.trees.binning.apply_bins`; a byte a value is what it takes beside the queries.

    Raises:
        ValueError: for what are no queries, sparse features, an infinite feature, or a number of bins that is not 2–255.
    """

    queries: Queries
    max_bins: int = 255
    max_bins_by_feature: Mapping[str, int] = field(default_factory=dict)
    categorical: Sequence[str] = ()
    order: Ints | None = field(init=False, repr=False, compare=False, metadata={"learned": True})
    bins: Bins = field(init=False, repr=False, compare=False, metadata={"learned": True})
    binned: Bytes = field(init=False, repr=False, compare=False, metadata={"learned": True})

    def __post_init__(self) -> None:
        if not isinstance(self.queries, Queries):
            raise ValueError(f"Binned: queries is a {type(self.queries).__name__}; give ltr.Queries(features, labels, offsets)")
        features = self.queries.features
        if is_sparse(features):
            raise ValueError("Binned: sparse features are binned in each training; give fit the queries themselves")
        self._set(categorical=tuple(self.categorical), max_bins_by_feature=dict(self.max_bins_by_feature))
        names = self.queries.names
        with naming(names):
            bins = find_bins(features, bins_of(self, names), which(self.categorical, names))
        self._set(order=canonical_order(self.queries), bins=bins, binned=apply_bins(features, bins))

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def kept(cls, queries: Queries, binning: Binning, bins: Bins, binned: Bytes) -> Self:
        """What was made before of the same queries by the same binning, and stored: `bins` and `binned` of the other one."""
        made = object.__new__(cls)
        made._set(
            queries=queries,
            max_bins=binning.max_bins,
            max_bins_by_feature=dict(binning.max_bins_by_feature),
            categorical=tuple(binning.categorical),
            order=canonical_order(queries),
            bins=bins,
            binned=binned,
        )
        return made


def bins_of(binning: Binning, names: tuple[str, ...]) -> Ints:
    """How many bins each feature has at most, ``int64 [features]``.

    Raises:
        ValueError: for a name that is no feature's.
    """
    known(binning.max_bins_by_feature, names, "max_bins_by_feature")
    return np.array([binning.max_bins_by_feature.get(name, binning.max_bins) for name in names], np.int64)


def which(categorical: Sequence[str], names: tuple[str, ...]) -> Bools:
    """Which features are of categories, ``bool [features]``.

    Raises:
        ValueError: for a name that is no feature's.
    """
    known(categorical, names, "categorical")
    return np.isin(np.array(names), np.array(categorical, str)) if categorical else np.zeros(len(names), np.bool_)


def known(asked: Iterable[str], names: tuple[str, ...], what: str) -> None:
    """Raises ValueError for a name that is no feature's."""
    for unknown in [name for name in asked if name not in names][:1]:
        raise ValueError(f"{what}: no feature {unknown!r} in this data set; it has {few_of(names)}")
