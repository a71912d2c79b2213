"""What every click model gives: how likely clicks are, and how attractive each pair of query and document is, with its uncertainty.

A few impressions say little, so that what attracts is drawn to its query's mean as if it had been seen `prior` times more,
α = (clicks + prior·m) / (looks + prior), and that mean to the log's, the more the less queries differ. Looks are impressions as far as the model takes them to have been examined.
PyClick draws all to ½, as if each pair had been seen twice.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ltr.clicks.ascent import MARGIN
from ltr.clicks.pages import Pages
from ltr.kernels.kernel import Array, Bools, Floats, Ints

SEED = 7
"""First of the numbers that simulation is seeded with."""


@dataclass(frozen=True)
class Settings:
    """How a click model is fitted.

    Attributes:
        prior: looks that are added to each pair's, above 0.
        rounds: of EM, at most.
        tolerance: gain in nats a result at which EM has come to rest.

    Raises:
        ValueError: for a number out of range.
    """

    prior: float = 4.0
    rounds: int = 200
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if not (self.prior > 0 and np.isfinite(self.prior)):
            raise ValueError(f"prior: {self.prior}; a click model needs one above 0, for pairs that are rarely seen")
        if self.rounds < 1:
            raise ValueError(f"rounds: {self.rounds}; 1 or more")


@dataclass(frozen=True)
class ClickModel(ABC):
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
        """Probability of a click on each result, given the clicks above it on its page, ``float64 [results]``."""

    @abstractmethod
    def expected(self, pages: Pages) -> Floats:
        """Probability of a click on each result, whatever is clicked above it, ``float64 [results]``."""

    @abstractmethod
    def simulate(self, pages: Pages, seed: int) -> Pages:
        """The pages with clicks drawn from the model."""

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


def query_means(clicks: Floats, looks: Floats, query: Ints, prior: float) -> Floats:
    """What pairs are drawn to, ``float64 [pairs]``: their query's clicks over looks, itself drawn to the log's m.

    How much queries differ, τ², is told by products of two documents' surpluses within a query, C_d − m·L_d, which chance alone makes 0 on
    average, and how much the documents of one query do, v, by their squares less what chance adds. A query's mean then weighs as its
    looks do against (m(1 − m) + v·Σ L_d² / L_q) / τ² looks of the log's mean, and against `prior` at least.

    Args:
        clicks, looks: ``float64 [pairs]``.
        query: ``int64 [pairs]``, whose the pair is.
    """
    of_log = (clicks.sum() + 0.5) / (looks.sum() + 1.0)
    clicks_of, looks_of = sums(query, clicks, 0), sums(query, looks, 0)
    surplus = clicks - of_log * looks
    squares, looks_squared = sums(query, surplus * surplus, 0), sums(query, looks * looks, 0)
    weight = 1.0 / (looks_of + 1.0)
    of_query = sums(query, surplus, 0)
    between = max((weight * (of_query * of_query - squares)).sum(), 0.0)
    apart = between / max((weight * (looks_of * looks_of - looks_squared)).sum(), MARGIN)
    within_queries = (weight * (squares - clicks_of)).sum() / max((weight * looks_squared).sum(), MARGIN) - apart
    noise = of_log * (1 - of_log) + max(within_queries, 0.0) * looks_squared / np.maximum(looks_of, MARGIN)
    strength = np.maximum(noise / max(apart, MARGIN), prior)
    means: Floats = np.clip(((clicks_of + strength * of_log) / (looks_of + strength))[query], MARGIN, 1 - MARGIN)
    return means


def sums(where: Ints, values: Array, n: int) -> Floats:
    """Sums of values by number, ``float64 [n]``."""
    return np.bincount(where, values, n).astype(np.float64)


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
