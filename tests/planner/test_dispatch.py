"""Events find their atoms through the index exactly where a look at every predicate says so."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid.algebra.expression import (
    TRUE,
    Absent,
    Attribute,
    Call,
    Compare,
    Expression,
    Literal,
    Not,
    Or,
    conjunction,
)
from cepheid.model.errors import DataError
from cepheid.planner import dispatch
from cepheid.planner.column_expression import evaluate_predicate
from cepheid.planner.columns import Column, absent_column, from_arrow
from cepheid.planner.dispatch import Dispatcher

NAMES = ("i", "j", "f", "s", "b", "gone", "mixed")
WHOLE = (0, 1, 2, 3, -1, 2**53, 2**53 + 1, 2**62 + 1, -(2**63) + 2, 2**63 - 1)
REAL = (0.0, -0.0, 1.0, 2.0, 0.5, 2.0**53, 2.0**62, math.inf, -math.inf, 5e-324, -5e-324, -1.5)
TEXTS = ("", "a", "b", "aa", "é", "ab\0c")
CONSTANTS: tuple[Any, ...] = (*WHOLE, *REAL, *TEXTS, True, False, None, math.nan, 2**70)
TYPES = ("A", "B", "C")


def random_atoms(r: random.Random, count: int) -> list[tuple[tuple[str, ...], Expression]]:
    def test() -> Expression:
        attribute = Attribute("x", r.choice(NAMES))
        constant = Literal(r.choice(CONSTANTS))
        equal = Compare("=", *r.sample((attribute, constant), 2))
        other = Compare(r.choice(("<", "!=", ">=")), attribute, constant)
        called = Call("contains", (Attribute("x", "s"), Literal("a")))
        pair = Compare("=", attribute, Attribute("x", r.choice(NAMES)))
        kinds = (equal, equal, equal, equal, other, called, pair, Not(equal), Or((equal, other)))
        return r.choice((*kinds, Attribute("x", r.choice(("b", "i")))))

    def types() -> tuple[str, ...]:
        return tuple(r.sample(TYPES, r.choice((0, 1, 1, 1, 2))))

    return [(types(), conjunction([test() for _ in range(r.randint(0, 3))])) for _ in range(count)]


def random_columns(r: random.Random, rows: int, holes: bool) -> dict[str, Column]:
    def column(name: str, values: Sequence[Any], kind: pa.DataType) -> Column:
        chance = 0.2 if holes and r.random() < 0.8 else 0.0
        cells = [None if r.random() < chance else r.choice(values) for _ in range(rows)]
        absent = np.array([r.random() < chance for _ in range(rows)], np.bool_)
        array = pa.array([None, *cells], kind).slice(1)
        null_is_absent = r.random() < 0.3
        return from_arrow(
            array, null_is_absent=null_is_absent, absent=absent if chance else None, name=name
        )

    mixed: tuple[Sequence[Any], pa.DataType] = r.choice(
        [(WHOLE, pa.int64()), (REAL, pa.float64()), (TEXTS, pa.large_string())]
    )
    return {
        "i": column("i", WHOLE, pa.int64()),
        "j": column("j", (0, 1, 2, 3), pa.int32()),
        "f": column("f", (*REAL, math.nan), pa.float64()),
        "s": column("s", TEXTS, pa.string()),
        "b": column("b", (True, False), pa.bool_()),
        "gone": absent_column(rows),
        "mixed": column("mixed", *mixed),
    }


def by_looking_at_all(
    atoms: Sequence[tuple[tuple[str, ...], Expression]],
    kinds: Sequence[str],
    columns: dict[str, Column],
    absent: Absent,
) -> set[tuple[int, int]]:
    found = set()
    for number, (types, test) in enumerate(atoms):
        holds = evaluate_predicate(test, lambda _, name: columns[name], len(kinds), absent)
        fits = [not types or kind in types for kind in kinds]
        found |= {(row, number) for row in np.flatnonzero(holds & np.array(fits, np.bool_))}
    return found


def numbers(dispatcher: Dispatcher, kinds: Sequence[str]) -> np.ndarray:
    of = dispatcher.type_numbers
    return np.array([of.get(kind, dispatcher.number_of_any) for kind in kinds], np.int64)


@pytest.mark.parametrize("absent", [Absent.TRUE, Absent.FALSE])
def test_the_index_finds_what_every_predicate_would(absent: Absent) -> None:
    touched = 0
    for seed in range(150):
        r = random.Random(seed)
        atoms = random_atoms(r, r.choice((1, 3, 40)))
        dispatcher = Dispatcher(atoms, absent)
        for _ in range(3):  # columns may change their types from batch to batch
            rows = r.choice((0, 1, 30))
            kinds = [r.choice((*TYPES, "Z")) for _ in range(rows)]
            columns = random_columns(r, rows, holes=r.random() < 0.7)
            asked: list[str] = []

            def column(name: str, known: Any = columns, asked: Any = asked) -> Column:
                asked.append(name)
                return known[name]  # type: ignore[no-any-return]

            at, found = dispatcher.pairs(numbers(dispatcher, kinds), column)
            expected = by_looking_at_all(atoms, kinds, columns, absent)
            pairs = list(zip(at.tolist(), found.tolist(), strict=True))
            assert (np.diff(at) >= 0).all()
            assert sorted(pairs) == sorted(expected), seed
            assert set(asked) <= set(dispatcher.columns)
            touched += len(pairs)
    assert touched > 5_000


def test_an_absent_attribute_is_an_error_where_the_language_says_so() -> None:
    test = Compare("=", Attribute("x", "v"), Literal(1))
    dispatcher = Dispatcher([(("A",), test)], Absent.ERROR)
    column = from_arrow(
        pa.array([1, 2, 3]), null_is_absent=False, absent=np.array([False, False, True])
    )
    at, found = dispatcher.pairs(numbers(dispatcher, "AAB"), lambda _: column)
    assert (at.tolist(), found.tolist()) == ([0], [0])
    with pytest.raises(DataError, match="no attribute"):
        dispatcher.pairs(numbers(dispatcher, "AAA"), lambda _: column)


def test_predicates_of_equalities_alone_are_never_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def equal(name: str, value: Any) -> Expression:
        return Compare("=", Attribute("x", name), Literal(value))

    evaluated: list[int] = []

    def counted(test: Expression, lookup: Any, rows: int, absent: Absent) -> Any:
        evaluated.append(rows)
        return evaluate_predicate(test, lookup, rows, absent)

    monkeypatch.setattr(dispatch, "evaluate_predicate", counted)
    values = np.arange(1000) % 100
    column = from_arrow(pa.array(values), null_is_absent=False)
    get: Callable[[str], Column] = lambda _: column  # noqa: E731
    atoms = [((f"T{n % 20}",), equal("v", n // 20)) for n in range(2000)]
    dispatcher = Dispatcher([*atoms, (("T1",), TRUE)], Absent.FALSE)
    at, _ = dispatcher.pairs(np.ones(1000, np.int64), get)
    assert (len(at), evaluated) == (1000, [])
    # What is left of a predicate is evaluated on the rows its equality lets through.
    both = conjunction([equal("v", 7), Compare(">", Attribute("x", "w"), Literal(3))])
    dispatcher = Dispatcher([*atoms, (("T1",), both)], Absent.FALSE)
    at, found = dispatcher.pairs(np.full(1000, dispatcher.type_numbers["T1"]), get)
    assert evaluated == [10]
    assert np.count_nonzero(found == 2000) == 10
