"""The syntax tree of SASE: what was written and where, before any name is looked up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from cepheid.model.diagnostics import Span


@dataclass(frozen=True, slots=True)
class _Written:
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class _Nested(_Written):
    """`depth` counts the nodes below, so that walks can recurse without fear."""

    depth: int = field(default=1, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Name(_Written):
    """An identifier, without its backticks."""

    text: str


@dataclass(frozen=True, slots=True)
class Number(_Nested):
    """A number; None when it is too large to be one."""

    value: int | float | None


@dataclass(frozen=True, slots=True)
class String(_Nested):
    """A string without its quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Boolean(_Nested):
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class ParameterName(_Nested):
    """`:name`."""

    name: str


Constant: TypeAlias = Number | String | Boolean | ParameterName


@dataclass(frozen=True, slots=True)
class Reference(_Nested):
    """`variable.attribute`, or an attribute alone."""

    variable: Name | None
    attribute: Name


@dataclass(frozen=True, slots=True)
class Item(_Written):
    """A value or condition in a list, with its alias; only RETURN lists may have aliases."""

    value: Term
    alias: Name | None


@dataclass(frozen=True, slots=True)
class FunctionCall(_Nested):
    """`function(item, ...)`, or `function(*)`."""

    function: Name
    arguments: tuple[Item, ...]
    star: bool = False


@dataclass(frozen=True, slots=True)
class Group(_Nested):
    """Parentheses around several items, or around one with an alias."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Binary(_Nested):
    """`left op right` with op one of + - * /."""

    op: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Minus(_Nested):
    """`-operand`."""

    operand: Term


@dataclass(frozen=True, slots=True)
class Comparison(_Nested):
    """`operands[0] ops[0] operands[1] ...`; more than one operator is refused later."""

    operands: tuple[Term, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry(_Written):
    """`attribute` or `attribute = constant` within brackets."""

    attribute: Name
    op: str | None = None
    constant: Constant | None = None


@dataclass(frozen=True, slots=True)
class Equivalence(_Nested):
    """`[a, b = '1']`: equality of the attributes over all components."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Negation(_Nested):
    """`NOT condition`, which SASE does not have: kept to say what to write instead."""

    operand: Term


@dataclass(frozen=True, slots=True)
class Conjunction(_Nested):
    """`operand ∧ operand ...`."""

    operands: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Disjunction(_Nested):
    """`operand ∨ operand ...`."""

    operands: tuple[Term, ...]


Term: TypeAlias = (
    Constant
    | Reference
    | FunctionCall
    | Group
    | Binary
    | Minus
    | Comparison
    | Equivalence
    | Negation
    | Conjunction
    | Disjunction
)


@dataclass(frozen=True, slots=True)
class Component(_Written):
    """One component of the pattern; `negator` is the sign that was written before it."""

    types: tuple[Name, ...]
    variable: Name | None
    negator: Name | None = None


@dataclass(frozen=True, slots=True)
class Within(_Written):
    """`WITHIN amount [unit]`; a bare word as amount is the parameter of that name."""

    amount: Number | ParameterName
    unit: Name | None


@dataclass(frozen=True, slots=True)
class Returning(_Written):
    """`RETURN item, ...`; the items may be one call that is really a type and its list."""

    items: tuple[Item, ...]
    type: Name | None = None


@dataclass(frozen=True, slots=True)
class QueryText(_Written):
    """One query."""

    name: Name | None
    components: tuple[Component, ...]
    where: Term | None
    within: Within | None
    returning: Returning | None


@dataclass(frozen=True, slots=True)
class ProgramText:
    """The queries of one text, in order."""

    queries: tuple[QueryText, ...]
