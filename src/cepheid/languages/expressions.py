"""Conditions and values of a query: forms checked, names looked up; what all languages share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, assert_never

from cepheid.algebra.expression import (
    FUNCTIONS,
    Aggregate,
    Arithmetic,
    Call,
    Compare,
    Expression,
    Literal,
    Negative,
    Or,
    Parameter,
    ScalarType,
    conjunction,
)
from cepheid.algebra.invariants import AGGREGATES
from cepheid.algebra.typing import find_mismatches
from cepheid.languages.findings import Findings
from cepheid.languages.references import References, enumerate_names
from cepheid.languages.scope import Scope
from cepheid.languages.terms import (
    Binary,
    Boolean,
    Comparison,
    Conjunction,
    Constant,
    Disjunction,
    FunctionCall,
    Item,
    Minus,
    Negation,
    Number,
    OwnTerm,
    ParameterName,
    Reference,
    String,
    Term,
)
from cepheid.model.diagnostics import Span, did_you_mean
from cepheid.model.undefined import is_value

_OF_VALUES = {"min": "least", "max": "greatest"}


@dataclass(slots=True)
class ExpressionTranslator(ABC):
    """Translates the terms of one clause; a term with an error is noted and becomes None."""

    references: References
    result_clause: ClassVar[str]
    """The clause of the list of results, in which alone aliases and aggregates may stand."""

    @property
    def findings(self) -> Findings:
        """Where errors are noted."""
        return self.references.findings

    @property
    def scope(self) -> Scope:
        """The names of the query."""
        return self.references.scope

    @property
    def in_result(self) -> bool:
        """Whether this is the list of results, where aggregates may stand."""
        return self.references.in_result

    # What the languages differ in

    @abstractmethod
    def own_condition(self, term: OwnTerm) -> Expression | None:
        """The condition that a term stands for which only this language has."""

    @abstractmethod
    def own_value(self, term: OwnTerm) -> Expression | None:
        """The value that a term stands for which only this language has."""

    @abstractmethod
    def negation(self, term: Negation) -> Expression | None:
        """What NOT means."""

    @abstractmethod
    def refuse_aggregate(self, call: FunctionCall, name: str, help: str) -> Expression | None:
        """Refuse an aggregate outside the list of results."""

    # Conditions

    def condition(self, term: Term) -> Expression | None:
        """The predicate a term stands for."""
        match term:
            case Conjunction(operands):
                parts = all_of([self.condition(operand) for operand in operands])
                return None if parts is None else conjunction(parts)
            case Disjunction(operands):
                parts = all_of([self.condition(operand) for operand in operands])
                return None if parts is None else Or(tuple(parts), span=term.span)
            case Comparison():
                return self._comparison(term)
            case Negation():
                return self.negation(term)
            case FunctionCall():
                call = self._call(term)
                return call if call is None or _is_atom(call) else self.refuse_value(term)
            case Reference() | Binary() | Minus():
                return None if self.value(term) is None else self.refuse_value(term)
            case Number() | String() | Boolean() | ParameterName():
                return self.refuse_value(term)
            case OwnTerm():
                return self.own_condition(term)
            case _:
                assert_never(term)

    def check_types(self, expression: Expression) -> None:
        """Note every place of an expression whose types never fit."""
        types = self.scope.types_in(expression)
        for mismatch in find_mismatches(expression, types, self.findings.source):
            self.findings.add(mismatch)

    def _comparison(self, term: Comparison) -> Expression | None:
        operands = [self.value(operand) for operand in term.operands]
        if len(term.ops) > 1:
            first, second, third = (self.text(each) for each in term.operands[:3])
            return self.refuse(
                "chained-comparison",
                "a comparison has two sides",
                term.operands[2].span,
                "a third operand",
                f"write {first} {term.ops[0]} {second} AND {second} {term.ops[1]} {third}",
            )
        left, right = operands
        if left is None or right is None:
            return None
        return Compare(term.ops[0], left, right, span=term.span)

    # Values

    def value(self, term: Term) -> Expression | None:
        """The value a term stands for."""
        match term:
            case Number() | String() | Boolean() | ParameterName():
                return self.constant(term)
            case Reference():
                return self.references.attribute(term)
            case Binary(op, left, right):
                first, second = self.value(left), self.value(right)
                if first is None or second is None:
                    return None
                return Arithmetic(op, first, second, span=term.span)
            case Minus(operand):
                inner = self.value(operand)
                return None if inner is None else Negative(inner, span=term.span)
            case FunctionCall():
                call = self._call(term)
                return self.refuse_condition(term) if call and _is_atom(call) else call
            case OwnTerm():
                return self.own_value(term)
            case Comparison() | Negation() | Conjunction() | Disjunction():
                return self.refuse_condition(term)
            case _:
                assert_never(term)

    def constant(self, constant: Constant) -> Expression | None:
        """The literal or parameter a constant stands for."""
        match constant:
            case Number(None):
                return self._refuse_number(constant)
            case Number(int(value)) if not is_value(value):
                return self._refuse_number(constant)
            case Number(value) | String(value) | Boolean(value):
                return Literal(value, span=constant.span)
            case ParameterName(name):
                return Parameter(name, span=constant.span)

    def _call(self, call: FunctionCall) -> Expression | None:
        name = call.function.text.casefold()
        if name in AGGREGATES:
            return self._aggregate(call, name)
        terms = self.without_aliases(call.arguments)
        arguments = None if terms is None else all_of([self.value(each) for each in terms])
        if name not in FUNCTIONS:
            known = [*FUNCTIONS, *(AGGREGATES if self.in_result else ())]
            return self.refuse(
                "unknown-function",
                f"there is no function `{call.function.text}`",
                call.function.span,
                "not a function",
                did_you_mean(name, known) or f"the functions are {enumerate_names(known)}",
            )
        wanted = len(FUNCTIONS[name][0])
        if call.star or len(call.arguments) != wanted:
            given = "`*`" if call.star else str(len(call.arguments))
            return self.refuse(
                "wrong-arguments",
                f"`{name}` takes {wanted} argument{'s' if wanted > 1 else ''}, not {given}",
                call.span,
                f"{given} given",
                f"write {name}({', '.join('ab'[:wanted])})",
            )
        return None if arguments is None else Call(name, tuple(arguments), span=call.span)

    def _aggregate(self, call: FunctionCall, name: str) -> Expression | None:
        terms = self.without_aliases(call.arguments)
        if terms is None:
            return None
        help = f"write {name}(attribute) or {name}(x.attribute)"
        if len(terms) == 2 and name in _OF_VALUES:
            help = f"write {_OF_VALUES[name]}({self.text(terms[0])}, {self.text(terms[1])})"
        elif not self.in_result:
            help = "compare attributes of the components"
        if not self.in_result:
            return self.refuse_aggregate(call, name, help)
        if call.star and name == "count":
            return Aggregate("count", None, span=call.span)
        if call.star or len(terms) != 1 or not isinstance(terms[0], Reference):
            return self.refuse(
                "wrong-arguments", f"`{name}` takes one attribute", call.span, "not one", help
            )
        return self.aggregate_of(terms[0], call, name)

    def aggregate_of(
        self, reference: Reference, call: FunctionCall, name: str
    ) -> Expression | None:
        """Over one component's event, or over all positive events when none is named."""
        attribute = reference.attribute
        if reference.variable is not None:
            inner = self.references.attribute(reference)
            variable = None if inner is None else inner.variable
            return inner and Aggregate(name, attribute.text, variable, span=call.span)
        positives = self.scope.positives
        if not any(self.references.may_have(each, attribute.text) for each in positives):
            self.references.note_unknown(attribute, positives)
            return None
        return Aggregate(name, attribute.text, span=call.span)

    # Refusals

    def refuse(
        self, code: str, message: str, span: Span, label: str, help: str | None
    ) -> Expression | None:
        """Note an error; the None stands for the expression there is not."""
        self.findings.error(code, message, span, label, help=help)
        return None

    def refuse_value(self, term: Term) -> Expression | None:
        """Refuse a value where a condition is needed."""
        is_attribute = isinstance(term, Reference)
        help = f"compare it, e.g. {self.text(term)} = true" if is_attribute else "compare it"
        return self.refuse(
            "value-as-condition", "a condition is needed here", term.span, "this is a value", help
        )

    def refuse_condition(self, term: Term) -> Expression | None:
        """Refuse a condition where a value is needed."""
        return self.refuse(
            "condition-as-value",
            "a value is needed here",
            term.span,
            "this is a condition",
            "join conditions with AND or OR; they can be neither compared nor returned",
        )

    def _refuse_number(self, number: Number) -> Expression | None:
        return self.refuse(
            "number-too-large",
            "the number does not fit 64 bits",
            number.span,
            "too large",
            "write it in quotes if it is an identifier",
        )

    def without_aliases(self, items: tuple[Item, ...]) -> list[Term] | None:
        """The terms of a list that may not have aliases."""
        for item in items:
            if item.alias is not None:
                self.refuse(
                    "misplaced-alias",
                    f"AS can only name an item of {self.result_clause}",
                    item.alias.span,
                    "a name where none can be",
                    "remove AS and the name",
                )
                return None
        return [item.value for item in items]

    def text(self, term: Term) -> str:
        """A term as it was written."""
        return self.findings.source.text[term.span.start : term.span.end]


def all_of(parts: list[Expression | None]) -> list[Expression] | None:
    """All parts, or None if one has an error."""
    whole = [part for part in parts if part is not None]
    return whole if len(whole) == len(parts) else None


def _is_atom(node: Expression) -> bool:
    return isinstance(node, Call) and FUNCTIONS[node.function][1] is ScalarType.BOOL
