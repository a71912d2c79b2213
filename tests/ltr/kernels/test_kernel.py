"""The first run after installation, which compiles, and the next one, which finds compiled kernels, train the same models."""

import os
import subprocess
import sys

import pytest

from tests.conftest import JIT

TRAIN = """
import ltr
from ltr.data.synthetic import World
queries, _ = World(n_features=20).queries(60, 20, 1)
near = ltr.Term("ndcg_10", cost="logistic_near")
for model in (
    ltr.LambdaMART(n_trees=5, stop_on=None),
    ltr.LambdaMART(n_trees=5, stop_on=None, objective=(near,)),
    ltr.LambdaRank(epochs=5),
    ltr.LambdaRank(hidden=3, epochs=5),
    ltr.RankSVM(),
    ltr.Listwise(iterations=10),
):
    print(model.kind, model.fit(queries).digest)
"""


@pytest.mark.skipif(not JIT, reason="there is no cache without compilation")
def test_a_cold_cache_and_a_warm_one_give_the_same_models(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def trained():
        return subprocess.run([sys.executable, "-c", TRAIN], env=environment, capture_output=True, text=True, check=True).stdout

    cold = trained()
    assert cold.count("\n") == 6
    assert trained() == cold
