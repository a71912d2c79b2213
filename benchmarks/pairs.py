"""Timing two functions in turn, A B A B …, so that a machine whose speed drifts slows both, and a check that the peer had the machine."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds of our runs and of the peer's, pair by pair."""

    ours: list[float]
    peer: list[float]
    busy: tuple[float, float] = (math.nan, math.nan)
    """Processor seconds a second of both, medians."""

    @property
    def ratios(self) -> list[float]:
        return sorted(a / b for a, b in zip(self.ours, self.peer, strict=True))

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Of a table with the `columns`."""
        ratios = self.ratios
        middle = statistics.median(ratios)
        seconds = (f"{statistics.median(times):.4f}" for times in (self.ours, self.peer))
        return (*seconds, f"{middle:.3f} ({ratios[0]:.3f}–{ratios[-1]:.3f})", f"{1 / middle:.1f}×")


def columns(peer: str, what: str = "what") -> tuple[str, str, str, str, str]:
    return (what, "ours, s", f"{peer}, s", "ours / peer: median (min–max)", "faster")


def alternate(ours: Callable[[], Any], peer: Callable[[], Any], runs: int = 7) -> Timing:
    """Both once to warm up, then `runs` times in turn."""
    ours()
    peer()
    times: tuple[list[float], list[float]] = ([], [])
    shares: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for function, kept, busy in zip((ours, peer), times, shares, strict=True):
            started, worked = time.perf_counter(), time.process_time()
            function()
            kept.append(time.perf_counter() - started)
            busy.append((time.process_time() - worked) / kept[-1])
    return Timing(*times, (statistics.median(shares[0]), statistics.median(shares[1])))


LEAST_BUSY = 1.85
"""Of two processors, what a peer that uses both must have had."""


def expect_both_processors(peer: str, busy: float) -> None:
    """Refuses a comparison with a peer that two threads were meant for and that had less of the machine.

    Raises:
        SystemExit: before anything is recorded.
    """
    if busy < LEAST_BUSY:
        raise SystemExit(f"{peer} had {busy:.2f} processors of 2: something else ran beside it, nothing is recorded")
