"""How many threads compute, and how they wait for each other.

OpenMP's threads spin between parallel regions, each at full speed for milliseconds, unless they are told to sleep: on an idle machine that
costs nothing, beside other work it takes the processor from the thread that all wait for. LightGBM and XGBoost leave it to the user to set
``OMP_WAIT_POLICY``; threadpoolctl, which scikit-learn uses, limits how many threads there are but cannot change how they wait. Here
importing the core asks for sleeping threads before numba starts any; what the environment already says stays. The library reads it when
it is loaded: import ``ltr`` before others that bring OpenMP.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numba

WAITING = {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}
"""For GNU's and LLVM's OpenMP."""

for _name, _value in WAITING.items():
    os.environ.setdefault(_name, _value)


@contextmanager
def threads(n: int | None) -> Iterator[int]:
    """Within it, what this thread of Python computes takes at most n threads; None and −1: no fewer than before. No result depends on it.

    Yields how many they are.

    >>> with threads(1) as n:
    ...     n
    1

    Raises:
        ValueError: for anything else than a number of threads.
    """
    if n is not None and n != -1 and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
        raise ValueError(f"threads: {n!r} is neither a number of threads nor -1 or None for all")
    before = numba.get_num_threads()
    numba.set_num_threads(before if n in (None, -1) else min(n, before))
    try:
        yield numba.get_num_threads()
    finally:
        numba.set_num_threads(before)
