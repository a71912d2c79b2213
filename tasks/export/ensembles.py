"""What writers of every format take, and the ensemble of a ranker that is made of trees."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import ltr
from ltr.rankers.stacked import Stacked
from ltr.trees.ensemble import Trees, join
from ltr.trees.tree_ranker import TreeRanker

Writer = Callable[[ltr.Ranker, str, bool], str | bytes]
"""``writer(ranker, name, complete)``: what the file holds; `name` is that of the file without its suffix."""


def trees_of(ranker: ltr.Ranker) -> Trees:
    """The trees of a fitted ranker whose `export_form` is one of trees; of an average, of rankers or of the
    scores of others, those of its members, with leaves that add up to it."""
    if isinstance(ranker, Stacked):
        assert ranker.average is not None
        return trees_of(ranker.average)
    if isinstance(ranker, ltr.Average):
        counted = [
            (trees_of(member), scale)
            for member, scale in zip(ranker.members, ranker.scales.tolist(), strict=True)
            if scale < np.inf
        ]
        return join([replace(trees, value=trees.value / (scale * len(ranker.members))) for trees, scale in counted])
    assert isinstance(ranker, TreeRanker)
    return ranker.ensemble


def base_of(ranker: ltr.Ranker) -> str | None:
    """The feature that is added to the trees' scores, where there is one."""
    if isinstance(ranker, ltr.Average | Stacked):
        return None
    assert isinstance(ranker, TreeRanker)
    return ranker.base_feature


def whole_score(ranker: ltr.Ranker, to: str) -> Trees:
    """The trees of a ranker, which are all of its score.

    Raises:
        ValueError: for a ranker with a base, which the format `to` cannot say.
    """
    if (base := base_of(ranker)) is not None:
        raise ValueError(f"the scores of base {base!r} are added to the trees', which {to} cannot say; onnx can")
    return trees_of(ranker)


def grown_score(ranker: ltr.Ranker, to: str) -> Trees:
    """`whole_score`, for formats whose readers refuse a model without a tree.

    Raises:
        ValueError: as `whole_score`, and for a ranker without a tree.
    """
    trees = whole_score(ranker, to)
    if trees.n_trees == 0:
        raise ValueError(
            f"the model has no trees (no split gained anything in training), and what reads {to} does not support an empty ensemble"
        )
    return trees
