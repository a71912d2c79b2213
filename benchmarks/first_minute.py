"""The first minute on a machine: importing the core, the first LambdaMART and the second, from an empty cache of kernels and from a full
one, each in a process of its own; and `lambdaflow warm`, which fills the cache in two processes.

python benchmarks/first_minute.py [warm runs]
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import Table

ROOT = Path(__file__).parents[1]

PARTS = ("import ltr", "first fit", "second fit")
FIT = """
import json, time
seconds = [(time.perf_counter(), time.process_time())]
def note():
    seconds.append((time.perf_counter(), time.process_time()))
import ltr
note()
from ltr.data.synthetic import World
queries, _ = World(n_features=30).queries(100, 20, 1)
for _ in range(2):
    note()
    ltr.LambdaMART(n_trees=20).fit(queries, queries)
    note()
pairs = (0, 1), (2, 3), (4, 5)
print(json.dumps([[seconds[b][k] - seconds[a][k] for k in range(2)] for a, b in pairs]))
"""
"""A data set of 2,000 documents, so that hardly anything but compiling takes time."""


def environment(cache: Path) -> Mapping[str, str]:
    return {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}


def fits(cache: Path) -> list[list[float]]:
    """Seconds and processor seconds of each of the `PARTS`, in a new process."""
    done = subprocess.run([sys.executable, "-c", FIT], env=environment(cache), capture_output=True, text=True, check=True)
    found: list[list[float]] = json.loads(done.stdout)
    return found


def warm(cache: Path) -> list[float]:
    """Seconds and processor seconds of `lambdaflow warm`."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "flows.cli", "warm"]
    subprocess.run(command, env=environment(cache), cwd=cache, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [time.perf_counter() - started, busy]


def cells(name: str, cold: list[float], again: list[list[float]]) -> tuple[str, ...]:
    seconds, busy = (statistics.median(times) for times in zip(*again, strict=True))
    return (name, f"{cold[0]:.1f}", f"{cold[1]:.1f}", f"{seconds:.2f}", f"{busy:.2f}")


def main() -> None:
    runs = int(sys.argv[1]) if sys.argv[1:] else 5
    head = ("what", "cold, s", "cold, processor s", "warm, s", "warm, processor s")
    table = Table("first_minute.fit", "2,000 documents × 30 features, 20 trees of 31 leaves", head)
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder, "one"), Path(folder, "two")
        one.mkdir(), two.mkdir()
        first, again = fits(one), [fits(one) for _ in range(runs)]
        for k, part in enumerate(PARTS):
            table.add(part, *cells(part, first[k], [run[k] for run in again])[1:])
        table.add("`lambdaflow warm`", *cells("", warm(two), [warm(two)])[1:])
    table.note("Cold: from an empty cache of kernels; warm: medians of new processes afterwards.")
    table.record()


if __name__ == "__main__":
    main()
