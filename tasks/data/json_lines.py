"""Files of JSON objects, one a line, as search engines write and load them: bulk requests, exports of hits, plain lines."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.data.tables import require_plain
from tasks.records import DataError

SUFFIXES = {".ndjson", ".jsonl", ".json"}
_ACTIONS = {"index", "create", "update", "delete"}

Json = dict[str, Any]
"""An object of JSON."""


def objects(path: Path) -> Iterator[tuple[int, Json]]:
    """Every object of a file with its line: documents of bulk requests without the lines of their actions, documents of hits
    (``_source``) without the hits, and the elements of an array that fills the file.

    Raises:
        DataError: naming the line, for what is no JSON object, and for a file without any.
    """
    require_plain(path)
    found = False
    with open(path, encoding="utf-8-sig", errors="backslashreplace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = _value(line)
            except json.JSONDecodeError as error:
                if not found:
                    yield from _whole(path, number, line, error)
                    return
                raise _no_object(path, number, line, str(error.msg)) from None
            for one in value if isinstance(value, list) else [value]:
                if not isinstance(one, dict):
                    raise _no_object(path, number, line, "a line must be an object, {…}")
                found = True
                if not (len(one) == 1 and set(one) <= _ACTIONS):
                    source = one.get("_source")
                    yield number, source if isinstance(source, dict) and "hits" not in one and "fields" not in one else one
    if not found:
        raise DataError(f"{path}: no object in it")


def _whole(path: Path, number: int, line: str, error: json.JSONDecodeError) -> Iterator[tuple[int, Json]]:
    """The objects of a file that is one value over several lines."""
    try:
        value = read_json_file(path)
    except DataError:
        raise _no_object(path, number, line, error.msg) from None
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict):
            raise DataError(f"{path}: {json.dumps(one)[:40]}: must be an object, {{…}}")
        yield 1, one


def read_json_file(path: Path) -> Any:
    """The value that a file holds.

    Raises:
        DataError: naming the line where it is no JSON.
    """
    require_plain(path)
    try:
        return _value(path.read_text(encoding="utf-8-sig", errors="backslashreplace"))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: not JSON: {error.msg}") from None


def _value(text: str) -> Any:
    """The value that a text of JSON holds; whatever is wrong with it is a JSONDecodeError."""
    try:
        value = json.loads(text, object_pairs_hook=_object)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise json.JSONDecodeError("half of a surrogate pair is not a character", text, text.lower().find("\\ud")) from None
    except json.JSONDecodeError:
        raise
    except _GivenTwiceError as error:
        raise json.JSONDecodeError(f"the key {str(error)[:40]!r} is given twice", text, 0) from None
    except RecursionError:
        raise json.JSONDecodeError("lists within lists, too deep to read", text, 0) from None
    except ValueError:  # of a whole number with thousands of digits
        raise json.JSONDecodeError("a number has too many digits", text, 0) from None


class _GivenTwiceError(ValueError):
    """A key that an object has twice, of which `json` would keep the last."""


def _object(pairs: list[tuple[str, Any]]) -> Json:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise _GivenTwiceError(next(name for k, name in enumerate(names) if name in names[:k]))
    return made


def _no_object(path: Path, number: int, line: str, why: str) -> DataError:
    return DataError(f"{path}, line {number}: {line.strip()[:60]!r}: not a JSON object: {why}")


def text_of(value: Any) -> str:
    """An id or a text as it is written; empty for null, NaN and what is neither text nor number. Whole numbers have no point, as ids of tables
    (`tasks.data.tables.id_texts`)."""
    if isinstance(value, float):
        value = None if math.isnan(value) else int(value) if value.is_integer() and abs(value) < 2**63 else value
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def object_at(of: Json, key: str) -> Json:
    """The object below a key; an empty one where there is null, nothing or something else."""
    inner = of.get(key)
    return inner if isinstance(inner, dict) else {}
