"""What a person sees while a flow runs: a bar on a terminal, a line a step elsewhere. Always on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

console = Console(stderr=True)


def _print(text: str, style: str = "") -> None:
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=not console.is_terminal)


class Steps:
    """Names the current step and counts its parts."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None) if progress else None

    def begin(self, text: str, parts: int | None = None) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.reset(self._task, total=parts, description=text)
        else:
            _print(f"{text}{f' ({parts})' if parts else ''}")

    def done(self, text: str) -> None:
        """One part is finished."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task)
        _print(f"  {text}", "dim")

    def say(self, text: str, style: str = "") -> None:
        _print(f"  {text}", style)


@contextmanager
def steps() -> Iterator[Steps]:
    if not console.is_terminal:
        yield Steps(None)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Steps(progress)
