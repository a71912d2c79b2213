"""How often each rank is looked at, where documents were shown at one rank only: expectation maximisation with trees that say from features
what attracts (Wang et al. 2018, "regression-based EM").

The position-based model, P(click) = θ_k·γ(x), where γ = 1/(1 + e^−F(x)) is a function of the features, so that documents that are alike
and were shown at different ranks tell these apart. Given θ and γ, what was not clicked attracted with the probability
r = (1 − θ)γ/(1 − θγ), what was clicked with r = 1. A round is one tree along Σ r·log γ + (1 − r)·log(1 − γ), whose gradient r − γ is also
that of the clicks' own likelihood, after steps of Newton of each θ_k along that. Wang et al. draw labels by r and grow a forest on them in
every round, ULTRA moves a net along one batch of drawn labels; here nothing is drawn. What features do not tell of relevance is taken for the
rank's.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ltr.data.queries import Queries
from ltr.kernels.exponential import exp_of
from ltr.kernels.kernel import Floats
from ltr.kernels.machines import ALONE, Machines
from ltr.metrics.measure import Measure
from ltr.objectives.rank_sums import RankSums
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import Unbiased, learned_at

TREES: Mapping[str, Any] = {
    "n_trees": 200, "n_leaves": 4, "learning_rate": 0.2, "stop_on": None, "query_share": 1.0, "feature_share": 1.0,
}  # fmt: skip
"""Parameters of LambdaMART for F: few leaves, as what fits each document alone leaves no difference between ranks."""
TINY = 1e-100
"""What is divided by at least: where all is clicked, γ comes to be 1. Its inverse is squared, and times a weight it is still a number."""
STEPS, START, LEAST = 3, 0.9, 1e-4
"""Of Newton in each round, where θ begins (as in ULTRA), and what it is at least."""


class LooksObjective:
    """``objective(scores, iteration) → (gradient, hessian)`` for trees, which finds θ as they grow.

    Args:
        term: whose measure's source holds the clicks.
        how: says where positions are.
        machines: which have the other pages.

    Attributes:
        biases: θ before each iteration so far and after the last, ``float64 [1, ranks]`` each.

    Raises:
        ValueError: where nothing was clicked.
    """

    def __init__(self, queries: Queries, term: Term, how: Unbiased, machines: Machines = ALONE) -> None:
        self._rank = how.shown_at(queries, term)
        self._shown = self._rank >= 0
        self._clicked = (queries.source(Measure.of(term.measure).source) > 0) & self._shown
        self._weight = np.repeat(queries.shares, np.diff(queries.offsets))
        self._counts = queries.impressions
        self._sums = RankSums(self._rank, 0, machines)
        clicks, shown = self._sums([self._counts * self._clicked, self._counts]).sum(axis=1)
        if not clicks:
            raise ValueError("unbiased: no click in the log: there is nothing to estimate propensities from")
        self._attracts = min(clicks / shown / START, 0.9)
        self._least_bend = LEAST * shown / self._sums.documents.sum()
        self.biases = [np.full((1, self._sums.n_ranks), START)]

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """Gradient and curvature of the expected likelihood at `scores`, F less its start, ``float64 [documents]``."""
        (theta,) = learned_at(self.biases, iteration)
        gamma = 1.0 / (1.0 + (1.0 / self._attracts - 1.0) * exp_of(-scores))
        for _ in range(STEPS):
            theta = self._moved(theta, gamma)
        self.biases.append(theta[None])
        looked = theta[self._rank]
        expected = np.where(self._clicked, 1.0, (1 - looked) * gamma / np.maximum(1 - looked * gamma, TINY))
        return self._of_shown(expected - gamma), self._of_shown(gamma * (1 - gamma))

    def _of_shown(self, values: Floats) -> Floats:
        return self._weight * np.where(self._shown, values, 0.0)

    def _moved(self, theta: Floats, gamma: Floats) -> Floats:
        """θ after a step of Newton along the clicks' likelihood Σ w·(c·log θγ + (1 − c)·log(1 − θγ)), w of query and document, which is concave in θ."""
        looked = theta[self._rank]
        part = np.where(self._clicked, 1.0 / looked, -gamma / np.maximum(1 - looked * gamma, TINY))
        slope, bend = self._sums([self._counts * part, self._counts * part * part])
        moved: Floats = np.clip(theta + slope / np.maximum(bend, self._least_bend), LEAST, 1.0)
        return moved


def found(how: Unbiased, theta: Floats) -> Unbiased:
    """`how` with θ, ``float64 [ranks]``, as its propensities, relative to the rank looked at most."""
    return replace(how, propensities=tuple((theta / theta.max()).tolist()), estimate="interventions")
