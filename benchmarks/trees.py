"""LambdaMART beside LightGBM: binning, training and prediction on generated data of the size of a small MSLR, held-out NDCG@10 beside
every time. Same bins, leaves, minimum of documents, rate, threads and number of trees.

python benchmarks/trees.py [queries] [trees]
"""

import sys
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.pairs import HEAD, Timing, machine
from ltr.binning import apply_bins, find_bins

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
    return ltr.queries.canonical(ltr.Queries(x, labels, offsets))


def ndcg(queries: ltr.Queries, scores: np.ndarray) -> float:
    return float(np.nanmean(ltr.evaluate(queries.labels, scores, queries.offsets, ["ndcg_10"])["ndcg_10"]))


def main() -> None:
    import lightgbm

    n_queries, n_trees = (int(given) for given in (sys.argv[1:] + ["6000", "50"][len(sys.argv) - 1 :]))
    train, test = data(n_queries, 1), data(n_queries // 4, 2)
    threads = numba.config.NUMBA_NUM_THREADS
    kept: dict[str, Any] = {}

    def ours(cost: str) -> dict[str, float]:
        started = time.perf_counter()
        apply_bins(train.features, find_bins(train.features))
        constructed = time.perf_counter() - started
        model = ltr.LambdaMART(
            n_trees=n_trees,
            n_leaves=LEAVES,
            learning_rate=RATE,
            min_docs_in_leaf=MINIMUM,
            stop_on=None,
            objective=(ltr.Term(cost=cost),),
        )
        started = time.perf_counter()
        model = model.fit(train)
        trained = time.perf_counter() - started - constructed
        started = time.perf_counter()
        kept["ours"] = model.predict(test.features)
        return {"train": trained, "construct": constructed, "predict": time.perf_counter() - started}

    def theirs(**options: Any) -> dict[str, float]:
        started = time.perf_counter()
        dataset = lightgbm.Dataset(
            train.features, train.labels, group=np.diff(train.offsets), params={"max_bin": 255, "verbose": -1}
        )
        dataset.construct()
        constructed = time.perf_counter() - started
        common = {"objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": RATE, "min_data_in_leaf": MINIMUM}
        fixed = {"num_threads": threads, "verbose": -1, "min_sum_hessian_in_leaf": 0, "deterministic": True}
        started = time.perf_counter()
        booster = lightgbm.train({**common, **fixed, **options}, dataset, n_trees)
        trained = time.perf_counter() - started
        started = time.perf_counter()
        kept["theirs"] = booster.predict(test.features)
        return {"train": trained, "construct": constructed, "predict": time.perf_counter() - started}

    print(f"{machine()}, LightGBM {lightgbm.__version__}; {train.n_documents:,} × {FEATURES}, {n_trees} trees of {LEAVES} leaves\n")
    for name, cost, options in (
        ("all pairs, lambdarank_norm=False", "logistic", {"lambdarank_truncation_level": 10_000, "lambdarank_norm": False}),
        ("LightGBM as it comes, our cost logistic_near", "logistic_near", {}),
    ):
        ours(cost), theirs(**options)
        runs = [(ours(cost), theirs(**options)) for _ in range(3)]
        print(f"{name}: held-out NDCG@10 ours {ndcg(test, kept['ours']):.4f}, LightGBM {ndcg(test, kept['theirs']):.4f}\n\n{HEAD}")
        for part in ("train", "construct", "predict"):
            print(Timing([a[part] for a, _ in runs], [b[part] for _, b in runs]).row(part))
        print()


if __name__ == "__main__":
    main()
