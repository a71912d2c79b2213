"""One cell of a sweep: a ranker with its parameters set, trained on one fold, its values taken on validation and test.

A cell is known by the digest of everything that decides its outcome (parameters, data, measures, conventions, the core's
sources), so running a command again finds finished cells and trains only what is missing.
"""

import json
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import polars as pl
from prefect import task
from prefect.cache_policies import NO_CACHE

import ltr
from ltr.data.queries import Queries, select
from ltr.objectives.effective_pairs import BANDS
from tasks import store
from tasks.config import SECTIONS, Conventions
from tasks.evaluate import evaluate, means, table
from tasks.labels import shuffled

STOP = threading.Event()
"""Set to end the cells that are being trained, after their current tree or epoch."""


def _tick() -> None:
    if STOP.is_set():
        raise InterruptedError("training was interrupted")


def cell_key(cell: dict[str, Any]) -> str:
    """Key of a cell, independent of its name and place in a sweep."""
    decides = {name: cell[name] for name in ("section", "train", "valid", "test", "measures", "conventions")}
    return store.digest_of({"cell": 2, "core": store.core_digest(), **decides})[:32]


def folder_of(key: str) -> Path:
    return store.STATE / "cells" / key


def _cached(_: Any, arguments: dict[str, Any]) -> str | None:
    """Prefect's cache key; none where the cell's folder is gone, so that it is trained again."""
    key = cell_key(arguments["cell"])
    return key if (folder_of(key) / "result.json").is_file() else None


@task(name="train", task_run_name="train {cell[label]}", cache_key_fn=_cached, persist_result=True, result_serializer="json")
def train(cell: dict[str, Any], threads: int = 0, fresh: bool = False, home: str | None = None, parts: int = 1) -> dict[str, Any]:
    """Trains one cell.

    Args:
        cell: ``section`` (a ranker's parameters), ``train``, ``valid``, ``test`` (names in the store), ``measures``,
            ``conventions``, ``label`` (for people).
        threads: threads of the kernels, 0 for all; it changes the time and nothing else.
        fresh: train even if it is there.
        home: the working directory of the run, where this is a process of its own.
        parts: of the training queries, each held by a Dask worker, where the ranker is LambdaMART.

    Returns:
        ``{"key", "digest", "metrics": {"valid_ndcg_10": …}, "seconds", "remarks"}``; model, per-query values and curve lie in
        the cell's folder.
    """
    if home is not None:
        store.settle(home)
    key = cell_key(cell)
    folder = folder_of(key)
    if (folder / "result.json").is_file() and not fresh:
        return json.loads((folder / "result.json").read_text())
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS) if threads else numba.config.NUMBA_NUM_THREADS)
    conventions = Conventions(**cell["conventions"]).build()
    model = SECTIONS[cell["section"]["kind"]](**cell["section"]).model(conventions)
    sets = {role: store.open_queries(cell[role]) for role in ("train", "valid", "test")}
    started = time.perf_counter()
    if parts > 1 and isinstance(model, ltr.LambdaMART):
        from tasks.cluster import fit_in_parts

        fitted: Any = fit_in_parts(model, cell["train"], cell["valid"], parts, _tick)
    else:
        fitted = model.fit(sets["train"], sets["valid"], _tick)
    seconds = time.perf_counter() - started
    values = pl.concat(
        table(evaluate(fitted, sets[role], cell["measures"], conventions), sets[role], role) for role in ("valid", "test")
    )
    counted = [sum(found.total for found in terms) for _, terms in getattr(fitted, "pairs", ())]
    result = {
        "key": key,
        "digest": fitted.digest,
        "metrics": means(values) | ({"effective_pairs": float(np.mean(counted))} if counted else {}),
        "seconds": round(seconds, 3),
        "remarks": list(fitted.remarks),
    }
    with store.made_whole(folder, replace=fresh) as partial:
        _write(partial, fitted, values, result)
    return result


@task(cache_policy=NO_CACHE, name="stack", task_run_name="stack")
def stack(fold: dict[str, str], keys: dict[str, str], seed: int) -> dict[str, str]:
    """The data sets of a fold with the scores of trained cells as features, by name: two halves of the validation queries to learn from
    and to choose on, and the test queries."""
    recipe = {"stack": 1, "fold": fold, "keys": list(keys.items()), "seed": seed}
    if noted := store.remembered(recipe):
        return dict(noted["fold"])
    models = {name: ltr.load(folder_of(key) / "model") for name, key in keys.items()}

    def scored(queries: Queries) -> Queries:
        scores = np.column_stack([model.predict(queries.features) for model in models.values()])
        return replace(queries, features=scores.astype(np.float32), names=tuple(models))

    valid = store.open_queries(fold["valid"])
    halves = np.array_split(shuffled(valid, seed), 2)
    sets = {role: scored(select(valid, np.sort(half))) for role, half in zip(("train", "valid"), halves, strict=True)}
    named = {
        role: store.keep_queries(queries) for role, queries in {**sets, "test": scored(store.open_queries(fold["test"]))}.items()
    }
    store.remember(recipe, {"data": list(named.values()), "fold": named})
    return named


def _write(folder: Path, fitted: Any, values: pl.DataFrame, result: dict[str, Any]) -> None:
    ltr.save(fitted, folder / "model")
    values.write_parquet(folder / "values.parquet")
    if fitted.curve is not None:
        curve = {
            name: [None if np.isnan(v) else v for v in getattr(fitted.curve, name).tolist()]
            for name in ("iteration", "train", "valid")
        }
        store.write_json(
            folder / "curve.json", {"measure": ltr.Measure.of(fitted.stop_on).key if fitted.stop_on else None, **curve}
        )
    if hasattr(fitted, "importance"):
        counted = {by: fitted.importance(by).tolist() for by in ("gain", "splits")}
        store.write_json(folder / "importance.json", {"features": list(fitted.names), **counted})
    if pairs := getattr(fitted, "pairs", ()):
        store.write_json(folder / "pairs.json", [_counted(iteration, found) for iteration, terms in pairs for found in terms])
    store.write_json(folder / "result.json", result)


def _counted(iteration: int, found: ltr.Ledger) -> dict[str, Any]:
    """Effective pairs of one term at one iteration as plain values; bands of ranks by where they end."""
    return {**asdict(found), "counts": found.counts.tolist(), "bands": [*BANDS, None], "total": found.total, "iteration": iteration}
