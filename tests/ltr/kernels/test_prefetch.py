"""A hint changes nothing: it compiles, reads no element and may point anywhere."""

import numpy as np
from numba import njit

from ltr.kernels.prefetch import prefetch


@njit
def add_ahead(values):
    total = 0.0
    for i in range(len(values)):
        prefetch(values, i + 64)
        total += values[i]
    return total


def test_a_hint_changes_no_number_even_beyond_the_end():
    values = np.arange(100.0)
    assert add_ahead(values) == values.sum()


def test_any_contiguous_array_of_one_dimension():
    for values in (np.arange(3, dtype=np.uint8), np.arange(3, dtype=np.int64), np.arange(3, dtype=np.float32)):
        assert add_ahead(values) == 3
