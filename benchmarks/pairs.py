"""Timing two functions in turn, A B A B …, so that a machine whose speed drifts slows both."""

import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba


@dataclass(frozen=True)
class Timing:
    """Seconds of our runs and of the peer's, pair by pair."""

    ours: list[float]
    peer: list[float]

    @property
    def ratios(self) -> list[float]:
        return sorted(a / b for a, b in zip(self.ours, self.peer, strict=True))

    def row(self, name: str) -> str:
        ratios = self.ratios
        middle = statistics.median(ratios)
        return (
            f"| {name} | {statistics.median(self.ours):.4f} | {statistics.median(self.peer):.4f} | "
            f"{middle:.3f} ({ratios[0]:.3f}–{ratios[-1]:.3f}) | {1 / middle:.1f}× |"
        )


HEAD = "| what | ours, s | peer, s | ours / peer: median (min–max) | faster |\n|---|---|---|---|---|"


def alternate(ours: Callable[[], Any], peer: Callable[[], Any], runs: int = 7) -> Timing:
    """Both once to warm up, then `runs` times in turn."""
    ours()
    peer()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for function, kept in zip((ours, peer), times, strict=True):
            started = time.perf_counter()
            function()
            kept.append(time.perf_counter() - started)
    return Timing(*times)


def machine() -> str:
    """What the figures were measured on."""
    return f"{platform.machine()}, {numba.config.NUMBA_NUM_THREADS} threads, Python {platform.python_version()}, numba {numba.__version__}"
