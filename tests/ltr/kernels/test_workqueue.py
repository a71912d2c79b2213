"""Several threads of Python compute at once where numba has no OpenMP: numba's own pool would end the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import JIT

ROOT = Path(__file__).parents[3]
CODE = """
import threading
import numba, numpy as np
@numba.njit(parallel=True)
def doubled(x):
    for k in numba.prange(len(x)):
        x[k] *= 2
if BEFORE:
    doubled(np.ones(9))
import ltr
from tests.conftest import make_queries
queries = [make_queries(30, seed=k) for k in range(8)]
model = ltr.LambdaMART(n_trees=5, n_leaves=4, min_docs_in_leaf=3)
def digest(k):
    fitted = model.fit(queries[k], queries[k - 1])
    return fitted.digest, fitted.predict(queries[k].features).tobytes()
alone, together = [digest(k) for k in range(8)], [set() for _ in range(8)]
def learn(k):
    for _ in range(5):
        together[k].add(digest(k))
threads = [threading.Thread(target=learn, args=(k,)) for k in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(numba.threading_layer(), [own == {one} for own, one in zip(together, alone)].count(True))
"""


FORKED = """
import os, threading, time
import ltr
from tests.conftest import make_queries
queries = make_queries(200)
model = ltr.LambdaMART(n_trees=3, n_leaves=4, min_docs_in_leaf=3).fit(queries)
expected, stop = model.predict(queries.features).tobytes(), threading.Event()
def compute():
    while not stop.is_set():
        model.predict(queries.features)
threading.Thread(target=compute).start()
codes = []
for _ in range(5):
    child = os.fork()
    if not child:
        os._exit(0 if model.predict(queries.features).tobytes() == expected else 1)
    for _ in range(100):
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    codes.append(code if done else "hangs")
stop.set()
print(codes)
"""
NESTED = """
import numba, numpy as np
import ltr
@numba.njit(parallel=True)
def inner(x):
    for k in numba.prange(len(x)):
        x[k] += 1
@numba.njit(parallel=True)
def outer(x):
    for k in numba.prange(len(x)):
        inner(x[k])
outer(np.zeros((8, 8)))
"""
pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled, so nothing is parallel")


def run(code, layer):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("layer", "before"),
    [("workqueue", False), *(pytest.param(*one, marks=pytest.mark.long) for one in (("workqueue", True), ("omp", False)))],
)
def test_several_threads_train_and_predict_at_once(layer, before):
    """Also where something else had computed before the core was imported."""
    done = run(f"BEFORE = {before}\n{CODE}", layer)
    if layer == "omp" and "No threading layer could be loaded" in done.stderr:
        pytest.skip("numba has no OpenMP here")
    assert done.stdout == f"{layer} 8\n", done.stderr


def test_a_forked_process_does_not_wait_for_a_thread_that_it_does_not_have():
    done = run(FORKED, "workqueue")
    assert done.stdout == "[0, 0, 0, 0, 0]\n", done.stderr


def test_a_region_in_a_region_is_told_and_does_not_wait_for_ever():
    done = run(NESTED, "workqueue")
    assert done.returncode < 0
    assert "nested parallel" in done.stderr.lower()
