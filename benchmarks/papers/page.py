"""docs/papers.md with the blocks between its markers, and the lines of its summary, made of docs/papers/."""

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks import papers
from benchmarks.papers import donmez2009, dubey2009, svore2011, unbiased
from benchmarks.papers.block import Entry
from benchmarks.results import DOCS, filled, rewrite
from tasks.report.results_file import read_results, write_results

PAGE, FOLDER = DOCS / "papers.md", DOCS / "papers"
MARKED = re.compile(r"(<!-- paper: (.+?) -->\n).*?(<!-- end -->\n)", re.S)
BLOCKS = {**donmez2009.BLOCKS, **svore2011.BLOCKS, **dubey2009.BLOCKS, **unbiased.BLOCKS}


def recorded(folder: Path = FOLDER) -> dict[str, Entry]:
    """All entries by the names of their runs."""
    return {
        name: one for file in sorted(folder.glob("*.json")) for name, one in json.loads(file.read_text(encoding="utf-8")).items()
    }


def block_text(key: str, entries: Mapping[str, Entry]) -> str:
    block = BLOCKS[key]
    runs = block.runs(entries)
    if not runs:
        return f"Not run yet at its whole length: `{block.names[0]}` is not recorded.\n\n**Verdict: not run.**\n"
    verdict, told = block.judge(runs)
    return (
        "\n".join([*block.table(runs), "", block.whence(runs), "", f"**Verdict: {verdict}.** {told[:1].upper()}{told[1:]}."]) + "\n"
    )


def render(page: str, entries: Mapping[str, Entry]) -> str:
    """The page with its blocks, and their lines of the summary, made anew."""
    page = filled(page, MARKED, BLOCKS, lambda key: block_text(key, entries))
    for block in BLOCKS.values():
        runs = block.runs(entries)
        verdict, told = block.judge(runs) if runs else ("not run", "not recorded at its whole length")
        if block.row:
            row = re.compile(rf"^(\|[^|]*\| {re.escape(block.row)}[^|]*\|[^|]*\|).*$", re.M)
            if not row.search(page):
                raise ValueError(f"the summary has no line that begins with {block.row}")
            page = row.sub(lambda found: f"{found[1]} {told} | {verdict} |", page, count=1)  # noqa: B023
    return page


def add(file: Path, folder: Path = FOLDER) -> None:
    """Takes over the entries of another file of results, each into the file of its paper."""
    folder.mkdir(exist_ok=True)
    if not file.is_file():
        raise FileNotFoundError(file)
    for name, one in read_results(file).items():
        own = folder / f"{name.split('-')[0]}.json"
        write_results({**read_results(own), name: one}, own)


def main() -> None:
    parser = argparse.ArgumentParser(description=papers.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=Path, nargs="*", default=[], metavar="FILE.json")
    for file in parser.parse_args().add:
        add(file)
    rewrite(PAGE, lambda page: render(page, recorded()))
