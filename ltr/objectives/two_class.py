"""MART for two classes (Burges 2010 section 6): each document on its own is relevant or not, whatever its query.

With y = ±1 and P₊ = 1/(1 + e^{−2σF}) the loss is log(1 + e^{−2yσF}), so that F = log(P₊/P₋)/(2σ) (B13 leaves out σ). Its gradient is
2yσ/(1 + e^{2yσF}), its hessian |gradient|·(2σ − |gradient|) (B6). The balanced form (B15) divides both by the number of documents of the
own class: the loss is the mean of the two classes' mean losses, however few documents one of them has. Documents are counted for that as they
are; weights of queries multiply what comes of it. A document without a label is not relevant, or by ``unlabelled: condensed`` of no class.
"""

import numpy as np

from ltr.data.queries import Queries
from ltr.kernels.exponential import exp_of
from ltr.kernels.kernel import Bools, Floats
from ltr.metrics.conventions import Conventions
from ltr.metrics.measure import Measure, gains_of


class TwoClassObjective:
    """``objective(scores, iteration) → (gradient, hessian)``, both ``float64 [documents]``.

    Args:
        measure: whose label source and rule of relevance say which documents are relevant (a gain above 0).
        balanced: the two classes count alike.
        sizes: `classes` of all queries that are trained on, where `queries` are only some of them.

    Raises:
        ValueError: where one of the classes has no document.
    """

    def __init__(
        self,
        queries: Queries,
        measure: Measure,
        conventions: Conventions,
        sigma: float,
        balanced: bool,
        sizes: tuple[int, int] | None = None,
    ) -> None:
        counted, relevant = _members(queries, measure, conventions)
        sizes = sizes or classes(queries, measure, conventions)
        if not all(sizes):
            raise ValueError(
                f"two classes: {sizes[1]} documents are relevant and {sizes[0]} are not ({measure.key}); both are needed"
            )
        self.sign = np.where(relevant, 1.0, -1.0)
        self.sigma = sigma
        of_query = np.repeat(queries.shares, np.diff(queries.offsets)) * counted
        self.weight = of_query * np.where(relevant, 1.0 / sizes[1], 1.0 / sizes[0]) if balanced else of_query

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """Gradient and hessian at `scores`; scores move along the gradient."""
        size = 2 * self.sigma / (1 + exp_of(np.minimum(2 * self.sigma * self.sign * scores, 700.0)))
        return self.weight * self.sign * size, self.weight * size * (2 * self.sigma - size)


def classes(queries: Queries, measure: Measure, conventions: Conventions) -> tuple[int, int]:
    """How many documents are not relevant, and how many are."""
    counted, relevant = _members(queries, measure, conventions)
    return int((counted & ~relevant).sum()), int(relevant.sum())


def _members(queries: Queries, measure: Measure, conventions: Conventions) -> tuple[Bools, Bools]:
    """Which documents are of a class, and which are relevant, ``bool [documents]`` each."""
    labels = queries.source(measure.source)
    counted = ~np.isnan(labels) if conventions.unlabelled == "condensed" else np.ones(len(labels), np.bool_)
    return counted, gains_of(measure, labels, conventions) > 0
