"""64-bit digests of documents, and random numbers that are keyed by digests: they do not depend on the order of rows, on threads or on what else
is drawn.

The mixing function, and the step between the numbers of a stream, are splitmix64's (Steele, Lea & Flood 2014).
"""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ltr.data.sparse import is_sparse, parts_of

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: what splitmix64 adds from one number to the next."""
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_HALF = np.uint64(32)
_NAN_BITS = np.uint64(np.float32(np.nan).view(np.uint32))


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finaliser of splitmix64 (Steele, Lea & Flood 2014): every input bit reaches every output bit; ``uint64`` of any shape."""
    values = (values ^ (values >> _SHIFTS[0])) * _MIX[0]
    values = (values ^ (values >> _SHIFTS[1])) * _MIX[1]
    return values ^ (values >> _SHIFTS[2])


mix_one = njit(cache=True)(mix)
"""`mix` of one ``uint64``, for kernels."""


def salt_of(seeds: tuple[int, ...]) -> np.uint64:
    """A number of 64 bits by which draws with other seeds are others."""
    (salt,) = np.random.SeedSequence(seeds).generate_state(1, np.uint64)
    return np.uint64(salt)


def chosen(keys: NDArray[np.uint64], share: float, seeds: tuple[int, ...]) -> NDArray[np.bool_]:
    """A random share of the queries, ``bool [queries]``: each is drawn by its own key and the seeds, whatever the others are."""
    return mix(keys ^ salt_of(seeds)) >> np.uint64(11) < np.uint64(share * 2.0**53)


def drawn_parts(keys: NDArray[np.uint64], n: int, seeds: tuple[int, ...]) -> NDArray[np.int64]:
    """Which of `n` random parts each query is in, ``int64 [queries]`` from 0, drawn as `chosen` draws."""
    parts = (mix(keys ^ salt_of(seeds)) >> np.uint64(11)) * np.uint64(n) >> np.uint64(53)
    return parts.astype(np.int64)


def equal_parts(keys: NDArray[np.uint64], n: int, seeds: tuple[int, ...]) -> NDArray[np.int64]:
    """Which of `n` random parts each query is in, ``int64 [queries]`` from 0: parts whose sizes differ by one at most, so that one query more
    may move others, which it does not in `drawn_parts`."""
    parts = np.empty(len(keys), np.int64)
    parts[np.argsort(mix(keys ^ salt_of(seeds)), kind="stable")] = np.arange(len(keys)) * n // max(len(keys), 1)
    return parts


def row_digests(features: NDArray[np.float32]) -> NDArray[np.uint64]:
    """64-bit digest of each row of ``features [documents, features]``; 0 equals -0, all NaN are equal. Sparse rows have those of dense ones."""
    digests = np.empty(features.shape[0], np.uint64)
    with np.errstate(over="ignore"):  # products wrap around, of which numpy warns where nothing is compiled
        if is_sparse(features):
            _digest_sparse_rows(*parts_of(features), features.shape[1], digests)
        else:
            _digest_rows(np.ascontiguousarray(features, np.float32), digests)
    return mix(digests)


@njit(cache=True)
def _mixed_in(digest: np.uint64, x: np.float32) -> np.uint64:
    bits = np.uint64(np.float32(x + np.float32(0)).view(np.uint32)) if x == x else _NAN_BITS
    digest = np.uint64((digest ^ bits) * GOLDEN)
    return digest ^ (digest >> _HALF)


@njit(cache=True, parallel=True)
def _digest_rows(features: NDArray[np.float32], digests: NDArray[np.uint64]) -> None:
    for four in prange((len(features) + 3) // 4):
        _digest_four(features[4 * four : 4 * four + 4], digests[4 * four : 4 * four + 4])


@njit(cache=True)
def _digest_four(features: NDArray[np.float32], digests: NDArray[np.uint64]) -> None:
    """Four rows at a time: each digest waits for its own last multiplication only, so that the four overlap."""
    last = len(features) - 1
    a = b = c = d = GOLDEN
    for f in range(features.shape[1]):
        a = _mixed_in(a, features[0, f])
        b = _mixed_in(b, features[min(1, last), f])
        c = _mixed_in(c, features[min(2, last), f])
        d = _mixed_in(d, features[last, f])
    digests[0], digests[min(1, last)], digests[min(2, last)], digests[last] = a, b, c, d


@njit(cache=True, parallel=True)
def _digest_sparse_rows(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    n_features: int,
    digests: NDArray[np.uint64],
) -> None:
    """`_digest_rows` of rows of which four at a time are dense."""
    n, pieces = len(digests), 64
    for piece in prange(pieces):
        rows = np.zeros((4, n_features), np.float32)
        for first in range(4 * (piece * ((n + 3) // 4) // pieces), min(4 * ((piece + 1) * ((n + 3) // 4) // pieces), n), 4):
            last = min(first + 4, n)
            for row in range(first, last):
                for k in range(starts[row], starts[row + 1]):
                    rows[row - first, columns[k]] = values[k]
            _digest_four(rows[: last - first], digests[first:last])
            for row in range(first, last):
                for k in range(starts[row], starts[row + 1]):
                    rows[row - first, columns[k]] = 0.0
