"""What must hold for every pattern, whether a language, a rewrite or a planner made it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from cepheid.algebra.expression import (
    COMPARISONS,
    FUNCTIONS,
    Aggregate,
    Apart,
    Arithmetic,
    Call,
    Compare,
    Duration,
    Expression,
    Parameter,
    Window,
    variables,
)
from cepheid.algebra.expression import walk as walk_expression
from cepheid.algebra.node_expressions import node_expressions
from cepheid.algebra.pattern import (
    Absence,
    Agg,
    Atom,
    Conj,
    Dedup,
    Except,
    Filter,
    Guard,
    Lossy,
    Map,
    Measure,
    Next,
    Nth,
    Pair,
    Pattern,
    Plus,
    Seq,
    TimeBound,
    Timer,
    Union,
    Within,
    bound_variables,
    walk,
)
from cepheid.algebra.text import to_text
from cepheid.model.diagnostics import Diagnostic
from cepheid.model.errors import InternalError

AGGREGATES = ("count", "sum", "avg", "min", "max")

_LONGEST_TEXT = 400


def check(pattern: Pattern, *, closed: bool = False) -> None:
    """Raise InternalError, naming the broken rule and the node, if the pattern is ill-formed.

    With `closed` every window must be an integer and no parameter may be left.

    >>> check(Atom(("A",), "x"))
    >>> check(Nth(Atom(("A",), "x"), 0))
    Traceback (most recent call last):
    ...
    cepheid.model.errors.InternalError: error[position-from-1]: ... in Nth(Atom([A], x), position=0)
    """
    for node in walk(pattern):
        _check_node(node, closed)
        for expression in node_expressions(node):
            _check_expression(node, expression, closed)


def _check_node(node: Pattern, closed: bool) -> None:
    match node:
        case Atom():
            _scope(node, node.predicate, [node.variable])
        case Filter() | Plus() | Dedup() | Map():
            for expression in node_expressions(node):
                _scope(node, expression, bound_variables(node.pattern))
            if isinstance(node, Plus) and node.most is not None:
                _position(node, node.most)
        case Union():
            _arity(node, node.patterns)
        case Conj():
            _arity(node, node.patterns)
            _apart(node, node.patterns)
            _window(node, node.window, closed)
        case Seq():
            _arity(node, node.patterns)
            _apart(node, node.patterns)
            _window(node, node.window, closed)
        case Within():
            _window(node, node.window, closed)
            _measure(node)
        case Guard():
            _apart(node, (node.pattern, node.negated))
            _window(node, node.window, closed)
            _bound(node, node.low)
            _bound(node, node.high)
            _scope(node, node.predicate, _both(node.pattern, node.negated))
        case Except():
            _apart(node, (node.pattern, node.negated))
            for since in (node.since, *node.or_since):
                if since not in bound_variables(node.pattern):
                    _broken("bound-variables", f"`{since}` (since) is not bound", node)
            _scope(node, node.predicate, _both(node.pattern, node.negated))
        case Next():
            _apart(node, (node.first, node.second))
            _scope(node, node.skip, _both(node.first, node.second))
            _scope(node, node.test, _both(node.first, node.second))
        case Timer():
            _window(node, node.delay, closed)
        case Absence():
            _window(node, node.duration, closed)
        case Nth():
            _position(node, node.position)
        case Pair():
            _pair(node, closed)
        case Lossy():
            _lossy(node, closed)
        case Agg():
            _agg(node, closed)
        case _:
            assert_never(node)


def _check_expression(node: Pattern, expression: Expression, closed: bool) -> None:
    for part in walk_expression(expression):
        match part:
            case Call(function, arguments):
                if function not in FUNCTIONS:
                    _broken("known-functions", f"there is no function `{function}`", node)
                if len(arguments) != len(FUNCTIONS[function][0]):
                    _broken("known-functions", f"`{function}` has {len(arguments)} arguments", node)
            case Compare(op) if op not in COMPARISONS:
                _broken("known-operators", f"`{op}` compares nothing", node)
            case Arithmetic(op) if op not in ("+", "-", "*", "/"):
                _broken("known-operators", f"`{op}` is no arithmetic", node)
            case Aggregate(function):
                # A match is complete only where it becomes a new event.
                if not isinstance(node, Map):
                    _broken("aggregates-in-map", f"`{function}` stands outside a Map", node)
                if function not in AGGREGATES:
                    _broken("known-functions", f"there is no aggregate `{function}`", node)
            case Apart(window=window):
                _window(node, window, closed)
            case Parameter(name) if closed:
                _broken("closed", f"the parameter `:{name}` has no value", node)
            case _:
                pass


def _pair(node: Pair, closed: bool) -> None:
    _apart(node, (node.first, node.second))
    _window(node, node.window, closed)
    _position(node, node.nth_first)
    _position(node, node.nth_second)
    for first, second in node.key:
        _scope(node, first, bound_variables(node.first))
        _scope(node, second, bound_variables(node.second))
    _scope(node, node.predicate, _both(node.first, node.second))


def _lossy(node: Lossy, closed: bool) -> None:
    names = [component.variable for component in node.components]
    if not any(not component.negated for component in node.components):
        _broken("arity", "no positive component", node)
    if len(set(names)) < len(names):
        _broken("unique-variables", "a variable stands for two components", node)
    if not 0 <= node.threshold <= 1 or not all(0 <= c.loss <= 1 for c in node.components):
        _broken("probabilities", "a threshold or loss is not between 0 and 1", node)
    _window(node, node.window, closed)
    for variable, _, default in node.defaults:
        if variable not in names:
            _broken("bound-variables", f"`{variable}` (defaults) is not a component", node)
        _scope(node, default, names)
    _scope(node, node.predicate, names)


def _agg(node: Agg, closed: bool) -> None:
    _window(node, node.over, closed)
    if node.function not in AGGREGATES:
        _broken("known-functions", f"there is no aggregate `{node.function}`", node)
    if node.argument is None and node.function != "count":
        _broken("arity", f"`{node.function}` needs an argument", node)
    inner = bound_variables(node.pattern)
    for _, key in node.group:
        _scope(node, key, inner)
    if node.argument is not None:
        _scope(node, node.argument, inner)
    _scope(node, node.having, [node.variable])


def _both(first: Pattern, second: Pattern) -> tuple[str, ...]:
    return (*bound_variables(first), *bound_variables(second))


def _arity(node: Pattern, patterns: tuple[Pattern, ...]) -> None:
    if not patterns:
        _broken("arity", "there is no operand", node)


def _apart(node: Pattern, patterns: tuple[Pattern, ...]) -> None:
    seen: set[str] = set()
    for pattern in patterns:
        repeated = seen.intersection(bound_variables(pattern))
        if repeated:
            name = min(repeated)
            _broken("unique-variables", f"`{name}` is bound by two operands", node)
        seen.update(bound_variables(pattern))


def _scope(node: Pattern, expression: Expression, bound: Iterable[str]) -> None:
    loose = variables(expression).difference(bound)
    if loose:
        _broken("bound-variables", f"`{min(loose)}` is not bound where it is used", node)


def _window(node: Pattern, window: Window | None, closed: bool) -> None:
    if isinstance(window, Duration):
        if closed:
            _broken("closed", "a window has no length in the time column's unit yet", node)
    elif window is not None and (isinstance(window, bool) or window < 0):
        _broken("windows", f"the window {window} is not a whole number from 0", node)


def _measure(node: Within) -> None:
    named = (node.first, node.second)
    if node.measure is Measure.END_TO_END:
        if not set(named) <= set(bound_variables(node.pattern)):
            _broken("bound-variables", "end_to_end needs two bound variables", node)
    elif named != (None, None):
        _broken("windows", "only end_to_end names variables", node)


def _bound(node: Guard, bound: TimeBound) -> None:
    known = bound_variables(node.pattern)
    if not bound.groups or not all(bound.groups):
        _broken("time-bounds", "a bound has no variable to look at", node)
    loose = {name for group in bound.groups for name in group}.difference(known)
    if loose:
        _broken("time-bounds", f"a bound looks at `{min(loose)}`, which is not bound", node)
    if (bound.windows or bound.ticks) and node.window is None:
        _broken("time-bounds", "a bound counts windows or ticks, but there is no window", node)


def _position(node: Pattern, position: int) -> None:
    if position < 1:
        _broken("position-from-1", f"the position {position} is below 1", node)


def _broken(rule: str, message: str, node: Pattern) -> None:
    text = to_text(node)
    shown = text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " ..."
    raise InternalError(Diagnostic(rule, f"{message} in {shown}", node.span))
