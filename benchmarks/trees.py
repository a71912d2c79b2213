"""LambdaMART beside LightGBM, XGBoost and CatBoost as a user calls them: from raw arrays, shaped like those of a search engine, to a model
that predicts. Binning, canonical order and kernels read from their cache count; importing does not.

Every fit is a process of its own, ours and the peer's in turn, none of which says how the others' threads wait. The same leaves, rate and
number of trees; whatever else is not in `CONTESTS` is left as each has it.

python benchmarks/trees.py [queries] [trees]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.lifelike import Lifelike, lifelike
from benchmarks.pairs import Timing, expect_both_processors
from benchmarks.results import Table

LEAVES, RATE = 31, 0.1
THREADS = len(os.sched_getaffinity(0))
PARTS = ("fit", "construct", "memory")

Options = Mapping[str, Any]
Timed = tuple[Callable[[], Any], Callable[[], Any]]
"""What only bins, and what fits from raw arrays and returns a function that predicts."""
Contestant = Callable[[Lifelike, int, Options], Timed]
"""Of a data set, a number of trees and options."""


def ours(data: Lifelike, n_trees: int, options: Options) -> Timed:
    import ltr

    def queries() -> ltr.Queries:
        return ltr.Queries(data.features, data.labels, data.offsets)

    how = {name: value for name, value in options.items() if name != "cost"}
    objective = (ltr.Term(cost=options.get("cost", "auto")),)
    model = ltr.LambdaMART(n_trees=n_trees, n_leaves=LEAVES, learning_rate=RATE, objective=objective, **how)
    return lambda: ltr.Binned(queries()), lambda: model.fit(queries()).predict


def lightgbm(data: Lifelike, n_trees: int, options: Options) -> Timed:
    import lightgbm

    given = {
        "objective": "lambdarank",
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "verbose": -1,
        "num_threads": THREADS,
        **options,
    }

    def construct() -> lightgbm.Dataset:
        return lightgbm.Dataset(data.features, data.labels, group=np.diff(data.offsets), params=given).construct()

    return construct, lambda: lightgbm.train(given, construct(), n_trees).predict


def xgboost(data: Lifelike, n_trees: int, options: Options) -> Timed:
    import xgboost

    given = {
        "objective": "rank:ndcg", "eta": RATE, "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": LEAVES, "max_depth": 0,
        "nthread": THREADS, **options,
    }  # fmt: skip

    def construct() -> xgboost.QuantileDMatrix:
        return xgboost.QuantileDMatrix(data.features, data.labels, group=np.diff(data.offsets), nthread=THREADS)

    return construct, lambda: xgboost.train(given, construct(), n_trees).inplace_predict


def catboost(data: Lifelike, n_trees: int, options: Options) -> Timed:
    import catboost

    of_query = np.repeat(np.arange(len(data.offsets) - 1), np.diff(data.offsets))
    given = {
        "loss_function": "LambdaMart:metric=NDCG", "grow_policy": "Lossguide", "max_leaves": LEAVES, "learning_rate": RATE,
        "iterations": n_trees, "thread_count": THREADS, "verbose": False, "allow_writing_files": False, **options,
    }  # fmt: skip

    def construct() -> catboost.Pool:
        pool = catboost.Pool(data.features, data.labels, group_id=of_query)
        pool.quantize()
        return pool

    return construct, lambda: catboost.CatBoost(given).fit(construct()).predict


CONTESTANTS: dict[str, Contestant] = {"ours": ours, "lightgbm": lightgbm, "xgboost": xgboost, "catboost": catboost}
MINIMUM = 50
ALL_PAIRS = {"query_share": 1.0, "feature_share": 1.0, "min_docs_in_leaf": MINIMUM, "cost": "logistic"}
CONTESTS: dict[str, tuple[Options, str, Options, int]] = {
    "LightGBM, all pairs": (
        ALL_PAIRS, "lightgbm", {"lambdarank_truncation_level": 10_000, "lambdarank_norm": False, "min_data_in_leaf": MINIMUM}, 5,
    ),
    "LightGBM, both as they come": ({}, "lightgbm", {}, 5),
    "XGBoost, all pairs": (
        ALL_PAIRS, "xgboost", {"lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": 10_000}, 3,
    ),
    "CatBoost, all pairs": (ALL_PAIRS, "catboost", {"min_data_in_leaf": MINIMUM}, 2),
}  # fmt: skip
"""Our options, the peer and its options, and how often they are timed in turn."""


@dataclass(frozen=True)
class Fit:
    """What a process found.

    Attributes:
        fit, construct: seconds from raw arrays to a model that predicts, and of binning alone.
        busy: processor seconds a second of the fit.
        memory: megabytes above the data, at most.
        by_query: NDCG@10 of the test queries.
    """

    fit: float
    construct: float
    busy: float
    memory: float
    by_query: list[float]


def resident(which: str) -> float:
    """Megabytes that are resident now (VmRSS), or were at most since the last 5 was written to clear_refs (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(which))


def one(contestant: str, folder: Path, n_trees: int, options: Options) -> Fit:
    """Fits once, in this process."""
    data, test = (
        Lifelike(*(np.load(folder / f"{name}.{part}.npy") for part in ("features", "labels", "offsets")))
        for name in ("train", "test")
    )
    construct, fit = CONTESTANTS[contestant](data, n_trees, options)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    started, busy = time.perf_counter(), time.process_time()
    predict = fit()
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    memory = resident("VmHWM") - before
    started = time.perf_counter()
    construct()
    binning = time.perf_counter() - started
    scores = np.asarray(predict(test.features), float)
    import ltr

    found = ltr.evaluate(test.labels, scores, test.offsets, "ndcg_10")["ndcg_10"]
    return Fit(seconds, binning, busy / seconds, memory, found.tolist())


def alone(contestant: str, folder: Path, n_trees: int, options: Options) -> Fit:
    """`one` in a process of its own."""
    command = [sys.executable, __file__, "--one", contestant, str(folder), str(n_trees), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Fit(**json.loads(done.stdout.splitlines()[-1]))


def cut(data: Lifelike, n_queries: int) -> tuple[Lifelike, Lifelike]:
    """The first queries, and the others."""
    row = data.offsets[n_queries]
    first = Lifelike(data.features[:row], data.labels[:row], data.offsets[: n_queries + 1])
    return first, Lifelike(data.features[row:], data.labels[row:], data.offsets[n_queries:] - row)


def keep(folder: Path, name: str, data: Lifelike) -> None:
    for part in ("features", "labels", "offsets"):
        np.save(folder / f"{name}.{part}.npy", getattr(data, part))


def contest(ours: list[float], peer: list[float]) -> str:
    """Median seconds of both, the median of their ratios, and its range."""
    ratios = Timing(ours, peer).ratios
    medians = f"{statistics.median(ours):.3g} / {statistics.median(peer):.3g}"
    return f"{medians} = **{statistics.median(ratios):.3f}** ({ratios[0]:.3f}–{ratios[-1]:.3f})"


def main() -> None:
    if "--one" in sys.argv:
        _, _, contestant, folder, n_trees, options = sys.argv
        print(json.dumps(vars(one(contestant, Path(folder), int(n_trees), json.loads(options)))))
        return
    n_queries, trees = (int(given) for given in (sys.argv[1:] + ["8000", "50"][len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        train, test = cut(lifelike(n_queries + n_queries // 4), n_queries)
        keep(folder, "train", train)
        keep(folder, "test", test)
        title = f"{len(train.features):,} documents × {train.features.shape[1]} features, {trees} trees of {LEAVES} leaves"
        head = (
            "against", "raw arrays to a model, s", "construct alone, s", "memory above the data, MB", "processors busy, ours / peer",
            "NDCG@10, ours / peer (SE)",
        )  # fmt: skip
        table = Table("trees.peers", title, head, ("lightgbm", "xgboost-cpu", "catboost"), keep=not sys.argv[1:])
        for name, (own, peer, options, rounds) in CONTESTS.items():
            pairs = [(alone("ours", folder, trees, own), alone(peer, folder, trees, options)) for _ in range(rounds)]
            a, b = (np.array(fit.by_query) for fit in pairs[0])
            error = np.nanstd(a - b) / np.sqrt(np.isfinite(a).sum())
            parts = [contest(*([getattr(fit, part) for fit in fits] for fits in zip(*pairs, strict=True))) for part in PARTS]
            busy = [statistics.median(fit.busy for fit in fits) for fits in zip(*pairs, strict=True)]
            expect_both_processors(name, busy[1])
            table.add(
                name,
                *parts,
                " / ".join(f"{share:.2f}" for share in busy),
                f"{np.nanmean(a):.4f} / {np.nanmean(b):.4f} ({error:.4f})",
            )
        table.record()


if __name__ == "__main__":
    main()
