"""Sums over documents by the rank that each was shown at: the same to the last bit in any order, by any threads and on any machines.

Floats are summed as `ltr.trees.fixed_point` sums gradients: a maximum says by which power of two they become integers, whose sums are exact.
Each rank has a scale of its own, by which a term is right to n·2⁻⁶⁰ of the rank's largest, n being the documents shown there. LightGBM and
XGBoost add up biases thread by thread, as the rows happen to be dealt.
"""

from collections.abc import Iterable

import numpy as np
from numba import njit

from ltr.kernels.kernel import Floats, Ints
from ltr.kernels.machines import ALONE, Machines

VANISHED = 1e-100
"""Sums of terms below this are 0."""


class RankSums:
    """Sums by rank over the documents of all machines.

    Args:
        shown_at: ranks of the documents here from 0, ``int64 [documents]``; −1 for documents that count nowhere.
        n_ranks: that there are at least; more where a document was shown deeper, on any machine.
        machines: all of which make the same sums at once.

    Attributes:
        documents: shown at each rank, ``int64 [ranks]``, on all machines.
    """

    def __init__(self, shown_at: Ints, n_ranks: int = 0, machines: Machines = ALONE) -> None:
        self.shown_at, self.machines = shown_at, machines
        (deepest,) = machines.largest(np.array([max(shown_at.max(initial=0) + 1, n_ranks)], np.float64))
        self.n_ranks = int(deepest)
        self.documents = self.count(shown_at)

    def count(self, ranks: Ints) -> Ints:
        """How many of the documents that have these ranks were shown at each, ``int64 [ranks]``."""
        return self.machines.summed(np.bincount(ranks[ranks >= 0], minlength=self.n_ranks).astype(np.int64))

    def __call__(self, values: Iterable[Floats]) -> Floats:
        """Σ by rank of each of the values, ``float64 [documents]`` each: ``float64 [values, ranks]``."""
        values = [*values]
        largest = np.zeros((len(values), self.n_ranks))
        for own, of_rank in zip(values, largest, strict=True):
            _find_largest(self.shown_at, own, of_rank)
        largest = self.machines.largest(largest.ravel()).reshape(largest.shape)
        room = 61 - np.ceil(np.log2(np.maximum(self.documents, 2))).astype(np.int64)
        _, size = np.frexp(np.maximum(largest, VANISHED))
        scales = np.ldexp(1.0, room - size)
        sums = np.zeros(scales.shape, np.int64)
        for own, scale, of_rank in zip(values, scales, sums, strict=True):
            _add(self.shown_at, own, scale, of_rank)
        sums = self.machines.summed(sums.ravel()).reshape(sums.shape)
        found: Floats = np.where(largest < VANISHED, 0.0, sums / scales)
        return found


@njit(cache=True)
def _find_largest(shown_at: Ints, values: Floats, largest: Floats) -> None:
    for i in range(len(values)):
        if shown_at[i] >= 0:
            largest[shown_at[i]] = max(largest[shown_at[i]], abs(values[i]))


@njit(cache=True)
def _add(shown_at: Ints, values: Floats, scales: Floats, sums: Ints) -> None:
    for i in range(len(values)):
        if shown_at[i] >= 0:
            sums[shown_at[i]] += np.int64(np.rint(values[i] * scales[shown_at[i]]))
