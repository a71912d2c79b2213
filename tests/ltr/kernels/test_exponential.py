"""Our exponential and tangent against numpy's, over their whole range."""

import numpy as np
import pytest

from ltr.kernels.exponential import exp, exp2_of, exp_of, tanh


def test_exponential_is_right_to_the_last_bits():
    x = np.concatenate((np.linspace(-707, 707, 4001), np.linspace(-1, 1, 999), [0.0]))
    ours = np.array([exp(v) for v in x])
    assert np.abs(ours / np.exp(x) - 1).max() < 4e-16
    assert exp(0.0) == 1.0
    assert exp(-1e9) == exp(-708.0) > 0
    assert np.isfinite(exp(1e9))


def test_tangent():
    x = np.linspace(-30, 30, 2001)
    assert np.array([tanh(v) for v in x]) == pytest.approx(np.tanh(x), abs=1e-15)
    assert (tanh(1e9), tanh(-1e9), tanh(0.0)) == (1.0, -1.0, 0.0)


def test_powers_of_two_are_exact_for_whole_numbers():
    whole = np.arange(-1000.0, 1001)
    assert np.array_equal(exp2_of(whole), np.exp2(whole))
    x = np.linspace(-50, 50, 4001)
    assert exp2_of(x) == pytest.approx(np.exp2(x), rel=1e-15)
    assert np.array_equal(exp_of(x), [exp(v) for v in x])
    assert len(exp2_of(np.empty(0))) == 0
