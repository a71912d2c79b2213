"""A grid of cells over one data set's folds: what there is to train, training it, and choosing on validation."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect.futures import as_completed

import ltr
from flows.runners import let_go_of_broken_pool
from tasks.config.run_config import RunConfig
from tasks.data.folds import share
from tasks.evidence.drawing import title_of
from tasks.evidence.protocol import values_path
from tasks.evidence.significance import Standings, standings
from tasks.records import Cell, CellResult, ExpectationError, Failure, Fold, Progress, Trained, WorkerError, point_title
from tasks.store.cells import CellFolder, cell_key
from tasks.tracking.description import describe_fold, prefect_tags
from tasks.tracking.tracker import Tracker
from tasks.training.cell import train
from tasks.training.stack import stack

Finished = Callable[[Cell, CellResult], None]
Failed = Callable[[Cell, Exception], None]


@dataclass(frozen=True)
class Swept:
    """What a sweep gave.

    Attributes:
        config: of the run, with the rankers that could be trained on every fold and the evidence that is left of them.
        cells: that were trained, in the order of the grid.
        failures: cells that could not be trained, and what went with them.
    """

    config: RunConfig
    cells: tuple[Trained, ...]
    failures: tuple[Failure, ...]


def sweep(config: RunConfig, folds: tuple[Fold, ...], tracker: Tracker, fresh: bool, progress: Progress) -> Swept:
    """Trains all cells and notes each in MLflow; results in the order of the grid. Rankers with expected numbers come first, and
    nothing else is trained where those do not come out; rankers on the scores of others come last. A cell that cannot be trained
    takes no other cell with it.

    Raises:
        ExpectationError: where an expected number does not come out.
        Exception: of the first cell, where no ranker could be trained.
    """
    results: dict[int, CellResult] = {}
    errors: dict[int, tuple[Cell, Exception]] = {}
    there: set[str] = set()

    def finished(cell: Cell, result: CellResult) -> None:
        results[id(cell)] = result
        tracker.cell(cell, result, list(describe_fold(cell.data)), prefect_tags())
        progress.done(_told(cell, result, config.select_of(cell.ranker), result.key in there))

    def failed(cell: Cell, error: Exception) -> None:
        errors[id(cell)] = (cell, error)
        tracker.failed_cell(cell, cell_key(cell), str(error))
        progress.done(f"{cell.label}: {error}")

    def trained(cells: Iterable[Cell]) -> tuple[Trained, ...]:
        return tuple(Trained(cell, results[id(cell)]) for cell in cells if id(cell) in results)

    cells = cells_of(config, config.alone, folds)
    progress.begin("training", len(cells))
    there |= _finished(cells, fresh)
    expected = config.expect.values if config.expect else {}
    first = [cell for cell in cells if cell.ranker in expected]
    train_all(config, first, fresh, finished)
    expect_numbers(config, trained(first))
    train_all(config, [cell for cell in cells if cell.ranker not in expected], fresh, finished, failed)
    left, lost = config.without(_incomplete(config.alone, trained(cells), len(folds)))
    stacked = _stacked_cells(left, folds, trained(cells))
    if stacked:
        progress.begin("training on scores", len(stacked))
        there |= _finished(stacked, fresh)
        train_all(left.model_copy(update={"parts": 1}), stacked, fresh, finished, failed)
    done = trained((*cells, *stacked))
    left, more = left.without(_incomplete(list(left.rankers), done, len(folds)))
    if not left.rankers:
        raise next(iter(errors.values()))[1]
    failures = (*(Failure(cell.label, str(error)) for cell, error in errors.values()), *lost, *more)
    return Swept(left, tuple(one for one in done if one.ranker in left.rankers), failures)


def _incomplete(rankers: Sequence[str], trained: Sequence[Trained], n_folds: int) -> list[str]:
    """Rankers without a trained cell on some fold."""
    folds = {name: {one.fold for one in trained if one.ranker == name} for name in rankers}
    return [name for name in rankers if len(folds[name]) < n_folds]


def _finished(cells: Sequence[Cell], fresh: bool) -> set[str]:
    """Keys of cells that are there and will not be trained."""
    return set() if fresh else {key for cell in cells if CellFolder.of(key := cell_key(cell)).is_finished}


def _told(cell: Cell, result: CellResult, select: str, found: bool) -> str:
    value = result.metrics.get(f"valid_{select}")
    shown = "undefined" if value is None else f"{value:.4f}"
    remarks = "; ".join(("found" if found else f"{result.seconds:.1f} s", *result.remarks))
    return f"{cell.label}: validation {title_of(select)} {shown} ({remarks})"


def _stacked_cells(config: RunConfig, folds: tuple[Fold, ...], trained: Sequence[Trained]) -> list[Cell]:
    """The cells of rankers on the scores of others, whose chosen cells are known."""
    wanted = [name for name in config.rankers if name not in config.alone]
    if not wanted:
        return []
    keys = {(t.ranker, t.fold): t.result.key for t in choose(trained, config)}
    cells = []
    for name in wanted:
        bases = config.rankers[name].on
        scored = [stack(fold, {base: keys[base, k] for base in bases}, config.seed) for k, fold in enumerate(folds)]
        cells += cells_of(config, [name], tuple(scored))
    return cells


def cells_of(config: RunConfig, rankers: Sequence[str], folds: tuple[Fold, ...]) -> list[Cell]:
    """Every cell of some rankers: ranker × grid point × fold, with the label people know it by."""
    return [
        Cell(
            label=_label(ranker, point_title(point.settings), fold if len(folds) > 1 else None),
            ranker=ranker,
            fold=fold,
            point=point.settings,
            section=point.section.model_dump(mode="json", exclude={"sweep", "select", "on"}),
            data=Fold(share(data.train, point.section.train_share, config.seed), data.valid, data.test),
            measures=tuple(config.all_measures),
            conventions=config.conventions.model_dump(mode="json"),
            columns=config.data.columns,
        )
        for ranker in rankers
        for point in config.cells(ranker)
        for fold, data in enumerate(folds)
    ]


def _label(ranker: str, settings: str, fold: int | None) -> str:
    return ranker + (f" · {settings}" if settings else "") + (f" · fold {fold + 1}" if fold is not None else "")


def train_all(config: RunConfig, cells: Sequence[Cell], fresh: bool, finished: Finished, failed: Failed | None = None) -> None:
    """Trains what is not there yet; `finished` sees each cell with its result as soon as it is done, `failed` each one that cannot be
    trained on its data, with the error; without it that error ends everything.

    So many cells are under way at a time as the configuration has workers. Two cells that decide the same (the same parameters under
    two names) are trained once.

    Raises:
        WorkerError: where a process that trained a cell is gone.
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
                    f"a worker process ended while it trained {running[future][0].label}, perhaps for want of memory: what was trained is "
                    "kept, run the same command again, with fewer at a time if need be"
                ) from error
            if failed is None or not isinstance(error, ValueError | ArithmeticError):
                raise
            for cell in running.pop(future):
                failed(cell, error)
            continue
        for cell in running.pop(future):
            finished(cell, result)


def choose(trained: Iterable[Trained], config: RunConfig) -> Iterator[Trained]:
    """For each ranker and fold the cell with the highest validation value; the first in the grid where several tie.

    Raises:
        ValueError: where the measure is undefined on every validation query.
    """
    best: dict[tuple[str, int], Trained] = {}
    for one in trained:
        select = config.select_of(one.ranker)
        value = one.result.metrics.get(f"valid_{select}")
        if value is None:
            raise ValueError(f"{select} is undefined on every validation query: no relevant document there")
        place = (one.ranker, one.fold)
        if place not in best or value > best[place].result.metrics[f"valid_{select}"]:
            best[place] = one
    yield from best.values()


def expect_numbers(config: RunConfig, trained: Sequence[Trained]) -> None:
    """Checks the means of rankers that the configuration expects numbers of.

    Raises:
        ExpectationError: where one is not what is expected.
    """
    if config.expect is None:
        return
    paths: dict[str, list[str]] = {}
    for one in choose(trained, config):
        paths.setdefault(one.ranker, []).append(values_path(one))
    table = standings(paths, list(dict.fromkeys(ltr.Measure.of(measure).key for measure in config.measures)))
    wrong = [fault for ranker, values in config.expect.values.items() for fault in _faults(config, table, ranker, values)]
    if wrong:
        raise ExpectationError("\n".join(wrong))


def _faults(config: RunConfig, table: Standings, ranker: str, values: dict[str, float]) -> Iterator[str]:
    tolerance = config.expect.tolerance if config.expect else 0.0
    for metric, value in values.items():
        cell = table.rows[ranker].cells.get(metric.removeprefix("test_"))
        if cell is None or cell.mean is None or not abs(cell.mean - value) <= tolerance + 1e-12:
            came = "was not measured" if cell is None else "is undefined" if cell.mean is None else f"is {cell.mean:.5f}"
            yield f"{ranker}: {metric} {came}, expected {value:g} ± {tolerance:g}"
