"""What benchmarks measured: every table in docs/benchmarks.json under a key, and from there in docs/results.md between markers.

    <!-- benchmark: nets.epoch -->
    … the table, and below it where and with what it was measured
    <!-- end -->

python benchmarks/results.py        # writes the tables of the page anew
"""

import json
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
FILE, PAGE = DOCS / "benchmarks.json", DOCS / "results.md"
FIELDS = ("title", "machine", "date", "versions", "columns", "rows", "notes")
BLOCK = re.compile(r"(<!-- benchmark: (\S+) -->\n).*?(<!-- end -->\n)", re.S)


def processor() -> str:
    """The processor's model where the system tells it, and its architecture."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)", info.read_text(), re.M) if info.is_file() else []
    return f"{names[0]} ({platform.machine()})" if names else platform.machine()


@dataclass
class Table:
    """A table that is printed as it grows, and recorded once it is whole.

    Args:
        peers: distributions whose versions are noted beside Python's and ours.
        threads: those that worked; None: all that numba has.
        keep: False where the sizes or the data are others than those of the page; the table is printed only.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    peers: tuple[str, ...] = ()
    threads: int | None = None
    keep: bool = True
    notes: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    file: Path = FILE

    def entry(self) -> dict[str, Any]:
        import numba

        threads = self.threads or numba.config.NUMBA_NUM_THREADS
        return {
            "title": self.title,
            "machine": f"{processor()}, {threads} thread{'s' if threads > 1 else ''}",
            "date": date.today().isoformat(),
            "versions": {"python": platform.python_version()} | {name: version(name) for name in ("numba", "numpy", *self.peers)},
            "columns": list(self.columns),
            "rows": self.rows,
            "notes": " ".join(self.notes),
        }

    def __post_init__(self) -> None:
        print(f"{self.title}\n{source(self.entry())}\n\n{line(self.columns)}\n{rule(self.columns)}", flush=True)

    def add(self, *cells: str) -> None:
        """A row; it is printed at once."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.key}: {len(cells)} cells for {len(self.columns)} columns: {cells}")
        self.rows.append(list(cells))
        print(line(cells), flush=True)

    def note(self, sentence: str) -> None:
        """A sentence below the table."""
        self.notes.append(sentence)

    def record(self) -> None:
        """Prints the notes and puts the table into the file."""
        print("".join(f"\n{note}" for note in self.notes), flush=True)
        if self.keep:
            record(self.key, self.entry(), self.file)


def record(key: str, entry: Mapping[str, Any], file: Path = FILE) -> None:
    """Puts a table in the file in place of the one of this key; the others stay as they are. The file is replaced in one step."""
    if set(entry) != set(FIELDS):
        raise ValueError(f"{key}: a table has {', '.join(FIELDS)}, this one {', '.join(entry)}")
    tables = {**read(file), key: dict(entry)}
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_text(json.dumps(tables, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(file)


def read(file: Path = FILE) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def rule(cells: Iterable[str]) -> str:
    return "|---" * len(list(cells)) + "|"


def source(entry: Mapping[str, Any]) -> str:
    """Where, when and with what a table was measured, as far as it is known."""
    versions = ", ".join(f"{name} {number}" for name, number in entry["versions"].items())
    return "; ".join(part for part in (entry["machine"], entry["date"], versions) if part)


def markdown(entry: Mapping[str, Any]) -> str:
    """One entry as Markdown."""
    lines = [line(entry["columns"]), rule(entry["columns"]), *map(line, entry["rows"])]
    below = f"*{source(entry)}.*{' ' * bool(entry['notes'])}{entry['notes']}"
    return "\n".join([*lines, "", below]) + "\n"


def render(page: str, tables: Mapping[str, Any]) -> str:
    """The page with every table between markers made anew."""

    return filled(page, BLOCK, sorted(tables), lambda key: markdown(tables[key]))


def filled(page: str, marked: re.Pattern[str], known: Iterable[str], text: Callable[[str], str]) -> str:
    """The page with what stands between markers made anew; `marked` finds a beginning, its key and an end."""
    keys = list(known)

    def made(found: re.Match[str]) -> str:
        begin, key, end = found.groups()
        if key not in keys:
            raise ValueError(f"no table {key!r}; there are {', '.join(keys)}")
        return f"{begin}{text(key)}{end}"

    return marked.sub(made, page)


def rewrite(path: Path, render: Callable[[str], str]) -> None:
    """Makes a page anew, and says whether it changed."""
    page = path.read_text(encoding="utf-8")
    made = render(page)
    if made != page:
        path.write_text(made, encoding="utf-8")
    print(f"{path.name}: {'written' if made != page else 'as it was'}", file=sys.stderr)


def main() -> None:
    rewrite(PAGE, lambda page: render(page, read()))


if __name__ == "__main__":
    main()
