"""Which click model foretells clicks best, on pages that it was not fitted to.

Log-likelihood is that of a page's clicks, each given those above it, in nats a result; perplexity, as the field has it (Dupret & Piwowarski
2008), is 2 to the power of the mean surprise in bits about each rank's clicks, whatever was clicked above: 2 is a coin, 1 is certainty. Its
mean over ranks, by how much was shown there, is the overall one. No probability counts as less than `LEAST`, so that one impossible page, such as a second click for the
cascade, does not decide alone (PyClick has the same floor). Pages are compared in pairs: how far a model is behind the best has a standard
error of its own, far smaller than that of either.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ltr.clicks.click_model import ClickModel
from ltr.clicks.pages import Pages
from ltr.kernels.kernel import Floats, Ints

LEAST = 1e-6
"""Probabilities of what was seen count as at least so much."""
MARK = 2.0
"""A model that is so many standard errors behind is worse."""


@dataclass(frozen=True)
class Foretold:
    """How well one model foretells clicks.

    Attributes:
        name: the model's.
        likelihood: nats a result; 0 is certainty.
        behind: likelihood that it lacks against the best model, and
        error: the standard error of that.
        perplexity: mean over ranks, weighed by their results; `by_rank`: ``float64 [ranks]``, NaN where nothing was shown.
    """

    name: str
    likelihood: float
    behind: float
    error: float
    perplexity: float
    by_rank: Floats

    @property
    def worse(self) -> bool:
        """Whether it is behind by more than chance."""
        return self.behind > MARK * self.error


def foretell(models: Mapping[str, ClickModel], pages: Pages, session: Ints) -> list[Foretold]:
    """Each model on pages that none was fitted to, the best first.

    Args:
        models: by name.
        pages: held out.
        session: ``int64 [pages]``, whose each page is; sessions are what differs at random.
    """
    sums = {name: _page_sums(surprises(model.given(pages), pages), pages) for name, model in models.items()}
    n_results = len(pages.pair)
    likelihood = {name: -_total(values) / n_results for name, values in sums.items()}
    best = max(likelihood, key=lambda name: likelihood[name])
    shown = np.bincount(pages.rank - 1, minlength=pages.n_ranks)
    found = []
    for name, model in models.items():
        by_rank = perplexities(model.expected(pages), pages)
        overall = float(np.nansum(by_rank * shown) / n_results)
        error = _error(sums[name] - sums[best], pages, session)
        found.append(Foretold(name, likelihood[name], likelihood[best] - likelihood[name], error, overall, by_rank))
    return sorted(found, key=lambda one: one.behind)


def surprises(probability: Floats, pages: Pages) -> Floats:
    """−log of how likely what happened to each result was, ``float64 [results]``, in nats; `probability` is that of a click."""
    seen = np.where(pages.click, probability, 1 - probability)
    nats: Floats = -np.log(np.maximum(seen, LEAST))
    return nats


def perplexities(probability: Floats, pages: Pages) -> Floats:
    """2^(mean surprise in bits) of each rank, ``float64 [ranks]``; `probability` is that of a click whatever is clicked above."""
    surprise = surprises(probability, pages)
    order = np.lexsort((surprise, pages.rank))
    ends = np.searchsorted(pages.rank[order], np.arange(1, pages.n_ranks + 2))
    found = np.full(pages.n_ranks, np.nan)
    for rank in np.flatnonzero(np.diff(ends)):
        found[rank] = np.exp(surprise[order[ends[rank] : ends[rank + 1]]].mean())
    return found


def _page_sums(values: Floats, pages: Pages) -> Floats:
    return np.add.reduceat(values, pages.offsets[:-1])


def _total(values: Floats) -> float:
    """A sum that does not depend on the order of pages."""
    return float(np.sort(values).sum())


def _error(differences: Floats, pages: Pages, session: Ints) -> float:
    """Standard error of the mean difference of a result, by sessions."""
    _, whose = np.unique(session, return_inverse=True)
    order = np.lexsort((differences, whose))
    of_session = np.bincount(whose[order], differences[order])
    results = np.bincount(whose, np.diff(pages.offsets))
    n = len(results)
    if n < 2:
        return float("inf")
    rest = of_session - _total(differences) / len(pages.pair) * results
    return float(np.sqrt(_total(rest * rest) * n / (n - 1)) / len(pages.pair))
