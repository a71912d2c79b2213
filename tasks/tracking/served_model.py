"""The model as MLflow serves it: loaded from code and arrays, fed features (array or frame), answering scores.

The core that it was made with lies beside it in one file, for each file that is sent to a server is a request. Python would import from that
file as it is; numba, which looks at sources, would not, so it is unpacked.
"""

import atexit
import json
import os
import re
import sys
import warnings
from hashlib import sha256
from numbers import Real
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas  # type: ignore[import-untyped]  # its stubs are a package of their own
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

_CORE = Path(__file__).parent / "code" / "ltr.zip"


def _unpacked() -> Path:
    """The folder of the core, unpacked once for each version into the user's cache folder, or where that cannot be written to into one of this
    process."""
    packed = _CORE.read_bytes()
    cores = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "lambdaflow" / "core"
    place = cores / sha256(packed).hexdigest()[:16]
    files = {one.filename: one.file_size for one in ZipFile(_CORE).infolist()}
    lost = [name for name, size in files.items() if not (place / name).is_file() or (place / name).stat().st_size != size]
    if not lost:
        return place
    try:
        cores.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(dir=cores))
    except OSError:
        made = place = Path(mkdtemp(prefix="lambdaflow-"))
        atexit.register(rmtree, made, ignore_errors=True)
    ZipFile(_CORE).extractall(made)
    if made != place:
        try:
            made.rename(place)
        except OSError:  # another process was first, or files were lost since
            try:
                for name in lost:
                    (place / name).parent.mkdir(parents=True, exist_ok=True)
                    (made / name).replace(place / name)
            except OSError:  # not ours to mend
                return made
            rmtree(made, ignore_errors=True)
    return place


if _CORE.is_file() and "ltr" not in sys.modules:
    sys.path.insert(0, str(_unpacked()))

import ltr  # noqa: E402
from ltr.rankers.stacked import Stacked  # noqa: E402
from ltr.rankers.tables import Reading  # noqa: E402

try:
    from ltr.rankers.features import columns_of
except ImportError:  # an older model of this process brought its core first
    from ltr.rankers.base import columns_of


class ServedRanker(PythonModel):
    """Scores of documents, higher is better; a frame or a dictionary of columns is read by feature name, an array by position. Categories in a frame
    are read by what they are called, as `predict` reads those of files; where none is called by a number, numbers are places in the model's list. An
    array has places."""

    def load_context(self, context: Any) -> None:
        """Opens the model's own files, and those of the models below it."""
        model, folder = ltr.load(context.artifacts["model"]), context.artifacts.get("below")
        bases = [ltr.load(base) for base in sorted(Path(folder).iterdir(), key=lambda base: int(base.name))] if folder else []
        self.model = Stacked(tuple(bases), model) if bases else model
        columns = [Path(one) / "columns.json" for one in (context.artifacts["model"], *(Path(folder).iterdir() if folder else ()))]
        read = [_columns(path) for path in columns if path.is_file()]
        self.categories = {name: known for one in read for name, known in one.get("categories", {}).items()}

    # MLflow makes a schema of most type hints and warns of none; this one it leaves alone. Frames are welcome too.
    def predict(self, context: Any, model_input: np.ndarray, params: dict[str, object] | None = None) -> Any:
        if isinstance(model_input, dict):
            flat = {name: np.ravel(one) if isinstance(one, np.ndarray) else one for name, one in model_input.items()}
            lengths = {name: np.size(one) for name, one in flat.items()}
            if len({*lengths.values()}) > 1:
                raise ValueError(f"columns of different lengths: {', '.join(f'{name} {n}' for name, n in lengths.items())}")
            model_input = pandas.DataFrame({name: pandas.Series(one) for name, one in flat.items()})
        categorical = [name for name in columns_of(model_input) if name in self.categories and name in self.model.names]
        frame: Any = model_input
        columns = {name: frame[name].to_list() for name in categorical if hasattr(frame[name], "to_list")}
        narrow = {name: str(getattr(frame[name], "dtype", "")).lower().startswith(("float32", "float[")) for name in columns}
        known = {name: _by_name(column, self.categories[name], name, narrow[name]) for name, column in columns.items()}
        coded = {name: places for name, places in known.items() if places is not None}
        if not coded:
            return self.model.predict(model_input)
        others = tuple(name for name in self.model.names if name not in coded)
        features = np.empty((len(model_input), len(self.model.names)), np.float32)
        if others:
            features[:, [name not in coded for name in self.model.names]] = Reading("", others).features(model_input)[0]
        for name, places in coded.items():
            features[:, self.model.names.index(name)] = places
        return self.model.predict(features)


def _columns(path: Path) -> dict[str, Any]:
    """How a model's data were read, as it was written beside the model (`tasks.store.cells.write_columns`); releases before 0.2 wrote no digest."""
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    written = [
        {name: read[name] for name in read if name != "digest"},
        sha256((path.parent / "model.json").read_bytes()).hexdigest(),
    ]
    if "digest" in read and read["digest"] != sha256(json.dumps(written, sort_keys=True).encode()).hexdigest():
        raise ValueError(f"{path}: does not match this model's digest: the file was changed or belongs to another model")
    return read


def _by_name(column: list[Any], categories: list[str], name: str, narrow: bool = False) -> list[float] | None:
    """The places of a column's categories, NaN of one that is missing or unknown; None where all are places already: numbers are, whatever else the
    column holds, where no category is called by a number. `narrow`: its numbers are float32, which no category need be to the last digit."""
    listed, column = [_called(one) for one in categories], [None if type(one).__name__ in _MISSING else one for one in column]
    by_place = not any(_NUMBER.fullmatch(one or "") for one in listed)
    given = [by_place and isinstance(one, Real) and not isinstance(one, bool) for one in column]
    if by_place and any(given) and all(there or one is None for there, one in zip(given, column, strict=True)):
        return None
    truth = {str(one).lower() for one in listed} <= {"true", "false"}
    places = {str(one).lower() if truth else one: float(place) for place, one in reversed(list(enumerate(listed)))}
    called = [None if there else _called(one) for there, one in zip(given, column, strict=True)]
    rounded = np.float32 if narrow else float
    numbers = {rounded(one): place for one, place in places.items() if one is not None and _NUMBER.fullmatch(one)}

    def place_of(value: Any, text: str | None) -> float:
        if isinstance(value, float) and not value.is_integer():
            return numbers.get(rounded(value), np.nan)
        return places.get(text.lower() if truth and text else text, np.nan)

    found = [place_of(one, text) for one, text in zip(column, called, strict=True)]
    found = [float(one) if there else place for there, one, place in zip(given, column, found, strict=True)]
    unknown = [one for one, place in zip(called, found, strict=True) if one is not None and place != place]
    if unknown:
        told = f"{len(unknown):,} of {len(column):,} values are not a category of the model, such as {unknown[0]!r}; they count as missing"
        warnings.warn(f"column {name!r}: {told}", stacklevel=2)
    return found


_MISSING = ("NAType", "NaTType")
"""What pandas has for missing values beside NaN, which are equal to nothing and not unequal either."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?")


def _called(value: Any) -> str | None:
    """What a category is called: text, of bytes too, without spaces around it, whole numbers without a point, moments in the digits that they need and days without a
    time; None for a missing value."""
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return str(int(value))
    text = (bytes(value).decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value)).strip()
    if _MOMENT.fullmatch(text) or type(value).__name__ == "time":
        text = re.sub(r"(\.\d*?)0+$", r"\1", text).removesuffix(".")
        return text.removesuffix(" 00:00:00")
    return text.partition(".")[0] if re.fullmatch(r"[+-]?\d+\.0+", text) else text


set_model(ServedRanker())
