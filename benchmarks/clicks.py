"""A click log of ten million impressions: seconds and memory for its labels, in a process of its own for each.

python benchmarks/clicks.py
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import Table

LABELS: dict[str, dict[str, dict[str, object]]] = {
    "last clicks": {},
    "and debiased": {"unbiased": {"debias": True, "clicks": "all"}},
    "and of similar queries": {"unbiased": {"debias": True, "clicks": "all"}, "similar": {"queries": "similar"}},
}


def write_log(path: Path, pages: int = 1_000_000) -> None:
    """Pages of ten results for 100,000 queries, a few of them asked very often; looks fall as 1/rank."""
    rng = np.random.default_rng(1)
    query = rng.zipf(1.3, pages) % 100_000
    document = query[:, None] * 20 + np.argsort(rng.random((pages, 20)), axis=1)[:, :10]
    clicked = rng.random((pages, 10)) < 0.3 / np.arange(1, 11)
    pl.DataFrame({
        "session": np.repeat(np.arange(pages), 10),
        "query": [f"query number {q}" for q in np.repeat(query, 10)],
        "rank": np.tile(np.arange(1, 11), pages),
        "document": [f"https://site/{d}" for d in document.ravel()],
        "click": (np.cumsum(clicked, axis=1) * clicked).ravel(),
    }).write_parquet(path)  # fmt: skip


def measure(path: str, name: str) -> None:
    from tasks.config.click_labels import ClickLog
    from tasks.data.clicks import click_tables

    started = time.perf_counter()
    tables, _ = click_tables(ClickLog(log=path, more=LABELS[name]))
    seconds, peak = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps([name, f"{tables['click'].height:,}", f"{seconds:.1f}", f"{peak:.2f}"]))


def main() -> None:
    if len(sys.argv) == 3:
        measure(*sys.argv[1:])
        return
    columns = ("labels of 10,000,000 impressions", "pairs", "seconds", "peak memory, GB")
    table = Table("clicks.labels", "Click labels of a log of ten million impressions", columns, ("polars",))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        write_log(path)
        for name in LABELS:
            done = subprocess.run([sys.executable, __file__, str(path), name], check=True, stdout=subprocess.PIPE, text=True)
            table.add(*json.loads(done.stdout.splitlines()[-1]))
    table.record()


if __name__ == "__main__":
    main()
