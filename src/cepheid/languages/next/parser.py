"""NEXT text to its syntax tree, by an LALR(1) parser with a contextual lexer."""

from __future__ import annotations

from functools import cache

from lark import Lark, Token
from lark.visitors import v_args

from cepheid.languages.limits import MOST_COMPONENTS, too_many_components
from cepheid.languages.next.syntax import (
    Alternatives,
    ClockError,
    Contains,
    Delayed,
    Element,
    EventPattern,
    Field,
    FilterTerm,
    Iteration,
    OccursWithin,
    Primitive,
    ProgramText,
    QueryText,
    Renaming,
    SinkRegistration,
    SourceRegistration,
    Successor,
    Unless,
)
from cepheid.languages.next.syntax_errors import syntax_error
from cepheid.languages.parse_tables import load_parser
from cepheid.languages.parsing import run_parser
from cepheid.languages.term_builder import TermBuilder, depth_of, number_of, span_of, unquoted
from cepheid.languages.terms import Item, Length, Name, Negation, Number, Reference, String, Term
from cepheid.model.diagnostics import SourceText, Span
from cepheid.model.errors import QueryError


def parse(source: SourceText) -> ProgramText:
    """The syntax tree of a text with registrations and one or more queries."""
    try:
        tree = run_parser(_parser(), source, syntax_error)
    except _TooManyComponents as problem:
        raise too_many_components(source, problem.span) from None
    assert isinstance(tree, ProgramText)
    if not tree.queries:
        raise QueryError.of(
            "empty-query", "the text holds no query", help="a query begins with SELECT"
        )
    return tree


@cache
def _parser() -> Lark:
    return load_parser("cepheid.languages.next", _Builder())


class _TooManyComponents(Exception):
    def __init__(self, span: Span) -> None:
        self.span = span


def _patterns(parts: tuple[EventPattern | Token, ...]) -> list[EventPattern]:
    """The operands of an operator, without its signs."""
    return [part for part in parts if not isinstance(part, Token)]


def _fields(parts: tuple[Field | Token, ...]) -> tuple[Field, ...]:
    return tuple(part for part in parts if isinstance(part, Field))


@v_args(inline=True)
class _Builder(TermBuilder[ProgramText]):
    """Builds the tree bottom up while the parser runs, so that nothing recurses."""

    def start(
        self, *parts: SourceRegistration | SinkRegistration | QueryText | Token
    ) -> ProgramText:
        return ProgramText(
            tuple(part for part in parts if isinstance(part, SourceRegistration)),
            tuple(part for part in parts if isinstance(part, SinkRegistration)),
            tuple(part for part in parts if isinstance(part, QueryText)),
        )

    # Registrations

    def source(
        self,
        register: Token,
        _source: Token,
        name: Name,
        fields: tuple[Field, ...],
        renamings: tuple[Renaming, ...] | None,
        time: tuple[Name, ...] | None,
        clock: ClockError | None,
    ) -> SourceRegistration:
        span = span_of(register).to(name.span)
        return SourceRegistration(name, fields, renamings or (), time or (), clock, span=span)

    def schema(self, _schema: Token, *parts: Field | Token) -> tuple[Field, ...]:
        return _fields(parts)

    def field(self, name: Name, type: Token | None) -> Field:
        if type is None:
            return Field(name, None, span=name.span)
        kind = Name(str(type), span=span_of(type))
        return Field(name, kind, span=name.span.to(kind.span))

    def renaming(self, _from: Token, *parts: Renaming | Token) -> tuple[Renaming, ...]:
        return tuple(part for part in parts if isinstance(part, Renaming))

    def renamed(self, own: Name, _as: Token, field: Name) -> Renaming:
        return Renaming(own, field, span=own.span.to(field.span))

    def time(
        self, _time: Token, start: Name, _to: Token | None, end: Name | None
    ) -> tuple[Name, ...]:
        return (start,) if end is None else (start, end)

    def clock(self, word: Token, _error: Token, amount: Token, unit: Token | None) -> ClockError:
        number = Number(number_of(amount), span=span_of(amount))
        name = None if unit is None else Name(str(unit), span=span_of(unit))
        return ClockError(number, name, span=span_of(word).to((name or number).span))

    def sink(
        self,
        register: Token,
        _sink: Token,
        name: Name,
        fields: tuple[Field, ...] | None,
        kind: Name | None,
        path: Token | None,
    ) -> SinkRegistration:
        file = None if path is None else String(unquoted(str(path)), span=span_of(path))
        span = span_of(register).to((file or kind or name).span)
        return SinkRegistration(name, fields, kind, file, span=span)

    def kind(self, _as: Token | None, word: Token) -> Name:
        return Name(str(word), span=span_of(word))

    # Queries

    def query(
        self,
        heading: Name | None,
        select: Token,
        items: tuple[Item, ...],
        _from: Token,
        pattern: EventPattern,
        where: tuple[Term, ...] | None,
    ) -> QueryText:
        end = where[-1] if where else pattern
        span = span_of(select).to(end.span)
        return QueryText(heading, items, pattern, where or (), span=span)

    def everything(self, _star: Token) -> tuple[Item, ...]:
        return ()

    def selection(self, *parts: Item | Token) -> tuple[Item, ...]:
        return tuple(part for part in parts if isinstance(part, Item))

    def where(self, _where: Token, *parts: Term | Token) -> tuple[Term, ...]:
        return tuple(part for part in parts if not isinstance(part, Token))

    # Patterns

    def primitive(self, source: Name, variable: Name | None) -> EventPattern:
        span = source.span.to((variable or source).span)
        return Primitive(source, variable, span=span)

    def nested(self, _opening: Token, pattern: EventPattern, _closing: Token) -> EventPattern:
        return pattern

    def iteration(self, pattern: EventPattern, *signs: Token | Length) -> EventPattern:
        for sign in signs:
            own = sign.span if isinstance(sign, Length) else span_of(sign)
            span, depth = pattern.span.to(own), depth_of(own, pattern)
            if isinstance(sign, Length):
                pattern = Delayed(pattern, sign, span=span, depth=depth)
            else:
                pattern = Iteration(pattern, span=span, depth=depth)
        return pattern

    def delay(self, _at: Token, length: Length) -> Length:
        return length

    def chain(self, *parts: EventPattern | Token) -> EventPattern:
        # Left-deep: that is the meaning of A;B;C, not a choice of the optimiser (SPEC E17).
        first, *rest = _few(_patterns(parts))
        for second in rest:
            span = first.span.to(second.span)
            first = Successor(first, second, span=span, depth=depth_of(second.span, first, second))
        return first

    def exception(self, *parts: EventPattern | Token) -> EventPattern:
        pattern, *rest = _few(_patterns(parts))
        for each in rest:
            span = pattern.span.to(each.span)
            pattern = Unless(pattern, each, span=span, depth=depth_of(each.span, pattern, each))
        return pattern

    def pattern(self, *parts: EventPattern | Token) -> EventPattern:
        patterns = _few(_patterns(parts))
        span = patterns[0].span.to(patterns[-1].span)
        return Alternatives(tuple(patterns), span=span, depth=depth_of(span, *patterns))

    # Conditions

    def negation(self, sign: Token, operand: Term) -> Term:
        span = span_of(sign).to(operand.span)
        return Negation(operand, span=span, depth=depth_of(span_of(sign), operand))

    def contains(self, text: Term, _contains: Token, part: Term) -> Term:
        span = text.span.to(part.span)
        return Contains(text, part, span=span, depth=depth_of(span, text, part))

    def element(
        self, function: Token, _opening: Token, reference: Reference, closing: Token
    ) -> Term:
        name = Name(str(function), span=span_of(function))
        return Element(name, reference, span=name.span.to(span_of(closing)))

    def filter(self, word: Token, _opening: Token, condition: Term, closing: Token) -> Term:
        span = span_of(word).to(span_of(closing))
        return FilterTerm(condition, span=span, depth=depth_of(span_of(word), condition))

    def group(self, _opening: Token, condition: Term, _closing: Token) -> Term:
        return condition

    def occurs_within(
        self,
        opening: Token,
        first: Name,
        _comma: Token,
        second: Name,
        _closing: Token,
        _occurs: Token,
        _within: Token,
        length: Length,
    ) -> Term:
        span = span_of(opening).to(length.span)
        return OccursWithin(first, second, length, span=span)

    def length(self, *parts: Token | None) -> Length:
        *amount, unit = parts
        given = tuple(part for part in amount if part is not None)
        return self._length(span_of(given[0]), given, unit)


def _few(patterns: list[EventPattern]) -> list[EventPattern]:
    """The operands, unless there are more than any pattern may have."""
    if len(patterns) > MOST_COMPONENTS:
        raise _TooManyComponents(patterns[MOST_COMPONENTS].span)
    return patterns
