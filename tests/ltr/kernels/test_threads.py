"""Threads: as many as are asked for, which soon sleep when they wait, and the same numbers from any number of them."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import ltr
from ltr.kernels.threads import WAITING
from tests.conftest import JIT, make_queries

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("all_threads")


def printed(code, **environment):
    kept = {name: value for name, value in os.environ.items() if name not in {*WAITING, "OMP_WAIT_POLICY"}}
    return subprocess.run(
        [sys.executable, "-c", code], env=kept | {"PYTHONPATH": str(ROOT)} | environment, capture_output=True, text=True, check=True
    ).stdout


def test_threads_are_limited_inside_only_and_change_no_number():
    before, queries = numba.get_num_threads(), make_queries(30)
    models = []
    for n in (1, 2, None, -1):
        with ltr.threads(n) as taken:
            assert taken == numba.get_num_threads() <= before
            assert n in (None, -1) or taken <= n
            models.append(ltr.LambdaMART(n_trees=2, min_docs_in_leaf=5).fit(queries).digest)
    assert len(set(models)) == 1
    assert numba.get_num_threads() == before
    with pytest.raises(RuntimeError), ltr.threads(1):
        raise RuntimeError
    assert numba.get_num_threads() == before


def test_inside_each_other_the_fewest_count():
    with ltr.threads(1), ltr.threads(2) as inner:
        assert inner == 1


@pytest.mark.parametrize("n", [0, -2, 1.5, True, "2"])
def test_what_is_no_number_of_threads_is_refused(n):
    with pytest.raises(ValueError, match="is neither a number of threads nor -1 or None for all"), ltr.threads(n):
        pass


def test_importing_the_core_asks_for_a_short_spin_unless_the_environment_says_how_to_wait():
    code = "import os, ltr; print([os.environ.get(name) for name in ('OMP_WAIT_POLICY', 'GOMP_SPINCOUNT', 'KMP_BLOCKTIME')])"
    assert printed(code) == "[None, '1000', '1']\n"
    assert printed(code, GOMP_SPINCOUNT="7") == "[None, '7', '1']\n"
    assert printed(code, OMP_WAIT_POLICY="active") == "['active', None, None]\n"


@pytest.mark.skipif(not JIT or (os.cpu_count() or 1) < 2, reason="needs threads")
def test_threads_that_wait_take_hardly_any_time():
    """Many parallel regions with a pause after each: a spinning thread would take as much time as the pauses."""
    code = """
import time, numpy as np, ltr, numba
from ltr.trees.grower import _move
arguments = np.zeros(50), np.zeros(2), np.zeros(50, np.int32)
_move(*arguments)
began = time.process_time()
for _ in range(200):
    _move(*arguments)
    time.sleep(0.002)
print(numba.threading_layer(), time.process_time() - began)
"""
    layer, seconds = printed(code).split()
    assert layer != "omp" or float(seconds) < 0.2, "of 0.4 s in which there was nothing to do"
