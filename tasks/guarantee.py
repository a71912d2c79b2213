"""The guarantee: a ranker that gains on clicks is taken only where judged relevance is shown to be unharmed.

Promised on validation queries, where the cell is chosen; held against test queries, which no choice has seen.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prefect import task
from prefect.cache_policies import NO_CACHE

from ltr.metrics import significance
from ltr.metrics.measure import Measure
from tasks.config import Guarantee
from tasks.evaluate import read_values

Values = list[NDArray[np.float64]]
"""Per-query values of each tier."""


@task(cache_policy=NO_CACHE, name="guarantee", task_run_name="guarantee")
def promise(paths: Mapping[str, str], baseline: str, rule: Guarantee) -> dict[str, Any]:
    """`choice` among a ranker's cells by their per-query values on validation queries.

    Args:
        paths: for each cell's label its values; `baseline`: those it is held against.
    """
    return choice(
        {label: tier_values(path, "valid", rule) for label, path in paths.items()}, tier_values(baseline, "valid", rule), rule
    )


def choice(values: Mapping[str, Values], baseline: Values, rule: Guarantee) -> dict[str, Any]:
    """Which cell gains most on the last tier without harm to the others.

    Returns:
        ``chosen`` (a label; without an admissible cell the one nearest to it), ``promised``, and ``cells``: for each its
        ``differences`` by tier, ``p`` of harm (the largest of the protected tiers'), ``holm_p`` and ``admissible``.
    """
    cells: list[dict[str, Any]] = []
    for label, own in values.items():
        tests = [significance.non_inferior(a, b, rule.margin, rule.level) for a, b in zip(own[:-1], baseline[:-1], strict=True)]
        gain = significance.paired_t(own[-1], baseline[-1]).difference
        harm = max(test.p_value for test in tests)
        cells.append({"label": label, "differences": [*(test.difference for test in tests), gain], "p": harm})
    for cell, adjusted in zip(cells, significance.holm([cell["p"] for cell in cells]), strict=True):
        cell |= {"holm_p": float(adjusted), "admissible": bool(adjusted < 1 - rule.level)}
    admissible = [cell for cell in cells if cell["admissible"]]
    best = max(admissible, key=lambda cell: cell["differences"][-1]) if admissible else min(cells, key=lambda cell: cell["p"])
    return {"chosen": best["label"], "promised": bool(admissible), "cells": cells}


@task(cache_policy=NO_CACHE, name="promise kept", task_run_name="promise kept")
def kept(challenger: Sequence[str], baseline: Sequence[str], rule: Guarantee) -> dict[str, Any]:
    """Whether a promise held on test queries, those of all folds together.

    Returns:
        ``held``: ``yes`` where all protected tiers are shown to lose no more than the margin, ``no`` where one is shown to lose more,
        ``open`` otherwise; the lexicographic ``tiers`` and ``comparison``.
    """
    ours, theirs = (
        [np.concatenate(parts) for parts in zip(*(tier_values(path, "test", rule) for path in files), strict=True)]
        for files in (challenger, baseline)
    )
    tiers, comparison = significance.lexicographic(ours, theirs, [rule.margin] * (len(rule.tiers) - 1) + [0.0], rule.level)
    protected = tiers[:-1]
    broken = any(tier.upper_bound < -rule.margin for tier in protected)
    held = "no" if broken else "yes" if all(tier.lower_bound > -rule.margin for tier in protected) else "open"
    named = [{"measure": Measure.of(m).key, **asdict(tier)} for m, tier in zip(rule.tiers, tiers, strict=True)]
    return {"held": held, "comparison": comparison, "tiers": named}


def tier_values(path: str, split: str, rule: Guarantee) -> Values:
    frame = read_values(Path(path), split)
    return [frame[Measure.of(m).key].cast(float).fill_null(float("nan")).to_numpy() for m in rule.tiers]


def frontier(
    points: Mapping[str, Sequence[str]], taken: Collection[str], baseline: Sequence[str], rule: Guarantee
) -> dict[str, Any]:
    """Where each point of a grid stands on the first and the last tier, on validation queries of all folds.

    Args:
        points: for each point's label the per-query values of its cells, one a fold.
        taken: labels of the chosen ones.

    Returns:
        ``baseline`` (mean of the two tiers) and ``points``: ``label``, ``taken``, ``mean`` ``[2]`` and ``covariance`` ``[2, 2]`` of the mean
        paired difference to the baseline.
    """

    def pooled(paths: Sequence[str]) -> NDArray[np.float64]:
        return np.hstack([np.array([values[0], values[-1]]) for values in (tier_values(path, "valid", rule) for path in paths)])

    base = pooled(baseline)
    origin = np.nanmean(base, axis=1)
    found = []
    for label, paths in points.items():
        paired = pooled(paths) - base
        paired = paired[:, ~np.isnan(paired).any(axis=0)]
        found.append({
            "label": label,
            "taken": label in taken,
            "mean": (origin + paired.mean(axis=1)).tolist(),
            "covariance": (np.cov(paired) / paired.shape[1]).tolist(),
        })  # fmt: skip
    return {
        "baseline": origin.tolist(),
        "points": found,
        "margin": rule.margin,
        "level": rule.level,
        "tiers": [Measure.of(rule.tiers[k]).key for k in (0, -1)],
    }
