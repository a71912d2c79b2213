"""Fitted rankers on disk: JSON for people, npz for the arrays, no pickle, and digests by which a changed or damaged one is known."""

from __future__ import annotations

import json
import math
import warnings
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ltr.kernels.kernel import Array
from ltr.kernels.locks import locked
from ltr.rankers.base import Arrays, Json, Ranker, digest_of
from ltr.rankers.features import type_of

FORMAT = 2
"""Version of ``model.json``; raised when older versions of the program cannot read what is written."""


def save(model: Ranker, folder: str | Path) -> None:
    """Saves a fitted model as ``model.json`` and ``model.npz`` in `folder`, which is created if necessary. An existing model is replaced only once
    both files are written: even if this is interrupted or killed, `load` finds either the old model or the new one. Concurrent saves and loads wait.

    Raises:
        ValueError: if `model` is not a fitted ranker.
    """
    if not isinstance(model, Ranker):
        inner = "; of an estimator, save its model_" if hasattr(model, "get_params") else ""
        raise ValueError(f"save: model is {type_of(model)}; give a fitted ranker{inner}")
    about: dict[str, Json] = {
        "format": FORMAT,
        "kind": model.kind,
        "digest": model.digest,
        "parameters": model.parameters,
        "features": list(model.names),
    }
    arrays = model.arrays
    text = json.dumps({**about, "content": content_digest(about, arrays)}, indent=1) + "\n"
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    first, last = folder / "model.npz.partial", folder / "model.json.partial"
    with locked(folder):
        _settle(first, last)  # of one that was killed
        try:
            with open(first, "wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
            last.write_text(text, encoding="utf-8")
            first.replace(folder / "model.npz")
        finally:
            _settle(first, last)


def _settle(first: Path, last: Path) -> None:
    """Where the arrays are in their place, what is said of them follows; otherwise nothing is left of either."""
    if first.exists():
        last.unlink(missing_ok=True)
        first.unlink()
    elif last.exists():
        last.replace(last.with_suffix(""))


def _sayings(folder: Path) -> Path:
    """``model.json``, or what was to replace it where `save` was killed with the arrays in their place."""
    last = folder / "model.json.partial"
    return last if last.exists() and not (folder / "model.npz.partial").exists() else folder / "model.json"


def content_digest(about: Mapping[str, Json], arrays: Mapping[str, Array]) -> str:
    """sha256 of all that a saved model consists of: ``model.json`` without this digest itself, and every array. Models saved by 0.1.0
    have no such digest."""
    written = json.dumps({name: value for name, value in about.items() if name != "content"}, sort_keys=True)
    return sha256(f"{written}{digest_of('', arrays)}".encode()).hexdigest()


def _about(path: Path) -> dict[str, Any]:
    """What ``model.json`` says, each entry of its type."""
    about = json.loads(path.read_text("utf-8"))
    if not isinstance(about, dict):
        raise ValueError("model.json holds no JSON object")
    if about.get("format") != FORMAT:
        raise ValueError(f"model format {about.get('format')!r}, this version reads {FORMAT}")
    for name, kind in _ENTRIES.items():
        if not isinstance(about.get(name, "" if name == "content" else None), kind):
            raise ValueError(f"model.json: {name!r} is {'missing' if name not in about else f'no {_WORDS[kind]}'}")
    strange = [name for name in about if name not in _ENTRIES]
    if strange:
        raise ValueError(f"model.json: unknown entry {strange[0]!r}")
    if not all(isinstance(name, str) for name in about["features"]):
        raise ValueError("model.json: 'features' is not a list of names")
    return about


_ENTRIES: dict[str, type] = {"format": int, "kind": str, "digest": str, "parameters": dict, "features": list, "content": str}
_WORDS: dict[type, str] = {int: "whole number", str: "text", dict: "JSON object", list: "list"}


def _arrays(path: Path) -> Arrays:
    """The arrays of an archive that `save` wrote. Nothing is allocated for an array that claims more than its entry in the file holds."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"array {name!r} is compressed")
            with archive.open(entry) as file:
                read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                shape, by_columns, dtype = read[np.lib.format.read_magic(file)](file)
                if dtype.hasobject:
                    raise ValueError(f"array {name!r} holds objects")
                held = entry.file_size - file.tell()
                if math.prod(shape) * dtype.itemsize != held or min(shape, default=0) < 0:
                    raise ValueError(f"array {name!r} claims shape {shape} of {dtype} and holds {held} bytes")
                array = np.frombuffer(bytearray(file.read()), dtype)
                arrays[name] = array.reshape(shape, order="F").copy(order="C") if by_columns else array.reshape(shape)
    return arrays


def load(folder: str | Path, kinds: Mapping[str, type[Ranker]]) -> Ranker:
    """The model that `save` wrote into `folder`.

    Raises:
        ValueError: for a folder without a model, another format, an unknown kind, or files that do not match their digests.
    """
    folder = Path(folder)
    try:
        with locked(folder, alone=False):
            about, arrays = _about(_sayings(folder)), _arrays(folder / "model.npz")
    except Exception as error:  # of the parsers of JSON, zip and npy, which fail in a dozen ways on bytes that may be anything
        raise ValueError(f"{folder}: no readable model.json and model.npz ({_sentence(error)})") from error
    kind = about["kind"]
    if kind not in kinds:
        raise ValueError(f"{folder}: unknown kind of model {kind!r}; known: {', '.join(kinds)}")
    scored = {name: array for name, array in arrays.items() if "/" not in name}
    content = content_digest(about, arrays)
    if digest_of(kind, scored) != about["digest"] or about.get("content", content) != content:
        raise ValueError(
            f"{folder}: model.json and model.npz do not match the digest in model.json; they were changed or are damaged"
        )
    try:
        model = kinds[kind].restored(about["parameters"], arrays, tuple(about["features"]))
        same = model.digest == about["digest"]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{folder}: its content is not a {kind} ({_sentence(error)})") from error
    if "content" not in about:
        warnings.warn(
            f"{folder}: version 0.1.0 saved it, without a digest of its parameters and features: nothing tells whether these were changed since "
            "(`ltr.save` writes one)",
            stacklevel=3,
        )
    if not same:
        raise ValueError(
            f"{folder}: parameters and arrays do not match the digest in model.json; the files were changed or are damaged"
        )
    return model


def _sentence(error: Exception) -> str:
    """An error in one short line; one that is no sentence begins with its type."""
    said = " ".join(str(error).split())
    said = said if isinstance(error, ValueError | OSError) and said else f"{type(error).__name__} {said}".strip()
    return said if len(said) <= 200 else f"{said[:200]} …"
