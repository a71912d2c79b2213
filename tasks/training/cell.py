"""One cell of a sweep: a ranker with its parameters set, trained on one fold, its values taken on validation and test.

A cell is known by the digest of everything that decides its outcome (parameters, data, measures, conventions, the core's
sources), so running a command again finds finished cells and trains only what is missing.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numba
import numpy as np
import polars as pl
from prefect import task

import ltr
from ltr.data.queries import Queries
from ltr.objectives.effective_pairs import BANDS
from tasks.config.ranker_section import Polish, read_conventions, read_ranker
from tasks.records import RETRIEVED, Cell, CellResult
from tasks.store import state
from tasks.store.binned import open_for
from tasks.store.cells import (
    CellFolder,
    ImportanceFile,
    PairsEntry,
    PositionBiasFile,
    cell_key,
    write_columns,
    write_pairs,
    write_record,
)
from tasks.store.datasets import open_queries
from tasks.store.values import means, table, write_values
from tasks.training.compiling import seconds_compiling
from tasks.training.how_far import noting
from tasks.training.scoring import evaluate, ranks_by_chance, retrieved_only
from tasks.training.snapshot import Snapshot, begun_in, write_curve, write_rest

STOP = threading.Event()
"""Set to end the cells that are being trained, after their current tree or epoch."""


def _is_interrupted() -> bool:
    """A function, as a worker is sent `train` with everything that it names, and no lock can be sent."""
    return STOP.is_set()


def _tick() -> None:
    if _is_interrupted():
        raise InterruptedError("training was interrupted")


def _cached(_: Any, arguments: dict[str, Any]) -> str | None:
    """Prefect's cache key; none where the cell's folder is gone, so that it is trained again."""
    if arguments["home"] is not None:
        state.use_folder(arguments["home"])
    key = cell_key(arguments["cell"])
    return key if CellFolder.of(key).is_finished else None


@task(name="train", task_run_name="train {cell.short_label}", cache_key_fn=_cached, persist_result=True, result_serializer="json")
def train(cell: Cell, threads: int = 0, fresh: bool = False, home: str | None = None, shards: int = 1) -> CellResult:
    """Trains one cell; model, per-query values and curve lie in its folder.

    Args:
        threads: threads of the kernels, 0 for all; it changes the time and nothing else.
        fresh: train even if it is there.
        home: the working directory of the run, where this is a process of its own.
        shards: of the training queries, each held by a Dask worker, where the ranker can be trained so.
    """
    if home is not None:
        state.use_folder(home)
    key = cell_key(cell)
    folder = CellFolder.of(key)
    if folder.is_finished and not fresh:
        return folder.result()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS) if threads else numba.config.NUMBA_NUM_THREADS)
    conventions = read_conventions(cell.conventions)
    section = read_ranker(cell.section)
    ranker = section.model(conventions)
    sets = {role: open_queries(name) for role, name in cell.data.roles.items()}
    learned = {role: retrieved_only(queries) for role, queries in sets.items() if role != "test"}
    started, compiling = time.perf_counter(), seconds_compiling()
    snapshot = Snapshot(key, lambda: time.perf_counter() - started - (seconds_compiling() - compiling), _is_interrupted)
    if fresh:
        snapshot.clear()
    tick, watching = None if ranker.goes_on else _tick, dict[str, Any]()
    if isinstance(ranker, ltr.Average):
        watching = {"kept": snapshot.member}
    whole = RETRIEVED not in sets["train"].sources
    in_shards = shards > 1 and ranker.sharded and bool(cell.data.valid) and whole
    learned_from: Any = open_for(ranker, cell.data.train) if whole and not in_shards else learned["train"]
    with noting(cell.label) as noted:
        if ranker.goes_on:
            watching = {"callbacks": (noted, snapshot)}
        if in_shards:
            from tasks.training.cluster import fit_in_shards

            fitted: ltr.Ranker = fit_in_shards(ranker, cell.data.train, cell.data.valid, shards, _tick)
        elif (begun := snapshot.read() or _cut(cell.start)) is not None:
            fitted = ranker.go_on(begun, learned_from, learned.get("valid"), tick, **watching)
        else:
            fitted = ranker.fit(learned_from, learned.get("valid"), tick, **watching)
    if section.polish:
        fitted = _polished(fitted, section.polish, learned)
    seconds = snapshot.seconds
    values = [
        table(evaluate(fitted, sets[role], cell.measures, conventions), sets[role], role)
        for role in ("valid", "test")
        if role in sets
    ]
    taken = means(pl.concat(values)) if values else {}
    if ranks_by_chance(fitted, sets.get("test", learned["train"])):
        fitted = replace(fitted, remarks=(*fitted.remarks, "it gives all documents the same score, so the ranking is random"))
    pairs = fitted.counted_pairs
    counted = {"effective_pairs": float(np.mean([sum(found.total for found in terms) for _, terms in pairs]))} if pairs else {}
    result = CellResult(key, fitted.digest, taken | counted, round(seconds, 3), fitted.remarks)
    with state.made_whole(folder.path, replace=fresh) as partial:
        _write(CellFolder(partial), cell, fitted, values, result)
    snapshot.clear()
    return result


def result_of(cell: Cell) -> CellResult:
    """The result of `train`, from the cell's own sealed folder: what Prefect keeps of it anybody may have changed."""
    return CellFolder.of(cell_key(cell)).result()


def _cut(key: str) -> ltr.Ranker | None:
    """The ranker of the cell that is this one with fewer iterations."""
    return begun_in(CellFolder.of(key)) if key else None


def _polished(fitted: ltr.Ranker, how: Polish, sets: Mapping[str, Queries]) -> ltr.Ranker:
    """The ranker at a local optimum of the measure, or as it was where that is better on validation queries."""
    assert how.measure is not None
    found = ltr.polish(fitted, sets["train"], how.measure, how.steps, how.epsilon, how.delta, _tick)
    if "valid" not in sets:
        return replace(found.ranker, remarks=(*fitted.remarks, f"polished, {found.text}"))

    def on_valid(ranker: ltr.Ranker) -> float:
        (values,) = evaluate(ranker, sets["valid"], [str(how.measure)], ranker.conventions).values()
        return float(np.nanmean(values))

    before, after = on_valid(fitted), on_valid(found.ranker)
    taken = "taken" if after >= before else "left"
    remark = f"polished, {found.text}; validation {before:.4f} → {after:.4f}: {taken}"
    return replace(found.ranker if taken == "taken" else fitted, remarks=(*fitted.remarks, remark))


def polish_was_left(result: CellResult) -> bool:
    """Whether validation queries refused the place that a cell's ranker was polished to."""
    return any(remark.startswith("polished, ") and remark.endswith(": left") for remark in result.remarks)


def _write(folder: CellFolder, cell: Cell, fitted: ltr.Ranker, values: list[pl.DataFrame], result: CellResult) -> None:
    ltr.save(fitted, folder.model)
    write_columns(folder.model, cell.columns)
    if values:
        write_values(folder.values, values, cell.conventions, open_queries(cell.data.test))
    write_curve(folder, fitted)
    if cell.goes_on:
        write_rest(folder, fitted)
    if counts := {by: shares.tolist() for by, shares in fitted.importances.items()}:
        write_record(folder.importance, ImportanceFile(list(fitted.names), **counts))
    if biases := {name: values.tolist() for name, values in fitted.position_bias.items()}:
        write_record(folder.position_bias, PositionBiasFile(biases))
    if pairs := fitted.counted_pairs:
        write_pairs(folder.pairs, [_pairs_entry(iteration, found) for iteration, terms in pairs for found in terms])
    write_record(folder.result_file, result)


def _pairs_entry(iteration: int, found: ltr.Ledger) -> PairsEntry:
    written = {**asdict(found), "labels": list(found.labels), "counts": found.counts.tolist()}
    return PairsEntry(**written, bands=[*BANDS, None], total=found.total, iteration=iteration)
