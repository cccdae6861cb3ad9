"""The nodes of the algebra: what a pattern means, for all five languages (docs/semantics.md).

Every difference between the languages is a field of a node, never a global setting.
Nodes are frozen, compared by structure, and have no behaviour beyond their own facts. A query is
*open* while it holds `Duration` and `Parameter` values; `bind` (bind.py) turns it into a *closed*
one whose windows are integers in the time column's unit. Only closed trees are run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from cepheid.algebra.expression import TRUE, Absent, Expression, Window
from cepheid.model.diagnostics import Span


class Measure(Enum):
    """What a window limits (docs/semantics.md#within)."""

    LAST_MINUS_FIRST = "last_minus_first"  # te - ts of the whole match
    END_TO_END = "end_to_end"  # |end(second) - end(first)| of two named variables


class Order(Enum):
    """When one operand follows another in a Seq."""

    STRICT = "strict"  # end < start: ties never follow
    SEQUENCE = "sequence"  # (time, arrival number): SASE's tie=seqno option


class Extreme(Enum):
    """The outer choice of a TimeBound over its groups."""

    MIN = "min"
    MAX = "max"


class Side(Enum):
    """Which side of a group of events a TimeBound looks at."""

    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class TimeBound:
    """An affine time of a match: extreme over groups of (start|end) + windows*w + ticks*tick.

    A group is the variables of one operand; its start is their least start, its end their greatest
    end. `windows` and `ticks` are multipliers, so that open trees can be printed and compared.
    """

    extreme: Extreme
    side: Side
    groups: tuple[tuple[str, ...], ...]
    windows: int = 0
    ticks: int = 0


@dataclass(frozen=True, slots=True)
class _Node:
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Atom(_Node):
    """One match per event of the given types with `predicate`; no types means any event."""

    types: tuple[str, ...]
    variable: str
    predicate: Expression = TRUE
    absent: Absent = Absent.TRUE


@dataclass(frozen=True, slots=True)
class Filter(_Node):
    """The matches of `pattern` for which `predicate` holds."""

    pattern: Pattern
    predicate: Expression
    absent: Absent = Absent.TRUE


@dataclass(frozen=True, slots=True)
class Union(_Node):
    """Bag union."""

    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Dedup(_Node):
    """The first match by (te, ts, id) for each value of the key expressions."""

    pattern: Pattern
    key: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Map(_Node):
    """Each match becomes one event of type `type` with interval [ts, te] and derived attributes."""

    pattern: Pattern
    type: str
    attributes: tuple[tuple[str, Expression], ...]
    variable: str
    absent: Absent = Absent.TRUE


@dataclass(frozen=True, slots=True)
class Within(_Node):
    """A filter on time, named so that the optimiser sees it: measure (< | <=) w + ticks*tick."""

    pattern: Pattern
    window: Window
    inclusive: bool
    measure: Measure = Measure.LAST_MINUS_FIRST
    first: str | None = None
    second: str | None = None
    ticks: int = 0


@dataclass(frozen=True, slots=True)
class Conj(_Node):
    """All operands, in any order, ends within `window` of each other; slots pairwise different."""

    patterns: tuple[Pattern, ...]
    window: Window
    inclusive: bool = True


@dataclass(frozen=True, slots=True)
class Seq(_Node):
    """Operands one after the other; with a window, end of last - end of first (< | <=) window."""

    patterns: tuple[Pattern, ...]
    window: Window | None = None
    inclusive: bool = True
    order: Order = Order.STRICT


@dataclass(frozen=True, slots=True)
class Guard(_Node):
    """The matches m of `pattern` with no match n of `negated` whose end lies between the bounds.

    n must share no event with m and satisfy `predicate` over both. With `ends_match` the match's
    end becomes the upper bound (SASE's negated end: te := first + T - 1). `order` decides
    whether open bounds compare times or (time, arrival number).
    """

    pattern: Pattern
    negated: Pattern
    low: TimeBound
    high: TimeBound
    low_closed: bool
    high_closed: bool
    window: Window | None = None
    predicate: Expression = TRUE
    absent: Absent = Absent.TRUE
    ends_match: bool = False
    order: Order = Order.STRICT


@dataclass(frozen=True, slots=True)
class Next(_Node):
    """m.q for the immediate successors q of m among those with `skip` (phi), if `test` (theta)."""

    first: Pattern
    second: Pattern
    skip: Expression = TRUE
    test: Expression = TRUE
    absent: Absent = Absent.FALSE


@dataclass(frozen=True, slots=True)
class Plus(_Node):
    """NEXT's iteration: all prefixes of all runs of successors (docs/semantics.md#plus).

    `most` elements make a run complete: it is not extended any more.
    """

    pattern: Pattern
    skip: Expression = TRUE
    test: Expression = TRUE
    absent: Absent = Absent.FALSE
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Timer(_Node):
    """The match `delay` later: te and the stamp sequence are extended by te + delay."""

    pattern: Pattern
    delay: Window


@dataclass(frozen=True, slots=True)
class Except(_Node):
    """NEXT's exception: m dies if some n starts after the end of m[since] and precedes m.

    After a union the event that counts depends on the branch: `or_since` are the variables of the
    other branches, and the latest end of all those that m binds decides.
    """

    pattern: Pattern
    negated: Pattern
    since: str
    predicate: Expression = TRUE
    absent: Absent = Absent.FALSE
    report_failures: bool = False
    or_since: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Absence(_Node):
    """CompAS's not(N)_d: silence of length `duration` after `start` or after any N."""

    pattern: Pattern
    duration: Window
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Nth(_Node):
    """The i-th match by (te, ts), from 1."""

    pattern: Pattern
    position: int


class Selection(Enum):
    """CompAS's instance selection on one side of a Pair."""

    ALL = "all"
    FIRST = "first"
    LAST = "last"
    NTH = "nth"


class Consumption(Enum):
    """CompAS's instance consumption of a Pair."""

    ALL = "all"
    UNIQUE = "unique"
    ONCE = "once"
    REAPPLY = "reapply"


@dataclass(frozen=True, slots=True)
class Pair(_Node):
    """CompAS's (A;B)_t or (A,B)_t: selection, then consumption (docs/semantics.md#pair)."""

    first: Pattern
    second: Pattern
    ordered: bool
    window: Window
    select_first: Selection = Selection.ALL
    select_second: Selection = Selection.ALL
    nth_first: int = 1
    nth_second: int = 1
    consume: Consumption = Consumption.ALL
    key: tuple[tuple[Expression, Expression], ...] = ()
    predicate: Expression = TRUE
    absent: Absent = Absent.ERROR


class Gap(Enum):
    """The kinds of gap density AYAC's scores know."""

    EXPONENTIAL = "exponential"
    WEIBULL = "weibull"
    LOGNORMAL = "lognormal"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class GapModel:
    """The density of the gap before a component: parameters as the kind needs them."""

    kind: Gap
    parameters: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a Lossy pattern."""

    variable: str
    negated: bool
    loss: float
    gap: GapModel


@dataclass(frozen=True, slots=True)
class Lossy(_Node):
    """AYAC: sequences with components that may have been missed, scored (docs/semantics.md#lossy).

    `defaults` gives the value of variable.attribute when the variable is missing.
    """

    components: tuple[Component, ...]
    predicate: Expression
    window: Window
    threshold: float
    paper_scores: bool = False
    defaults: tuple[tuple[str, str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class Agg(_Node):
    """Edge-triggered aggregate over the matches that ended in (tau - over, tau].

    `having` sees the aggregate's value as attribute `value` and the group keys by their names, all
    of the variable `variable`.
    """

    pattern: Pattern
    over: Window
    function: str
    argument: Expression | None
    group: tuple[tuple[str, Expression], ...]
    having: Expression
    type: str
    variable: str


Pattern: TypeAlias = (
    Atom
    | Filter
    | Union
    | Dedup
    | Map
    | Within
    | Conj
    | Seq
    | Guard
    | Next
    | Plus
    | Timer
    | Except
    | Absence
    | Nth
    | Pair
    | Lossy
    | Agg
)


def operands(node: Pattern) -> tuple[Pattern, ...]:
    """The direct sub-patterns, positive ones first."""
    match node:
        case Atom() | Lossy():
            return ()
        case Union(patterns) | Conj(patterns) | Seq(patterns):
            return patterns
        case Guard() | Except():
            return (node.pattern, node.negated)
        case Next() | Pair():
            return (node.first, node.second)
        case Filter() | Dedup() | Map() | Within() | Plus() | Timer() | Absence() | Nth() | Agg():
            return (node.pattern,)


def with_operands(node: Pattern, new: tuple[Pattern, ...]) -> Pattern:
    """The same node over other sub-patterns."""
    match node:
        case Atom() | Lossy():
            return node
        case Union() | Conj() | Seq():
            return replace(node, patterns=new)
        case Guard() | Except():
            return replace(node, pattern=new[0], negated=new[1])
        case Next() | Pair():
            return replace(node, first=new[0], second=new[1])
        case Filter() | Dedup() | Map() | Within() | Plus() | Timer() | Absence() | Nth() | Agg():
            return replace(node, pattern=new[0])


def walk(node: Pattern) -> Iterator[Pattern]:
    """The pattern and everything below it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(operands(current)))


def failing(node: Pattern) -> Iterator[Except]:
    """The exceptions whose failures come out of a pattern, those of operands first.

    What reads a failure in the place of the match it is about hands it on (SPEC A1.3). What is
    waited for, and what cancels, is not such a match: the next one may still come.
    """
    match node:
        case Union():
            for each in node.patterns:
                yield from failing(each)
        case Next():
            yield from failing(node.first)
        case Filter() | Within() | Plus() | Timer() | Except():
            yield from failing(node.pattern)
    if isinstance(node, Except) and node.report_failures:
        yield node


def bound_variables(node: Pattern) -> tuple[str, ...]:
    """The variables bound in a match of the pattern, in pattern order, without repeats."""
    match node:
        case Atom(_, variable):
            return (variable,)
        case Map() | Agg():
            return (node.variable,)
        case Lossy():
            return tuple(c.variable for c in node.components if not c.negated)
        case Absence():
            return ()
        case Guard() | Except():
            return bound_variables(node.pattern)
        case _:
            seen: dict[str, None] = {}
            for operand in operands(node):
                seen.update(dict.fromkeys(bound_variables(operand)))
            return tuple(seen)
