"""How kernels are compiled: once for each signature, for nothing else, and as their decorator says."""

import numba
import numpy as np
import pytest
from numba import njit

from ltr.kernels.kernel import F8, F8_1D, I8, ready
from tests.conftest import JIT

compiled_only = pytest.mark.skipif(not JIT, reason="nothing is compiled")


@njit(cache=True)
def total(values, factor):
    return factor * values.sum()


@njit(cache=True, error_model="numpy")
def ratio(a, b):
    return a / b


@njit(cache=True)
def checked_ratio(a, b):
    return a / b


def test_a_kernel_is_called_by_drivers_as_a_function():
    kernel = ready(total, F8(F8_1D, I8))
    assert kernel(np.arange(4.0), 2) == 12.0
    assert kernel is ready(total, F8(F8_1D, I8))


@compiled_only
def test_each_signature_is_compiled_alone():
    kernel = ready(total, F8(F8_1D, I8))
    assert kernel is not ready(total, F8(F8_1D, F8))
    assert [str(one) for one in kernel.signatures] == ["(Array(float64, 1, 'C', False, aligned=True), int64)"]
    with pytest.raises(TypeError, match="No matching definition"):
        kernel(np.arange(4), 2)
    assert len(kernel.signatures) == 1
    assert not total.signatures, "the function itself is never compiled"


@compiled_only
def test_options_of_the_decorator_are_kept():
    assert ready(ratio, F8(F8, F8))(1.0, 0.0) == np.inf
    with pytest.raises(ZeroDivisionError):
        ready(checked_ratio, F8(F8, F8))(1.0, 0.0)


def test_without_compilation_it_is_the_function_itself(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert ready(total, F8(F8_1D, I8)) is total
