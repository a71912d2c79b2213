"""Every pair of models compared on the same test queries, and the standings as one table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.metrics import significance
from ltr.metrics.measure import Measure, fewer_is_better
from tasks.evaluate import read_values
from tasks.ingest import DataError
from tasks.lookup import Stored


@task(cache_policy=NO_CACHE, name="significance", task_run_name="significance")
def standings(paths: Mapping[str, Sequence[str]], measures: Sequence[str]) -> dict[str, Any]:
    """Means, standard errors and paired tests of several rankers.

    Args:
        paths: for each ranker the per-query value files of its chosen cells, one a fold.
        measures: keys.

    Returns:
        ``rows``: for each ranker its ``letter`` and, by measure, ``mean`` (mean of the folds' means), ``se`` (over all
        queries), ``n`` and ``beats`` ({letter: 95 or 90} of rankers it is significantly better than); ``pairs``: each
        comparison with difference, standard error, z, p and Holm's p over the pairs of a measure.
    """
    values = {name: [read_values(Path(path), "test") for path in files] for name, files in paths.items()}
    letters = {name: chr(ord("a") + k) for k, name in enumerate(paths)}
    rows: dict[str, Any] = {name: {"letter": letters[name], "cells": {}} for name in paths}
    pairs: list[dict[str, Any]] = []
    for measure in measures:
        pooled = {name: _pooled(frames, measure) for name, frames in values.items()}
        for name, frames in values.items():
            defined = pooled[name][~np.isnan(pooled[name])]
            folds = [_mean(frame[measure]) for frame in frames if frame[measure].count()]
            rows[name]["cells"][measure] = {
                "mean": float(np.mean(folds)) if folds else None,
                "se": float(defined.std(ddof=1) / np.sqrt(len(defined))) if len(defined) > 1 else None,
                "n": len(defined),
                "beats": {},
            }
        both = [_pair(a, b, measure, pooled[a], pooled[b]) for k, a in enumerate(paths) for b in list(paths)[k + 1 :]]
        compared = [pair for pair in both if pair is not None]
        for pair, adjusted in zip(compared, significance.holm([pair["p"] for pair in compared]) if compared else [], strict=True):
            pair["holm_p"] = float(adjusted)
            if pair["level"]:
                rises = not fewer_is_better(measure)
                better, worse = (pair["a"], pair["b"]) if (pair["difference"] > 0) == rises else (pair["b"], pair["a"])
                rows[better]["cells"][measure]["beats"][letters[worse]] = pair["level"]
        pairs += compared
    return {"measures": list(measures), "rows": rows, "pairs": pairs}


def _mean(values: pl.Series) -> float:
    return float(values.cast(pl.Float64).drop_nulls().to_numpy().mean())


def _pooled(frames: Sequence[pl.DataFrame], measure: str) -> NDArray[np.float64]:
    """Values of all folds behind one another, each fold by query id; NaN where undefined."""
    return pl.concat([frame[measure].cast(pl.Float64) for frame in frames]).fill_null(float("nan")).to_numpy()


def _pair(a: str, b: str, measure: str, of_a: NDArray[np.float64], of_b: NDArray[np.float64]) -> dict[str, Any] | None:
    try:
        found = significance.paired_t(of_a, of_b)
    except ValueError:
        return None
    return {
        "measure": measure,
        "a": a,
        "b": b,
        "difference": found.difference,
        "se": found.standard_error,
        "z": found.z if np.isfinite(found.z) else None,
        "p": found.p_value,
        "n": found.n_queries,
        "level": found.level,
    }


def marks(beats: Mapping[str, int]) -> str:
    """Letters of the rankers that are beaten: plain at 95 %, in brackets at 90 %."""
    return "".join(letter if level == 95 else f"({letter})" for letter, level in sorted(beats.items()))


def _shared(wanted: Sequence[str], runs: Sequence[Sequence[pl.DataFrame]]) -> list[str]:
    """The measures asked for, which all runs have; all that they share where none is asked for."""
    shared = [c for c in runs[0][0].columns if c not in ("split", "query") and all(c in parts[0].columns for parts in runs)]
    for measure in wanted:
        if measure not in shared:
            raise DataError(f"not all of these runs have {measure}; they share: {', '.join(shared)}")
    return list(wanted) or shared


def scorecards(stored: Sequence[Stored], tiers: Sequence[str], margin: float, level: float) -> list[dict[str, Any]]:
    """The graded comparison (`ltr.metrics.significance.lexicographic`) of every pair of finished runs, the later one as the challenger.

    Args:
        tiers: measures, the most important first. `margin`: of all but the last, which decides by any difference.

    Raises:
        DataError: for fewer than two tiers, or one that not all runs have.
        ValueError: for a measure of which less is better, a negative margin or a level outside (0, 1).
    """
    if len(tiers) < 2:
        raise DataError("a scorecard needs two or more tiers: name each with --tier, the most important first")
    frames = {s.name: [read_values(path, "test") for path in s.paths] for s in stored}
    keys = _shared([Measure.maximised(tier).key for tier in tiers], list(frames.values()))
    values = {name: [_pooled(parts, key) for key in keys] for name, parts in frames.items()}
    margins, cards = [margin] * (len(keys) - 1) + [0.0], []
    for k, baseline in enumerate(values):
        for challenger in list(values)[k + 1 :]:
            found, comparison = significance.lexicographic(values[challenger], values[baseline], margins, level)
            named = [{"measure": key, **asdict(tier)} for key, tier in zip(keys, found, strict=True)]
            names = {"challenger": challenger, "baseline": baseline, "level": level}
            cards.append({**names, "tiers": named, "comparison": comparison})
    return cards


def compare_stored(stored: Sequence[Stored], measures: Sequence[str], margin: float | None = None) -> dict[str, Any]:
    """`standings` of finished runs from their stored values; for each pair a randomisation test and the bootstrap's 95 % interval,
    and with a `margin`, which of the two is not worse than the other by more (``not_worse``, one-sided at 95 %).

    Raises:
        DataError: for fewer than two runs, one named twice, different test queries, or a measure that not all have.
    """
    if len(stored) < 2 or len({s.name for s in stored}) < len(stored):
        raise DataError("compare needs two or more different runs")
    frames = {s.name: [read_values(path, "test") for path in s.paths] for s in stored}
    asked = {name: [frame["query"].to_list() for frame in parts] for name, parts in frames.items()}
    first = stored[0].name
    for name, queries in asked.items():
        if queries != asked[first]:
            common = len({q for part in queries for q in part} & {q for part in asked[first] for q in part})
            raise DataError(f"{name} and {first} were not tested on the same queries in the same folds ({common} in common)")
    wanted = _shared([Measure.of(m).key for m in measures], list(frames.values()))
    table: dict[str, Any] = standings.fn({s.name: s.paths for s in stored}, wanted)
    for pair in table["pairs"]:
        a, b = (_pooled(frames[pair[side]], pair["measure"]) for side in ("a", "b"))
        pair["randomisation_p"] = significance.randomisation(a, b)
        pair["interval"] = significance.bootstrap(a, b)
        if margin is not None:
            a, b = (b, a) if fewer_is_better(pair["measure"]) else (a, b)
            tests = {"a": significance.non_inferior(a, b, margin), "b": significance.non_inferior(b, a, margin)}
            pair["not_worse"] = [pair[side] for side, found in tests.items() if found.holds]
    return table
