"""A query of 10,000 documents trains and is evaluated with little memory above the data: no array grows with its pairs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import JIT

MEASURED = """
import resource, numpy as np, ltr

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def queries(n):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(n, 40)).astype(np.float32)
    return ltr.Queries(features, np.clip(np.round(features[:, 0] + 1), 0, 4), np.array([0, n]))

def work(data):
    for measure in ("ndcg_10", "map"):
        objective = (ltr.Term(measure),)
        for model in (ltr.LambdaRank(epochs=1, objective=objective), ltr.LambdaMART(n_trees=2, objective=objective)):
            scores = model.fit(data, data).predict(data.features)
            ltr.evaluate(data.labels, scores, data.offsets, list(m for m in ltr.MEASURES if m not in ("p", "cndcg")))

work(queries(100))
data = queries(10_000)
before = peak()
work(data)
print(peak() - before)
"""


@pytest.mark.skipif(not JIT, reason="5e7 pairs are for compiled code")
def test_a_query_of_ten_thousand_documents_takes_less_than_100_mb_above_the_data():
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", MEASURED], cwd=root, capture_output=True, text=True, timeout=300, check=True)
    assert float(done.stdout) < 100
