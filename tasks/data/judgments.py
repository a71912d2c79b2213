"""Judgments as tools leave them: one table of query, document and label, whatever wrote them.

| form | how it is known |
|---|---|
| TREC qrels, ``query 0 document label`` | anything else |
| OpenSearch's search-relevance workbench, ``judgmentRatings`` | ``.json`` |
| Quepid's CSV, a row a rating | ``.csv`` or ``.tsv`` with columns for query, document and rating |
| hello-ltr's judgment file (Elasticsearch LTR's examples), ``4 qid:1 # 7555 Rambo`` below ``# qid:1: rambo*1`` | its first lines |

In all but the first a query is named by its text, as feature logs and UBI name it.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from ltr.data.arrays import few_of
from tasks.data.files import located
from tasks.data.json_lines import read_json_file, text_of
from tasks.data.plain_number import plain_number
from tasks.data.tables import SEPARATORS, header_of, is_table, quote_of, require_plain
from tasks.data.trec import PAIR, QRELS, first_line, read_trec
from tasks.records import DataError, number_of

Row = tuple[int, str, str, str]
"""Line, query, document and rating, as they are written; a rating may be empty."""

_QUERY, _DOCUMENT, _RATING = (
    ("query", "querytext", "userquery", "keywords"),
    ("docid", "documentid", "document", "doc", "id"),
    ("rating", "grade", "judgement", "judgment", "label", "score"),
)
"""What columns are called, the likelier name first: an ``id`` beside a ``docid`` is that of the row."""
_HEADER = re.compile(r"#\s*qid:(\S+?):\s*(.*?)(?:\*([\d.]+))?\s*$")
_GRADED = re.compile(r"(\S+)\s+qid:(\S+?)\s+#\s*(?!docid\s*=)(\S+)")
_FEATURE = re.compile(r"[^#]*\sqid:\S+\s+\d+:")
_LOOKED_AT = 100
"""Lines of a text that are judgments without features, or a data set."""


def read_judgments(paths: Sequence[Path]) -> tuple[pl.DataFrame, list[str]]:
    """All judgments of some files: ``query``, ``document`` and ``label``; and sentences about what was left out.

    Raises:
        DataError: naming file, line or element, value and rule, for a line of another form, a rating that is no number, and a document that
            a query has with two ratings.
    """
    tables, notes = [], []
    for path in paths:
        reader = _reader(located(path))
        if reader is None:
            tables.append(read_trec([path], QRELS))
            continue
        table, said = _table(path, reader(located(path)))
        tables.append(table)
        notes += said
    joined = pl.concat(tables)
    twice = joined.filter(pl.struct(PAIR).is_duplicated())
    if twice.height:
        query, document = twice.row(0)[:2]
        raise DataError(
            f"{', '.join(map(str, paths))}: query {query!r}, document {document!r}: it is judged in two places; each pair must have one judgment"
        )
    return joined, notes


def is_judgments(path: Path, label: str = "label") -> bool:
    """Whether a file holds judgments of another form than TREC's, which needs more than a name to be told from a run or a data set; a table
    does where it has Quepid's columns and none of the name `label`."""
    if path.suffix.lower() in SEPARATORS:
        header = header_of(path)
        return label not in header and {"docid", "rating"} <= set(map(_plain, header))
    return not is_table(path) and _reader(path) is not None and not has_features(path)


def has_features(path: Path) -> bool:
    """Whether one of the first lines of a text is of a data set."""
    with open(path, encoding="utf-8-sig", errors="backslashreplace") as file:
        return any(_FEATURE.match(line) for line in islice(file, _LOOKED_AT))


def _reader(path: Path) -> Callable[[Path], Iterator[Row]] | None:
    """The reader of a file's form; None for TREC's."""
    suffix = path.suffix.lower()
    if suffix == ".json":
        return _of_workbench
    if suffix in SEPARATORS and not is_qrels(path):
        return _of_quepid
    if suffix == ".parquet":
        raise DataError(f"{path}: judgments are TREC qrels, JSON of the workbench, CSV of Quepid, or hello-ltr's text")
    require_plain(path)
    with open(path, encoding="utf-8-sig", errors="backslashreplace") as file:
        for line in file:
            if _HEADER.match(line.strip()):
                return _of_hello_ltr
            if line.strip() and not line.lstrip().startswith("#"):
                return _of_hello_ltr if _GRADED.match(line.strip()) else None
    return None


def is_qrels(path: Path) -> bool:
    """Whether a text begins as TREC's qrels do, whatever its name is: MS MARCO's end with .tsv."""
    return re.fullmatch(r"\S+[ \t]+(?!qid:)\S+[ \t]+\S+[ \t]+-?\d+", first_line(path)) is not None


def _table(path: Path, rows: Iterator[Row]) -> tuple[pl.DataFrame, list[str]]:
    seen: dict[tuple[str, str], float] = {}
    unrated = repeated = 0
    for line, query, document, rating in rows:
        where = f"{path}, line {line}" if line else str(path)
        for what, value in (("query", query), ("document id", document)):
            if not value:
                raise DataError(f"{where}: the {what} is empty: a judgment must name its query and its document")
        if not rating:
            unrated += 1
            continue
        try:
            label = plain_number(rating)
        except ValueError:
            label = -1.0
        if label < 0:
            raise DataError(
                f"{where}: query {query[:40]!r}, document {document[:40]!r}: rating {rating[:40]!r}: a rating must be a number, 0 or more"
            )
        before = seen.setdefault((query, document), label)
        if before != label:
            raise DataError(
                f"{where}: query {query[:40]!r}, document {document[:40]!r}: rated {label:g} here and {before:g} above; each pair must have one rating"
            )
        repeated += 1
    if not seen:
        raise DataError(f"{path}: no judgment in it")
    repeated -= len(seen)
    counts = ((unrated, "document", "with an empty rating: not judged"), (repeated, "rating", "given before: left out"))
    notes = [f"{path.name}: {number_of(len({query for query, _ in seen}), 'query')}, {number_of(len(seen), 'judgment')}"]
    notes += [f"{path.name}: {number_of(count, noun)} {what}" for count, noun, what in counts if count]
    columns = {"query": [q for q, _ in seen], "document": [d for _, d in seen], "label": list(seen.values())}
    return pl.DataFrame(columns, schema={"query": pl.String, "document": pl.String, "label": pl.Float64}), notes


def _of_workbench(path: Path) -> Iterator[Row]:
    written = read_json_file(path)
    source = written.get("_source", written) if isinstance(written, dict) else written
    queries = source.get("judgmentRatings") if isinstance(source, dict) else source
    if not isinstance(queries, list):
        raise DataError(
            f"{path}: no judgmentRatings: the workbench's judgments are {{'judgmentRatings': [{{'query': …, 'ratings': […]}}]}}"
        )
    for number, one in enumerate(queries):
        ratings = one.get("ratings") if isinstance(one, dict) else None
        if not isinstance(ratings, list):
            raise DataError(f"{path}: judgmentRatings[{number}]: {_shown(one)}: it must have a query and ratings")
        for place, rating in enumerate(ratings):
            if not isinstance(rating, dict) or not {"docId", "rating"} <= set(rating):
                raise DataError(
                    f"{path}: judgmentRatings[{number}].ratings[{place}]: {_shown(rating)}: it must have a docId and a rating"
                )
            yield 0, text_of(one.get("query")), text_of(rating["docId"]), _rating(rating["rating"])


def _rating(value: Any) -> str:
    return _shown(value) if isinstance(value, bool | list | dict) else text_of(value)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def _plain(name: str) -> str:
    """A column's name without capitals, spaces and marks."""
    return re.sub(r"[^a-z]", "", name.lower())


def _of_quepid(path: Path) -> Iterator[Row]:
    require_plain(path)
    with open(path, newline="", encoding="utf-8-sig", errors="backslashreplace") as file:
        separator = SEPARATORS[path.suffix.lower()]
        lines = csv.reader(file, delimiter=separator, strict=True, quoting=csv.QUOTE_MINIMAL if quote_of(path) else csv.QUOTE_NONE)
        header = next(lines, [])
        plain = [_plain(name) for name in header]
        places = []
        for what, names in (("query", _QUERY), ("document", _DOCUMENT), ("rating", _RATING)):
            found = [plain.index(name) for name in names if name in plain]
            if not found:
                raise DataError(
                    f"{path}, line 1: no column for the {what}; there are: {few_of(header)} (Quepid writes query,docid,rating)"
                )
            if plain.count(plain[found[0]]) > 1:
                raise DataError(f"{path}, line 1: two columns are called {header[found[0]]!r}; which is the {what}?")
            places.append(found[0])
        for fields in _strictly(path, lines):
            if not fields:
                continue
            if any("\n" in field for field in fields):
                raise DataError(f"{path}, line {lines.line_num}: a quoted field begins on a line above and ends here")
            if len(fields) != len(header):
                raise DataError(f"{path}, line {lines.line_num}: {number_of(len(fields), 'field')}; the header has {len(header)}")
            query, document, rating = (fields[k].strip() for k in places)
            yield lines.line_num, query, document, rating


def _strictly(path: Path, lines: Any) -> Iterator[list[str]]:
    """The rows of ``csv.reader``, with the line of what is wrong."""
    try:
        yield from lines
    except csv.Error as error:
        raise DataError(
            f"{path}, line {lines.line_num}: {error}: quotes must enclose a whole field, and be doubled within it"
        ) from None


def _of_hello_ltr(path: Path) -> Iterator[Row]:
    texts: dict[str, str] = {}
    with open(path, encoding="utf-8-sig", errors="backslashreplace") as file:
        for number, line in enumerate(file, 1):
            if named := _HEADER.match(line.strip()):
                if texts.setdefault(named[1], named[2]) != named[2]:
                    raise DataError(f"{path}, line {number}: {line.strip()[:60]!r}: qid {named[1]} was {texts[named[1]]!r} before")
            elif line.strip() and not line.lstrip().startswith("#"):
                graded = _GRADED.match(line.strip())
                if graded is None:
                    raise DataError(f"{path}, line {number}: {line.strip()[:60]!r}: a judgment must be 'GRADE qid:N # DOCUMENT'")
                if graded[2] not in texts:
                    raise DataError(
                        f"{path}, line {number}: {line.strip()[:60]!r}: missing header line '# qid:{graded[2]}: TEXT' above"
                    )
                yield number, texts[graded[2]], graded[3], graded[1]
