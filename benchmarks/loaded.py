"""Training beside other work: how much slower ours and LightGBM get, each in a process of its own and with two threads, and a sweep of ours in
two workers, from the command to its end, while two other processes are busy. Runs alternate: each alone, each beside.

python benchmarks/loaded.py [queries] [trees] [rounds]
"""

import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import Table

ROOT = Path(__file__).parents[1]

BUSY = 2
OURS = """
import sys, time
import ltr
from benchmarks.lifelike import lifelike
train, small = lifelike(int(sys.argv[1])), lifelike(50)
model = ltr.LambdaMART(n_trees=int(sys.argv[2]), learning_rate=0.1, query_share=1.0, feature_share=1.0)
model.fit(ltr.Queries(small.features, small.labels, small.offsets))
started = time.perf_counter()
model.fit(ltr.Queries(train.features, train.labels, train.offsets))
print(time.perf_counter() - started)
"""
LIGHTGBM = """
import os, sys, time
import numpy as np
for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
    os.environ.pop(name, None)
import lightgbm
from benchmarks.lifelike import lifelike
train = lifelike(int(sys.argv[1]))
options = {"objective": "lambdarank", "learning_rate": 0.1, "verbose": -1, "num_threads": 2}
started = time.perf_counter()
lightgbm.train(options, lightgbm.Dataset(train.features, train.labels, group=np.diff(train.offsets)), int(sys.argv[2]))
print(time.perf_counter() - started)
"""
"""It waits as it comes."""


SWEEP = """
import os, subprocess, sys, tempfile, time
from pathlib import Path
os.environ["PYTHONPATH"] = os.getcwd()
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
Path("sweep.yaml").write_text(
    f"data: {{generate: {{queries: [{sys.argv[1]}, 200, 200], documents: 50, features: 136}}}}\\n"
    "rankers: {trees: {kind: lambdamart, n_trees: 100, patience: 0}}\\n"
    "sweep: {learning_rate: [0.05, 0.1], n_leaves: [15, 31], min_docs_in_leaf: [20, 50]}\\n"
    "measures: [ndcg_10]\\nworkers: 2\\n"
)
started = time.perf_counter()
command = [sys.executable, "-c", "from flows.cli import entry; entry()", "run", "sweep.yaml"]
subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
print(time.perf_counter() - started)
os.chdir(os.environ["PYTHONPATH"])
folder.cleanup()
"""


def seconds(code: str, arguments: list[str]) -> float:
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def beside(code: str, arguments: list[str]) -> float:
    """`seconds` while others are busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    try:
        return seconds(code, arguments)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main() -> None:
    n_queries, n_trees, rounds = (int(given) for given in (sys.argv[1:] + ["1000", "30", "5"][len(sys.argv) - 1 :]))
    arguments = [str(n_queries), str(n_trees)]
    title = f"{n_queries:,} queries, {n_trees} trees, beside {BUSY} busy processes"
    head = ("what", "alone, s", "beside, s", "slower by: median (min–max)")
    table = Table("loaded.fit", title, head, ("lightgbm",), keep=not sys.argv[1:])
    contestants = {"ours": OURS, "LightGBM": LIGHTGBM, "a sweep of eight cells, `workers: 2`": SWEEP}
    times = {name: ([], []) for name in contestants}
    for _ in range(rounds):
        for k, measured in enumerate((seconds, beside)):
            for name, code in contestants.items():
                times[name][k].append(measured(code, arguments))
    for name, (alone, crowded) in times.items():
        ratios = sorted(b / a for a, b in zip(alone, crowded, strict=True))
        slower = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
        table.add(name, f"{statistics.median(alone):.2f}", f"{statistics.median(crowded):.2f}", slower)
    table.note(
        "Training from raw arrays to a model, the sweep from its command to its end; LightGBM waits as it comes, ours asks OpenMP's threads to "
        "spin briefly and sleep then."
    )
    table.record()


if __name__ == "__main__":
    main()
