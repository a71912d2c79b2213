"""How many threads compute, and how they wait for each other.

OpenMP's threads spin between parallel regions, GNU's for some milliseconds as it comes. Beside other work that takes the processor from the
thread that all wait for; threads that sleep at once are woken up hundreds of times a tree, and two of them are then hardly faster than one.
LightGBM and XGBoost leave it to the user to set ``OMP_WAIT_POLICY``; threadpoolctl, which scikit-learn uses, limits how many threads there
are but cannot change how they wait. Here importing the core asks for a short spin, some tens of microseconds, and sleep after it, before
numba starts any thread, unless the environment says how to wait. The library reads it when it is loaded: import ``ltr`` before others that
bring OpenMP.
"""

import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

import numba
import numpy as np

WAITING = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}
"""For GNU's OpenMP in turns of its loop, for LLVM's in milliseconds."""


def wait_briefly(environment: MutableMapping[str, str]) -> None:
    """Writes how threads wait into an environment that does not say it in OpenMP's own word."""
    if "OMP_WAIT_POLICY" not in environment:
        for name, value in WAITING.items():
            environment.setdefault(name, value)


wait_briefly(os.environ)


@contextmanager
def threads(n: int | None) -> Iterator[int]:
    """Context manager that limits computations of this Python thread to n threads; None and −1 leave the limit as it is. No result depends on it.

    Yields the number of threads.

    >>> with threads(1) as n:
    ...     n
    1

    Raises:
        ValueError: for anything but a number of threads.
    """
    if n is not None and n != -1 and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise ValueError(f"threads: {n!r} is neither a number of threads nor -1 or None for all")
    before = numba.get_num_threads()
    numba.set_num_threads(before if n in (None, -1) else min(int(n), before))
    try:
        yield numba.get_num_threads()
    finally:
        numba.set_num_threads(before)
