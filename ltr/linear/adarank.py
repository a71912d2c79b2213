"""AdaRank (Xu & Li 2007): boosting whose weak rankers are single features, upwards or downwards, for any measure in [0, 1].

In each round the feature with the highest measure, weighted by query, is added with α = ½·ln(Σ P(1 + E)/Σ P(1 − E)), and queries that the
model so far ranks badly get more weight: P ∝ e^(−E). It stops when a round no longer helps on the training queries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ltr.data.queries import Queries
from ltr.kernels.exponential import exp_of
from ltr.kernels.kernel import Floats, Floats32
from ltr.linear.linear_ranker import LinearRanker, Watch, products
from ltr.metrics.measure import Measure
from ltr.rankers.parameters import Span, whole
from ltr.rankers.training import query_values


@dataclass(frozen=True, kw_only=True)
class AdaRank(LinearRanker):
    """A linear ranker boosted from single features for any measure in [0, 1] (Xu & Li 2007).

    Args:
        measure: to boost.
        rounds: features to add at most, each as often as it is best.
        patience: rounds without a better training value before stopping.
    """

    kind: ClassVar[str] = "adarank"
    measure: str = "map"
    rounds: int = 500
    patience: int = 50
    spans: ClassVar[Mapping[str, Span]] = {"rounds": whole(1), "patience": whole(1, 1_000_000_000)}

    def __post_init__(self) -> None:
        super().__post_init__()
        Measure.maximised(self.measure)

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """The measure it boosts."""
        return (Measure.of(self.measure),)

    def learn(self, queries: Queries, features: Floats32, watch: Watch) -> tuple[Floats, tuple[str, ...]]:
        """The weights of the best round on the training queries.

        Raises:
            ValueError: where the measure is undefined on every query.
        """
        key = Measure.of(self.measure).key

        def values(scores: Floats) -> Floats:
            return query_values(self.measure, queries, scores, self.conventions)

        n = features.shape[1]
        weak = np.array([values(sign * features[:, k].astype(np.float64)) for sign in (1.0, -1.0) for k in range(n)])
        counted = ~np.isnan(weak[0])
        if not counted.any():
            raise ValueError(f"AdaRank: {key} is undefined on every training query")
        weak, weights = weak[:, counted], np.zeros(n)
        shares = np.full(int(counted.sum()), 1 / counted.sum())
        best, best_value, best_round = weights, -np.inf, 0
        for k in range(1, self.rounds + 1):
            worth = (weak * shares).sum(axis=1)
            chosen = int(np.argmax(worth))
            alpha = 0.5 * math.log(max(1 + worth[chosen], 1e-12) / max(1 - worth[chosen], 1e-12))
            weights = weights.copy()
            weights[chosen % n] += alpha if chosen < n else -alpha
            reached = values(products(features, weights))[counted]
            watch(weights)
            if reached.mean() > best_value:
                best, best_value, best_round = weights, float(reached.mean()), k
            elif k - best_round >= self.patience:
                break
            shares = exp_of(-reached)
            shares /= shares.sum()
        return best, (f"{best_round} round{'' if best_round == 1 else 's'}; training {key} {best_value:.4f}",)
