"""What a person sees while a command works: a bar on a terminal, a line a step elsewhere, and a word at least every ten seconds. Always on
standard error."""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from tasks.records import printable


class _Unheard(Console):
    """A console whose reader may go: rich would end the process, and with it the training that nobody asked to end (a worker of Prefect that is killed
    leaves its runs with a broken pipe, and a window that is closed leaves those in the background without a terminal)."""

    def _check_buffer(self) -> None:
        """Writes what was printed. A terminal that is closed, under a run that goes on behind it, is as good as a broken pipe."""
        try:
            super()._check_buffer()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            terminal = os.fstat(self.file.fileno()).st_rdev
            self._be_quiet(*(stream for stream in (1, 2) if os.fstat(stream).st_rdev == terminal))

    def on_broken_pipe(self) -> None:
        """What is still to be said goes nowhere, here and by other hands."""
        self._be_quiet()

    def _be_quiet(self, *others: int) -> None:
        """Writes nothing from here on, and lets other streams of the process go nowhere too: what a run prints at its end."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in {self.file.fileno(), *others}:
            os.dup2(nowhere, stream)
        os.close(nowhere)


console = _Unheard(stderr=True, emoji=False)  # `:a:` is a model of the ranker a
LEVELS = {"error": "red", "warning": "yellow", "note": "dim"}
"""Styles of the data doctor's findings."""
_FIRST, _SILENT = 1.5, 9.0
"""Seconds without a word until there is one, off a terminal: from the beginning, and later."""
_BESIDE = 30
"""Columns of a terminal that a bar, its count and its time take at least beside what is under way."""
_COMPILING = "compiling kernels, which are kept for the next time"


class Steps:
    """Names the current stage and counts its steps; a `tasks.records.Progress`."""

    is_compiling: Callable[[], bool] | None = None
    """Whether time goes into kernels, as `tasks.training.compiling` knows once numba is there."""
    how_far: Callable[[], str] | None = None
    """The cells that this process trains and their iterations, as `tasks.training.how_far` knows them."""
    last_word: float | None = None
    """When anything was said in this command: silence goes on from one of its parts to the next."""

    def __init__(self, progress: Progress | None, stage: str = "starting") -> None:
        self._progress, self._stage = progress, stage
        self._task = progress.add_task(stage, total=None) if progress else None
        self._began = time.monotonic()
        silent = 0.0 if Steps.last_word is None else self._began - Steps.last_word
        self._next = min(_FIRST, _SILENT - silent) if silent < _SILENT else _FIRST
        self._ended = threading.Event()
        threading.Thread(target=self._speak, daemon=True).start()

    def begin(self, text: str, steps: int | None = None) -> None:
        """A stage begins, of so many steps where they are known."""
        self._stage, self._began = text, time.monotonic()
        if self._progress is not None and self._task is not None:
            self._progress.remove_task(self._task)
            self._task = self._progress.add_task(text, total=steps)
            self._next = _SILENT
        else:
            self._print(f"{text}{f' ({steps})' if steps else ''}")

    def done(self, text: str) -> None:
        """A step is finished."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task)
        self._print(f"  {text}", "dim")

    def say(self, text: str, style: str = "") -> None:
        """Prints a line."""
        self._print(f"  {text}", style)

    def end(self) -> None:
        """No word comes after this."""
        self._ended.set()

    def _print(self, text: str, style: str = "") -> None:
        Steps.last_word = time.monotonic()
        self._next = Steps.last_word - self._began + _SILENT
        console.print(printable(text), style=style, highlight=False, markup=False, soft_wrap=not console.file.isatty())

    def _speak(self) -> None:
        """Says what is under way while nothing else is said; on a terminal the bar says it."""
        while not self._ended.wait(0.25):
            doing = self._doing()
            seconds = time.monotonic() - self._began
            if self._progress is not None and self._task is not None:
                with suppress(KeyError):  # another stage began just now
                    self._progress.update(self._task, description=printable(f"{self._stage}{doing}"))
            elif seconds >= self._next:
                started = self._next > _FIRST
                told = f"  {self._stage}, {seconds:.0f} s" if started else self._stage
                self._print(f"{told}{doing}", "dim")

    def _doing(self) -> str:
        """What the stage's time goes into, where that is known."""
        if self.is_compiling is not None and self.is_compiling():
            return f": {_COMPILING}"
        trained = self.how_far() if self.how_far is not None else ""
        return f": {trained}" if trained else ""


_shown: list[Steps] = []


def _can_be_drawn_on() -> bool:
    """Whether standard error is a terminal whose lines can be drawn anew: not one that is dumb (``TERM=dumb``), where a bar is nothing, and no file or
    pipe that only wants colours (``FORCE_COLOR``), where it is a line ten times a second."""
    return console.is_terminal and not console.is_dumb_terminal and console.file.isatty()


@contextmanager
def steps(stage: str = "starting") -> Iterator[Steps]:
    """Shows how far a command is: a bar on a terminal, a line a step elsewhere. Inside another one, that goes on."""
    if _shown:
        yield _shown[0]
        return
    described = TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True, max_width=max(console.width - _BESIDE, 1))
    )
    columns = (SpinnerColumn(), described, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False) if _can_be_drawn_on() else None
    if bar:
        bar.start()
    _shown.append(Steps(bar, stage))
    try:
        yield _shown[0]
    finally:
        _shown.pop().end()
        if bar:
            bar.stop()


def tell_training() -> None:
    """From here on stages say while kernels are compiled, and how far trainings are. This imports numba."""
    from tasks.training.compiling import is_compiling
    from tasks.training.how_far import how_far

    Steps.is_compiling, Steps.how_far = staticmethod(is_compiling), staticmethod(how_far)
