"""The cells of a run: what they are called and made of, and training them, so many at a time."""

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from flows.runners import first_done, let_go_of_broken_pool, unheard_by_workers
from tasks.config.run_config import GridPoint, RunConfig
from tasks.data.folds import share
from tasks.records import Cell, CellResult, Fold, Progress, WorkerError, point_title
from tasks.store.cells import cell_key
from tasks.training.cell import STOP, result_of, train
from tasks.training.snapshot import is_begun

AS_WRITTEN = "trial 1: as written"
"""In the label of a search's first cell."""


def cells_of(config: RunConfig, rankers: Sequence[str], folds: tuple[Fold, ...]) -> list[Cell]:
    """Every cell of some rankers: ranker × grid point × fold, with the label people know it by."""
    return [
        cell_at(config, ranker, point, fold, folds)
        for ranker in rankers
        for point in config.cells(ranker)
        for fold in range(len(folds))
    ]


def cell_at(config: RunConfig, ranker: str, point: GridPoint, fold: int, folds: tuple[Fold, ...]) -> Cell:
    """The cell of a ranker with its parameters set, on one of the folds."""
    data = folds[fold]
    return Cell(
        label=label_of(ranker, point_title(point.settings), fold if len(folds) > 1 else None),
        ranker=ranker,
        fold=fold,
        point=point.settings,
        section=point.section.model_dump(
            mode="json", exclude={"of": {"__all__": {"best"}}, **dict.fromkeys(("sweep", "search", "select", "on", "best"), True)}
        ),
        data=Fold(share(data.train, point.section.train_share, config.seed), data.valid, data.test),
        measures=tuple(config.all_measures),
        conventions=config.conventions.model_dump(mode="json"),
        columns=config.data.columns,
    )


def label_of(ranker: str, settings: str, fold: int | None) -> str:
    """What people call a cell: its ranker, what is set, and its fold from 0, where there are several."""
    return ranker + (f" · {settings}" if settings else "") + (f" · fold {fold + 1}" if fold is not None else "")


def say_what_goes_on(config: RunConfig, cells: Sequence[Cell], there: Collection[str], progress: Progress) -> None:
    """Names the cells whose training broke off and goes on, among those that are not `there`; of a run in parts none, as trees begin again there."""
    for cell in cells if config.parts == 1 else ():
        if (key := cell_key(cell)) not in there and is_begun(key):
            progress.say(f"{cell.label}: goes on from where its training broke off")


def train_all(
    config: RunConfig,
    cells: Sequence[Cell],
    fresh: bool,
    finished: Callable[[Cell, CellResult], None],
    failed: Callable[[Cell, Exception], None] | None = None,
    more: Callable[[], bool] | None = None,
) -> None:
    """Trains what is not there yet; `finished` sees each cell with its result as soon as it is done, `failed` each one that cannot be
    trained on its data, with the error; without it that error ends everything. `more` is asked before another one is begun; once it says
    no, those under way are finished and no other is begun.

    So many cells are under way at a time as the configuration has workers. Two cells that decide the same (the same parameters under
    two names) are trained once.

    Raises:
        WorkerError: where a process that trained a cell is gone, or the scheduler of all.
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
            if more is not None and not more():
                waiting.clear()
                break
            alike = waiting.pop(0)
            with unheard_by_workers():
                running[step.submit(alike[0], threads, fresh, home, config.parts)] = alike
        if not running:
            return
        future = first_done(list(running))
        try:
            future.result()
            result = result_of(running[future][0])
        except Exception as error:
            if STOP.is_set():  # a library may make an error of its own of the interruption
                raise KeyboardInterrupt from error
            if (kind := type(error).__name__) in ("BrokenProcessPool", "KilledWorker", "FutureCancelledError"):
                let_go_of_broken_pool()
                # A pool that has lost one worker ends all others, and does not say which one it was; a scheduler is that of all.
                lost = [running[future]] if kind == "KilledWorker" else list(running.values())
                named = f"{' and '.join(alike[0].label for alike in lost)} {'were' if len(lost) > 1 else 'was'} being trained"
                if kind == "FutureCancelledError":
                    raise WorkerError(
                        f"Dask's scheduler ended, or started anew, while {named}: what was trained is kept; run the same command again once it is there"
                    ) from error
                raise WorkerError(
                    f"a worker process died while {named}, perhaps for lack of memory: what was trained is kept; run the same command again, with "
                    "fewer at a time if need be"
                ) from error
            if failed is None or not isinstance(error, ValueError | ArithmeticError):
                raise
            for cell in running.pop(future):
                failed(cell, error)
            continue
        for cell in running.pop(future):
            finished(cell, result)
