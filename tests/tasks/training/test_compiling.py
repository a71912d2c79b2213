"""Seconds that go into kernels are known apart, thread by thread."""

import threading
import time

from numba.core.compiler_lock import global_compiler_lock

from tasks.training.compiling import is_compiling, seconds_compiling


def test_the_clock_counts_each_second_of_this_thread_once():
    before = seconds_compiling()
    with global_compiler_lock, global_compiler_lock:
        assert is_compiling()
        time.sleep(0.2)
    assert not is_compiling()
    assert 0.2 <= seconds_compiling() - before < 0.35


def test_waiting_for_another_thread_counts_and_its_own_work_does_not():
    held = threading.Event()

    def compiles():
        with global_compiler_lock:
            held.set()
            time.sleep(0.3)

    before = seconds_compiling()
    other = threading.Thread(target=compiles)
    other.start()
    held.wait()
    time.sleep(0.1)
    assert seconds_compiling() == before
    with global_compiler_lock:
        pass
    other.join()
    assert 0.1 < seconds_compiling() - before < 0.3
