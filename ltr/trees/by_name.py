"""Parameters of trees that name features: what they may be, and what they mean for the features of a data set."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from ltr.data.arrays import plain_number
from ltr.kernels.kernel import Bools
from ltr.rankers.parameters import whole
from ltr.trees.binned import BINNING, Binned, Binning, known


class ByName(Binning, Protocol):
    """A ranker with these parameters, an `ltr.LambdaMART`."""

    @property
    def monotone(self) -> Mapping[str, int]:
        """1 where the score may only rise with a feature, −1 where it may only fall."""
        ...

    @property
    def interactions(self) -> Sequence[Sequence[str]]:
        """Groups of features that may meet on a path."""
        ...

    @property
    def base(self) -> str | None:
        """The feature that training starts from."""
        ...


def check_by_name(asked: ByName) -> None:
    """Raises ValueError where one of these parameters is not of its form, or two of them contradict each other."""
    monotone, bins, groups = asked.monotone, asked.max_bins_by_feature, asked.interactions
    if not isinstance(monotone, Mapping) or any(plain_number(sign) not in (-1, 0, 1) for sign in monotone.values()):
        raise ValueError(f"LambdaMART: monotone={monotone!r} is not a mapping of feature names to 1 (rising), -1 (falling) or 0")
    if not isinstance(bins, Mapping) or not all(isinstance(k, str) and n in whole(2, 255) for k, n in bins.items()):
        raise ValueError(
            f"LambdaMART: max_bins_by_feature={bins!r}; give a number of bins, 2 to 255, by feature name, such as {{'price': 63}}"
        )
    if not _names(asked.categorical) or len({*asked.categorical}) < len(asked.categorical):
        raise ValueError(
            f"LambdaMART: categorical={asked.categorical!r}; give names of features, each once, such as ['site', 'language']"
        )
    for name in asked.categorical:
        if monotone.get(name) or name == asked.base:
            raise ValueError(f"LambdaMART: {name!r} is categorical, and categories have no order to be monotone or a base by")
    if asked.base is not None and not isinstance(asked.base, str):
        raise ValueError(f"LambdaMART: base={asked.base!r}; give the name of the feature that holds the scores to start from")
    if not isinstance(groups, list | tuple) or not all(group and _names(group) for group in groups):
        raise ValueError(
            f"LambdaMART: interactions={groups!r}; give groups of feature names, such as [['bm25', 'length'], ['age']]"
        )


def _names(given: object) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)


def read_by(asked: ByName) -> tuple[str, ...]:
    """The features that a ranker names, but for those of `interactions`."""
    return (*([] if asked.base is None else [asked.base]), *asked.monotone, *asked.categorical, *asked.max_bins_by_feature)


def require_features(asked: ByName, names: tuple[str, ...]) -> None:
    """Raises ValueError for a name that none of these features has, and where the score shall fall with the base: of what is to be trained, as
    models that were trained so are there."""
    if asked.base is not None and asked.monotone.get(asked.base) == -1:
        raise ValueError(
            f"LambdaMART: monotone: the score cannot fall with the base {asked.base!r}, whose value is added to it; give 1 or leave it out"
        )
    known((*read_by(asked), *(name for group in asked.interactions for name in group)), names, "LambdaMART")


def require_same_bins(asked: ByName, binned: Binned) -> None:
    """Raises ValueError where the queries were binned in another way."""
    for name in BINNING:
        own, others = (list(value) if isinstance(value := getattr(one, name), tuple) else value for one in (asked, binned))
        if own != others:
            raise ValueError(
                f"LambdaMART: {name}={own}, but the queries were binned with {others}; use ltr.Binned(queries, {name}={own})"
            )


def groups_of(asked: ByName, names: tuple[str, ...]) -> Bools:
    """``bool [groups, features]`` of `interactions`, with a group of its own for every feature that is in none."""
    if not asked.interactions:
        return np.zeros((0, 0), np.bool_)
    place = {name: k for k, name in enumerate(names)}
    together = np.zeros((len(asked.interactions), len(names)), np.bool_)
    for own, group in zip(together, asked.interactions, strict=True):
        own[[place[name] for name in group if name in place]] = True
    alone = np.flatnonzero(~together.any(axis=0))
    groups = np.zeros((len(together) + len(alone), len(names)), np.bool_)
    groups[: len(together)] = together
    groups[len(together) + np.arange(len(alone)), alone] = True
    return groups
