"""LambdaMART, LightGBM and XGBoost chosen alike on LETOR's sets: the same twelve settings and five lengths for each, the point of the highest
validation MAP, five folds, LETOR 3.0's rules. What nobody names is as it comes. Ours draws queries and features, so its numbers are means over
five seeds, each with a choice of its own.

python benchmarks/letor.py
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.defaults import FOLDER, Folds, folds, grid, ids, parts_of
from benchmarks.results import Table
from ltr.data.queries import Queries

RULES = ltr.Conventions(threshold=1, max_label=2, empty="zero", ties="stable")
MEASURES = ("jk_ndcg_1", "jk_ndcg_3", "jk_ndcg_5", "jk_ndcg_10", "map")
SETTINGS = grid(rate=[0.05, 0.1], leaves=[5, 10, 20], least=[20, 100])
LENGTHS = (25, 50, 100, 200, 400)
SEEDS = (1, 2, 3, 4, 5)
Scores = Callable[[NDArray[np.float32], int], NDArray[Any]]
"""``scores(features, trees)``: of so many first trees."""
Fit = Callable[[Queries, Mapping[str, Any], int], Scores]


def ours(train: Queries, at: Mapping[str, Any], seed: int) -> Scores:
    model = ltr.LambdaMART(
        n_trees=max(LENGTHS), learning_rate=at["rate"], n_leaves=at["leaves"], min_docs_in_leaf=at["least"],
        conventions=RULES, seed=seed, stop_on=None,
    ).fit(train)  # fmt: skip
    return lambda features, trees: model.predict(features, n_trees=trees)


def lightgbm(train: Queries, at: Mapping[str, Any], seed: int) -> Scores:
    from lightgbm import LGBMRanker

    model = LGBMRanker(
        n_estimators=max(LENGTHS), learning_rate=at["rate"], num_leaves=at["leaves"], min_child_samples=at["least"], verbose=-1
    )
    model.fit(train.features, train.labels, group=np.diff(train.offsets))
    return lambda features, trees: model.predict(features, num_iteration=trees)


def xgboost(train: Queries, at: Mapping[str, Any], seed: int) -> Scores:
    """Its weight of a leaf is a sum of hessians, of which it has no count: a hundredth of the documents."""
    from xgboost import XGBRanker

    model = XGBRanker(
        n_estimators=max(LENGTHS), learning_rate=at["rate"], max_leaves=at["leaves"], grow_policy="lossguide", max_depth=0,
        min_child_weight=at["least"] / 100,
    )  # fmt: skip
    model.fit(train.features, train.labels, qid=ids(train))
    return lambda features, trees: model.predict(features, iteration_range=(0, trees))


RANKERS: Mapping[str, tuple[Fit, tuple[int, ...]]] = {
    "LambdaMART": (ours, SEEDS),
    "LightGBM": (lightgbm, SEEDS[:1]),
    "XGBoost": (xgboost, SEEDS[:1]),
}


def values_of(queries: Queries, scores: NDArray[Any]) -> NDArray[np.float64]:
    """``float64 [measures, queries]``."""
    found = ltr.evaluate(queries.labels, scores, queries.offsets, MEASURES, RULES)
    return np.array([found[name] for name in MEASURES])


def chosen(fit: Fit, train: Queries, valid: Queries, test: Queries, seed: int) -> NDArray[np.float64]:
    """Test values of the setting and length of the highest mean validation MAP."""
    best, kept = -1.0, np.empty(0)
    for at in SETTINGS:
        scores = fit(train, at, seed)
        for trees in LENGTHS:
            mean = float(values_of(valid, scores(valid.features, trees))[-1].mean())
            if mean > best:
                best, kept = mean, values_of(test, scores(test.features, trees))
    return kept


def measured(parts: Folds, fit: Fit, seeds: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means over folds and seeds, and the values of every test query, means over the seeds, ``float64 [measures, queries]``."""
    by_fold = [np.mean([chosen(fit, *fold, seed) for seed in seeds], axis=0) for fold in parts]
    return np.mean([fold.mean(axis=1) for fold in by_fold], axis=0), np.concatenate(by_fold, axis=1)


def data_sets() -> Iterator[tuple[str, Folds]]:
    for name, title in (("ohsumed", "OHSUMED"), ("mq2008", "MQ2008")):
        yield title, folds(parts_of(name))


def main() -> None:
    columns = ("data", "ranker", "NDCG@1", "@3", "@5", "@10", "MAP", "MAP beside LambdaMART's")
    found = Table("letor", "Trees chosen alike on LETOR's sets", columns, ("lightgbm", "xgboost-cpu"), keep=FOLDER.is_dir())
    for title, parts in data_sets():
        first: NDArray[np.float64] | None = None
        for name, (fit, seeds) in RANKERS.items():
            means, each = measured(parts, fit, seeds)
            first = each[-1] if first is None else first
            apart = each[-1] - first
            error = apart.std(ddof=1) / np.sqrt(len(apart))
            found.add(title, name, *(f"{mean:.4f}" for mean in means), f"{apart.mean():+.4f} ± {error:.4f}" if error else "")
    found.note(
        f"Means over five folds, of LambdaMART over {len(SEEDS)} seeds too; chosen by validation MAP among {len(SETTINGS)} settings (rate .05 or .1, "
        f"5, 10 or 20 leaves, 20 or 100 documents in a leaf, in XGBoost a weight of .2 or 1) and {len(LENGTHS)} lengths "
        f"({', '.join(map(str, LENGTHS))} trees). ± is the standard error of the paired difference over test queries."
    )
    found.record()


if __name__ == "__main__":
    main()
