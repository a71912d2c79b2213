"""What a person sees while a flow runs: a bar on a terminal, a line a step elsewhere. Always on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tasks.records import printable

console = Console(stderr=True)
LEVELS = {"error": "red", "warning": "yellow", "note": "dim"}
"""Styles of the data doctor's findings."""


def _print(text: str, style: str = "") -> None:
    console.print(printable(text), style=style, highlight=False, markup=False, soft_wrap=not console.is_terminal)


class Steps:
    """Names the current stage and counts its steps; a `tasks.records.Progress`."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None) if progress else None

    def begin(self, text: str, steps: int | None = None) -> None:
        """A stage begins, of so many steps where they are known."""
        if self._progress is not None and self._task is not None:
            self._progress.remove_task(self._task)
            self._task = self._progress.add_task(text, total=steps)
        else:
            _print(f"{text}{f' ({steps})' if steps else ''}")

    def done(self, text: str) -> None:
        """A step is finished."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task)
        _print(f"  {text}", "dim")

    def say(self, text: str, style: str = "") -> None:
        """Prints a line."""
        _print(f"  {text}", style)


@contextmanager
def steps() -> Iterator[Steps]:
    """Shows how far a run is: a bar on a terminal, a line a step elsewhere."""
    if not console.is_terminal:
        yield Steps(None)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Steps(progress)
