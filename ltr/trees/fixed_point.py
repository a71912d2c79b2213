"""Gradient and hessian as integers: one of 64 bits per document, whose sums are exact in any order.

The gradient is in its high half, the hessian (Newton gain) or 1 (least squares) in its low half, so that one addition updates a bin of a
histogram:

    packed  =  gradient · 2^f  |  hessian · 2^c            Σ packed  =  Σ gradient  |  Σ hessian
               high 32 bits    low 32 bits                            (no carry: the low sum stays below 2^32)

A scale is found in two steps whose results do not depend on how documents are divided: a maximum, which gives a coarse scale, and the
sum of sizes by that scale, an integer.
"""

import numpy as np
from numba import njit, prange

from ltr.kernels.kernel import Floats, Ints, Ints32

LOW = np.int64(0xFFFFFFFF)
"""Mask of the low half."""
VANISHED = 1e-100
"""Gradients below this count as zero: every pair is in order by a gap of hundreds."""
PIECE = 16384
"""Documents that one thread takes at a time in a loop over all documents."""


def coarse_scale(largest: float, n: int) -> float:
    """A power of two by which the sum of n values, none above `largest`, stays below 2^62; 0 where they have vanished."""
    if largest < VANISHED:
        return 0.0
    room = 61 - int(np.ceil(np.log2(max(n, 2))))
    return float(2.0 ** (room - int(np.ceil(np.log2(largest)))))


def fine_scales(coarse: float, total: int, *bits: int) -> list[float]:
    """For each of `bits` a power of two by which a sum that is at most `total` by the scale `coarse` stays below 2^bits, with a bit to
    spare for rounding."""
    return [float(coarse * 2.0 ** (b - total.bit_length() - 1)) if coarse else 1.0 for b in bits]


def largest_of(values: Floats) -> float:
    """The largest |value|; 0 for none."""
    largest = np.zeros(pieces_of(len(values)), np.int64)
    _largest(values.view(np.int64), largest)
    return float(largest.view(np.float64).max(initial=0.0))


def size_of(values: Floats, scale: float) -> int:
    """Σ |values · scale|, each term rounded."""
    totals = np.zeros(pieces_of(len(values)), np.int64)
    if scale:
        _total_size(values, scale, totals)
    return int(totals.sum())


def pieces_of(n: int) -> int:
    """Pieces of `PIECE` that n documents make."""
    return -(-n // PIECE)


@njit(cache=True, parallel=True)
def _largest(bits: Ints, largest: Ints) -> None:
    """Writes the largest |value| in each piece, all as the bits of floats: floats ≥ 0 are ordered as their bits are, and the maximum of
    integers runs in vector lanes."""
    size = np.int64(0x7FFFFFFFFFFFFFFF)
    for piece in prange(len(largest)):
        own = np.int64(0)
        for k in range(np.uint64(piece * PIECE), np.uint64(min((piece + 1) * PIECE, len(bits)))):
            own = max(own, bits[k] & size)
        largest[piece] = own


@njit(cache=True, parallel=True)
def _total_size(values: Floats, scale: float, totals: Ints) -> None:
    for piece in prange(len(totals)):
        own = np.int64(0)
        for k in range(np.uint64(piece * PIECE), np.uint64(min((piece + 1) * PIECE, len(values)))):
            own += np.int64(np.rint(abs(values[k]) * scale))
        totals[piece] = own


@njit(cache=True, parallel=True)
def pack(
    gradient: Floats,
    hessian: Floats,
    gradient_scale: float,
    hessian_scale: float,
    newton: bool,
    row_index: Ints32,
    packed: Ints,
    rows: Ints32,
) -> None:
    """Writes gradient and hessian, or 1 unless `newton`, as one integer to ``packed[row_index[document]]``; ``rows[k] = k`` as far as
    these go."""
    for k in prange(len(gradient)):
        if k < len(rows):
            rows[k] = k
        low = np.int64(np.rint(hessian[k] * hessian_scale)) if newton else np.int64(1)
        packed[row_index[k]] = (np.int64(np.rint(gradient[k] * gradient_scale)) << np.int64(32)) + low
