"""Vectors of sixteen against NumPy, and the same bits for another processor."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from numba import njit
from numpy._core._multiarray_umath import __cpu_features__ as CPU

from ltr.kernels import vectors
from ltr.kernels.vectors import LANES

OTHER = {"x86_64": "x86-64-v3"}.get(platform.machine(), "generic")
"""A processor with other, narrower vectors than many of this kind."""
NARROW = " ".join(name for name, has in CPU.items() if has and (name.startswith(("AVX512", "X86_V4"))))
"""What NumPy does without there."""


@njit
def computed(a, b, c, n, out):
    x, y, z = vectors.load(a, 3), vectors.load(b, 0), vectors.load_some(c, 1, n)
    vectors.store(out, 0, x + y)
    vectors.store(out, LANES, x - y)
    vectors.store(out, 2 * LANES, x * y)
    vectors.store(out, 3 * LANES, x / y)
    vectors.store(out, 4 * LANES, abs(x))
    vectors.store(out, 5 * LANES, vectors.larger(x, y))
    vectors.store(out, 6 * LANES, z)
    vectors.store(out, 7 * LANES, vectors.everywhere(a[0]))
    vectors.store(out, 8 * LANES, vectors.fused(x, y, z))


@njit
def totals(a, b, c, d):
    return vectors.totals(vectors.load(a, 0), vectors.load(b, 0), vectors.load(c, 0), vectors.load(d, 0))


@pytest.mark.parametrize("n", [0, 1, 7, LANES])
def test_lanes_are_computed_as_numpy_does(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, LANES + 3)).astype(np.float32)
    c, out = rng.normal(size=n + 1).astype(np.float32), np.full(9 * LANES + 1, 7, np.float32)
    computed(a, b, c, n, out)
    x, y, z = a[3:], b[:LANES], np.append(c[1:], np.zeros(LANES - n, np.float32))
    plain = (x + y, x - y, x * y, x / y, abs(x), np.maximum(x, y), z, np.full(LANES, a[0]))
    assert np.array_equal(out[: 8 * LANES], np.concatenate(plain))
    once = [float(p) * float(q) + float(r) for p, q, r in zip(x, y, z, strict=True)]
    assert np.array_equal(out[8 * LANES : -1], np.array(once).astype(np.float32))
    assert out[-1] == 7


def test_a_sum_is_made_by_halves():
    rows = np.random.default_rng(1).normal(size=(4, LANES)).astype(np.float32) * np.float32(1e3)
    found = totals(*rows)
    for row, total in zip(rows, found, strict=True):
        while len(row) > 1:
            row = row[: len(row) // 2] + row[len(row) // 2 :]
        assert total == row[0]
    assert tuple(vectors._totals_by_numpy(*rows)) == tuple(found)


GRADIENTS = """
import numpy as np
from numba import njit

from ltr.metrics.conventions import Conventions
from ltr.metrics.gains import clicked, label_worth
from ltr.nets.network import _dots
from ltr.objectives.dcg_pairs import LANES, _four

@njit
def four(arrays):
    _four(np.uint64(4), np.uint64(70), np.uint64(16), arrays[0], arrays[1], arrays[2], arrays[3], np.float32(0.01), False, arrays[4], arrays[5])

arrays = np.random.default_rng(5).random((6, 5 * LANES)).astype(np.float32)
four(arrays)
features, inner = np.random.default_rng(6).normal(size=(2, 30, 37)).astype(np.float32)
units = np.empty((30, 30))
_dots(features, inner, np.zeros(30), units)
print(arrays.tobytes().hex(), units.tobytes().hex())
clicks = np.random.default_rng(7).random(1000)
print(clicked(clicks, Conventions()).tobytes().hex(), label_worth(100 * clicks, Conventions()).tobytes().hex())
"""
LEARNED = """
import numpy as np

import ltr

rng = np.random.default_rng(5)
sizes = rng.integers(1, 60, 40)
offsets = np.append(0, np.cumsum(sizes))
features = rng.normal(size=(offsets[-1], 37)).astype(np.float32)
labels = np.clip(np.floor(features[:, 0] + rng.normal(size=len(features))), 0, 4)
queries = ltr.Queries(features, labels, offsets)
objectives = ["ndcg", "map", "mrr", "err"]
rankers = [ltr.LambdaMART(n_trees=5, min_docs_in_leaf=5, objective=objective) for objective in objectives]
soft = ltr.Queries(features, labels * 0.9, offsets)
print(ltr.LambdaMART(n_trees=5, min_docs_in_leaf=5, objective="err").fit(soft).digest)
others = [ltr.LambdaMART(n_trees=5, min_docs_in_leaf=5, loss="two_class"), ltr.RankBoost(rounds=10), ltr.AdaRank(rounds=5)]
for ranker in (*rankers, *others, *(ltr.LambdaRank(epochs=2, hidden=hidden, update=update) for hidden in (0, 3) for update in ("query", "full"))):
    print(ranker.fit(queries).digest)
"""


@pytest.mark.parametrize("source", [GRADIENTS, pytest.param(LEARNED, marks=pytest.mark.long)])
def test_another_processor_computes_the_same_bits(source, tmp_path):
    """Compiled for narrower vectors here, as that processor would: were sums made in the order that suits a processor, they would differ."""

    def found(**environment):
        done = subprocess.run([sys.executable, "-c", source], env={**os.environ, **environment}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    other = {
        "NUMBA_CPU_NAME": OTHER,
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "NPY_DISABLE_CPU_FEATURES": NARROW,
    }
    assert found() == found(**other)
