"""numba in a process that has imported the core: without scipy's linear algebra until a kernel needs it, and with it then."""

import os
import subprocess
import sys

SCRIPT = """
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


def test_the_core_runs_without_it_and_kernels_of_users_with_it():
    compiled = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=compiled, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]
