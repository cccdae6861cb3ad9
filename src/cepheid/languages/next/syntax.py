"""The syntax tree of NEXT: what was written and where, before any name is looked up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from cepheid.languages.terms import (
    Item,
    Length,
    Name,
    Nested,
    Number,
    OwnTerm,
    Reference,
    String,
    Term,
    Written,
)

# Conditions


@dataclass(frozen=True, slots=True)
class Element(OwnTerm):
    """`PREV(x.f)` or `ALL(x.f)`: elements of an iteration; `function` is the word as written."""

    function: Name
    reference: Reference


@dataclass(frozen=True, slots=True)
class Contains(OwnTerm):
    """`field CONTAINS string`."""

    text: Term
    part: Term


@dataclass(frozen=True, slots=True)
class OccursWithin(OwnTerm):
    """`(first, second) OCCURS WITHIN length`."""

    first: Name
    second: Name
    length: Length


@dataclass(frozen=True, slots=True)
class FilterTerm(OwnTerm):
    """`FILTER(condition)`: it may only stand alone between the commas of WHERE."""

    condition: Term


# Patterns


@dataclass(frozen=True, slots=True)
class Primitive(Nested):
    """`source [variable]`."""

    source: Name
    variable: Name | None


@dataclass(frozen=True, slots=True)
class Successor(Nested):
    """`first ; second`."""

    first: EventPattern
    second: EventPattern


@dataclass(frozen=True, slots=True)
class Unless(Nested):
    r"""`pattern \ exception`."""

    pattern: EventPattern
    exception: EventPattern


@dataclass(frozen=True, slots=True)
class Alternatives(Nested):
    """`pattern | pattern | ...`."""

    patterns: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class Iteration(Nested):
    """`pattern+`."""

    pattern: EventPattern


@dataclass(frozen=True, slots=True)
class Delayed(Nested):
    """`pattern @ delay`."""

    pattern: EventPattern
    delay: Length


EventPattern: TypeAlias = Primitive | Successor | Unless | Alternatives | Iteration | Delayed


def primitives(pattern: EventPattern, negated: bool = False) -> Iterator[tuple[Primitive, bool]]:
    """The sources of a pattern in the order written, and whether each only raises an exception."""
    match pattern:
        case Primitive():
            yield pattern, negated
        case Successor(first, second):
            yield from primitives(first, negated)
            yield from primitives(second, negated)
        case Unless(inner, exception):
            yield from primitives(inner, negated)
            yield from primitives(exception, True)
        case Alternatives(patterns):
            for each in patterns:
                yield from primitives(each, negated)
        case Iteration(inner) | Delayed(inner):
            yield from primitives(inner, negated)
        case _:
            assert_never(pattern)


def delays(pattern: EventPattern) -> Iterator[Delayed]:
    """The delayed parts of a pattern."""
    match pattern:
        case Primitive():
            pass
        case Successor(first, second) | Unless(first, second):
            yield from delays(first)
            yield from delays(second)
        case Alternatives(patterns):
            for each in patterns:
                yield from delays(each)
        case Iteration(inner):
            yield from delays(inner)
        case Delayed(inner):
            yield pattern
            yield from delays(inner)
        case _:
            assert_never(pattern)


# Statements


@dataclass(frozen=True, slots=True)
class Field(Written):
    """`name [type]` of a schema."""

    name: Name
    type: Name | None


@dataclass(frozen=True, slots=True)
class Renaming(Written):
    """`own AS field`: what the source's records call a field of the schema."""

    own: Name
    field: Name


@dataclass(frozen=True, slots=True)
class ClockError(Written):
    """`clock error amount [unit]`."""

    amount: Number
    unit: Name | None


@dataclass(frozen=True, slots=True)
class SourceRegistration(Written):
    """`register source name schema (...) ...`."""

    name: Name
    fields: tuple[Field, ...]
    renamings: tuple[Renaming, ...]
    time: tuple[Name, ...]
    clock_error: ClockError | None


@dataclass(frozen=True, slots=True)
class SinkRegistration(Written):
    """`register sink name ...`; None where the text is silent."""

    name: Name
    fields: tuple[Field, ...] | None
    kind: Name | None
    path: String | None


@dataclass(frozen=True, slots=True)
class QueryText(Written):
    """One query; no items mean `SELECT *`."""

    name: Name | None
    items: tuple[Item, ...]
    pattern: EventPattern
    qualifications: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ProgramText:
    """The statements of one text, each kind in order."""

    sources: tuple[SourceRegistration, ...]
    sinks: tuple[SinkRegistration, ...]
    queries: tuple[QueryText, ...]
