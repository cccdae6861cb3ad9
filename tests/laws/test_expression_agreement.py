"""One meaning of expressions: oracle, columns, kernel source and Spark answer alike on any rows.

Shapes come from hypothesis where evaluation is cheap, and from seeds in bulk where something has to
be compiled first (a kernel module, a Spark plan).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from cepheid.algebra.expression import (
    COMPARISONS,
    FUNCTIONS,
    Absent,
    And,
    Arithmetic,
    Attribute,
    Call,
    Compare,
    Expression,
    Literal,
    Negative,
    Not,
    Or,
    ScalarType,
    children,
    walk,
)
from cepheid.kernels import compiled
from cepheid.model.errors import DataError
from cepheid.model.undefined import ABSENT_FLOAT, ABSENT_INT, NULL_INT
from cepheid.planner.column_expression import evaluate_predicate, evaluate_value
from cepheid.planner.columns import Column, from_arrow, to_arrow
from cepheid.planner.kernel_expression import KernelSource, StringConstant, is_native
from cepheid.planner.operator_types import is_condition
from tests.oracle import expressions as oracle
from tests.oracle.events import Ev, Match

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INT, FLOAT, STRING = ScalarType.INT, ScalarType.FLOAT, ScalarType.STRING
BOOL, TIMESTAMP = ScalarType.BOOL, ScalarType.TIMESTAMP
VARIABLES = ("x", "y")
TYPES = {
    "i": INT,
    "j": INT,
    "f": FLOAT,
    "g": FLOAT,
    "s": STRING,
    "t": STRING,
    "b": BOOL,
    "w": TIMESTAMP,
}
ARROW = {
    INT: pa.int64(),
    FLOAT: pa.float64(),
    STRING: pa.string(),
    BOOL: pa.bool_(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
}

WHOLE = [0, 1, -1, 2, 3, 7, 10, -4, 2**31, 2**53 + 1, -(2**53) - 1, 3037000500, -3037000500]
EXTREME = [2**63 - 1, 2**63 - 2, -(2**63) + 2, -(2**63) + 3, 2**62, -(2**62)]
RESERVED = [-(2**63), -(2**63) + 1]
FLOATS = [0.0, -0.0, 1.0, 1.5, -2.5, 0.1, 2.0**53, 1e308, -1e308, 5e-324, math.inf, -math.inf]
NOT_VALUES = [math.nan, ABSENT_FLOAT]
TEXTS = ["", "a", "A", "ab", "aB", "é", "É", "zé", "\uffff", "\U0001f600", "ab\0c", "ß"]
TIMES = [0, 1, -1, 1_700_000_000_000_000, -62_135_596_800_000_000]
POOL: dict[ScalarType, list[Any]] = {
    INT: [*WHOLE, *WHOLE, *EXTREME, *RESERVED],
    FLOAT: [*FLOATS, *NOT_VALUES],
    STRING: TEXTS,
    BOOL: [True, False],
    TIMESTAMP: TIMES,
}
MISSING = object()

Row = dict[tuple[str, str], Any]
"""A value, None (null) or MISSING (absent) for every attribute of both variables."""


def random_rows(random: Random, count: int) -> list[Row]:
    # Some columns have no holes at all, so that the paths without masks are walked too.
    clean = {key: random.random() < 0.3 for key in [(v, n) for v in VARIABLES for n in TYPES]}
    return [
        {key: _random_cell(random, TYPES[key[1]], clean[key]) for key in clean}
        for _ in range(count)
    ]


def _random_cell(random: Random, kind: ScalarType, clean: bool) -> Any:
    if not clean and random.random() < 0.3:
        return random.choice([None, MISSING])
    pool = POOL[kind]
    if clean:
        pool = [value for value in pool if value not in RESERVED and value == value]
    return random.choice(pool)


class Shapes:
    """Random well-typed expressions, with a few comparisons that no operator knows."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def predicate(self, depth: int = 3) -> Expression:
        match self.random.randrange(6) if depth else 5:
            case 0:
                return And(
                    tuple(self.predicate(depth - 1) for _ in range(self.random.randrange(4)))
                )
            case 1:
                return Or(tuple(self.predicate(depth - 1) for _ in range(self.random.randrange(4))))
            case 2:
                return Not(self.predicate(depth - 1))
            case _:
                return self.atom()

    def atom(self) -> Expression:
        op = self.random.choice(COMPARISONS)
        match self.random.randrange(14):
            case 0 | 1 | 2 | 3 | 4:
                return Compare(op, self.number(3), self.number(2))
            case 5:
                return self._either_way(op, self._attribute(INT, FLOAT), self._literal(INT, FLOAT))
            case 6 | 7:
                return self._either_way(op, self._attribute(STRING), self._literal(STRING))
            case 8:
                return Compare(op, self.text(2), self.text(2))
            case 9:
                function = self.random.choice(["contains", "starts_with", "ends_with"])
                return Call(function, (self.text(2), self.text(1)))
            case 10:
                return Compare(op, self.time(1), self.time(1))
            case 11:
                return self._either_way(op, self._attribute(TIMESTAMP), self._literal(TIMESTAMP))
            case 12:
                test = Compare(self.random.choice(["=", "!="]), self.flag(), self.flag())
                return self.random.choice([self.flag(), test])
            case _:
                odd = [self.text(1), Literal(None), self.flag(), Literal(2**63), Literal(math.nan)]
                return self._either_way(op, self.random.choice(odd), self.number(1))

    def nested(self) -> Expression:
        """A condition as the operand of an atom, which is where absent attributes are settled."""
        return self._either_way(self.random.choice(["=", "!="]), self.predicate(1), self.flag())

    def number(self, depth: int) -> Expression:
        match self.random.randrange(10) if depth else 9:
            case 0 | 1 | 2:
                op = self.random.choice("+-*/")
                return Arithmetic(op, self.number(depth - 1), self.number(depth - 1))
            case 3:
                return Negative(self.number(depth - 1))
            case 4:
                return Call(self.random.choice(["abs", "sqrt"]), (self.number(depth - 1),))
            case 5:
                function = self.random.choice(["least", "greatest"])
                return Call(function, (self.number(depth - 1), self.number(depth - 1)))
            case 6:
                return Arithmetic("-", self.time(1), self.time(1))
            case 7:
                return Call("length", (self.text(depth - 1),))
            case _:
                if self.random.random() < 0.3:
                    return self._literal(INT, FLOAT)
                return self._attribute(INT, FLOAT)

    def text(self, depth: int) -> Expression:
        match self.random.randrange(5) if depth else 4:
            case 0:
                return Call(self.random.choice(["lower", "upper"]), (self.text(depth - 1),))
            case 1:
                return Call("concat", (self.text(depth - 1), self.text(depth - 1)))
            case _:
                if self.random.random() < 0.3:
                    return self._literal(STRING)
                return self._attribute(STRING)

    def time(self, depth: int) -> Expression:
        time = self._attribute(TIMESTAMP)
        match self.random.randrange(4) if depth else 3:
            case 0:
                return Arithmetic(self.random.choice("+-"), time, self._attribute(INT))
            case 1:
                return Arithmetic("+", self._literal(INT), time)
            case _:
                return time

    def flag(self) -> Expression:
        return self.random.choice([self._attribute(BOOL), self._literal(BOOL)])

    def _either_way(self, op: str, left: Expression, right: Expression) -> Expression:
        return Compare(op, left, right) if self.random.random() < 0.5 else Compare(op, right, left)

    def _attribute(self, *kinds: ScalarType) -> Attribute:
        names = [name for name, kind in TYPES.items() if kind in kinds]
        return Attribute(self.random.choice(VARIABLES), self.random.choice(names))

    def _literal(self, *kinds: ScalarType) -> Literal:
        return Literal(self.random.choice(POOL[self.random.choice(kinds)]))


def scope_of(row: Row) -> oracle.Scope:
    """The row as the oracle's match; what is reserved in our arrays is null to everybody."""
    events = []
    for variable in VARIABLES:
        attrs = {
            name: None if row[variable, name] == ABSENT_FLOAT else row[variable, name]
            for name in TYPES
            if row[variable, name] is not MISSING
        }
        events.append((variable, Ev(variable, "T", 0, 0, attrs)))
    return oracle.Scope(Match(tuple(events), (0,), 0, 0, 0))


def oracle_truth(node: Expression, rows: Sequence[Row], absent: Absent) -> list[bool]:
    return [oracle.truth(node, scope_of(row), absent) for row in rows]


def arrow_column(rows: Sequence[Row], key: tuple[str, str]) -> pa.Array:
    cells = [None if row[key] is MISSING else row[key] for row in rows]
    kind = TYPES[key[1]]
    if kind is TIMESTAMP:
        return pa.array(cells, pa.int64()).cast(ARROW[kind])
    return pa.array(cells, ARROW[kind], from_pandas=False)


def columns_of(rows: Sequence[Row]) -> dict[tuple[str, str], Column]:
    return {
        key: from_arrow(
            arrow_column(rows, key),
            null_is_absent=False,
            absent=np.array([row[key] is MISSING for row in rows], np.bool_),
            name=key[1],
        )
        for key in [(v, n) for v in VARIABLES for n in TYPES]
    }


def column_truth(node: Expression, rows: Sequence[Row], absent: Absent) -> list[bool]:
    columns = columns_of(rows)
    mask = evaluate_predicate(node, lambda v, n: columns[v, n], len(rows), absent)
    assert mask.dtype == np.bool_
    return mask.tolist()


def answers(
    nodes: Sequence[tuple[Expression, Absent]], rows: Sequence[Row]
) -> Iterator[list[bool]]:
    """What the columns say, and the oracle with them (it has no conditions inside of atoms)."""
    scopes = [scope_of(row) for row in rows]
    columns = columns_of(rows)
    for node, absent in nodes:
        found = evaluate_predicate(node, lambda v, n: columns[v, n], len(rows), absent).tolist()
        if not any(_has_inner_condition(part) for part in walk(node)):
            assert found == [oracle.truth(node, scope, absent) for scope in scopes], node
        yield found


def _has_inner_condition(node: Expression) -> bool:
    return isinstance(node, Compare) and any(map(is_condition, children(node)))


def type_of(variable: str, name: str) -> ScalarType:
    return TYPES[name]


@given(st.randoms(use_true_random=False), st.sampled_from([Absent.TRUE, Absent.FALSE]))
def test_columns_agree_with_the_oracle_on_any_shape(random: Random, absent: Absent) -> None:
    rows = random_rows(random, random.randrange(5))
    node = Shapes(random).predicate()
    assert column_truth(node, rows, absent) == oracle_truth(node, rows, absent)


@pytest.mark.parametrize("seed", range(4))
def test_columns_agree_with_the_oracle_in_bulk(seed: int) -> None:
    random = Random(seed)
    rows = random_rows(random, 60)
    scopes = [scope_of(row) for row in rows]
    columns = columns_of(rows)
    for _ in range(400):
        node = Shapes(random).predicate(2)
        absent = random.choice([Absent.TRUE, Absent.FALSE])
        found = evaluate_predicate(node, lambda v, n: columns[v, n], len(rows), absent)
        assert found.tolist() == [oracle.truth(node, scope, absent) for scope in scopes], node


@pytest.mark.parametrize("seed", range(4))
def test_values_agree_with_the_oracle_in_bulk(seed: int) -> None:
    random = Random(seed)
    rows = random_rows(random, 60)
    scopes = [scope_of(row) for row in rows]
    columns = columns_of(rows)
    for _ in range(300):
        node = random.choice([Shapes.number, Shapes.text, Shapes.time])(Shapes(random), 3)
        column = evaluate_value(node, lambda v, n: columns[v, n], len(rows), Absent.TRUE)
        if column.type is TIMESTAMP:
            column = Column(INT, column.values)
        wanted = [oracle.evaluate(node, scope, Absent.TRUE) for scope in scopes]
        # A float result that looks like the mark of absence cannot travel.
        assert to_arrow(column).to_pylist() == [
            None if isinstance(value, oracle.Hole) or value == ABSENT_FLOAT else value
            for value in wanted
        ], node


def test_an_absent_attribute_is_an_error_exactly_where_the_oracle_says() -> None:
    random = Random(5)
    for _ in range(300):
        rows = random_rows(random, 3)
        node = Shapes(random).atom()
        try:
            wanted: list[bool] | None = oracle_truth(node, rows, Absent.ERROR)
        except oracle.AbsentAttributeError:
            wanted = None
        if wanted is None:
            with pytest.raises(DataError, match="absent-attribute"):
                column_truth(node, rows, Absent.ERROR)
        else:
            assert column_truth(node, rows, Absent.ERROR) == wanted


def _kernel_text(sources: list[str], per_function: int = 10) -> str:
    """A module of functions, each testing every row with a few of the conditions."""
    text = ""
    for first in range(0, len(sources), per_function):
        text += f"@numba.njit\ndef test{first}(ci, cf, ints, floats, out):\n"
        text += "    for i in range(out.shape[1]):\n"
        for number, source in enumerate(sources[first : first + per_function], first):
            text += f"        out[{number}, i] = {source}\n"
    return text


@pytest.mark.slow
def test_kernel_source_agrees_with_the_oracle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CEPHEID_CACHE", str(tmp_path))
    random = Random(11)
    rows = random_rows(random, 300)
    columns = columns_of(rows)
    ints, floats, name_of, codes = _arrays(columns)
    plain = KernelSource(name_of, type_of)
    informed = KernelSource(
        name_of,
        type_of,
        may_be_undefined=lambda v, n: columns[v, n].may_be_undefined,
        may_be_absent=lambda v, n: columns[v, n].may_be_absent,
        int_constants=plain.int_constants,
        float_constants=plain.float_constants,
    )
    nodes: list[tuple[Expression, Absent]] = []
    while len(nodes) < 120:
        shapes = Shapes(random)
        node = shapes.nested() if len(nodes) % 8 == 0 else shapes.predicate(1)
        if is_native(node, type_of):
            nodes.append((node, random.choice([Absent.TRUE, Absent.FALSE])))
    sources = [
        (plain if number % 2 else informed).predicate(node, absent)
        for number, (node, absent) in enumerate(nodes)
    ]
    module = compiled.load(_kernel_text(sources))

    constants = [
        codes.setdefault(c.text, len(codes)) if isinstance(c, StringConstant) else c
        for c in plain.int_constants
    ]
    out = np.zeros((len(nodes), len(rows)), np.bool_)
    arguments = (np.array(constants, np.int64), np.array(plain.float_constants), ints, floats, out)
    for name, function in vars(module).items():
        if name.startswith("test"):
            function(*arguments)
    for number, ((node, absent), wanted) in enumerate(
        zip(nodes, answers(nodes, rows), strict=True)
    ):
        assert out[number].tolist() == wanted, (node, absent, sources[number])


def _arrays(
    columns: dict[tuple[str, str], Column],
) -> tuple[np.ndarray, np.ndarray, Callable[[str, str], str], dict[str, int]]:
    """All columns as a kernel reads them (strings by code), and the text that reads each."""
    codes: dict[str, int] = {}
    names: dict[tuple[str, str], str] = {}
    ints: list[np.ndarray] = []
    floats: list[np.ndarray] = []
    for key, column in columns.items():
        family, text = (floats, "floats") if column.type is FLOAT else (ints, "ints")
        names[key] = f"{text}[{len(family)}, i]"
        family.append(_in_band(column, codes))
    return np.array(ints), np.array(floats), lambda v, n: names[v, n], codes


def _in_band(column: Column, codes: dict[str, int]) -> np.ndarray:
    if column.strings is None:
        return column.numbers
    cells = [
        NULL_INT if text is None else codes.setdefault(text, len(codes))
        for text in column.strings.to_pylist()
    ]
    numbers = np.array(cells, np.int64)
    absent = column.absent_rows()
    if absent is not None:
        numbers[absent] = ABSENT_INT
    return numbers


@pytest.mark.parametrize("null_is_absent", [True, False])
def test_spark_columns_agree_with_the_oracle(spark: SparkSession, null_is_absent: bool) -> None:
    from pyspark.sql import functions as sf

    from cepheid.hosts.spark_expression import to_column, to_filter

    random = Random(23)
    rows = random_rows(random, 120)
    # A wide table knows only null, and the option says what that means.
    hole = MISSING if null_is_absent else None
    rows = [
        {key: hole if cell is None or cell is MISSING else cell for key, cell in row.items()}
        for row in rows
    ]
    table = pa.table(
        {f"{v}_{n}": arrow_column(rows, (v, n)) for v in VARIABLES for n in TYPES}
    ).append_column("row", pa.array(range(len(rows))))
    frame = spark.createDataFrame(table)
    shapes = Shapes(random)
    nodes = [
        (
            shapes.nested() if number % 8 == 0 else shapes.predicate(2),
            random.choice([Absent.TRUE, Absent.FALSE]),
        )
        for number in range(80)
    ]
    selected = []
    for number, (node, absent) in enumerate(nodes):
        given = (node, lambda v, n: sf.col(f"{v}_{n}"), type_of, absent, null_is_absent)
        selected.append(to_column(*given).alias(f"exact{number}"))
        selected.append(sf.coalesce(to_filter(*given), sf.lit(False)).alias(f"filter{number}"))
    answer = frame.select("row", *selected).toArrow().sort_by("row")
    for number, ((node, absent), wanted) in enumerate(
        zip(nodes, answers(nodes, rows), strict=True)
    ):
        assert answer[f"exact{number}"].to_pylist() == wanted, (node, absent)
        assert answer[f"filter{number}"].to_pylist() == wanted, (node, absent)


def test_every_function_is_drawn() -> None:
    random = Random(1)
    text = repr([Shapes(random).predicate(3) for _ in range(400)])
    assert all(f"function='{name}'" in text for name in FUNCTIONS)
