"""Rankers as they come, on seven small data sets, five folds each: rounds chosen by validation NDCG@10 and nothing else set, beside LightGBM,
XGBoost and CatBoost as they come. Ours draws queries and features, so its numbers are means over three seeds.

OHSUMED and MQ2008 have LETOR's folds; LightGBM's example and generated data (`benchmarks.lifelike`) are cut by query. MQ2008 is there a second
time with 30 % of its values missing. LightGBM and XGBoost may take 500 rounds as ours does, CatBoost its own 1,000; all stop 50 after their best.

python benchmarks/defaults.py
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.lifelike import lifelike
from benchmarks.results import Table
from ltr.data import letor
from ltr.data.queries import Queries, select

FOLDER = Path(os.environ.get("LAMBDAFLOW_DATA", "../shared/data"))
RULES = ltr.Conventions(threshold=1)
SEEDS = (1, 2, 3)
Folds = list[tuple[Queries, Queries, Queries]]
Fit = Callable[[Queries, Queries, int], Callable[[NDArray[np.float32]], NDArray[Any]]]
"""``fit(train, valid, seed)`` → ``predict(features)``."""


def parts_of(name: str) -> list[Queries]:
    """LETOR's five parts."""
    found = []
    for k in range(1, 6):
        lines = letor.parse(np.fromfile(FOLDER / name / f"S{k}.txt", np.uint8))
        assert lines.query_keys is not None
        starts = np.flatnonzero(np.diff(lines.query_keys, prepend=lines.query_keys[:1] + 1))
        found.append(Queries(lines.features, lines.labels, np.append(starts, len(lines.labels))))
    return found


def without(queries: Queries, share: float, seed: int) -> Queries:
    """The queries with a share of their values missing."""
    holes = np.random.default_rng(seed).random(queries.features.shape) < share
    return Queries(np.where(holes, np.float32(np.nan), queries.features), queries.labels, queries.offsets)


def example() -> Queries:
    """LightGBM's ranking example, train and test together; features that a line leaves out are 0."""
    rows, labels, sizes = [], [], []
    for part in ("train", "test"):
        for line in (FOLDER / "lightgbm-rank" / f"rank.{part}").read_text().splitlines():
            label, *pairs = line.split()
            labels.append(float(label))
            rows.append({int(name): float(value) for name, _, value in (pair.partition(":") for pair in pairs)})
        sizes += [int(size) for size in (FOLDER / "lightgbm-rank" / f"rank.{part}.query").read_text().split()]
    features = np.zeros((len(rows), 1 + max(map(max, rows))), np.float32)
    for k, row in enumerate(rows):
        features[k, list(row)] = list(row.values())
    return Queries(features, np.array(labels), np.append(0, np.cumsum(sizes)))


def cut(queries: Queries) -> list[Queries]:
    """Five parts of equal numbers of queries, drawn."""
    order = np.random.default_rng(1).permutation(queries.n_queries)
    return [select(queries, np.sort(part)) for part in np.array_split(order, 5)]


def folds(parts: list[Queries]) -> Folds:
    """LETOR's: three parts to train on, then one to choose by, then one to test on."""
    turned = [[parts[(first + k) % 5] for k in range(5)] for first in range(5)]
    return [(joined(five[:3]), five[3], five[4]) for five in turned]


def joined(parts: list[Queries]) -> Queries:
    """The parts one after another, rows as they lie in the files: peers' trees depend on their order."""
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    features, labels = (np.concatenate([getattr(part, name) for part in parts]) for name in ("features", "labels"))
    return Queries(features, labels, np.append(0, np.cumsum(sizes)))


def data_sets() -> Iterator[tuple[str, Folds]]:
    for name, title in (("ohsumed", "OHSUMED"), ("mq2008", "MQ2008")):
        if (FOLDER / name).is_dir():
            yield title, folds(parts_of(name))
    if (FOLDER / "mq2008").is_dir():
        yield "MQ2008, 30 % missing", folds([without(part, 0.3, k) for k, part in enumerate(parts_of("mq2008"))])
    if (FOLDER / "lightgbm-rank").is_dir():
        yield "LightGBM's example", folds(cut(example()))
    for n_queries, n_features, zeros, noise in ((300, 46, 0.6, 1.0), (600, 60, 0.9, 2.0), (1000, 80, 0.6, 1.0)):
        drawn = lifelike(n_queries, n_features, median=30, seed=3, zeros=zeros, noise=noise)
        title = f"generated, {n_queries} queries, {'sparse' if zeros > 0.8 else 'dense'}"
        yield title, folds(cut(Queries(drawn.features, drawn.labels, drawn.offsets)))


def ours(train: Queries, valid: Queries, seed: int) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    return ltr.LambdaMART(conventions=RULES, seed=seed).fit(train, valid).predict


def average(train: Queries, valid: Queries, seed: int) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    return ltr.Average(ltr.LambdaMART(), copies=5, seed=5 * seed, conventions=RULES).fit(train, valid).predict


def lightgbm(train: Queries, valid: Queries, seed: int) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    from lightgbm import LGBMRanker, early_stopping

    given = {"eval_set": [(valid.features, valid.labels)], "eval_group": [np.diff(valid.offsets)], "eval_at": [10]}
    model = LGBMRanker(n_estimators=500, verbose=-1)
    model.fit(train.features, train.labels, group=np.diff(train.offsets), callbacks=[early_stopping(50, verbose=False)], **given)
    return model.predict


def ids(queries: Queries) -> NDArray[np.int64]:
    return np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))


def xgboost(train: Queries, valid: Queries, seed: int) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    from xgboost import XGBRanker

    model = XGBRanker(n_estimators=500, eval_metric="ndcg@10", early_stopping_rounds=50)
    given = {"eval_set": [(valid.features, valid.labels)], "eval_qid": [ids(valid)], "verbose": False}
    return model.fit(train.features, train.labels, qid=ids(train), **given).predict


def catboost(train: Queries, valid: Queries, seed: int) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    from catboost import CatBoostRanker, Pool

    model = CatBoostRanker(
        loss_function="YetiRank",
        eval_metric="NDCG:top=10;type=Exp",
        early_stopping_rounds=50,
        verbose=False,
        allow_writing_files=False,
    )
    pools = [Pool(part.features, part.labels, group_id=ids(part)) for part in (train, valid)]
    return model.fit(pools[0], eval_set=pools[1]).predict


RANKERS: dict[str, tuple[Fit, tuple[int, ...]]] = {
    "LambdaMART": (ours, SEEDS), "average of 5": (average, SEEDS[:1]), "LightGBM": (lightgbm, (0,)), "XGBoost": (xgboost, (0,)),
    "CatBoost": (catboost, (0,)),
}  # fmt: skip


def measured(parts: Folds, fit: Fit, seeds: tuple[int, ...]) -> tuple[float, float, float]:
    """Mean NDCG@10 and MAP over test queries, folds and seeds, and CPU seconds of a fit."""
    found, seconds = [], 0.0
    for train, valid, test in parts:
        for seed in seeds:
            started = time.process_time()
            predict = fit(train, valid, seed)
            seconds += time.process_time() - started
            values = ltr.evaluate(test.labels, predict(test.features), test.offsets, ["ndcg@10", "map"], RULES)
            found.append([np.nanmean(values["ndcg_10"]), np.nanmean(values["map"])])
    ndcg, average_precision = np.mean(found, axis=0).tolist()
    return ndcg, average_precision, seconds / len(found)


def main() -> None:
    ours(*folds(cut(Queries(*vars(lifelike(50, 12)).values())))[0][:2], 1)
    columns = ("data", *(f"{name}: NDCG@10 / MAP (CPU s)" for name in RANKERS))
    table = Table("defaults", "Rankers as they come", columns, ("lightgbm", "xgboost-cpu", "catboost"))
    for title, parts in data_sets():
        found = [measured(parts, fit, seeds) for fit, seeds in RANKERS.values()]
        table.add(title, *(f"{ndcg:.4f} / {mean:.4f} ({seconds:.1f})" for ndcg, mean, seconds in found))
    table.note("Means over five folds; of LambdaMART over three seeds too. MAP counts labels of 1 and up.")
    table.record()


if __name__ == "__main__":
    main()
