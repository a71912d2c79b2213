"""What a retrieval system's scores are turned into before they are added up: places, and scores on one scale.

Systems score on scales of their own (BM25 from 0 to some 30, cosines around .8), so fusion reads a *form* of each: the score itself, the
rank in the system's list, or a normalised score of it (Fox & Shaw 1994; Montague & Aslam 2001; ranx has the same ones by these names). A
form is taken over the whole list that the system returned for a query, whichever of its documents are judged or in the data.
"""

from collections.abc import Collection
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Form = Literal["score", "rank", "min-max", "z-score", "borda"]
"""The score; 1, 2, …; (s − min)/(max − min); (s − mean)/deviation; (n − rank + 1)/n."""
FORMS: tuple[Form, ...] = get_args(Form)
NORMALISED: tuple[Form, ...] = ("min-max", "z-score", "borda")
"""Forms that are a number of documents too that a run does not have."""


def column_of(form: Form, run: str) -> str:
    """Name of the feature that holds a form of a run: the run's own name for its score, otherwise ``rank of bm25``."""
    return run if form == "score" else f"{form} of {run}"


def runs_with(form: Form, names: tuple[str, ...]) -> tuple[str, ...]:
    """The runs that have a form, other than the score, among features of these names."""
    return tuple(name.removeprefix(f"{form} of ") for name in names if name.startswith(f"{form} of "))


def listing(feature: str, names: Collection[str]) -> str:
    """The feature among these names that is missing where a run does not have a document: of a normalised form, which is a number there too,
    the run's rank or score where there is one; otherwise the feature itself."""
    for form in NORMALISED:
        if feature.startswith(column_of(form, "")):
            run = feature.removeprefix(column_of(form, ""))
            return next((known for known in (column_of("rank", run), run) if known in names), feature)
    return feature


def formed(form: Form, scores: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """A form of lists of scores, ``float64 [documents]``.

    Args:
        scores: ``float64 [documents]``, finite, those of each query by rank.
        offsets: of the queries, ``int64 [queries + 1]``; none is empty.
    """
    sizes = np.diff(offsets)
    if form == "score":
        return scores
    ranks: NDArray[np.float64] = np.arange(1.0, len(scores) + 1) - np.repeat(offsets[:-1], sizes)
    if form == "rank":
        return ranks
    if form == "borda":
        shares: NDArray[np.float64] = 1 - (ranks - 1) / np.repeat(sizes, sizes)
        return shares
    starts = offsets[:-1]
    lowest, highest = np.minimum.reduceat(scores, starts), np.maximum.reduceat(scores, starts)
    width = highest - lowest
    if form == "min-max":
        scaled: NDArray[np.float64] = (scores - np.repeat(lowest, sizes)) / np.repeat(np.where(width > 0, width, 1), sizes)
        return np.where(np.repeat(width > 0, sizes), scaled, 1.0)
    centred: NDArray[np.float64] = scores - np.repeat(np.add.reduceat(scores, starts) / sizes, sizes)
    deviation = np.sqrt(np.add.reduceat(centred * centred, starts) / sizes)
    standard: NDArray[np.float64] = centred / np.repeat(np.where(deviation > 0, deviation, 1), sizes)
    return np.where(np.repeat(width > 0, sizes), standard, 0.0)  # the mean of equal scores may be another number by a rounding
