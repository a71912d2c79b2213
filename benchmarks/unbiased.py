"""Learning from clicks by the protocol of the field (Ai et al. 2018, as in ULTRA), our ways and the peers' own in one run.

A linear RankSVM that was trained on one query in a hundred makes the pages, of ten results, always the same ones of a query; users of the
position-based model look at rank r with θ_r^η (θ from eye tracking, Joachims et al. 2005) and click what they look at with
ε + (1 − ε)(2^y − 1)/(2^y_max − 1), ε = .1. Each of 32 pages of a query is a query of its own. All rankers have 60 trees of 15 leaves at the rate
.1 and are tested on judgments, on LETOR's five folds. η = 1 is the bias, η = 0 none: then there is nothing to take out.

python benchmarks/unbiased.py [CLICK SEEDS]
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.defaults import FOLDER, RULES, Folds, folds, ids, parts_of
from benchmarks.results import Table
from ltr.data.queries import Queries, has_pairs, select
from ltr.data.synthetic import clicked_pages

THETA = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
PAGES, TREES, LEAVES, RATE, SEEDS = 32, 60, 15, 0.1, 3
DATA = (("mq2008", "MQ2008"), ("ohsumed", "OHSUMED"))
Scores = NDArray[np.float64]
Fit = Callable[[Queries, Queries, float], Scores]
"""``fit(train, test, eta)`` → the scores of the test documents."""


def ours(unbiased: Callable[[float], ltr.Unbiased] | None = None) -> Fit:
    def fit(train: Queries, test: Queries, eta: float) -> Scores:
        how = unbiased(eta) if unbiased else None
        whole: dict[str, Any] = {"query_share": 1.0, "feature_share": 1.0, "stop_on": None, "conventions": RULES}
        model = ltr.LambdaMART(n_trees=TREES, n_leaves=LEAVES, learning_rate=RATE, unbiased=how, **whole)
        return model.fit(train).predict(test.features)

    return fit


def lightgbm(positions: bool = False) -> Fit:
    def fit(train: Queries, test: Queries, eta: float) -> Scores:
        from lightgbm import Dataset
        from lightgbm import train as trained

        shown = train.sources["position"].astype(np.int64) if positions else None
        given = {"objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": RATE, "num_threads": 1, "verbose": -1}
        data = Dataset(train.features, train.labels, group=np.diff(train.offsets), position=shown)
        return np.asarray(trained(given, data, TREES).predict(test.features))

    return fit


def xgboost(unbiased: bool = False) -> Fit:
    def fit(train: Queries, test: Queries, eta: float) -> Scores:
        from xgboost import DMatrix
        from xgboost import train as trained

        given = {"objective": "rank:ndcg", "max_leaves": LEAVES, "max_depth": 0, "grow_policy": "lossguide", "learning_rate": RATE}
        data = DMatrix(train.features, train.labels, qid=ids(train))
        return trained({**given, "nthread": 1, "lambdarank_unbiased": unbiased}, data, TREES).predict(DMatrix(test.features))

    return fit


JUDGED, PLAIN = "on judgments", "on clicks as they are"
RANKERS: dict[str, dict[str, Fit]] = {
    "LambdaMART": {
        JUDGED: ours(),
        PLAIN: ours(),
        "`ipw`, θ known": ours(lambda eta: ltr.Unbiased("ipw", propensities=tuple(THETA**eta))),
        "`pairwise`": ours(lambda eta: ltr.Unbiased("pairwise")),
        "`pairwise`, regularisation 0": ours(lambda eta: ltr.Unbiased("pairwise", regularisation=0.0)),
        "`additive`": ours(lambda eta: ltr.Unbiased("additive")),
        "`additive`, regularisation 0": ours(lambda eta: ltr.Unbiased("additive", regularisation=0.0)),
    },
    "LightGBM": {JUDGED: lightgbm(), PLAIN: lightgbm(), "`position`": lightgbm(True)},
    "XGBoost": {JUDGED: xgboost(), PLAIN: xgboost(), "`lambdarank_unbiased`": xgboost(True)},
}


def first_ranker(train: Queries, seed: int) -> ltr.Ranker:
    """A RankSVM of one query in a hundred, drawn from those that have pairs."""
    able = [q for q in range(train.n_queries) if has_pairs(select(train, np.array([q])))]
    drawn = np.random.default_rng([seed, 1]).choice(able, max(round(train.n_queries / 100), 1), replace=False)
    return ltr.RankSVM(conventions=RULES).fit(select(train, np.sort(drawn)))


def by_query(test: Queries, scores: Scores) -> NDArray[np.float64]:
    """NDCG@10 and @3 of each test query, ``[2, queries]``; NaN where nothing is relevant."""
    values = ltr.evaluate(test.labels, np.asarray(scores, np.float64), test.offsets, ["ndcg@10", "ndcg@3"], RULES)
    return np.array([values["ndcg_10"], values["ndcg_3"]])


Found = dict[tuple[str, str], list[NDArray[np.float64]]]
"""By tool and method ``[2, queries]`` of each seed, the queries of all folds one after another."""


def measured(parts: Folds, eta: float, seeds: range) -> Found:
    found: Found = {}
    for seed in seeds:
        of_seed: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
        for fold, (train, _, test) in enumerate(parts):
            ranker = first_ranker(train, 10 * seed + fold)
            old = ranker.predict(train.features)
            pages = clicked_pages(train, old, PAGES, THETA**eta, seed=10 * seed + fold)
            of_seed.setdefault(("", "the ranker that made the pages"), []).append(by_query(test, ranker.predict(test.features)))
            for tool, methods in RANKERS.items():
                for name, fit in methods.items():
                    scores = fit(train if name == JUDGED else pages, test, eta)
                    of_seed.setdefault((tool, name), []).append(by_query(test, scores))
        for key, values in of_seed.items():
            found.setdefault(key, []).append(np.concatenate(values, axis=1))
    return found


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
    table.note(
        f"Means over five folds and {n_seeds} click seeds. In brackets how far NDCG@10 is from that of the same tool on clicks as they are, ± "
        "the standard error over test queries, each with its mean over the seeds."
    )
    table.record()


def main() -> None:
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    for eta in (1.0, 0.0):
        measure(eta, n_seeds)


if __name__ == "__main__":
    main()
