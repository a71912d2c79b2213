"""The dual learning algorithm: how often ranks are looked at is learned together with the ranker (Ai et al. 2018, algorithm 1).

Two models by softmax cross-entropy, each with the clicks of a page weighed by the inverse of the other: the ranker's scores s of the
documents, and logits g of their ranks. With 1 the first rank shown on any page, o the document that its page shows first, and sums over a
page's clicked documents i at ranks k_i:

    ranker       Σ_i e^{g_1 − g_k} · −log softmax(σs)_i        g fixed: clicks over propensities θ_k = e^{g_k − g_1}
    propensities Σ_i e^{σ(s_o − s_i)} · −log softmax(g)_k      s fixed: clicks over relevance

The click on a document that attracts with γ has the probability θγ, so that both are at rest where e^{σs} ∝ γ and e^g ∝ θ: scores are
logarithms of what attracts. ULTRA moves both by Adagrad after every batch, its TensorFlow version with the weights held fixed, as here,
its PyTorch version along the weights' gradients too. Here propensities move as other biases do, once an iteration by a step of Newton for
each rank, which needs no rate of its own. No weight is above 1/least; those of the ranker are divided by their mean over clicks.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from ltr.data.queries import Queries
from ltr.kernels.exponential import exp, exp_of
from ltr.kernels.kernel import F8, F8_1D, I8_1D, Address, Floats, Ints, NumbaType, address, record_type
from ltr.metrics.measure import Measure
from ltr.objectives.seam import gradients_signature
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import CALM, LEAST_SHARE, Unbiased, learned_at, widened

STEP = 0.5
"""Of each step of Newton that propensities make: a whole one, rank by rank, could go to and fro."""


class DualPlan(NamedTuple):
    """All that the gradients of any page are computed from.

    Attributes:
        offsets, shares: of the queries.
        shown_at: ranks from 0, ``int64 [documents]``; −1 for documents that have no part in it.
        clicked: ``float64 [documents]``, 1 or 0.
        weights: ``float64 [ranks]``, what a click there counts.
        logits: ``float64 [ranks]``, g.
        most: largest weight that a click has for its relevance.
    """

    offsets: Ints
    shares: Floats
    shown_at: Ints
    clicked: Floats
    weights: Floats
    logits: Floats
    sigma: float
    most: float


_PLAN = record_type(DualPlan, I8_1D, F8_1D, I8_1D, F8_1D, F8_1D, F8_1D, F8, F8)


@njit(cache=True)
def dual_gradients(q: int, scores: Floats, plan: DualPlan, gradient: Floats, hessian: Floats) -> int:
    """Writes gradients and hessians ``[documents of q]`` of minus the ranker's loss; returns how many clicks there are."""
    first, sigma = plan.offsets[q], plan.sigma
    top, total, weight, clicks = -np.inf, 0.0, 0.0, 0
    gradient[:] = 0.0
    hessian[:] = 0.0
    for i in range(len(scores)):
        if plan.shown_at[first + i] >= 0:
            top = max(top, scores[i])
            if plan.clicked[first + i] > 0.0:
                weight += plan.weights[plan.shown_at[first + i]]
                clicks += 1
    if clicks == 0:
        return 0
    for i in range(len(scores)):
        if plan.shown_at[first + i] >= 0:
            gradient[i] = exp(sigma * (scores[i] - top))
            total += gradient[i]
    for i in range(len(scores)):
        if plan.shown_at[first + i] >= 0:
            share = gradient[i] / total
            own = plan.clicked[first + i] * plan.weights[plan.shown_at[first + i]]
            gradient[i] = plan.shares[q] * sigma * (own - weight * share)
            hessian[i] = plan.shares[q] * sigma * sigma * weight * share * (1.0 - share)
    return clicks


@njit(cache=True)
def look_gradients(q: int, scores: Floats, plan: DualPlan, gradient: Floats, hessian: Floats) -> None:
    """As `dual_gradients`, of minus the propensities' loss by the logit of each document's rank."""
    first, at = plan.offsets[q], -1
    top, total, weight = -np.inf, 0.0, 0.0
    gradient[:] = 0.0
    hessian[:] = 0.0
    for i in range(len(scores)):
        rank = plan.shown_at[first + i]
        if rank >= 0:
            top = max(top, plan.logits[rank])
            if at < 0 or rank < plan.shown_at[first + at]:
                at = i
    for i in range(len(scores)):
        rank = plan.shown_at[first + i]
        if rank >= 0:
            hessian[i] = exp(plan.logits[rank] - top)
            total += hessian[i]
            if plan.clicked[first + i] > 0.0:
                gradient[i] = min(exp(min(plan.sigma * (scores[at] - scores[i]), 700.0)), plan.most)
                weight += gradient[i]
    for i in range(len(scores)):
        share = hessian[i] / max(total, 1e-300)
        gradient[i] = plan.shares[q] * (gradient[i] - weight * share)
        hessian[i] = plan.shares[q] * weight * share * (1.0 - share)


@njit(cache=True, parallel=True)
def _all_duals(scores: Floats, plan: DualPlan, found: Floats) -> None:
    """Of every query ``found [4, documents]``: what `dual_gradients` writes, and what `look_gradients` does."""
    for i in prange(len(plan.offsets) - 1):
        q = np.int64(i)
        a, b = plan.offsets[q], plan.offsets[q + 1]
        dual_gradients(q, scores[a:b], plan, found[0, a:b], found[1, a:b])
        look_gradients(q, scores[a:b], plan, found[2, a:b], found[3, a:b])


class DualObjective:
    """``objective(scores, iteration) → (gradient, hessian)`` of minus the ranker's loss; a `ltr.objectives.seam.QueryObjective`.

    Args:
        term: whose measure's source holds the clicks; its measure is not read.
        begun: propensities at each iteration so far, ``float64 [iterations, 1, ranks]``.

    Attributes:
        biases: as `begun`, with a row more after each iteration; relative to the first rank that was shown.
    """

    plan_type: NumbaType = _PLAN

    def __init__(self, queries: Queries, term: Term, how: Unbiased, sigma: float, begun: Floats | None = None) -> None:
        self.shown_at = how.shown_at(queries, term)
        clicked = (queries.source(Measure.of(term.measure).source) > 0) & (self.shown_at >= 0)
        self.biases = [*widened(begun, int(self.shown_at.max(initial=0)) + 1, 1.0, 1)]
        n_ranks, shown = self.biases[0].shape[1], self.shown_at[self.shown_at >= 0]
        self._first = int(shown.min(initial=n_ranks - 1))
        self._clicks, self._least = np.bincount(self.shown_at[clicked], queries.impressions[clicked], n_ranks), how.least
        nothing = np.zeros(n_ranks)
        self._plan = DualPlan(
            queries.offsets,
            queries.shares,
            self.shown_at,
            clicked.astype(np.float64),
            nothing,
            nothing,
            float(sigma),
            1.0 / how.least,
        )

    @property
    def gradients(self) -> Address:
        """Of a kernel that writes a query's gradient and hessian."""
        return address(dual_gradients, gradients_signature(_PLAN))

    def plan(self, iteration: int) -> DualPlan:
        """What ``gradients(query, scores, plan, gradient, hessian)`` reads."""
        (looks,) = learned_at(self.biases, iteration)
        weights = 1.0 / np.maximum(looks, self._least)
        mean = (weights * self._clicks).sum() / self._clicks.sum() if self._clicks.any() else 0.0
        return self._plan._replace(
            weights=weights / mean if mean > 0 else weights, logits=np.array([math.log(share) for share in looks.tolist()])
        )

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """Gradient and hessian ``float64 [documents]`` at `scores`; scores move along the gradient."""
        plan, found = self.plan(iteration), np.empty((4, len(scores)))
        _all_duals(scores, plan, found)
        shown = self.shown_at >= 0
        slope, bend = (np.bincount(self.shown_at[shown], side[shown], len(plan.logits)) for side in found[2:])
        logits = plan.logits + STEP * slope / (bend + CALM)
        looks = exp_of(np.clip(logits - logits[self._first], math.log(LEAST_SHARE), -math.log(LEAST_SHARE)))
        self.biases.append(looks[None])
        return found[0].copy(), found[1].copy()
