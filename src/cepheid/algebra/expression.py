"""Typed scalar expressions over the events of a match: one family for all five languages.

Truth is two-valued and decided at the *atom* (a comparison, or a call that answers yes or no):
an atom that touches an absent attribute is whatever the language says (`Absent`), else an atom with
an undefined operand (null, NaN, a division by zero, an overflow) is false. AND, OR and NOT then
work on plain truth values, so NOT of an undefined atom is true (docs/semantics.md#conditions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from cepheid.model.diagnostics import Span


class ScalarType(Enum):
    """The types an expression can have; UNKNOWN until the events' schema is known."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    TIMESTAMP = "timestamp"
    UNKNOWN = "unknown"


class Absent(Enum):
    """What an atom is when it refers to an attribute the event does not have."""

    TRUE = "true"
    FALSE = "false"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class _Expression:
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Literal(_Expression):
    """A constant."""

    value: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Parameter(_Expression):
    """`:name`, given by the caller as a value, never as text."""

    name: str


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time as written: `12 hours`, `10` (ticks), or `:w hours`."""

    amount: int | float | Parameter
    unit: str | None = None


Window: TypeAlias = int | Duration


@dataclass(frozen=True, slots=True)
class Attribute(_Expression):
    """`variable.name`: the attribute of the event (the last one, for an iterated variable)."""

    variable: str
    name: str


@dataclass(frozen=True, slots=True)
class Previous(_Expression):
    """NEXT's `PREV(x.f)`: the latest already bound x; with none the atom is true."""

    variable: str
    name: str


@dataclass(frozen=True, slots=True)
class Every(_Expression):
    """NEXT's `ALL(x.f)`: the atom must hold for all already bound x; true for none."""

    variable: str
    name: str


@dataclass(frozen=True, slots=True)
class Arithmetic(_Expression):
    """`left op right` with op one of + - * /; division is real, undefined by zero."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Negative(_Expression):
    """`-operand`."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Call(_Expression):
    """A function of FUNCTIONS over its arguments; one that answers BOOL is an atom."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Compare(_Expression):
    """An atom: op is one of = != < <= > >=."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Apart(_Expression):
    """An atom: the ends of two variables' events lie at most `window` apart, whichever is first.

    Of an iterated variable the last event counts. If one of the two is not bound it is false,
    whatever the language says of absent attributes.
    """

    first: str
    second: str
    window: Window


@dataclass(frozen=True, slots=True)
class And(_Expression):
    """All operands hold; true for none."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(_Expression):
    """Some operand holds; false for none."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(_Expression):
    """The operand does not hold."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Aggregate(_Expression):
    """count, sum, avg, min or max over the events of one match (RETURN only).

    Over all positive events that have attribute `name` (undefined values are skipped), or over
    one variable's events when `variable` is given; `count` without a name counts events.
    """

    function: str
    name: str | None
    variable: str | None = None


Expression: TypeAlias = (
    Literal
    | Parameter
    | Attribute
    | Previous
    | Every
    | Arithmetic
    | Negative
    | Call
    | Compare
    | Apart
    | And
    | Or
    | Not
    | Aggregate
)

TRUE = And(())
FALSE = Or(())

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

FUNCTIONS: dict[str, tuple[tuple[ScalarType, ...], ScalarType]] = {
    # name: (argument types, result type); FLOAT also takes INT, and abs, least and greatest of
    # integers only are integers
    "abs": ((ScalarType.FLOAT,), ScalarType.FLOAT),
    "sqrt": ((ScalarType.FLOAT,), ScalarType.FLOAT),
    "least": ((ScalarType.FLOAT, ScalarType.FLOAT), ScalarType.FLOAT),
    "greatest": ((ScalarType.FLOAT, ScalarType.FLOAT), ScalarType.FLOAT),
    "length": ((ScalarType.STRING,), ScalarType.INT),
    "lower": ((ScalarType.STRING,), ScalarType.STRING),
    "upper": ((ScalarType.STRING,), ScalarType.STRING),
    "concat": ((ScalarType.STRING, ScalarType.STRING), ScalarType.STRING),
    "contains": ((ScalarType.STRING, ScalarType.STRING), ScalarType.BOOL),
    "starts_with": ((ScalarType.STRING, ScalarType.STRING), ScalarType.BOOL),
    "ends_with": ((ScalarType.STRING, ScalarType.STRING), ScalarType.BOOL),
}
"""`lower` and `upper` change the ASCII letters only, so that every host agrees on them."""


def children(node: Expression) -> tuple[Expression, ...]:
    """The direct operands of an expression."""
    match node:
        case Arithmetic(_, left, right) | Compare(_, left, right):
            return (left, right)
        case Negative(operand) | Not(operand):
            return (operand,)
        case Call(_, operands) | And(operands) | Or(operands):
            return operands
        case _:
            return ()


def walk(node: Expression) -> Iterator[Expression]:
    """The expression and everything below it, without recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(children(current))


def rebuild(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The same expression with `change` applied to every node, bottom up."""
    match node:
        case Arithmetic() | Compare():
            changed: Expression = replace(
                node, left=rebuild(node.left, change), right=rebuild(node.right, change)
            )
        case Negative() | Not():
            changed = replace(node, operand=rebuild(node.operand, change))
        case Call():
            changed = replace(node, arguments=tuple(rebuild(a, change) for a in node.arguments))
        case And() | Or():
            changed = replace(node, operands=tuple(rebuild(o, change) for o in node.operands))
        case _:
            changed = node
    return change(changed)


def variables(node: Expression) -> frozenset[str]:
    """The pattern variables an expression refers to."""
    found: set[str] = set()
    for part in walk(node):
        if isinstance(part, Apart):
            found.update((part.first, part.second))
        elif isinstance(part, Attribute | Previous | Every | Aggregate):
            found.update(() if part.variable is None else (part.variable,))
    return frozenset(found)


def attributes(node: Expression) -> frozenset[tuple[str, str]]:
    """The (variable, attribute) pairs an expression refers to."""
    return frozenset(
        (part.variable, part.name)
        for part in walk(node)
        if isinstance(part, Attribute | Previous | Every)
    )


def conjuncts(node: Expression) -> tuple[Expression, ...]:
    """The operands of the top-level ANDs, flattened; TRUE has none."""
    if isinstance(node, And):
        return tuple(part for operand in node.operands for part in conjuncts(operand))
    return (node,)


def conjunction(parts: tuple[Expression, ...] | list[Expression]) -> Expression:
    """The AND of the parts; TRUE for none, the part itself for one."""
    flat = tuple(p for part in parts for p in conjuncts(part))
    return flat[0] if len(flat) == 1 else And(flat)
