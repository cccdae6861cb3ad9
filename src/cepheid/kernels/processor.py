"""What processors can do and NumPy has no word for.

Ask for memory ahead, find a bit, write several rows in one go.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["lowest_bit", "prefetch", "write_eight"]


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Start loading the cache line of array[index]; the index need not be inside.

    Of an array in one piece with more dimensions, `index` counts all elements.
    """
    signature = types.void(array, index)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        data = context.make_array(kind)(context, builder, arguments[0]).data
        where = builder.gep(data, [arguments[1]])
        byte = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        called = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, word, word, word]),
            "llvm.prefetch.p0",
        )
        read, keep, data_cache = word(0), word(3), word(1)
        builder.call(called, [builder.bitcast(where, byte), read, keep, data_cache])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """The place of the lowest bit set in a word, which is not 0."""
    signature = types.int64(types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        never_zero = ir.Constant(ir.IntType(1), 1)
        return builder.cttz(arguments[0], never_zero)

    return signature, generate


@intrinsic
def write_eight(
    typing_context: Any, out: Any, row: Any, listed: Any, begin: Any, later: Any
) -> Any:
    """out[row + j] = (listed[begin + j], *later) for j from 0 to 7; all of it must be inside.

    Both arrays are in one piece, of 64-bit integers; `later` is a tuple of them. The rows are put
    together in registers and stored side by side: a loop over them would store numbers one by one.
    """
    signature = types.void(out, types.uint64, listed, types.uint64, later)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, lane = ir.IntType(64), ir.IntType(32)
        eight = ir.VectorType(place, 8)

        def at(array: int, index: Any) -> Any:
            data = context.make_array(signature.args[array])(context, builder, arguments[array])
            return builder.bitcast(builder.gep(data.data, [index]), eight.as_pointer())

        first = builder.load(at(2, arguments[3]), align=8)
        rest = ir.Constant(eight, ir.Undefined)
        width = 1 + signature.args[4].count
        for number in range(width - 1):
            value = builder.extract_value(arguments[4], number)
            rest = builder.insert_element(rest, value, lane(number))
        # Lanes 0 to 7 of a shuffle are of the first events, those from 8 on of the rest.
        lanes = [7 + j % width if j % width else j // width for j in range(8 * width)]
        start = builder.mul(arguments[1], place(width))
        for part in range(0, 8 * width, 8):
            chosen = ir.Constant(ir.VectorType(lane, 8), lanes[part : part + 8])
            numbers = builder.shuffle_vector(first, rest, chosen)
            builder.store(numbers, at(0, builder.add(start, place(part))), align=8)
        return context.get_dummy_value()

    return signature, generate
