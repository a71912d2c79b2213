"""What a user means by a model: a folder, a file, an address of the registry, or a run (`tasks.tracking.runs`). MLflow, which takes a second
to import, comes in for the last two alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import ltr
from ltr.rankers.stacked import Stacked
from tasks.export.readers import contents_of, is_foreign, read_model
from tasks.export.weights import read_weights
from tasks.records import Columns, DataError
from tasks.store.cells import CellFolder, read_columns

if TYPE_CHECKING:
    from tasks.tracking.tracked import Tracked


def find_model(reference: str, names: tuple[str, ...] = (), named_only: bool = False) -> ltr.Ranker:
    """The model in a folder, at an address of the registry (``models:/NAME@champion``), or of a run (`find_cell`), with the models below it
    where it learned from their scores; or a file over the features `names`, or over those that it names: trees of LightGBM or XGBoost
    (`read_model`), otherwise linear weights (`read_weights`).

    Args:
        named_only: linear weights are over those of `names` that the file has a weight for, so that others may be missing in a document; otherwise
            over all of them, of which the others have weight 0.

    Raises:
        DataError: where there is none, or several.
    """
    if Path(reference).is_file():
        if is_foreign(reference):
            return read_model(reference, names)
        try:
            weights = read_weights(Path(reference))
            read = tuple(name for name in names if name in weights) if named_only else names
            return ltr.LeastSquares.of_weights(weights, read or names or tuple(weights))
        except ValueError as error:
            raise DataError(f"{reference}: {error}") from None
    if (Path(reference) / "model.json").is_file() or reference.startswith("models:/"):
        with _folder(reference) as folder:
            return ltr.load(folder)
    from tasks.tracking.runs import bases_of, find_cell

    cell = find_cell(reference)
    model = _of_cell(cell)
    bases = tuple(_of_cell(base) for base in bases_of(cell, model.names))
    return Stacked(bases, model) if bases else model


def settled(reference: str) -> str:
    """The model that is meant now, for commands that ask for it more than once: an alias may be given to another version meanwhile, and the columns
    of one are not those of the other."""
    if not reference.startswith("models:/"):
        return reference
    from tasks.tracking.registry import numbered

    return numbered(reference)


def places_in(reference: str, first_feature: int) -> tuple[str, ...]:
    """What LETOR text calls the features of a model of another tool that names none, in their order; nothing for other models."""
    if not (Path(reference).is_file() and is_foreign(reference)):
        return ()
    found = contents_of(Path(reference))[1]
    return () if found.named else tuple(f"f{k + first_feature}" for k in range(len(found.names)))


def named_features(reference: str) -> tuple[str, ...]:
    """The features that a model reads by name; none where it names none.

    Raises:
        DataError: as `find_model`.
    """
    return () if places_in(reference, 0) else find_model(reference).names


def find_columns(reference: str) -> Columns:
    """How the files were read that a model learned from, as it remembers that; the usual names where it does not. A model of another tool
    remembers the categories of columns."""
    if Path(reference).is_file():
        return Columns(categories=contents_of(Path(reference))[1].categories if is_foreign(reference) else {})
    with _folder(reference) as folder:
        return read_columns(folder) or Columns()


@contextmanager
def _folder(reference: str) -> Iterator[Path]:
    """The folder with a model's own files."""
    if (Path(reference) / "model.json").is_file():
        yield Path(reference)
    elif reference.startswith("models:/"):
        from tasks.tracking.registry import download_version

        with TemporaryDirectory() as temporary:
            folder = download_version(reference, Path(temporary))
            try:
                yield folder
            except ValueError as error:
                if str(folder) not in str(error):
                    raise
                raise DataError(str(error).replace(str(folder), reference)) from None
    else:
        from tasks.tracking.runs import find_cell

        with _folder_of(find_cell(reference)) as folder:
            yield folder


def _of_cell(cell: "Tracked") -> ltr.Ranker:
    with _folder_of(cell) as folder:
        return ltr.load(folder)


@contextmanager
def _folder_of(cell: "Tracked") -> Iterator[Path]:
    """The folder with the files of a cell's model."""
    from tasks.tracking.runs import key_of

    cells = CellFolder.of(key_of(cell))
    local = cells.model
    with TemporaryDirectory() as temporary:
        yield local if cells.is_finished else cell.download_model(Path(temporary))
