"""The certificate beside the least it could take: the product of features and directions by BLAS, and the sorting of every query at
every step by numpy, both alone and on as many threads. Verdict and curves are those of the tests.

python benchmarks/optimality.py
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.pairs import alternate, columns
from benchmarks.results import Table
from ltr.diagnostics.optimality import random_directions
from ltr.rankers.surface import linear_surface

QUERIES, DOCUMENTS, FEATURES, DIRECTIONS, STEPS = 10_000, 50, 300, 459, 10


def main() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(QUERIES * DOCUMENTS, FEATURES)).astype(np.float32)
    labels = rng.integers(0, 5, QUERIES * DOCUMENTS).astype(float)
    queries = ltr.Queries(features, labels, np.arange(0, QUERIES * DOCUMENTS + 1, DOCUMENTS))
    weights = rng.normal(size=FEATURES)
    directions = random_directions(DIRECTIONS, FEATURES, 1)
    rows = 100 * DOCUMENTS

    def ours(measure: str) -> None:
        ltr.certify(linear_surface(weights, features), queries, measure)

    def product(first: int, dtype: type) -> np.ndarray:
        return directions.astype(dtype) @ features[first : first + rows].astype(dtype, copy=False).T

    def least(dtype: type) -> None:
        """Scores of 100 queries along all directions, sorted ten times over."""

        def piece(slopes: np.ndarray) -> None:
            for _ in range(STEPS):
                np.sort(slopes.reshape(DIRECTIONS, -1, DOCUMENTS), axis=-1)

        with ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS) as pool:
            for first in range(0, len(features), 2 * rows):
                list(pool.map(piece, [product(first, dtype), product(first + rows, dtype)]))

    title = f"{DIRECTIONS} directions × {STEPS} steps, {QUERIES:,} queries × {DOCUMENTS} × {FEATURES}, linear"
    table = Table("optimality.certificate", title, columns("product and sorts")[:-1])
    for name, dtype in (("float64", np.float64), ("float32", np.float32)):
        for measure, shown in (("ndcg_10", "NDCG@10"), ("map", "MAP")):
            timing = alternate(lambda measure=measure: ours(measure), lambda dtype=dtype: least(dtype), 3)
            table.add(f"{shown}, {name}", *timing.cells[:-1])
    table.record()


if __name__ == "__main__":
    main()
