"""Which result of a page is clicked, by its rank and a ranker's score: how well a ranker foretells clicks, whatever its scores are made of.

The position-based model with a ranker's scores in the place of what attracts, and only of pages as they were clicked: a click on page q is
on result i with the probability

    θ_k(i)·e^{b·s_i} / Σ_j θ_k(j)·e^{b·s_j}        j over the page

so that neither a constant that a ranker adds to all results of a query nor the size of its scores counts. θ of ranks and the slope b are
the likeliest with one click more at each rank (a conditional logit, McFadden 1974; concave in log θ and b): θ by Hunter's (2004)
majorising steps, b by Newton's, in turn. A ranker that learned to repeat the order of the pages says little here, as θ says it already.
"""

from dataclasses import dataclass

import numpy as np

from ltr.clicks.held_out import LEAST
from ltr.clicks.pages import Pages
from ltr.kernels.kernel import Floats

ROUNDS, TOLERANCE = 500, 1e-7
"""Rounds at most, and by how much log θ and b move at rest."""


@dataclass(frozen=True)
class ScoredLooks:
    """A fitted model.

    Attributes:
        looks: θ, ``float64 [ranks]``, the largest 1.
        slope: b.
    """

    looks: Floats
    slope: float

    def shares(self, pages: Pages, scores: Floats) -> Floats:
        """How likely a click on the page is on each result, ``float64 [results]``.

        Args:
            scores: ``float64 [results]``.

        Raises:
            ValueError: for ranks that the model does not know.
        """
        if pages.n_ranks > len(self.looks):
            raise ValueError(f"rank: {pages.n_ranks}; the model covers ranks 1 to {len(self.looks)}")
        logits = np.log(self.looks)[pages.rank - 1] + self.slope * scores
        sizes = np.diff(pages.offsets)
        odds = np.exp(logits - np.repeat(np.maximum.reduceat(logits, pages.offsets[:-1]), sizes))
        shares: Floats = odds / np.repeat(np.add.reduceat(odds, pages.offsets[:-1]), sizes)
        return shares

    def likelihood(self, pages: Pages, scores: Floats) -> Floats:
        """Log-likelihood of each page's clicks, ``float64 [pages]``, in nats."""
        told = np.where(pages.click, np.log(np.maximum(self.shares(pages, scores), LEAST)), 0.0)
        of_page: Floats = np.add.reduceat(told, pages.offsets[:-1])
        return of_page


def fit(pages: Pages, scores: Floats, n_ranks: int = 0) -> ScoredLooks:
    """The likeliest θ and b of these pages.

    Args:
        scores: ``float64 [results]``.
        n_ranks: the deepest rank that the model is to know, where pages that it is asked of later go deeper.
    """
    n_ranks, place = max(n_ranks, pages.n_ranks), pages.rank - 1
    sizes, starts = np.diff(pages.offsets), pages.offsets[:-1]
    clicks = np.repeat(np.add.reduceat(pages.click.astype(np.float64), starts), sizes)
    of_rank = np.bincount(place, pages.click, n_ranks)
    model = ScoredLooks(np.ones(n_ranks), 0.0)
    for _ in range(ROUNDS):
        expected = np.bincount(place, clicks * model.shares(pages, scores), n_ranks)
        looks = (of_rank + 1) / (expected / model.looks + 1)
        # Where θ is likeliest, its mean is 1: with the largest at 1, a rank that stands alone on many pages went to 0.
        after = ScoredLooks(looks / looks.mean(), model.slope)
        share = after.shares(pages, scores)
        mean = np.repeat(np.add.reduceat(share * scores, starts), sizes)
        slope = ((pages.click - clicks * share) * scores).sum()
        bend = (clicks * share * (scores - mean) ** 2).sum()
        after = ScoredLooks(after.looks, float(np.clip(model.slope + slope / (bend + 1), model.slope - 1, model.slope + 1)))
        moved = max(float(np.abs(np.log(after.looks / model.looks)).max()), abs(after.slope - model.slope))
        model = after
        if moved < TOLERANCE:
            break
    return ScoredLooks(model.looks / model.looks.max(), model.slope)
