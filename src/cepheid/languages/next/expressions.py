"""Conditions and values of a NEXT query: PREV, ALL and CONTAINS, and what the language refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cepheid.algebra.expression import Aggregate, Apart, Call, Every, Expression, Not, Previous
from cepheid.languages.durations import window_of
from cepheid.languages.expressions import ExpressionTranslator
from cepheid.languages.next.syntax import Contains, Element, FilterTerm, OccursWithin
from cepheid.languages.next.syntax_errors import WITHOUT_NULL
from cepheid.languages.references import References
from cepheid.languages.scope import Binding
from cepheid.languages.terms import FunctionCall, Name, Negation, OwnTerm, Reference, Term


class NextReferences(References):
    """The lookup for one clause of a NEXT query."""

    without_null: ClassVar[str] = WITHOUT_NULL

    def accept_absent(self, binding: Binding, name: Name) -> bool:
        """Refuse it: a test of a field that the source's events never have is always false."""
        return False

    def refuse_negated(self, reference: Reference, binding: Binding) -> None:
        """Tell that SELECT has nothing to select."""
        variable = binding.variable
        self.findings.error(
            "exception-in-select",
            f"`{variable}` raises an exception, so a result has no event for it",
            reference.span,
            "nothing to select",
            notes=(f"`{variable}` stands after `\\` at {self.findings.place(binding.span)}",),
            help="select fields of the events that are detected",
        )

    def how_to_make(self, type: str) -> str:
        """Tell of the list after SELECT."""
        return f"name the field after SELECT in the query `{type}`"


@dataclass(slots=True)
class NextExpressions(ExpressionTranslator):
    """Translates the terms of one clause; `iterated` are the variables below a `+`."""

    iterated: frozenset[str] = frozenset()
    result_clause: ClassVar[str] = "SELECT"

    def own_condition(self, term: OwnTerm) -> Expression | None:
        """`CONTAINS` and `OCCURS WITHIN` are atoms; FILTER can only stand further out."""
        match term:
            case Contains(text, part):
                values = (self.value(text), self.value(part))
                if values[0] is None or values[1] is None:
                    return None
                return Call("contains", (values[0], values[1]), span=term.span)
            case FilterTerm(condition):
                self.condition(condition)
                return self.refuse(
                    "nested-filter",
                    "FILTER is not part of another condition",
                    term.span,
                    "joined with something else",
                    "put it between commas: WHERE FILTER(...), other conditions",
                )
            case OccursWithin():
                return self.time_limit(term)
            case _:
                return None if self.value(term) is None else self.refuse_value(term)

    def time_limit(self, term: OccursWithin) -> Apart | None:
        """The time between two events as an atom; None after noting what is wrong with it."""
        findings = self.references.findings
        window = window_of(term.length, "leave OCCURS WITHIN out to have no limit", findings)
        first = self.references.binding(term.first)
        second = self.references.binding(term.second)
        if window is None or first is None or second is None:
            return None
        if first is second:
            # A parameter in it must stay to be given a value, so the limit itself stays.
            findings.warning(
                "window-without-effect",
                "a time limit between an event and itself has no effect",
                term.span,
                "one event has no distance",
            )
        return Apart(first.variable, second.variable, window, span=term.span)

    def own_value(self, term: OwnTerm) -> Expression | None:
        """`PREV(x.f)` and `ALL(x.f)`, which look back at the elements of an iteration."""
        if not isinstance(term, Element):
            return self.refuse_condition(term)
        if self._is_event(term.reference):
            return self._refuse_event(term.reference)
        function = term.function.text.upper()
        found = self.references.attribute(term.reference)
        if found is None:
            return None
        if self.in_result:
            return self.refuse(
                "element-in-select",
                f"{function} can only stand in WHERE",
                term.span,
                "not allowed here",
                f"write {self.text(term.reference)} for the last element, or an aggregate",
            )
        if found.variable not in self.iterated:
            return self.refuse(
                "not-iterated",
                f"{function} looks back at the elements of an iteration, "
                f"and `{found.variable}` is not iterated",
                term.span,
                f"`{found.variable}` has one event",
                f"write {self.text(term.reference)}, or iterate `{found.variable}` with `+`",
            )
        kind = Previous if function == "PREV" else Every
        return kind(found.variable, found.name, span=term.span)

    def value(self, term: Term) -> Expression | None:
        """The value a term stands for; a variable alone is an event, and none."""
        # Not super(): a class with slots is made anew, and the cell of super() keeps the old one.
        if isinstance(term, Reference) and self._is_event(term):
            return self._refuse_event(term)
        return ExpressionTranslator.value(self, term)

    def _refuse_event(self, reference: Reference) -> Expression | None:
        name = reference.attribute.text
        return self.refuse(
            "event-as-value",
            f"`{name}` is an event, not a value",
            reference.span,
            "which of its fields?",
            f"write {name}.field",
        )

    def _is_event(self, reference: Reference) -> bool:
        """Whether a name alone is a variable, and not also a field of the only source."""
        name = reference.attribute.text
        if reference.variable is not None or self.scope.binding(name) is None:
            return False
        bindings = self.scope.bindings
        return len(bindings) > 1 or name not in self.scope.known_attributes(bindings[0])

    def negation(self, term: Negation) -> Expression | None:
        """NOT of a condition: of an undefined atom it is true (SPEC A1.3)."""
        operand = self.condition(term.operand)
        return None if operand is None else Not(operand, span=term.span)

    def refuse_aggregate(self, call: FunctionCall, name: str, help: str) -> Expression | None:
        """Refuse an aggregate outside SELECT."""
        return self.refuse(
            "aggregate-in-where",
            f"the aggregate `{name}` can only stand in SELECT",
            call.span,
            "not allowed here",
            help,
        )

    def aggregate_of(
        self, reference: Reference, call: FunctionCall, name: str
    ) -> Expression | None:
        """`count(x)` counts the events of a variable; the rest is about a field."""
        if not self._is_event(reference):
            return ExpressionTranslator.aggregate_of(self, reference, call, name)
        variable = reference.attribute
        binding = self.scope.binding(variable.text)
        assert binding is not None
        if binding.negated:
            self.references.refuse_negated(reference, binding)
            return None
        if name == "count":
            return Aggregate("count", None, variable.text, span=call.span)
        return self.refuse(
            "wrong-arguments",
            f"`{name}` takes a field, and `{variable.text}` is an event",
            call.span,
            "not a field",
            f"write {name}({variable.text}.field)",
        )
