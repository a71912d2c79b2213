"""Area under the ROC curve: the share of pairs of a relevant and another document that are in order."""

import numpy as np
from numba import njit

from ltr.kernels.kernel import Floats, Ints
from ltr.metrics.gains import binary, reciprocal_rank_discount
from ltr.metrics.measure import Definition, register


@njit(cache=True)
def auc_value(gains: Floats, ends: Ints, curve: Floats, cutoff: int) -> float:
    """Share of (relevant, not relevant) pairs in order; a tie is half a pair. Documents at no rank are tied below the others."""
    pairs, above, start = 0.0, 0.0, 0
    for group in range(len(ends) + 1):
        end = ends[group] if group < len(ends) else len(gains)
        relevant = 0.0
        for k in range(start, end):
            relevant += gains[k]
        pairs += (end - start - relevant) * (above + 0.5 * relevant)
        above += relevant
        start = end
    total = above * (len(gains) - above)
    return pairs / total if total > 0.0 else np.nan


@njit(cache=True)
def auc_prepare(gains: Floats, curve: Floats, cutoff: int, aux: Floats) -> int:
    """aux[0, 0]: 1/(n⁺n⁻). Every rank matters, and none where all documents are of one class."""
    relevant = gains.sum()
    total = relevant * (len(gains) - relevant)
    aux[0, 0] = 1.0 / total if total > 0.0 else 0.0
    return len(gains) if total > 0.0 else 0


@njit(cache=True)
def auc_row(t: int, gains: Floats, curve: Floats, cutoff: int, aux: Floats, out: Floats) -> None:
    """(b − t)/(n⁺ n⁻)."""
    for b in range(t + 1, len(gains)):
        out[b] = (b - t) * aux[0, 0] if gains[t] != gains[b] else 0.0


register(
    Definition(
        name="auc",
        title="Area under the ROC curve",
        formula="share of (relevant, other) pairs in order, a tie half of one (with `ties: expected`)",
        paper="Dubey 2009 section 2.3",
        gain=binary,
        curve=reciprocal_rank_discount,
        value=auc_value,
        prepare=auc_prepare,
        row=auc_row,
        labels="binary",
        whole=True,
    )
)
