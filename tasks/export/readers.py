"""Models of other tools as rankers: LightGBM's text, and XGBoost's JSON, as text or in its binary form (``.ubj``).

Imported trees are a `ltr.LambdaMART` like any other: certificates, the microscope and comparisons work on them.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

import ltr
from ltr.trees import formats
from ltr.trees.ensemble import Trees
from tasks.export.ubjson import XGBOOST_ARRAYS, read_ubjson
from tasks.records import DataError

_BEGINNINGS = {
    "lightgbm": r"\s*tree\s*\nversion=",
    "xgboost": r'\s*\{\s*"(learner|version)"\s*:\s*[\[{]|\{[iUIlL]\0*\x07(learner|version)[\[{]',
}


def _read_document(content: bytes) -> formats.Ensemble:
    try:
        binary = content[1:2] in (b"i", b"U", b"I", b"l", b"L")
        return formats.read_xgboost(read_ubjson(content, XGBOOST_ARRAYS) if binary else json.loads(content.decode()))
    except RecursionError:
        raise ValueError("no XGBoost model: lists within lists, too deep to read") from None


READERS: dict[str, Callable[[bytes], formats.Ensemble]] = {
    "lightgbm": lambda content: formats.read_lightgbm(content.decode()),
    "xgboost": _read_document,
}


def source_of(path: str | Path) -> str | None:
    """The tool (a key of `READERS`) that wrote a file, by its beginning; None for others."""
    with open(path, "rb") as file:
        beginning = file.read(200).decode("utf-8", "replace")
    return next((tool for tool, pattern in _BEGINNINGS.items() if re.match(pattern, beginning)), None)


def is_foreign(path: str) -> bool:
    """Whether a file is a model of LightGBM or XGBoost, or would be one."""
    return source_of(path) is not None or path.endswith(".ubj")


@lru_cache(1)
def _read(path: Path, size: int, changed: int) -> tuple[str, formats.Ensemble]:
    """The tool that wrote a file, and what is in it; `size` and `changed` tell one state of the file from another."""
    tool = source_of(path)
    if tool is None:
        raise ValueError("neither LightGBM's text nor XGBoost's .json or .ubj")
    # Bytes, not lines: LightGBM finds its trees by their sizes in bytes, carriage returns included.
    return tool, READERS[tool](path.read_bytes())


def contents_of(path: Path) -> tuple[str, formats.Ensemble]:
    """The tool that wrote a file, and what is in it.

    Raises:
        DataError: naming the file, where neither tool has, or for what `ltr.trees.formats` refuses.
    """
    try:
        found = path.stat()
        return _read(path, found.st_size, found.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None


def read_model(path: str | Path, names: tuple[str, ...] = ()) -> ltr.LambdaMART:
    """The ensemble in a LightGBM text model or XGBoost's JSON or UBJSON as a fitted ranker. Its scores are LightGBM's raw scores to the bit, and
    XGBoost's margins but for that tool's sums in float32; columns of categories are their places among the file's (`contents_of`).

    Args:
        names: of the features it shall read, in their order; found by name, or by place where the file names none and has as many. Left
            out: those of the file, or else ``f1``, ``f2``, ….

    Raises:
        DataError: naming the file, for anything else, for what `ltr.trees.formats` refuses, or for a feature that is not among `names`.
    """
    path = Path(path)
    tool, found = contents_of(path)
    try:
        trees, taken = _on_features(found, names)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    if trees.n_trees == 0:
        raise DataError(f"{path}: no trees")
    plain = ltr.LambdaMART(n_trees=trees.n_trees, n_leaves=max(int(np.diff(trees.leaf_starts).max()), 2), stop_on=None)
    placed = (f"{path}: it names no features, which are taken by their places, from {taken[0]!r} to {taken[-1]!r}",)
    best, rounds = found.best_of or (0, 0)
    stopped = (
        f"{path}: its best round was {best} of {rounds}; its scores are those of all rounds, as Booster.predict has them, and XGBRanker.predict takes "
        f"the first {best} alone",
    )
    remarks = (
        f"read from a model of {tool}", *(placed if taken != tuple(found.names) and not found.named else ()), *(stopped if found.best_of else ())
    )  # fmt: skip
    return replace(plain, trees=trees, names=taken, remarks=remarks)


def _on_features(found: formats.Ensemble, names: tuple[str, ...]) -> tuple[Trees, tuple[str, ...]]:
    """The trees over the features `names`."""
    twice = (
        [name for k, name in enumerate(found.names) if name in found.names[:k]] if len({*found.names}) < len(found.names) else []
    )
    if twice:
        raise ValueError(f"two features have the name {twice[0][:60]!r}")
    if not names:
        return found.trees, found.names
    if not found.named:
        if len(found.names) != len(names):
            raise ValueError(f"the file names no features and has {len(found.names)} of them; the data have {len(names)}")
        return found.trees, names
    place = {name: k for k, name in enumerate(names)}
    strange = [found.names[f] for f in np.unique(found.trees.feature) if found.names[f] not in place]
    if strange:
        raise ValueError(
            f"trees on features that the data do not have: {', '.join(name[:60] for name in strange[:5])}{' …' if len(strange) > 5 else ''}"
        )
    places = np.array([place.get(name, -1) for name in found.names], np.int32)
    return replace(found.trees, feature=places[found.trees.feature]), names
