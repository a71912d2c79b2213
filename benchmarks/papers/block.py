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


def whence(runs: Runs, drawn_against: str | None = None, of_training: int | None = None) -> str:
    """Which runs the numbers are of, at what size, and which settings were at an end of what was tried.

    Args:
        drawn_against: what a figure is drawn against; each of its cells is chosen alone, and what of them is at an end is counted.
        of_training: training queries of the paper, where a run is told by its share of these.
    """
    parts = []
    for title, run in runs:
        sizes = " + ".join(" / ".join(f"{n:,}" for n in fold) for fold in run["data"]["queries"][:1])
        folds = len(run["data"]["queries"])
        n_training = run["data"]["queries"][0][0]
        told = f"{100 * n_training / of_training:.2g} % of the paper's {of_training:,} to train" if of_training else run["cut"]
        cut = f", {told}" if told else ""
        if drawn_against:
            ends = at_ends(run, drawn_against)
        else:
            ends = [f"{name}: {note}" for name, one in run["rankers"].items() for note in one["at an end"]]
        told_ends = f"; at the end of its grid: {', '.join(ends)}" if ends else ""
        several = f", the first of {folds} folds" if folds > 1 else ""
        parts.append(f"{title}: run `{run['run'][:8]}`, {sizes} training / validation / test queries{several}{cut}{told_ends}")
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


def chosen_cells(run: Entry, drawn_against: str, measure_of: Callable[[str], str]) -> dict[tuple[str, float, int], Entry]:
    """Of a run's cells the best on validation queries by ranker, value of what is drawn against, and fold.

    Args:
        measure_of: the measure that a ranker is chosen by.
    """
    best: dict[tuple[str, float, int], Entry] = {}
    for cell in run["cells"]:
        if drawn_against not in cell["point"]:
            continue
        place, valid = (cell["ranker"], cell["point"][drawn_against], cell["fold"]), f"valid_{measure_of(cell['ranker'])}"
        if cell.get(valid) is not None and (place not in best or cell[valid] > best[place][valid]):
            best[place] = cell
    return best


def at_ends(run: Entry, drawn_against: str) -> list[str]:
    """How many of the chosen cells of a figure have a setting at an end of three or more numbers that were tried. An end whose neighbour is as good
    on validation queries is none."""
    chosen = chosen_cells(run, drawn_against, lambda name: measure_by_title(name, run["select"]))
    told = []
    for path in dict.fromkeys(path for cell in run["cells"] for path in cell["point"] if path != drawn_against):
        ends, among = [], 0
        for (name, _, fold), cell in chosen.items():
            others = {**cell["point"], path: None}
            beside = {
                one["point"][path]: one
                for one in run["cells"]
                if (one["ranker"], one["fold"]) == (name, fold) and path in one["point"] and {**one["point"], path: None} == others
            }
            tried = sorted(value for value in beside if isinstance(value, int | float) and not isinstance(value, bool))
            if len(tried) < max(3, len(beside)):
                continue
            among += 1
            for end, neighbour in ((0, 1), (-1, -2)):
                valid, value = f"valid_{measure_by_title(name, run['select'])}", cell["point"][path]
                if value == tried[end] and (beside[tried[neighbour]].get(valid) or 0.0) < cell[valid]:
                    ends.append("largest" if end else "smallest")
        counts = [f"the {end} in {ends.count(end)}" for end in ("smallest", "largest") if end in ends]
        if counts:
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
