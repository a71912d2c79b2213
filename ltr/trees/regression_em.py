"""How often each rank is looked at, where documents were shown at one rank only: expectation maximisation with trees that say from features
what attracts (Wang et al. 2018, "regression-based EM").

The position-based model, P(click) = θ_k·γ(x), where γ = 1/(1 + e^−F(x)) is a function of the features, so that documents that are alike
and were shown at different ranks tell these apart. Given θ and γ, what was not clicked attracted with the probability
r = (1 − θ)γ/(1 − θγ), what was clicked with r = 1. A round is one tree along Σ r·log γ + (1 − r)·log(1 − γ), whose gradient r − γ is also
that of the clicks' own likelihood, after steps of Newton of each θ_k along that. Wang et al. draw labels by r and grow a forest on them in every round, ULTRA moves a net along one
batch of drawn labels; here nothing is drawn. What features do not tell of relevance is taken for the rank's.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ltr.data.queries import Queries
from ltr.kernels.kernel import Bools, Floats, Ints
from ltr.metrics.measure import Measure
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import Unbiased

TREES: Mapping[str, Any] = {
    "n_trees": 200, "n_leaves": 4, "learning_rate": 0.2, "stop_on": None, "query_share": 1.0, "feature_share": 1.0,
}  # fmt: skip
"""Parameters of LambdaMART for F: few leaves, as what fits each document alone leaves no difference between ranks."""
STEPS, START, LEAST = 3, 0.9, 1e-4
"""Of Newton in each round, where θ begins (as in ULTRA), and what it is at least."""


class RegressionEM:
    """An objective for trees, ``objective(scores, queries) → (force, curvature)``, that finds θ as they grow.

    Args:
        how: says where positions are.
        term: whose measure's source holds the clicks.
    """

    def __init__(self, how: Unbiased, term: Term) -> None:
        self.how, self.term = how, term
        self._theta: Floats = np.empty(0)

    def __call__(self, scores: Floats, queries: Queries) -> tuple[Floats, Floats]:
        """Gradient and curvature of the expected likelihood at `scores`, F less its start, ``float64 [documents]``.

        Raises:
            ValueError: where nothing was clicked.
        """
        place = self.how.shown_at(queries, self.term)
        shown = place >= 0
        clicked = (queries.source(Measure.of(self.term.measure).source) > 0) & shown
        if not clicked.any():
            raise ValueError("unbiased: no click in the log: there is nothing to estimate propensities from")
        if not len(self._theta):
            self._theta = np.full(int(place.max()) + 1, START)
        attracts = min(clicked.sum() / shown.sum() / START, 0.9)
        gamma = 1.0 / (1.0 + (1.0 / attracts - 1.0) * np.exp(-scores))
        self._look(place[shown], clicked[shown], gamma[shown])
        theta = self._theta[place]
        expected = np.where(clicked, 1.0, (1 - theta) * gamma / (1 - theta * gamma))
        return np.where(shown, expected - gamma, 0.0), np.where(shown, gamma * (1 - gamma), 0.0)

    def _look(self, place: Ints, clicked: Bools, gamma: Floats) -> None:
        """Newton's steps along the clicks' likelihood Σ c·log θγ + (1 − c)·log(1 − θγ), which is concave in θ."""
        for _ in range(STEPS):
            theta = self._theta[place]
            part = np.where(clicked, 1.0 / theta, -gamma / (1 - theta * gamma))
            slope, bend = (np.bincount(place, values, len(self._theta)) for values in (part, part * part))
            self._theta = np.clip(self._theta + slope / np.maximum(bend, LEAST), LEAST, 1.0)

    @property
    def found(self) -> Unbiased:
        """`how` with θ as its propensities, relative to the rank looked at most."""
        relative = self._theta / self._theta.max()
        return replace(self.how, propensities=tuple(relative.tolist()), estimate="interventions")
