"""The model as MLflow serves it: loaded from code and arrays, fed features (array or frame), answering scores.

The core that it was made with lies beside it in one file, for each file that is sent to a server is a request. Python would import from that
file as it is; numba, which looks at sources, would not, so it is unpacked.
"""

import json
import os
import sys
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from zipfile import ZipFile

import numpy as np
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
    ZipFile(_CORE).extractall(made)
    if made != place:
        try:
            made.rename(place)
        except OSError:  # another process was first, or files were lost since
            for name in lost:
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (made / name).replace(place / name)
            rmtree(made, ignore_errors=True)
    return place


if _CORE.is_file() and "ltr" not in sys.modules:
    sys.path.insert(0, str(_unpacked()))

import ltr  # noqa: E402
from ltr.rankers.base import columns_of  # noqa: E402
from ltr.rankers.stacked import Stacked  # noqa: E402
from ltr.rankers.tables import Reading  # noqa: E402


class ServedRanker(PythonModel):
    """Scores of documents, higher is better; a frame is read by feature name, categories in it by name or by number, an array by position."""

    def load_context(self, context: Any) -> None:
        """Opens the model's own files, and those of the models below it."""
        model, folder = ltr.load(context.artifacts["model"]), context.artifacts.get("below")
        bases = [ltr.load(base) for base in sorted(Path(folder).iterdir(), key=lambda base: int(base.name))] if folder else []
        self.model = Stacked(tuple(bases), model) if bases else model
        columns = [Path(one) / "columns.json" for one in (context.artifacts["model"], *(Path(folder).iterdir() if folder else ()))]
        read = [json.loads(path.read_text(encoding="utf-8")) for path in columns if path.is_file()]
        self.categories = {name: known for one in read for name, known in one.get("categories", {}).items()}

    # MLflow makes a schema of most type hints and warns of none; this one it leaves alone. Frames are welcome too.
    def predict(self, context: Any, model_input: np.ndarray, params: dict[str, object] | None = None) -> Any:
        named = {
            name: known
            for name, known in self.categories.items()
            if name in columns_of(model_input) and any(isinstance(one, str) for one in model_input[name].to_list())
        }
        return self.model.predict(Reading("", self.model.names, named).features(model_input)[0] if named else model_input)


set_model(ServedRanker())
