"""Time per tree and memory from 10⁵ to 10⁷ documents × 136 features, the features in a memory-mapped file that is binned block by
block. GrowthBuffers is what the process holds of its own (RssAnon); pages of the file are the system's to drop.

python benchmarks/scale.py [documents …]
"""

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.results import Table
from ltr.data.digests import row_digests

FEATURES, DOCUMENTS, TREES = 136, 125, 5


def stored(folder: Path, n_queries: int) -> ltr.Queries:
    """Generated queries in canonical order, their features on disk."""
    rng = np.random.default_rng(1)
    n = n_queries * DOCUMENTS
    path = folder / f"{n}.npy"
    features = np.lib.format.open_memmap(path, "w+", np.float32, (n, FEATURES))
    labels = np.empty(n)
    for first in range(0, n_queries, 800):
        count = min(800, n_queries - first)
        x = rng.standard_normal((count * DOCUMENTS, FEATURES), np.float32)
        order = np.lexsort((row_digests(x), np.repeat(np.arange(count), DOCUMENTS)))
        rows = slice(first * DOCUMENTS, (first + count) * DOCUMENTS)
        features[rows] = x[order]
        value = x[order, 0] + 0.7 * x[order, 1] * x[order, 2] + rng.standard_normal(len(order))
        labels[rows] = np.searchsorted([0.1, 1.1, 2.0, 2.9], value)
    features.flush()
    offsets = np.arange(0, n + 1, DOCUMENTS)
    return ltr.Queries(np.load(path, mmap_mode="r"), labels, offsets, keys=np.arange(n_queries, dtype=np.uint64))


class Highest:
    """Megabytes of its own that the process holds at most, looked at every twentieth of a second."""

    def __init__(self) -> None:
        self.megabytes, self.done = 0.0, threading.Event()
        self.watch = threading.Thread(target=self.look)

    def look(self) -> None:
        while not self.done.wait(0.05):
            lines = Path("/proc/self/status").read_text().splitlines()
            now = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))
            self.megabytes = max(self.megabytes, now)

    def __enter__(self) -> "Highest":
        self.watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.watch.join()


def main() -> None:
    sizes = [int(given) for given in sys.argv[1:]] or [10**5, 10**6, 10**7]
    title = f"{FEATURES} features, {DOCUMENTS} documents a query, {TREES} trees of 31 leaves"
    head = (
        *("documents", "features, MB", "before the first tree, s", "a tree, ms"),
        *("a tree and a million documents, ms", "memory of its own, MB"),
    )
    table = Table("scale.trees", title, head, keep=not sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        model = ltr.LambdaMART(n_trees=TREES, query_share=1.0, feature_share=1.0, stop_on=None)
        model.fit(stored(Path(folder), 40))
        for size in sizes:
            queries = stored(Path(folder), size // DOCUMENTS)
            ticks = [time.perf_counter()]
            with Highest() as highest:
                model.fit(queries, tick=lambda ticks=ticks: ticks.append(time.perf_counter()))
            tree = float(np.median(np.diff(ticks[1:])))
            before = ticks[1] - ticks[0] - tree
            table.add(
                *(f"{size:,}", f"{queries.features.nbytes / 1e6:,.0f}", f"{before:.2f}", f"{1e3 * tree:.1f}"),
                *(f"{1e9 * tree / size:.0f}", f"{highest.megabytes:,.0f}"),
            )
    table.record()


if __name__ == "__main__":
    main()
