"""The syntax tree of conditions and values: what was written and where, in every language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from cepheid.model.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Written:
    """Something that stands in the text, at `span`."""

    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Nested(Written):
    """`depth` counts the nodes below, so that walks can recurse without fear."""

    depth: int = field(default=1, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Name(Written):
    """An identifier, without its backticks."""

    text: str


@dataclass(frozen=True, slots=True)
class Number(Nested):
    """A number; None when it is too large to be one."""

    value: int | float | None


@dataclass(frozen=True, slots=True)
class String(Nested):
    """A string without its quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Boolean(Nested):
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class ParameterName(Nested):
    """`:name`."""

    name: str


Constant: TypeAlias = Number | String | Boolean | ParameterName


@dataclass(frozen=True, slots=True)
class Reference(Nested):
    """`variable.attribute`, or an attribute alone."""

    variable: Name | None
    attribute: Name


@dataclass(frozen=True, slots=True)
class Item(Written):
    """A value or condition in a list, with its alias; only the list of results may have aliases."""

    value: Term
    alias: Name | None


@dataclass(frozen=True, slots=True)
class FunctionCall(Nested):
    """`function(item, ...)`, or `function(*)`."""

    function: Name
    arguments: tuple[Item, ...]
    star: bool = False


@dataclass(frozen=True, slots=True)
class Binary(Nested):
    """`left op right` with op one of + - * /."""

    op: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Minus(Nested):
    """`-operand`."""

    operand: Term


@dataclass(frozen=True, slots=True)
class Comparison(Nested):
    """`operands[0] ops[0] operands[1] ...`; more than one operator is refused later."""

    operands: tuple[Term, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Negation(Nested):
    """`NOT condition`."""

    operand: Term


@dataclass(frozen=True, slots=True)
class Conjunction(Nested):
    """`operand ∧ operand ...`."""

    operands: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Disjunction(Nested):
    """`operand ∨ operand ...`."""

    operands: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class OwnTerm(Nested):
    """A term that only one language has; that language's translation knows what it means."""


Term: TypeAlias = (
    Constant
    | Reference
    | FunctionCall
    | Binary
    | Minus
    | Comparison
    | Negation
    | Conjunction
    | Disjunction
    | OwnTerm
)


def conditions(term: Term) -> Iterator[Term]:
    """The comparisons and tests that AND, OR and NOT join, in the order written."""
    match term:
        case Conjunction(operands) | Disjunction(operands):
            for operand in operands:
                yield from conditions(operand)
        case Negation(operand):
            yield from conditions(operand)
        case _:
            yield term


@dataclass(frozen=True, slots=True)
class Length(Written):
    """`amount [unit]`: a length of time."""

    amount: Number | ParameterName
    unit: Name | None
