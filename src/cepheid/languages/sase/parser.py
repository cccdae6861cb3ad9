"""SASE text to its syntax tree, by an LALR(1) parser with a contextual lexer."""

from __future__ import annotations

from functools import cache

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser
from lark.visitors import v_args

from cepheid.languages.limits import DEEPEST_NESTING, check_text, too_deep
from cepheid.languages.parse_tables import load_parser
from cepheid.languages.sase.syntax import (
    Binary,
    Boolean,
    Comparison,
    Component,
    Conjunction,
    Constant,
    Disjunction,
    Entry,
    Equivalence,
    FunctionCall,
    Group,
    Item,
    Minus,
    Name,
    Negation,
    Number,
    ParameterName,
    ProgramText,
    QueryText,
    Reference,
    Returning,
    String,
    Term,
    Within,
)
from cepheid.languages.sase.syntax_errors import syntax_error
from cepheid.model.diagnostics import SourceText, Span
from cepheid.model.errors import QueryError

_OPERATORS = {"≠": "!=", "<>": "!=", "≥": ">=", "≤": "<="}
_MOST_DIGITS = 400
"""Longer numbers are not converted: Python takes quadratic time, or refuses, to read them."""


def parse(source: SourceText) -> ProgramText:
    """The syntax tree of a text with one or more queries."""
    check_text(source)
    session = _parser().parse_interactive(source.text)
    tokens: list[Token] = []
    try:
        tokens.extend(session.iter_parse())
        tree = session.feed_token(Token("$END", ""))
    except UnexpectedInput as problem:
        raise _syntax_error(source, session, tokens, problem) from None
    except _TooDeep as problem:
        raise too_deep(source, problem.span) from None
    assert isinstance(tree, ProgramText)
    if not tree.queries:
        raise QueryError.of(
            "empty-query", "the text holds no query", help="a query begins with EVENT"
        )
    return tree


def _syntax_error(
    source: SourceText, session: InteractiveParser, tokens: list[Token], problem: UnexpectedInput
) -> QueryError:
    at_end = isinstance(problem, UnexpectedToken) and problem.token.type == "$END"
    position = None if at_end else problem.pos_in_stream
    # The token that does not fit has been read when the parser, not the lexer, refused it.
    if tokens and tokens[-1].start_pos == position:
        tokens = tokens[:-1]
    accepts = frozenset(session.accepts())  # type: ignore[no-untyped-call]
    return syntax_error(source, tokens, position, accepts)


@cache
def _parser() -> Lark:
    return load_parser("cepheid.languages.sase", _Builder())


class _TooDeep(Exception):
    def __init__(self, span: Span) -> None:
        self.span = span


def _span(token: Token) -> Span:
    assert token.start_pos is not None
    assert token.end_pos is not None
    return Span(token.start_pos, token.end_pos)


def _depth(span: Span, *parts: Term) -> int:
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > DEEPEST_NESTING:
        raise _TooDeep(span)
    return depth


def _number(token: Token, sign: int = 1) -> int | float | None:
    text = str(token)
    if len(text) > _MOST_DIGITS:
        return None
    if text.isdecimal():
        whole = sign * int(text)
        return whole if -(2**63) <= whole <= 2**63 else None
    real = sign * float(text)
    return None if real in (float("inf"), float("-inf")) else real


def _unquote(text: str) -> str:
    closing = text[-1]
    return text[1:-1].replace(closing * 2, closing)


@v_args(inline=True)
class _Builder(Transformer[Token, ProgramText]):
    """Builds the tree bottom up while the parser runs, so that nothing recurses."""

    def start(self, *parts: QueryText | Token) -> ProgramText:
        return ProgramText(tuple(part for part in parts if isinstance(part, QueryText)))

    def query(
        self,
        heading: Name | None,
        event: Token,
        components: tuple[Component, ...],
        where: Term | None,
        within: Within | None,
        returning: Returning | None,
    ) -> QueryText:
        end = returning or within or where or components[-1]
        span = _span(event).to(end.span)
        return QueryText(heading, components, where, within, returning, span=span)

    def heading(self, _query: Token, name: Name) -> Name:
        return name

    def label(self, token: Token) -> Name:
        name = str(token).removesuffix(":").rstrip()
        start = _span(token).start
        return Name(name, span=Span(start, start + len(name)))

    # The pattern

    def single(self, component: Component) -> tuple[Component, ...]:
        return (component,)

    def sequence(self, *parts: Component | Token) -> tuple[Component, ...]:
        return tuple(part for part in parts if isinstance(part, Component))

    def positive(self, types: tuple[Name, ...], variable: Name | None) -> Component:
        span = types[0].span.to((variable or types[-1]).span)
        return Component(types, variable, span=span)

    def negative(self, negator: Name, types: tuple[Name, ...], variable: Name | None) -> Component:
        span = negator.span.to((variable or types[-1]).span)
        return Component(types, variable, negator, span=span)

    def negative_in_parentheses(
        self,
        negator: Name,
        _opening: Token,
        types: tuple[Name, ...],
        variable: Name | None,
        closing: Token,
    ) -> Component:
        return Component(types, variable, negator, span=negator.span.to(_span(closing)))

    def event_types(self, name: Name) -> tuple[Name, ...]:
        return (name,)

    def any_of(self, *parts: Name | Token) -> tuple[Name, ...]:
        return tuple(part for part in parts if isinstance(part, Name))

    def _name(self, token: Token) -> Name:
        text = str(token)
        return Name(text[1:-1] if token.type == "QUOTED" else text, span=_span(token))

    type_name = variable = missing = negator = word = alias = attribute = _name

    # The clauses

    def where(self, _where: Token, condition: Term) -> Term:
        return condition

    def within(self, word: Token, *parts: Token | None) -> Within:
        *amount, unit = parts
        first, last = amount[0], amount[-1]
        assert first is not None
        assert last is not None
        span = _span(first).to(_span(last))
        value: Number | ParameterName
        if last.type == "NUMBER":
            value = Number(_number(last, -1 if len(amount) == 2 else 1), span=span)
        else:
            value = ParameterName(str(last).removeprefix(":"), span=span)
        name = None if unit is None else Name(str(unit), span=_span(unit))
        return Within(value, name, span=_span(word).to((name or value).span))

    def returning(self, word: Token, *parts: Item | Token) -> Returning:
        items = tuple(part for part in parts if isinstance(part, Item))
        return Returning(items, span=_span(word).to(items[-1].span))

    def returning_hyphenated(self, word: Token, type: Token, *parts: Item | Token) -> Returning:
        items = tuple(part for part in parts if isinstance(part, Item))
        closing = parts[-1]
        assert isinstance(closing, Token)
        return Returning(items, self._name(type), span=_span(word).to(_span(closing)))

    def item(self, value: Term, _as: Token | None, alias: Name | None) -> Item:
        return Item(value, alias, span=value.span.to((alias or value).span))

    # Conditions and values

    def _operands(self, parts: tuple[Term | Token, ...]) -> tuple[tuple[Term, ...], Span]:
        operands = tuple(part for part in parts if not isinstance(part, Token))
        return operands, operands[0].span.to(operands[-1].span)

    def disjunction(self, *parts: Term | Token) -> Term:
        operands, span = self._operands(parts)
        return Disjunction(operands, span=span, depth=_depth(span, *operands))

    def conjunction(self, *parts: Term | Token) -> Term:
        operands, span = self._operands(parts)
        return Conjunction(operands, span=span, depth=_depth(span, *operands))

    def negation(self, negator: Name, operand: Term) -> Term:
        return Negation(operand, span=negator.span, depth=_depth(negator.span, operand))

    def comparison(self, *parts: Term | Token) -> Term:
        operands, span = self._operands(parts)
        ops = tuple(
            _OPERATORS.get(str(part), str(part)) for part in parts if isinstance(part, Token)
        )
        return Comparison(operands, ops, span=span, depth=_depth(span, *operands))

    def binary(self, left: Term, op: Token, right: Term) -> Term:
        span = left.span.to(right.span)
        return Binary(str(op), left, right, span=span, depth=_depth(_span(op), left, right))

    def minus(self, sign: Token, operand: Term) -> Term:
        span = _span(sign).to(operand.span)
        if isinstance(operand, Number) and operand.value is not None:
            return Number(-operand.value, span=span)
        return Minus(operand, span=span, depth=_depth(_span(sign), operand))

    def number(self, token: Token) -> Term:
        return Number(_number(token), span=_span(token))

    def string(self, token: Token) -> Term:
        return String(_unquote(str(token)), span=_span(token))

    def boolean(self, token: Token) -> Term:
        return Boolean(token.type == "TRUE", span=_span(token))

    def parameter(self, token: Token) -> Term:
        return ParameterName(str(token)[1:], span=_span(token))

    def reference(self, attribute: Name) -> Term:
        return Reference(None, attribute, span=attribute.span)

    def qualified(self, variable: Name, _dot: Token, attribute: Name) -> Term:
        return Reference(variable, attribute, span=variable.span.to(attribute.span))

    def call(self, function: Name, *parts: Item | Token) -> Term:
        arguments = tuple(part for part in parts if isinstance(part, Item))
        star = any(isinstance(part, Token) and part.type == "STAR" for part in parts)
        closing = parts[-1]
        assert isinstance(closing, Token)
        span = function.span.to(_span(closing))
        depth = _depth(function.span, *(argument.value for argument in arguments))
        return FunctionCall(function, arguments, star, span=span, depth=depth)

    def group(self, opening: Token, *parts: Item | Token) -> Term:
        items = tuple(part for part in parts if isinstance(part, Item))
        if len(items) == 1 and items[0].alias is None:
            return items[0].value
        closing = parts[-1]
        assert isinstance(closing, Token)
        depth = _depth(_span(opening), *(item.value for item in items))
        return Group(items, span=_span(opening).to(_span(closing)), depth=depth)

    def equivalence(self, opening: Token, *parts: Entry | Token) -> Term:
        entries = tuple(part for part in parts if isinstance(part, Entry))
        closing = parts[-1]
        assert isinstance(closing, Token)
        return Equivalence(entries, span=_span(opening).to(_span(closing)))

    def entry(self, attribute: Name, op: Token | None = None, *value: Constant | Token) -> Entry:
        if op is None:
            return Entry(attribute, span=attribute.span)
        last = value[-1]
        constant: Constant
        if isinstance(last, Token):
            constant = Number(_number(last, -1), span=_span(last))
        else:
            constant = last
        sign = _OPERATORS.get(str(op), str(op))
        return Entry(attribute, sign, constant, span=attribute.span.to(constant.span))
