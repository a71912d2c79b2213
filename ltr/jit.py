"""How the core is compiled: signatures shared by pluggable kernels, and when they are compiled.

A measure or a construction is a plain ``@njit(cache=True)`` function of one fixed signature. Drivers receive it as a
first-class function and call it once per query or rank, never once per pair, which is as fast as code specialised for it
and, unlike passing a dispatcher or a closure, is found in numba's cache by the next process. `ready` compiles such a
function for exactly one signature the first time somebody asks for it.
"""

import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba import types
from numba.core.errors import NumbaExperimentalFeatureWarning

warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)

F8 = types.float64
I8 = types.int64
F4_2D = types.Array(types.float32, 2, "C", readonly=True)
F8_1D = types.Array(F8, 1, "C")
F8_2D = types.Array(F8, 2, "C")
I8_1D = types.Array(I8, 1, "C")

_COMPILING = threading.Lock()

_Function = TypeVar("_Function", bound=Callable[..., Any])


def ready(function: _Function, *signatures: Any) -> _Function:
    """`function`, compiled for `signatures` and for nothing else; with the JIT off, `function` as it is."""
    if numba.config.DISABLE_JIT:
        return function
    dispatcher: Any = function
    with _COMPILING:
        missing = [signature.args for signature in signatures if tuple(signature.args) not in dispatcher.overloads]
        if missing:
            dispatcher.disable_compile(False)
            for arguments in missing:
                dispatcher.compile(arguments)
            dispatcher.disable_compile()
    return function
