"""How the core is compiled: the types of arrays and kernels, signatures shared by pluggable kernels, and when they are compiled.

A measure or a construction is a plain ``@njit(cache=True)`` function of one fixed signature. Drivers receive it as a
first-class function and call it once per query or rank, never once per pair, which is as fast as code specialised for it
and, unlike passing a dispatcher or a closure, is found in numba's cache by the next process. `ready` compiles such a
function when it is first needed.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaExperimentalFeatureWarning
from numpy.typing import NDArray

warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)

Floats = NDArray[np.float64]
"""Scores, labels, gains, weights, measures."""
Floats32 = NDArray[np.float32]
"""Features, thresholds, and inner loops where this precision is enough."""
Ints = NDArray[np.int64]
"""Offsets, positions, counts, packed sums."""
Ints32 = NDArray[np.int32]
"""Numbers of rows, nodes and leaves."""
Bools = NDArray[np.bool_]
"""Masks."""
Bytes = NDArray[np.uint8]
"""Text, and the bins of features."""
Words = NDArray[np.uint64]
"""Keys, digests, and sets of up to 64 leaves."""
Words32 = NDArray[np.uint32]
"""Sets of up to 32 leaves."""
Array = NDArray[Any]
"""An array whose numbers may be of any type."""
Kernel = Callable[..., Any]
"""A compiled function, or one that `ready` compiles; its signature says what it takes."""
NumbaType = Any
"""A type or signature of numba; its package is not annotated."""
Llvm = Any
"""A builder, a value or a type of LLVM, as numba hands it on; not annotated either."""

F8, I8, I1 = types.float64, types.int64, types.boolean
"""Scalars in signatures."""
F4_1D, F8_1D, I4_1D, I8_1D, I1_1D = (types.Array(kind, 1, "C") for kind in (types.float32, F8, types.int32, I8, I1))
"""Contiguous arrays of one dimension in signatures."""
F4_2D, F8_2D, I8_2D = (types.Array(kind, 2, "C") for kind in (types.float32, F8, I8))
"""Contiguous arrays of two dimensions in signatures."""
I8_3D, U1_3D, U8_3D = (types.Array(kind, 3, "C") for kind in (I8, types.uint8, types.uint64))
"""Contiguous arrays of three dimensions in signatures."""


def read_only(array: NumbaType) -> NumbaType:
    """The type of such an array that is only read: of a memory-mapped file for instance. One that can be written to is taken too."""
    return array.copy(readonly=True)


inner = partial(numba.njit, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""``njit`` for functions that only compiled code calls, and not by address: their entries for Python and for C take longer to compile than
they do. Called from Python they fail."""

_COMPILED: dict[tuple[Kernel, NumbaType], Kernel] = {}


def ready(function: Kernel, signature: NumbaType) -> Kernel:
    """`function` compiled for `signature` and for nothing else; with the JIT off, `function` as it is.

    Each pair has a dispatcher of its own that never compiles again, so threads may request and call kernels at any time.
    """
    if numba.config.DISABLE_JIT:
        return function
    if found := _COMPILED.get((function, signature)):
        return found
    with global_compiler_lock:
        if (function, signature) not in _COMPILED:
            dispatcher: Any = function  # what `njit` made of it, a class of numba's
            given = dispatcher.targetoptions
            options = {name: given[name] for name in ("parallel", "fastmath", "error_model") if name in given}
            _COMPILED[function, signature] = numba.njit(signature, cache=True, **options)(dispatcher.py_func)
        return _COMPILED[function, signature]
