"""Finished runs held against each other; the whole of it is in `tests/flows/test_pipeline.py`."""

import numpy as np
import polars as pl

from tasks.evidence.significance import PairTest
from tasks.evidence.stored_runs import _more_tests


def test_not_worse_is_not_more_errors():
    rng = np.random.default_rng(0)
    frames = {"a": [pl.DataFrame({"errors": rng.random(40)})], "b": [pl.DataFrame({"errors": 3 + rng.random(40)})]}
    pair = PairTest("errors", "a", "b", -3.0, 0.1, -30.0, 0.0, 40, 95)
    assert _more_tests(pair, frames, 0.1).not_worse == ("a",)
