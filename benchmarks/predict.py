"""Prediction on one thread: requests of 1 to 10,000 documents from numpy arrays to scores, Python included, the same trees in every tool.

Ours is exported to LightGBM's text, from which LightGBM, treelite (GTIL, its interpreter) and tl2cgen (C, compiled) read it.

NUMBA_NUM_THREADS=1 python benchmarks/predict.py [trees]
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.lifelike import lifelike
from benchmarks.results import Table
from tasks.export.formats import FORMATS

SIZES = (1, 10, 100, 1_000, 10_000)
LEAVES = 31
Predict = Callable[[np.ndarray], Any]


def peers(text: Path) -> dict[str, Predict]:
    """Each tool's call on one thread."""
    import lightgbm
    import tl2cgen
    import treelite

    booster = lightgbm.Booster(model_file=text)
    model = treelite.frontend.load_lightgbm_model(text)
    library = text.with_suffix(".so")
    tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={"parallel_comp": 4})
    compiled = tl2cgen.Predictor(library, nthread=1)
    return {
        "LightGBM": lambda rows: booster.predict(rows, num_threads=1),
        "treelite GTIL": lambda rows: treelite.gtil.predict(model, rows, nthread=1),
        "tl2cgen": lambda rows: compiled.predict(tl2cgen.DMatrix(rows, dtype="float32")),
    }


def seconds(predict: Predict, rows: np.ndarray) -> float:
    """The median of enough calls for half a second, 5 at least."""
    times: list[float] = []
    while len(times) < 5 or (sum(times) < 0.5 and len(times) < 1000):
        started = time.perf_counter()
        predict(rows)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    n_trees = int(sys.argv[1]) if sys.argv[1:] else 300
    train, test = lifelike(500, seed=1), lifelike(200, seed=2).features
    assert len(test) >= max(SIZES)
    queries = ltr.Queries(train.features, train.labels, train.offsets)
    model = ltr.LambdaMART(n_trees=n_trees, n_leaves=LEAVES, stop_on=None).fit(queries)
    head = ("tool", *(f"µs for {size:,}" for size in SIZES), "ns a document and tree")
    table = Table(
        "predict.requests",
        f"{n_trees} trees of {LEAVES} leaves, {test.shape[1]} features, one thread",
        head,
        ("lightgbm", "treelite", "tl2cgen"),
        threads=1,
        keep=not sys.argv[1:],
    )
    with tempfile.TemporaryDirectory() as folder, ltr.threads(1):
        text = Path(folder, "model.txt")
        text.write_text(FORMATS["lightgbm"].writers["trees"](model, "model", False))
        tools = {"ours": model.predict, **peers(text)}
        for name, predict in tools.items():
            assert np.allclose(np.ravel(predict(test[:1000])), model.predict(test[:1000]), atol=1e-5), name
        times: dict[str, list[list[float]]] = {name: [[] for _ in SIZES] for name in tools}
        for _ in range(5):
            for k, size in enumerate(SIZES):
                rows = np.ascontiguousarray(test[:size])
                for name, predict in tools.items():
                    times[name][k].append(seconds(predict, rows))
    for name, of_sizes in times.items():
        found = [statistics.median(rounds) for rounds in of_sizes]
        table.add(name, *(f"{1e6 * one:,.0f}" for one in found), f"{1e9 * found[-1] / SIZES[-1] / n_trees:.2f}")
    table.note("Medians of five rounds in which the tools alternate; the last column is of 10,000 documents.")
    table.record()


if __name__ == "__main__":
    main()
