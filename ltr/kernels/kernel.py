"""How the core is compiled: the types of arrays and kernels, signatures shared by pluggable kernels, and when they are compiled.

A measure or a construction is a plain ``@njit(cache=True)`` function of one fixed signature. Drivers receive its address
and call it once per query or rank, never once per pair, which is as fast as code specialised for it and, unlike passing a
dispatcher or a closure, is found in numba's cache by the next process. Addresses are numbers: records hold them beside
arrays, threads take them, and handing one over costs nothing, where numba spends 30 µs on a function. `ready` compiles such
a function when it is first needed, `address` says where it is, and `kernel_at` makes what compiled code can call of that.
"""

import gc
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.extending import intrinsic
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
Address = Any
"""Where a compiled function of a known signature begins, ``int64``; with the JIT off, the function itself."""
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


def record_type(record: type, *fields: NumbaType) -> NumbaType:
    """The type of a `NamedTuple` with fields of these types."""
    return types.BaseTuple.from_types(fields, record)


inner = partial(numba.njit, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""``njit`` for functions that only compiled code calls, and not by address: their entries for Python and for C take longer to compile than
they do. Called from Python they fail."""

_COMPILED: dict[tuple[Kernel, NumbaType], Kernel] = {}


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """What compiling makes lives until it ends; looking through it for rubbish again and again is a tenth of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def ready(function: Kernel, signature: NumbaType) -> Kernel:
    """`function` compiled for `signature` and for nothing else; with the JIT off, `function` as it is.

    Each pair has a dispatcher of its own that never compiles again, so threads may request and call kernels at any time.
    """
    if numba.config.DISABLE_JIT:
        return function
    if found := _COMPILED.get((function, signature)):
        return found
    with global_compiler_lock, _nothing_collected():
        if (function, signature) not in _COMPILED:
            dispatcher: Any = function  # what `njit` made of it, a class of numba's
            given = dispatcher.targetoptions
            options = {name: given[name] for name in ("parallel", "fastmath", "error_model") if name in given}
            _COMPILED[function, signature] = numba.njit(signature, cache=True, **options)(dispatcher.py_func)
        return _COMPILED[function, signature]


_ADDRESSES: dict[tuple[Kernel, NumbaType], Address] = {}


def address(function: Kernel, signature: NumbaType) -> Address:
    """Where `function` begins, compiled for `signature`; valid as long as the process lives."""
    if numba.config.DISABLE_JIT:
        return function
    if found := _ADDRESSES.get((function, signature)):
        return found
    dispatcher: Any = ready(function, signature)
    compiled = dispatcher.overloads[signature.args]
    found = _ADDRESSES[function, signature] = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return found


def addresses(functions: Iterable[Kernel], signature: NumbaType) -> Array:
    """Of several functions of one signature, ``int64 [functions]``; with the JIT off, the functions themselves."""
    found = [address(function, signature) for function in functions]
    return np.array(found, object if numba.config.DISABLE_JIT else np.int64)


def kernel_at(signature: NumbaType) -> Kernel:
    """A function for compiled code: of the `address` of a kernel of this signature it makes one that can be called.

    The signature is taken on trust: an address of another kernel would be called all the same.
    """
    if numba.config.DISABLE_JIT:
        return lambda given: given
    made: Kernel = intrinsic(lambda context, given: _callable(signature, given))
    return made


def kernel_for(signature_of: Callable[[NumbaType], NumbaType]) -> Kernel:
    """`kernel_at` for kernels whose signature depends on the type of a record that they are given: it takes the address and the record."""
    if numba.config.DISABLE_JIT:
        return lambda given, record: given
    made: Kernel = intrinsic(lambda context, given, record: _callable(signature_of(record), given, record))
    return made


def _callable(signature: NumbaType, *given: NumbaType) -> tuple[NumbaType, Kernel]:
    """What an intrinsic returns that makes a function of its first argument, an address."""
    kind = types.FunctionType(signature)

    def code(context: Llvm, builder: Llvm, _: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        function = cgutils.create_struct_proxy(kind)(context, builder)
        function.jit_addr = builder.inttoptr(arguments[0], cgutils.voidptr_t)
        return function._getvalue()

    return kind(*given), code
