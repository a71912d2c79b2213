"""Groups of rows that lie one after another: group g has the rows ``offsets[g]:offsets[g + 1]``."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def offsets_from_sizes(sizes: ArrayLike) -> NDArray[np.int64]:
    """The first row of each group, and the number of rows at the end, ``int64 [groups + 1]``; `sizes`: ``[groups]``."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))


def group_of_rows(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which group each row is in, ``int64 [rows]``; `offsets`: ``int64 [groups + 1]``."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
