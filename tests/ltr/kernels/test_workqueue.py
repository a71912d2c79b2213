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
import ltr, numba
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


@pytest.mark.skipif(not JIT, reason="nothing is compiled, so nothing is parallel")
@pytest.mark.parametrize("layer", ["workqueue", "omp"])
def test_several_threads_train_and_predict_at_once(layer):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True)
    if layer == "omp" and "No threading layer could be loaded" in done.stderr:
        pytest.skip("numba has no OpenMP here")
    assert done.stdout == f"{layer} 8\n", done.stderr
