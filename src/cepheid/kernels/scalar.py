"""Arithmetic and comparison of single values inside kernels, where undefined travels in band.

Called by the kernels that `planner.kernel_expression` writes; the meaning is that of
`algebra.expression`, and `tests/laws/test_expression_agreement.py` compares both. Every function
is forced inline and comes down to its operation and one or two compares. A caller must not ask
numba for `fastmath`, which may assume that no NaN exists.

The reserved int64 values are the two smallest, so `x < MIN_INT` means "undefined or absent".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.extending import intrinsic

from cepheid.kernels.machine_code import inlined_late
from cepheid.model.undefined import ABSENT_FLOAT, ABSENT_INT, MIN_INT, NULL_FLOAT, NULL_INT

__all__ = [
    "ABSENT_FLOAT",
    "ABSENT_INT",
    "NULL_INT",
    "abs_int",
    "add_int",
    "at_most_int",
    "divide",
    "equal_int",
    "greatest_float",
    "greatest_int",
    "least_float",
    "least_int",
    "less_int",
    "multiply_int",
    "negative_int",
    "square_root",
    "subtract_int",
    "to_float",
    "truth",
    "unequal_float",
    "unequal_int",
]
"""The names that generated kernel source may use."""


def _overflow_checked(instruction: str) -> Callable[[int, int], tuple[int, bool]]:
    """An LLVM `s*.with.overflow` instruction as a function: (result, whether it overflowed).

    The processor sets its overflow flag anyway; asking for it costs a jump that is never taken.
    """

    @intrinsic
    def checked(typing_context: Any, left: Any, right: Any) -> Any:
        result = types.Tuple((types.int64, types.boolean))  # type: ignore[no-untyped-call]

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pair = getattr(builder, instruction)(*arguments)
            parts = (builder.extract_value(pair, 0), builder.extract_value(pair, 1))
            return context.make_tuple(builder, result, parts)

        return result(types.int64, types.int64), generate

    # For the caller it has the two operands only: numba gives the typing context.
    return cast(Callable[[int, int], tuple[int, bool]], checked)


_add_overflow = _overflow_checked("sadd_with_overflow")
_subtract_overflow = _overflow_checked("ssub_with_overflow")
_multiply_overflow = _overflow_checked("smul_with_overflow")


@inlined_late
def add_int(left: int, right: int) -> int:
    """`left + right`, undefined when an operand is, on overflow, or in the reserved values."""
    result, overflowed = _add_overflow(left, right)
    if overflowed or result < MIN_INT or left < MIN_INT or right < MIN_INT:
        return NULL_INT
    return result


@inlined_late
def subtract_int(left: int, right: int) -> int:
    """`left - right`, undefined as in `add_int`."""
    result, overflowed = _subtract_overflow(left, right)
    if overflowed or result < MIN_INT or left < MIN_INT or right < MIN_INT:
        return NULL_INT
    return result


@inlined_late
def multiply_int(left: int, right: int) -> int:
    """`left * right`, undefined as in `add_int`."""
    result, overflowed = _multiply_overflow(left, right)
    if overflowed or result < MIN_INT or left < MIN_INT or right < MIN_INT:
        return NULL_INT
    return result


@inlined_late
def negative_int(operand: int) -> int:
    """`-operand`; the largest int64 has no negative that is a value."""
    if operand < MIN_INT or -operand < MIN_INT:
        return NULL_INT
    return -operand


@inlined_late
def divide(left: float, right: float) -> float:
    """`left / right`, undefined by zero; a NaN operand gives NaN by itself."""
    if right == 0.0:
        return NULL_FLOAT
    return left / right


@inlined_late
def to_float(operand: int) -> float:
    """An int64 as float64, undefined staying undefined."""
    if operand < MIN_INT:
        return NULL_FLOAT
    return float(operand)


@inlined_late
def truth(condition: bool) -> int:
    """A truth value as the BOOL it travels as."""
    return 1 if condition else 0


@inlined_late
def abs_int(operand: int) -> int:
    """The magnitude of an int64; every value has one."""
    if operand < MIN_INT:
        return NULL_INT
    return -operand if operand < 0 else operand


@inlined_late
def square_root(operand: float) -> float:
    """The square root, undefined below zero."""
    if operand < 0.0:
        return NULL_FLOAT
    return math.sqrt(operand)


@inlined_late
def least_int(left: int, right: int) -> int:
    """The smaller; undefined sorts below every value, so it wins by itself."""
    smaller = right if right < left else left
    return NULL_INT if smaller < MIN_INT else smaller


@inlined_late
def greatest_int(left: int, right: int) -> int:
    """The larger, undefined when an operand is."""
    if left < MIN_INT or right < MIN_INT:
        return NULL_INT
    return right if right > left else left


@inlined_late
def least_float(left: float, right: float) -> float:
    """The smaller (the first of equals), undefined when an operand is."""
    if left != left or right != right:
        return NULL_FLOAT
    return right if right < left else left


@inlined_late
def greatest_float(left: float, right: float) -> float:
    """The larger (the first of equals), undefined when an operand is."""
    if left != left or right != right:
        return NULL_FLOAT
    return right if right > left else left


@inlined_late
def equal_int(left: int, right: int) -> bool:
    """Equal and defined."""
    return left == right and left >= MIN_INT


@inlined_late
def unequal_int(left: int, right: int) -> bool:
    """Different, both defined."""
    return left != right and left >= MIN_INT and right >= MIN_INT


@inlined_late
def less_int(left: int, right: int) -> bool:
    """`left < right`, both defined: what is above a value is a value."""
    return left < right and left >= MIN_INT


@inlined_late
def at_most_int(left: int, right: int) -> bool:
    """`left <= right`, both defined."""
    return left <= right and left >= MIN_INT


@inlined_late
def unequal_float(left: float, right: float) -> bool:
    """Different, both defined; IEEE's own `!=` is true of NaN, its other comparisons false."""
    return left < right or left > right
