"""The names a query can use: its components' variables and the attributes of their types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cepheid.algebra.expression import (
    Aggregate,
    Attribute,
    Every,
    Expression,
    Previous,
    ScalarType,
    walk,
)
from cepheid.languages.findings import Findings
from cepheid.languages.terms import Name
from cepheid.model.catalogue import AttributeType, Catalogue, EventType
from cepheid.model.diagnostics import Span

_WITH_NAME = (Attribute, Aggregate, Previous, Every)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The types a query may name: the catalogue's, and those that earlier queries make.

    `derived` are the types of earlier queries; those that do not say which attributes their events
    have are in `without_output`, too: these have none.
    """

    catalogue: Catalogue
    derived: frozenset[str] = frozenset()
    without_output: frozenset[str] = frozenset()

    def with_query(self, type: str, output: Mapping[str, AttributeType] | None) -> Vocabulary:
        """The vocabulary of the queries after one that makes events of `type`."""
        return Vocabulary(
            self.catalogue.with_type(EventType(type, output or {})),
            self.derived | {type},
            self.without_output | {type} if output is None else self.without_output,
        )


@dataclass(frozen=True, slots=True)
class Binding:
    """A component with the variable it binds."""

    variable: str
    types: tuple[str, ...]
    negated: bool
    span: Span

    @property
    def types_in_words(self) -> str:
        """The types as they stand in messages."""
        return " or ".join(f"`{name}`" for name in self.types)


@dataclass(frozen=True, slots=True)
class Scope:
    """The bindings of one query, in pattern order, with the vocabulary it is checked against."""

    bindings: tuple[Binding, ...]
    vocabulary: Vocabulary

    @property
    def catalogue(self) -> Catalogue:
        """What is known of the types."""
        return self.vocabulary.catalogue

    @property
    def positives(self) -> tuple[Binding, ...]:
        """The components whose events are in a match."""
        return tuple(binding for binding in self.bindings if not binding.negated)

    @property
    def negatives(self) -> tuple[Binding, ...]:
        """The components whose events must be missing."""
        return tuple(binding for binding in self.bindings if binding.negated)

    def binding(self, variable: str) -> Binding | None:
        """The component that binds a variable."""
        return next((each for each in self.bindings if each.variable == variable), None)

    def attribute_type(self, binding: Binding, name: str) -> ScalarType | None:
        """The type of an attribute over all types of a component; None if none of them has it."""
        kinds = [
            kind
            for each in binding.types
            if (kind := self.catalogue.attribute(each, name)) is not None
        ]
        if not kinds:
            return None
        merged = kinds[0]
        for kind in kinds[1:]:
            merged = merged.merge(kind)
        return ScalarType(merged.value)

    def may_be_absent(self, binding: Binding, name: str) -> bool:
        """Whether an attribute that no type of the component has is still worth a test.

        Where a test of an absent attribute is true (docs/semantics.md#null-and-absent), an
        attribute of other types is legal; one that no type can have is a slip, and so is any that
        the query that makes the events left out.
        """
        if self.vocabulary.derived.issuperset(binding.types):
            return False
        types = [each for component in self.bindings for each in component.types]
        has_open_type = any(self.catalogue.attributes(each) is None for each in types)
        return has_open_type or self.catalogue.knows_attribute(name)

    def types_in(self, expression: Expression) -> dict[tuple[str, str], ScalarType]:
        """The type of every attribute in an expression, as far as the catalogue knows it."""
        types: dict[tuple[str, str], ScalarType] = {}
        for part in walk(expression):
            if isinstance(part, _WITH_NAME) and part.name is not None:
                for binding in self.bindings:
                    kind = self.attribute_type(binding, part.name)
                    if part.variable in (None, binding.variable) and kind is not None:
                        types[binding.variable, part.name] = kind
        return types

    def known_attributes(self, binding: Binding) -> tuple[str, ...]:
        """The names of the attributes a component may have, as far as known."""
        names: dict[str, AttributeType] = {}
        for each in binding.types:
            names.update(self.catalogue.attributes(each) or {})
        return tuple(names)


def declare(variable: Name, declared: dict[str, Span], findings: Findings) -> None:
    """Note a variable that a text names; one that is declared already is refused."""
    first = declared.setdefault(variable.text, variable.span)
    if first is not variable.span:
        findings.error(
            "duplicate-variable",
            f"two components bind the variable `{variable.text}`",
            variable.span,
            "bound a second time",
            notes=(f"first bound at {findings.place(first)}",),
            help="give each component a variable of its own",
        )


def implicit_variables(types: Iterable[str], taken: Iterable[str]) -> Iterator[str]:
    """`E1`, then `E1_2` for a repeat: the variables of components that name only their type."""
    names = set(taken)
    for type in types:
        legal = re.sub(r"\W", "_", type)
        name, count = legal, 1
        while name in names:
            count += 1
            name = f"{legal}_{count}"
        names.add(name)
        yield name
