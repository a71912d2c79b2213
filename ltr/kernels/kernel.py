"""How the core is compiled: signatures shared by pluggable kernels, and when they are compiled.

A measure or a construction is a plain ``@njit(cache=True)`` function of one fixed signature. Drivers receive it as a
first-class function and call it once per query or rank, never once per pair, which is as fast as code specialised for it
and, unlike passing a dispatcher or a closure, is found in numba's cache by the next process. `ready` compiles such a
function the first time somebody asks for it.
"""

import threading
import warnings
from typing import Any

import numba
from numba import types
from numba.core.errors import NumbaExperimentalFeatureWarning

warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)

F8 = types.float64
I8 = types.int64
F4_1D = types.Array(types.float32, 1, "C")
F4_2D = types.Array(types.float32, 2, "C")
F8_1D = types.Array(F8, 1, "C")
F8_2D = types.Array(F8, 2, "C")
I4_1D = types.Array(types.int32, 1, "C")
I8_1D = types.Array(I8, 1, "C")
I8_2D = types.Array(I8, 2, "C")

_COMPILED: dict[tuple[Any, Any], Any] = {}
_COMPILING = threading.Lock()


def ready(function: Any, signature: Any) -> Any:
    """`function` compiled for `signature` and for nothing else; with the JIT off, `function` as it is.

    Each pair has a dispatcher of its own that never compiles again, so threads may ask for and call kernels at any time.
    """
    if numba.config.DISABLE_JIT:
        return function
    with _COMPILING:
        if (function, signature) not in _COMPILED:
            options = {
                name: function.targetoptions[name]
                for name in ("parallel", "fastmath", "error_model")
                if name in function.targetoptions
            }
            _COMPILED[function, signature] = numba.njit(signature, cache=True, **options)(function.py_func)
        return _COMPILED[function, signature]
