"""Rankers as they come, on seven small data sets, five folds each: rounds chosen by validation NDCG@10 and nothing else set, beside LightGBM,
XGBoost and CatBoost as they come; and beside them tuned, each by the same validation queries over its own grid. Ours draws queries and
features, so its numbers are means over ten seeds; CatBoost's, which draws too, over three as it comes.

OHSUMED and MQ2008 have LETOR's folds; LightGBM's example and generated data (`benchmarks.lifelike`) are cut by query. MQ2008 is there a second
time with 30 % of its values missing. As they come all may take 500 rounds, CatBoost its own 1,000, tuned 1,000; all stop 100 after their best.

An average over folds learns from the training and the validation queries together: it is stopped by the parts of them that it cuts itself, and
so are the peers averaged in the same way. Alone each learns from all these queries, with nothing to stop by.

python benchmarks/defaults.py [linear | mixed | ensemble | folds | peers-folds | alone | tuned]
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.lifelike import lifelike
from benchmarks.results import Table
from ltr.data import letor
from ltr.data.digests import equal_parts
from ltr.data.queries import Queries, select

FOLDER = Path(os.environ.get("LAMBDAFLOW_DATA", "../shared/data"))
RULES = ltr.Conventions(threshold=1)
SEEDS = tuple(range(1, 11))
PATIENCE = 100
Folds = list[tuple[Queries, Queries, Queries]]
Predict = Callable[[NDArray[np.float32]], NDArray[Any]]
Fit = Callable[..., Predict]
"""``fit(train, valid, seed, **settings)`` → ``predict(features)``."""


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


def ours(train: Queries, valid: Queries, seed: int) -> Predict:
    return ltr.LambdaMART(conventions=RULES, seed=seed).fit(train, valid).predict


def average(train: Queries, valid: Queries, seed: int) -> Predict:
    return ltr.Average(ltr.LambdaMART(), copies=5, seed=5 * seed, conventions=RULES).fit(train, valid).predict


LINEAR = ltr.LambdaMART(objective="linear_ndcg", normalise="query", conventions=RULES)


def linear(train: Queries, valid: Queries, seed: int) -> Predict:
    return replace(LINEAR, seed=seed).fit(train, valid).predict


def average_of_linear(train: Queries, valid: Queries, seed: int) -> Predict:
    return ltr.Average(LINEAR, copies=5, seed=5 * seed, conventions=RULES).fit(train, valid).predict


def mixed(train: Queries, valid: Queries, seed: int) -> Predict:
    both = (ltr.LambdaMART(conventions=RULES), LINEAR)
    return ltr.Average(of=both, copies=3, seed=5 * seed, conventions=RULES).fit(train, valid).predict


def lightgbm(train: Queries, valid: Queries, seed: int, rounds: int = 500, **settings: Any) -> Predict:
    from lightgbm import LGBMRanker, early_stopping

    given = {"eval_X": valid.features, "eval_y": valid.labels, "eval_group": [np.diff(valid.offsets)], "eval_at": [10]}
    model = LGBMRanker(n_estimators=rounds, verbose=-1, **settings)
    stop = early_stopping(PATIENCE, verbose=False)
    return model.fit(train.features, train.labels, group=np.diff(train.offsets), callbacks=[stop], **given).predict


def ids(queries: Queries) -> NDArray[np.int64]:
    return np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))


def xgboost(train: Queries, valid: Queries, seed: int, rounds: int = 500, **settings: Any) -> Predict:
    from xgboost import XGBRanker

    model = XGBRanker(n_estimators=rounds, eval_metric="ndcg@10", early_stopping_rounds=PATIENCE, **settings)
    given = {"eval_set": [(valid.features, valid.labels)], "eval_qid": [ids(valid)], "verbose": False}
    return model.fit(train.features, train.labels, qid=ids(train), **given).predict


def catboost(train: Queries, valid: Queries, seed: int, **settings: Any) -> Predict:
    from catboost import CatBoostRanker, Pool

    model = CatBoostRanker(
        loss_function="YetiRank",
        eval_metric="NDCG:top=10;type=Exp",
        early_stopping_rounds=PATIENCE,
        random_seed=seed,
        verbose=False,
        allow_writing_files=False,
        **settings,
    )
    pools = [Pool(part.features, part.labels, group_id=ids(part)) for part in (train, valid)]
    return model.fit(pools[0], eval_set=pools[1]).predict


def grid(**values: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Every combination."""
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


def tuned(fit: Fit, settings: Sequence[Mapping[str, Any]]) -> Fit:
    """With the settings that rank the validation queries best."""

    def best(train: Queries, valid: Queries, seed: int) -> Predict:
        found = [fit(train, valid, seed, **point) for point in settings]
        return found[int(np.argmax([np.nanmean(values_of(valid, predict)["ndcg_10"]) for predict in found]))]

    return best


def ensemble(train: Queries, valid: Queries, seed: int) -> Predict:
    return ltr.ensemble(seed=3 * seed, conventions=RULES).fit(train, valid).predict


def average_of_folds(train: Queries, valid: Queries, seed: int) -> Predict:
    return ltr.Average(ltr.LambdaMART(), folds=5, seed=5 * seed, conventions=RULES).fit(joined([train, valid])).predict


def ensemble_of_folds(train: Queries, valid: Queries, seed: int) -> Predict:
    return ltr.ensemble(folds=5, seed=5 * seed, conventions=RULES).fit(joined([train, valid])).predict


def averaged(fit: Fit) -> Fit:
    """The mean of five on one scale, each stopped by a fifth of all queries and learned from the others."""

    def of_folds(train: Queries, valid: Queries, seed: int) -> Predict:
        both = joined([train, valid])
        parts = equal_parts(both.keys, 5, (5 * seed, 0))
        cut = [[select(both, np.flatnonzero(held_out)) for held_out in (parts != k, parts == k)] for k in range(5)]
        members = [fit(*of, 5 * seed + k) for k, of in enumerate(cut)]
        scales = [np.std(member(both.features)) or 1.0 for member in members]
        return lambda features: np.mean([member(features) / scale for member, scale in zip(members, scales, strict=True)], axis=0)

    return of_folds


def ours_alone(train: Queries, valid: Queries, seed: int) -> Predict:
    return ltr.LambdaMART(conventions=RULES, seed=seed).fit(joined([train, valid])).predict


def lightgbm_alone(train: Queries, valid: Queries, seed: int) -> Predict:
    from lightgbm import LGBMRanker

    both = joined([train, valid])
    return LGBMRanker(verbose=-1).fit(both.features, both.labels, group=np.diff(both.offsets)).predict


def xgboost_alone(train: Queries, valid: Queries, seed: int) -> Predict:
    from xgboost import XGBRanker

    both = joined([train, valid])
    return XGBRanker().fit(both.features, both.labels, qid=ids(both)).predict


PEERS = ("lightgbm", "xgboost-cpu", "catboost")
RANKERS: dict[str, tuple[Fit, tuple[int, ...]]] = {
    "LambdaMART": (ours, SEEDS), "average of 5": (average, SEEDS[:1]), "LightGBM": (lightgbm, (0,)), "XGBoost": (xgboost, (0,)),
    "CatBoost": (catboost, SEEDS[:3]),
}  # fmt: skip
OF_LINEAR: dict[str, tuple[Fit, tuple[int, ...]]] = {
    "LambdaMART of linear gains": (linear, SEEDS),
    "average of 5": (average_of_linear, SEEDS[:1]),
}
OF_FOLDS: dict[str, tuple[Fit, tuple[int, ...]]] = {
    "average over five folds": (average_of_folds, SEEDS[:3]),
    "ltr.ensemble(folds=5)": (ensemble_of_folds, SEEDS[:3]),
}
PEERS_OF_FOLDS: dict[str, tuple[Fit, tuple[int, ...]]] = {
    "LightGBM": (averaged(lightgbm), (1,)), "XGBoost": (averaged(xgboost), (1,)), "CatBoost": (averaged(catboost), (1,)),
}  # fmt: skip
ALONE: dict[str, tuple[Fit, tuple[int, ...]]] = {
    "LambdaMART": (ours_alone, SEEDS[:3]), "LightGBM": (lightgbm_alone, (0,)), "XGBoost": (xgboost_alone, (0,)),
}  # fmt: skip
TUNED: dict[str, tuple[Fit, tuple[int, ...]]] = {
    "LightGBM": (tuned(lightgbm, grid(rounds=[1000], learning_rate=[0.03, 0.1], num_leaves=[7, 15, 31], min_child_samples=[20, 50])), (0,)),
    "XGBoost": (tuned(xgboost, grid(rounds=[1000], learning_rate=[0.03, 0.1], max_depth=[3, 4, 6], min_child_weight=[1, 10])), (0,)),
    "CatBoost": (tuned(catboost, grid(learning_rate=[0.03, 0.1], depth=[4, 6, 8])), (0,)),
}  # fmt: skip


def values_of(queries: Queries, predict: Predict) -> dict[str, NDArray[np.float64]]:
    """NDCG@10 and MAP of every query."""
    return dict(ltr.evaluate(queries.labels, predict(queries.features), queries.offsets, ["ndcg@10", "map"], RULES))


def measured(parts: Folds, fit: Fit, seeds: tuple[int, ...]) -> tuple[float, float, float, float]:
    """Mean NDCG@10 and MAP over test queries, folds and seeds, CPU seconds of a fit, and the standard error of NDCG@10 over the queries."""
    found, seconds, by_query = [], 0.0, []
    for train, valid, test in parts:
        of_fold = []
        for seed in seeds:
            started = time.process_time()
            predict = fit(train, valid, seed)
            seconds += time.process_time() - started
            of_fold.append(values := values_of(test, predict))
            found.append([np.nanmean(values["ndcg_10"]), np.nanmean(values["map"])])
        by_query.append(np.mean([values["ndcg_10"] for values in of_fold], axis=0))
    ndcg, average_precision = np.mean(found, axis=0).tolist()
    each = np.concatenate(by_query)
    error = float(np.nanstd(each, ddof=1) / np.sqrt(np.isfinite(each).sum()))
    return ndcg, average_precision, seconds / len(found), error


def table(key: str, title: str, rankers: Mapping[str, tuple[Fit, tuple[int, ...]]], told: str) -> None:
    columns = ("data", *(f"{name}: NDCG@10 / MAP (CPU s)" for name in rankers), "standard error of NDCG@10")
    found = Table(key, title, columns, PEERS)
    for name, parts in data_sets():
        each = [measured(parts, fit, seeds) for fit, seeds in rankers.values()]
        found.add(name, *(f"{ndcg:.4f} / {mean:.4f} ({seconds:.1f})" for ndcg, mean, seconds, _ in each), f"{each[0][3]:.3f}")
    found.note(
        f"Means over five folds; {told}. MAP counts labels of 1 and up. The standard error is the first ranker's, over test queries."
    )
    found.record()


def main(asked: Sequence[str]) -> None:
    ours(*folds(cut(Queries(*vars(lifelike(50, 12)).values())))[0][:2], 1)
    if not asked:
        table("defaults", "Rankers as they come", RANKERS, "of LambdaMART over ten seeds too, of CatBoost over three")
    if asked in ([], ["linear"]):
        table("defaults.linear", "Learned from linear gains", OF_LINEAR, "of LambdaMART over ten seeds too")
    if asked in ([], ["linear"], ["mixed"]):
        table("defaults.mixed", "Three of each", {"average of three of each": (mixed, SEEDS[:1])}, "one seed")
    if asked in ([], ["ensemble"]):
        table("defaults.ensemble", "Four kinds, weighed", {"ltr.ensemble()": (ensemble, SEEDS[:3])}, "over three seeds too")
    if asked in ([], ["folds"]):
        table("defaults.folds", "Averages over folds", OF_FOLDS, "over three seeds too")
    if asked in ([], ["peers-folds"]):
        table("defaults.peers-folds", "The peers averaged over folds", PEERS_OF_FOLDS, "one seed")
    if asked in ([], ["alone"]):
        table("defaults.alone", "Rankers as they come, without validation queries", ALONE, "of LambdaMART over three seeds too")
    if asked in ([], ["tuned"]):
        chosen = "chosen on the validation queries, over 12 settings, CatBoost over 6"
        table("defaults.tuned", "The peers tuned", TUNED, chosen)


if __name__ == "__main__":
    main(sys.argv[1:])
