"""RankBoost (Freund, Iyer, Schapire & Singer 2003): boosting on pairs, whose weak rankers are thresholds on single features.

The weight of a pair, i above j by label, is e^{H(j) − H(i)}. A document's potential π(d) is the weight of the pairs it should win less that
of the pairs it should lose, so that no list of pairs is needed. The weak ranker [x > θ] has r = Σ π(d)·[x_d > θ] over the weight of all pairs;
the one with the largest |r| is added with α = ½·ln((1 + r)/(1 − r)). One that orders all pairs is the last: no weight is left to boost. The
model is an ensemble of trees of two leaves, 0 and α.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numba import njit, prange

from ltr.data.queries import Queries, canonical, has_pairs
from ltr.kernels.kernel import Bytes, Floats, Ints
from ltr.metrics.measure import Measure
from ltr.rankers.base import Tick, check_data
from ltr.rankers.parameters import Span, whole
from ltr.rankers.training import Curve, judged, mean_measure
from ltr.trees.binning import BLOCK, apply_bins, find_bins, naming
from ltr.trees.ensemble import Trees, join
from ltr.trees.tree_ranker import TreeRanker


@njit(cache=True, parallel=True)
def potentials(scores: Floats, labels: Floats, offsets: Ints, potential: Floats, weights: Floats) -> None:
    """π of each document, and the weight of each query's pairs."""
    for q in prange(len(weights)):
        a, b = offsets[q], offsets[q + 1]
        middle = 0.5 * (scores[a:b].max() + scores[a:b].min())
        up, down = np.exp(scores[a:b] - middle), np.exp(middle - scores[a:b])
        potential[a:b] = 0.0
        weights[q] = 0.0
        for i in range(b - a):
            for j in range(b - a):
                if labels[a + i] > labels[a + j]:
                    weight = up[j] * down[i]
                    potential[a + i] += weight
                    potential[a + j] -= weight
                    weights[q] += weight


@njit(cache=True, parallel=True)
def _weak(binned: Bytes, columns: Ints, potential: Floats, sums: Floats) -> None:
    """sums[f, b]: Σ π of the documents with a bin above b; missing values count as below."""
    for f in prange(len(sums)):
        own, block, k = np.zeros(256), columns[f] // BLOCK, columns[f] % BLOCK
        for d in range(len(potential)):
            own[binned[block, d, k]] += potential[d]
        above = 0.0
        for b in range(254, -1, -1):
            sums[f, b] = above
            above += own[b]


@dataclass(frozen=True, kw_only=True)
class RankBoost(TreeRanker):
    """A sum of thresholds on single features, boosted on pairs (Freund et al. 2003).

    Args:
        rounds: weak rankers to add.
        max_bins: bins of a feature at most; their edges are its thresholds.
        conventions: label rules.
        stop_on: measure on validation queries whose best round is kept; None keeps all.
    """

    kind: ClassVar[str] = "rankboost"
    iterations_from: ClassVar[str | None] = "rounds"
    rounds: int = 300
    max_bins: int = 255
    stop_on: str | None = "ndcg_10"

    spans: ClassVar[Mapping[str, Span]] = {"rounds": whole(1), "max_bins": whole(2, 255)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stop_on is not None:
            Measure.maximised(self.stop_on)

    def check(self, queries: Queries) -> None:
        """Raises ValueError where no query has documents of different labels."""
        super().check(queries)
        if not has_pairs(queries):
            raise ValueError("RankBoost: no query has documents of different labels")

    def fit(self, queries: Queries, valid: Queries | None = None, tick: Tick | None = None) -> Self:
        """A fitted copy.

        Raises:
            ValueError: for an infinite feature, or where no query has documents of different labels.
        """
        check_data(self, queries, valid)
        self.check(queries)
        queries = judged(queries, self.trained_for, self.conventions)
        queries, valid = canonical(queries), canonical(valid) if valid is not None else None
        with naming(queries.names):
            bins = find_bins(queries.features, self.max_bins)
        binned = apply_bins(queries.features, bins)
        scores, potential = np.zeros(queries.n_documents), np.empty(queries.n_documents)
        weights, sums = np.empty(queries.n_queries), np.empty((queries.n_features, 255))
        edges = np.diff(bins.starts)
        valid_scores = np.zeros(valid.n_documents) if valid is not None else None
        trees: list[Trees] = []
        rows: list[tuple[int, float, float]] = []
        best, best_value = 0, -np.inf
        for k in range(1, self.rounds + 1):
            potentials(scores, queries.labels, queries.offsets, potential, weights)
            total = np.cumsum(weights)[-1]
            _weak(binned, bins.columns, potential, sums)
            sums[np.arange(255) >= edges[:, None]] = 0.0
            feature, b = np.unravel_index(np.argmax(np.abs(sums)), sums.shape)
            r = sums[feature, b] / total if total > 0 else 0.0
            if abs(r) < 1e-12:
                break
            alpha = 0.5 * math.log(max(1 + r, 1e-12) / max(1 - r, 1e-12))
            block, column = divmod(int(bins.columns[feature]), BLOCK)
            edge = bins.edges[bins.starts[feature] + b]
            trees.append(_stump(int(feature), edge, alpha, binned[block, :, column], int(b), abs(r)))
            scores += trees[-1].scores(queries.features)
            if tick is not None:
                tick()
            if self.stop_on is not None:
                train = mean_measure(self.stop_on, queries, scores, self.conventions) if k % 10 == 0 else np.nan
                value = np.nan
                if valid is not None and valid_scores is not None:
                    valid_scores += trees[-1].scores(valid.features)
                    value = mean_measure(self.stop_on, valid, valid_scores, self.conventions)
                    if value > best_value:
                        best, best_value = k, value
                rows.append((k, train, value))
            if abs(r) > 1 - 1e-12:
                break
        kept = join(trees[:best] if valid is not None and self.stop_on else trees)
        iteration, train_values, valid_values = (
            (np.array(column) for column in zip(*rows, strict=True)) if rows else ([np.empty(0)] * 3)
        )
        curve = Curve(iteration.astype(np.int64), train_values.astype(np.float64), valid_values.astype(np.float64))
        return replace(self, trees=kept, names=queries.names, curve=curve, remarks=(f"{kept.n_trees} of {len(trees)} rounds kept",))

    @property
    def watched(self) -> Measure | None:
        """The measure that chooses the number of rounds, `stop_on`."""
        return None if self.stop_on is None else Measure.of(self.stop_on)


def _stump(feature: int, edge: np.float32, alpha: float, column: Bytes, b: int, gain: float) -> Trees:
    """The tree of [x > edge]·α; missing values go left. `column`: the feature's bins."""
    right = int(((column > b) & (column != 255)).sum())
    return Trees(
        feature=np.array([feature], np.int32), threshold=np.array([edge], np.float32), missing_left=np.array([True]),
        left=np.array([~0], np.int32), right=np.array([~1], np.int32), value=np.array([0.0, alpha]),
        documents=np.array([len(column) - right, right], np.int64), node_starts=np.array([0, 1]), leaf_starts=np.array([0, 2]),
        gain=np.array([gain]),
    )  # fmt: skip
