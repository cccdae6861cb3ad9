"""Looks up the attributes a query refers to, and tells what is wrong with missing ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from cepheid.algebra.expression import Attribute
from cepheid.languages.findings import Findings
from cepheid.languages.scope import Binding, Scope
from cepheid.languages.terms import Name, Reference
from cepheid.model.diagnostics import did_you_mean


@dataclass(frozen=True, slots=True)
class References(ABC):
    """The lookup for one clause; only the list of results may not refer to negated components."""

    scope: Scope
    findings: Findings
    in_result: bool = False
    without_null: ClassVar[str]
    """The help for a comparison with null, which the languages decide differently."""

    # What the languages differ in

    @abstractmethod
    def accept_absent(self, binding: Binding, name: Name) -> bool:
        """Whether a test of an attribute that the component's events never have is worth it."""

    @abstractmethod
    def refuse_negated(self, reference: Reference, binding: Binding) -> None:
        """Note that a result can not refer to a negated component."""

    @abstractmethod
    def how_to_make(self, type: str) -> str:
        """The help for an attribute of a query that does not say which attributes it makes."""

    # What they share

    def attribute(self, reference: Reference) -> Attribute | None:
        """The attribute of a component's event; None after noting why there is none."""
        if self._is_null(reference):
            self._refuse_null(reference)
            return None
        binding = self._binding(reference)
        if binding is None:
            return None
        name = reference.attribute
        if not self.may_have(binding, name.text) and not self.accept_absent(binding, name):
            self.note_unknown(name, (binding,))
            return None
        return Attribute(binding.variable, name.text, span=reference.span)

    def may_have(self, binding: Binding, name: str) -> bool:
        """Whether events of a component can have an attribute."""
        return self.scope.attribute_type(binding, name) is not None

    def note_unknown(self, name: Name, bindings: tuple[Binding, ...]) -> None:
        """Note that none of the components has an attribute."""
        known = [each for binding in bindings for each in self.scope.known_attributes(binding)]
        types = tuple(dict.fromkeys(each for binding in bindings for each in binding.types))
        in_words = enumerate_names(types, "or")
        message, label = f"the events have no attribute `{name.text}`", "no such attribute"
        if all(each in self.scope.catalogue.types for each in types):
            label = f"not an attribute of {in_words}"
            message = f"no event type of the pattern has an attribute `{name.text}`"
            if len(types) == 1:
                message = f"event type {in_words} has no attribute `{name.text}`"
            elif len(bindings) == 1:
                message = f"no event type of `{bindings[0].variable}` has `{name.text}`"
        notes = []
        if len(bindings) == 1:
            place = self.findings.place(bindings[0].span)
            notes = [f"`{bindings[0].variable}` is bound to {in_words} at {place}"]
        self.findings.error(
            "unknown-attribute",
            message,
            name.span,
            label,
            help=self._help_for_unknown(name, known, types),
            notes=notes,
        )

    def _help_for_unknown(self, name: Name, known: list[str], types: tuple[str, ...]) -> str | None:
        for each in types:
            if each in self.scope.vocabulary.without_output:
                return self.how_to_make(each)
        near = did_you_mean(name.text, known)
        return near or (f"it has {enumerate_names(known)}" if known else None)

    def _is_null(self, reference: Reference) -> bool:
        """Whether it is the NULL of other languages, and not an attribute of that name."""
        name = reference.attribute
        if reference.variable is not None or name.text.casefold() != "null":
            return False
        is_quoted = name.span.end - name.span.start > len(name.text)
        known = (self.scope.known_attributes(each) for each in self.scope.bindings)
        return not is_quoted and not any(name.text in names for names in known)

    def _refuse_null(self, reference: Reference) -> None:
        self.findings.error(
            "null-as-value",
            f"{reference.attribute.text} is no value to compare with",
            reference.span,
            "not a value",
            help=self.without_null,
        )

    def binding(self, variable: Name) -> Binding | None:
        """The component that binds a variable; None after noting that none does."""
        binding = self.scope.binding(variable.text)
        if binding is None:
            known = [each.variable for each in self.scope.bindings]
            near = did_you_mean(variable.text, known)
            self.findings.error(
                "unknown-variable",
                f"no component binds the variable `{variable.text}`",
                variable.span,
                "not a variable of this query",
                help=near or f"the variables are {enumerate_names(known)}",
            )
        return binding

    def _binding(self, reference: Reference) -> Binding | None:
        if reference.variable is None:
            return self._only_binding(reference.attribute)
        binding = self.binding(reference.variable)
        if binding is not None and binding.negated and self.in_result:
            self.refuse_negated(reference, binding)
            return None
        return binding

    def _only_binding(self, name: Name) -> Binding | None:
        bindings = self.scope.bindings
        if len(bindings) == 1:
            return bindings[0]
        holders = [each for each in bindings if self.may_have(each, name.text)] or bindings
        self.findings.error(
            "unqualified-attribute",
            f"`{name.text}` does not say which component it belongs to",
            name.span,
            "an attribute without a variable",
            help=f"write e.g. {holders[0].variable}.{name.text}",
            notes=("only a query with a single component may leave the variable out",),
        )
        return None


def enumerate_names(names: Iterable[str], last: str = "and") -> str:
    """Names in a sentence: `a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in dict.fromkeys(names)]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
