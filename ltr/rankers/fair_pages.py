"""When to stop, by pages that were clicked: a click counts as often as its rank is looked at for once.

A measure of clicks likes best what repeats the order of the page. Divided by how often their ranks are looked at, clicks are in the mean
over users those of documents that were all looked at (Joachims, Swaminathan & Schnabel 2017), also on pages that nothing is learned from:

    Σ_q Σ_i gain_i/θ_k(i)·D(rank_i)  /  Σ_q the most that this can be on the page

that is NDCG where pages count as their ideal DCG does: divided each by its own, a page with one click would lose its weight again. LightGBM
and XGBoost stop by clicks as they are, ULTRA by judgments.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats, Ints
from ltr.metrics.conventions import Conventions
from ltr.metrics.gains import graded, label_worth, linear, plain
from ltr.metrics.measure import Measure, curve_of, gains_of
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import Unbiased
from ltr.rankers.base import Ranker
from ltr.rankers.training import query_values

TOLD = "stop_on weighs clicks on validation pages by the inverse examination probability of their ranks"
"""What is said where it does."""
AS_THEY_ARE = "stop_on uses uncorrected clicks: examination probabilities cannot be estimated from this log"
"""What is said where it cannot."""
_LABELS_OF: dict[object, Callable[[Floats, Conventions], Floats]] = {graded: label_worth, linear: plain}
"""Of gains that may be of any size, how to find the labels that are worth them: with these a click can count as more than one."""


def have_ranks(queries: Queries, how: Unbiased, source: str = "label") -> bool:
    """Whether documents with a label of this source have ranks."""
    ranks = queries.sources.get(how.positions)
    return ranks is not None and bool((~np.isnan(ranks) & ~np.isnan(queries.source(source))).any())


def largest(labels: ArrayLike) -> float:
    """Of the labels that are learned from the largest, 1 at least: what is above it on validation queries is no click."""
    known = np.asarray(labels, np.float64)
    return float(np.max(known, initial=1.0, where=~np.isnan(known)))


def are_pages(queries: Queries, how: Unbiased, source: str = "label", most: float = 1.0) -> bool:
    """Whether labels of this source are clicks: their documents have ranks, and none is above `most`, as judgments are."""
    return have_ranks(queries, how, source) and bool(np.nanmax(queries.source(source)) <= most)


def shown_on(queries: Queries, how: Unbiased, term: Term) -> Ints:
    """`Unbiased.shown_at` of validation pages; what is raised says why they are taken for pages."""
    try:
        return how.shown_at(queries, term)
    except ValueError as error:
        raise ValueError(
            f"{error} (validation queries with ranks and no label above those that are learned from are pages; judged ones need no ranks)"
        ) from None


def ways_of(ranker: Ranker) -> tuple[Unbiased, ...]:
    """How position bias is taken out of the clicks that a ranker learns from, or those that it is an average of."""
    ways = (getattr(one, "unbiased", None) for one in (ranker, *getattr(ranker, "of", ())))
    return tuple(way for way in ways if isinstance(way, Unbiased))


@dataclass(frozen=True)
class FairPages:
    """How clicks on validation pages are counted.

    Attributes:
        how: says where positions are, and the least propensity that is divided by.
        term: whose measure's source holds the clicks.
        looks: propensities of ranks 1, 2, …; deeper ranks are looked at like the last.
        most: the `largest` of the labels that are learned from.
    """

    how: Unbiased
    term: Term
    looks: Floats
    most: float = 1.0

    @classmethod
    def watching(
        cls,
        how: Unbiased,
        term: Term,
        measures: Sequence[str],
        valid: Sequence[Queries],
        looks: Callable[[Unbiased], Floats],
        most: float = 1.0,
    ) -> "tuple[FairPages | None, tuple[str, ...]]":
        """How clicks are counted where one of the measures on one of these sets of validation queries `reads` them, and what is said of it.

        Args:
            looks: propensities of the pages that are learned from, as an `Unbiased` of the kind ``ipw`` says; ValueError where they cannot be
                known, and clicks are read as they are.
            most: the `largest` of the labels that are learned from.

        Raises:
            ValueError: for propensities that are given, and not of all ranks that were shown.
        """
        on_clicks = [measure for measure in measures if any(cls._on_clicks(measure, queries, how, term, most) for queries in valid)]
        told = tuple(
            f"stop_on {measure} uses uncorrected clicks on validation pages; NDCG can correct them by examination probabilities"
            for measure in on_clicks
            if not _divides(measure)
        )
        if not any(map(_divides, on_clicks)):
            return None, told
        try:
            known = looks(replace(how, kind="ipw", regularisation=None))
        except ValueError:
            if how.propensities:
                raise
            return None, (*told, AS_THEY_ARE)
        return cls(how, term, known, most), (*told, TOLD)

    @staticmethod
    def reads(measure: str, queries: Queries, how: Unbiased, term: Term, most: float = 1.0) -> bool:
        """Whether this is a measure of the clicks that are learned from, by gains that can be divided, on pages."""
        return _divides(measure) and FairPages._on_clicks(measure, queries, how, term, most)

    @staticmethod
    def _on_clicks(measure: str, queries: Queries, how: Unbiased, term: Term, most: float) -> bool:
        """Whether this is a measure of the clicks that are learned from, on pages."""
        source = Measure.of(term.measure).source
        return Measure.of(measure).source == source and are_pages(queries, how, source, most)

    def mean(self, measure: str, queries: Queries, conventions: Conventions) -> "PageMean | None":
        """The mean over these pages; None where it is not one that `reads` them."""
        return (
            PageMean(measure, queries, self, conventions) if self.reads(measure, queries, self.how, self.term, self.most) else None
        )


def _divides(measure: str) -> bool:
    """Whether a click may count as more than one in it."""
    return Measure.of(measure).definition.gain in _LABELS_OF


class PageMean:
    """A measure that `FairPages.reads`, of scores.

    Raises:
        ValueError: as `Unbiased.shown_at`, and for pages without a click.
    """

    def __init__(self, measure: str, queries: Queries, fair: FairPages, conventions: Conventions) -> None:
        self.measure, self.conventions = measure, conventions
        read = Measure.of(measure)
        rank = shown_on(queries, fair.how, fair.term)
        looks = np.maximum(fair.looks[np.minimum(rank, len(fair.looks) - 1)], fair.how.least)
        gains = gains_of(read, queries.source(read.source), conventions) / looks
        worth = np.where(np.isnan(queries.source(read.source)), np.nan, _LABELS_OF[read.definition.gain](gains, conventions))
        labels = {"labels": worth} if read.source == "label" else {"sources": {**queries.sources, read.source: worth}}
        self.queries = replace(queries, **labels)
        sizes = np.diff(queries.offsets)
        curve, _ = curve_of(read, int(sizes.max(initial=1)), conventions)
        page = queries.of_query
        falling = gains[np.lexsort((-gains, page))]
        self.ideals = np.bincount(page, falling * curve[np.arange(len(page)) - queries.offsets[page]], queries.n_queries)
        if not self.ideals.any():
            raise ValueError(f"{read.key} is undefined on every validation page: there is no click on any")

    def __call__(self, scores: Floats) -> float:
        """The measure at ``scores float64 [documents]``."""
        values = query_values(self.measure, self.queries, scores, self.conventions)
        return float((np.where(self.ideals > 0, values, 0.0) * self.ideals).sum() / self.ideals.sum())
