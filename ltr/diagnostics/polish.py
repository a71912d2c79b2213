"""From trained weights to a local optimum of the measure itself, and the certificate that says so.

A λ-gradient follows no function, and the papers test afterwards whether training ended at an optimum (`ltr.diagnostics.optimality`). Here the
same random directions lead there. Draw unit directions in lots; where one rises, step along the best of: that direction, the sum of all that
rise, weighted by what they gain, and the gradient that the whole lot suggests (evolution strategies: Rechenberg 1973; Salimans et al. 2017);
as far as the measure rises most. Rankings are finitely many and the measure rises strictly, so this ends. Where a whole round of K
directions shows no rise, fresh ones are drawn from a stream that no step has used, four times K: if none of those rises either, the last K
are the certificate, and if one does, the climb goes on from it.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ltr.data.brief import Brief
from ltr.data.queries import Queries, canonical
from ltr.diagnostics.optimality import (
    EQUAL,
    NEAR,
    Certificate,
    certify,
    length,
    n_directions,
    normalised,
    random_directions,
    values_along,
)
from ltr.kernels.kernel import Floats
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure
from ltr.rankers.base import Ranker, Tick, with_features_of
from ltr.rankers.surface import Surface

LOT = 51
"""Directions that are tried at a time: a ninth of the 459."""
CONFIRMED = 4
"""Sets of fresh directions that must show no rise, one after another: of one set alone a place where a direction in some hundreds rises
passes often."""
REACH = tuple(0.0025 * 2**k for k in range(10))
"""Shares of ‖w‖ that a step may be long, from 0.0025 to 1.28."""


@dataclass(frozen=True)
class Polished(Brief):
    """Where a climb ended.

    Attributes:
        ranker: at its last weights.
        certificate: of directions that no step has used.
        values: the training measure before the first step and after each, ``float64 [steps + 1]``.
        trials: how many sets of fresh directions were asked; the last is the certificate.
    """

    ranker: Ranker
    certificate: Certificate
    values: Floats
    trials: int

    @property
    def text(self) -> str:
        """What came of it, in words."""
        steps = len(self.values) - 1
        found = self.certificate
        told = f"{found.measure} {self.values[0]:.4f} → {self.values[-1]:.4f} in {steps} step{'' if steps == 1 else 's'}"
        return f"{told}: {found.verdict}{f' ({found.rising} of {len(found.curves)} fresh directions rise)' if found.rising else ''}"


def polish(
    ranker: Ranker,
    queries: Queries,
    measure: str | Measure = "ndcg_10",
    steps: int = 1000,
    epsilon: float = 0.01,
    delta: float = 0.01,
    tick: Tick | None = None,
) -> Polished:
    """Climbs from a fitted ranker's weights to a local optimum of a measure on its training queries, under the ranker's conventions.

    Args:
        ranker: a fitted ranker with weights that can be moved (`Ranker.moved`). Linear weights are returned with ‖w‖ = 1, or divided by a power
            of two if only that keeps the ranking (`normalised`).
        queries: the training queries; the ranker's features are found by name.
        steps: maximum number of steps; the certificate says whether directions still rise.
        epsilon, delta: of the certificate (`certify`).
        tick: called after every step.

    Raises:
        ValueError: for a ranker whose weights cannot be moved, a feature that the queries lack, or a measure that no query defines.
    """
    queries = with_features_of(ranker, queries, "polish")
    measure, seed = Measure.maximised(measure), int(ranker.digest[:12], 16)
    ranker.predict(queries.features)  # a document without a score is named by its row as it was given
    queries = canonical(queries)
    here, values, trials = ranker, list[float](), 0
    while True:
        surface = normalised(here.surface(queries.features), queries.offsets)
        here = here.moved(surface.weights)
        climb = partial(_climb, surface, queries, measure, ranker.conventions)
        lots = (
            random_directions(size, len(surface.weights), [seed, len(values), k]) for k, size in enumerate(_lots(epsilon, delta))
        )
        climbed = next((place for lot in lots if (place := climb(lot))), None) if len(values) < steps else None
        if climbed is None:
            for _ in range(CONFIRMED):
                trials += 1
                fresh = seed + trials
                found = certify(surface, queries, measure, ranker.conventions, epsilon=epsilon, delta=delta, seed=fresh)
                if found.rising:
                    break
            if not found.rising or len(values) >= steps:
                return Polished(here, found, np.array([*values, found.value]), trials)
            climbed = climb(random_directions(len(found.curves), len(surface.weights), fresh))
            assert climbed is not None
        weights, value = climbed
        here = here.moved(weights)
        values.append(value)
        if tick is not None:
            tick()


def _lots(epsilon: float, delta: float) -> list[int]:
    """The directions of one round, lot by lot."""
    whole, rest = divmod(n_directions(epsilon, delta), LOT)
    return [LOT] * whole + [rest] * (rest > 0)


def _climb(
    surface: Surface, queries: Queries, measure: Measure, conventions: Conventions, directions: Floats
) -> tuple[Floats, float] | None:
    """The weights to go to, and the measure before; None where no direction rises."""
    norm = length(surface.weights)
    near, reach = (tuple(norm * share for share in shares) for shares in (NEAR, REACH))
    base, curves = values_along(surface, directions, queries, measure, conventions, near)
    gains = curves - base
    if not (gains > EQUAL).any():
        return None
    k, e = np.unravel_index(int(gains.argmax()), gains.shape)
    ways = np.array([directions[k], gains.max(axis=1).clip(0) @ directions, (gains / near).mean(axis=1) @ directions])
    ways /= np.sqrt((ways * ways).sum(axis=1, keepdims=True))
    _, along = values_along(surface, ways, queries, measure, conventions, reach)
    if along.max() <= curves[k, e]:
        return surface.weights + near[e] * directions[k], base
    way, how_far = np.unravel_index(int(along.argmax()), along.shape)
    return surface.weights + reach[how_far] * ways[way], base
