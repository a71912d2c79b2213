"""Seconds that go into kernels and not into what they compute: compiling them, reading them from the cache, waiting for a thread that does.

numba tells all three by the event of its lock (``numba:compiler_lock``), in the thread where they happen.
"""

import threading
import time
from typing import Any

from numba.core import event


class _Clock(event.Listener):
    """Adds up, thread by thread; locks inside each other count once."""

    def __init__(self) -> None:
        self.here = threading.local()
        self.busy = 0

    def on_start(self, event: Any) -> None:
        depth = getattr(self.here, "depth", 0)
        if depth == 0:
            self.here.began = time.perf_counter()
            self.busy += 1
        self.here.depth = depth + 1

    def on_end(self, event: Any) -> None:
        if getattr(self.here, "depth", 0):  # 0 where the lock was taken before anybody listened
            self.here.depth -= 1
            if self.here.depth == 0:
                self.busy -= 1
                self.here.seconds = getattr(self.here, "seconds", 0.0) + time.perf_counter() - self.here.began


_CLOCK = _Clock()
event.register("numba:compiler_lock", _CLOCK)


def seconds_compiling() -> float:
    """Of this thread, since this module was imported."""
    return float(getattr(_CLOCK.here, "seconds", 0.0))


def is_compiling() -> bool:
    """Whether any thread of this process does at this moment."""
    return _CLOCK.busy > 0
