"""Listwise losses of a linear ranker: what a whole query's scores cost, and how the cost changes with each score.

    listnet      cross entropy of the top-one distributions: −Σ_i softmax(label)_i · ln softmax(s)_i              (Cao et al. 2007)
    listmle      −ln Pr of the label's order under Plackett and Luce; equal labels in the data's canonical order  (Xia et al. 2008)
    rankcosine   ½ − ½·cos(label, s), both centred                                                                (Qin et al. 2008)
    softrank     1 − SoftNDCG: scores are normal with deviation τ, a document's rank is a sum of coin tosses      (Taylor et al. 2008)
    boltzrank    −E[NDCG] over permutations with Pr ∝ exp(Σ_(i above j) (s_i − s_j)·2/(n(n − 1))), drawn once     (Volkovs & Zemel 2009)

The sum over the queries plus ‖w‖²/C is minimised by L-BFGS; all but listnet and listmle are not convex. Of BoltzRank this is the pairwise
energy; its published version learns a second, non-linear potential too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import erf, exp, pi, sqrt
from typing import ClassVar, Literal

import numpy as np
from numba import njit, prange, types

from ltr.data.queries import Queries
from ltr.kernels.kernel import F8, F8_1D, I8, I8_1D, I8_2D, Address, Floats, Floats32, Ints, Kernel, address, kernel_at, ready
from ltr.linear.linear_ranker import Cost, LinearRanker, Watch, best_of_starts
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure, gains_of
from ltr.rankers.parameters import FACTOR, SEED, WEIGHT, Span, whole


@njit(cache=True)
def listnet(scores: Floats, labels: Floats, extra: Floats, factors: Floats) -> float:
    """−Σ_i softmax(label)_i · ln softmax(s)_i; derivative softmax(s) − softmax(label). `extra` is not used."""
    n = len(scores)
    target = np.exp(labels - labels.max())
    target /= target.sum()
    top = scores.max()
    shares = np.exp(scores - top)
    total = shares.sum()
    value = 0.0
    for i in range(n):
        value += target[i] * (top + np.log(total) - scores[i])
        factors[i] = shares[i] / total - target[i]
    return value


@njit(cache=True)
def listmle(scores: Floats, labels: Floats, extra: Floats, factors: Floats) -> float:
    """Σ_k ln Σ_{j ≥ k} exp(s_j) − s_k over the documents by label, descending, equal labels in the order given. `extra` is not used."""
    n = len(scores)
    order = np.argsort(-labels, kind="mergesort")
    value, below = 0.0, -np.inf
    sums = np.empty(n)
    for k in range(n - 1, -1, -1):
        below = np.logaddexp(below, scores[order[k]])
        sums[k] = below
        value += below - scores[order[k]]
    inverse = -np.inf
    for k in range(n):
        inverse = np.logaddexp(inverse, -sums[k])
        factors[order[k]] = np.exp(scores[order[k]] + inverse) - 1.0
    return value


@njit(cache=True)
def rankcosine(scores: Floats, labels: Floats, extra: Floats, factors: Floats) -> float:
    """½ − ½·cos(s, label), both centred: ½ where all scores are equal, 0 where all labels are. `extra` is not used."""
    s, y = scores - scores.mean(), labels - labels.mean()
    norm, size = np.sqrt((s * s).sum()), np.sqrt((y * y).sum())
    if norm < 1e-12 or size < 1e-12:
        factors[:] = 0.0
        if size >= 1e-12:
            factors[:] = -0.5 * y / size
            return 0.5
        return 0.0
    cosine: float = (s * y).sum() / (norm * size)
    factors[:] = -0.5 * (y / (norm * size) - cosine * s / (norm * norm))
    return 0.5 - 0.5 * cosine


_COINS = 128
"""Coins between two distributions that are kept: from one the others up to the next are built again."""
_LANES = 8
"""Sums that are added up beside each other, in the same order on every processor."""


@njit(cache=True)
def _tossed(ranks: Floats, heads: Floats, first: int, last: int) -> None:
    """The distributions of the number of heads after each of the coins ``first … last − 1``, from that before them in ``ranks[0]``."""
    for k in range(first, last):
        before, after, p = ranks[k - first], ranks[k - first + 1], heads[k]
        after[0] = before[0] * (1.0 - p)
        for r in range(1, k + 1):
            after[r] = before[r] * (1.0 - p) + before[r - 1] * p
        after[k + 1] = before[k] * p


@njit(cache=True)
def _worth_of_heads(before: Floats, worth: Floats, n: int, parts: Floats) -> float:
    """What one head more is worth, in the mean over the distribution `before` of n numbers of heads."""
    parts[:] = 0.0
    whole, total = n // _LANES * _LANES, 0.0
    for first in range(0, whole, _LANES):
        for lane in range(_LANES):
            parts[lane] += before[first + lane] * (worth[first + lane + 1] - worth[first + lane])
    for r in range(whole, n):
        total += before[r] * (worth[r + 1] - worth[r])
    for lane in range(_LANES):
        total += parts[lane]
    return total


@njit(cache=True)
def softrank(scores: Floats, gains: Floats, extra: Floats, factors: Floats) -> float:
    """1 − SoftNDCG of these gains, with τ in ``extra[0]``. The rank of j is a sum of independent coins, one for each other i, that come up with
    p_ij = Pr(s_i > s_j): its distribution is built up coin by coin. For the derivative by s_i the way is gone back: what a rank is worth before
    a coin follows from what it is worth after it."""
    n, tau = len(scores), extra[0]
    ideal, best = 0.0, np.sort(gains)[::-1]
    discount = np.empty(n)
    for r in range(n):
        discount[r] = 1.0 / np.log2(2.0 + r)
        ideal += best[r] * discount[r]
    factors[:] = 0.0
    if ideal <= 0.0:
        return 0.0
    value = 0.0
    blocks = max(1, (n - 2) // _COINS + 1)
    kept, ranks, worth, parts = np.zeros((blocks, n)), np.zeros((_COINS + 1, n)), np.empty(n), np.empty(_LANES)
    heads, slopes, others = np.empty(n), np.empty(n), np.empty(n, np.int64)
    for j in range(n):
        if gains[j] <= 0.0:
            continue
        coins = 0
        for i in range(n):
            if i != j:
                z = (scores[i] - scores[j]) / (2.0 * tau)
                heads[coins], slopes[coins], others[coins] = 0.5 * (1.0 + erf(z)), exp(-z * z) / (2.0 * tau * sqrt(pi)), i
                coins += 1
        ranks[0, 0], last = 1.0, 0
        for block in range(blocks):
            first, last = block * _COINS, min((block + 1) * _COINS, coins)
            if block:
                ranks[0] = ranks[_COINS]
            kept[block, : first + 1] = ranks[0, : first + 1]
            _tossed(ranks, heads, first, last)
        for r in range(n):
            value += gains[j] * discount[r] * ranks[last - first, r]
            worth[r] = discount[r]
        for block in range(blocks - 1, -1, -1):
            first, last = block * _COINS, min((block + 1) * _COINS, coins)
            if block < blocks - 1:
                ranks[0, : first + 1] = kept[block, : first + 1]
                _tossed(ranks, heads, first, last)
            for k in range(last - 1, first - 1, -1):
                slope = _worth_of_heads(ranks[k - first], worth, k + 1, parts) * gains[j] * slopes[k] / ideal
                factors[others[k]] -= slope
                factors[j] += slope
                for r in range(k + 1):
                    worth[r] = worth[r] * (1.0 - heads[k]) + worth[r + 1] * heads[k]
    return 1.0 - value / ideal


@njit(cache=True)
def boltzrank(scores: Floats, gains: Floats, extra: Floats, factors: Floats) -> float:
    """1 − E[NDCG] of these gains over the permutations of the module's distribution. `extra` has the documents of each permutation in its order."""
    n = len(scores)
    m = len(extra) // n
    best = np.sort(gains)[::-1]
    ideal, discount = 0.0, np.empty(n)
    for r in range(n):
        discount[r] = np.log2(2.0 + r)
        ideal += best[r] / discount[r]
    factors[:] = 0.0
    if ideal <= 0.0 or n < 2:
        return 0.0
    weight = 2.0 / (n * (n - 1))
    ranks, energy, value = np.empty((m, n), np.int64), np.empty(m), np.zeros(m)
    for s in range(m):
        energy[s] = 0.0
        for r in range(n):
            d = int(extra[s * n + r])
            ranks[s, d] = r
            energy[s] += weight * (n - 1 - 2 * r) * scores[d]
            value[s] += gains[d] / discount[r] / ideal
    share = np.exp(energy - energy.max())
    share /= share.sum()
    expected: float = (share * value).sum()
    for s in range(m):
        slope = share[s] * (value[s] - expected) * weight
        for i in range(n):
            factors[i] -= slope * (n - 1 - 2 * ranks[s, i])
    return 1.0 - expected


_LOSS = F8(F8_1D, F8_1D, F8_1D, F8_1D)
_loss_kernel = kernel_at(_LOSS)
LOSSES: dict[str, Kernel] = {
    "listnet": listnet,
    "listmle": listmle,
    "rankcosine": rankcosine,
    "softrank": softrank,
    "boltzrank": boltzrank,
}
"""Kernels ``loss(scores, labels, extra, factors) → value`` of one query by name; each writes its derivative by the scores to `factors`."""
_CONVEX = ("listnet", "listmle")
_OF_GAINS = ("softrank", "boltzrank")
"""Losses that are given NDCG's gains in place of labels."""


@njit(cache=True, parallel=True)
def _all(
    scores: Floats, labels: Floats, offsets: Ints, extra: Floats, places: Ints, loss: Address, values: Floats, factors: Floats
) -> None:
    for q in prange(len(values)):
        a, b = offsets[q], offsets[q + 1]
        values[q] = _loss_kernel(loss)(scores[a:b], labels[a:b], extra[places[q, 0] : places[q, 1]], factors[a:b])


def _orders(gains: Floats, samples: int, rng: np.random.Generator) -> Floats:
    """Permutations of a query's documents for `boltzrank`, one behind the other: the one by gain, and drawn ones."""
    orders = np.argsort(rng.random((samples, len(gains))), axis=1)
    orders[0] = np.argsort(-gains, kind="stable")
    return orders.ravel().astype(np.float64)


def listwise_cost(
    loss: str, queries: Queries, tau: float = 0.5, samples: int = 100, seed: int = 1, conventions: Conventions | None = None
) -> Cost:
    """The cost of a listwise loss as a function of all documents' scores; a document without a label counts as label 0.

    Args:
        loss: a name in `LOSSES`.
        tau: of softrank, the deviation of a score.
        samples: of boltzrank, permutations per query, the order by label always among them; keyed by `seed` and query.
        conventions: label rules, of softrank and boltzrank what a label gains.

    Raises:
        ValueError: for a label that NDCG has no gain of.
    """
    labels, n = np.nan_to_num(queries.labels), queries.n_queries
    if loss in _OF_GAINS:
        labels = gains_of(Measure.of("ndcg"), labels, conventions or Conventions())
    places, extra = np.zeros((n, 2), np.int64), np.zeros(0)
    if loss == "softrank":
        places[:, 1], extra = 1, np.array([tau], np.float64)
    elif loss == "boltzrank":
        sizes = np.diff(queries.offsets) * samples
        ends = np.cumsum(sizes)
        places = np.column_stack((ends - sizes, ends))
        extra = np.concatenate(
            [
                _orders(
                    labels[queries.offsets[q] : queries.offsets[q + 1]],
                    samples,
                    np.random.default_rng([seed, int(queries.keys[q])]),
                )
                for q in range(n)
            ]
        )
    values = np.empty(n)
    kernel = address(LOSSES[loss], _LOSS)
    drive = ready(_all, types.void(F8_1D, F8_1D, I8_1D, F8_1D, I8_2D, I8, F8_1D, F8_1D))

    def cost(scores: Floats) -> tuple[float, Floats]:
        factors = np.zeros(queries.n_documents)
        drive(scores, labels, queries.offsets, extra, places, kernel, values, factors)
        return float(np.cumsum(values)[-1]), factors

    return cost


@dataclass(frozen=True, kw_only=True)
class Listwise(LinearRanker):
    """A linear ranker by a listwise loss.

    Args:
        loss: a name in `LOSSES`.
        C: of ‖w‖²/C.
        tau: of softrank: the standard deviation of scores, on the scale of standardised features.
        samples: of boltzrank: permutations per query.
        starts: random starting points for losses that are not convex, of which the best result is kept.
        iterations: of L-BFGS at most.
        seed: of starts and permutations.
    """

    kind: ClassVar[str] = "listwise"
    loss: Literal["listnet", "listmle", "rankcosine", "softrank", "boltzrank"] = "listnet"
    C: float = 1000.0
    tau: float = 0.5
    samples: int = 100
    starts: int = 3
    iterations: int = 200
    seed: int = 1

    spans: ClassVar[Mapping[str, Span]] = {
        "C": WEIGHT, "tau": FACTOR, "samples": whole(2, 100_000), "starts": whole(1, 10_000), "iterations": whole(1), "seed": SEED,
    }  # fmt: skip

    def learn(self, queries: Queries, features: Floats32, watch: Watch) -> tuple[Floats, tuple[str, ...]]:
        """The weights of the start with the lowest objective."""
        cost = listwise_cost(self.loss, queries, self.tau, self.samples, self.seed, self.conventions)
        starts = [
            np.random.default_rng([self.seed, k]).normal(0.0, 0.01, size=(features.shape[1],))
            for k in range(1 if self.loss in _CONVEX else self.starts)
        ]
        weights, values = best_of_starts(starts, cost, features, self.C, self.iterations, watch)
        return weights, (f"objective {min(values):.4f}",)
