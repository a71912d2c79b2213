"""One LambdaMART over Dask workers of one thread on this machine, beside one process of one thread and LightGBM over the same two workers.

Every configuration is trained in turn, three times over; what a tree took is the median of all trees but the first, and of LightGBM's the
difference of two trainings, as it tells nothing tree by tree. Processor seconds are those of all processes together, Dask's own among them.

python benchmarks/cluster.py [queries features]
"""

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import dask.array as da
import distributed
import lightgbm
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.lifelike import Lifelike, lifelike
from benchmarks.results import Table
from tasks.store import state
from tasks.store.datasets import keep_queries
from tasks.training.cluster import cut, fit_on

TREES, TIMES, FEW_TREES = 21, 3, 3
WORKERS = (1, 2, 4)


@dataclass(frozen=True)
class Took:
    """What a tree took: seconds by the clock and of processors, megabytes that were moved, exchanges."""

    seconds: float
    processor: float
    megabytes: float = 0.0
    exchanges: float = 0.0


def spent() -> float:
    """Processor seconds of this process."""
    times = os.times()
    return times.user + times.system


def on_cluster(workers: int) -> distributed.LocalCluster:
    return distributed.LocalCluster(
        processes=True, n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=40
    )


def in_one(model: ltr.LambdaMART, queries: ltr.Queries) -> tuple[Took, str]:
    clock, processor = [], []
    with ltr.threads(1):
        fitted = model.fit(queries, tick=lambda: (clock.append(time.perf_counter()), processor.append(spent())))
    return Took(float(np.median(np.diff(clock))), (processor[-1] - processor[0]) / (TREES - 1)), fitted.digest


def in_parts(model: ltr.LambdaMART, name: str, workers: int) -> tuple[Took, str]:
    with on_cluster(workers) as cluster, distributed.Client(cluster) as client:
        after_first: list[float] = []

        def all_spent() -> float:
            return spent() + sum(client.run(spent).values())

        def tick() -> None:
            if not after_first:
                after_first.append(all_spent())

        fitted, cost = fit_on(client, cut(name, workers), model, tick=tick)
        processor = (all_spent() - after_first[0]) / (TREES - 1)
        own = [float(np.median(values[1:])) for values in (cost.seconds, cost.moved, cost.exchanges)]
    return Took(own[0], processor, own[1] / 1e6, own[2]), fitted.digest


def lightgbm_in_two(data: Lifelike) -> Took:
    lengths = np.diff(data.offsets)
    half, n = len(lengths) // 2, len(data.labels)
    rows, queries = (int(data.offsets[half]), n - int(data.offsets[half])), (half, len(lengths) - half)
    with on_cluster(2) as cluster, distributed.Client(cluster) as client:
        arrays = client.persist(
            [
                da.from_array(data.features, chunks=(rows, data.features.shape[1])),
                da.from_array(data.labels, chunks=(rows,)),
                da.from_array(lengths, chunks=(queries,)),
            ]
        )
        distributed.wait(arrays)
        took = []
        for trees in (FEW_TREES, TREES):
            ranker = lightgbm.DaskLGBMRanker(
                client=client, n_estimators=trees, num_leaves=31, learning_rate=0.05, min_child_samples=50, n_jobs=1, verbose=-1
            )
            before = spent() + sum(client.run(spent).values()), time.perf_counter()
            ranker.fit(*arrays[:2], group=arrays[2])
            took.append((time.perf_counter() - before[1], spent() + sum(client.run(spent).values()) - before[0]))
    (few, few_processor), (all_trees, processor) = took
    return Took((all_trees - few) / (TREES - FEW_TREES), (processor - few_processor) / (TREES - FEW_TREES))


def main() -> None:
    n_queries, n_features = [int(given) for given in sys.argv[1:]] or (11_000, 136)
    data = lifelike(n_queries, n_features)
    queries = ltr.Queries(data.features, data.labels, data.offsets)
    model = ltr.LambdaMART(n_trees=TREES, n_leaves=31, query_share=1.0, feature_share=1.0, stop_on=None)
    table = Table(
        "cluster.dask",
        f"One LambdaMART over Dask workers, {queries.n_documents:,} documents × {n_features} features, 31 leaves",
        ("workers of one thread", "seconds a tree", "of processors", "MB a tree", "exchanges a tree"),
        ("lightgbm", "distributed"),
        threads=1,
        keep=not sys.argv[1:],
    )
    if os.getloadavg()[0] > 1:
        table.note("Taken beside other work on two cores: seconds by the clock say little here, those of processors more.")
    one, lightgbms, digests = [], [], set()
    parts: dict[int, list[Took]] = {workers: [] for workers in WORKERS}
    with tempfile.TemporaryDirectory() as folder:
        state.use_folder(folder)
        name = keep_queries(queries)
        for _ in range(TIMES):
            took, digest = in_one(model, queries)
            one.append(took)
            digests.add(digest)
            for workers in WORKERS:
                took, digest = in_parts(model, name, workers)
                parts[workers].append(took)
                digests.add(digest)
            lightgbms.append(lightgbm_in_two(data))
    if len(digests) != 1:
        raise SystemExit(f"the models differ: {digests}")
    rows = [
        ("none: one process", one, False),
        *((f"{n}", parts[n], True) for n in WORKERS),
        (f"2, LightGBM {lightgbm.__version__}", lightgbms, False),
    ]
    for name, several, moved in rows:
        seconds, processor = (median(getattr(took, field) for took in several) for field in ("seconds", "processor"))
        told = (f"{several[0].megabytes:.2f}", f"{several[0].exchanges:.0f}") if moved else ("", "")
        table.add(name, f"{seconds:.3f}", f"{processor:.3f}", *told)
    table.record()


if __name__ == "__main__":
    main()
