"""Closing a pattern: durations become integers of the time column, parameters become literals."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from numbers import Integral, Real
from typing import TypeAlias

from cepheid.algebra.expression import (
    Apart,
    Duration,
    Expression,
    Literal,
    Parameter,
    Window,
    rebuild,
)
from cepheid.algebra.expression import walk as walk_expression
from cepheid.algebra.node_expressions import node_expressions, with_node_expressions
from cepheid.algebra.pattern import (
    Absence,
    Agg,
    Conj,
    Guard,
    Lossy,
    Pair,
    Pattern,
    Seq,
    TimeBound,
    Timer,
    Within,
    operands,
    walk,
    with_operands,
)
from cepheid.algebra.query import Output, Query
from cepheid.model.diagnostics import Diagnostic, SourceText, Span, did_you_mean
from cepheid.model.errors import OptionError, QueryError
from cepheid.model.event_time import TimeDomain

Value: TypeAlias = int | float | str | bool | None

_LARGEST_INTEGER = 2**63 - 1


def bind(
    pattern: Pattern,
    domain: TimeDomain,
    parameters: Mapping[str, object],
    *,
    source: SourceText | None = None,
) -> Pattern:
    """The closed pattern: windows and ticks in the time column's unit, no parameter left.

    A node whose window is already an integer is closed, and so are its ticks: binding twice is
    binding once. `source` lets an error show the place in the query's text.

    >>> from cepheid.algebra.text import from_text, to_text
    >>> open_pattern = from_text("Timer(Atom([A], x, x.v > :least), delay=:w s)")
    >>> to_text(bind(open_pattern, TimeDomain(is_timestamp=True), {"least": 3, "w": 0.5}))
    'Timer(Atom([A], x, x.v > 3), delay=500000)'
    """
    return _Binder(domain, parameters, collect_parameters(pattern), source).pattern(pattern)


def bind_query(
    query: Query,
    domain: TimeDomain,
    parameters: Mapping[str, object],
    *,
    known: Collection[str] = (),
) -> Query:
    """The query with its pattern and its RETURN clause bound.

    `known` names parameters that other queries of the same program use: they are not refused.
    """
    names = dict.fromkeys([*query_parameters(query), *known])
    binder = _Binder(domain, parameters, tuple(names), query.source)
    output = query.output
    if output is not None:
        bound = tuple((name, binder.expression(value)) for name, value in output.attributes)
        output = Output(output.type, bound)
    return replace(query, pattern=binder.pattern(query.pattern), output=output)


def collect_parameters(pattern: Pattern) -> tuple[str, ...]:
    """The names of all parameters in windows and expressions, in order of first use.

    >>> from cepheid.algebra.text import from_text
    >>> collect_parameters(from_text("Timer(Atom([A], x, x.v > :least), delay=:w s)"))
    ('w', 'least')
    """
    names: dict[str, None] = {}
    for node in walk(pattern):
        for window in _windows(node):
            if isinstance(window, Duration) and isinstance(window.amount, Parameter):
                names[window.amount.name] = None
        for expression in node_expressions(node):
            names.update(dict.fromkeys(_parameters_of(expression)))
    return tuple(names)


def query_parameters(query: Query) -> tuple[str, ...]:
    """The parameters of a query: those of its pattern, then those of its RETURN clause."""
    names = dict.fromkeys(collect_parameters(query.pattern))
    for _, expression in query.output.attributes if query.output else ():
        names.update(dict.fromkeys(_parameters_of(expression)))
    return tuple(names)


def _windows(node: Pattern) -> tuple[Window, ...]:
    match node:
        case Within() | Conj() | Pair() | Lossy():
            return (node.window,)
        case Seq() | Guard():
            return () if node.window is None else (node.window,)
        case Timer():
            return (node.delay,)
        case Absence():
            return (node.duration,)
        case Agg():
            return (node.over,)
        case _:
            return ()


def _parameters_of(expression: Expression) -> Iterator[str]:
    for part in walk_expression(expression):
        if isinstance(part, Parameter):
            yield part.name
        elif isinstance(part, Apart) and isinstance(part.window, Duration):
            if isinstance(part.window.amount, Parameter):
                yield part.window.amount.name


class _Binder:
    """One binding: the time domain and the checked values, applied bottom up."""

    def __init__(
        self,
        domain: TimeDomain,
        given: Mapping[str, object],
        known: Collection[str],
        source: SourceText | None,
    ) -> None:
        _refuse_unknown(given, known)
        self._domain = domain
        self._values = {name: _scalar(name, value) for name, value in given.items()}
        self._source = source

    def pattern(self, node: Pattern) -> Pattern:
        bound = with_operands(node, tuple(self.pattern(operand) for operand in operands(node)))
        return self._close_windows(with_node_expressions(bound, self.expression))

    def expression(self, expression: Expression) -> Expression:
        return rebuild(expression, self._close_part)

    def _close_part(self, part: Expression) -> Expression:
        match part:
            case Parameter():
                return Literal(self._value(part), span=part.span)
            case Apart():
                return replace(part, window=self._length(part.window, part.span))
            case _:
                return part

    def _close_windows(self, node: Pattern) -> Pattern:
        match node:
            case Within(window=Duration()):
                ticks = node.ticks * self._domain.one_tick
                return replace(node, window=self._length(node.window, node.span), ticks=ticks)
            case Guard(window=Duration()):
                return replace(
                    node,
                    window=self._length(node.window, node.span),
                    low=self._bound(node.low),
                    high=self._bound(node.high),
                )
            case Conj() | Pair() | Lossy() | Seq(window=Duration()):
                return replace(node, window=self._length(node.window, node.span))
            case Timer():
                return replace(node, delay=self._length(node.delay, node.span))
            case Absence():
                return replace(node, duration=self._length(node.duration, node.span))
            case Agg():
                return replace(node, over=self._length(node.over, node.span))
            case _:
                return node

    def _bound(self, bound: TimeBound) -> TimeBound:
        return replace(bound, ticks=bound.ticks * self._domain.one_tick)

    def _length(self, window: Window | None, span: Span | None) -> int:
        if not isinstance(window, Duration):
            assert window is not None
            return window
        amount = self._amount(window, span)
        try:
            length = self._domain.resolve(amount, window.unit)
        except QueryError as error:
            raise QueryError([self._placed(d, span) for d in error.diagnostics]) from None
        if length < 0:
            message = f"the window is negative: {length}"
            raise QueryError(self._placed(Diagnostic("window-negative", message), span))
        return length

    def _amount(self, window: Duration, span: Span | None) -> Fraction:
        amount = window.amount
        value = self._value(amount) if isinstance(amount, Parameter) else amount
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            diagnostic = Diagnostic(
                "bad-parameter",
                f"a window's length must be a number, not {value!r}",
                help='the unit is part of the query: write `:w seconds` and give params={"w": 10}',
            )
            raise QueryError(self._placed(diagnostic, span))
        # The shortest decimal that means this float is what was written: 0.1 s is 100000 us.
        return Fraction(repr(value))

    def _value(self, parameter: Parameter) -> Value:
        if parameter.name in self._values:
            return self._values[parameter.name]
        diagnostic = Diagnostic(
            "missing-parameter",
            f"the query needs a value for the parameter `:{parameter.name}`",
            label="no value given",
            help=f'give it with params={{"{parameter.name}": ...}}',
        )
        raise QueryError(self._placed(diagnostic, parameter.span))

    def _placed(self, diagnostic: Diagnostic, span: Span | None) -> Diagnostic:
        return replace(diagnostic, span=diagnostic.span or span, source=self._source)


def _refuse_unknown(given: Mapping[str, object], known: Collection[str]) -> None:
    unknown = [name for name in given if name not in known]
    if not unknown:
        return
    uses = ", ".join(f"`:{name}`" for name in known) or "no parameters"
    raise OptionError(
        [
            Diagnostic(
                "unknown-parameter",
                f"the query has no parameter `:{name}`",
                notes=(f"the query uses {uses}",),
                help=did_you_mean(name, known),
            )
            for name in unknown
        ]
    )


def _scalar(name: str, value: object) -> Value:
    """The given value as a plain scalar; numbers of other libraries become Python's."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Integral) and abs(int(value)) <= _LARGEST_INTEGER:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral):
        number = float(value)
        if not math.isnan(number):
            return number
    diagnostic = Diagnostic(
        "bad-parameter",
        f"the parameter `:{name}` can not be {value!r}",
        help="give a string, a boolean, None, or a number of at most 64 bits that is not NaN",
    )
    raise OptionError(diagnostic)
