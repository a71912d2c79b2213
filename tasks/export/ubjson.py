"""Universal Binary JSON (https://ubjson.org, draft 12), as XGBoost saves models ↔ plain values, as `json.loads` gives them.

value   Z | T | F | number | S text | [ items ] | { members }
items   value … ], or # count value …, or $ type # count numbers …
text    count bytes; a member is a text and a value; a count is a whole number with its type
"""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ltr.rankers.base import Json

_NUMBERS = {b"i": "b", b"U": "B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_WHOLE = b"iUIlL"
_WORDS = {b"Z": None, b"T": True, b"F": False}
_DEEPEST = 100

XGBOOST_ARRAYS = {
    **dict.fromkeys(("base_weights", "loss_changes", "split_conditions", "sum_hessian"), "d"),
    **dict.fromkeys(("left_children", "right_children", "parents", "categories", "categories_nodes"), "l"),
    **dict.fromkeys(("categories_segments", "categories_sizes"), "L"),
    **dict.fromkeys(("default_left", "split_type"), "U"),
    "split_indices": "lL",
}
"""Types of a tree's arrays, as XGBoost's ``RegTree::SaveModel`` writes (the first) and ``LoadModelImpl`` reads them: lists of another type
are refused there."""


class _Bytes:
    """Bytes that are read from the beginning to the end. Nothing is allocated for a count that the bytes left cannot hold."""

    def __init__(self, content: bytes, arrays: Mapping[str, str]) -> None:
        self.content, self.arrays, self.at = content, arrays, 0

    def take(self, n: int) -> bytes:
        if not 0 <= n <= len(self.content) - self.at:
            raise ValueError(f"byte {self.at}: {n} bytes are announced and {len(self.content) - self.at} are left")
        self.at += n
        return self.content[self.at - n : self.at]

    def follows(self, mark: bytes) -> bool:
        found = self.content.startswith(mark, self.at)
        self.at += len(mark) if found else 0
        return found

    def number(self, kind: bytes) -> int | float:
        form = _NUMBERS[kind]
        value: int | float = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def count(self) -> int:
        kind = self.take(1)
        if kind not in _WHOLE:
            raise ValueError(f"byte {self.at - 1}: {kind!r} is not a type of a count")
        return int(self.number(kind))

    def text(self) -> str:
        try:
            return self.take(self.count()).decode()
        except UnicodeDecodeError:
            raise ValueError(f"byte {self.at}: the text before it is not UTF-8") from None

    def value(self, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise ValueError(f"byte {self.at}: lists within lists, too deep to read")
        kind = self.take(1)
        if kind in _NUMBERS:
            return self.number(kind)
        if kind in _WORDS:
            return _WORDS[kind]
        if kind == b"S":
            return self.text()
        if kind == b"[":
            return self.items(depth)
        if kind == b"{":
            return self.members(depth)
        raise ValueError(f"byte {self.at - 1}: {kind!r} begins no value")

    def items(self, depth: int) -> list[Any]:
        if self.follows(b"$"):
            kind = self.take(1)
            if kind not in _NUMBERS or not self.follows(b"#"):
                raise ValueError(f"byte {self.at}: a list of one type is of numbers, and counted")
            dtype = np.dtype(_NUMBERS[kind])
            numbers: list[Any] = np.frombuffer(self.take(self.count() * dtype.itemsize), dtype).tolist()
            return numbers
        if self.follows(b"#"):
            n = self.count()
            if not 0 <= n <= len(self.content) - self.at:
                raise ValueError(f"byte {self.at}: {n} items are announced and {len(self.content) - self.at} bytes are left")
            return [self.value(depth + 1) for _ in range(n)]
        found = []
        while not self.follows(b"]"):
            found.append(self.value(depth + 1))
        return found

    def members(self, depth: int) -> dict[str, Json]:
        found: dict[str, Json] = {}
        while not self.follows(b"}"):
            name = self.text()
            if name in found:
                raise ValueError(f"byte {self.at}: {name[:40]!r} is there twice")
            found[name] = self.member(name, depth + 1)
        return found

    def member(self, name: str, depth: int) -> Any:
        kind = self.content[self.at + 2 : self.at + 3].decode("latin-1") if self.content.startswith(b"[$", self.at) else ""
        if kind and name in self.arrays and kind not in self.arrays[name]:
            raise ValueError(
                f"byte {self.at + 2}: {name!r} is a list of type {kind!r}; it is one of {' or '.join(self.arrays[name])}"
            )
        return self.value(depth)


def read_ubjson(content: bytes, arrays: Mapping[str, str]) -> Any:
    """The value that the bytes hold.

    Args:
        arrays: members whose lists are of one of these types where they have one, by name; see `write_ubjson`.

    Raises:
        ValueError: naming the byte, for what is no UBJSON, ends early, goes on behind its value, or has a list of another type.
    """
    source = _Bytes(content, arrays)
    value = source.value()
    if source.at < len(content):
        raise ValueError(f"byte {source.at}: {len(content) - source.at} bytes behind the end")
    return value


def write_ubjson(value: Json, arrays: Mapping[str, str]) -> bytes:
    """The bytes of a value, with counts before lists as XGBoost writes them.

    Args:
        arrays: members whose lists are numbers of one type, the first of those by name: ``d`` float32, ``D`` float64, ``l`` int32, ``L`` int64, ``U`` uint8.
    """
    if value is None or isinstance(value, bool):
        return next(mark for mark, word in _WORDS.items() if word is value)
    if isinstance(value, int):
        kind = next(kind for kind in (b"i", b"I", b"l", b"L") if -(1 << (bits := 8 * _size(kind) - 1)) <= value < 1 << bits)
        return kind + struct.pack(_NUMBERS[kind], value)
    if isinstance(value, float):
        return b"D" + struct.pack(_NUMBERS[b"D"], value)
    if isinstance(value, str):
        return b"S" + _text(value)
    if isinstance(value, Mapping):
        return b"{" + b"".join(_text(name) + _member(name, own, arrays) for name, own in value.items()) + b"}"
    return b"[#" + _count(len(value)) + b"".join(write_ubjson(own, arrays) for own in value)


def _member(name: str, value: Json, arrays: Mapping[str, str]) -> bytes:
    if name not in arrays:
        return write_ubjson(value, arrays)
    kind = arrays[name][:1].encode()
    numbers = np.array(value, np.dtype(_NUMBERS[kind]))
    return b"[$" + kind + b"#" + _count(len(numbers)) + numbers.tobytes()


def _size(kind: bytes) -> int:
    return struct.calcsize(_NUMBERS[kind])


def _count(n: int) -> bytes:
    return b"L" + struct.pack(">q", n)


def _text(text: str) -> bytes:
    written = text.encode()
    return _count(len(written)) + written
