"""Sixteen rows in a vector of the processor, for prediction: loops over arrays would send every step through memory.

Written in LLVM's own vectors, which it splits to fit the processor (one of AVX-512, two of AVX2, four of SSE). Without the JIT
the NumPy functions below do the same; they are also the naive twins in the tests.
"""

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from ltr.kernels.kernel import Floats32, Ints, Kernel, Llvm, NumbaType, Words, Words32
from ltr.kernels.vectors import FLOATS, LANES, chosen, data_of, function_of_lanes, in_all_lanes, ir, pointer_to

ROWS = 64
"""Rows that go through a tree together, `LANES` of them in a vector."""
_I1, _I64 = ir.IntType(1), ir.IntType(64)


def _turn_by_numpy(features: Floats32, at: int, width: int, columns: Floats32, to: int) -> bool:
    infinite = False
    for lane in range(LANES):
        column = features[at + lane :][: (LANES - 1) * width + 1 : width]
        columns[to + lane * ROWS :][:LANES] = column
        infinite |= bool(np.isinf(column).any())
    return infinite


@intrinsic
def _turn(
    typing: NumbaType, features: NumbaType, at: NumbaType, width: NumbaType, columns: NumbaType, to: NumbaType
) -> tuple[NumbaType, Kernel]:
    def generate(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        source, target = data_of(context, builder, signature, arguments, (0, 3))
        _, at, width, _, to = arguments
        starts = [builder.add(at, builder.mul(width, _I64(row))) for row in range(LANES)]
        rows = [builder.load(pointer_to(builder, source, start, FLOATS), align=4) for start in starts]
        infinite, infinity = ir.Constant(ir.VectorType(_I1, LANES), [0] * LANES), ir.Constant(FLOATS, [np.inf] * LANES)
        absolute = function_of_lanes(builder, "fabs", FLOATS)
        for row in rows:
            infinite = builder.or_(infinite, builder.fcmp_ordered("==", builder.call(absolute, [row]), infinity))
        for size in (8, 4, 2, 1):
            for k in range(LANES):
                if not k & size:
                    a, b = rows[k], rows[k + size]
                    rows[k] = chosen(builder, a, b, [LANES + j - size if j & size else j for j in range(LANES)])
                    rows[k + size] = chosen(builder, a, b, [LANES + j if j & size else j + size for j in range(LANES)])
        for lane, column in enumerate(rows):
            place = builder.add(to, _I64(lane * ROWS))
            builder.store(column, pointer_to(builder, target, place, FLOATS), align=4)
        return builder.icmp_unsigned("!=", builder.bitcast(infinite, ir.IntType(LANES)), ir.IntType(LANES)(0))

    return types.boolean(features, types.int64, types.int64, columns, types.int64), generate


turn = _turn_by_numpy if numba.config.DISABLE_JIT else _turn
"""``turn(features, at, width, columns, to)``: transposes 16 rows of 16 numbers; returns whether any is infinite.

`features` and `columns` are flat float32; row k starts at ``at + k · width``, column k at ``to + k · ROWS``. Blocks change places
(Eklundh 1972): of eight rows and columns, of four, of two, of one:

    a b      a c
    c d  →   b d
"""


def _walk_by_numpy(
    columns: Floats32,
    place: Ints,
    threshold: Floats32,
    kept: Words | Words32,
    begin: int,
    middle: int,
    end: int,
    leaf: Words | Words32,
) -> None:
    alive = np.full(ROWS, ~kept.dtype.type(0))
    for node in range(begin, end):
        x = columns[place[node] :][:ROWS]
        right = ~(x <= threshold[node]) if node < middle else x > threshold[node]
        alive[right] &= kept[node]
    leaf[:] = np.bitwise_count((alive & -alive) - alive.dtype.type(1))


@intrinsic
def _walk(
    typing: NumbaType,
    columns: NumbaType,
    place: NumbaType,
    threshold: NumbaType,
    kept: NumbaType,
    begin: NumbaType,
    middle: NumbaType,
    end: NumbaType,
    leaf: NumbaType,
) -> tuple[NumbaType, Kernel]:
    def generate(context: NumbaType, builder: Llvm, signature: NumbaType, arguments: tuple[Llvm, ...]) -> Llvm:
        x, places, edges, masks, out = data_of(context, builder, signature, arguments, (0, 1, 2, 3, 7))
        _, _, _, _, begin, middle, end, _ = arguments
        word = context.get_data_type(signature.args[3].dtype)
        words = ir.VectorType(word, LANES)
        alive = [cgutils.alloca_once_value(builder, ir.Constant(words, [-1] * LANES)) for _ in range(ROWS // LANES)]
        for first, last, larger in ((begin, middle, builder.fcmp_unordered), (middle, end, builder.fcmp_ordered)):
            with cgutils.for_range_slice(builder, first, last, _I64(1)) as (node, _):
                edge = in_all_lanes(builder, builder.load(builder.gep(edges, [node])), FLOATS)
                mask = in_all_lanes(builder, builder.load(builder.gep(masks, [node])), words)
                column = builder.load(builder.gep(places, [node]))
                for k, bits in enumerate(alive):
                    at = builder.add(column, _I64(k * LANES))
                    right = larger(">", builder.load(pointer_to(builder, x, at, FLOATS), align=4), edge)
                    before = builder.load(bits)
                    builder.store(builder.select(right, builder.and_(before, mask), before), bits)
        zeros = function_of_lanes(builder, "cttz", words, _I1)
        for k, bits in enumerate(alive):
            lowest = builder.call(zeros, [builder.load(bits), _I1(1)])
            builder.store(lowest, pointer_to(builder, out, _I64(k * LANES), words), align=word.width // 8)
        return context.get_dummy_value()

    return types.void(columns, place, threshold, kept, types.int64, types.int64, types.int64, leaf), generate


walk = _walk_by_numpy if numba.config.DISABLE_JIT else _walk
"""``walk(columns, place, threshold, kept, begin, middle, end, leaf)``: which leaf of a tree each of ROWS rows falls into.

The nodes are `begin` to `end`. Node k reads the numbers from ``columns[place[k]]`` on; a row that goes right there, where
``x > threshold[k]``, keeps only the leaves whose bits are set in ``kept[k]`` (QuickScorer, Lucchese 2015), and its leaf is the lowest
bit left at the end. Missing values go right at nodes before `middle` and left from there on. Where there are enough registers (AVX-512;
AVX2 for 32 bits), they hold the bits of all rows throughout:

    rows      0 … 15   16 … 31   32 … 47   48 … 63
    alive     1111…    1111…     1111…     1111…       a vector each
    node 0    x > t ? alive & kept : alive
    node 1    x > t ? alive & kept : alive
    leaf      place of the lowest bit
"""
