"""A hint to the processor that a place in memory will soon be read: no effect on any number."""

from typing import SupportsIndex

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ltr.kernels.kernel import Kernel, Llvm, NumbaType

ir = cgutils.ir
"""LLVM's intermediate representation (llvmlite), as numba imports it."""


def _ignored(array: NDArray[np.generic], index: SupportsIndex) -> None:
    """Stands in for `prefetch` where nothing is compiled."""


@intrinsic
def _prefetch(typing: NumbaType, array: NumbaType, index: NumbaType) -> tuple[NumbaType, Kernel]:
    def generate(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(struct.data, [arguments[1]]), ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        hint_type = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], hint_type)
        builder.call(hint, [pointer, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch = _ignored if numba.config.DISABLE_JIT else _prefetch
"""``prefetch(array, index)``: loads the cache line that holds the element at a flat index of a contiguous array."""
