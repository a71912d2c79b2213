"""Our exponential and tangent against numpy's, over their whole range."""

import numpy as np
import pytest

from ltr.kernels.exponential import exp, tanh


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
