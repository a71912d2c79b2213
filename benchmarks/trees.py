"""LambdaMART beside LightGBM, XGBoost and CatBoost: binning, training, prediction and memory on generated data of the size of a small
MSLR, held-out NDCG@10 with the standard error of the paired difference beside every time. Same bins, leaves, minimum of documents,
rate, threads and number of trees, everything else as the peer has it.

python benchmarks/trees.py [queries] [trees]
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.pairs import Timing
from benchmarks.results import Table
from ltr.data.queries import canonical
from ltr.trees.partition import BinnedDataset

FEATURES, LEAVES, RATE, MINIMUM = 136, 31, 0.1, 20


def data(n_queries: int, seed: int) -> ltr.Queries:
    """Queries of 60–180 documents, labels 0–4 in about MSLR's shares, a fourth of the features with few values."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(60, 181, n_queries))))
    x = rng.normal(size=(offsets[-1], FEATURES)).astype(np.float32)
    x[:, 100:] = np.round(2 * x[:, 100:])
    value = x[:, 0] + 0.7 * x[:, 1] * x[:, 2] + np.sin(2 * x[:, 3]) + 0.5 * x[:, 101] + 0.3 * x[:, 4] * x[:, 5] * x[:, 6]
    value += 1.5 * rng.normal(size=len(value))
    labels = np.searchsorted(np.quantile(value, [0.52, 0.75, 0.9, 0.97]), value).astype(float)
    return canonical(ltr.Queries(x, labels, offsets))


def ndcg(queries: ltr.Queries, scores: np.ndarray) -> np.ndarray:
    return ltr.evaluate(queries.labels, scores, queries.offsets, ["ndcg_10"])["ndcg_10"]


Run = tuple[dict[str, float], np.ndarray]
"""Seconds of each part, and the scores of the test documents."""


class Clock:
    """Seconds between one call and the next, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.last = time.perf_counter()

    def __call__(self, part: str) -> None:
        now = time.perf_counter()
        self.seconds[part], self.last = now - self.last, now

    def of_five(self, part: str, work: Callable[[], np.ndarray]) -> np.ndarray:
        """Notes the median of five times, for what takes milliseconds."""
        times = []
        for _ in range(5):
            started = time.perf_counter()
            result = work()
            times.append(time.perf_counter() - started)
        self.seconds[part] = statistics.median(times)
        return result


def ours(train: ltr.Queries, test: ltr.Queries, n_trees: int, **term: str) -> Run:
    options: dict[str, Any] = {
        "n_leaves": LEAVES, "learning_rate": RATE, "min_docs_in_leaf": MINIMUM, "query_share": 1.0, "feature_share": 1.0, "stop_on": None,
    }  # fmt: skip
    model = ltr.LambdaMART(n_trees=n_trees, objective=(ltr.Term(**term),), **options)
    clock = Clock()
    BinnedDataset.of(train.features, 255, LEAVES)
    clock("construct")
    model = model.fit(train)
    clock("train")
    scores = clock.of_five("predict", lambda: model.predict(test.features))
    clock.seconds["train"] -= clock.seconds["construct"]
    return clock.seconds, scores


def lightgbm(train: ltr.Queries, test: ltr.Queries, n_trees: int, **options: Any) -> Run:
    import lightgbm

    common = {"objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": RATE, "min_data_in_leaf": MINIMUM, "verbose": -1}
    fixed = {"num_threads": numba.config.NUMBA_NUM_THREADS, "min_sum_hessian_in_leaf": 0}
    clock = Clock()
    dataset = lightgbm.Dataset(train.features, train.labels, group=np.diff(train.offsets), params={"max_bin": 255, "verbose": -1})
    dataset.construct()
    clock("construct")
    booster = lightgbm.train({**common, **fixed, **options}, dataset, n_trees)
    clock("train")
    scores = clock.of_five("predict", lambda: booster.predict(test.features))
    return clock.seconds, scores


def xgboost(train: ltr.Queries, test: ltr.Queries, n_trees: int) -> Run:
    import xgboost

    threads = numba.config.NUMBA_NUM_THREADS
    options = {
        "objective": "rank:ndcg", "lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": 10_000, "eta": RATE,
        "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": LEAVES, "max_depth": 0, "max_bin": 255, "nthread": threads,
    }  # fmt: skip
    clock = Clock()
    dataset = xgboost.QuantileDMatrix(train.features, train.labels, group=np.diff(train.offsets), max_bin=255, nthread=threads)
    clock("construct")
    booster = xgboost.train(options, dataset, n_trees)
    clock("train")
    scores = clock.of_five("predict", lambda: booster.inplace_predict(test.features))
    return clock.seconds, scores


def catboost(train: ltr.Queries, test: ltr.Queries, n_trees: int) -> Run:
    import catboost

    options = {
        "loss_function": "LambdaMart:metric=NDCG", "grow_policy": "Lossguide", "max_leaves": LEAVES, "min_data_in_leaf": MINIMUM,
        "learning_rate": RATE, "border_count": 254, "thread_count": numba.config.NUMBA_NUM_THREADS,
    }  # fmt: skip
    clock = Clock()
    of_query = np.repeat(np.arange(train.n_queries), np.diff(train.offsets))
    pool = catboost.Pool(train.features, train.labels, group_id=of_query)
    pool.quantize(border_count=254)
    clock("construct")
    booster = catboost.CatBoost({**options, "iterations": n_trees, "verbose": False, "allow_writing_files": False}).fit(pool)
    clock("train")
    scores = clock.of_five("predict", lambda: booster.predict(test.features))
    return clock.seconds, scores


CONTESTS: dict[str, tuple[dict[str, Any], Callable[..., Run], dict[str, Any], int]] = {
    "LightGBM, all pairs, norm off": ({}, lightgbm, {"lambdarank_truncation_level": 10_000, "lambdarank_norm": False}, 3),
    "LightGBM as it comes; ours: `ndcg@10`, `logistic_near`": ({"measure": "ndcg@10", "cost": "logistic_near"}, lightgbm, {}, 3),
    "XGBoost, all pairs": ({}, xgboost, {}, 2),
    "CatBoost, lossguide (one run)": ({}, catboost, {}, 1),
}
PARTS = ("train", "construct", "predict")


def contest(timing: Timing) -> str:
    """Median seconds of both, the median of their ratios, and its range where there are several."""
    ratios = timing.ratios
    span = f" ({ratios[0]:.3f}–{ratios[-1]:.3f})" if len(ratios) > 1 else ""
    medians = statistics.median(timing.ours), statistics.median(timing.peer)
    return f"{medians[0]:.3g} / {medians[1]:.3g} = **{statistics.median(ratios):.3f}**{span}"


def memory(contestant: str, n_queries: int) -> float:
    """Megabytes of a process above the data, at most, while it bins, trains ten trees and predicts."""
    command = [sys.executable, __file__, "--memory", contestant, str(n_queries)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def measure_memory(contestant: str, n_queries: int) -> None:
    train, test = data(n_queries, 1), data(200, 2)
    contestants: dict[str, Callable[..., Run]] = {"ours": ours, "lightgbm": lightgbm, "xgboost": xgboost, "catboost": catboost}
    contestants[contestant](*(data(100, 3), test), 2)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    contestants[contestant](train, test, 10)
    print(resident("VmHWM") - before)


def resident(which: str) -> float:
    """Megabytes that are resident now (VmRSS), or were at most since the last 5 was written to clear_refs (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(which))


def main() -> None:
    if "--memory" in sys.argv:
        measure_memory(sys.argv[2], int(sys.argv[3]))
        return
    n_queries, n_trees = (int(given) for given in (sys.argv[1:] + ["6000", "50"][len(sys.argv) - 1 :]))
    train, test = data(n_queries, 1), data(n_queries // 4, 2)
    title = f"{train.n_documents:,} documents × {FEATURES} features, {n_trees} trees of {LEAVES} leaves"
    head = ("against", "train, s", "construct, s", "predict, s", "memory above the data, MB", "NDCG@10, ours / peer (SE)")
    table = Table("trees.peers", title, head, ("lightgbm", "xgboost-cpu", "catboost"), keep=not sys.argv[1:])
    for name, (own, peer, options, runs) in CONTESTS.items():
        small = data(100, 3)
        ours(small, small, 2, **own), peer(small, small, 2, **options)
        pairs = [(ours(train, test, n_trees, **own), peer(train, test, n_trees, **options)) for _ in range(runs)]
        a, b = ndcg(test, pairs[0][0][1]), ndcg(test, pairs[0][1][1])
        error = np.nanstd(a - b) / np.sqrt(len(a))
        parts = [contest(Timing([x[0][part] for x, _ in pairs], [y[0][part] for _, y in pairs])) for part in PARTS]
        used = memory("ours", n_queries), memory(peer.__name__, n_queries)
        kept = f"{used[0]:.0f} / {used[1]:.0f} = **{used[0] / used[1]:.3f}**"
        table.add(name, *parts, kept, f"{np.nanmean(a):.4f} / {np.nanmean(b):.4f} ({error:.4f})")
    table.record()


if __name__ == "__main__":
    main()
