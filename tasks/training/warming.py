"""Compiling the core before it is needed, once per machine: in two processes at once, which share numba's cache.

A recipe asks for compiled code as training does, by doing it on a few queries, so that whatever it needs is in the cache, with the types
that it is needed with. Recipes of the first round are the largest parts of the second, which are rankers as a user trains them; they
begin once all parts are there, so that little is compiled twice.

scikit-learn ships C, LightGBM C++: what others compile when they are built, numba compiles where it runs; JAX and PyTorch keep a cache of
compiled code on disk too, and fill it when code runs first.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import numpy as np

import ltr
from ltr.data.queries import canonical
from ltr.data.synthetic import World
from ltr.kernels.exponential import exp_of
from ltr.objectives.lambda_objective import Objective
from ltr.trees.grower import TreeOptions, grow, growing
from ltr.trees.partition import BinnedDataset, questions

PROCESSES = 2
"""That compile at once; more would compile more of it twice."""
GRADED = (ltr.Term("ndcg"), ltr.Term("cndcg", weight=0.3, pairs="same_label"))
"""Two terms, as the graded objective of the README has them."""


@cache
def queries() -> ltr.Queries:
    """A few queries with labels and clicks, in canonical order."""
    made, users = World(n_features=20).queries(20, 12, 1)
    clicks = (users > np.median(users)) / 2.0
    return canonical(ltr.Queries(made.features, made.labels, made.offsets, sources={"click": clicks}))


def _gradients() -> None:
    for terms in ((ltr.Term(),), (ltr.Term(cost="logistic_near"),)):  # of few documents and of many
        Objective(queries(), terms)(np.zeros(queries().n_documents), 0)


def _graded_gradients() -> None:
    Objective(queries(), GRADED)(np.zeros(queries().n_documents), 0)


def _growing_of_trees() -> None:
    """All of a tree but what the first two recipes compile."""
    features, rng = queries().features, np.random.default_rng(1)
    data = BinnedDataset.of(features, 255, 4)
    options = TreeOptions(4, 5, True, True, 0.1, 10.0, 0.0, np.zeros(features.shape[1], np.int8))
    gradients = rng.normal(size=len(features)), rng.random(len(features))
    grown = grow(data, gradients, options)
    assert grown is not None
    data.reorder_rows(grown.leaf)


def _measures() -> None:
    scores = np.zeros(queries().n_documents)
    labels = {"label": queries().labels, **queries().sources}
    ltr.evaluate(labels, scores, queries().offsets, ["ndcg_1", "ndcg_10", "map", "mrr", "cndcg_10"])
    exp_of(np.zeros(1))  # gains of labels between whole numbers, such as clicks without their position bias


def _trees() -> None:
    small = ltr.LambdaMART(n_trees=10, n_leaves=4, min_docs_in_leaf=5)
    fitted = small.fit(queries(), queries())
    fitted.importance()
    with TemporaryDirectory() as folder:
        ltr.save(fitted, Path(folder) / "model")
        ltr.load(Path(folder) / "model").predict(queries().features)


def _graded_trees() -> None:
    ltr.LambdaMART(n_trees=2, n_leaves=40, min_docs_in_leaf=5, objective=GRADED).fit(queries(), queries()).predict(
        queries().features
    )


def _linear_net() -> None:
    net = ltr.LambdaRank(epochs=2, stop_on="ndcg").fit(queries(), queries())
    ltr.certify(net.surface(queries().features), queries(), "ndcg")


def _net() -> None:
    ltr.LambdaRank(hidden=2, epochs=2).fit(queries(), queries()).predict(queries().features)


PARTS: Mapping[str, Callable[[], object]] = {
    "splits of leaves": questions,
    "growing of trees": growing,
    "gradients": _gradients,
    "trees' data": _growing_of_trees,
    "measures": _measures,
    "graded gradients": _graded_gradients,
}
"""The first round, the longest first."""
WHOLES: Mapping[str, Callable[[], object]] = {
    "LambdaMART": _trees,
    "linear net": _linear_net,
    "net": _net,
    "graded LambdaMART": _graded_trees,
}
"""The second round."""
RECIPES = {**PARTS, **WHOLES}
"""All that `warm` does."""


def compile_for(name: str) -> str:
    """Runs one recipe in this process; returns its name."""
    RECIPES[name]()
    return name


def _end_with_parent() -> None:
    """Ends this process as soon as the one that began it has ended: killed, that one ends no other, and a pool's processes wait for work forever."""

    def wait() -> None:
        if parent := parent_process():
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()


def warm(tell: Callable[[str], None], processes: int = PROCESSES) -> None:
    """Compiles the core, or finds it compiled, in so many processes; `tell` is told the name of each recipe that is done."""
    with ProcessPoolExecutor(processes, get_context("spawn"), _end_with_parent) as pool:
        for recipes in (PARTS, WHOLES):
            for finished in as_completed([pool.submit(compile_for, name) for name in recipes]):
                tell(finished.result())
