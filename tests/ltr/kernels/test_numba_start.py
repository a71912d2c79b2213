"""numba in a process that has imported the core: what kernels from the cache do not need is left until something is compiled, and works then."""

import os
import subprocess
import sys

import pytest

from tests.conftest import JIT

BLAS = """
import sys
import numba
import numpy as np
import ltr

ltr.Queries(np.ones((2, 1), np.float32), np.ones(2), np.array([0, 2]))
print("scipy.linalg" in sys.modules)

@numba.njit
def solved(a, b):
    return np.linalg.solve(a, np.dot(a, b))

a, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, -2.0])
print(np.allclose(solved(a, b), b), "scipy.linalg" in sys.modules)
"""
FROM_CACHE = """
import sys
import numba
import numpy as np
from llvmlite import binding
from numba.core.runtime import nrtdynmod, rtsys

compiled, parsed, freed = [], [], []
create, parse, close = nrtdynmod.create_nrt_module, binding.parse_bitcode, binding.ModuleRef._dispose
nrtdynmod.create_nrt_module = lambda context: compiled.append(1) or create(context)
binding.parse_bitcode = lambda code: parsed.append(1) or parse(code)
binding.ModuleRef._dispose = lambda self: freed.append(1) or close(self)

import ltr
from ltr.data.digests import row_digests
from ltr.data.digests import _digest_four

rows = np.arange(6, dtype=np.float32).reshape(3, 2)
digests = row_digests(rows)
print(len(compiled), len(parsed) == len(freed) > 0)
if sys.argv[1:]:
    print(rtsys.library is rtsys.library, len(compiled))
    sys.exit()

@numba.njit
def in_fours(rows):
    digests = np.empty(len(rows), np.uint64)
    _digest_four(rows, digests)
    return digests

from ltr.data.digests import mix
print(len(compiled), (mix(in_fours(rows)) == digests).all(), rtsys.library is rtsys.library, len(compiled))
"""

LEARNED_LATER = """
import sys
import numba
import numpy as np
import ltr

queries = ltr.Queries(np.linspace(0, 1, 200, dtype=np.float32).reshape(100, 2), np.arange(100.0) % 3, np.arange(0, 101, 10))
model = ltr.LambdaMART(n_trees=3).fit(queries)
print(any(name in sys.modules for name in ("numba.np.npyimpl", "numba.np.arraymath", "numba.cpython.cmathimpl", "numba.cpython.hashing")))
if sys.argv[1:]:
    sys.exit()

@numba.njit
def counted(words, values):
    seen = {"": 0}
    for word in words:
        seen[word] = seen.get(word, 0) + 1
    return seen["a"], np.sum(values), complex(values[0], 1.0) ** 2

@numba.njit
def ranked(values):
    return np.argsort(values, kind="mergesort")

print(counted(("a", "b", "a"), np.array([3.0, 1.0, 2.0])) == (2, 6.0, 8 + 6j), ranked(np.array([3.0, 1.0, 2.0])).tolist() == [1, 2, 0])
print((ltr.LambdaMART(n_trees=3).fit(queries).predict(queries.features) == model.predict(queries.features)).all())
"""


def printed(script, *arguments):
    compiled = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], env=compiled, capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.long
def test_scipys_linear_algebra_is_imported_for_kernels_that_call_it():
    assert printed(BLAS) == ["False", "True", "True"]


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_what_numba_can_compile_is_learned_when_something_is_compiled():
    printed(LEARNED_LATER, "kernels only")
    assert printed(LEARNED_LATER) == ["False", "True", "True", "True"]


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels_from_the_cache_are_run_without_compiling_and_compiled_on():
    printed("from ltr.data.digests import row_digests; import numpy; row_digests(numpy.ones((3, 2), numpy.float32))")
    assert printed(FROM_CACHE) == ["0", "True", "0", "True", "True", "1"]
    assert printed(FROM_CACHE, "ask for it") == ["0", "True", "True", "1"], "nobody compiles anything, and it is there"
