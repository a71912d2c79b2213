"""The best split of one column against every split tried."""

import numpy as np
import pytest

from ltr.binning import MISSING
from ltr.histograms import N_BINS
from ltr.splits import search

FREE = np.array([-np.inf, np.inf])


def column_of(rng, n_edges, has_missing):
    bins = [*range(n_edges + 1), *([MISSING] if has_missing else [])]
    force, weight, counts = np.zeros(N_BINS, np.int64), np.zeros(N_BINS, np.int64), np.zeros(N_BINS, np.int64)
    force[bins], weight[bins] = rng.integers(-9000, 9000, len(bins)), rng.integers(1, 5000, len(bins))
    counts[bins] = rng.integers(1, 30, len(bins))
    return force, weight, counts


def every_split(force, weight, counts, n_edges, has_missing, sign, bounds):
    """Gain, bin, side of missing values, and documents of the smaller side."""

    def gain(forces, weights):
        value = np.clip(forces / weights, *bounds)
        return (2 * forces - weights * value) * value, value

    parent = gain(force.sum(), weight.sum())[0]
    for missing_left in (False, True)[: 1 + has_missing]:
        for k in range(n_edges + (has_missing and not missing_left)):
            left = np.zeros(N_BINS, bool)
            left[: k + 1], left[MISSING] = True, missing_left
            (low, at_left), (high, at_right) = (
                gain(force[left].sum(), weight[left].sum()),
                gain(force[~left].sum(), weight[~left].sum()),
            )
            if sign * (at_right - at_left) >= 0:
                yield low + high - parent, k, missing_left, min(counts[left].sum(), counts[~left].sum())


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("sign", [0, 1, -1])
@pytest.mark.parametrize("bounds", [FREE, np.array([-0.4, 0.3])])
def test_the_best_of_all_splits_is_found(has_missing, sign, bounds):
    rng = np.random.default_rng(0)
    found_none = 0
    for n_edges in (1, 2, 30, 254):
        for min_docs in (0, 40, 10_000):
            force, weight, counts = column_of(rng, n_edges, has_missing)
            column, counted = (force << 32) + weight, min_docs > 0
            gain, split, missing_left = search(column, counts, counted, n_edges, has_missing, min_docs, False, sign, bounds)
            tried = [t for t in every_split(force, weight, counts, n_edges, has_missing, sign, bounds) if t[3] >= min_docs]
            best = max(tried, default=(0.0, -1, False, 0))
            if best[0] <= 0:
                assert gain == 0
                found_none += 1
                continue
            assert gain == pytest.approx(best[0])
            assert (gain, split, missing_left) in [(gain, *t[1:3]) for t in tried if t[0] == pytest.approx(best[0])]
    assert 4 <= found_none < 12


@pytest.mark.parametrize("has_missing", [False, True])
def test_by_least_squares_the_weight_is_the_count(has_missing):
    rng = np.random.default_rng(1)
    force, _, counts = column_of(rng, 40, has_missing)
    for min_docs in (1, 100, 10_000):
        nothing = np.zeros(N_BINS, np.int64)
        found = search((force << 32) + counts, nothing, False, 40, has_missing, min_docs, True, 0, FREE)
        tried = [t for t in every_split(force, counts, counts, 40, has_missing, 0, FREE) if t[3] >= min_docs]
        assert found[0] == pytest.approx(max((t[0] for t in tried), default=0.0))
