"""How kernels are compiled: once for each signature, for nothing else, and as their decorator says."""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import njit

from ltr.kernels.kernel import F8, F8_1D, I8, address, addresses, kernel_at, kernel_for, read_only, ready, record_type
from tests.conftest import JIT

compiled_only = pytest.mark.skipif(not JIT, reason="nothing is compiled")


@njit(cache=True)
def total(values, factor):
    return factor * values.sum()


@njit(cache=True)
def checked_total(values, factor):
    return 1 / factor


@njit(cache=True, error_model="numpy")
def ratio(a, b):
    return a / b


@njit(cache=True)
def checked_ratio(a, b):
    return a / b


class Scaled(NamedTuple):
    values: np.ndarray
    factor: int
    total: int


TOTAL = F8(F8_1D, I8)
total_kernel, of_record = kernel_at(TOTAL), kernel_for(lambda record: F8(record))


@njit(cache=True)
def sums(records, out):
    for k in range(len(out)):
        out[k] = total_kernel(records.total)(records.values[k:], records.factor)


@njit(cache=True)
def first_sum(record):
    return total_kernel(record.total)(record.values, record.factor)


@njit(cache=True)
def through(where, record):
    return of_record(where, record)(record)


def test_compiled_code_calls_what_is_at_an_address():
    record, out = Scaled(np.arange(4.0), 2, address(total, TOTAL)), np.zeros(3)
    sums(record, out)
    assert out.tolist() == [12.0, 12.0, 10.0]
    assert address(total, TOTAL) == record.total
    assert addresses([total, total], TOTAL).tolist() == [record.total] * 2


def test_the_signature_may_follow_from_a_record():
    record = Scaled(np.arange(4.0), 2, address(total, TOTAL))
    kind = record_type(Scaled, F8_1D, I8, I8)
    assert through(address(first_sum, F8(kind)), record) == 12.0


@compiled_only
def test_the_type_of_a_record_is_that_of_its_values():
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    assert numba.typeof(Scaled(np.arange(4.0), 2, 3)) == record_type(Scaled, F8_1D, I8, I8)
    assert numba.typeof(Scaled(frozen, 2, 3)) == record_type(Scaled, read_only(F8_1D), I8, I8)
    assert numba.typeof(Scaled(1, 2, 3)) == record_type(Scaled, I8, I8, I8)


def test_an_error_at_an_address_is_raised():
    record = Scaled(np.zeros(1), 0, address(checked_total, TOTAL))
    with pytest.raises(ZeroDivisionError):
        first_sum(record)


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
