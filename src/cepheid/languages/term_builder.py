"""Conditions and values from tokens to their syntax tree, while an LALR(1) parser runs."""

from __future__ import annotations

from typing import Generic, TypeVar

from lark import Token, Transformer
from lark.visitors import v_args

from cepheid.languages.limits import DEEPEST_NESTING
from cepheid.languages.terms import (
    Binary,
    Boolean,
    Comparison,
    Conjunction,
    Disjunction,
    FunctionCall,
    Item,
    Length,
    Minus,
    Name,
    Nested,
    Number,
    ParameterName,
    Reference,
    String,
    Term,
)
from cepheid.model.diagnostics import Span

OPERATORS = {"≠": "!=", "<>": "!=", "≥": ">=", "≤": "<="}
_MOST_DIGITS = 400
"""Longer numbers are not converted: Python takes quadratic time, or refuses, to read them."""

_Tree = TypeVar("_Tree")


class TooDeep(Exception):
    """What is being built is nested too deeply, at `span`."""

    def __init__(self, span: Span) -> None:
        self.span = span


def span_of(token: Token) -> Span:
    """Where a token stands."""
    assert token.start_pos is not None
    assert token.end_pos is not None
    return Span(token.start_pos, token.end_pos)


def depth_of(span: Span, *parts: Nested) -> int:
    """The depth of a node over these parts; raises TooDeep."""
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > DEEPEST_NESTING:
        raise TooDeep(span)
    return depth


def number_of(token: Token, sign: int = 1) -> int | float | None:
    """The number a token stands for; None when it is too large to be one."""
    text = str(token)
    if len(text) > _MOST_DIGITS:
        return None
    if text.isdecimal():
        whole = sign * int(text)
        return whole if -(2**63) <= whole <= 2**63 else None
    real = sign * float(text)
    return None if real in (float("inf"), float("-inf")) else real


def unquoted(text: str) -> str:
    """A string without its quotes; the closing one is doubled within it."""
    closing = text[-1]
    return text[1:-1].replace(closing * 2, closing)


@v_args(inline=True)
class TermBuilder(Transformer[Token, _Tree], Generic[_Tree]):
    """Builds trees bottom up while the parser runs, so that nothing recurses."""

    # Names

    def heading(self, _query: Token, name: Name) -> Name:
        return name

    def label(self, token: Token) -> Name:
        name = str(token).removesuffix(":").rstrip()
        start = span_of(token).start
        return Name(name, span=Span(start, start + len(name)))

    def word(self, token: Token) -> Name:
        text = str(token)
        return Name(text[1:-1] if token.type == "QUOTED" else text, span=span_of(token))

    type_name = variable = alias = attribute = word

    # Conditions

    def _operands(self, parts: tuple[Term | Token, ...]) -> tuple[tuple[Term, ...], Span]:
        operands = tuple(part for part in parts if not isinstance(part, Token))
        return operands, operands[0].span.to(operands[-1].span)

    def disjunction(self, *parts: Term | Token) -> Term:
        operands, span = self._operands(parts)
        return Disjunction(operands, span=span, depth=depth_of(span, *operands))

    def conjunction(self, *parts: Term | Token) -> Term:
        operands, span = self._operands(parts)
        return Conjunction(operands, span=span, depth=depth_of(span, *operands))

    def comparison(self, *parts: Term | Token) -> Term:
        operands, span = self._operands(parts)
        ops = tuple(
            OPERATORS.get(str(part), str(part)) for part in parts if isinstance(part, Token)
        )
        return Comparison(operands, ops, span=span, depth=depth_of(span, *operands))

    # Values

    def binary(self, left: Term, op: Token, right: Term) -> Term:
        span = left.span.to(right.span)
        return Binary(str(op), left, right, span=span, depth=depth_of(span_of(op), left, right))

    def minus(self, sign: Token, operand: Term) -> Term:
        span = span_of(sign).to(operand.span)
        if isinstance(operand, Number) and operand.value is not None:
            return Number(-operand.value, span=span)
        return Minus(operand, span=span, depth=depth_of(span_of(sign), operand))

    def number(self, token: Token) -> Term:
        return Number(number_of(token), span=span_of(token))

    def string(self, token: Token) -> Term:
        return String(unquoted(str(token)), span=span_of(token))

    def boolean(self, token: Token) -> Term:
        return Boolean(token.type == "TRUE", span=span_of(token))

    def parameter(self, token: Token) -> Term:
        return ParameterName(str(token)[1:], span=span_of(token))

    def reference(self, attribute: Name) -> Term:
        return Reference(None, attribute, span=attribute.span)

    def qualified(self, variable: Name, _dot: Token, attribute: Name) -> Term:
        return Reference(variable, attribute, span=variable.span.to(attribute.span))

    def call(self, function: Name, *parts: Item | Token) -> Term:
        arguments = tuple(part for part in parts if isinstance(part, Item))
        star = any(isinstance(part, Token) and part.type == "STAR" for part in parts)
        closing = parts[-1]
        assert isinstance(closing, Token)
        span = function.span.to(span_of(closing))
        depth = depth_of(function.span, *(argument.value for argument in arguments))
        return FunctionCall(function, arguments, star, span=span, depth=depth)

    def item(self, value: Term, _as: Token | None, alias: Name | None) -> Item:
        return Item(value, alias, span=value.span.to((alias or value).span))

    def _length(self, first: Span, amount: tuple[Token, ...], unit: Token | None) -> Length:
        """A length of time, of which `first` is shown, too; `amount` may begin with a minus."""
        last = amount[-1]
        span = span_of(amount[0]).to(span_of(last))
        value: Number | ParameterName
        if last.type == "NUMBER":
            value = Number(number_of(last, -1 if len(amount) == 2 else 1), span=span)
        else:
            value = ParameterName(str(last).removeprefix(":"), span=span)
        name = None if unit is None else Name(str(unit), span=span_of(unit))
        return Length(value, name, span=first.to((name or value).span))
