"""Ways of trees to take position bias out of clicks: what may be asked for, and what is known of ranks before the first tree."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from ltr.kernels.kernel import Floats
from ltr.objectives.shown import AskShown
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import Kind, Unbiased
from ltr.trees.shards import Shard, Shards

WAYS: tuple[Kind, ...] = ("ipw", "pairwise", "additive")
"""To take position bias out of clicks."""


def check_way(way: Unbiased, terms: Sequence[Term], normalise: str, loss: str) -> None:
    """Whether trees can be debiased so.

    Raises:
        ValueError: saying why not.
    """
    if not terms or loss != "ranking":
        given = f"loss={loss!r}" if loss != "ranking" else "a function"
        raise ValueError(f"LambdaMART: unbiased weighs pairs of an objective's measure; {given} has none")
    if way.kind not in (*WAYS, "auto"):
        raise ValueError(
            f"LambdaMART: unbiased: {way.kind} learns together with a net (kind: lambdarank); choose from: {', '.join(WAYS)} or auto"
        )
    way.check(terms, normalise)


def check_biases(biases: Floats | None, way: Unbiased | None) -> None:
    """Whether a saved model's biases of ranks can be those of its way.

    Raises:
        ValueError: saying why not.
    """
    if biases is None:
        return
    sides = way.sides if way else 0
    if biases.dtype != np.float64 or biases.ndim != 3 or biases.shape[1] != sides or not biases.size:
        raise ValueError(f"biases of ranks have shape {biases.shape}, and unbiased is {way}")
    if not np.isfinite(biases).all():
        raise ValueError("a bias of a rank is not finite")


def asking(data: Shard | Shards, way: Unbiased, term: Term) -> AskShown:
    """What was shown where in the pages of all parts."""
    return partial(data.ask, "shown", way, term)
