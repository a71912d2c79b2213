"""LambdaMART beside LightGBM on wide features of which most are 0, like words: a hundredth of them is stored, some words are common and most are
rare. From scipy's rows to a model; every fit is a process of its own, ours and LightGBM's in turn, with the same trees and all pairs.

python benchmarks/wide.py [documents] [features] [trees] [rounds]
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import Table
from benchmarks.trees import LEAVES, MINIMUM, RATE, THREADS, contest, resident

STORED, PER_QUERY, SHARES = 0.01, 40, (0.52, 0.32, 0.13, 0.02)
PARTS = ("indptr", "indices", "data", "labels")


def made(n_documents: int, n_features: int) -> tuple[NDArray[Any], ...]:
    """Rows of scipy's csr form, and labels that a fifth of the features decide."""
    rng = np.random.default_rng(1)
    in_row = round(STORED * n_features)
    popularity = np.cumsum(1 / np.arange(1, n_features + 1) ** 0.7)
    indices = np.empty((n_documents, in_row), np.int32)
    for row in indices:
        row[:] = np.searchsorted(popularity, popularity[-1] * rng.random(in_row))
    data = rng.lognormal(size=indices.shape).astype(np.float32)
    weight = rng.normal(size=n_features).astype(np.float32) * (rng.random(n_features) < 0.2)
    value = (data * weight[indices]).sum(axis=1)
    value = value / value.std() + 0.5 * rng.normal(size=n_documents)
    labels = np.searchsorted(np.quantile(value, np.cumsum(SHARES)), value).astype(np.float64)
    return np.arange(0, data.size + 1, in_row), indices.ravel(), data.ravel(), labels


def one(who: str, folder: Path, n_features: int, n_trees: int) -> tuple[float, float]:
    """Seconds of a fit in this process, and megabytes at most, the data's included."""
    from scipy.sparse import csr_matrix

    indptr, indices, data, labels = (np.load(folder / f"{part}.npy") for part in PARTS)
    features = csr_matrix((data, indices, indptr), shape=(len(labels), n_features))
    features.sum_duplicates()
    del data, indices
    offsets = np.append(np.arange(0, len(labels), PER_QUERY), len(labels))
    if who == "ours":
        import ltr

        model = ltr.LambdaMART(
            n_trees=n_trees, n_leaves=LEAVES, learning_rate=RATE, min_docs_in_leaf=MINIMUM, query_share=1, feature_share=1
        )
        started = time.perf_counter()
        model.fit(ltr.Queries(features, labels, offsets))
    else:
        import lightgbm

        given = {
            "objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": RATE, "min_data_in_leaf": MINIMUM, "verbose": -1,
            "lambdarank_truncation_level": 10_000, "lambdarank_norm": False, "num_threads": THREADS,
        }  # fmt: skip
        started = time.perf_counter()
        lightgbm.train(given, lightgbm.Dataset(features, labels, group=np.diff(offsets)), n_trees)
    return time.perf_counter() - started, resident("VmHWM")


def alone(who: str, folder: Path, n_features: int, n_trees: int) -> tuple[float, float]:
    """`one` in a process of its own."""
    command = [sys.executable, __file__, "--one", who, str(folder), str(n_features), str(n_trees)]
    seconds, memory = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    return seconds, memory


def main() -> None:
    if "--one" in sys.argv:
        _, _, who, folder, n_features, n_trees = sys.argv
        print(json.dumps(one(who, Path(folder), int(n_features), int(n_trees))))
        return
    usual = ["1000000", "10000", "10", "3"]
    n_documents, n_features, n_trees, rounds = (int(given) for given in (sys.argv[1:] + usual[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for part, array in zip(PARTS, made(n_documents, n_features), strict=True):
            np.save(folder / f"{part}.npy", array)
        title = f"{n_documents:,} documents × {n_features:,} features, 1 % stored; {n_trees} trees of {LEAVES} leaves"
        head = ("against", "sparse rows to a model, s", "memory with the data, MB")
        table = Table("trees.wide", title, head, ("lightgbm",), keep=not sys.argv[1:])
        pairs = [
            (alone("ours", folder, n_features, n_trees), alone("lightgbm", folder, n_features, n_trees)) for _ in range(rounds)
        ]
        ours, peer = zip(*pairs, strict=True)
        seconds = contest([s for s, _ in ours], [s for s, _ in peer])
        memory = " / ".join(f"{statistics.median(m for _, m in side):,.0f}" for side in (ours, peer))
        table.add("LightGBM, all pairs", seconds, memory)
        table.record()


if __name__ == "__main__":
    main()
