"""How far the trainings and certificates of this process are, for whoever waits for them. LightGBM and XGBoost say it by their callback `log_evaluation` or
`EvaluationMonitor`, a line every so many rounds; here one word says it of all cells that are under way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ltr.rankers.training import Callback, Progress

_UNDER_WAY: dict[str, tuple[int, int]] = {}
_CERTIFIED: dict[str, float] = {}
_AT_MOST = 3
"""Cells that are named."""


@contextmanager
def noting(label: str) -> Iterator[Callback]:
    """A callback of the training of the cell with this label, which is known by `how_far` until it ends."""

    def note(progress: Progress) -> None:
        _UNDER_WAY[label] = (progress.iteration, progress.n_iterations)

    try:
        yield note
    finally:
        _UNDER_WAY.pop(label, None)


@contextmanager
def certifying(label: str) -> Iterator[Callable[[float], object]]:
    """A `tick` of the certificate with this label, which is known by `how_far` until it ends."""

    def note(share: float) -> None:
        _CERTIFIED[label] = share

    try:
        yield note
    finally:
        _CERTIFIED.pop(label, None)


def how_far() -> str:
    """The cells under way, such as ``iteration 12 of 50 of net · hidden=10``, and the certificate, such as ``40% of net``; nothing where none is."""
    if certified := _CERTIFIED.copy():
        return "; ".join(f"{share:.0%} of {label}" for label, share in sorted(certified.items()))
    told = [f"{done:,} of {most:,} of {label}" for label, (done, most) in sorted(_UNDER_WAY.copy().items())]
    more = f" and {len(told) - _AT_MOST} more" if len(told) > _AT_MOST else ""
    return f"iteration {'; '.join(told[:_AT_MOST])}{more}" if told else ""
