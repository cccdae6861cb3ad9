"""Columns from and to Arrow, and expressions and aggregates over them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid.algebra.expression import (
    FALSE,
    TRUE,
    Absent,
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Call,
    Compare,
    Literal,
    Not,
    Parameter,
    Previous,
    ScalarType,
)
from cepheid.model.errors import DataError, InternalError
from cepheid.model.undefined import (
    ABSENT_FLOAT,
    ABSENT_INT,
    MAX_INT,
    MIN_INT,
    NULL_INT,
    is_value,
)
from cepheid.planner.aggregates import Elements
from cepheid.planner.column_expression import check_present, evaluate_predicate, evaluate_value
from cepheid.planner.columns import (
    Column,
    absent_column,
    concatenate,
    from_arrow,
    to_arrow,
    undefined_column,
)
from tests.oracle.expressions import Hole
from tests.oracle.expressions import aggregate as oracle_aggregate

INT, FLOAT, STRING = ScalarType.INT, ScalarType.FLOAT, ScalarType.STRING
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOON_US = 1_772_366_400_000_000


@pytest.mark.parametrize(
    ("array", "kind", "values"),
    [
        (pa.array([1, -1], pa.int8()), INT, [1, -1]),
        (pa.array([255, 0], pa.uint8()), INT, [255, 0]),
        (pa.array([2**63 - 1, None], pa.uint64()), INT, [2**63 - 1, NULL_INT]),
        (pa.array([1.5, None], pa.float32()), FLOAT, [1.5, None]),
        (pa.array([-0.0, math.inf, math.nan]), FLOAT, [-0.0, math.inf, None]),
        (pa.array([Decimal("1.25"), None]), FLOAT, [1.25, None]),
        (pa.array([True, False, None]), ScalarType.BOOL, [1, 0, NULL_INT]),
        (pa.array([NOON, None], pa.timestamp("s")), ScalarType.TIMESTAMP, [NOON_US, NULL_INT]),
        (pa.array([NOON], pa.timestamp("ns", "Asia/Tokyo")), ScalarType.TIMESTAMP, [NOON_US]),
        (pa.array([-1], pa.timestamp("ns")), ScalarType.TIMESTAMP, [-1]),
        (pa.array([date(1970, 1, 2)]), ScalarType.TIMESTAMP, [86_400_000_000]),
        (pa.array([date(1969, 12, 31)], pa.date64()), ScalarType.TIMESTAMP, [-86_400_000_000]),
        (pa.array([None, None]), ScalarType.UNKNOWN, [NULL_INT, NULL_INT]),
        (pa.chunked_array([[1, 2], [3]]), INT, [1, 2, 3]),
        (pa.chunked_array([], pa.int64()), INT, []),
        (pa.array([7, 7, 8]).dictionary_encode(), INT, [7, 7, 8]),
        (pa.array([9, 1, 2, 3]).slice(1, 2), INT, [1, 2]),
    ],
)
def test_numbers_come_from_any_arrow_type(array: Any, kind: ScalarType, values: list[Any]) -> None:
    column = from_arrow(array, null_is_absent=False)
    assert column.type is kind
    assert column.numbers.dtype == (np.float64 if kind is FLOAT else np.int64)
    found = [None if value != value else value for value in column.numbers.tolist()]
    assert found == values
    assert not column.may_be_absent
    assert column.may_be_undefined == (None in values or NULL_INT in values)
    assert column.replaced == 0


@pytest.mark.parametrize(
    "array",
    [
        pa.array([5, 2**63], pa.uint64()),
        pa.array([5, -(2**63)]),
        pa.array([5, -(2**63) + 1]),
        pa.array([5.0, ABSENT_FLOAT]),
        pa.array([5, 2**60], pa.timestamp("s")),
        pa.array([5, -(2**60)], pa.timestamp("ms")),
        pa.array([5, 2**31 - 1], pa.date32()),
    ],
)
def test_values_that_cannot_travel_become_undefined_and_are_counted(array: pa.Array) -> None:
    column = from_arrow(array, null_is_absent=True)
    assert column.replaced == 1
    assert column.may_be_undefined
    assert not column.may_be_absent
    assert to_arrow(column).is_null().to_pylist() == [False, True]


def test_clean_numbers_are_not_copied() -> None:
    for array in (pa.array([1, 2]), pa.array([1.0, -math.inf])):
        column = from_arrow(array, null_is_absent=True)
        assert column.numbers.ctypes.data == array.buffers()[1].address
        assert not column.may_be_undefined
        assert not column.may_be_absent


def test_null_and_absent_are_told_apart() -> None:
    absent = np.array([True, False, False])
    column = from_arrow(pa.array([None, None, 3]), null_is_absent=False, absent=absent)
    assert column.numbers.tolist() == [ABSENT_INT, NULL_INT, 3]
    wide = from_arrow(pa.array([None, None, 3]), null_is_absent=True)
    assert wide.numbers.tolist() == [ABSENT_INT, ABSENT_INT, 3]
    assert not wide.may_be_undefined
    real = from_arrow(pa.array([1.0, None, math.nan]), null_is_absent=True)
    assert real.absent_rows().tolist() == [False, True, False]
    assert real.may_be_undefined


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None, "é"]),
        pa.array(["a", None, "é"], pa.large_string()),
        pa.array(["a", None, "é"], pa.string_view()),
        pa.array(["a", None, "é"]).dictionary_encode(),
        pa.chunked_array([["a"], [None, "é"]]),
        pa.chunked_array([["a"], [None, "é"]]).dictionary_encode(),
    ],
)
def test_strings_come_from_any_arrow_type(array: Any) -> None:
    column = from_arrow(array, null_is_absent=False)
    assert column.type is STRING
    assert column.texts.type == pa.string()
    assert column.texts.to_pylist() == ["a", None, "é"]
    assert column.may_be_undefined
    assert not column.may_be_absent


def test_absent_strings_are_null_and_marked() -> None:
    absent = np.array([True, False, False])
    column = from_arrow(pa.array(["a", None, "b"]), null_is_absent=False, absent=absent)
    assert column.texts.to_pylist() == [None, None, "b"]
    assert column.absent_rows().tolist() == [True, False, False]
    assert column.may_be_undefined
    wide = from_arrow(pa.array(["a", None, "b"]), null_is_absent=True)
    assert wide.absent_rows().tolist() == [False, True, False]
    assert not wide.may_be_undefined


def test_a_type_that_queries_do_not_know_is_named_with_its_column() -> None:
    with pytest.raises(DataError, match=r"`tags`.*list<") as caught:
        from_arrow(pa.array([[1]]), null_is_absent=True, name="tags")
    assert caught.value.code == "unsupported-type"


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None, -5]),
        pa.array([1.5, None, -0.0]),
        pa.array([True, None, False]),
        pa.array(["a", None, ""]),
        pa.array([NOON, None], pa.timestamp("us", "UTC")),
        pa.nulls(2),
    ],
)
@pytest.mark.parametrize("null_is_absent", [True, False])
def test_arrow_round_trip(array: pa.Array, null_is_absent: bool) -> None:
    back = to_arrow(from_arrow(array, null_is_absent=null_is_absent))
    assert back.type == array.type
    assert back.equals(array)


def test_take_gives_undefined_for_an_unbound_variable() -> None:
    rows = np.array([2, -1, 0])
    numbers = from_arrow(pa.array([1, 2, None]), null_is_absent=True).take(rows)
    assert numbers.numbers.tolist() == [ABSENT_INT, NULL_INT, 1]
    floats = from_arrow(pa.array([1.0, 2.0, 3.0]), null_is_absent=True).take(rows)
    assert to_arrow(floats).to_pylist() == [3.0, None, 1.0]
    texts = from_arrow(pa.array(["a", "b", None]), null_is_absent=True).take(rows)
    assert texts.texts.to_pylist() == [None, None, "a"]
    assert texts.absent_rows().tolist() == [True, False, False]


def test_concatenate_keeps_absent_rows() -> None:
    parts = [["a", None], ["b"]]
    texts = concatenate([from_arrow(pa.array(part), null_is_absent=True) for part in parts])
    assert texts.texts.to_pylist() == ["a", None, "b"]
    assert texts.absent_rows().tolist() == [False, True, False]
    numbers = concatenate([from_arrow(pa.array(part), null_is_absent=False) for part in ([1], [2])])
    assert numbers.numbers.tolist() == [1, 2]
    assert not numbers.may_be_undefined


COLUMNS = {
    "n": from_arrow(pa.array([1, None, 3]), null_is_absent=True),
    "f": from_arrow(pa.array([0.5, math.nan, 0.0]), null_is_absent=True),
    "s": from_arrow(pa.array(["a", None, "b"]), null_is_absent=False),
    "flag": from_arrow(pa.array([True, False, None]), null_is_absent=False),
    "other": undefined_column(3),
    "none": absent_column(3),
}
N, F, S = (Attribute("x", name) for name in ("n", "f", "s"))


def holds(node: Any, absent: Absent = Absent.FALSE) -> list[bool]:
    return evaluate_predicate(node, lambda v, n: COLUMNS[n], 3, absent).tolist()


def test_the_rule_of_absent_attributes_is_the_atoms() -> None:
    small = Compare("<", N, Literal(2))
    assert holds(small, Absent.TRUE) == [True, True, False]
    assert holds(small, Absent.FALSE) == [True, False, False]
    assert holds(Not(small), Absent.TRUE) == [False, False, True]
    assert holds(Not(small), Absent.FALSE) == [False, True, True]
    assert holds(Compare("=", Attribute("x", "none"), S), Absent.TRUE) == [True] * 3


def test_an_undefined_atom_is_false_and_its_negation_true() -> None:
    test = Compare("!=", F, Literal(0.5))
    assert holds(test) == [False, False, True]
    assert holds(Not(test)) == [True, True, False]
    unknown = Compare("=", Attribute("x", "other"), Attribute("x", "other"))
    assert holds(unknown) == [False] * 3
    assert holds(Attribute("x", "flag")) == [True, False, False]


def test_a_condition_inside_an_atom_is_two_valued() -> None:
    flag = Attribute("x", "flag")
    assert holds(Compare("=", Compare(">", F, Literal(0)), flag)) == [True, True, False]
    assert holds(Compare("=", Compare(">", N, Literal(9)), Literal(False))) == [True, False, True]
    some = Compare("=", Compare(">", N, Literal(9)), Literal(False))
    assert holds(some, Absent.TRUE) == [True, True, True]


def test_an_absent_attribute_can_be_an_error() -> None:
    node = And((Compare("<", N, Literal(2)), FALSE))
    with pytest.raises(DataError, match=r"`x` has no attribute `n`") as caught:
        holds(node, Absent.ERROR)
    assert caught.value.code == "absent-attribute"
    with pytest.raises(DataError, match="`n`"):
        check_present(node, lambda v, n: COLUMNS[n])
    check_present(Compare("=", S, F), lambda v, n: COLUMNS[n])
    assert holds(Compare("=", F, Literal(0)), Absent.ERROR) == [False, False, True]


def test_constants_alone_answer_for_every_row() -> None:
    assert holds(TRUE) == [True] * 3
    assert holds(FALSE) == [False] * 3
    assert holds(Compare("<", Literal(1), Literal(1.5))) == [True] * 3
    assert holds(Compare("<", Literal("a"), Literal("b"))) == [True] * 3
    assert holds(Call("contains", (Literal("abc"), Literal("b")))) == [True] * 3
    assert holds(Call("contains", (Literal("abc"), S))) == [True, False, True]


def test_what_planning_should_have_replaced_is_our_error() -> None:
    for node in (Parameter("p"), Previous("x", "n")):
        with pytest.raises(InternalError, match="unresolved-expression"):
            evaluate_value(
                Arithmetic("+", node, Literal(1)), lambda v, n: COLUMNS[n], 3, Absent.TRUE
            )


def value(node: Any, absent: Absent = Absent.TRUE, **given: Any) -> list[Any]:
    column = evaluate_value(node, lambda v, n: COLUMNS[n], 3, absent, **given)
    assert len(column) == 3
    return to_arrow(column).to_pylist()


def test_values_of_a_return_clause() -> None:
    assert value(Arithmetic("/", N, F)) == [2.0, None, None]
    assert value(Literal("k")) == ["k"] * 3
    assert value(Literal(None)) == [None] * 3
    assert value(Call("concat", (S, Literal("!")))) == ["a!", None, "b!"]
    assert value(Compare("<", N, Literal(2))) == [True, True, False]
    copied = evaluate_value(N, lambda v, n: COLUMNS[n], 3, Absent.TRUE)
    assert copied.absent_rows().tolist() == [False, True, False]
    with pytest.raises(DataError, match="absent-attribute"):
        value(N, Absent.ERROR)


@pytest.mark.parametrize(
    ("op", "exact"), [("+", operator.add), ("-", operator.sub), ("*", operator.mul)]
)
def test_integers_are_exact_or_undefined(op: str, exact: Callable[[int, int], int]) -> None:
    pool = [0, 1, -1, 2, 3037000500, -3037000500, 2**62, -(2**62), MIN_INT, MAX_INT]
    pairs = list(product(pool, pool))
    columns = {
        name: from_arrow(pa.array([pair[side] for pair in pairs]), null_is_absent=True)
        for side, name in enumerate(("left", "right"))
    }
    node = Arithmetic(op, Attribute("x", "left"), Attribute("x", "right"))
    column = evaluate_value(node, lambda v, n: columns[n], len(pairs), Absent.TRUE)
    results = [exact(left, right) for left, right in pairs]
    assert to_arrow(column).to_pylist() == [n if is_value(n) else None for n in results]


def test_aggregates_go_over_the_variables_that_have_the_attribute() -> None:
    columns = {
        ("x", "v"): from_arrow(pa.array([1, None, 2**62]), null_is_absent=False),
        ("y", "v"): from_arrow(pa.array([2.5, 1.5, math.nan]), null_is_absent=False),
        ("z", "v"): absent_column(3),
    }

    def found(function: str, name: str | None = "v", variable: str | None = None) -> list[Any]:
        node = Aggregate(function, name, variable)
        column = evaluate_value(
            node, lambda v, n: columns[v, n], 3, Absent.ERROR, variables=("x", "y", "z")
        )
        return to_arrow(column).to_pylist()

    assert found("count", None) == [3, 3, 3]
    assert found("count") == [2, 1, 1]
    assert found("sum") == [3.5, 1.5, float(2**62)]
    assert found("avg") == [1.75, 1.5, float(2**62)]
    assert found("min") == [1.0, 1.5, float(2**62)]
    assert found("max", "v", "x") == [1, None, 2**62]
    assert found("sum", "v", "z") == [None] * 3


def test_aggregates_of_iterated_variables_agree_with_the_oracle() -> None:
    random = Random(4)
    pools: dict[Any, list[Any]] = {
        pa.int64(): [0, 1, -7, 2**62, -(2**62), 2**63 - 1, None],
        pa.float64(): [0.5, -1.25, math.inf, -math.inf, 1e308, None],
        pa.string(): ["", "a", "é", "B", None],
    }
    for _ in range(60):
        kind = random.choice(list(pools))
        groups = [
            [random.choice(pools[kind]) for _ in range(random.randrange(4))] for _ in range(5)
        ]
        flat = pa.array([cell for group in groups for cell in group], kind)
        offsets = np.cumsum([0, *map(len, groups)])
        single = pa.array([random.choice(pools[kind]) for _ in groups], kind)
        plus = Elements(offsets, from_arrow(flat, null_is_absent=random.random() < 0.5))
        one = from_arrow(single, null_is_absent=False)
        functions = ["count", "min", "max"]
        for function in functions if kind == pa.string() else [*functions, "sum", "avg"]:
            column = evaluate_value(
                Aggregate(function, "v"),
                lambda v, n, one=one: one,
                5,
                Absent.FALSE,
                variables=("p", "x"),
                elements=lambda v, n, plus=plus: plus if v == "p" else None,
            )
            for row, found in enumerate(to_arrow(column).to_pylist()):
                cells = [*groups[row], single[row].as_py()]
                wanted = oracle_aggregate(function, [cell for cell in cells if cell is not None])
                wanted = None if isinstance(wanted, Hole) else wanted
                assert found == wanted or found == pytest.approx(wanted, rel=1e-15)


def test_events_are_counted_over_iterated_and_unbound_variables() -> None:
    offsets = {"p": np.array([0, 2, 2, 5]), "q": np.array([0, 1, 1, 1])}
    node = Aggregate("count", None)
    found = value(
        node,
        variables=("p", "x", "q"),
        elements=lambda v, n: Elements(offsets[v]) if v in offsets else None,
    )
    assert found == [4, 1, 4]


def test_sums_of_integers_are_exact_or_undefined() -> None:
    big = from_arrow(pa.array([2**62, 2**53 + 1, 2**63 - 1]), null_is_absent=True)
    column = evaluate_value(
        Aggregate("sum", "v"), lambda v, n: big, 3, Absent.TRUE, variables=("x", "y")
    )
    assert column.type is INT
    assert to_arrow(column).to_pylist() == [None, 2**54 + 2, None]


def test_a_column_has_numbers_or_strings() -> None:
    with pytest.raises(AssertionError):
        _ = Column(STRING, strings=pa.array(["a"])).numbers
    with pytest.raises(AssertionError):
        _ = Column(INT, np.array([1])).texts
