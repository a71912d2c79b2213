"""Sums of histograms in as few bits as they need, to be sent.

Neighbouring bins have sums of similar size, and those of small leaves are small. So sums go in runs of 16, each with the widths that its
largest gradient and hessian need (the frames of reference of Zukowski et al. 2006, which columnar files use):

    6 bits: width of gradients   6 bits: width of hessians   16 × (gradient with its sign in the lowest bit, hessian)
"""

import numpy as np
from numba import njit

from ltr.kernels.kernel import Ints, Words, inner
from ltr.trees.fixed_point import LOW

_RUN = 16
_WIDTH = 6


@inner()
def _width(value: np.uint64) -> np.uint64:
    """Bits of a number below 2^63, by halving."""
    width = np.uint64(0)
    for half in (32, 16, 8, 4, 2, 1):
        if value >> np.uint64(half):
            value >>= np.uint64(half)
            width += np.uint64(half)
    return width + value


@inner()
def _append(words: Words, at: np.uint64, value: np.uint64, width: np.uint64) -> np.uint64:
    """Puts the bits of a value from bit `at` on; returns the bit after them. Nothing but zeros is there before."""
    place, within = at >> np.uint64(6), at & np.uint64(63)
    words[place] |= value << within
    words[place + np.uint64(1)] |= (value >> (np.uint64(63) - within)) >> np.uint64(1)
    return at + width


@inner()
def _bits(words: Words, at: np.uint64, width: np.uint64) -> np.uint64:
    """The value of up to 64 bits from bit `at` on."""
    place, within = at >> np.uint64(6), at & np.uint64(63)
    value = (words[place] >> within) | ((words[place + np.uint64(1)] << (np.uint64(63) - within)) << np.uint64(1))
    own: np.uint64 = value & ((np.uint64(1) << width) - np.uint64(1)) if width < np.uint64(64) else value
    return own


@njit(cache=True)
def _write(histograms: Ints, which: Ints, places: Ints, words: Words) -> np.int64:
    """Writes what `packed` returns to zeros, with a word or two of zeros behind it; returns how many words these are."""
    at = np.uint64(0)
    high, low, width = np.zeros(_RUN, np.uint64), np.zeros(_RUN, np.uint64), np.uint64(_WIDTH)
    for histogram in which:
        for first in range(0, len(places), _RUN):
            n = min(_RUN, len(places) - first)
            any_high = any_low = np.uint64(0)
            for k in range(n):
                value = histograms[histogram, places[first + k]]
                gradient = value >> np.int64(32)
                high[k] = np.uint64((gradient << np.int64(1)) ^ (gradient >> np.int64(63)))
                low[k] = np.uint64(value & LOW)
                any_high |= high[k]
                any_low |= low[k]
            of_high, of_low = _width(any_high), _width(any_low)
            at = _append(words, at, of_high | (of_low << width), width + width)
            for k in range(n):
                at = _append(words, at, low[k] | (high[k] << of_low), of_low + of_high)
    return np.int64(at >> np.uint64(6)) + np.int64(2)


def packed(histograms: Ints, which: Ints, places: Ints) -> Ints:
    """What stands in these places of these histograms, one after another, as bits.

    Args:
        histograms: ``int64 [histograms, columns · bins]``.
        which, places: ``int64 [any]``.
    """
    runs = len(which) * -(-len(places) // _RUN)
    words = np.zeros(len(which) * len(places) + 2 * _WIDTH * runs // 64 + 2, np.uint64)
    return words[: _write(histograms, which, places, words)].view(np.int64)


@njit(cache=True)
def add_sums(words: Words, places: int, sums: Ints) -> None:
    """Adds what is `packed`, so many places of each histogram, to sums, ``int64 [histograms · places]``."""
    at, one, width = np.uint64(0), np.uint64(1), np.uint64(_WIDTH)
    for histogram in range(0, len(sums), places):
        for first in range(histogram, histogram + places, _RUN):
            of_high, of_low = _bits(words, at, width), _bits(words, at + width, width)
            at += width + width
            both = of_high + of_low
            within = (one << of_low) - one
            for k in range(first, min(first + _RUN, histogram + places)):
                value = _bits(words, at, both)
                high = np.int64(value >> of_low)
                sums[k] += (((high >> np.int64(1)) ^ -(high & np.int64(1))) << np.int64(32)) + np.int64(value & within)
                at += both
