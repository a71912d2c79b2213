"""What a user means by a model or a run: a folder, an MLflow run (its id or the beginning of it), or one ranker of a run."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import ltr
from tasks.export.readers import read_model, source_of
from tasks.export.weights import read_weights
from tasks.records import DataError
from tasks.store.cells import CellFolder
from tasks.tracking.registry import model_of
from tasks.tracking.tracker import CELL_KEY, PARENT, RUN_KEY, Tracked, tracked


@dataclass(frozen=True)
class Stored:
    """Per-query test values of one ranker of a finished run, and the key of the measure that the run selected by, where it is known."""

    name: str
    paths: tuple[str, ...]
    select: str | None = None


def find_model(reference: str, names: tuple[str, ...] = ()) -> ltr.Ranker:
    """The model in a folder, at an address of the registry (``models:/NAME@champion``), of a cell's run, or of a whole run (its best ranker's); or a file over the features `names`: trees of
    LightGBM or XGBoost (`read_model`), otherwise linear weights (`read_weights`).

    Raises:
        DataError: where there is none, or several.
    """
    if (Path(reference) / "model.json").is_file():
        return ltr.load(reference)
    if Path(reference).is_file():
        if source_of(reference) is not None or reference.endswith(".ubj"):
            return read_model(reference, names)
        try:
            return ltr.LeastSquares.of_weights(read_weights(Path(reference)), names)
        except ValueError as error:
            raise DataError(f"{reference}: {error}") from None
    if reference.startswith("models:/"):
        return model_of(reference)
    run = find_run(reference)
    if RUN_KEY in run.tags:
        best = run.tags.get("best")
        cells = [cell for cell in run.children() if cell.tags.get("digest") == run.tags.get("digest")]
        if not cells:
            raise DataError(f"{reference}: its best ranker {best!r} is one model a fold; name one cell's run instead")
        run = cells[0]
    local = CellFolder.of(run.tags[CELL_KEY]).model
    if local.is_dir():
        return ltr.load(local)
    with tempfile.TemporaryDirectory() as folder:
        return ltr.load(run.download_model(Path(folder)))


def find_values(reference: str) -> Stored:
    """``RUN`` (a cell, or the best ranker of a run) or ``RUN:RANKER``.

    Raises:
        DataError: where there is no such run or ranker.
    """
    run_id, _, ranker = reference.partition(":")
    run = find_run(run_id)
    if RUN_KEY not in run.tags:
        parent = next((one for one in tracked() if one.id == run.tags.get(PARENT)), run)
        return Stored(f"{run.name} {run.id[:6]}", (str(run.download("values.parquet")),), _select(parent))
    chosen: dict[str, list[str]] = json.loads(run.tags.get("chosen", "{}"))
    ranker = ranker or run.tags.get("best", "")
    if ranker not in chosen:
        raise DataError(f"{reference}: run {run.id[:8]} has no finished ranker {ranker!r}; it has: {', '.join(chosen) or 'none'}")
    by_key = {cell.tags[CELL_KEY]: cell for cell in run.children()}
    return Stored(f"{ranker} {run.id[:6]}", tuple(_values(by_key, key) for key in chosen[ranker]), _select(run))


def _select(run: Tracked) -> str | None:
    return ltr.Measure.of(run.params["select"]).key if "select" in run.params else None


def _values(cells: dict[str, Tracked], key: str) -> str:
    local = CellFolder.of(key).values
    return str(local if local.is_file() else cells[key].download("values.parquet"))


def find_run(reference: str) -> Tracked:
    """The one run whose id begins with `reference`."""
    found = [run for run in tracked() if run.id.startswith(reference)]
    if len(found) != 1:
        raise DataError(f"{reference}: {'no folder with a model and no run' if not found else f'{len(found)} runs'} of that name")
    return found[0]
