"""Bytes of LETOR / SVMlight text → arrays.

One line a document: ``LABEL [qid:QUERY] FEATURE:VALUE … [# comment]``, features sparse and rising, ``NULL`` or ``nan`` for a
missing value, ``docid = NAME`` in the comment for the document's id, ``\\n`` or ``\\r\\n`` line ends, empty lines and lines that
start with ``#`` skipped. The bytes are cut at line ends into pieces, which are read in two parallel passes: one that counts, and one
that writes straight into the arrays. No Python object is made, except for a wrong line.

Numbers whose digits make an integer below 2^53 (15 digits always do) are exact to the last bit of a double (Clinger 1990: such
an integer times or over a power of ten up to 10^22); longer ones are off by a few last bits of a double at most, which the float32
of a feature seldom sees.
"""

import re
from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ltr.data.digests import mix
from ltr.data.offsets import offsets_from_sizes
from ltr.data.queries import LARGEST_WHOLE

_POWERS = np.array([10.0**k for k in range(23)])
_PIECE = 1 << 18
_WIDEST = 100_000
_MOST_POWER = 1 << 40
"""More than digits that stand in front of an exponent can make up for."""
_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _COLON = 10, 13, 32, 9, 35, 58
_FNV_OFFSET, _FNV_PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)

LONGEST_ID = 2048
"""Bytes of the id of a query or a document at most: every id takes as much memory as the longest."""
RULES = {
    1: "a line must start with the label, a number",
    2: "the label must not be negative",
    3: "a field must be FEATURE:VALUE, with a number (or NULL) after the colon",
    4: "feature indices must start at 1 (a file that starts at 0 needs data.first_feature: 0)",
    5: "feature indices must rise within a line",
    6: "every line must have a qid, or none",
    7: "the label must be finite",
    8: f"feature indices must be at most {_WIDEST:,} (99,999 with data.first_feature: 0)",
    9: "lines must end with LF or CR LF; text after a CR inside a comment would be lost",
    10: f"ids of queries and documents must have at most {LONGEST_ID:,} bytes",
    11: "ids of queries and documents must not contain a NUL byte",
}
"""What a line must be like, by the number that stands for a broken rule."""
_FIELD = re.compile(rb"(\d+):[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf|null)", re.IGNORECASE)
_LONGEST = 1 << 22
"""Bytes of a wrong line that are looked at."""


class LineError(ValueError):
    """A line that breaks a rule: where it starts (byte), its number (from 1), the shortened text and the rule."""

    def __init__(self, line: int, text: str, rule: str) -> None:
        super().__init__(f"line {line}: {text!r}: {rule}")
        self.line, self.text, self.rule = line, text, rule


@dataclass(frozen=True)
class Lines:
    """The contents of a text, a row a document, in file order."""

    features: NDArray[np.float32]
    labels: NDArray[np.float64]
    query_keys: NDArray[np.uint64] | None
    """Digest of the query id of each row; None where no line has a qid."""
    query_spans: NDArray[np.int64]
    """``[rows, 2]``: begin and end of the query id, bytes of the text."""
    document_spans: NDArray[np.int64]
    """``[rows, 2]``: begin and end of the document id; equal where there is none."""
    digits_lost: NDArray[np.bool_]
    """``[features]``: which have whole numbers, such as ids or times, that are too large for the 24 bits of a float32."""


def parse(text: NDArray[np.uint8], first_feature: int = 1) -> Lines:
    """Parses a whole text.

    Args:
        text: ``uint8 [bytes]``, for instance a memory-mapped file.
        first_feature: index of the first feature, 1 (LETOR, SVMlight) or 0.

    Raises:
        LineError: for the first line that breaks a rule.
        ValueError: for a text without any document.
    """
    starts = _pieces(text)
    counts, widths, with_qid = np.zeros((3, len(starts) - 1), np.int64)
    _count(text, starts, first_feature, counts, widths, with_qid)
    n_rows = int(counts.sum())
    if n_rows == 0:
        raise ValueError("no document in it")
    first_rows = offsets_from_sizes(counts)
    width = max(int(widths.max()), 0)
    features = np.zeros((n_rows, width) if width <= _WIDEST else (0, _WIDEST), np.float32)
    labels = np.empty(n_rows)
    keys = np.zeros(n_rows, np.uint64)
    spans = np.zeros((n_rows, 4), np.int64)
    digits_lost = np.zeros(features.shape[1], np.bool_)
    has_qid = bool(with_qid.sum())
    wrong = np.zeros((len(counts), 2), np.int64)
    _fill(text, starts, first_rows, first_feature, has_qid, features, labels, keys, spans, digits_lost, wrong)
    failed = np.flatnonzero(wrong[:, 0])
    if len(failed):
        rule, start = wrong[failed[0]]
        raise _line_error(text, int(start), int(rule), first_feature)
    return Lines(features, labels, mix(keys) if has_qid else None, spans[:, :2], spans[:, 2:], digits_lost)


def key_of(query: bytes) -> np.uint64:
    """The digest that `parse` gives a query id."""
    digest = int(_FNV_OFFSET)
    for byte in query:
        digest = ((digest ^ byte) * int(_FNV_PRIME)) & 0xFFFFFFFFFFFFFFFF
    return np.uint64(mix(np.array([digest], np.uint64))[0])


def _line_error(text: NDArray[np.uint8], start: int, rule: int, first_feature: int) -> LineError:
    """The error of a line; a long one is shown by its beginning and the field that breaks the rule."""
    number = int(np.count_nonzero(text[:start] == _NEWLINE)) + 1
    written = bytes(text[start : start + _LONGEST]).split(b"\n")[0].rstrip(b"\r")
    line = written.decode("utf-8", "replace")
    if len(line) > 80:
        field = _wrong_field(written, rule, first_feature).decode("utf-8", "replace")
        shown = field if len(field) <= 40 else field[:40] + "…"
        line = f"{line[:30]} … {shown} …" if field and field not in line[:30].split() else line[:77] + "..."
    return LineError(number, line, RULES[rule])


def _wrong_field(line: bytes, rule: int, first_feature: int) -> bytes:
    """The first FEATURE:VALUE of a line that breaks a rule; empty where it is not one of them that does."""
    last = -1
    for field in line.split(b"#")[0].split()[1:]:
        if field.startswith(b"qid:"):
            continue
        read = _FIELD.fullmatch(field)
        if read is None:
            return field if rule == 3 else b""
        index = int(read[1])
        if (
            (rule == 4 and index < first_feature)
            or (rule == 5 and index <= last)
            or (rule == 8 and index - first_feature >= _WIDEST)
        ):
            return field
        last = index
    return b""


def _pieces(text: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Starts of the pieces, each at a line start, then the length of the text."""
    n_pieces = max(1, len(text) // _PIECE)
    cuts = [0]
    for guess in np.linspace(0, len(text), n_pieces + 1)[1:-1].astype(np.int64):
        at = guess
        while at < len(text):
            found = np.flatnonzero(text[at : at + 65536] == _NEWLINE)
            if len(found):
                cuts.append(int(at + found[0] + 1))
                break
            at += 65536
    return np.unique(np.array([*cuts, len(text)], np.int64)) if len(text) else np.zeros(2, np.int64)


@njit(cache=True, inline="always")
def _blank(byte: int) -> bool:
    return byte == _SPACE or byte == _TAB or byte == _RETURN


@njit(cache=True, inline="always")
def _digit(byte: int) -> np.int64:
    return np.int64(byte) - 48


@njit(cache=True)
def _line_end(text: NDArray[np.uint8], at: int, stop: int) -> int:
    while at < stop and text[at] != _NEWLINE:
        at += 1
    return at


@njit(cache=True)
def _skip_blanks(text: NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and _blank(text[at]):
        at += 1
    return at


@njit(cache=True, parallel=True)
def _count(
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    first_feature: int,
    counts: NDArray[np.int64],
    widths: NDArray[np.int64],
    with_qid: NDArray[np.int64],
) -> None:
    """Counts documents, widest feature and lines with a qid of each piece: a line's last feature is before its end or ``#``."""
    for piece in prange(len(starts) - 1):
        at, stop = starts[piece], starts[piece + 1]
        while at < stop:
            begin = at
            while at < stop and text[at] != _NEWLINE and text[at] != _HASH:
                at += 1
            colon = at - 1
            while colon >= begin and text[colon] != _COLON:
                colon -= 1
            index, place, k = 0, 1, colon - 1
            while k >= begin and 48 <= text[k] <= 57 and place < 10**12:
                index += place * _digit(text[k])
                place *= 10
                k -= 1
            token = colon
            while token > begin and not _blank(text[token - 1]):
                token -= 1
            if place > 1 and text[token] != 113:  # of `qid:`, which may hold colons itself
                widths[piece] = max(widths[piece], index - first_feature + 1)
            begin = _skip_blanks(text, begin, at)
            if begin < at:
                counts[piece] += 1
                while begin < at and not _blank(text[begin]):
                    begin += 1
                begin = _skip_blanks(text, begin, at)
                with_qid[piece] += begin < at and text[begin] == 113
            at = _line_end(text, at, stop) + 1


@njit(cache=True)
def _number(text: NDArray[np.uint8], at: int, end: int) -> tuple[float, int]:
    """The number at `at`: its value, and the position after it; `at` itself where there is none."""
    start = at
    negative = False
    if at < end and (text[at] == 45 or text[at] == 43):
        negative = text[at] == 45
        at += 1
    unsigned = at
    mantissa, exponent, n_digits = 0, 0, 0
    any_digit = False
    while at < end and 48 <= text[at] <= 57:
        any_digit = True
        if n_digits < 18:
            mantissa = mantissa * 10 + _digit(text[at])
            n_digits += mantissa > 0
        else:
            exponent += 1
        at += 1
    if at < end and text[at] == 46:
        at += 1
        while at < end and 48 <= text[at] <= 57:
            any_digit = True
            if n_digits < 18:
                mantissa = mantissa * 10 + _digit(text[at])
                n_digits += mantissa > 0
                exponent -= 1
            at += 1
    if not any_digit:
        word: tuple[float, int] = _word(text, start, unsigned, end, negative)
        return word
    if at < end and (text[at] == 101 or text[at] == 69):
        sign, power, k = 1, 0, at + 1
        if k < end and (text[k] == 45 or text[k] == 43):
            sign = -1 if text[k] == 45 else 1
            k += 1
        if k < end and 48 <= text[k] <= 57:
            while k < end and 48 <= text[k] <= 57:
                power = min(power * 10 + _digit(text[k]), _MOST_POWER)
                k += 1
            exponent += sign * power
            at = k
    value = float(mantissa)
    while exponent > 0 and value != 0.0 and value < np.inf:
        step = min(exponent, 22)
        value *= _POWERS[step]
        exponent -= step
    while exponent < 0 and value != 0.0:
        step = min(-exponent, 22)
        value /= _POWERS[step]
        exponent += step
    return (-value if negative else value), at


@njit(cache=True)
def _word(text: NDArray[np.uint8], start: int, at: int, end: int, negative: bool) -> tuple[float, int]:
    """NULL, nan or inf (in any case) at `at`, returned as by `_number`."""
    if at + 3 <= end:
        a, b, c = text[at] | 32, text[at + 1] | 32, text[at + 2] | 32
        if a == 110 and b == 97 and c == 110:
            return np.nan, at + 3
        if a == 105 and b == 110 and c == 102:
            return (-np.inf if negative else np.inf), at + 3
        if at + 4 <= end and a == 110 and b == 117 and c == 108 and text[at + 3] | 32 == 108:
            return np.nan, at + 4
    return 0.0, start


@njit(cache=True)
def _document_span(text: NDArray[np.uint8], at: int, end: int, span: NDArray[np.int64]) -> None:
    """Finds ``docid = NAME`` (or ``docid=NAME``) in the comment at `at`, where ``docid`` is a word."""
    begins = True
    while at + 5 <= end:
        if (
            begins
            and text[at] == 100
            and text[at + 1] == 111
            and text[at + 2] == 99
            and text[at + 3] == 105
            and text[at + 4] == 100
        ):
            behind = _skip_blanks(text, at + 5, end)
            if behind < end and text[behind] == 61:
                at = _skip_blanks(text, behind + 1, end)
                span[0] = at
                while at < end and not _blank(text[at]):
                    at += 1
                span[1] = at
                return
        begins = not _of_a_word(text[at])
        at += 1


@njit(cache=True, inline="always")
def _of_a_word(byte: int) -> bool:
    """Letters, digits, ``_`` and ``-``, and what is no ASCII."""
    return 97 <= byte <= 122 or 65 <= byte <= 90 or 48 <= byte <= 57 or byte == 95 or byte == 45 or byte > 127


@njit(cache=True)
def _holds_nul(text: NDArray[np.uint8], span: NDArray[np.int64]) -> bool:
    """Whether an id would be cut: NumPy's bytes end before their last NULs."""
    for at in range(span[0], span[1]):
        if text[at] == 0:
            return True
    return False


@njit(cache=True)
def _holds_return(text: NDArray[np.uint8], at: int, end: int) -> bool:
    """Whether a CR stands before something else than blanks."""
    while at < end:
        if text[at] == _RETURN and _skip_blanks(text, at, end) < end:
            return True
        at += 1
    return False


@njit(cache=True)
def _line(
    text: NDArray[np.uint8],
    at: int,
    end: int,
    first_feature: int,
    has_qid: bool,
    features: NDArray[np.float32],
    labels: NDArray[np.float64],
    keys: NDArray[np.uint64],
    spans: NDArray[np.int64],
    digits_lost: NDArray[np.bool_],
    row: int,
) -> int:
    """Reads one line into `row`; returns the number of the rule it breaks, or 0. Features without rows, where some line is too wide, are not kept."""
    label, behind = _number(text, at, end)
    if behind == at or (behind < end and not _blank(text[behind]) and text[behind] != _HASH):
        return 1
    if label < 0:
        return 2
    if label == np.inf:
        return 7
    labels[row] = label
    at = _skip_blanks(text, behind, end)
    found_qid = False
    if at + 4 <= end and text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == _COLON:
        at += 4
        spans[row, 0] = at
        key = _FNV_OFFSET
        while at < end and not _blank(text[at]) and text[at] != _HASH:
            key = (key ^ np.uint64(text[at])) * _FNV_PRIME
            at += 1
        spans[row, 1] = at
        keys[row] = key
        found_qid = spans[row, 1] > spans[row, 0]
        if spans[row, 1] - spans[row, 0] > LONGEST_ID:
            return 10
        if _holds_nul(text, spans[row, :2]):
            return 11
    if found_qid != has_qid:
        return 6
    last, beyond = -1, False
    at = _skip_blanks(text, at, end)
    while at < end and text[at] != _HASH:
        index, start = 0, at
        while at < end and 48 <= text[at] <= 57 and index < 10**12:
            index = index * 10 + _digit(text[at])
            at += 1
        if at == start or at >= end or text[at] != _COLON:
            return 3
        value, behind = _number(text, at + 1, end)
        if behind == at + 1 or (behind < end and not _blank(text[behind]) and text[behind] != _HASH):
            return 3
        if index < first_feature:
            return 4
        if index <= last:
            return 5
        if index - first_feature >= _WIDEST:
            return 8
        if index - first_feature >= features.shape[1]:
            beyond = True  # the last fields of lines give the width, so a later field of this one is wrong
        elif len(features) > 0:
            features[row, index - first_feature] = value
            kept = float(features[row, index - first_feature])
            if abs(value) > LARGEST_WHOLE and value == np.floor(value) and value != kept and np.isfinite(kept):
                digits_lost[index - first_feature] = True
        last = index
        at = _skip_blanks(text, behind, end)
    if beyond:
        return 5
    if _holds_return(text, at, end):
        return 9
    _document_span(text, at, end, spans[row, 2:])
    if spans[row, 3] - spans[row, 2] > LONGEST_ID:
        return 10
    return 11 if _holds_nul(text, spans[row, 2:]) else 0


@njit(cache=True, parallel=True)
def _fill(
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    first_rows: NDArray[np.int64],
    first_feature: int,
    has_qid: bool,
    features: NDArray[np.float32],
    labels: NDArray[np.float64],
    keys: NDArray[np.uint64],
    spans: NDArray[np.int64],
    digits_lost: NDArray[np.bool_],
    wrong: NDArray[np.int64],
) -> None:
    """Reads the lines of each piece; of the first that breaks a rule the number of the rule and where it begins go into ``wrong [pieces, 2]``."""
    for piece in prange(len(starts) - 1):
        at, stop, row = starts[piece], starts[piece + 1], first_rows[piece]
        while at < stop and wrong[piece, 0] == 0:
            end = _line_end(text, at, stop)
            body = _skip_blanks(text, at, end)
            if body < end and text[body] != _HASH:
                rule = _line(text, body, end, first_feature, has_qid, features, labels, keys, spans, digits_lost, row)
                if rule:
                    wrong[piece, 0], wrong[piece, 1] = rule, at
                row += 1
            elif body < end and _holds_return(text, body, end):
                wrong[piece, 0], wrong[piece, 1] = 9, at
            at = end + 1


def cut(text: NDArray[np.uint8], spans: NDArray[np.int64]) -> NDArray[np.bytes_]:
    """The texts at `spans` ``[rows, 2]`` as an array of bytes."""
    width = int((spans[:, 1] - spans[:, 0]).max(initial=1))
    letters = np.zeros((len(spans), max(width, 1)), np.uint8)
    _cut(text, spans, letters)
    return letters.view(f"S{letters.shape[1]}").ravel()


@njit(cache=True, parallel=True)
def _cut(text: NDArray[np.uint8], spans: NDArray[np.int64], letters: NDArray[np.uint8]) -> None:
    for row in prange(len(spans)):
        for k in range(spans[row, 1] - spans[row, 0]):
            letters[row, k] = text[spans[row, 0] + k]
