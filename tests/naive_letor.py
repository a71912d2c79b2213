"""LETOR text read strictly and slowly, line by line with regular expressions: the twin of `ltr.data.letor`."""

import re
from dataclasses import dataclass

LONGEST, WIDEST = 2048, 100_000
_NUMBER = rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:nan|inf|null))"
_LABEL, _FIELD = re.compile(_NUMBER), re.compile(rb"(\d+):(" + _NUMBER + rb")")
_BLANKS = re.compile(rb"[ \t\r]+")
_DOCUMENT = re.compile(rb"(?<![A-Za-z0-9_\-\x80-\xff])docid[ \t\r]*=[ \t\r]*([^ \t\r]*)")


@dataclass(frozen=True)
class Row:
    label: float
    query: bytes
    document: bytes
    values: dict[int, float]


def read(text: bytes) -> list[Row] | int:
    """The rows of a text in which every line has a qid, or the number of the first line that is wrong."""
    rows = []
    for number, line in enumerate(text.split(b"\n"), 1):
        body, _, comment = line.partition(b"#")
        tokens = [token for token in _BLANKS.split(body) if token]
        row = _row(tokens, comment) if tokens else None
        if (tokens and row is None) or re.search(rb"\r[ \t\r]*[^ \t\r]", comment):
            return number
        if row is not None:
            rows.append(row)
    return rows


def _row(tokens: list[bytes], comment: bytes) -> Row | None:
    if not _LABEL.fullmatch(tokens[0]) or len(tokens) < 2 or not tokens[1].startswith(b"qid:"):
        return None
    label, query, values = _value(tokens[0]), tokens[1][4:], {}
    if label < 0 or label == float("inf") or not 0 < len(query) <= LONGEST:
        return None
    for token in tokens[2:]:
        field = _FIELD.fullmatch(token)
        if field is None or not max(values, default=0) < int(field[1]) <= WIDEST:
            return None
        values[int(field[1])] = _value(field[2])
    named = _DOCUMENT.search(comment)
    document = named[1] if named else b""
    return None if len(document) > LONGEST or b"\0" in query + document else Row(label, query, document, values)


def _value(token: bytes) -> float:
    return float("nan") if token.lstrip(b"+-").lower() == b"null" else float(token)
