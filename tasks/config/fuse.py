"""The configuration behind ``lambdaflow fuse``: some systems' runs, every way to make one ranking of them, and tests against the best run."""

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ltr.data.runs import FORMS
from ltr.metrics.conventions import PRESETS
from tasks.config.section import Written
from tasks.records import ConfigError

WAYS: dict[str, Written] = {
    "rrf": {"kind": "fusion"},
    "combsum-min-max": {"kind": "fusion", "form": "min-max"},
    "combsum-z-score": {"kind": "fusion", "form": "z-score"},
    "combsum-borda": {"kind": "fusion", "form": "borda"},
    "combmnz-min-max": {"kind": "fusion", "form": "min-max", "by": "mnz"},
    "weighted-rrf": {"kind": "weighted_fusion"},
    "weighted-min-max": {"kind": "weighted_fusion", "form": "min-max"},
    "weighted-z-score": {"kind": "weighted_fusion", "form": "z-score"},
    "linear": {"kind": "listwise", "impute": "zero", "sweep": {"C": [0.01, 0.1, 1.0, 10.0]}},
    "trees": {"kind": "lambdamart", "n_leaves": 4, "learning_rate": 0.05},
}
"""Rankers by name; what they learn, they learn from all forms of the scores."""
BY_QUERY = "by-query"
"""The one that is added where something is known of queries."""


def named_runs(given: Sequence[str], command: str, taken: Collection[str] = ()) -> dict[str, str]:
    """Paths by name: of ``NAME=FILE`` the name, of ``FILE`` that of the file without its suffix.

    Args:
        command: in whose words they are refused.
        taken: names that no run may have.

    Raises:
        ConfigError: for two runs of one name, or one that is taken.
    """
    runs: dict[str, str] = {}
    for one in given:
        name, named, path = one.partition("=")
        if not named:
            name, path = re.sub(r"[^\w. -]", "-", Path(one).stem, flags=re.ASCII).lstrip("."), one
        if name in runs or name in taken:
            raise ConfigError(f"{command}: {one}: the name {name!r} is taken; write NAME=FILE to give it another name")
        runs[name] = path
    return runs


def fused_runs(given: Sequence[str]) -> dict[str, str]:
    """`named_runs` beside which the rankers of `WAYS` have their names.

    Raises:
        ConfigError: for fewer than two too.
    """
    runs = named_runs(given, "fuse", (*WAYS, BY_QUERY))
    if len(runs) < 2:
        raise ConfigError(f"fuse: {len(runs)} run; give two or more")
    return runs


def fuse_config(
    runs: dict[str, str], qrels: str, measure: str, folds: int, queries: str | None = None, by: Sequence[str] = ()
) -> Written:
    """The configuration as it is written: data of judgments and runs by trec_eval's rules, every run and every way to fuse them a ranker.

    Args:
        runs: paths by name.
        queries, by: a table of what is known of queries, and its features.
    """
    weighted = [name for name, section in WAYS.items() if section["kind"] == "weighted_fusion"]
    rankers: dict[str, Any] = {name: {"kind": "column", "feature": name} for name in runs}
    for name, section in WAYS.items():
        rankers[name] = {**section, "measure": measure} if name in weighted else dict(section)
    about = {} if queries is None else {"query_features": queries}
    if about:
        rankers[BY_QUERY] = {
            "kind": "query_fusion",
            "form": "min-max",
            "by": list(by),
            "sweep": {"variation": [0.001, 0.01, 0.1, 1.0]},
        }
    return {
        "name": "fuse",
        "data": {"qrels": qrels, "runs": runs, "run_forms": list(FORMS), "folds": folds, **about},
        "conventions": asdict(PRESETS["trec"].conventions),
        "rankers": rankers,
        "select": measure,
        "measures": list(dict.fromkeys([measure, "ndcg@10", "map", "mrr"])),
        "best_single": {},
        "optimality": {"rankers": weighted, "measure": measure},
    }
