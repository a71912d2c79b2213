"""Sixteen float32 in a vector of the processor, as one number of compiled code: sums of them are made in one order, whatever the processor.

Of a plain loop LLVM makes vectors itself, as wide as the processor has them; where a sum is among what they compute it has to be told that
any order will do (`fastmath`), and then the last digits, and a hundred trees later the model, depend on the processor. These vectors are
sixteen wide everywhere. LLVM splits them where the processor's are narrower (one of AVX-512, two of AVX2, four of SSE), which changes no bit.

What other kernels contract (`fastmath={"contract"}`: exponentials, steps of nets) takes a processor with FMA, as all have since Haswell and Zen.

    a + b, a − b, a · b, a / b, abs(a)      lane by lane

Without the JIT a vector is an array of NumPy.
"""

import operator
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.core.typing.templates import ConcreteTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model

from ltr.kernels.kernel import Floats32, Kernel, Llvm, NumbaType

LANES = 16
"""Numbers in a vector: as many as the widest of today's processors hold."""
ir = cgutils.ir
"""LLVM's intermediate representation (llvmlite), as numba imports it."""
FLOATS = ir.VectorType(ir.FloatType(), LANES)
"""A vector of float32."""
_I1, _I32 = ir.IntType(1), ir.IntType(32)


def data_of(
    context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...], which: tuple[int, ...]
) -> list[Llvm]:
    """Pointers to the elements of those arguments that are arrays."""
    return [context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in which]


def pointer_to(builder: Llvm, data: Llvm, index: Llvm, kind: Llvm) -> Llvm:
    """A pointer to a vector of that kind, from an element on."""
    return builder.bitcast(builder.gep(data, [index]), kind.as_pointer())


def chosen(builder: Llvm, a: Llvm, b: Llvm, lanes: list[int]) -> Llvm:
    """A vector of the chosen lanes: 0–15 are those of a, 16–31 those of b."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, LANES), lanes))


def in_all_lanes(builder: Llvm, number: Llvm, kind: Llvm) -> Llvm:
    """A vector of that kind with one number in all lanes."""
    none = ir.Constant(kind, ir.Undefined)
    return chosen(builder, builder.insert_element(none, number, _I32(0)), none, [0] * LANES)


def function_of_lanes(builder: Llvm, name: str, kind: Llvm, *more: Llvm) -> Llvm:
    """LLVM's function of that name, applied to each lane; further arguments are of the types `more`."""
    suffix = "f32" if kind == FLOATS else f"i{kind.element.width}"
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind, *more]), f"llvm.{name}.v{LANES}{suffix}")


class _Vector(types.Type):
    def __init__(self) -> None:
        super().__init__(name="sixteen float32")


_VECTOR = _Vector()


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: NumbaType, kind: NumbaType) -> None:
        super().__init__(manager, kind, FLOATS)


for _operation, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    infer_global(_operation)(type(_instruction, (ConcreteTemplate,), {"cases": [signature(_VECTOR, _VECTOR, _VECTOR)]}))
    lower_builtin(_operation, _VECTOR, _VECTOR)(
        lambda context, builder, signature, arguments, name=_instruction: getattr(builder, name)(*arguments)
    )
infer_global(abs)(type("fabs", (ConcreteTemplate,), {"cases": [signature(_VECTOR, _VECTOR)]}))


@lower_builtin(abs, _VECTOR)
def _abs(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
    return builder.call(function_of_lanes(builder, "fabs", FLOATS), arguments)


def _everywhere_by_numpy(number: float) -> Floats32:
    return np.full(LANES, number, np.float32)


@intrinsic
def _everywhere(typing: NumbaType, number: NumbaType) -> tuple[NumbaType, Kernel]:
    def generate(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        return in_all_lanes(builder, arguments[0], FLOATS)

    return _VECTOR(types.float32), generate


def _load_by_numpy(array: Floats32, at: int) -> Floats32:
    return array[at : at + LANES].copy()


@intrinsic
def _load(typing: NumbaType, array: NumbaType, at: NumbaType) -> tuple[NumbaType, Kernel]:
    def generate(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        (data,) = data_of(context, builder, signature, arguments, (0,))
        return builder.load(pointer_to(builder, data, arguments[1], FLOATS), align=4)

    return _VECTOR(array, at), generate


def _load_some_by_numpy(array: Floats32, at: int, n: int) -> Floats32:
    found = np.zeros(LANES, np.float32)
    found[:n] = array[at : at + n]
    return found


@intrinsic
def _load_some(typing: NumbaType, array: NumbaType, at: NumbaType, n: NumbaType) -> tuple[NumbaType, Kernel]:
    def generate(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        (data,) = data_of(context, builder, signature, arguments, (0,))
        wide = ir.VectorType(_I32, LANES)
        count = in_all_lanes(builder, builder.trunc(arguments[2], _I32), wide)
        taken = builder.icmp_signed("<", ir.Constant(wide, list(range(LANES))), count)
        kind = ir.FunctionType(FLOATS, [FLOATS.as_pointer(), _I32, ir.VectorType(_I1, LANES), FLOATS])
        load = cgutils.get_or_insert_function(builder.module, kind, f"llvm.masked.load.v{LANES}f32.p0")
        place = pointer_to(builder, data, arguments[1], FLOATS)
        return builder.call(load, [place, _I32(4), taken, ir.Constant(FLOATS, [0.0] * LANES)])

    return _VECTOR(array, at, types.int64), generate


def _store_by_numpy(array: Floats32, at: int, vector: Floats32) -> None:
    array[at : at + LANES] = vector


@intrinsic
def _store(typing: NumbaType, array: NumbaType, at: NumbaType, vector: NumbaType) -> tuple[NumbaType, Kernel]:
    def generate(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        (data,) = data_of(context, builder, signature, arguments, (0,))
        builder.store(arguments[2], pointer_to(builder, data, arguments[1], FLOATS), align=4)
        return context.get_dummy_value()

    return types.void(array, at, _VECTOR), generate


@intrinsic
def _larger(typing: NumbaType, a: NumbaType, b: NumbaType) -> tuple[NumbaType, Kernel]:
    def generate(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return _VECTOR(_VECTOR, _VECTOR), generate


def _fused_by_numpy(a: Floats32, b: Floats32, c: Floats32) -> Floats32:
    return (a.astype(np.float64) * b + c).astype(np.float32)


@intrinsic
def _fused(typing: NumbaType, a: NumbaType, b: NumbaType, c: NumbaType) -> tuple[NumbaType, Kernel]:
    def generate(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        return builder.call(function_of_lanes(builder, "fma", FLOATS, FLOATS, FLOATS), arguments)

    return _VECTOR(_VECTOR, _VECTOR, _VECTOR), generate


def _totals_by_numpy(a: Floats32, b: Floats32, c: Floats32, d: Floats32) -> tuple[np.float32, ...]:
    rows = np.stack((a, b, c, d))
    for half in (8, 4, 2, 1):
        rows = rows[:, :half] + rows[:, half:]
    return tuple(rows[:, 0])


@intrinsic
def _totals(typing: NumbaType, a: NumbaType, b: NumbaType, c: NumbaType, d: NumbaType) -> tuple[NumbaType, Kernel]:
    def generate(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        def halves(a: Llvm, b: Llvm, half: int) -> Llvm:
            """One vector of two: the first and the second half of every row of 2 · `half` lanes, added."""
            first = [k for k in range(2 * LANES) if k % (2 * half) < half]
            return builder.fadd(chosen(builder, a, b, first), chosen(builder, a, b, [k + half for k in first]))

        a, b, c, d = arguments
        four = halves(halves(a, b, 8), halves(c, d, 8), 4)
        two = halves(four, four, 2)
        one = halves(two, two, 1)
        return context.make_tuple(builder, signature.return_type, [builder.extract_element(one, _I32(k)) for k in range(4)])

    return types.UniTuple(types.float32, 4)(_VECTOR, _VECTOR, _VECTOR, _VECTOR), generate


_PLAIN = numba.config.DISABLE_JIT
everywhere: Any = _everywhere_by_numpy if _PLAIN else _everywhere
"""``everywhere(number)``: a vector of one float32 in all lanes."""
load: Any = _load_by_numpy if _PLAIN else _load
"""``load(array, at)``: the sixteen from an element of a contiguous float32 array on."""
load_some: Any = _load_some_by_numpy if _PLAIN else _load_some
"""``load_some(array, at, n)``: the first n of them, and zeros; the others are not touched and may lie beyond the array's end."""
store: Any = _store_by_numpy if _PLAIN else _store
"""``store(array, at, vector)``: the other way."""
larger: Any = np.maximum if _PLAIN else _larger
"""``larger(a, b)``: the larger one of each lane."""
fused: Any = _fused_by_numpy if _PLAIN else _fused
"""``fused(a, b, c)``: a · b + c, rounded once; by NumPy twice, in the rarest of cases."""
totals: Any = _totals_by_numpy if _PLAIN else _totals
"""``totals(a, b, c, d)``: the sums of four vectors, float32: of each halves are added, then quarters, then eighths, and the last two."""
