"""Integers that stand for forces: room for their sums, and what is lost."""

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
    force, curvature = rng.normal(size=40_000), rng.random(40_000)
    scales = scale_of(force, 31), scale_of(curvature, 32)
    row_of, packed = rng.permutation(40_000).astype(np.int32), np.empty(40_000, np.int64)
    pack(force, curvature, *scales, newton, row_of, packed)
    chosen = rng.random(40_000) < 0.7
    total = packed[row_of[chosen]].sum()
    assert total >> 32 == np.rint(force[chosen] * scales[0]).sum()
    assert total & LOW == (np.rint(curvature[chosen] * scales[1]).sum() if newton else chosen.sum())
    assert largest_of(force) == largest_of(-force) == np.abs(force).max()
    assert size_of(force, scales[0]) == np.abs(np.rint(force * scales[0])).sum()
