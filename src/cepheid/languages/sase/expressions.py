"""Conditions and values of a SASE query: `[a]` written out, and what the language refuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from cepheid.algebra.expression import Attribute, Compare, Expression, conjunction
from cepheid.languages.expressions import ExpressionTranslator, all_of
from cepheid.languages.limits import MOST_COMPARISONS
from cepheid.languages.sase.syntax import Entry, Equivalence, Group
from cepheid.languages.scope import Binding
from cepheid.languages.terms import Comparison, FunctionCall, Negation, OwnTerm
from cepheid.model.diagnostics import Diagnostic, Span
from cepheid.model.errors import LimitExceeded

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(slots=True)
class SaseExpressions(ExpressionTranslator):
    """Translates the terms of one clause; `_comparisons` counts those that `[a]` stands for."""

    _comparisons: int = field(init=False, default=0)
    result_clause: ClassVar[str] = "RETURN"

    def own_condition(self, term: OwnTerm) -> Expression | None:
        """`[a]` written out over all components; a list in parentheses is refused."""
        if isinstance(term, Equivalence):
            parts = all_of([self._equivalence(entry) for entry in term.entries])
            return None if parts is None else conjunction(parts)
        return self._refuse_list(term)

    def own_value(self, term: OwnTerm) -> Expression | None:
        """Nothing: neither `[a]` nor a list is a value."""
        if isinstance(term, Equivalence):
            return self.refuse_condition(term)
        return self._refuse_list(term)

    def _equivalence(self, entry: Entry) -> Expression | None:
        """`[a]`: a is equal over all components that may have it."""
        name = entry.attribute.text
        bindings = self.scope.bindings
        holders = [each for each in bindings if self.references.may_have(each, name)]
        if not holders:
            self.references.note_unknown(entry.attribute, bindings)
            return None
        if entry.op not in (None, "="):
            return self.refuse(
                "equivalence-operator",
                "an equivalence test can only fix a value with `=`",
                entry.span,
                f"this is `{entry.op}`",
                f"compare each component's own, e.g. {holders[0].variable}.{name} {entry.op} ...",
            )
        constant = None if entry.constant is None else self.constant(entry.constant)
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

    def negation(self, term: Negation) -> Expression | None:
        """Refuse NOT, which SASE does not have, and say what to write instead."""
        operand = term.operand
        help = "turn each comparison round (= to !=, < to >=) and swap AND and OR"
        if isinstance(operand, Comparison) and len(operand.ops) == 1:
            left, right = (self.text(each) for each in operand.operands)
            help = f"write {left} {_OPPOSITE[operand.ops[0]]} {right}"
        self.refuse(
            "no-not", "SASE has no NOT in conditions", term.span, "not part of the language", help
        )
        self.condition(operand)
        return None

    def refuse_aggregate(self, call: FunctionCall, name: str, help: str) -> Expression | None:
        """Refuse an aggregate outside RETURN."""
        return self.refuse(
            "aggregate-outside-return",
            f"the aggregate `{name}` can only stand in RETURN",
            call.span,
            "not allowed here",
            help,
        )

    def _refuse_list(self, group: OwnTerm) -> Expression | None:
        assert isinstance(group, Group)
        if self.without_aliases(group.items) is None:
            return None
        return self.refuse(
            "list-as-value",
            "a list in parentheses is no value",
            group.span,
            f"{len(group.items)} items",
            "compare one item at a time",
        )


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
