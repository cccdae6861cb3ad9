"""The syntax tree of SASE: what was written and where, before any name is looked up."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.languages.terms import Constant, Item, Length, Name, OwnTerm, Term, Written


@dataclass(frozen=True, slots=True)
class Group(OwnTerm):
    """Parentheses around several items, or around one with an alias."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Entry(Written):
    """`attribute` or `attribute = constant` within brackets."""

    attribute: Name
    op: str | None = None
    constant: Constant | None = None


@dataclass(frozen=True, slots=True)
class Equivalence(OwnTerm):
    """`[a, b = '1']`: equality of the attributes over all components."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Component(Written):
    """One component of the pattern; `negator` is the sign that was written before it."""

    types: tuple[Name, ...]
    variable: Name | None
    negator: Name | None = None


@dataclass(frozen=True, slots=True)
class Returning(Written):
    """`RETURN item, ...`; the items may be one call that is really a type and its list."""

    items: tuple[Item, ...]
    type: Name | None = None


@dataclass(frozen=True, slots=True)
class QueryText(Written):
    """One query; a bare word as the length of WITHIN is the parameter of that name."""

    name: Name | None
    components: tuple[Component, ...]
    where: Term | None
    within: Length | None
    returning: Returning | None


@dataclass(frozen=True, slots=True)
class ProgramText:
    """The queries of one text, in order."""

    queries: tuple[QueryText, ...]
