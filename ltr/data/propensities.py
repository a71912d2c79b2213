"""Clicks and positions: how often users examine a rank, estimated from the log itself.

The position-based model (Richardson et al. 2007; Craswell et al. 2008): a result is clicked if it is examined, which depends on its
rank r alone (the propensity θ_r), and if it attracts, which depends on query and document (γ_d). So of n_dr impressions of d at r,
n_dr·θ_r·γ_d are expected to be clicked, and a document that was shown at several ranks reveals how these differ. Other
implementations use expectation maximisation with one γ per document, whose θ is inconsistent where documents have few impressions, or
interventions (Agarwal et al. 2019), which use pairs of ranks only. Treating clicks as Poisson counts has no such bias, however few
impressions a document has (Hausman, Hall & Griliches 1984), and uses all ranks.
"""

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-10
"""The iteration ends when no propensity moves by more."""


def propensities(
    document: NDArray[np.int64], rank: NDArray[np.int64], shown: NDArray[np.int64], clicked: NDArray[np.int64], rounds: int = 10_000
) -> NDArray[np.float64]:
    """How often each rank is examined, relative to the rank examined most, ``float64 [ranks]`` in (0, 1].

    Solves θ_r = Σ_d c_dr / Σ_d n_dr·γ_d and γ_d = Σ_r c_dr / Σ_r n_dr·θ_r alternately.

    Args:
        document: ``int64 [rows]`` from 0: what was shown, one number for each pair of query and document.
        rank: ``int64 [rows]``, from 1.
        shown, clicked: impressions and clicks of this document at this rank.
        rounds: iterations at most.

    Returns:
        θ of ranks 1, 2, …; NaN for a rank at which no clicked document was shown.

    Raises:
        ValueError: where nothing was clicked, or no clicked document was shown at two ranks: then positions and documents cannot be
            told apart.
    """
    total = np.bincount(document, clicked)
    informative = total[document] > 0
    if not informative.any():
        raise ValueError("no click in the log: there is nothing to estimate propensities from")
    _, document = np.unique(document[informative], return_inverse=True)
    place = rank[informative] - 1
    shown, clicked = shown[informative].astype(np.float64), clicked[informative].astype(np.float64)
    if len(np.unique(np.column_stack((document, place)), axis=0)) == document.max() + 1:
        raise ValueError("no clicked document was shown at two ranks: how often a rank is looked at cannot be estimated")
    theta = np.ones(place.max() + 1)
    of_document, of_rank = np.bincount(document, clicked), np.bincount(place, clicked)
    for _ in range(rounds):
        gamma = of_document / np.bincount(document, shown * theta[place])
        with np.errstate(invalid="ignore"):
            new = of_rank / np.bincount(place, shown * gamma[document])
        new /= np.nanmax(new)
        moved = np.nanmax(np.abs(new - theta))
        theta = np.where(new > 0, new, np.where(np.isnan(new), np.nan, np.finfo(np.float64).tiny))
        if moved < TOLERANCE:
            break
    return theta
