"""A grid of cells over one data set's folds: what there is to train, training it, and choosing on validation."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from prefect.futures import as_completed

from flows.runners import let_go_of_broken_pool
from tasks.config import RunConfig
from tasks.labels import share
from tasks.train import cell_key, train

Cell = dict[str, Any]


class WorkerError(OSError):
    """A process that trained a cell is gone."""


def cells_of(config: RunConfig, rankers: Sequence[str], folds: list[dict[str, str]]) -> list[Cell]:
    """Every cell of some rankers: ranker × grid point × fold, with the label people know it by."""
    conventions = config.conventions.model_dump(mode="json")  # type: ignore[attr-defined]
    return [
        {
            "label": _label(ranker, point, fold if len(folds) > 1 else None),
            "ranker": ranker,
            "point": point,
            "fold": fold,
            "section": section.model_dump(mode="json", exclude={"sweep", "on"}),
            **names,
            "train": share(names["train"], section.train_share, config.seed),
            "measures": config.all_measures,
            "conventions": conventions,
        }
        for ranker in rankers
        for point, section in config.cells(ranker)
        for fold, names in enumerate(folds)
    ]


def _label(ranker: str, point: dict[str, Any], fold: int | None) -> str:
    settings = point_label(point)
    return ranker + (f" · {settings}" if settings else "") + (f" · fold {fold + 1}" if fold is not None else "")


def point_label(point: dict[str, Any]) -> str:
    """A point of a grid as people write it: ``learning_rate=0.1, 1.weight=0.3``."""
    return ", ".join(f"{path.replace('objective.', '')}={value}" for path, value in point.items())


def train_all(config: RunConfig, cells: list[Cell], fresh: bool, finished: Callable[[Cell, dict[str, Any]], None]) -> None:
    """Trains what is not there yet; `finished` sees each cell with its result as soon as it is done.

    So many cells are under way at a time as the configuration has workers. Two cells that decide the same (the same parameters under
    two names) are trained once.
    """
    workers = config.workers
    threads = max(1, (os.cpu_count() or 1) // workers) if workers > 1 else 0
    home = str(Path.cwd())
    step = train.with_options(refresh_cache=True) if fresh else train
    same: dict[str, list[Cell]] = {}
    for cell in cells:
        same.setdefault(cell_key(cell), []).append(cell)
    waiting = list(same.values())
    running: dict[Any, list[Cell]] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            alike = waiting.pop(0)
            running[step.submit(alike[0], threads, fresh, home, config.parts)] = alike
        future = next(as_completed(list(running)))
        try:
            result = future.result()
        except Exception as error:
            if type(error).__name__ in ("BrokenProcessPool", "KilledWorker"):
                let_go_of_broken_pool()
                raise WorkerError(
                    f"a worker process ended while it trained {running[future][0]['label']}, perhaps for want of memory: what was trained is "
                    "kept, run the same command again, with fewer at a time if need be"
                ) from error
            raise
        for cell in running.pop(future):
            finished(cell, result)


def choose(results: list[tuple[Cell, dict[str, Any]]], select: str) -> Iterator[tuple[str, int, Cell, dict[str, Any]]]:
    """For each ranker and fold the cell with the highest validation value; the first in the grid where several tie.

    Raises:
        ValueError: where the measure is undefined on every validation query.
    """
    best: dict[tuple[str, int], tuple[Cell, dict[str, Any]]] = {}
    for cell, result in results:
        value = result["metrics"].get(f"valid_{select}")
        if value is None:
            raise ValueError(f"{select} is undefined on every validation query: no relevant document there")
        place = (cell["ranker"], cell["fold"])
        if place not in best or value > best[place][1]["metrics"][f"valid_{select}"]:
            best[place] = (cell, result)
    for (ranker, fold), (cell, result) in best.items():
        yield ranker, fold, cell, result
