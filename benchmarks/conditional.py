"""Conditional models on MQ2008 (or data like it where it is not there), RankSVM there and on OHSUMED: an evaluation of objective and gradient over all
queries with 100 rankings each; RankSVM beside scikit-learn's LinearSVC on explicit pairs, to the same weights.

python benchmarks/conditional.py
"""

import itertools
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.pairs import alternate, columns
from benchmarks.results import Table
from ltr.data import letor
from ltr.data.queries import Queries, canonical
from ltr.linear.conditional import sampled_cost
from ltr.linear.linear_ranker import products, transposed
from ltr.linear.sampler import Walk, draw

TITLES = {"mq2008": "MQ2008", "ohsumed": "OHSUMED", "generated": "generated"}


def data(name: str = "mq2008") -> tuple[str, Queries]:
    folder = Path(os.environ.get("LAMBDAFLOW_DATA", "../shared/data")) / name
    if folder.is_dir():
        text = np.frombuffer(b"".join((folder / f"S{k}.txt").read_bytes() for k in range(1, 6)), np.uint8)
        lines = letor.parse(text)
        assert lines.query_keys is not None
        offsets = np.append(np.flatnonzero(np.diff(lines.query_keys, prepend=lines.query_keys[:1] + 1)), len(lines.labels))
        return name, Queries(lines.features, lines.labels, offsets)
    rng = np.random.default_rng(1)
    sizes = rng.integers(5, 35, 784)
    features = rng.random((sizes.sum(), 46)).astype(np.float32)
    labels = (features[:, 0] + rng.random(len(features)) > 1.4).astype(float)
    return "generated", Queries(features, labels, np.concatenate(([0], np.cumsum(sizes))))


def objective(name: str, queries: Queries) -> None:
    binary = canonical(replace(queries, labels=(queries.labels >= 1).astype(float), keys=None))
    started = time.perf_counter()
    sample = draw(binary, "ndcg", Walk(samples=100))
    drawn = time.perf_counter() - started
    cost, weights = sampled_cost("convex", sample, binary.n_documents), np.random.default_rng(0).normal(size=binary.n_features)

    def once() -> None:
        _, factors = cost(products(binary.features, weights))
        transposed(binary.features, factors)

    once()
    times = []
    for _ in range(50):
        started = time.perf_counter()
        once()
        times.append(time.perf_counter() - started)
    kept, rankings = len(sample.queries), len(sample.losses)
    head = ("data", "queries", "rankings", "ms: median (min–max)", "drawing them, with compilation, s")
    table = Table("conditional.objective", "Objective and gradient of ConvexLoss", head, keep=name == "mq2008")
    span = f"{1000 * statistics.median(times):.1f} ({1000 * min(times):.1f}–{1000 * max(times):.1f})"
    table.add(TITLES[name], f"{kept}", f"{rankings:,}", span, f"{drawn:.1f}")
    table.record()


def ranksvm(table: Table, name: str, queries: Queries) -> None:
    from sklearn.svm import LinearSVC

    queries = canonical(queries)
    x = queries.features.astype(np.float64)
    ours = ltr.RankSVM(C=0.001, standardise=False, iterations=100)

    def differences() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        parts = []
        for a, b in itertools.pairwise(queries.offsets):
            i, j = np.nonzero(queries.labels[a:b, None] > queries.labels[None, a:b])
            parts.append(x[a + i] - x[a + j])
        pairs = np.concatenate(parts)
        signs = np.where(np.arange(len(pairs)) % 2, 1.0, -1.0)
        return pairs * signs[:, None], signs

    def peer(pairs: tuple[NDArray[np.float64], NDArray[np.float64]]) -> LinearSVC:
        return LinearSVC(loss="squared_hinge", dual=False, fit_intercept=False, C=0.001, tol=1e-5).fit(*pairs)

    pairs = differences()
    found, theirs = ours.fit(queries).weights, peer(pairs).coef_[0]
    assert found is not None
    apart = np.abs(found - theirs).max() / np.abs(theirs).max()
    title = TITLES[name]
    table.add(f"{title}, {len(pairs[1]):,} pairs", *alternate(lambda: ours.fit(queries), lambda: peer(pairs)).cells)
    table.add(f"{title}, and making them", *alternate(lambda: ours.fit(queries), lambda: peer(differences())).cells)
    table.note(f"On {title} the weights differ by {apart:.1e} of the largest.")


def main() -> None:
    name, queries = data()
    objective(name, queries)
    other = data("ohsumed")
    title, keep = "RankSVM beside LinearSVC on explicit pairs", (name, other[0]) == ("mq2008", "ohsumed")
    table = Table("conditional.ranksvm", title, columns("LinearSVC"), ("scikit-learn",), keep=keep)
    ranksvm(table, name, queries)
    if other[0] == "ohsumed":
        ranksvm(table, *other)
    table.record()


if __name__ == "__main__":
    main()
