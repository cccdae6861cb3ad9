"""SASE text to its syntax tree, by an LALR(1) parser with a contextual lexer."""

from __future__ import annotations

from functools import cache

from lark import Lark, Token
from lark.visitors import v_args

from cepheid.languages.parse_tables import load_parser
from cepheid.languages.parsing import run_parser
from cepheid.languages.sase.syntax import (
    Component,
    Entry,
    Equivalence,
    Group,
    ProgramText,
    QueryText,
    Returning,
)
from cepheid.languages.sase.syntax_errors import syntax_error
from cepheid.languages.term_builder import OPERATORS, TermBuilder, depth_of, number_of, span_of
from cepheid.languages.terms import Constant, Item, Length, Name, Negation, Number, Term
from cepheid.model.diagnostics import SourceText
from cepheid.model.errors import QueryError


def parse(source: SourceText) -> ProgramText:
    """The syntax tree of a text with one or more queries."""
    tree = run_parser(_parser(), source, syntax_error)
    assert isinstance(tree, ProgramText)
    if not tree.queries:
        raise QueryError.of(
            "empty-query", "the text holds no query", help="a query begins with EVENT"
        )
    return tree


@cache
def _parser() -> Lark:
    return load_parser("cepheid.languages.sase", _Builder())


@v_args(inline=True)
class _Builder(TermBuilder[ProgramText]):
    """Builds the tree bottom up while the parser runs, so that nothing recurses."""

    def start(self, *parts: QueryText | Token) -> ProgramText:
        return ProgramText(tuple(part for part in parts if isinstance(part, QueryText)))

    def query(
        self,
        heading: Name | None,
        event: Token,
        components: tuple[Component, ...],
        where: Term | None,
        within: Length | None,
        returning: Returning | None,
    ) -> QueryText:
        end = returning or within or where or components[-1]
        span = span_of(event).to(end.span)
        return QueryText(heading, components, where, within, returning, span=span)

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
        return Component(types, variable, negator, span=negator.span.to(span_of(closing)))

    def event_types(self, name: Name) -> tuple[Name, ...]:
        return (name,)

    def any_of(self, *parts: Name | Token) -> tuple[Name, ...]:
        return tuple(part for part in parts if isinstance(part, Name))

    def missing(self, token: Token) -> Name:
        return Name(str(token), span=span_of(token))

    negator = missing

    # The clauses

    def where(self, _where: Token, condition: Term) -> Term:
        return condition

    def within(self, word: Token, *parts: Token | None) -> Length:
        *amount, unit = parts
        given = tuple(part for part in amount if part is not None)
        return self._length(span_of(word), given, unit)

    def returning(self, word: Token, *parts: Item | Token) -> Returning:
        items = tuple(part for part in parts if isinstance(part, Item))
        return Returning(items, span=span_of(word).to(items[-1].span))

    def returning_hyphenated(self, word: Token, type: Token, *parts: Item | Token) -> Returning:
        items = tuple(part for part in parts if isinstance(part, Item))
        closing = parts[-1]
        assert isinstance(closing, Token)
        name = Name(str(type), span=span_of(type))
        return Returning(items, name, span=span_of(word).to(span_of(closing)))

    # Conditions and values

    def negation(self, negator: Name, operand: Term) -> Term:
        return Negation(operand, span=negator.span, depth=depth_of(negator.span, operand))

    def group(self, opening: Token, *parts: Item | Token) -> Term:
        items = tuple(part for part in parts if isinstance(part, Item))
        if len(items) == 1 and items[0].alias is None:
            return items[0].value
        closing = parts[-1]
        assert isinstance(closing, Token)
        depth = depth_of(span_of(opening), *(item.value for item in items))
        return Group(items, span=span_of(opening).to(span_of(closing)), depth=depth)

    def equivalence(self, opening: Token, *parts: Entry | Token) -> Term:
        entries = tuple(part for part in parts if isinstance(part, Entry))
        closing = parts[-1]
        assert isinstance(closing, Token)
        return Equivalence(entries, span=span_of(opening).to(span_of(closing)))

    def entry(self, attribute: Name, op: Token | None = None, *value: Constant | Token) -> Entry:
        if op is None:
            return Entry(attribute, span=attribute.span)
        last = value[-1]
        constant: Constant
        if isinstance(last, Token):
            constant = Number(number_of(last, -1), span=span_of(last))
        else:
            constant = last
        sign = OPERATORS.get(str(op), str(op))
        return Entry(attribute, sign, constant, span=attribute.span.to(constant.span))
