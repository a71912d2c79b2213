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


def whence(runs: Runs, of_training: int | None = None) -> str:
    """Which runs the numbers are of, at what size, and which settings were at an end of what was tried. Of a figure, runs on the same data with
    several seeds are told together.

    Args:
        of_training: training queries of the paper, where a run is told by its share of these.
    """
    alike: dict[tuple[str, str], list[tuple[str, Entry]]] = {}
    for title, run in runs:
        of_data = title.split(",")[0] if run["cells"] or "trace" in run else title
        alike.setdefault((of_data, _size(run, of_training)), []).append((title, run))
    parts = []
    for (of_data, size), found in alike.items():
        titles, of_seeds = zip(*found, strict=True)
        notes = dict.fromkeys(
            f"{name}: {note}" for run in of_seeds for name, one in run["rankers"].items() for note in one["at an end"]
        )
        cells = [cell for run in of_seeds for cell in run["cells"]]
        ends = at_ends(cells) if cells else list(notes)
        told_ends = f"; at the end of its grid: {', '.join(ends)}" if ends else ""
        ids = ", ".join(f"`{run['run'][:8]}`" for run in of_seeds)
        several = len(of_seeds) > 1
        parts.append(f"{of_data if several else titles[0]}: run{'s' if several else ''} {ids}, {size}{told_ends}")
    return f"*{'. '.join(parts)}.* SE in brackets; bold: the highest."


def _size(run: Entry, of_training: int | None) -> str:
    sizes = " + ".join(" / ".join(f"{n:,}" for n in fold) for fold in run["data"]["queries"][:1])
    folds, n_training = len(run["data"]["queries"]), run["data"]["queries"][0][0]
    told = f"{100 * n_training / of_training:.2g} % of the paper's {of_training:,} to train" if of_training else run["cut"]
    several = f", the first of {folds} folds" if folds > 1 else ""
    return f"{sizes} training / validation / test queries{several}{f', {told}' if told else ''}"


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


def drawn_cells(run: Entry, drawn_against: str) -> dict[tuple[str, float, int], Entry]:
    """A figure's cells by ranker, value of what is drawn against, and fold: each was the best on validation queries."""
    return {(cell["ranker"], cell["point"][drawn_against], cell["fold"]): cell for cell in run["cells"]}


def at_ends(cells: Sequence[Entry]) -> list[str]:
    """How many of a figure's cells have a setting at an end of what was tried. An end whose neighbour is as good on validation queries is none."""
    told = []
    for path in dict.fromkeys(path for cell in cells for path in cell["point"]):
        ends = [
            end
            for cell in cells
            for end in ("smallest", "largest")
            for note in cell["at an end"]
            if note.startswith(f"{path} ") and f" the {end} " in note
        ]
        counts = [f"the {end} in {ends.count(end)}" for end in dict.fromkeys(sorted(ends, reverse=True))]
        if counts:
            among = sum(path in cell["point"] for cell in cells)
            told.append(f"of {among} chosen cells {path} is {' and '.join(counts)}")
    return told


MEASURE_BY_TITLE = {
    "ndcg": "ndcg",
    "ndcg-10": "ndcg_10",
    "map": "map",
    **dict.fromkeys(("mrr", "mrr-exact", "mrr-full-batch", "mrr-exact-full-batch"), "mrr"),
}
"""The measure that a ranker ``trained-…`` is trained for, and chosen by."""


def measure_by_title(name: str, usual: str) -> str:
    return MEASURE_BY_TITLE.get(name.removeprefix("trained-"), usual)


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
