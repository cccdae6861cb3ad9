"""What a kernel of NEXT's operators looks like: the operators in the order in which they work.

Operators are numbered from 0, operands before those that use them; the last one is the root. All of
them work on the events of one end at a time (SPEC A1.4: "the next stable set of events").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

import numpy as np


@dataclass(frozen=True, slots=True)
class Condition:
    """The body of a generated function over `m` (bound so far) and `q` (what comes next).

    `lines` fetch what `answer` uses. The planner writes both (planner.succession_conditions).
    """

    lines: tuple[str, ...]
    answer: str

    @property
    def is_true(self) -> bool:
        """Whether it always holds."""
        return self.answer == "True"


ALWAYS = Condition((), "True")


@dataclass(frozen=True, slots=True)
class Leaf:
    """Events whose mask has `bit`, bound to variable number `variable`."""

    bit: int
    variable: int


@dataclass(frozen=True, slots=True)
class Merge:
    """What any of the operators finds."""

    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """What an operator finds, if it passes."""

    operand: int
    condition: Condition


@dataclass(frozen=True, slots=True)
class Deadline:
    """A match may wait until `window` after its event of a variable."""

    variable: int
    window: int


@dataclass(frozen=True, slots=True)
class Follow:
    """Matches of `first` wait for their immediate successor among those of `second`.

    `first_key` and `second_key` give a hash of what `skip` compares for equality; `skip` itself is
    tested too, so that hashes may collide. `may_be_unordered` says that what `second` finds has to
    be put in the stable order first.
    """

    first: int
    second: int
    skip: Condition
    test: Condition
    first_key: Condition
    second_key: Condition
    deadlines: tuple[Deadline, ...]
    may_be_unordered: bool


@dataclass(frozen=True, slots=True)
class Repeat:
    """All runs of immediate successors; a run is at most `most` long if that is given."""

    operand: int
    start: Condition
    skip: Condition
    test: Condition
    first_key: Condition
    second_key: Condition
    may_be_unordered: bool
    is_capped: bool


@dataclass(frozen=True, slots=True)
class Exclude:
    """What `operand` finds, unless something of `negated` came after its event of `since`.

    After a union `since` has a variable for each branch; the latest of those bound counts. One that
    `reports` finds something else instead: the match with variables of negative numbers (-2 - v),
    and after it the earliest exception under -1.
    """

    operand: int
    negated: int
    since: tuple[int, ...]
    condition: Condition
    reports: bool = False


Operator: TypeAlias = Leaf | Merge | Test | Follow | Repeat | Exclude


@dataclass(frozen=True, slots=True)
class SuccessionShape:
    """The operators, operands before those that use them; the last one is the root."""

    operators: tuple[Operator, ...]


# -- as a table, for the kernel -------------------------------------------------------------------

LEAF, MERGE, TESTS, FOLLOW, REPEAT, EXCLUDE = range(6)
(
    KIND,
    FIRST,
    SECOND,
    SKIP,
    TEST,
    FIRST_KEY,
    SECOND_KEY,
    STARTS,
    FLAGS,
    EXTRA,
    EXTRAS,
    TABLE_WIDTH,
) = range(12)
"""The columns of the table: operands by number, conditions by number (-1: always true)."""

UNORDERED, CAPPED, REPORTS = 1, 2, 4


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """The operators as rows, what does not fit into them, and the conditions that rows number."""

    rows: np.ndarray
    extra: np.ndarray
    conditions: tuple[Condition, ...]


def table(shape: SuccessionShape) -> OperatorTable:
    """The operators as the kernel reads them."""
    rows = np.full((len(shape.operators), TABLE_WIDTH), -1, np.int64)
    extra: list[int] = []
    conditions: dict[Condition, int] = {}

    def number(condition: Condition) -> int:
        return -1 if condition.is_true else conditions.setdefault(condition, len(conditions))

    def more(values: tuple[int, ...]) -> dict[int, int]:
        extra.extend(values)
        return {EXTRA: len(extra) - len(values), EXTRAS: len(values)}

    for row, operator in zip(rows, shape.operators, strict=True):
        row[FLAGS] = row[EXTRAS] = 0
        cells: dict[int, int]
        match operator:
            case Leaf(bit, variable):
                cells = {KIND: LEAF, FIRST: 1 << bit, SECOND: variable}
            case Merge(operands):
                cells = {KIND: MERGE, **more(operands)}
            case Test():
                cells = {KIND: TESTS, FIRST: operator.operand, TEST: number(operator.condition)}
            case Follow():
                waits = tuple(n for d in operator.deadlines for n in (d.variable, d.window))
                cells = {KIND: FOLLOW, FIRST: operator.first, SECOND: operator.second}
                cells |= more(waits)
            case Repeat():
                cells = {KIND: REPEAT, FIRST: operator.operand, SECOND: operator.operand}
                cells |= {STARTS: number(operator.start)}
            case Exclude():
                cells = {KIND: EXCLUDE, FIRST: operator.operand, SECOND: operator.negated}
                cells |= {TEST: number(operator.condition), **more(operator.since)}
                cells |= {FLAGS: REPORTS if operator.reports else 0}
            case _:
                assert_never(operator)
        if isinstance(operator, Follow | Repeat):
            flags = (UNORDERED if operator.may_be_unordered else 0) | (
                CAPPED if isinstance(operator, Repeat) and operator.is_capped else 0
            )
            cells |= {SKIP: number(operator.skip), TEST: number(operator.test), FLAGS: flags}
            cells |= {FIRST_KEY: number(operator.first_key)}
            cells |= {SECOND_KEY: number(operator.second_key)}
        for column, value in cells.items():
            row[column] = value
    return OperatorTable(rows, np.array(extra or [0], np.int64), tuple(conditions))
