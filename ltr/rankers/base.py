"""A fitted model on disk and its digest: JSON for what a person reads, npz for the arrays, no pickle.

Every ranker is a dataclass of its parameters with the fitted `arrays`; `KINDS` lists them. The digest is the sha256 of kind and
arrays: two models with one digest give the same scores to the bit.
"""

import json
import math
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ltr.rankers.surface import Surface

FORMAT = 2


class Model(Protocol):
    """What every ranker offers once fitted."""

    kind: ClassVar[str]

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def digest(self) -> str: ...

    @property
    def arrays(self) -> dict[str, NDArray[Any]]: ...

    @property
    def parameters(self) -> dict[str, Any]: ...

    def predict(self, features: Any) -> NDArray[np.float64]: ...

    def surface(self, features: Any) -> Surface: ...

    @classmethod
    def restored(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> "Model": ...


def digest_of(kind: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    hasher = sha256(kind.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        hasher.update(f"{name}{array.dtype.str}{array.shape}".encode())
        hasher.update(array.tobytes())
    return hasher.hexdigest()


def checked_features(features: Any, names: tuple[str, ...]) -> NDArray[np.float32]:
    """``float32 [documents, features]`` of an array, or of a frame whose columns bear the model's feature names.

    Raises:
        ValueError: when the model is not fitted, the width differs or a named feature is missing.
    """
    if not names:
        raise ValueError("this model is not fitted")
    columns = getattr(features, "columns", None)
    if columns is not None:
        missing = [name for name in names if name not in list(columns)]
        if missing:
            raise ValueError(f"features missing in the data: {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}")
        features = features[list(names)].to_numpy()
    array = np.ascontiguousarray(features, np.float32)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise ValueError(f"features have shape {array.shape}; the model was fitted on {len(names)} features")
    return array


def save(model: Model, folder: str | Path) -> None:
    """Writes ``model.json`` and ``model.npz`` into `folder`, which is made where missing."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "format": FORMAT,
        "kind": model.kind,
        "digest": model.digest,
        "parameters": model.parameters,
        "features": list(model.names),
    }
    with open(folder / "model.npz", "wb") as file:
        np.savez(file, allow_pickle=False, **model.arrays)
    (folder / "model.json").write_text(json.dumps(about, indent=1) + "\n")


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an archive that `save` wrote. Nothing is allocated for an array that claims more than its part of the file holds."""
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
                arrays[name] = array.reshape(shape, order="F" if by_columns else "C")
    return arrays


def load(folder: str | Path, kinds: Mapping[str, Any]) -> Model:
    """The model that `save` wrote into `folder`.

    Raises:
        ValueError: for a folder without a model, another format, an unknown kind, or bytes that do not match the digest.
    """
    folder = Path(folder)
    try:
        about = json.loads((folder / "model.json").read_text())
        arrays = _arrays(folder / "model.npz")
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{folder}: no readable model.json and model.npz ({error})") from error
    if about.get("format") != FORMAT:
        raise ValueError(f"{folder}: model format {about.get('format')}, this version reads {FORMAT}")
    if about["kind"] not in kinds:
        raise ValueError(f"{folder}: unknown kind of model {about['kind']!r}; known: {', '.join(kinds)}")
    try:
        model = kinds[about["kind"]].restored(about["parameters"], arrays, tuple(about["features"]))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(f"{folder}: what is written there is no {about['kind']} ({error})") from error
    if model.digest != about["digest"]:
        raise ValueError(f"{folder}: the arrays do not match the digest in model.json; the files were changed or are damaged")
    return model
