"""LETOR text, some megabytes of whole lines at a time: read and not mapped, so that a file that ends early while it is read is only short."""

import os
import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltr.data import letor
from tasks.data.tables import require_plain
from tasks.records import DataError

BYTES = 1 << 26


def text_blocks(path: Path, first_feature: int, size: int = BYTES) -> Iterator[tuple[NDArray[np.uint8], letor.Lines]]:
    """Bytes and contents of each block of a text in which there is a document.

    Raises:
        DataError: for the first line that breaks a rule, for a text without any document, and for one whose features the memory does not hold.
    """
    require_plain(path)
    before, first = 0, None
    with open(path, "rb") as file:
        while block := file.read(size):
            whole = block + file.readline()
            text = np.frombuffer(whole if before else whole.removeprefix(BOM_UTF8), np.uint8)
            try:
                lines = letor.parse(text, first_feature)
            except letor.LineError as error:
                raise DataError(f"{path}, line {before + error.line}: {error.text!r}: {error.rule}") from None
            except MemoryError as error:
                raise DataError(
                    f"{path}: {error}: each document takes as many numbers as the largest feature's; number features without gaps, or learn from "
                    "a scipy.sparse array in Python (docs/python.md)"
                ) from None
            except ValueError:
                lines = None  # comments and empty lines alone
            if lines is not None:
                first = first or lines
                if (first.query_keys is None) != (lines.query_keys is None):
                    raise DataError(f"{path}, from line {before + 1} on: {letor.RULES[6]}")
                yield text, lines
            before += int((text == ord("\n")).sum())
    if first is None:
        raise DataError(f"{path}: no document in it")


def sidecar(path: Path) -> Path | None:
    """The file beside a text that holds the sizes of its queries, as LightGBM (``.query``) or XGBoost (``.group``) names it."""
    sides = (path.with_name(f"{path.name}.{kind}") for kind in ("query", "group"))
    return next((side for side in sides if os.path.isfile(side)), None)  # a name that would be too long is none


def sizes_beside(path: Path) -> NDArray[np.int64] | None:
    """Sizes of the queries of a text without qid, from the file beside it that holds them; None where there is none.

    Raises:
        DataError: for a line that is no size.
    """
    beside = sidecar(path)
    if beside is None:
        return None
    sizes = []
    for number, line in enumerate(beside.read_text("utf-8-sig", errors="replace").split("\n"), 1):
        if line.strip():
            if not re.fullmatch(r"0*[1-9][0-9]{0,8}", line.strip()):
                raise DataError(
                    f"{beside}, line {number}: {line.strip()[:40]!r}: each line must be the number of documents of a query, 1 or more"
                )
            sizes.append(int(line.strip()))
    return np.array(sizes, np.int64)


def require_sum(path: Path, sizes: NDArray[np.int64], n_documents: int) -> None:
    """Raises DataError where these are not the sizes of so many documents."""
    if sizes.sum() != n_documents:
        raise DataError(f"{sidecar(path)}: the sizes sum to {sizes.sum()}, but {path.name} has {n_documents} documents")


def read_names(path: Path) -> tuple[str, ...]:
    """Names of features, one a line.

    Raises:
        DataError: for a line that is empty or no text, a name that is there twice, and a file without any.
    """
    require_plain(path)
    try:
        lines = path.read_text("utf-8-sig").rstrip("\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8") from None
    names: dict[str, None] = {}
    for number, name in enumerate(map(str.strip, lines), 1):
        if not name or name in names:
            raise DataError(f"{path}, line {number}: {name[:40]!r}: each line must be the name of another feature")
        names[name] = None
    return tuple(names)


def require_counted_alike(where: object, reads: Collection[str], last: int, first_is_empty: bool) -> None:
    """Refuses text that is read as counted from 0 where it or the model was counted from 1: every feature would be taken for its neighbour.

    Args:
        reads: names of the model's features.
        last: number of the text's last feature.
        first_is_empty: feature 0 is 0 in all of the text.

    Raises:
        DataError: where feature 0 is empty, and there is a feature behind the last of a model that reads it; or where it is not, and the last
            feature of a model that does not read it is missing.
    """
    numbers = [int(name[1:]) for name in reads if re.fullmatch(r"f\d+", name)]
    if 0 in numbers and first_is_empty and last > max(numbers):
        raise DataError(
            f"{where}: no line has feature 0, there is a feature {last}, and the model reads f0 to f{max(numbers)}: this text seems "
            "to number features from 1, and the model's from 0; number both the same way"
        )
    if numbers and 0 not in numbers and not first_is_empty and last < max(numbers):
        raise DataError(
            f"{where}: there is a feature 0, which the model does not read, and no feature {max(numbers)}, which it does: this text seems "
            "to number features from 0, and the model's from 1; number both the same way"
        )
