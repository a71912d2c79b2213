"""Time to quality: seconds from raw arrays until held-out NDCG@10 reaches the best value that LightGBM, tuned over rate × leaves, reaches at
all, on data shaped like those of a search engine. Both note when each tree is done; what is measured on held-out queries afterwards
takes none of that time. Both in one process, whose threads wait as LightGBM's OpenMP does.

python benchmarks/time_to_quality.py [queries] [trees]
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.lifelike import Lifelike, lifelike
from benchmarks.results import Table
from benchmarks.trees import THREADS, cut

RATES, LEAVES = (0.05, 0.1, 0.2), (15, 31, 63)
EVERY = 5
"""Trees between two looks at held-out queries."""


@dataclass(frozen=True)
class Course:
    """Of a training: seconds since the raw arrays and mean NDCG@10 of held-out queries, after every `EVERY` trees."""

    seconds: np.ndarray
    values: np.ndarray

    def reached(self, value: float) -> float | None:
        """Seconds until the value was reached."""
        there = self.values >= value
        return float(self.seconds[there.argmax()]) if there.any() else None


def course(test: Lifelike, done: list[float], first: Callable[[int], np.ndarray]) -> Course:
    """`done`: seconds when each tree was; ``first(n)``: scores of the test documents by the first n trees."""
    looked = range(EVERY, len(done) + 1, EVERY)
    values = [np.nanmean(ltr.evaluate(test.labels, first(n), test.offsets, "ndcg_10")["ndcg_10"]) for n in looked]
    return Course(np.array([done[n - 1] for n in looked]), np.array(values))


def ours(train: Lifelike, test: Lifelike, n_trees: int, **options: Any) -> Course:
    started, done = time.perf_counter(), []

    def note(_: object) -> None:
        done.append(time.perf_counter() - started)

    queries = ltr.Queries(train.features, train.labels, train.offsets)
    model = ltr.LambdaMART(n_trees=n_trees, stop_on=None, **options).fit(queries, callbacks=[note])
    return course(test, done, lambda n: model.predict(test.features, n_trees=n))


def peer(train: Lifelike, test: Lifelike, n_trees: int, learning_rate: float, n_leaves: int) -> Course:
    started, done = time.perf_counter(), []

    def note(_: object) -> None:
        done.append(time.perf_counter() - started)

    given = {
        "objective": "lambdarank",
        "learning_rate": learning_rate,
        "num_leaves": n_leaves,
        "verbose": -1,
        "num_threads": THREADS,
    }
    data = lightgbm.Dataset(train.features, train.labels, group=np.diff(train.offsets), params=given)
    booster = lightgbm.train(given, data, n_trees, callbacks=[note])
    total = np.zeros(len(test.labels))

    def first(n: int) -> np.ndarray:
        nonlocal total
        total = total + booster.predict(test.features, start_iteration=n - EVERY, num_iteration=EVERY)
        return total

    return course(test, done, first)


def main() -> None:
    n_queries, n_trees = (int(given) for given in (sys.argv[1:] + ["3000", "400"][len(sys.argv) - 1 :]))
    train, test = cut(lifelike(n_queries + n_queries // 2), n_queries)
    title = f"{len(train.features):,} documents × {train.features.shape[1]} features, up to {n_trees} trees"
    head = ("what", "best held-out NDCG@10", "reached after, s", "LightGBM's best reached after, s", "ours / LightGBM")
    table = Table("trees.time_to_quality", title, head, ("lightgbm",), keep=not sys.argv[1:])
    ours(*cut(lifelike(100), 50), 2)
    theirs = {grid: peer(train, test, n_trees, *grid) for grid in product(RATES, LEAVES)}
    tuned = max(theirs, key=lambda grid: float(theirs[grid].values.max()))
    goal = float(theirs[tuned].values.max())
    least = theirs[tuned].reached(goal)
    assert least is not None
    runs = {f"LightGBM, rate {rate}, {leaves} leaves": theirs[rate, leaves] for rate, leaves in (tuned, (0.1, 31))}
    runs["ours as it comes"] = ours(train, test, n_trees)
    for rate, leaves in product(RATES, LEAVES):
        runs[f"ours, rate {rate}, {leaves} leaves"] = ours(train, test, n_trees, learning_rate=rate, n_leaves=leaves)
    for name, run in runs.items():
        reached = run.reached(goal)
        there = "not" if reached is None else f"{reached:.2f}"
        ratio = "" if reached is None else f"**{reached / least:.3f}**"
        table.add(name, f"{run.values.max():.4f}", f"{run.seconds[run.values.argmax()]:.2f}", there, ratio)
    table.note(
        "The first row is LightGBM tuned on the held-out queries themselves, over nine settings; the second its own defaults."
    )
    table.record()


if __name__ == "__main__":
    main()
