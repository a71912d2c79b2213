"""Judgments in the forms of other tools, as `tasks.data.judgments` reads them: what one tool wrote another one opens."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from tasks.data.judgments import read_judgments
from tasks.data.tables import TABLES
from tasks.records import DataError
from tasks.store.state import require_output, written_whole

_SUFFIXES = {"quepid": ".csv", "workbench": ".json"}
"""Of forms that are known by their names."""
Write = Callable[[pl.DataFrame, Path], None]
"""``write(judgments, path)``: a table of query, document and label."""


def convert_judgments(paths: Sequence[Path], to: str, output: Path) -> tuple[int, list[str]]:
    """Writes the judgments of files of any form in another one; how many there are, and sentences about what was left out.

    Args:
        to: one of `FORMS`.

    Raises:
        DataError: as `read_judgments`; for a form that is none, what a form cannot say, an output that is one of the files, and one whose name
            says another form.
    """
    if to not in FORMS:
        raise DataError(f"judgments: --to {to}: there is no such form; choose from: {', '.join(FORMS)}")
    require_output(output, *paths)
    suffix = output.suffix.lower()
    if suffix in {*TABLES, ".json"} - {_SUFFIXES.get(to)}:
        meant = f"they are named {_SUFFIXES[to]}" if to in _SUFFIXES else "they are neither a table nor JSON, and have no such name"
        raise DataError(f"{output}: judgments in the form {to} would be read as something else by that name: {meant}")
    judgments, notes = read_judgments(paths)
    judgments = judgments.sort("query", "document", maintain_order=True)
    if to != "trec" and (below := judgments.filter(pl.col("label") < 0)).height:
        query, document, label = below.row(0)
        raise DataError(f"query {query!r}, document {document!r}: label {label:g}: {to} holds ratings of 0 and more")
    with written_whole(output) as partial:
        FORMS[to](judgments, partial)
    return judgments.height, notes


def _trec(judgments: pl.DataFrame, path: Path) -> None:
    """``query 0 document label``."""
    _require_words(judgments, "query", "TREC's qrels", "a query's name")
    _require_words(judgments, "document", "TREC's qrels", "a document's id")
    with open(path, "w", encoding="utf-8") as file:
        for query, document, label in judgments.iter_rows():
            if label != int(label):
                raise DataError(f"query {query!r}, document {document!r}: label {label:g}: TREC's qrels hold whole numbers")
            file.write(f"{query} 0 {document} {int(label)}\n")


def _quepid(judgments: pl.DataFrame, path: Path) -> None:
    """A row a rating, below ``query,docid,rating``."""
    for column in ("query", "document"):
        if (several := judgments[column].filter(judgments[column].str.contains("\n", literal=True))).len():
            raise DataError(f"{column} {several[0]!r}: a {column} of Quepid's CSV is one line; workbench takes any text")
    broken = judgments.select(pl.any_horizontal(pl.col("query", "document").str.contains("\r", literal=True)).any()).item()
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if broken else csv.QUOTE_MINIMAL)
        lines.writerow(("query", "docid", "rating"))
        lines.writerows((query, document, _plain(label)) for query, document, label in judgments.iter_rows())


def _workbench(judgments: pl.DataFrame, path: Path) -> None:
    """``judgmentRatings``, with ratings as text, as OpenSearch's search-relevance workbench stores them."""
    queries = [
        {"query": query, "ratings": [{"docId": document, "rating": _plain(label)} for _, document, label in own.iter_rows()]}
        for (query,), own in judgments.group_by("query", maintain_order=True)
    ]
    path.write_text(json.dumps({"judgmentRatings": queries}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _hello_ltr(judgments: pl.DataFrame, path: Path) -> None:
    """``4 qid:1 # 7555`` below ``# qid:1: rambo*1``, a query's weight, which is 1."""
    _require_words(judgments, "document", "hello-ltr's judgments", "a document's id")
    if (letor := judgments["document"].filter(judgments["document"].str.starts_with("docid="))).len():
        raise DataError(
            f"document {letor[0]!r}: after # that is an id as LETOR writes it, and not all of it; workbench takes any text"
        )
    groups = list(judgments.group_by("query", maintain_order=True))
    with open(path, "w", encoding="utf-8") as file:
        for number, ((query,), _) in enumerate(groups, 1):
            if query != " ".join(str(query).splitlines()).strip():
                raise DataError(f"query {query!r}: hello-ltr's judgments have a line for each, without spaces at its ends")
            file.write(f"# qid:{number}: {query}*1\n")
        for number, (_, own) in enumerate(groups, 1):
            for _, document, label in own.iter_rows():
                file.write(f"{_plain(label)} qid:{number} # {document}\n")


def _plain(label: float) -> str:
    """A label as people write it, with all its digits."""
    return str(int(label)) if label == int(label) else repr(label)


def _require_words(judgments: pl.DataFrame, column: str, form: str, what: str) -> None:
    spaced = next(
        (text for text in judgments[column] if text.split() != [text]), None
    )  # as Python splits, control characters among it
    if spaced is not None:
        raise DataError(f"{column} {spaced!r}: {what} is one word in {form}; workbench takes any text, and quepid what is one line")


FORMS: Mapping[str, Write] = {"trec": _trec, "quepid": _quepid, "workbench": _workbench, "hello-ltr": _hello_ltr}
"""How judgments are written, by name."""
