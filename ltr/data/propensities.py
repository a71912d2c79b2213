"""Clicks and positions: how often users look at a rank, estimated from the log itself.

The position-based model (Richardson et al. 2007; Craswell et al. 2008): a result is clicked where it is looked at, which
depends on its rank r alone (the propensity θ_r), and where it attracts, which depends on query and document (γ_d). So the
clicks on d at r are expected to be n_dr·θ_r·γ_d of n_dr impressions, and a document that was shown at several ranks tells how
these differ. What other implementations do: expectation maximisation with a γ for each document, whose θ is inconsistent where a
document has few impressions, or interventions (Agarwal et al. 2019), which use pairs of ranks only. As counts of a Poisson law
the expected clicks have no such bias, however few impressions a document has (Hausman, Hall & Griliches 1984), and all ranks count.
"""

import numpy as np

from ltr.kernels.kernel import Floats, Ints

TOLERANCE = 1e-10
"""Propensities are final when none moves by more."""


def propensities(document: Ints, rank: Ints, shown: Ints, clicked: Ints, rounds: int = 10_000) -> Floats:
    """How often each rank is looked at, beside the rank most looked at, ``float64 [ranks]`` in (0, 1].

    Solves θ_r = Σ_d c_dr / Σ_d n_dr·γ_d and γ_d = Σ_r c_dr / Σ_r n_dr·θ_r, by turns.

    Args:
        document: ``int64 [rows]`` from 0: what was shown, one number a pair of query and document.
        rank: ``int64 [rows]``, from 1.
        shown, clicked: impressions and clicks of this document at this rank.
        rounds: at most so many turns.

    Returns:
        θ of ranks 1, 2, …; NaN at a rank that no clicked document was shown at.

    Raises:
        ValueError: where nothing was clicked, or no clicked document was shown at two ranks: then positions and documents cannot be
            told apart.
    """
    total = np.bincount(document, clicked)
    tells = total[document] > 0
    if not tells.any():
        raise ValueError("no click in the log: there is nothing to estimate propensities from")
    _, document = np.unique(document[tells], return_inverse=True)
    place, shown, clicked = rank[tells] - 1, shown[tells].astype(np.float64), clicked[tells].astype(np.float64)
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
