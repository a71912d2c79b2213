"""Clicks and positions: how often users examine a rank, estimated from the log itself.

The position-based model (Richardson et al. 2007; Craswell et al. 2008): a result is clicked if it is examined, which depends on its
rank r alone (the propensity θ_r), and if it attracts, which depends on query and document (γ_d). So of n_dr impressions of d at r,
n_dr·θ_r·γ_d are expected to be clicked, and a document that was shown at several ranks reveals how these differ. Other
implementations use expectation maximisation with one γ per document, whose θ is inconsistent where documents have few impressions, or
interventions (Agarwal et al. 2019), which use pairs of ranks only. Treating clicks as Poisson counts has no such bias, however few
impressions a document has (Hausman, Hall & Griliches 1984), and uses all ranks.

What ties two ranks is a document that was clicked at one and shown at the other, both ways round: of ranks without such a chain one or the
other would come out as never looked at, though it drew clicks (Ford 1957, of paired comparisons). Ranks that are tied are estimated
together; such groups stand to each other as their clicks over impressions do, none above the group that drew most clicks: one that would be
is brought down as a whole, so that its ranks keep what they are to each other.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

TOLERANCE = 1e-10
"""The iteration ends when no propensity moves by more."""
DENSE, PRECISE, FARTHEST = 300, 1e-8, 3.0
"""Ranks up to which Newton's equations are solved as a table; what is left of the slope where they are not; and how far log θ moves at once."""


def ties(document: NDArray[np.int64], rank: NDArray[np.int64], clicked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which ranks are tied by clicked documents, ``int64 [ranks]``: a number for each group, 0 for the one that drew most clicks; −1 for
    a rank without a click.

    Args:
        document: ``int64 [rows]`` from 0: what was shown, one number for each pair of query and document.
        rank: ``int64 [rows]``, from 1.
        clicked: clicks of this document at this rank.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_ranks, n_documents = int(rank.max()), int(document.max()) + 1
    drawn = np.bincount(rank - 1, clicked, n_ranks)
    shown_at = coo_array((np.ones(len(rank), np.int64), (document, rank - 1)), (n_documents, n_ranks)).tocsr()
    clicks = clicked > 0
    clicked_at = coo_array(
        (np.ones(int(clicks.sum()), np.int64), (rank[clicks] - 1, document[clicks])), (n_ranks, n_documents)
    ).tocsr()
    _, group = connected_components(clicked_at @ shown_at, directed=True, connection="strong")
    _, group = np.unique(group, return_inverse=True)
    order = np.argsort(-np.bincount(group, drawn), kind="stable")
    return np.where(drawn > 0, np.argsort(order)[group], -1)


def propensities(
    document: NDArray[np.int64], rank: NDArray[np.int64], shown: NDArray[np.int64], clicked: NDArray[np.int64], rounds: int = 10_000
) -> NDArray[np.float64]:
    """How often each rank is examined, relative to the rank examined most, ``float64 [ranks]`` in [0, 1].

    Solves θ_r = Σ_d c_dr / Σ_d n_dr·γ_d and γ_d = Σ_r c_dr / Σ_r n_dr·θ_r alternately, for each group of `ties`.

    Args:
        document, rank, clicked: as `ties` has them.
        shown: impressions of this document at this rank.
        rounds: of the alternation, after which Newton's steps go on.

    Returns:
        θ of ranks 1, 2, …: above 0 where a rank drew clicks, 0 where clicked documents were shown and not clicked, NaN where none was
        shown.

    Raises:
        ValueError: where nothing was clicked, or no two of several clicked ranks are tied: then positions and documents cannot be told
            apart.
    """
    informative = np.bincount(document, clicked)[document] > 0
    if not informative.any():
        raise ValueError("no click in the log: there is nothing to estimate propensities from")
    if len(np.unique(np.column_stack((document, rank))[informative], axis=0)) == len(np.unique(document[informative])):
        raise ValueError("no clicked document was shown at two ranks: examination probabilities (propensities) cannot be estimated")
    group = ties(document, rank, clicked)
    names, sizes = np.unique(group[group >= 0], return_counts=True)
    if len(names) > 1 and sizes.max() == 1:
        raise ValueError(
            "no two ranks are tied by documents clicked at one and shown at the other: examination probabilities (propensities) cannot be estimated"
        )
    theta = np.where(np.bincount(rank[informative] - 1, minlength=len(group)) > 0, 0.0, np.nan)
    own = np.empty(document.max() + 1, np.int64)
    own[document[clicked > 0]] = group[rank[clicked > 0] - 1]
    at_most = np.inf
    for name in names:
        rows = informative & (own[document] == name) & (group[rank - 1] == name)
        of_group = _tied(document[rows], rank[rows], shown[rows], clicked[rows], rounds)
        everywhere = group[rank - 1] == name
        looks = shown[everywhere] * of_group[rank[everywhere] - 1]
        scale = min(clicked[everywhere].sum() / looks.sum(), at_most) if len(names) > 1 else 1.0
        at_most = scale if name == 0 else at_most
        inside = np.flatnonzero(group == name)
        theta[inside] = scale * of_group[inside]
    relative: NDArray[np.float64] = theta / theta[group == 0].max()
    return relative[: rank[informative].max()]


def _tied(
    document: NDArray[np.int64], rank: NDArray[np.int64], shown: NDArray[np.int64], clicked: NDArray[np.int64], rounds: int
) -> NDArray[np.float64]:
    """θ of the ranks of one group, the largest 1; NaN elsewhere."""
    _, document = np.unique(document, return_inverse=True)
    place = rank - 1
    shown, clicked = shown.astype(np.float64), clicked.astype(np.float64)
    theta = np.ones(place.max() + 1)
    of_document, of_rank = np.bincount(document, clicked), np.bincount(place, clicked)
    for _ in range(rounds):
        gamma = of_document / np.bincount(document, shown * theta[place])
        with np.errstate(invalid="ignore"):
            new = of_rank / np.bincount(place, shown * gamma[document])
        new /= np.nanmax(new)
        moved = np.nanmax(np.abs(new - theta))
        theta = new
        if moved < TOLERANCE:
            return theta
    return _at_rest(theta, document, place, np.asarray(shown, np.float64), np.asarray(clicked, np.float64))


def _at_rest(
    theta: NDArray[np.float64],
    document: NDArray[np.int64],
    place: NDArray[np.int64],
    shown: NDArray[np.float64],
    clicked: NDArray[np.float64],
) -> NDArray[np.float64]:
    """θ where the alternation, which few impressions across two blocks of ranks let creep, would end: Newton's steps to the largest
    Σ_r c_r log θ_r − Σ_d c_d log Σ_r n_dr θ_r, of which its equations are the conditions, and which is concave in log θ."""
    from scipy.sparse import csr_array

    seen = theta[place] > 0  # a rank without a click of these documents stays at 0
    place, shown, clicked = place[seen], shown[seen], clicked[seen]
    _, document = np.unique(document[seen], return_inverse=True)
    ranks, column = np.unique(place, return_inverse=True)
    of_document, of_rank = np.bincount(document, clicked), np.bincount(column, clicked)
    logs = np.log(theta[ranks])

    def shares(logs: NDArray[np.float64]) -> tuple[csr_array, float]:
        looks = shown * np.exp(logs[column])
        sums = np.bincount(document, looks)
        fit = float(of_rank @ logs - of_document @ np.log(sums))
        return csr_array((looks / sums[document], (document, column)), (len(sums), len(ranks))), fit

    part, fit = shares(logs)
    for _ in range(100):
        expected = part.T @ of_document
        step = _newton_step(part, of_document, expected, of_rank - expected)
        size = min(1.0, FARTHEST / max(np.abs(step).max(), FARTHEST))
        while (tried := shares(logs + size * step))[1] < fit and size > 1e-10:
            size /= 2
        logs, (part, fit) = logs + size * step, tried
        if np.abs(size * step).max() < TOLERANCE:
            break
    found = theta.copy()
    found[ranks] = np.exp(logs - logs.max())
    return found


def _newton_step(
    part: "csr_array", of_document: NDArray[np.int64], expected: NDArray[np.float64], slope: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The step of log θ that `slope` asks for. Of many ranks, as those of a rank and a last click are, by conjugate gradients (Hestenes & Stiefel
    1952), which need no table of every two."""
    if len(slope) <= DENSE:
        curvature = np.diag(expected) - (part.T @ (part.multiply(of_document[:, None]))).toarray()
        solved: NDArray[np.float64] = np.linalg.lstsq(curvature, slope, rcond=None)[0]
        return solved
    # The slope is none towards a factor of all θ, but for rounding, which is taken out.
    step, left = np.zeros(len(slope)), slope - expected * slope.sum() / expected.sum()
    along = left / expected
    size = float((left * along).sum())
    enough = size * PRECISE**2
    for _ in range(100 * len(slope)):  # as many as there are ranks are enough but for rounding
        if size <= enough:
            break
        bent = expected * along - part.T @ (of_document * (part @ along))
        stride = size / float((along * bent).sum())
        step += stride * along
        left -= stride * bent
        towards = left / expected
        before, size = size, float((left * towards).sum())
        along = towards + size / before * along
    return step
