"""Learning from clicks by the protocol of the field (Ai et al. 2018, as in ULTRA), our ways and the peers' own in one run.

A linear RankSVM that was trained on one query in a hundred makes the pages, of ten results, always the same ones of a query; users of the
position-based model look at rank r with θ_r^η (θ from eye tracking, Joachims et al. 2005) and click what they look at with
ε + (1 − ε)(2^y − 1)/(2^y_max − 1), ε = .1. Each of 32 pages of a query is a query of its own. All rankers have 60 trees of 15 leaves at the
rate .1, and are tested on judgments, on LETOR's five folds. η = 1 is the bias, η = 0 none: then there is nothing to take out.
``conf/papers/unbiased/`` has the same protocol for nets and more ways of ours.

Then LightGBM's own example as its tests simulate it: documents in the order of one feature, users who go down and leave after each with
probability .2, one page a query, clicks on .4 to .9 of the documents of labels 0 to 4.

python benchmarks/unbiased.py [CLICK SEEDS]
"""

import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.defaults import FOLDER, RULES, Folds, example, folds, ids, parts_of
from benchmarks.results import Table
from ltr.data.queries import Queries, select
from ltr.data.synthetic import clicked_pages
from tasks.config.clicked_pages import LOOKS
from tasks.data.clicked import FOLDS, some_with_pairs

THETA = np.array(LOOKS)
PAGES, RATE, SEEDS = 32, 0.1, 10
DATA = (("mq2008", "MQ2008"), ("ohsumed", "OHSUMED"))
Scores = NDArray[np.float64]
Fit = Callable[[Queries, Queries, Scores], Scores]
"""``fit(train, test, looks)`` → the scores of the test documents; `looks` is how often ranks 1, 2, … are looked at."""
Methods = Mapping[str, Mapping[str, Fit]]
"""By tool and name."""


@dataclass(frozen=True)
class Size:
    """What all tools' trees have in common, and what LightGBM has besides."""

    trees: int
    leaves: int
    documents: int | None = None
    lightgbm: Mapping[str, float] = field(default_factory=dict)


def ours(size: Size, unbiased: Callable[[Scores], ltr.Unbiased] | None = None) -> Fit:
    def fit(train: Queries, test: Queries, looks: Scores) -> Scores:
        how = unbiased(looks) if unbiased else None
        whole: dict[str, Any] = {"query_share": 1.0, "feature_share": 1.0, "stop_on": None, "conventions": RULES}
        trees = {"n_trees": size.trees, "n_leaves": size.leaves, "min_docs_in_leaf": size.documents}
        model = ltr.LambdaMART(**trees, learning_rate=RATE, unbiased=how, objective=(ltr.Term(cost="logistic"),), **whole)
        return model.fit(train).predict(test.features)

    return fit


def lightgbm(size: Size, positions: bool = False) -> Fit:
    def fit(train: Queries, test: Queries, looks: Scores) -> Scores:
        from lightgbm import Dataset
        from lightgbm import train as trained

        shown = train.sources["position"].astype(np.int64) if positions else None
        given = {"objective": "lambdarank", "num_leaves": size.leaves, "learning_rate": RATE, "num_threads": 1, "verbose": -1}
        leaf = {} if size.documents is None else {"min_data_in_leaf": size.documents}
        data = Dataset(train.features, train.labels, group=np.diff(train.offsets), position=shown)
        return np.asarray(trained({**given, **leaf, **size.lightgbm}, data, size.trees).predict(test.features))

    return fit


def xgboost(size: Size, unbiased: bool = False) -> Fit:
    def fit(train: Queries, test: Queries, looks: Scores) -> Scores:
        from xgboost import DMatrix
        from xgboost import train as trained

        given = {
            "objective": "rank:ndcg",
            "max_leaves": size.leaves,
            "max_depth": 0,
            "grow_policy": "lossguide",
            "learning_rate": RATE,
        }
        data = DMatrix(train.features, train.labels, qid=ids(train))
        return trained({**given, "nthread": 1, "lambdarank_unbiased": unbiased}, data, size.trees).predict(DMatrix(test.features))

    return fit


JUDGED, PLAIN = "on judgments", "on clicks as they are"


def methods(size: Size) -> Methods:
    return {
        "LambdaMART": {
            JUDGED: ours(size),
            PLAIN: ours(size),
            "`ipw`, θ known": ours(size, lambda looks: ltr.Unbiased("ipw", propensities=tuple(looks))),
            "`pairwise`": ours(size, lambda _: ltr.Unbiased("pairwise")),
            "`pairwise`, regularisation 0": ours(size, lambda _: ltr.Unbiased("pairwise", regularisation=0.0)),
            "`additive`": ours(size, lambda _: ltr.Unbiased("additive")),
            "`additive`, regularisation 0": ours(size, lambda _: ltr.Unbiased("additive", regularisation=0.0)),
        },
        "LightGBM": {JUDGED: lightgbm(size), PLAIN: lightgbm(size), "`position`": lightgbm(size, True)},
        "XGBoost": {JUDGED: xgboost(size), PLAIN: xgboost(size), "`lambdarank_unbiased`": xgboost(size, True)},
    }


def first_ranker(train: Queries, seed: int) -> ltr.Ranker:
    """A RankSVM of one query in a hundred, drawn from those that have pairs."""
    return ltr.RankSVM(conventions=RULES).fit(select(train, some_with_pairs(train, 0.01, seed)))


def by_query(test: Queries, scores: Scores) -> NDArray[np.float64]:
    """NDCG@10 and @3 of each test query, ``[2, queries]``; NaN where nothing is relevant."""
    values = ltr.evaluate(test.labels, np.asarray(scores, np.float64), test.offsets, ["ndcg@10", "ndcg@3"], RULES)
    return np.array([values["ndcg_10"], values["ndcg_3"]])


Found = dict[tuple[str, str], list[NDArray[np.float64]]]
"""By tool and method ``[2, queries]`` of each seed, the queries of all folds one after another."""


def tried(size: Size, train: Queries, pages: Queries, test: Queries, looks: Scores) -> dict[tuple[str, str], NDArray[np.float64]]:
    """`by_query` of every tool and method."""
    return {
        (tool, name): by_query(test, fit(train if name == JUDGED else pages, test, looks))
        for tool, of_tool in methods(size).items()
        for name, fit in of_tool.items()
    }


def measured(parts: Folds, eta: float, seeds: range) -> Found:
    found: Found = {}
    for seed in seeds:
        of_seed: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
        for fold, (train, _, test) in enumerate(parts):
            ranker = first_ranker(train, FOLDS * seed + fold)
            pages = clicked_pages(train, ranker.predict(train.features), PAGES, THETA**eta, seed=FOLDS * seed + fold)
            of_seed.setdefault(("", "the ranker that made the pages"), []).append(by_query(test, ranker.predict(test.features)))
            for key, values in tried(Size(60, 15), train, pages, test, THETA**eta).items():
                of_seed.setdefault(key, []).append(values)
        for key, own in of_seed.items():
            found.setdefault(key, []).append(np.concatenate(own, axis=1))
    return found


EXAMPLE_TRAIN, SHOWN_BY, LEAVES_AFTER, CLICKED = 201, 34, 0.2, (0.4, 0.6, 0.7, 0.8, 0.9)
"""Of LightGBM's example: the training queries, the feature that pages are ordered by, how often users leave after a document, and how often
they click one of each label."""
EXAMPLE_SEEDS = range(10, 20)


def left_pages(queries: Queries, scores: Scores, seed: int) -> Queries:
    """One page of each query, all its documents by falling score, as users who leave click it; draws are in the order of LightGBM's test."""
    drawn, rows, clicks = random.Random(seed), [], []
    for first, last in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        here = True
        for row in first + np.argsort(-scores[first:last], kind="stable"):
            rows.append(row)
            clicks.append(float(here and drawn.random() < CLICKED[int(queries.labels[row])]))
            here = here and drawn.random() >= LEAVES_AFTER
    ranks = np.arange(1.0, len(rows) + 1) - np.repeat(queries.offsets[:-1], np.diff(queries.offsets))
    return Queries(queries.features[rows], np.array(clicks), queries.offsets, sources={"position": ranks}, names=queries.names)


def measured_example(seeds: range) -> Found:
    """LightGBM's example with its test's settings."""
    size = Size(50, 31, 50, {"bagging_freq": 1, "bagging_fraction": 0.9, "min_sum_hessian_in_leaf": 5.0})
    whole = example()
    train, test = select(whole, np.arange(EXAMPLE_TRAIN)), select(whole, np.arange(EXAMPLE_TRAIN, whole.n_queries))
    looks = (1 - LEAVES_AFTER) ** np.arange(np.diff(train.offsets).max())
    found: Found = {}
    for seed in seeds:
        for key, values in tried(size, train, left_pages(train, train.features[:, SHOWN_BY], seed), test, looks).items():
            found.setdefault(key, []).append(values)
    return found


BRACKETS = (
    "In brackets how far NDCG@10 is from that of the same tool on clicks as they are, ± the standard error over test queries, each with its "
    "mean over the seeds."
)


def cell(found: Found, key: tuple[str, str]) -> str:
    """Means of NDCG@10 and @3, and how far the first is from that of the same tool on clicks as they are: with the standard error over test
    queries, each with its mean over the seeds."""
    values = np.mean(found[key], axis=0)
    ndcg, top = np.nanmean(values, axis=1)
    shown = f"{ndcg:.4f} / {top:.4f}"
    if not key[0] or key[1] == PLAIN:
        return shown
    gap = values[0] - np.mean(found[key[0], PLAIN], axis=0)[0]
    gap = gap[~np.isnan(gap)]
    return f"{shown} ({gap.mean():+.4f} ±{gap.std(ddof=1) / np.sqrt(len(gap)):.4f})"


def measure(eta: float, n_seeds: int) -> None:
    """The table of one strength of bias."""
    here = [(name, title) for name, title in DATA if (FOLDER / name).is_dir()]
    found = [measured(folds(parts_of(name)), eta, range(n_seeds)) for name, _ in here]
    columns = ("ranker", *(f"{title}: NDCG@10 / @3" for _, title in here))
    whole = n_seeds >= SEEDS and len(here) == len(DATA)
    key, title = ("unbiased.bias", "clicks with position bias") if eta else ("unbiased.none", "clicks without any")
    table = Table(key, f"Learning from {title}, η = {eta:g}", columns, ("lightgbm", "xgboost-cpu"), threads=1, keep=whole)
    for ranker in found[0]:
        table.add(" ".join(filter(None, ranker)), *(cell(own, ranker) for own in found))
    table.note(f"Means over five folds and {n_seeds} click seeds. {BRACKETS}")
    table.record()


def measure_example() -> None:
    """The table of LightGBM's example."""
    found = measured_example(EXAMPLE_SEEDS)
    title, columns = "Learning from clicks on LightGBM's example", ("ranker", "NDCG@10 / @3")
    table = Table("unbiased.example", title, columns, ("lightgbm", "xgboost-cpu"), threads=1)
    for ranker in found:
        table.add(" ".join(filter(None, ranker)), cell(found, ranker))
    table.note(f"Means over the click seeds {EXAMPLE_SEEDS.start} to {EXAMPLE_SEEDS.stop - 1}, 50 test queries. {BRACKETS}")
    table.record()


def main() -> None:
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    if (FOLDER / "lightgbm-rank").is_dir():
        measure_example()
    for eta in (1.0, 0.0):
        measure(eta, n_seeds)


if __name__ == "__main__":
    main()
