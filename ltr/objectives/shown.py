"""What pages say of ranks before anything is learned: which documents were shown where, over pages in one place or in several parts.

A document is what has the same features. Parts are asked in turn, and answer with numbers of documents, never with rows: first which were
clicked at all, then how often these were shown and clicked at each rank. Of what was never clicked only the sum over documents counts.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ltr.data.propensities import propensities
from ltr.data.queries import Queries
from ltr.kernels.kernel import Bools, Floats, Ints, Words
from ltr.metrics.measure import Measure
from ltr.objectives.terms import Term
from ltr.objectives.unbiased import MOST_POSITIONS, Unbiased

ONLY_FEATURES = "no document was shown at two ranks: features alone told documents from ranks"
"""What is said of pages that show every document at one rank only."""
AskShown = Callable[..., list[Any]]
"""``ask(question, *arguments)``: the `Shown.answer` of every part."""


class Impressions(NamedTuple):
    """Of clicked documents, and of all others together.

    Attributes:
        pairs: ``int64 [pairs]``, document · `MOST_POSITIONS` + rank, rising; documents by their place among the clicked ones, ranks from 0.
        shown, clicked: how often, ``int64 [pairs]``.
        others: how often documents that were never clicked were shown at each rank, ``int64 [ranks]``; as long as the deepest rank of all.
    """

    pairs: Ints
    shown: Ints
    clicked: Ints
    others: Ints


class Shown(NamedTuple):
    """Documents as they were shown on pages.

    Attributes:
        document: ``uint64 [impressions]``, digests of features.
        rank: ``int64 [impressions]``, from 0.
        clicked: ``bool [impressions]``.
    """

    document: Words
    rank: Ints
    clicked: Bools

    @classmethod
    def on(cls, queries: Queries, how: Unbiased, term: Term) -> "Shown":
        """What these pages show.

        Args:
            how: says where positions are.
            term: whose measure's source holds the clicks.

        Raises:
            ValueError: as `Unbiased.shown_at`.
        """
        rank = how.shown_at(queries, term)
        shown, clicks = rank >= 0, queries.source(Measure.of(term.measure).source)
        return cls(queries.row_digests[shown], rank[shown], clicks[shown] > 0)

    def ask(self, question: str, *arguments: object) -> list[Any]:
        """`AskShown` where this is all that was shown."""
        return [self.answer(question, *arguments)]

    def answer(self, question: str, *arguments: Any) -> Any:
        """The answer of this part to ``clicked``, ``impressions``, ``once`` or ``at``."""
        answers: dict[str, Callable[..., Any]] = {
            "clicked": self._clicked, "impressions": self._impressions, "once": self._once, "at": self._at
        }  # fmt: skip
        return answers[question](*arguments)

    def _clicked(self) -> Words:
        """Documents that were clicked, ``uint64 [documents]``, rising."""
        return np.unique(self.document[self.clicked])

    def _impressions(self, clicked: Words) -> Impressions:
        """How often these documents, and the others, were shown here."""
        place = np.searchsorted(clicked, self.document)
        known = clicked[np.minimum(place, len(clicked) - 1)] == self.document if len(clicked) else np.zeros(len(place), np.bool_)
        pairs, pair, shown = np.unique(place[known] * MOST_POSITIONS + self.rank[known], return_inverse=True, return_counts=True)
        clicks = np.bincount(pair, self.clicked[known], len(pairs)).astype(np.int64)
        return Impressions(pairs, shown, clicks, np.bincount(self.rank[~known], minlength=int(self.rank.max(initial=-1)) + 1))

    def _once(self) -> bool:
        """Whether each document was shown at one rank only."""
        return len(np.unique(self.document)) == len(self._at()[0])

    def _at(self) -> tuple[Words, Ints]:
        """Documents with a rank of each at which they were shown, both ``[pairs]``, rising."""
        order = np.lexsort((self.rank, self.document))
        document, rank = self.document[order], self.rank[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (document[1:] != document[:-1]) | (rank[1:] != rank[:-1])
        return document[new], rank[new]


def looks(how: Unbiased, ask: AskShown) -> Floats:
    """The propensities of ranks that were shown, ``float64 [ranks]``, as given or estimated; not below `Unbiased.least`.

    Raises:
        ValueError: where they cannot be estimated, or a shown rank has none.
    """
    given = np.array(how.propensities)
    clicked = np.zeros(0, np.uint64) if len(given) else np.unique(np.concatenate(ask("clicked")))
    seen = _together(ask("impressions", clicked))
    n_ranks = len(seen.others)
    if not len(given):
        ranks = np.flatnonzero(seen.others)
        document = np.append(seen.pairs // MOST_POSITIONS, np.full(len(ranks), len(clicked)))
        rank = np.append(seen.pairs % MOST_POSITIONS, ranks) + 1
        shown, clicks = np.append(seen.shown, seen.others[ranks]), np.append(seen.clicked, np.zeros(len(ranks), np.int64))
        try:
            given = propensities(document, rank, shown, clicks)
        except ValueError as error:
            raise ValueError(
                f"unbiased: {error}; give propensities, or lean on features: pairwise, additive, or trees with estimate=regression_em"
            ) from None
        given = np.pad(given, (0, max(n_ranks - len(given), 0)), constant_values=np.nan)
    if len(given) < n_ranks:
        raise ValueError(f"unbiased: a document was shown at rank {n_ranks}, and propensities end at rank {len(given)}")
    found: Floats = np.maximum(np.nan_to_num(given[:n_ranks]), how.least)
    return found


def shown_once(ask: AskShown) -> bool:
    """Whether no document was shown at two ranks: then pages by themselves do not tell documents from ranks."""
    found = ask("once")
    if len(found) == 1 or not all(found):
        return all(found)
    documents, ranks = (np.concatenate(of_parts) for of_parts in zip(*ask("at"), strict=True))
    return Shown(documents, ranks, np.zeros(len(ranks), np.bool_)).answer("once") is True


def _together(parts: list[Impressions]) -> Impressions:
    """The sums over parts."""
    pairs, pair = np.unique(np.concatenate([part.pairs for part in parts]), return_inverse=True)

    def summed(counts: list[Ints], at: Ints) -> Ints:
        return np.bincount(at, np.concatenate(counts)).astype(np.int64)

    ranks = np.concatenate([np.arange(len(part.others)) for part in parts])
    return Impressions(
        pairs,
        summed([part.shown for part in parts], pair),
        summed([part.clicked for part in parts], pair),
        summed([part.others for part in parts], ranks),
    )
