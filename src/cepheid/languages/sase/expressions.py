"""Conditions and values of a SASE query: forms checked, names looked up, `[a]` written out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from cepheid.algebra.expression import (
    FUNCTIONS,
    Aggregate,
    Arithmetic,
    Attribute,
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
from cepheid.languages.findings import Findings
from cepheid.languages.limits import MOST_COMPARISONS
from cepheid.languages.sase.references import References, enumerate_names
from cepheid.languages.sase.scope import Binding, Scope
from cepheid.languages.sase.syntax import (
    Binary,
    Boolean,
    Comparison,
    Conjunction,
    Constant,
    Disjunction,
    Entry,
    Equivalence,
    FunctionCall,
    Group,
    Item,
    Minus,
    Negation,
    Number,
    ParameterName,
    Reference,
    String,
    Term,
)
from cepheid.model.diagnostics import Diagnostic, Span, did_you_mean
from cepheid.model.errors import LimitExceeded
from cepheid.model.undefined import is_value

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_OF_VALUES = {"min": "least", "max": "greatest"}


@dataclass(slots=True)
class ExpressionTranslator:
    """Translates the terms of one clause; a term with an error is noted and becomes None."""

    scope: Scope
    findings: Findings
    in_return: bool = False
    _references: References = field(init=False)
    _comparisons: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._references = References(self.scope, self.findings, self.in_return)

    # Conditions

    def condition(self, term: Term) -> Expression | None:
        """The predicate a term stands for, with `[a]` written out over all components."""
        match term:
            case Conjunction(operands):
                parts = _all([self.condition(operand) for operand in operands])
                return None if parts is None else conjunction(parts)
            case Disjunction(operands):
                parts = _all([self.condition(operand) for operand in operands])
                return None if parts is None else Or(tuple(parts), span=term.span)
            case Comparison():
                return self._comparison(term)
            case Equivalence(entries):
                parts = _all([self._equivalence(entry) for entry in entries])
                return None if parts is None else conjunction(parts)
            case Negation():
                return self._refuse_negation(term)
            case FunctionCall():
                call = self._call(term)
                return call if call is None or _is_atom(call) else self._refuse_value(term)
            case Group():
                return self._refuse_list(term)
            case Reference() | Binary() | Minus():
                return None if self.value(term) is None else self._refuse_value(term)
            case Number() | String() | Boolean() | ParameterName():
                return self._refuse_value(term)
            case _:
                assert_never(term)

    def _comparison(self, term: Comparison) -> Expression | None:
        operands = [self.value(operand) for operand in term.operands]
        if len(term.ops) > 1:
            first, second, third = (self._text(each) for each in term.operands[:3])
            return self._refuse(
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

    def _equivalence(self, entry: Entry) -> Expression | None:
        """`[a]`: a is equal over all components that may have it."""
        name = entry.attribute.text
        bindings = self.scope.bindings
        holders = [each for each in bindings if self._references.may_have(each, name)]
        if not holders:
            self._references.note_unknown(entry.attribute, bindings)
            return None
        if entry.op not in (None, "="):
            return self._refuse(
                "equivalence-operator",
                "an equivalence test can only fix a value with `=`",
                entry.span,
                f"this is `{entry.op}`",
                f"compare each component's own, e.g. {holders[0].variable}.{name} {entry.op} ...",
            )
        constant = None if entry.constant is None else self._constant(entry.constant)
        if entry.constant is not None and constant is None:
            return None
        for each in bindings:
            if each not in holders:
                self.findings.warning(
                    "absent-attribute",
                    f"events of type {each.types_in_words} never have `{name}`",
                    entry.attribute.span,
                    f"not tested for `{each.variable}`",
                )
        self._count(holders, entry)
        return conjunction(_written_out(holders, name, constant, entry.span))

    def _count(self, holders: list[Binding], entry: Entry) -> None:
        """Refuse what would become too large before it is written out."""
        positive = sum(not each.negated for each in holders)
        negative = len(holders) - positive
        self._comparisons += positive * (positive - 1) // 2 + positive * negative + len(holders)
        if self._comparisons > MOST_COMPARISONS:
            raise LimitExceeded(
                Diagnostic(
                    "too-many-comparisons",
                    f"the equivalence tests stand for more than {MOST_COMPARISONS:,} comparisons",
                    entry.span,
                    "this one is too much",
                    help="name fewer attributes, or use fewer components",
                    source=self.findings.source,
                )
            )

    # Values

    def value(self, term: Term) -> Expression | None:
        """The value a term stands for."""
        match term:
            case Number() | String() | Boolean() | ParameterName():
                return self._constant(term)
            case Reference():
                return self._references.attribute(term)
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
                return self._refuse_condition(term) if call and _is_atom(call) else call
            case Group():
                return self._refuse_list(term)
            case Comparison() | Equivalence() | Negation() | Conjunction() | Disjunction():
                return self._refuse_condition(term)
            case _:
                assert_never(term)

    def _constant(self, constant: Constant) -> Expression | None:
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
        terms = self._without_aliases(call.arguments)
        arguments = None if terms is None else _all([self.value(each) for each in terms])
        if name not in FUNCTIONS:
            known = [*FUNCTIONS, *(AGGREGATES if self.in_return else ())]
            return self._refuse(
                "unknown-function",
                f"there is no function `{call.function.text}`",
                call.function.span,
                "not a function",
                did_you_mean(name, known) or f"the functions are {enumerate_names(known)}",
            )
        wanted = len(FUNCTIONS[name][0])
        if call.star or len(call.arguments) != wanted:
            given = "`*`" if call.star else str(len(call.arguments))
            return self._refuse(
                "wrong-arguments",
                f"`{name}` takes {wanted} argument{'s' if wanted > 1 else ''}, not {given}",
                call.span,
                f"{given} given",
                f"write {name}({', '.join('ab'[:wanted])})",
            )
        return None if arguments is None else Call(name, tuple(arguments), span=call.span)

    def _aggregate(self, call: FunctionCall, name: str) -> Expression | None:
        terms = self._without_aliases(call.arguments)
        if terms is None:
            return None
        help = f"write {name}(attribute) or {name}(x.attribute)"
        if len(terms) == 2 and name in _OF_VALUES:
            help = f"write {_OF_VALUES[name]}({self._text(terms[0])}, {self._text(terms[1])})"
        elif not self.in_return:
            help = "compare attributes of the components"
        if not self.in_return:
            return self._refuse(
                "aggregate-outside-return",
                f"the aggregate `{name}` can only stand in RETURN",
                call.span,
                "not allowed here",
                help,
            )
        if call.star and name == "count":
            return Aggregate("count", None, span=call.span)
        if call.star or len(terms) != 1 or not isinstance(terms[0], Reference):
            return self._refuse(
                "wrong-arguments", f"`{name}` takes one attribute", call.span, "not one", help
            )
        return self._aggregate_of(terms[0], call, name)

    def _aggregate_of(
        self, reference: Reference, call: FunctionCall, name: str
    ) -> Expression | None:
        """Over one component's event, or over all positive events when none is named."""
        attribute = reference.attribute
        if reference.variable is not None:
            inner = self._references.attribute(reference)
            variable = None if inner is None else inner.variable
            return inner and Aggregate(name, attribute.text, variable, span=call.span)
        positives = self.scope.positives
        if not any(self._references.may_have(each, attribute.text) for each in positives):
            self._references.note_unknown(attribute, positives)
            return None
        return Aggregate(name, attribute.text, span=call.span)

    # Refusals

    def _refuse(
        self, code: str, message: str, span: Span, label: str, help: str | None
    ) -> Expression | None:
        """Note an error; the None stands for the expression there is not."""
        self.findings.error(code, message, span, label, help=help)
        return None

    def _refuse_negation(self, term: Negation) -> Expression | None:
        operand = term.operand
        help = "turn each comparison round (= to !=, < to >=) and swap AND and OR"
        if isinstance(operand, Comparison) and len(operand.ops) == 1:
            left, right = (self._text(each) for each in operand.operands)
            help = f"write {left} {_OPPOSITE[operand.ops[0]]} {right}"
        self._refuse(
            "no-not", "SASE has no NOT in conditions", term.span, "not part of the language", help
        )
        self.condition(operand)
        return None

    def _refuse_value(self, term: Term) -> Expression | None:
        is_attribute = isinstance(term, Reference)
        help = f"compare it, e.g. {self._text(term)} = true" if is_attribute else "compare it"
        return self._refuse(
            "value-as-condition", "a condition is needed here", term.span, "this is a value", help
        )

    def _refuse_condition(self, term: Term) -> Expression | None:
        return self._refuse(
            "condition-as-value",
            "a value is needed here",
            term.span,
            "this is a condition",
            "join conditions with AND or OR; they can be neither compared nor returned",
        )

    def _refuse_number(self, number: Number) -> Expression | None:
        return self._refuse(
            "number-too-large",
            "the number does not fit 64 bits",
            number.span,
            "too large",
            "write it in quotes if it is an identifier",
        )

    def _refuse_list(self, group: Group) -> Expression | None:
        if self._without_aliases(group.items) is None:
            return None
        return self._refuse(
            "list-as-value",
            "a list in parentheses is no value",
            group.span,
            f"{len(group.items)} items",
            "compare one item at a time",
        )

    def _without_aliases(self, items: tuple[Item, ...]) -> list[Term] | None:
        """The terms of a list that may not have aliases."""
        for item in items:
            if item.alias is not None:
                self._refuse(
                    "misplaced-alias",
                    "AS can only name an item of RETURN",
                    item.alias.span,
                    "a name where none can be",
                    "remove AS and the name",
                )
                return None
        return [item.value for item in items]

    def _text(self, term: Term) -> str:
        return self.findings.source.text[term.span.start : term.span.end]


def _all(parts: list[Expression | None]) -> list[Expression] | None:
    """All parts, or None if one has an error."""
    whole = [part for part in parts if part is not None]
    return whole if len(whole) == len(parts) else None


def _is_atom(node: Expression) -> bool:
    return isinstance(node, Call) and FUNCTIONS[node.function][1] is ScalarType.BOOL


def _written_out(
    holders: Iterable[Binding], name: str, constant: Expression | None, span: Span
) -> list[Expression]:
    """The comparisons that `[name]` stands for.

    All pairs of positives are written, since an event that lacks the attribute makes its own tests
    true while the others must still agree. A negative one is compared with every positive one, and
    never with another negative one.
    """
    positives = [Attribute(each.variable, name, span=span) for each in holders if not each.negated]
    negatives = [Attribute(each.variable, name, span=span) for each in holders if each.negated]
    pairs = [
        (left, right)
        for position, left in enumerate(positives)
        for right in positives[position + 1 :]
    ]
    pairs += [(positive, negative) for negative in negatives for positive in positives]
    parts: list[Expression] = [Compare("=", left, right, span=span) for left, right in pairs]
    if constant is not None:
        parts += [Compare("=", each, constant, span=span) for each in (*positives, *negatives)]
    return parts
