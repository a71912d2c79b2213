"""Integers that stand for gradients: room for their sums, and what is lost."""

import numpy as np
import pytest

from ltr.trees.fixed_point import LOW, coarse_scale, fine_scales, largest_of, pack, size_of


def scale_of(values, bits):
    coarse = coarse_scale(largest_of(values), len(values))
    return fine_scales(coarse, size_of(values, coarse) + len(values), bits)[0]


def test_scale_leaves_room_and_loses_little():
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=1000), 1e-12 * rng.random(1000), 1e9 * rng.random(7), np.zeros(3)):
        for bits in (31, 32, 62):
            total = np.abs(np.rint(values * scale_of(values, bits))).sum()
            assert total < 2.0**bits
            assert total == 0 or total > 2.0 ** (bits - 3)


@pytest.mark.parametrize("newton", [True, False])
def test_halves_of_a_sum_are_the_sums_of_the_halves(newton):
    rng = np.random.default_rng(1)
    gradient, hessian = rng.normal(size=40_000), rng.random(40_000)
    scales = scale_of(gradient, 31), scale_of(hessian, 32)
    row_index, packed = rng.permutation(40_000).astype(np.int32), np.empty(40_000, np.int64)
    rows = np.full(len(packed), -1, np.int32)
    pack(gradient, hessian, *scales, newton, row_index, packed, rows)
    assert rows.tolist() == list(range(len(rows)))
    chosen = rng.random(40_000) < 0.7
    total = packed[row_index[chosen]].sum()
    assert total >> 32 == np.rint(gradient[chosen] * scales[0]).sum()
    assert total & LOW == (np.rint(hessian[chosen] * scales[1]).sum() if newton else chosen.sum())
    assert largest_of(gradient) == largest_of(-gradient) == np.abs(gradient).max()
    assert size_of(gradient, scales[0]) == np.abs(np.rint(gradient * scales[0])).sum()
