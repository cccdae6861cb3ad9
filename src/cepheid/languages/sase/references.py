"""What is special about references in SASE: an absent attribute makes a test true."""

from __future__ import annotations

from typing import ClassVar

from cepheid.languages.references import References
from cepheid.languages.sase.syntax_errors import WITHOUT_NULL
from cepheid.languages.scope import Binding
from cepheid.languages.terms import Name, Reference


class SaseReferences(References):
    """The lookup for one clause of a SASE query."""

    without_null: ClassVar[str] = WITHOUT_NULL

    def accept_absent(self, binding: Binding, name: Name) -> bool:
        """Accept, with a warning, what other types have: the paper makes such a test true."""
        if not self.scope.may_be_absent(binding, name.text):
            return False
        self.findings.warning(
            "absent-attribute",
            f"events of type {binding.types_in_words} never have `{name.text}`",
            name.span,
            "every comparison with it is true",
        )
        return True

    def refuse_negated(self, reference: Reference, binding: Binding) -> None:
        """Tell that RETURN has nothing to return."""
        variable = binding.variable
        self.findings.error(
            "negative-in-return",
            f"`{variable}` is negated, so a match has no event for it",
            reference.span,
            "nothing to return",
            notes=(f"`{variable}` is negated at {self.findings.place(binding.span)}",),
            help="return attributes of the components without `!`",
        )

    def how_to_make(self, type: str) -> str:
        """Tell of the RETURN clause."""
        return f"give the query `{type}` a RETURN clause that makes the attribute"
