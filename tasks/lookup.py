"""What a user means by a model or a run: a folder, an MLflow run (its id or the beginning of it), or one ranker of a run."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ltr
from tasks.exchange import read_model, source_of
from tasks.ingest import DataError
from tasks.registry import model_of
from tasks.tracking import CELL_KEY, RUN_KEY, Tracked, tracked
from tasks.train import folder_of


@dataclass(frozen=True)
class Stored:
    """Per-query test values of one ranker of a finished run."""

    name: str
    paths: list[str]


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
    local = folder_of(run.tags[CELL_KEY]) / "model"
    if local.is_dir():
        return ltr.load(local)
    with tempfile.TemporaryDirectory() as folder:
        return ltr.load(run.download_model(Path(folder)))


def read_weights(path: Path) -> dict[str, float]:
    """Weights by feature name: a JSON object ``{"f1": 0.3}``, lines ``name,weight``, or RankLib's and SVM-rank's ``1:0.3 2:-1``
    (feature k is ``fk``; ``#`` begins a comment).

    Raises:
        ValueError: naming the line.
    """
    text = path.read_text()
    if text.lstrip().startswith("{"):
        return {str(name): float(weight) for name, weight in json.loads(text).items()}
    weights: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for part in line.split("#")[0].split() if ":" in line.split("#")[0] else [line.split("#")[0].strip()]:
            name, _, weight = part.partition(":" if ":" in part else ",")
            try:
                if part:
                    weights[f"f{int(name)}" if ":" in part else name.strip()] = float(weight)
            except ValueError:
                raise ValueError(f"line {number}: {part!r} is no weight; write name,weight or number:weight") from None
    return weights


def find_values(reference: str) -> Stored:
    """``RUN`` (a cell, or the best ranker of a run) or ``RUN:RANKER``.

    Raises:
        DataError: where there is no such run or ranker.
    """
    run_id, _, ranker = reference.partition(":")
    run = find_run(run_id)
    if RUN_KEY not in run.tags:
        return Stored(f"{run.name} {run.id[:6]}", [str(run.download("values.parquet"))])
    chosen: dict[str, list[str]] = json.loads(run.tags.get("chosen", "{}"))
    ranker = ranker or run.tags.get("best", "")
    if ranker not in chosen:
        raise DataError(f"{reference}: run {run.id[:8]} has no finished ranker {ranker!r}; it has: {', '.join(chosen) or 'none'}")
    by_key = {cell.tags[CELL_KEY]: cell for cell in run.children()}
    return Stored(f"{ranker} {run.id[:6]}", [_values(by_key, key) for key in chosen[ranker]])


def _values(cells: dict[str, Tracked], key: str) -> str:
    local = folder_of(key) / "values.parquet"
    return str(local if local.is_file() else cells[key].download("values.parquet"))


def find_run(reference: str) -> Tracked:
    """The one run whose id begins with `reference`."""
    found: list[Any] = [run for run in tracked() if run.id.startswith(reference)]
    if len(found) != 1:
        raise DataError(f"{reference}: {'no folder with a model and no run' if not found else f'{len(found)} runs'} of that name")
    return found[0]
