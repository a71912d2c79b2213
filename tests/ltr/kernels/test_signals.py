"""Kernels are linked whole whenever signals come, and signals are heard afterwards."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from ltr.kernels.signals import HEARD, HandlersWait
from tests.conftest import JIT

WHILE_LINKING = """
import signal
import numba
import numpy as np
import ltr
from llvmlite.binding import ExecutionEngine
from ltr.data.digests import row_digests

class Late(Exception):
    pass

def late(*_):
    raise Late

@numba.njit
def doubled(x):
    return 2 * x

def told(call):
    try:
        return call()
    except Late:
        return "late"

find = ExecutionEngine._find_module_ptr

def interrupted(self, module):
    signal.raise_signal(signal.SIGALRM)
    return find(self, module)

rows = np.ones((3, 2), np.float32)
row_digests(rows[:0])
signal.signal(signal.SIGALRM, late)
ExecutionEngine._find_module_ptr = interrupted
print(told(lambda: doubled(1)), told(lambda: ltr.evaluate([2, 0], [2.0, 1.0], [0, 2], "mrr")))
ExecutionEngine._find_module_ptr = find
print(doubled(1), ltr.evaluate([2, 0], [2.0, 1.0], [0, 2], "mrr")["mrr"], signal.getsignal(signal.SIGALRM) is late)
"""


@pytest.mark.skipif(not JIT, reason="nothing is linked")
def test_who_interrupts_a_kernel_that_is_linked_is_heard_and_the_kernel_is_whole():
    """LLVM asked Python for its code, and ended the process at the first call where an exception had come in between."""
    ran = subprocess.run([sys.executable, "-c", WHILE_LINKING], capture_output=True, text=True, check=False, env=os.environ)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.split() == ["late", "late", "2", "[1.]", "True"]


@pytest.fixture
def came():
    """Signals that handlers have heard."""
    heard = []
    before = {number: signal.signal(number, lambda number, _: heard.append(number)) for number in (signal.SIGUSR1, signal.SIGALRM)}
    yield heard
    for number, handler in before.items():
        signal.signal(number, handler)


def test_handlers_run_at_the_end_in_order_and_are_there_again(came):
    before = [signal.getsignal(number) for number in HEARD]
    with HandlersWait():
        for number in (signal.SIGALRM, signal.SIGUSR1, signal.SIGALRM):
            signal.raise_signal(number)
        assert not came
    assert came == [signal.SIGALRM, signal.SIGUSR1, signal.SIGALRM]
    assert [signal.getsignal(number) for number in HEARD] == before
    signal.raise_signal(signal.SIGUSR1)
    assert len(came) == 4


def test_one_inside_another_goes_on_with_it(came):
    with HandlersWait():
        with HandlersWait():
            signal.raise_signal(signal.SIGUSR1)
        assert not came
    assert came == [signal.SIGUSR1]


def test_a_process_that_is_forked_meanwhile_hears_at_once(came):
    with HandlersWait():
        if not (forked := os.fork()):
            signal.raise_signal(signal.SIGUSR1)
            os._exit(len(came))
        assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 1


def test_what_goes_wrong_inside_is_told_and_handlers_are_there_again(came):
    before = [signal.getsignal(number) for number in HEARD]

    def goes_wrong():
        with HandlersWait():
            signal.raise_signal(signal.SIGUSR1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        goes_wrong()
    assert came == [signal.SIGUSR1]
    assert [signal.getsignal(number) for number in HEARD] == before


def test_one_that_raises_leaves_the_others_where_they_were(came):
    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    with pytest.raises(TimeoutError), HandlersWait():
        signal.raise_signal(signal.SIGALRM)
    assert signal.getsignal(signal.SIGALRM) is late
    signal.raise_signal(signal.SIGUSR1)
    assert came == [signal.SIGUSR1]


def test_other_threads_change_no_handler(came):
    before, seen = signal.getsignal(signal.SIGUSR1), []

    def inside():
        with HandlersWait():
            seen.append(signal.getsignal(signal.SIGUSR1))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [before]
