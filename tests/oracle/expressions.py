"""Expressions evaluated row by row, as the docstring of algebra/expression.py tells them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import product
from typing import Any

from cepheid.algebra import expression as ex
from tests.oracle.events import Ev, Match

LEAST_INT, GREATEST_INT = -(2**63) + 2, 2**63 - 1
"""A result outside is undefined: two values below the least are reserved for null and absent."""


class Hole(Enum):
    """Why a reference has no value."""

    UNDEFINED = "null, NaN, or an operation without a result"
    ABSENT = "the event has no such attribute"
    UNBOUND = "the match has no such variable (another branch of a union)"
    VACUOUS = "PREV or ALL without an earlier element, or a missed component without a default"


class AbsentAttributeError(LookupError):
    """An absent attribute where the language forbids it (Absent.ERROR)."""


@dataclass(frozen=True)
class Scope:
    """What names mean: the bound match, and the candidate that an iteration may append to it."""

    bound: Match
    candidate: Match | None = None
    defaults: Mapping[tuple[str, str], ex.Expression] = field(default_factory=dict)
    chosen: Mapping[str, Ev] = field(default_factory=dict)  # ALL's current elements


def truth(node: ex.Expression, scope: Scope, absent: ex.Absent) -> bool:
    """Two-valued truth: holes are settled at the atom, then AND, OR and NOT are plain."""
    match node:
        case ex.And(operands):
            return all(truth(operand, scope, absent) for operand in operands)
        case ex.Or(operands):
            return any(truth(operand, scope, absent) for operand in operands)
        case ex.Not(operand):
            return not truth(operand, scope, absent)
        case _:
            return _atom(node, scope, absent)


def _atom(node: ex.Expression, scope: Scope, absent: ex.Absent) -> bool:
    ranging = sorted({part.variable for part in ex.walk(node) if isinstance(part, ex.Every)})
    for elements in product(*(scope.bound.of(variable) for variable in ranging)):
        chosen = replace(scope, chosen=dict(zip(ranging, elements, strict=True)))
        if not _atom_once(node, chosen, absent):
            return False
    return True


def _atom_once(node: ex.Expression, scope: Scope, absent: ex.Absent) -> bool:
    holes = {value for part in ex.walk(node) if isinstance(value := _read(part, scope), Hole)}
    if Hole.VACUOUS in holes:
        return True
    if Hole.UNBOUND in holes:
        # NEXT: the atom is false; PLAN: a conjunct on another branch does not restrict (Part F).
        return absent is not ex.Absent.FALSE
    if Hole.ABSENT in holes:
        if absent is ex.Absent.ERROR:
            raise AbsentAttributeError(node)
        return absent is ex.Absent.TRUE
    return evaluate(node, scope, absent) is True


def evaluate(node: ex.Expression, scope: Scope, absent: ex.Absent) -> Any:
    """The value of an expression, or a Hole."""
    match node:
        case ex.Arithmetic(op, left, right):
            return _with(
                lambda a, b: _arithmetic(op, a, b),
                evaluate(left, scope, absent),
                evaluate(right, scope, absent),
            )
        case ex.Negative(operand):
            return _with(lambda a: _number(-a), evaluate(operand, scope, absent))
        case ex.Compare(op, left, right):
            return _with(
                lambda a, b: compare(op, a, b),
                evaluate(left, scope, absent),
                evaluate(right, scope, absent),
            )
        case ex.Call(function, arguments):
            values = [evaluate(argument, scope, absent) for argument in arguments]
            return _with(lambda *a: _call(function, *a), *values)
        case ex.Apart(first, second, window):
            last = {v: event.te for v, event in _bindings(scope) if event is not None}
            is_bound = first in last and second in last
            return is_bound and abs(last[second] - last[first]) <= window
        case ex.And() | ex.Or() | ex.Not():
            return truth(node, scope, absent)
        case ex.Aggregate(function, name, variable):
            return _aggregate(function, name, variable, scope.bound)
        case _:
            return _read(node, scope)


def _with(operation: Any, *values: Any) -> Any:
    holes = [value for value in values if isinstance(value, Hole)]
    for kind in (Hole.VACUOUS, Hole.UNBOUND, Hole.ABSENT, Hole.UNDEFINED):
        if kind in holes:
            return kind
    return operation(*values)


def _read(node: ex.Expression, scope: Scope) -> Any:
    """The value of a leaf; None for what is no leaf."""
    match node:
        case ex.Literal(value):
            return _defined(value)
        case ex.Attribute(variable, name):
            named = [b for b in _bindings(scope) if b[0] == variable]
            if not named:
                return Hole.UNBOUND
            event = named[-1][1]
            return _default(variable, name, scope) if event is None else _value(event, name)
        case ex.Previous(variable, name):
            earlier = scope.bound.of(variable)
            return _value(earlier[-1], name) if earlier else Hole.VACUOUS
        case ex.Every(variable, name):
            chosen = scope.chosen.get(variable)
            return Hole.VACUOUS if chosen is None else _value(chosen, name)
        case ex.Parameter(name):
            raise ValueError(f"the oracle runs closed patterns, `:{name}` is open")
        case _:
            return None


def _bindings(scope: Scope) -> tuple[tuple[str, Ev | None], ...]:
    return scope.bound.bindings + (scope.candidate.bindings if scope.candidate else ())


def _default(variable: str, name: str, scope: Scope) -> Any:
    default = scope.defaults.get((variable, name))
    if default is None:
        return Hole.VACUOUS
    rest = {key: value for key, value in scope.defaults.items() if key != (variable, name)}
    return evaluate(default, replace(scope, defaults=rest), ex.Absent.TRUE)


def _value(event: Ev, name: str) -> Any:
    return _defined(event.attrs[name]) if name in event.attrs else Hole.ABSENT


def _defined(value: Any) -> Any:
    if value is None:
        return Hole.UNDEFINED
    return value if isinstance(value, bool | str) else _number(value)


def _number(value: Any) -> Any:
    if isinstance(value, int):
        return value if LEAST_INT <= value <= GREATEST_INT else Hole.UNDEFINED
    if isinstance(value, float) and math.isnan(value):
        return Hole.UNDEFINED
    return value


def _arithmetic(op: str, left: Any, right: Any) -> Any:
    if op == "/":
        return Hole.UNDEFINED if right == 0 else _number(float(left) / float(right))
    if not (isinstance(left, int) and isinstance(right, int)):
        left, right = float(left), float(right)
    match op:
        case "+":
            return _number(left + right)
        case "-":
            return _number(left - right)
        case _:
            return _number(left * right)


def compare(op: str, left: Any, right: Any) -> Any:
    """A comparison of two defined values; of unlike kinds it is undefined."""
    if _kind(left) != _kind(right) or (isinstance(left, bool) and op not in ("=", "!=")):
        return Hole.UNDEFINED
    if _kind(left) == "number" and type(left) is not type(right):
        left, right = float(left), float(right)
    match op:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _call(function: str, *arguments: Any) -> Any:
    match function, *arguments:
        case "abs", value:
            return _number(abs(value))
        case "sqrt", value:
            return math.sqrt(value) if value >= 0 else Hole.UNDEFINED
        case (("least" | "greatest"), left, right):
            if type(left) is not type(right):
                left, right = float(left), float(right)
            return min(left, right) if function == "least" else max(left, right)
        case _, *strings if not all(isinstance(value, str) for value in strings):
            return Hole.UNDEFINED
        case "length", text:
            return len(text)
        case "lower", text:
            return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)
        case "upper", text:
            return "".join(chr(ord(c) - 32) if "a" <= c <= "z" else c for c in text)
        case "concat", left, right:
            return left + right
        case "contains", text, part:
            return part in text
        case "starts_with", text, part:
            return text.startswith(part)
        case "ends_with", text, part:
            return text.endswith(part)
        case _:
            raise ValueError(f"no function {function}")


def _aggregate(function: str, name: str | None, variable: str | None, match: Match) -> Any:
    events = match.events if variable is None else match.of(variable)
    if name is None:
        return len(events)
    values = [_value(event, name) for event in events]
    return aggregate(function, [value for value in values if not isinstance(value, Hole)])


def aggregate(function: str, values: list[Any]) -> Any:
    """count, sum, avg, min or max of defined values; only count is defined for none."""
    if function == "count":
        return len(values)
    if not values:
        return Hole.UNDEFINED
    if function in ("min", "max"):
        return min(values) if function == "min" else max(values)
    if not all(isinstance(value, int) for value in values):
        values = [float(value) for value in values]
    total = sum(values)
    return _number(total if function == "sum" else total / len(values))
