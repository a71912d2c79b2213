"""What pages say of ranks before anything is learned: which documents were shown where, over pages in one place or in several parts.

A document is what has the same features. Parts are asked in turn, and answer with numbers of documents, never with rows: first which were
clicked at all, then how often these were shown and clicked at each rank. Of what was never clicked only the sum over documents counts.
A page of weight 2 was shown twice: weights are counted in whole units of 2⁻³⁰ of the largest, or of the power of two above it, and at
least one, so that sums do not depend on the parts.
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

ONLY_FEATURES = "no document was shown at two ranks: only the features separate relevance from position"
"""What is said of pages that show every document at one rank only."""
UNITS = 30
"""Bits of the largest weight."""
AskShown = Callable[..., list[Any]]
"""``ask(question, *arguments)``: the `Shown.answer` of every part."""


class Impressions(NamedTuple):
    """Of clicked documents, and of all others together.

    Attributes:
        pairs: ``int64 [pairs]``, document · `MOST_POSITIONS` + rank, rising; documents by their place among the clicked ones, ranks from 0.
        shown, clicked: how often, in units of the weights, ``int64 [pairs]``.
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
        weight: ``float64 [impressions]``, how much each counts; 0 where it was not seen at all.
    """

    document: Words
    rank: Ints
    clicked: Bools
    weight: Floats

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
        return cls(queries.row_digests[shown], rank[shown], clicks[shown] > 0, queries.impressions[shown])

    def ask(self, question: str, *arguments: object) -> list[Any]:
        """`AskShown` where this is all that was shown."""
        return [self.answer(question, *arguments)]

    def answer(self, question: str, *arguments: Any) -> Any:
        """The answer of this part to ``largest``, ``clicked``, ``impressions``, ``once`` or ``at``."""
        answers: dict[str, Callable[..., Any]] = {
            "largest": self._largest, "clicked": self._clicked, "impressions": self._impressions, "once": self._once, "at": self._at
        }  # fmt: skip
        return answers[question](*arguments)

    def _largest(self) -> float:
        """The largest weight here."""
        return float(self.weight.max(initial=0.0))

    def _clicked(self) -> Words:
        """Documents that were clicked, ``uint64 [documents]``, rising."""
        return np.unique(self.document[self.clicked & (self.weight > 0)])

    def _impressions(self, clicked: Words, largest: float) -> Impressions:
        """How often these documents, and the others, were shown here, where the largest weight of all is this."""
        counts = np.rint(np.ldexp(self.weight, UNITS - np.frexp(largest)[1])).astype(np.int64)
        counts = np.maximum(counts, self.weight > 0)
        place = np.searchsorted(clicked, self.document)
        known = clicked[np.minimum(place, len(clicked) - 1)] == self.document if len(clicked) else np.zeros(len(place), np.bool_)
        pairs, pair = np.unique(place[known] * MOST_POSITIONS + self.rank[known], return_inverse=True)
        return Impressions(
            pairs,
            counted(pair, counts[known], len(pairs)),
            counted(pair, counts[known] * self.clicked[known], len(pairs)),
            counted(self.rank[~known], counts[~known], int(self.rank.max(initial=-1)) + 1),
        )

    def _once(self) -> bool:
        """Whether each document was shown at one rank only."""
        document, _ = self._at()
        return len(np.unique(document)) == len(document)

    def _at(self) -> tuple[Words, Ints]:
        """Documents with a rank of each at which they were shown, both ``[pairs]``, rising."""
        seen = np.flatnonzero(self.weight > 0)
        order = seen[np.lexsort((self.rank[seen], self.document[seen]))]
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
    seen = _together(ask("impressions", clicked, max(ask("largest"))))
    n_ranks = len(seen.others)
    if not len(given):
        ranks = np.flatnonzero(seen.others)
        own = seen.shown > 0
        document = np.append(seen.pairs[own] // MOST_POSITIONS, np.full(len(ranks), len(clicked)))
        rank = np.append(seen.pairs[own] % MOST_POSITIONS, ranks) + 1
        shown = np.append(seen.shown[own], seen.others[ranks])
        clicks = np.append(seen.clicked[own], np.zeros(len(ranks), np.int64))
        try:
            given = propensities(document, rank, shown, clicks)
        except ValueError as error:
            raise ValueError(
                f"unbiased: {error}; give propensities, or lean on features: pairwise, additive, or trees with estimate=regression_em"
            ) from None
        given = np.pad(given, (0, max(n_ranks - len(given), 0)), constant_values=np.nan)
    how.require_looks(n_ranks)
    found: Floats = np.maximum(np.nan_to_num(given[:n_ranks]), how.least)
    return found


def shown_once(ask: AskShown) -> bool:
    """Whether no document was shown at two ranks: then pages by themselves do not tell documents from ranks."""
    found = ask("once")
    if len(found) == 1 or not all(found):
        return all(found)
    documents, ranks = (np.concatenate(of_parts) for of_parts in zip(*ask("at"), strict=True))
    return Shown(documents, ranks, np.zeros(len(ranks), np.bool_), np.ones(len(ranks))).answer("once") is True


def _together(parts: list[Impressions]) -> Impressions:
    """The sums over parts."""
    pairs, pair = np.unique(np.concatenate([part.pairs for part in parts]), return_inverse=True)
    ranks = [np.arange(len(part.others)) for part in parts]
    return Impressions(
        pairs,
        counted(pair, np.concatenate([part.shown for part in parts]), len(pairs)),
        counted(pair, np.concatenate([part.clicked for part in parts]), len(pairs)),
        counted(np.concatenate(ranks), np.concatenate([part.others for part in parts]), max(map(len, ranks))),
    )


def counted(at: Ints, counts: Ints, n: int) -> Ints:
    """The sums of whole numbers by place, ``int64 [n]``, exact."""
    found = np.zeros(n, np.int64)
    np.add.at(found, at, counts)
    return found
