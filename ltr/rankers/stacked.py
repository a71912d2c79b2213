"""A ranker on the scores of others, together with these: it ranks by the data's own features, as each of them does.

In training the scores of the others are a data set of their own (``on`` in a configuration). What came of that is used like any model where
all of it is put together again. scikit-learn's StackingRegressor holds its estimators for the same reason.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats, Floats32
from ltr.rankers.average import Average
from ltr.rankers.base import Arrays, Ranker, Tick
from ltr.rankers.column import Column
from ltr.rankers.features import Features
from ltr.rankers.surface import Surface


@dataclass(frozen=True)
class Stacked(Ranker):
    """A fitted ranker whose features are the scores of fitted ones.

    Args:
        bases: the others, in the order of its features.
        top: the ranker on their scores.

    Raises:
        ValueError: for another number of them, and where they read other features than each other.
    """

    kind: ClassVar[str] = "stacked"
    has_weights: ClassVar[bool] = False
    bases: tuple[Ranker, ...]
    top: Ranker

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.bases) != len(self.top.names) or len({base.names for base in self.bases}) != 1:
            raise ValueError(
                f"stacked: {len(self.bases)} rankers below one that reads {', '.join(self.top.names) or 'nothing'}; one for each, all on the "
                "same features"
            )
        object.__setattr__(self, "names", self.bases[0].names)
        object.__setattr__(self, "conventions", self.top.conventions)

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """Raises ValueError: its parts are trained one by one."""
        raise ValueError("stacked: the rankers below and the one on their scores are fitted by themselves")

    def _scores(self, features: Floats32) -> Floats:
        scores = np.column_stack([base.predict(features) for base in self.bases])
        return self.top.predict(scores.astype(np.float32))

    def _surface(self, features: Floats32) -> Surface:
        raise ValueError(
            "a ranker on the scores of others has no weights of its own, and so no certificate of local optimality; certify these"
        )

    @property
    def average(self) -> Average | None:
        """The average of the rankers below that ranks as this one does, but for the rounding of their scores to float32; None where the ranker above
        does something else with them."""
        if not isinstance(self.top, Average):
            return None
        below, members = dict(zip(self.top.names, self.bases, strict=True)), []
        for member in self.top.members:
            if not (isinstance(member, Column) and member.descending):
                return None
            members.append(below[member.feature])
        return replace(self.top, members=tuple(members), names=self.names)

    @property
    def split_by_categories(self) -> frozenset[str]:
        """Those of any of its rankers."""
        return frozenset().union(*(one.split_by_categories for one in self.bases))

    @property
    def export_form(self) -> str | None:
        """That of an average of the same rankers."""
        return self.average.export_form if self.average else None

    @property
    def linear_weights(self) -> Floats | None:
        """Those of an average of the same rankers."""
        return self.average.linear_weights if self.average else None

    def attributions(self, features: Features) -> Floats | None:
        """Those of an average of the same rankers."""
        return self.average.attributions(features) if self.average else None

    @property
    def attributed(self) -> str:
        """As those of the average are."""
        return self.average.attributed if self.average else super().attributed

    def _learned_arrays(self) -> Arrays:
        parts = (*self.bases, self.top)
        return {f"{k}:{name}": array for k, part in enumerate(parts) for name, array in part.arrays.items()}

    def _with_arrays(self, arrays: Arrays) -> Self:
        raise ValueError("stacked: its parts are saved by themselves")
