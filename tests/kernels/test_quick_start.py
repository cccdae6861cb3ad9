"""What makes numba quicker must leave alone whatever else a process compiles with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic, overload

from cepheid.kernels.quick_start import compile_quickly

compile_quickly()


def test_functions_of_other_kinds_are_compiled_as_ever() -> None:
    @numba.njit
    def counted(until: int) -> Iterator[int]:
        at = 0
        while at < until:
            yield at
            at += 1

    @numba.njit
    def total(until: int) -> int:
        found = 0
        for each in counted(until):
            found += each
        return found

    @numba.jit(forceobj=True)
    def worded(numbers: tuple[int, ...]) -> str:
        text = ""
        for each in numbers:
            if each % 2:
                text += str(each)
        return text

    @numba.njit
    def in_python_between(numbers: np.ndarray) -> int:
        with numba.objmode(length="int64"):
            length = len(str(numbers.tolist()))
        return length + numbers.size

    assert total(10) == 45
    assert worded((1, 2, 3)) == "13"
    assert in_python_between(np.arange(3)) == len("[0, 1, 2]") + 3


def test_what_is_registered_later_is_found() -> None:
    def doubled(number):
        raise NotImplementedError

    @overload(doubled)
    def _doubled(number):
        return lambda number: 2 * number

    @numba.njit
    def asks(number: int) -> int:
        return doubled(number)

    assert asks(4) == 8


def test_intrinsics_are_found_by_every_context() -> None:
    # Each function is compiled in a copy of numba's context, whose place in memory may be that of
    # an earlier copy.
    def intrinsic_for(number: int) -> Callable[[int], int]:
        @intrinsic
        def added(typing_context, value):
            def generate(context, builder, signature, arguments):
                return builder.add(arguments[0], context.get_constant(types.int64, number))

            return types.int64(types.int64), generate

        @numba.njit
        def asks(value: int) -> int:
            return added(value)

        return asks

    assert [intrinsic_for(number)(100) for number in range(20)] == list(range(100, 120))
