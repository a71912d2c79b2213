"""A table of the papers' page: the recorded runs that it shows, and the rule by which they are judged."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.results import line, rule

SETS = {"": "artificial", "-ohsumed": "OHSUMED", "-mq2008": "MQ2008"}
"""Endings of runs' names, and the data that they stand for."""
Entry = Mapping[str, Any]
Judged = tuple[str, str]
"""The verdict, and what it rests on in a few words."""


@dataclass(frozen=True)
class Runs:
    """Recorded runs by what they are called in a table: the data that they are on, and the configuration where there are several."""

    found: Mapping[str, Entry]

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        return iter(self.found.items())

    def __bool__(self) -> bool:
        return bool(self.found)


def whence(runs: Runs) -> str:
    """Which runs the numbers are of, at what size, and which settings were at an end of what was tried."""
    parts = []
    for title, run in runs:
        sizes = " + ".join(" / ".join(f"{n:,}" for n in fold) for fold in run["data"]["queries"][:1])
        folds = len(run["data"]["queries"])
        cut = f", {run['cut']}" if run["cut"] else ""
        ends = [f"{name}: {note}" for name, one in run["rankers"].items() for note in one["at an end"]]
        at_ends = f"; at the end of its grid: {', '.join(ends)}" if ends else ""
        several = f", the first of {folds} folds" if folds > 1 else ""
        parts.append(f"{title}: run `{run['run'][:8]}`, {sizes} training / validation / test queries{several}{cut}{at_ends}")
    return f"*{'. '.join(parts)}.* SE in brackets; bold: the highest."


@dataclass(frozen=True)
class Block:
    """A table of the page.

    Attributes:
        names: of the configurations that give it.
        table: its lines.
        judge: what the runs come to.
        row: the first words of its line in the page's summary, where it has one.
        sets: what ends a run's name, and the data that this stands for.
        whence: the line below the table.
    """

    names: tuple[str, ...]
    table: Callable[[Runs], list[str]]
    judge: Callable[[Runs], Judged]
    row: str | None = None
    sets: Mapping[str, str] = field(default_factory=lambda: SETS)
    whence: Callable[[Runs], str] = whence

    def runs(self, entries: Mapping[str, Entry]) -> Runs:
        """Those of its runs that are recorded."""
        found = {}
        for name in self.names:
            for ending, title in self.sets.items():
                if name + ending in entries:
                    found[f"{name.split('-')[1]}, {title}" if len(self.names) > 1 else title] = entries[name + ending]
        return Runs(found)


def graded(got: Sequence[int], whole: int = 1) -> str:
    """The verdict on a claim of so many parts, of which each of several data sets shows so many."""
    return "holds" if min(got) == whole else "holds in part" if max(got) else "does not hold"


def head(cells: Sequence[str]) -> list[str]:
    """The first two lines of a table."""
    return [line(cells), rule(cells)]


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".replace("0.", ".", 1) if 0 <= value < 1 else f"{value:.4f}"


def shown(test: Sequence[float | None] | None, best: bool = False) -> str:
    if not test or test[0] is None:
        return ""
    mean = f"**{number(test[0])}**" if best else number(test[0])
    return mean if test[1] is None else f"{mean} ({number(test[1])})"
