"""What callers give, as the arrays that kernels take for granted: of their type and shape, contiguous, and inside the data set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.masked import unmasked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def array_of(name: str, given: object, kind: Any, dimensions: int = 1) -> NDArray[Any]:
    """A contiguous array of this type and number of dimensions; masked entries are NaN.

    Raises:
        ValueError: for what are no numbers, or no whole ones where these are asked for, and for another shape.
    """
    try:
        array = np.asarray(unmasked(given))
        if array.dtype.kind not in "biufO" or (kind is np.int64 and array.dtype.kind in "fO" and (array % 1 != 0).any()):
            raise TypeError
        array = np.ascontiguousarray(array, kind)
    except (TypeError, ValueError, OverflowError):
        rule = "whole numbers" if kind is np.int64 else "numbers"
        raise ValueError(f"{name}: {shown(given)} is not an array of {rule}") from None
    if array.ndim != dimensions:
        rule = "[documents, features]" if dimensions == 2 else "one dimension"
        raise ValueError(f"{name}: shape {array.shape}, expected {rule}")
    return array


_AT_A_TIME = 16
"""Columns that become rows together: their float32 of a row are one line of the processor's cache, which is then written once."""


def rows_of(
    columns: Iterable[NDArray[Any]], n_rows: int, n_columns: int, into: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Columns beside each other, ``float32 [rows, columns]``, in `into` where it is given; each is asked for when those before it were taken.
    Numbers beyond float32 are infinite."""
    rows, following = np.empty((n_rows, n_columns), np.float32) if into is None else into, iter(columns)
    for first in range(0, n_columns, _AT_A_TIME):
        own = rows[:, first : first + _AT_A_TIME]
        together = np.empty(own.shape[::-1], np.float32)
        for kept, column in zip(together, following, strict=False):
            with np.errstate(over="ignore"):
                kept[:] = column
        own[:] = together.T
    return rows


def floats_of(name: str, given: object) -> Floats:
    """`array_of` numbers that compiled code may be given: it takes arrays that can be written to."""
    return np.require(array_of(name, given, np.float64), requirements="W")


def ints_of(name: str, given: object) -> Ints:
    """`array_of` whole numbers that compiled code may be given."""
    return np.require(array_of(name, given, np.int64), requirements="W")


def scores_of(name: str, given: object, n_documents: int) -> Floats:
    """Finite scores ``float64 [documents]``.

    Raises:
        ValueError: for another number of them, and naming the first that is not finite.
    """
    scores = floats_of(name, given)
    if scores.shape != (n_documents,):
        raise ValueError(f"{name}: shape {scores.shape}, expected ({n_documents},), one number per document")
    if not np.isfinite(scores).all():
        row = int((~np.isfinite(scores)).argmax())
        raise ValueError(f"{name}: {scores[row]} of document {row} is not finite")
    return scores


def offsets_of(given: object, n_documents: int) -> Ints:
    """Offsets of queries ``int64 [queries + 1]``: the first document of each, then the number of documents.

    Raises:
        ValueError: unless they rise from 0 to the number of documents.
    """
    offsets = ints_of("offsets", given)
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != n_documents or (np.diff(offsets) < 0).any():
        raise ValueError(f"offsets must rise from 0 to {n_documents}, the number of scores{taken_for_sizes(offsets, n_documents)}")
    return offsets


def ids_of(name: str, given: object, expected: int) -> NDArray[np.bytes_]:
    """Ids ``bytes [expected]`` of bytes or text.

    Raises:
        ValueError: for what is neither, and for another number of them.
    """
    array = np.asarray(given)
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8")
    if array.dtype.kind != "S" or array.shape != (expected,):
        raise ValueError(
            f"{name}: {shown(given)} of type {array.dtype} and shape {array.shape}, expected bytes or text ({expected},)"
        )
    return array


def taken_for_sizes(offsets: Ints, n_documents: int) -> str:
    """What to say of offsets that are sizes of queries; empty where they are not."""
    sizes = len(offsets) > 0 and (offsets > 0).all() and offsets.sum() == n_documents
    return "; these are sizes of queries, whose offsets are numpy.append(0, numpy.cumsum(sizes))" if sizes else ""


def plain_number(value: Any) -> Any:
    """A number of numpy as Python's, which JSON can hold; whatever else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def few_of(names: Sequence[str]) -> str:
    """The first five names, for people."""
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def shown(given: object) -> str:
    """A value in a message: its first 60 letters."""
    text = " ".join(repr(given).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
