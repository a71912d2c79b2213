"""How the core is compiled: the types of arrays and kernels, signatures shared by pluggable kernels, and when they are compiled.

A measure or a construction is a plain ``@njit(cache=True)`` function of one fixed signature. Drivers receive it as a
first-class function and call it once per query or rank, never once per pair, which is as fast as code specialised for it
and, unlike passing a dispatcher or a closure, is found in numba's cache by the next process. `ready` compiles such a
function the first time somebody asks for it.
"""

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaExperimentalFeatureWarning
from numpy.typing import NDArray

warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Words32 = NDArray[np.uint32]
Array = NDArray[Any]
"""An array of whatever numbers."""
Kernel = Callable[..., Any]
"""A compiled function, or one that `ready` compiles; its signature says what it takes."""
NumbaType = Any
"""A type or signature of numba; its package is not annotated."""
Llvm = Any
"""A builder, a value or a type of LLVM, as numba hands it on; not annotated either."""

F8 = types.float64
I8 = types.int64
F4_1D = types.Array(types.float32, 1, "C")
F4_2D = types.Array(types.float32, 2, "C")
F8_1D = types.Array(F8, 1, "C")
F8_2D = types.Array(F8, 2, "C")
I4_1D = types.Array(types.int32, 1, "C")
I8_1D = types.Array(I8, 1, "C")
I8_2D = types.Array(I8, 2, "C")

_COMPILED: dict[tuple[Kernel, NumbaType], Kernel] = {}
_COMPILING = threading.Lock()


def ready(function: Kernel, signature: NumbaType) -> Kernel:
    """`function` compiled for `signature` and for nothing else; with the JIT off, `function` as it is.

    Each pair has a dispatcher of its own that never compiles again, so threads may ask for and call kernels at any time.
    """
    if numba.config.DISABLE_JIT:
        return function
    with _COMPILING:
        if (function, signature) not in _COMPILED:
            dispatcher: Any = function  # what `njit` made of it, a class of numba's
            given = dispatcher.targetoptions
            options = {name: given[name] for name in ("parallel", "fastmath", "error_model") if name in given}
            _COMPILED[function, signature] = numba.njit(signature, cache=True, **options)(dispatcher.py_func)
        return _COMPILED[function, signature]
