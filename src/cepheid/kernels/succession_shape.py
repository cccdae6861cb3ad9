"""What a kernel of NEXT's operators looks like: the operators in the order in which they work.

Operators are numbered from 0, operands before those that use them. What an operator finds may be
used by several others, of several queries; those whose findings are matches are the roots. All work
on the events of one end at a time (SPEC A1.4: "the next stable set of events").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

import numpy as np


@dataclass(frozen=True, slots=True)
class Condition:
    """The body of a generated function over `m` (bound so far) and `q` (what comes next).

    `lines` fetch what `answer` uses. The planner writes both (planner.succession_conditions). They
    count constants from places of their own, so that conditions that differ in nothing else share
    one text.
    """

    lines: tuple[str, ...]
    answer: str
    first_int: int = 0
    first_float: int = 0

    @property
    def is_true(self) -> bool:
        """Whether it always holds."""
        return self.answer == "True"


ALWAYS = Condition((), "True")


@dataclass(frozen=True, slots=True)
class Totals:
    """What is kept of the events of a run (running_totals).

    `lanes` is the first of the two rows of `facts` that hold the events' hashes; `measured` are
    attributes, as the row of `facts`, or of the table of floats, that holds each.
    """

    lanes: int
    measured: tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """Events that touch atom number `atom`, bound to variable number `variable`."""

    atom: int
    variable: int
    totals: Totals | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """Composites that another graph has found: the last event of each touches atom `atom`.

    Their events lie side by side, and tell in place of a mask how they belong together
    (match_nodes.GIVEN_PLACE).
    """

    atom: int


@dataclass(frozen=True, slots=True)
class Merge:
    """What any of the operators finds.

    `renamings` tell for each of them what its variables 0, 1, ... are called here; one that is
    empty lets them be.
    """

    operands: tuple[int, ...]
    renamings: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Test:
    """What an operator finds, if it passes."""

    operand: int
    condition: Condition


@dataclass(frozen=True, slots=True)
class Deadline:
    """A match may wait until `window` after its event of a variable, or after OWN_START."""

    variable: int
    window: int


@dataclass(frozen=True, slots=True)
class Follow:
    """Matches of `first` wait for their immediate successor among those of `second`.

    `first_key` and `second_key` give a hash of what `skip` compares for equality; `skip` itself is
    tested too, so that hashes may collide. `may_be_unordered` says that what `second` finds has to
    be put in the stable order first. An instance is let go when all groups of `deadlines` are over,
    each with its earliest one; without a group it waits for ever. The variables of what follows are
    called `shift` more here.
    """

    first: int
    second: int
    skip: Condition
    test: Condition
    first_key: Condition
    second_key: Condition
    deadlines: tuple[tuple[Deadline, ...], ...]
    may_be_unordered: bool
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Repeat:
    """All runs of immediate successors; a run is at most `most` long if that is given.

    Runs are let go as the matches of Follow are. Where elements are runs themselves, the same
    events may make several runs, and `may_repeat` says so: each is found once. One that
    `keeps_totals` makes one node of a run, where its operand is a leaf with totals. What it finds
    has a rank where it `ranks` it: for operators that look for the earliest of runs.
    """

    operand: int
    start: Condition
    skip: Condition
    test: Condition
    first_key: Condition
    second_key: Condition
    may_be_unordered: bool
    is_capped: bool
    deadlines: tuple[tuple[Deadline, ...], ...] = ()
    may_repeat: bool = False
    keeps_totals: bool = False
    ranks: bool = False


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


@dataclass(frozen=True, slots=True)
class Delay:
    """What `operand` finds, `delay` later: an instant follows it."""

    operand: int
    delay: int


Operator: TypeAlias = Leaf | Given | Merge | Test | Follow | Repeat | Exclude | Delay


def operands_of(operator: Operator) -> tuple[int, ...]:
    """The operators whose findings an operator reads."""
    match operator:
        case Leaf() | Given():
            return ()
        case Merge():
            return operator.operands
        case Follow():
            return (operator.first, operator.second)
        case Exclude():
            return (operator.operand, operator.negated)
        case Test() | Repeat() | Delay():
            return (operator.operand,)


@dataclass(frozen=True, slots=True)
class SuccessionShape:
    """The operators, operands before those that use them, and those whose findings are matches."""

    operators: tuple[Operator, ...]
    roots: tuple[int, ...]

    @property
    def measured(self) -> int | None:
        """How many attributes the totals of a run measure at most; None without any totals."""
        kept = [each.totals for each in self.operators if isinstance(each, Leaf)]
        return max((len(each.measured) for each in kept if each is not None), default=None)


# -- as a table, for the kernel -------------------------------------------------------------------

LEAF, MERGE, TESTS, FOLLOW, REPEAT, EXCLUDE, DELAY = range(7)
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
    SHIFT,
    USERS,
    TABLE_WIDTH,
) = range(14)
"""The columns of the table: operands by number, conditions by number (-1: always true).

The operators that use this one are users[row[USERS]] to users[next row[USERS]]. A timer has its
queue's number in the place of a second operand.
"""

UNORDERED, CAPPED, REPORTS, ROOT, TOTALS, RANKED, GIVEN, REPEATED = 1, 2, 4, 8, 16, 32, 64, 128
HANDS_ON = 256
"""What an operator reads in its first operand may be a failure, which it hands on as it is."""

NO_VARIABLE, OWN_START = -1, -2
"""In place of a variable: the end of a group of deadlines, the start of the whole match."""


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """The operators as rows, with an empty one behind them, and what does not fit into rows.

    The empty one has the flag GIVEN if any operator has it.
    `conditions` are the distinct texts; `calls` has a row for each condition of an operator: its
    text, and where its constants begin. `leaves` are pairs of atom and operator, sorted. `timers`
    are the operators that delay, each with a queue of its own.
    """

    rows: np.ndarray
    extra: np.ndarray
    users: np.ndarray
    leaves: np.ndarray
    timers: np.ndarray
    conditions: tuple[Condition, ...]
    calls: np.ndarray


def table(shape: SuccessionShape) -> OperatorTable:
    """The operators as the kernel reads them."""
    return _TableBuilder(shape).table()


class _TableBuilder:
    def __init__(self, shape: SuccessionShape) -> None:
        self._shape = shape
        self._extra: list[int] = []
        self._texts: dict[Condition, int] = {}
        self._calls: dict[Condition, int] = {}

    def table(self) -> OperatorTable:
        operators = self._shape.operators
        rows = np.full((len(operators) + 1, TABLE_WIDTH), -1, np.int64)
        users: list[list[int]] = [[] for _ in operators]
        leaves = []
        timers: list[int] = []
        for number, (row, operator) in enumerate(zip(rows, operators, strict=False)):
            row[FLAGS] = row[EXTRAS] = row[SHIFT] = 0
            for column, value in self._cells(operator).items():
                row[column] = value
            if any(rows[each, FLAGS] & (REPORTS | HANDS_ON) for each in _heads(operator)):
                row[FLAGS] |= HANDS_ON
            for operand in dict.fromkeys(operands_of(operator)):
                users[operand].append(number)
            if isinstance(operator, Leaf | Given):
                leaves.append((operator.atom, number))
            if isinstance(operator, Delay):
                row[SECOND] = len(timers)
                timers.append(number)
        for root in self._shape.roots:
            rows[root, FLAGS] |= ROOT
        some_given = any(isinstance(each, Given) for each in operators)
        rows[-1, FLAGS] = GIVEN if some_given else 0
        rows[:, USERS] = np.cumsum([0, *map(len, users)])
        calls = [(self._texts[_text(c)], c.first_int, c.first_float) for c in self._calls]
        return OperatorTable(
            rows,
            np.array(self._extra or [0], np.int64),
            np.array([n for each in users for n in each] or [0], np.int64),
            np.array(sorted(leaves), np.int64).reshape(-1, 2),
            np.array(timers, np.int64),
            tuple(self._texts),
            np.array(calls, np.int64).reshape(-1, 3),
        )

    def _number(self, condition: Condition) -> int:
        if condition.is_true:
            return -1
        self._texts.setdefault(_text(condition), len(self._texts))
        return self._calls.setdefault(condition, len(self._calls))

    def _more(self, values: list[int]) -> dict[int, int]:
        self._extra.extend(values)
        return {EXTRA: len(self._extra) - len(values), EXTRAS: len(values)}

    def _cells(self, operator: Operator) -> dict[int, int]:
        number = self._number
        match operator:
            case Leaf():
                cells = {KIND: LEAF, SECOND: operator.variable}
                if operator.totals is None:
                    return cells
                measured = [n for each in operator.totals.measured for n in each]
                return cells | self._more([operator.totals.lanes, *measured]) | {FLAGS: TOTALS}
            case Given():
                return {KIND: LEAF, FLAGS: GIVEN}
            case Merge():
                return {KIND: MERGE, **self._merged(operator)}
            case Test():
                return {
                    KIND: TESTS,
                    FIRST: operator.operand,
                    TEST: number(operator.condition),
                }
            case Follow():
                cells = {KIND: FOLLOW, FIRST: operator.first, SECOND: operator.second}
                return cells | self._waits(operator) | {SHIFT: operator.shift}
            case Repeat():
                cells = {KIND: REPEAT, FIRST: operator.operand, SECOND: operator.operand}
                return cells | {STARTS: number(operator.start)} | self._waits(operator)
            case Exclude():
                cells = {KIND: EXCLUDE, FIRST: operator.operand, SECOND: operator.negated}
                cells |= {TEST: number(operator.condition), **self._more(list(operator.since))}
                return cells | {FLAGS: REPORTS if operator.reports else 0}
            case Delay():
                return {KIND: DELAY, FIRST: operator.operand, **self._more([operator.delay])}
            case _:
                assert_never(operator)

    def _merged(self, operator: Merge) -> dict[int, int]:
        """Pairs of an operand and where its renaming begins, -1 for none."""
        places = []
        for renaming in operator.renamings:
            places.append(len(self._extra) if renaming else -1)
            self._extra.extend(renaming)
        pairs = zip(operator.operands, places, strict=True)
        return self._more([n for pair in pairs for n in pair])

    def _waits(self, operator: Follow | Repeat) -> dict[int, int]:
        """The columns of operators whose instances wait."""
        flags = UNORDERED if operator.may_be_unordered else 0
        if isinstance(operator, Repeat):
            flags |= CAPPED if operator.is_capped else 0
            flags |= REPEATED if operator.may_repeat else 0
            flags |= TOTALS if operator.keeps_totals else 0
            flags |= RANKED if operator.ranks else 0
        until = [
            n
            for group in operator.deadlines
            for each in (*group, Deadline(NO_VARIABLE, 0))
            for n in (each.variable, each.window)
        ]
        return self._more(until) | {
            SKIP: self._number(operator.skip),
            TEST: self._number(operator.test),
            FLAGS: flags,
            FIRST_KEY: self._number(operator.first_key),
            SECOND_KEY: self._number(operator.second_key),
        }


def _heads(operator: Operator) -> tuple[int, ...]:
    """The operands whose matches an operator's own begin with."""
    return operator.operands if isinstance(operator, Merge) else operands_of(operator)[:1]


def _text(condition: Condition) -> Condition:
    """The condition as its text alone."""
    return Condition(condition.lines, condition.answer)
