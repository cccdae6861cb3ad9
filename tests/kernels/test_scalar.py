"""The kernels' integer arithmetic against Python's own, on every pair of awkward numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import product

import pytest

from cepheid.kernels import scalar
from cepheid.model.undefined import ABSENT_INT, MAX_INT, MIN_INT, NULL_INT, is_value

VALUES = [0, 1, -1, 2, -2, 3, 3037000500, -3037000500, 2**31, 2**62, -(2**62)]
VALUES += [MAX_INT, MAX_INT - 1, MIN_INT, MIN_INT + 1]
HOLES = [NULL_INT, ABSENT_INT]
FLOATS = [0.0, -0.0, 1.0, -2.5, 1e308, math.inf, -math.inf]


def same(found: float, wanted: float) -> bool:
    return found == wanted or (math.isnan(found) and math.isnan(wanted))


@pytest.mark.parametrize(
    ("kernel", "exact"),
    [
        (scalar.add_int, operator.add),
        (scalar.subtract_int, operator.sub),
        (scalar.multiply_int, operator.mul),
        (scalar.least_int, min),
        (scalar.greatest_int, max),
    ],
)
def test_integers_are_exact_or_undefined(
    kernel: Callable[[int, int], int], exact: Callable[[int, int], int]
) -> None:
    for left, right in product(VALUES, VALUES):
        wanted = exact(left, right)
        assert kernel(left, right) == (wanted if is_value(wanted) else NULL_INT), (left, right)
    for value, hole in product([*VALUES, *HOLES], HOLES):
        assert kernel(value, hole) == kernel(hole, value) == NULL_INT


@pytest.mark.parametrize(
    ("kernel", "exact"), [(scalar.negative_int, operator.neg), (scalar.abs_int, abs)]
)
def test_one_integer(kernel: Callable[[int], int], exact: Callable[[int], int]) -> None:
    for value in VALUES:
        assert kernel(value) == (exact(value) if is_value(exact(value)) else NULL_INT)
    assert [kernel(hole) for hole in HOLES] == [NULL_INT] * 2


@pytest.mark.parametrize(
    ("kernel", "exact"),
    [
        (scalar.equal_int, operator.eq),
        (scalar.unequal_int, operator.ne),
        (scalar.less_int, operator.lt),
        (scalar.at_most_int, operator.le),
    ],
)
def test_comparisons_with_undefined_are_false(
    kernel: Callable[[int, int], bool], exact: Callable[[int, int], bool]
) -> None:
    for left, right in product(VALUES, VALUES):
        assert kernel(left, right) == exact(left, right)
    for value, hole in product([*VALUES, *HOLES], HOLES):
        assert not kernel(value, hole)
        assert not kernel(hole, value)


def test_floats() -> None:
    for left, right in product([*FLOATS, math.nan], [*FLOATS, math.nan]):
        undefined = math.isnan(left) or math.isnan(right)
        assert same(scalar.divide(left, right), math.nan if right == 0 else left / right)
        assert same(scalar.least_float(left, right), math.nan if undefined else min(left, right))
        assert same(scalar.greatest_float(left, right), math.nan if undefined else max(left, right))
        assert scalar.unequal_float(left, right) == (not undefined and left != right)
    for value in [*FLOATS, math.nan]:
        wanted = math.sqrt(value) if value >= 0 else math.nan
        assert same(scalar.square_root(value), wanted)
    assert scalar.to_float(MAX_INT) == 2.0**63
    assert all(math.isnan(scalar.to_float(hole)) for hole in HOLES)
    assert (scalar.truth(True), scalar.truth(False)) == (1, 0)
