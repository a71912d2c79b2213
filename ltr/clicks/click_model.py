"""What every click model gives: how likely clicks are, and how attractive each pair of query and document is, with its uncertainty.

A few impressions say little, so that what attracts is drawn to its query's mean as if it had been seen `prior` times more,
α = (clicks + prior·m) / (looks + prior), and that mean to the log's; by how much is what the log says of how documents and queries
differ (empirical Bayes, by moments). Looks are impressions as far as the model takes them to have been examined.
PyClick draws all to ½, as if each pair had been seen twice.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ltr.clicks.ascent import MARGIN
from ltr.clicks.pages import Pages
from ltr.data.brief import Brief
from ltr.kernels.kernel import Array, Bools, Floats, Ints

STRENGTHS = (1.0, 100.0)
"""Least and most looks by which a log may say that pairs are drawn to their query's mean."""
STEADY = 4.0
"""Looks, or clicks, by which rarer parameters than α are drawn to what they are most like."""
FEW = 50.0
"""A log in which documents are seen again no oftener than this is not asked alone how they differ: `STEADY` looks are its other half."""
SEED = 7
"""First of the numbers that simulation is seeded with."""


@dataclass(frozen=True)
class Settings:
    """How a click model is fitted.

    Attributes:
        prior: looks that are added to each pair's, above 0; None for as many as the log says (`drawn_to`).
        rounds: of EM, at most.
        tolerance: gain in nats a result at which EM has come to rest.

    Raises:
        ValueError: for a number out of range.
    """

    prior: float | None = None
    rounds: int = 200
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if self.prior is not None and not (self.prior > 0 and np.isfinite(self.prior)):
            raise ValueError(f"prior: {self.prior}; must be above 0, for pairs that are rarely seen")
        if self.rounds < 1:
            raise ValueError(f"rounds: {self.rounds}; must be 1 or more")


@dataclass(frozen=True)
class ClickModel(Brief, ABC):
    """A fitted click model.

    Attributes:
        name: what `ltr.clicks.models` calls it.
        attraction: ``float64 [pairs]``, the probability of a click on what is examined.
        looks: ``float64 [pairs]``, how often a pair was examined, as the model has it.
        certain: ``float64 [pairs]``, how many looks would tell as much of a pair if each were certain to be one.
        prior: looks that every pair was given beside its own.
    """

    name: str
    attraction: Floats
    looks: Floats
    certain: Floats
    prior: float

    @property
    def deviation(self) -> Floats:
        """Standard deviation of each attraction, ``float64 [pairs]``: of a beta law with its looks, as far as they tell, and
        the prior's."""
        return np.sqrt(self.attraction * (1 - self.attraction) / (self.certain + self.prior + 1))

    @property
    @abstractmethod
    def n_ranks(self) -> int:
        """The deepest rank that the model knows."""

    @abstractmethod
    def given(self, pages: Pages) -> Floats:
        """Probability of a click on each result, given the clicks above it on its page, ``float64 [results]``.

        Raises:
            ValueError: for pages that are deeper than `n_ranks`.
        """

    @abstractmethod
    def expected(self, pages: Pages) -> Floats:
        """Probability of a click on each result, whatever is clicked above it, ``float64 [results]``.

        Raises:
            ValueError: as `given`.
        """

    @abstractmethod
    def simulate(self, pages: Pages, seed: int) -> Pages:
        """The pages with clicks drawn from the model.

        Raises:
            ValueError: as `given`.
        """

    def examination(self, pages: Pages) -> Floats:
        """How often each rank of these pages is examined, on average, ``float64 [ranks]``; NaN where nothing was shown."""
        examined = self.expected(pages) / np.maximum(self.attraction[pages.pair], MARGIN)
        return _mean_by_rank(examined, pages)


def _mean_by_rank(values: Floats, pages: Pages) -> Floats:
    """Means by rank that do not depend on the order of pages."""
    order = np.lexsort((values, pages.rank))
    ends = np.searchsorted(pages.rank[order], np.arange(1, pages.n_ranks + 2))
    totals = [values[order[a:b]].sum() for a, b in pairwise(ends)]
    with np.errstate(invalid="ignore"):
        means: Floats = np.array(totals) / np.diff(ends)
    return means


def drawn_to(clicks: Floats, looks: Floats, squares: Floats, query: Ints, prior: float | None) -> tuple[Floats, float]:
    """What pairs are drawn to, ``float64 [pairs]``: their query's clicks over looks, itself drawn to the log's m; and as by how many looks.

    Of C clicks on L looks, each seen with its γ, and α of mean m and variance v within a query, of means with variance τ² among queries:

        E (C − mL)² = (τ² + v)·(L² − S) + mL − m²S,   S = Σ γ²           E (C_a − mL_a)(C_b − mL_b) = τ²·L_a·L_b

    for two documents of a query. Sums of these, each query's over its looks, give τ² and v, which is drawn to that of `STEADY` looks as by `FEW`. A pair then is drawn by m(1 − m)/v − 1 looks, the
    strength of a beta law of that variance, and a query by as many as give its mean the variance that documents and chance give it.

    Args:
        clicks, looks: ``float64 [pairs]``.
        squares: ``float64 [pairs]``, S; the looks where each is certain.
        query: ``int64 [pairs]``, whose the pair is.
        prior: looks by which pairs are drawn, and queries at least; None for what the log says.
    """
    m = (clicks.sum() + 0.5) / (looks.sum() + 1.0)
    surplus = clicks - m * looks
    clicks_of, looks_of, surplus_of = (sums(query, values, 0) for values in (clicks, looks, surplus))
    alike, looks_alike = (sums(query, values, 0) for values in (surplus * surplus, looks * looks))
    weight = 1.0 / (looks_of + 1.0)
    apart = max((weight * (surplus_of**2 - alike)).sum(), 0.0) / max((weight * (looks_of**2 - looks_alike)).sum(), MARGIN)
    told = (weight[query] * (surplus * surplus - m * looks + m * m * squares)).sum()
    repeats = (weight[query] * (looks * looks - squares)).sum()
    inside = max((told - apart * repeats + FEW * m * (1 - m) / (STEADY + 1)) / (repeats + FEW), 0.0)
    strength = prior if prior is not None else float(np.clip(m * (1 - m) / max(inside, MARGIN) - 1, *STRENGTHS))
    noise = m * (1 - m) + inside * looks_alike / np.maximum(looks_of, MARGIN)
    of_query = np.maximum(noise / max(apart, MARGIN), strength)
    return within(((clicks_of + of_query * m) / (looks_of + of_query))[query]), strength


def sums(where: Ints, values: Array, n: int) -> Floats:
    """Sums of values by number, ``float64 [n]``."""
    return np.bincount(where, values, n).astype(np.float64)


def mean_error(parts: Floats, whose: Ints | None = None) -> tuple[float, float]:
    """Standard error of the mean of parts ``[pages]``, and how many of them are independent: all, or those of different people (`whose`, a number
    for each page), whose pages resemble each other.

    The error is that of leaving out one person at a time (CR3: MacKinnon & White 1985), so that one with many pages does not seem to fit too
    well, and people with unequal numbers of pages count as (Σn)² / Σn² with equal ones (Kish 1965; Carter, Schnepel & Steigerwald 2017).
    """
    n = len(parts)
    if whose is None:
        return float(parts.std(ddof=1) / np.sqrt(n)), n
    people, number, pages = np.unique(whose, return_inverse=True, return_counts=True)
    if len(people) in (1, n):
        return (float("inf"), 1) if len(people) == 1 else mean_error(parts)
    without = sums(number, parts - parts.mean(), len(people)) / (1 - pages / n)
    error = float(np.sqrt((without**2).sum() * (len(people) - 1) / len(people)) / n)
    return error, n * n / float((pages * pages).sum())


def within(probabilities: Floats) -> Floats:
    """Probabilities that are neither 0 nor 1."""
    inside: Floats = np.clip(probabilities, MARGIN, 1 - MARGIN)
    return inside


def draws(pages: Pages, seed: int) -> Floats:
    """A number in [0, 1) for each result."""
    return np.random.default_rng([SEED, seed]).random(len(pages.pair))


def no_draws() -> tuple[Floats, Bools]:
    """What a kernel that may draw is given where it shall not."""
    return np.empty(0), np.empty(0, np.bool_)
