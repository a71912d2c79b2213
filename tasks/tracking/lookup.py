"""What a user means by a model: a folder, a file, an address of the registry, or a run (`tasks.tracking.runs`). MLflow, which takes a second
to import, comes in for the last two alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import ltr
from tasks.export.readers import read_model, source_of
from tasks.export.weights import read_weights
from tasks.records import Columns, DataError
from tasks.store.cells import CellFolder, read_columns


def find_model(reference: str, names: tuple[str, ...] = ()) -> ltr.Ranker:
    """The model in a folder, at an address of the registry (``models:/NAME@champion``), or of a run (`find_cell`); or a file over the
    features `names`: trees of LightGBM or XGBoost (`read_model`), otherwise linear weights (`read_weights`).

    Raises:
        DataError: where there is none, or several.
    """
    if Path(reference).is_file():
        if source_of(reference) is not None or reference.endswith(".ubj"):
            return read_model(reference, names)
        try:
            return ltr.LeastSquares.of_weights(read_weights(Path(reference)), names)
        except ValueError as error:
            raise DataError(f"{reference}: {error}") from None
    with _folder(reference) as folder:
        return ltr.load(folder)


def find_columns(reference: str) -> Columns:
    """How the files were read that a model learned from, as it remembers that; the usual names where it does not."""
    if Path(reference).is_file():
        return Columns()
    with _folder(reference) as folder:
        return read_columns(folder) or Columns()


@contextmanager
def _folder(reference: str) -> Iterator[Path]:
    """The folder with a model's own files."""
    if (Path(reference) / "model.json").is_file():
        yield Path(reference)
        return
    with TemporaryDirectory() as temporary:
        if reference.startswith("models:/"):
            from tasks.tracking.registry import download_version

            yield download_version(reference, Path(temporary))
            return
        from tasks.tracking.runs import find_cell, key_of

        cell = find_cell(reference)
        local = CellFolder.of(key_of(cell)).model
        yield local if local.is_dir() else cell.download_model(Path(temporary))
