"""Expectation maximisation, hastened: squared extrapolation (SQUAREM; Varadhan & Roland 2008).

Plain EM creeps where little is seen of what is hidden, as at ranks that few users reach: PyClick stops it after 50 rounds wherever it is.
Two rounds from x tell how steps shrink; the extrapolated place is taken where the likelihood there is at least that of x, and a plain
round follows it, so that the place never leaves the EM path for long.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ltr.kernels.kernel import Floats

MARGIN = 1e-9
"""Probabilities stay so far from 0 and 1."""
Round = Callable[[Floats], tuple[Floats, float]]
"""One round of EM: parameters → better parameters, and the mean log-likelihood of those given."""


@dataclass(frozen=True)
class Climb:
    """Where EM came to: parameters, their mean log-likelihood, rounds, and whether it had come to rest."""

    at: Floats
    likelihood: float
    rounds: int
    rested: bool


def ascend(once: Round, start: Floats, tolerance: float, most: int) -> Climb:
    """EM from `start` until two rounds gain no more than `tolerance`, or after `most` rounds.

    Args:
        once: a round; all parameters are probabilities.
        start: parameters ``float64 [any]``.
        tolerance: in nats a result; below 0 runs `most` rounds.
    """
    x, (first, reached), rounds = start, once(start), 1
    while rounds < most:
        second, at_first = once(first)
        rounds += 1
        if abs(at_first - reached) <= tolerance:
            return Climb(second, at_first, rounds, True)
        step, bend = first - x, second - 2 * first + x
        squared = float((bend * bend).sum())
        if squared <= 0 or rounds >= most:
            x, reached, first = first, at_first, second
            continue
        stride = max(1.0, float(np.sqrt((step * step).sum() / squared)))
        leap = np.clip(x + 2 * stride * step + stride**2 * bend, MARGIN, 1 - MARGIN)
        landed, at_leap = once(leap)
        rounds += 1
        if at_leap >= at_first:
            x, reached, first = leap, at_leap, landed
        else:
            x, reached, first = first, at_first, second
    return Climb(first, reached, rounds, False)
