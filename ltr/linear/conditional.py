"""Conditional models of rankings: Pr(y|x) ∝ exp(w·φ(x, y)), fitted for a measure (Dubey 2009 sections 2 and 3).

With δφ(y) = φ(y_q) − φ(y) and Pr(y) ∝ exp(−w·δφ(y)), over the rankings of a sample (`ltr.linear.sampler`), a query costs

    mle           L1 = log Σ_y exp(−w·δφ(y))                    (C10)
    l2            L2 = E[Δ(y)]                                  (C11; C4 is the same sum: C9 is the distribution of C3)
    l3            L1 + L2                                       (C12)
    convex        log Σ_y exp(−w·δφ(y) + Δ(y)) ≥ L1 + L2        (C14)
    exp_gain      −log E[G(y)], G = 1 − Δ                       (C6)
    log_loss      log E[e^Δ(y)] ≥ L2, by Jensen's inequality    (C5 with f = exp)

and the sum over the queries plus ‖w‖²/C is minimised by L-BFGS. mle and convex are convex in w; the others are not, and take the best of
several starts. For AUC two have closed forms, which sum over all sign vectors y ∈ {±1}^(n⁺n⁻) and not only over rankings, so that no
sample converges to them: with θ = w·(x_g − x_b), convex is Σ_gb log(1 + exp(−2θ + 1/(n⁺n⁻))), mle the same without the last summand, and
E[AUC] = Σ_gb h(+1)/(h(+1) + h(−1)) / (n⁺n⁻) with h(y) = e^{yθ} (C's −1 counts the violated pairs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numba import njit, prange

from ltr.data.offsets import offsets_from_sizes
from ltr.data.queries import Queries, canonical
from ltr.kernels.kernel import Floats, Floats32, Ints, Ints32
from ltr.linear.linear_ranker import Cost, LinearRanker, Watch, best_of_starts, products, standardised
from ltr.linear.sampler import Sample, Walk, binary_labels, draw, tells_rankings_apart
from ltr.metrics.measure import Measure
from ltr.rankers.parameters import SEED, WEIGHT, Span, whole
from ltr.rankers.training import judged

_MLE, _L2, _L3, _CONVEX_LOSS, _EXP_GAIN, _LOG_LOSS = range(6)
LOSSES = {"mle": _MLE, "l2": _L2, "l3": _L3, "convex": _CONVEX_LOSS, "exp_gain": _EXP_GAIN, "log_loss": _LOG_LOSS}
"""Losses by name, as numbers for the kernels; the module has their formulas."""
_CONVEX = ("mle", "convex")
_CLOSED = ("mle", "convex", "exp_gain")
_SKEW = Span(-1e6, 1e6)


@njit(cache=True)
def _partition(margins: Floats, shares: Floats) -> float:
    """log Σ_y exp(margin), and in `shares` the derivative by each margin."""
    top = margins.max()
    total = 0.0
    for s in range(len(margins)):
        shares[s] = np.exp(margins[s] - top)
        total += shares[s]
    shares /= total
    partition: float = top + np.log(total)
    return partition


@njit(cache=True)
def query_cost(kind: int, margins: Floats, losses: Floats, shares: Floats) -> float:
    """Cost of one query over its rankings, and in `shares` its derivative by each −w·δφ(y).

    Args:
        kind: a value of `LOSSES`.
        margins: −w·δφ(y), ``float64 [rankings]``.
        losses: Δ(y), ``float64 [rankings]``.
    """
    if kind == _LOG_LOSS:
        upper = np.empty(len(shares))
        log_expected: float = _partition(margins + losses, upper) - _partition(margins, shares)
        shares[:] = upper - shares
        return log_expected
    partition: float = _partition(margins + losses if kind == _CONVEX_LOSS else margins, shares)
    if kind == _MLE or kind == _CONVEX_LOSS:
        return partition
    expected: float = 0.0
    for s in range(len(margins)):
        expected += shares[s] * losses[s]
    if kind == _L2:
        shares *= losses - expected
        return expected
    if kind == _L3:
        shares *= 1.0 + losses - expected
        return partition + expected
    gain = max(1.0 - expected, 1e-300)
    shares *= 1.0 - (1.0 - losses) / gain
    cost: float = -np.log(gain)
    return cost


@njit(cache=True, parallel=True)
def _sampled(
    kind: int,
    scores: Floats,
    documents: Ints,
    document_starts: Ints,
    starts: Ints,
    cells: Ints,
    counts: Ints32,
    losses: Floats,
    scales: Floats,
    values: Floats,
    factors: Floats,
) -> None:
    for q in prange(len(values)):
        first, last = document_starts[q], document_starts[q + 1]
        n, begin, end = last - first, starts[q], starts[q + 1]
        own, margins, shares = np.empty(n), np.zeros(end - begin), np.empty(end - begin)
        for d in range(n):
            own[d] = scores[documents[first + d]]
        for s in range(end - begin):
            at = cells[q] + s * n
            total = 0.0
            for d in range(n):
                total += counts[at + d] * own[d]
            margins[s] = -total * scales[q]
        values[q] = query_cost(kind, margins, losses[begin:end], shares)
        slope = np.zeros(n)
        for s in range(end - begin):
            at = cells[q] + s * n
            for d in range(n):
                slope[d] -= shares[s] * counts[at + d] * scales[q]
        for d in range(n):
            factors[documents[first + d]] = slope[d]


def sampled_cost(loss: str, sample: Sample, n_documents: int, scaled: bool = False) -> Cost:
    """The cost of `loss` over a sample as a function of all documents' scores; `scaled`: φ over n⁺n⁻."""
    starts = offsets_from_sizes(sample.sizes)
    scales = 1.0 / sample.pairs if scaled else np.ones(len(sample.queries))
    values = np.empty(len(sample.queries))

    def cost(scores: Floats) -> tuple[float, Floats]:
        factors = np.zeros(n_documents)
        _sampled(
            LOSSES[loss],
            scores,
            sample.documents,
            starts,
            sample.starts,
            sample.cells,
            sample.counts,
            sample.losses,
            scales,
            values,
            factors,
        )
        return float(np.cumsum(values)[-1]), factors

    return cost


@njit(cache=True, parallel=True)
def _closed(
    kind: int, scores: Floats, rows: Ints, starts: Ints, goods: Ints, scaled: bool, values: Floats, factors: Floats
) -> None:
    for q in prange(len(values)):
        first, last = starts[q], starts[q + 1]
        good = goods[q]
        pairs = good * (last - first - good)
        total, scale = 0.0, 1.0 / pairs if scaled else 1.0
        for i in range(first, first + good):
            for j in range(first + good, last):
                theta = (scores[rows[i]] - scores[rows[j]]) * scale
                x = -2.0 * theta + (1.0 / pairs if kind == _CONVEX_LOSS else 0.0)
                share = 1.0 / (1.0 + np.exp(-x))
                if kind == _EXP_GAIN:
                    total += 1.0 - share
                    slope = -2.0 * share * (1.0 - share)
                else:
                    total += max(x, 0.0) + np.log1p(np.exp(-abs(x)))
                    slope = -2.0 * share
                factors[rows[i]] += slope * scale
                factors[rows[j]] -= slope * scale
        values[q] = total
        if kind == _EXP_GAIN:
            values[q] = -np.log(max(total / pairs, 1e-300))
            for i in range(first, last):
                factors[rows[i]] /= max(total, 1e-300)


def closed_cost(loss: str, queries: Queries, labels: Floats, scaled: bool = False) -> Cost:
    """The closed form for AUC: over all sign vectors of the pairs (C section 2.3).

    Args:
        labels: 0 and 1, NaN for none.

    Raises:
        ValueError: for a loss without one.
    """
    if loss not in _CLOSED:
        raise ValueError(f"{loss} has no closed form; choose from: {', '.join(_CLOSED)}")
    spans = [np.arange(a, b) for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True)]
    both = [rows for rows in spans if (labels[rows] == 1).any() and (labels[rows] == 0).any()]
    goods = np.array([(labels[rows] == 1).sum() for rows in both], np.int64)
    ordered = [np.concatenate((rows[labels[rows] == 1], rows[labels[rows] == 0])) for rows in both]
    starts = offsets_from_sizes([len(rows) for rows in ordered])
    flat, values = np.concatenate(ordered), np.empty(len(both))

    def cost(scores: Floats) -> tuple[float, Floats]:
        factors = np.zeros(queries.n_documents)
        _closed(LOSSES[loss], scores, flat, starts, goods, scaled, values, factors)
        return float(np.cumsum(values)[-1]), factors

    return cost


@dataclass(frozen=True)
class Trace:
    """What happens while a conditional model is fitted.

    Attributes:
        sampled: the objective over the sample, ``float64 [iterations]``.
        closed: the closed form at the same weights, for AUC; empty otherwise.
        products, losses: w·φ(y), φ as the model has it (`ConditionalModel.scaled`), mean over the first ten iterations, and Δ(y) of some rankings, ``float64 [points]`` (C figure 8).
        smear: the losses of the rankings drawn, by the share of bad documents on top from which walks begin (C figure 7).
    """

    sampled: Floats
    closed: Floats
    products: Floats
    losses: Floats
    smear: dict[float, Floats]


def trace(model: ConditionalModel, queries: Queries, n_queries: int = 10, n_rankings: int = 10) -> Trace:
    """Fits the model once more, from one start, and records what happens, with `n_rankings` each of `n_queries` queries as points."""
    _, queries = model.imputing(judged(canonical(queries), model.trained_for, model.conventions))
    features = standardised(queries.features)[0] if model.standardise else queries.features
    visited: list[Floats] = []
    found, _ = replace(model, starts=1).learn(queries, features, lambda weights: visited.append(weights.copy()))
    visited = visited or [found]  # where the start is the optimum there is no iteration
    costs = [model.cost(queries)]
    if Measure.of(model.measure).name == "auc" and model.loss in _CLOSED:
        costs.append(replace(model, closed=True).cost(queries))
    values = np.array([[cost(products(features, w))[0] + (w**2).sum() / model.C for w in visited] for cost in costs])
    sample = draw(queries, model.measure, model.walk, model.seed, model.conventions)
    scores, points = np.mean([products(features, w) for w in visited[:10]], axis=0), []
    ends = np.cumsum(sample.sizes)
    rng = np.random.default_rng(model.seed)
    for q in rng.choice(len(sample.queries), min(n_queries, len(sample.queries)), replace=False):
        rows = sample.documents[ends[q] - sample.sizes[q] : ends[q]]
        begin, end = sample.starts[q], sample.starts[q + 1]
        table = sample.counts[sample.cells[q] : sample.cells[q] + (end - begin) * sample.sizes[q]].reshape(end - begin, -1)
        labels = binary_labels(queries, Measure.of(model.measure).source)[rows]
        best = np.where(labels == 1, (labels == 0).sum(), -(labels == 1).sum())
        for s in rng.choice(end - begin, min(n_rankings, end - begin), replace=False):
            product = float(((best - table[s]) * scores[rows]).sum()) / (sample.pairs[q] if model.scaled else 1.0)
            points.append((product, float(sample.losses[begin + s])))
    drawn = {
        b: draw(queries, model.measure, replace(model.walk, skew=None, begin=b), model.seed, model.conventions).losses
        for b in (0.0, 0.5, 1.0)
    }
    along, losses = np.array(points).T
    return Trace(values[0], values[1] if len(values) > 1 else np.empty(0), along, losses, drawn)


@dataclass(frozen=True, kw_only=True)
class ConditionalModel(LinearRanker):
    """A linear ranker fitted as a conditional model of rankings.

    Args:
        loss: a name in `LOSSES`.
        measure: whose Δ the loss uses; it names the label source, which must have two levels, such as ``ndcg:binary``.
        C: of ‖w‖²/C.
        samples, length, restart, skew: of the sample, see `ltr.linear.sampler.draw`.
        scaled: φ over n⁺n⁻, so that queries of many pairs weigh no more than others (C equation 2; off in the paper).
        closed: for ``auc``: the closed form instead of a sample.
        starts: starting points, of which the best result is kept; the first is w = 0. Convex losses need only that.
        iterations: of L-BFGS at most.
        seed: of sample and starts.
    """

    kind: ClassVar[str] = "conditional"
    loss: Literal["mle", "l2", "l3", "convex", "exp_gain", "log_loss"] = "convex"
    measure: str = "ndcg"
    C: float = 1000.0
    samples: int = 100
    length: int = 20
    restart: float = 0.9
    skew: float | None = None
    scaled: bool = False
    closed: bool = False
    starts: int = 3
    iterations: int = 200
    seed: int = 1
    spans: ClassVar[Mapping[str, Span]] = {
        "C": WEIGHT, "samples": whole(2, 100_000), "length": whole(1), "restart": Span(0, 1), "starts": whole(1, 10_000),
        "iterations": whole(1), "seed": SEED,
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        Measure.maximised(self.measure)
        if self.skew is not None and self.skew not in _SKEW:
            raise ValueError(f"ConditionalModel: skew={self.skew!r} is out of range; it is {_SKEW}, or none")
        if self.closed and (Measure.of(self.measure).name != "auc" or self.loss not in _CLOSED):
            raise ValueError(
                f"ConditionalModel: closed=True is out of range; there is a closed form for auc and {', '.join(_CLOSED)}"
            )

    @property
    def trained_for(self) -> tuple[Measure, ...]:
        """The measure of Δ."""
        return (Measure.of(self.measure),)

    @property
    def walk(self) -> Walk:
        """How rankings are drawn."""
        return Walk(self.samples, self.length, self.restart, self.skew)

    def check(self, queries: Queries) -> None:
        """Raises ValueError for labels of other than two levels, where no query has both of them, and where the loss reads Δ and Δ is 0, or
        undefined, for every ranking."""
        super().check(queries)
        labels = binary_labels(queries, Measure.of(self.measure).source)
        apart = tells_rankings_apart(queries, self.measure, self.conventions)
        if self.loss != "mle" and not self.closed and not apart:
            measure = Measure.of(self.measure)
            low, high = (queries.source(measure.source)[labels == level][0] for level in (0, 1))
            rule = f", as conventions.threshold is {self.conventions.threshold:g}" if measure.source == "label" else ""
            raise ValueError(
                f"{self.kind}: {measure.key} is the same for every ranking of documents labelled {low:g} and {high:g}{rule}: "
                f"{self.loss} has nothing to learn from"
            )

    def cost(self, queries: Queries) -> Cost:
        """What is minimised, without ‖w‖²/C, as a function of the scores; queries in canonical order."""
        if self.closed:
            return closed_cost(self.loss, queries, binary_labels(queries, Measure.of(self.measure).source), self.scaled)
        sample = draw(queries, self.measure, self.walk, self.seed, self.conventions)
        return sampled_cost(self.loss, sample, queries.n_documents, self.scaled)

    def learn(self, queries: Queries, features: Floats32, watch: Watch) -> tuple[Floats, tuple[str, ...]]:
        """The weights of the start with the lowest objective.

        Raises:
            ValueError: as `check`.
        """
        self.check(queries)
        starts = [
            np.random.default_rng([self.seed, k]).normal(0.0, 0.1 * min(k, 1), size=(features.shape[1],))
            for k in range(1 if self.loss in _CONVEX else self.starts)
        ]
        weights, values = best_of_starts(starts, self.cost(queries), features, self.C, self.iterations, watch)
        remark = f"objective {min(values):.4f}" + (
            f", the best of {', '.join(f'{v:.4f}' for v in values)}" if len(values) > 1 else ""
        )
        return weights, (remark,)
