"""The λ microscope: what the gradients do while a model learns (Svore 2011 sections 4.2 and 5.1, figures 2–4), and which documents are lost
causes: those that are still pushed hard at the end, often because their label is wrong.

Other tools show a curve of the measure; confident learning (Northcutt et al. 2021) finds label errors from class probabilities, which a
ranker does not have. Here everything follows from the same gradients that trees and nets are trained on.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ltr.data.offsets import group_of_rows
from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats, Ints
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.terms import Term

HIGH = 3.0
"""Documents with this label or a higher one are highly relevant (S figure 3: labels 3 and 4)."""
FLOOR = 1e-3
"""Smallest |λ| of a document whose partners' shares are counted."""


@dataclass(frozen=True)
class Snapshots:
    """What was recorded during training, one entry or row for each snapshot.

    Attributes:
        iteration: ``int64 [snapshots]``.
        labels: the levels of the judged labels, rising, ``float64 [levels]``.
        agreement: for all click pairs (``all``) and those of S section 4.2 (``same_label``), share of the documents whose λ^C is zero
            or has the sign of λ^L, ``float64 [snapshots]`` (figure 2); empty without a source of clicks.
        partners: mean over highly relevant documents of the share of λ that comes from partners of each label, ``float64
            [snapshots, levels]`` (figure 3a); NaN where no such document is pushed.
        top_labels: shares of the labels among the top ranks, ``float64 [snapshots, levels]`` (figure 3b).
        moved, moved_top: shares of the documents whose rank, and of the top ranks whose document, changed since the previous snapshot,
            ``float64 [snapshots]`` (figure 4); the first is NaN.
        lost: the smallest |λ^L| over the later half of the snapshots, ``float64 [documents]``: large where it stays large to the end.
        gradient, rank: λ^L and the rank (from 1) in the last snapshot, ``[documents]``.
    """

    iteration: Ints
    labels: Floats
    agreement: dict[str, Floats]
    partners: Floats
    top_labels: Floats
    moved: Floats
    moved_top: Floats
    lost: Floats
    gradient: Floats
    rank: Ints

    def lost_causes(self, n: int) -> NDArray[np.intp]:
        """The `n` documents with the largest `lost`, in descending order."""
        return np.argsort(-self.lost, kind="stable")[:n]


def look(
    stages: Iterable[tuple[int, Floats]],
    queries: Queries,
    first: Term = Term("ndcg"),  # noqa: B008 (a frozen value)
    second: str = "cndcg",
    top: int = 3,
    conventions: Conventions | None = None,
) -> Snapshots:
    """Takes a snapshot of the gradients of two terms at every stage of a training.

    Args:
        stages: iterations, rising, each with the scores ``float64 [documents]`` after it.
        queries: the training data in canonical order.
        first: whose gradients are λ^L.
        second: measure of λ^C; left out where the data do not have its label source.
        top: ranks that count as the top.

    Raises:
        ValueError: without any stage.
    """
    judged = Objective(queries, [first], conventions, exact=True)
    clicks = {}
    if Measure.of(second).source in queries.sources:
        clicks = {
            "all": Objective(queries, [Term(second)], conventions),
            "same_label": Objective(queries, [Term(second, pairs="same_label")], conventions),
        }
    levels = np.unique(queries.labels[~np.isnan(queries.labels)])
    iterations, late, rows = [], deque[Floats](), []
    agreement: dict[str, list[float]] = {name: [] for name in clicks}
    before: Ints | None = None
    for iteration, scores in stages:
        gradient = judged(scores, iteration)[0]
        rank = ranks(scores, queries.offsets)
        iterations.append(iteration)
        late.append(np.abs(gradient))
        if len(late) > len(iterations) - len(iterations) // 2:  # the later half of those so far
            late.popleft()
        for name, objective in clicks.items():
            other = objective(scores, iteration)[0]
            agreement[name].append(float(((other == 0) | (np.sign(other) == np.sign(gradient))).mean()))
        at_top = queries.labels[rank <= top]
        top_labels = np.array([(at_top == level).sum() for level in levels]) / max(int((~np.isnan(at_top)).sum()), 1)
        rows.append((_partners(judged, queries, levels, scores, gradient, iteration), top_labels, *_moved(before, rank, top)))
        before = rank
    if not iterations:
        raise ValueError("the microscope needs at least one stage of training to inspect")
    partners, tops, moved, moved_top = (np.array(column) for column in zip(*rows, strict=True))
    return Snapshots(
        np.array(iterations, np.int64), levels, {name: np.array(shares) for name, shares in agreement.items()}, partners, tops, moved,
        moved_top, reduce(np.minimum, late), gradient, rank,
    )  # fmt: skip


def ranks(scores: Floats, offsets: Ints) -> Ints:
    """Rank of each document within its query, from 1, ``int64 [documents]``; equal scores in the order given."""
    of_query = group_of_rows(offsets)
    order = np.lexsort((np.arange(len(scores)), -scores, of_query))
    found = np.empty(len(scores), np.int64)
    found[order] = np.arange(len(scores)) - offsets[of_query] + 1
    return found


def _partners(
    objective: Objective, queries: Queries, levels: Floats, scores: Floats, gradient: Floats,
    iteration: int,
) -> Floats:  # fmt: skip
    """Mean share of each partner's label in the gradients on highly relevant documents (S eq. 11).

    The gradients between labels l and v alone are those of an objective whose other documents keep their ranks and form no pairs.
    """
    labels = queries.labels
    pushed = np.flatnonzero((labels >= HIGH) & (np.abs(gradient) >= FLOOR))
    if not len(pushed):
        return np.full(len(levels), np.nan)
    shares = np.zeros(len(levels))
    for own in levels[levels >= HIGH]:
        mine = pushed[labels[pushed] == own]
        for k, other in enumerate(levels):
            if other != own and len(mine):
                between = objective.among((labels == own) | (labels == other))(scores, iteration)[0]
                shares[k] += (between[mine] / gradient[mine]).sum()
    return shares / len(pushed)


def _moved(before: Ints | None, rank: Ints, top: int) -> tuple[float, float]:
    """Shares of the documents with another rank than before, and of the top ranks with another document."""
    if before is None:
        return np.nan, np.nan
    return float((rank != before).mean()), float((rank != before)[rank <= top].mean())
