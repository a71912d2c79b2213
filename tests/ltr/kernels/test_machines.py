"""Machines that sum together what each of them has, and one that is alone."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np

from ltr.kernels.machines import ALONE, Machines


def together(n, work):
    """``work(machine)`` of n machines, each a thread of this process; what each returns."""
    meeting, boxes = Barrier(n), [[np.zeros(0, np.int64)] * n for _ in range(n)]

    def machine(place):
        def exchange(sent):
            for to, array in enumerate(sent):
                assert array.dtype == np.int64
                boxes[to][place] = array.copy()
            meeting.wait()
            received = list(boxes[place])
            meeting.wait()
            return received

        return Machines(place, n, exchange)

    with ThreadPoolExecutor(n) as threads:
        return list(threads.map(work, [machine(place) for place in range(n)]))


def test_all_machines_come_to_the_same_sums_and_maxima():
    values = np.random.default_rng(0).normal(size=(3, 4))
    for sums, largest in together(3, lambda own: (own.summed(np.full(2, own.place + 1)), own.largest(values[own.place]))):
        assert sums.tolist() == [6, 6]
        assert np.array_equal(largest, values.max(axis=0))


def test_one_alone_has_its_own():
    assert ALONE.summed(np.array([1, 2])).tolist() == [1, 2]
    assert ALONE.largest(np.array([0.5, -1.0])).tolist() == [0.5, -1.0]
