"""Types of expressions: inference, the check of predicates, and ISO time stamps as integers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, assert_never

from cepheid.algebra.expression import (
    FUNCTIONS,
    Aggregate,
    And,
    Apart,
    Arithmetic,
    Attribute,
    Call,
    Compare,
    Every,
    Expression,
    Literal,
    Negative,
    Not,
    Or,
    Parameter,
    Previous,
    ScalarType,
    rebuild,
    walk,
)
from cepheid.model.diagnostics import Diagnostic, SourceText
from cepheid.model.errors import QueryError
from cepheid.model.undefined import is_value

AttributeTypes: TypeAlias = Mapping[tuple[str, str], ScalarType]
"""The type of each (variable, attribute); one that is not there is UNKNOWN."""

_BOOL, _INT, _FLOAT = ScalarType.BOOL, ScalarType.INT, ScalarType.FLOAT
_STRING, _TIMESTAMP, _UNKNOWN = ScalarType.STRING, ScalarType.TIMESTAMP, ScalarType.UNKNOWN
_NUMERIC = (_INT, _FLOAT)
_IN_WORDS = {
    _BOOL: "true or false",
    _INT: "a whole number",
    _FLOAT: "a number",
    _STRING: "a string",
    _TIMESTAMP: "a time stamp",
    _UNKNOWN: "of unknown type",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def infer(
    expression: Expression, attribute_types: AttributeTypes, source: SourceText | None = None
) -> ScalarType:
    """The type of an expression's value; raises QueryError `type-mismatch` if it has none.

    >>> infer(Arithmetic("/", Literal(1), Attribute("x", "n")), {("x", "n"): ScalarType.INT})
    <ScalarType.FLOAT: 'float'>
    """
    inference = _Inference(attribute_types, source)
    kind = inference.type_of(expression)
    if inference.mismatches:
        raise QueryError(inference.mismatches)
    return kind


def find_mismatches(
    expression: Expression, attribute_types: AttributeTypes, source: SourceText | None = None
) -> tuple[Diagnostic, ...]:
    """Everything in an expression that has no type, for checkers that collect errors."""
    inference = _Inference(attribute_types, source)
    inference.type_of(expression)
    return tuple(inference.mismatches)


def check_predicate(
    predicate: Expression, attribute_types: AttributeTypes, source: SourceText | None = None
) -> None:
    """Raise QueryError `type-mismatch` for a predicate that is ill typed or no truth value."""
    inference = _Inference(attribute_types, source)
    inference.condition(predicate)
    if inference.mismatches:
        raise QueryError(inference.mismatches)


def decide(
    predicate: Expression, attribute_types: AttributeTypes, source: SourceText | None = None
) -> tuple[Expression, tuple[Diagnostic, ...]]:
    """A predicate in which atoms of types that never fit are false, and what is to tell of them.

    NEXT's rule: an operator that is not defined for its types makes the atom false, and NOT of it
    true (SPEC A1.3). What looks back with PREV or ALL and finds nothing is no test at all.
    """
    match predicate:
        case And(operands) | Or(operands):
            parts = [decide(each, attribute_types, source) for each in operands]
            told = tuple(problem for _, problems in parts for problem in problems)
            return replace(predicate, operands=tuple(part for part, _ in parts)), told
        case Not(operand):
            part, told = decide(operand, attribute_types, source)
            return replace(predicate, operand=part), told
        case _:
            told = find_mismatches(predicate, attribute_types, source)
            return (_never(predicate) if told else predicate), told


def _never(atom: Expression) -> Expression:
    """False, but true where an atom looks back at nothing."""
    back = [part for part in walk(atom) if isinstance(part, Previous | Every)]
    return Or(tuple(Compare("!=", part, part) for part in back), span=atom.span)


def coerce(expression: Expression, attribute_types: AttributeTypes) -> Expression:
    """The expression with each string that is compared with a time stamp as microseconds UTC.

    Check before, not after: the integers it writes fit the column, not the language.

    >>> late = Compare(">", Attribute("x", "ts"), Literal("1970-01-01T00:00:01"))
    >>> coerce(late, {("x", "ts"): ScalarType.TIMESTAMP}).right
    Literal(value=1000000)
    """

    def is_time(node: Expression) -> bool:
        return _Inference(attribute_types, None).type_of(node) is _TIMESTAMP

    def change(node: Expression) -> Expression:
        if not isinstance(node, Compare):
            return node
        if _is_iso(node.right) and is_time(node.left):
            return replace(node, right=_as_microseconds(node.right))
        if _is_iso(node.left) and is_time(node.right):
            return replace(node, left=_as_microseconds(node.left))
        return node

    return rebuild(expression, change)


def iso_microseconds(text: str) -> int | None:
    """Microseconds since 1970 UTC of an ISO date or time stamp (UTC if it names no zone)."""
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def _is_iso(node: Expression) -> bool:
    return (
        isinstance(node, Literal)
        and isinstance(node.value, str)
        and iso_microseconds(node.value) is not None
    )


def _as_microseconds(node: Expression) -> Expression:
    assert isinstance(node, Literal)
    return replace(node, value=iso_microseconds(str(node.value)))


def _literal_type(value: int | float | str | bool | None) -> ScalarType:
    match value:
        case bool():
            return _BOOL
        case int():
            return _INT if is_value(value) else _FLOAT
        case float():
            return _UNKNOWN if math.isnan(value) else _FLOAT
        case str():
            return _STRING
        case None:
            return _UNKNOWN


@dataclass(slots=True)
class _Inference:
    """Walks one expression; what has no type is noted once and then counts as UNKNOWN."""

    types: AttributeTypes
    source: SourceText | None
    mismatches: list[Diagnostic] = field(default_factory=list)

    def type_of(self, node: Expression) -> ScalarType:
        match node:
            case Literal(value):
                return _literal_type(value)
            case Parameter():
                return _UNKNOWN
            case Attribute(variable, name) | Previous(variable, name) | Every(variable, name):
                return self.types.get((variable, name), _UNKNOWN)
            case Arithmetic():
                return self._arithmetic(node)
            case Negative(operand):
                return self._number(operand, "a minus sign needs a number")
            case Call():
                return self._call(node)
            case Compare():
                self._compare(node)
                return _BOOL
            case Apart():
                return _BOOL
            case And(operands) | Or(operands):
                for operand in operands:
                    self.condition(operand)
                return _BOOL
            case Not(operand):
                self.condition(operand)
                return _BOOL
            case Aggregate():
                return self._aggregate(node)
            case _:
                assert_never(node)

    def condition(self, node: Expression) -> None:
        """Note a node that is not a truth value where one is needed."""
        kind = self.type_of(node)
        if kind not in (_BOOL, _UNKNOWN):
            self._note(node, "a condition is needed, not a value", kind)

    def _note(
        self, node: Expression, message: str, kind: ScalarType, help: str | None = None
    ) -> ScalarType:
        label = f"this is {_IN_WORDS[kind]}"
        self.mismatches.append(
            Diagnostic("type-mismatch", message, node.span, label, (), help, source=self.source)
        )
        return _UNKNOWN

    def _number(self, node: Expression, message: str) -> ScalarType:
        kind = self.type_of(node)
        if kind in _NUMERIC or kind is _UNKNOWN:
            return kind
        return self._note(node, message, kind)

    def _arithmetic(self, node: Arithmetic) -> ScalarType:
        left, right = self.type_of(node.left), self.type_of(node.right)
        if _TIMESTAMP in (left, right):
            return self._time_arithmetic(node, left, right)
        message = f"`{node.op}` needs numbers"
        for operand, kind in ((node.left, left), (node.right, right)):
            if kind not in (*_NUMERIC, _UNKNOWN):
                help = "join strings with concat(a, b)" if kind is _STRING else None
                return self._note(operand, message, kind, help)
        if node.op == "/":
            return _FLOAT
        if _UNKNOWN in (left, right):
            return _UNKNOWN
        return _INT if left is right is _INT else _FLOAT

    def _time_arithmetic(self, node: Arithmetic, left: ScalarType, right: ScalarType) -> ScalarType:
        """Time - time is microseconds; time +- whole microseconds is a time."""
        pair = (left, node.op, right)
        match pair:
            case (ScalarType.TIMESTAMP | ScalarType.UNKNOWN, "-", ScalarType.TIMESTAMP):
                return _INT
            case (ScalarType.TIMESTAMP, "-", ScalarType.UNKNOWN):
                return _UNKNOWN
            case (ScalarType.TIMESTAMP, "+" | "-", ScalarType.INT):
                return _TIMESTAMP
            case (ScalarType.TIMESTAMP, "+", ScalarType.UNKNOWN):
                return _TIMESTAMP
            case (ScalarType.INT | ScalarType.UNKNOWN, "+", ScalarType.TIMESTAMP):
                return _TIMESTAMP
            case _:
                message = f"`{node.op}` has no meaning between these types"
                help = "subtract two time stamps, or add whole microseconds to one"
                kind = right if left is _TIMESTAMP else left
                return self._note(
                    node.right if left is _TIMESTAMP else node.left, message, kind, help
                )

    def _call(self, node: Call) -> ScalarType:
        wanted, result = FUNCTIONS[node.function]
        kinds = [self.type_of(argument) for argument in node.arguments]
        for argument, kind, want in zip(node.arguments, kinds, wanted, strict=True):
            fits = kind in (want, _UNKNOWN) or (want is _FLOAT and kind is _INT)
            if not fits:
                message = f"`{node.function}` needs {_IN_WORDS[want]} here"
                self._note(argument, message, kind)
        if node.function in ("abs", "least", "greatest"):
            known = all(kind in _NUMERIC for kind in kinds)
            return (_FLOAT if _FLOAT in kinds else _INT) if known else _UNKNOWN
        return result

    def _compare(self, node: Compare) -> None:
        left, right = self.type_of(node.left), self.type_of(node.right)
        if _UNKNOWN in (left, right):
            return
        if left is right is _BOOL and node.op not in ("=", "!="):
            message = f"`{node.op}` has no meaning between truth values"
            self._note(node, message, _BOOL, "truth values can only be equal or not")
            return
        if left is right or (left in _NUMERIC and right in _NUMERIC):
            return
        for time, literal in ((left, node.right), (right, node.left)):
            if time is _TIMESTAMP and isinstance(literal, Literal) and _is_text(literal):
                if not _is_iso(literal):
                    message = "a time stamp is compared with a string that is none"
                    help = "write the time as '2026-03-01 12:00:00' or '2026-03-01T12:00:00+02:00'"
                    self._note(literal, message, _STRING, help)
                return
        message = f"{_of(node.left, left)} is compared with {_of(node.right, right)}"
        self.mismatches.append(
            Diagnostic(
                "type-mismatch",
                message,
                node.span,
                "the two sides never fit",
                help=_compare_help(node, left, right),
                source=self.source,
            )
        )

    def _aggregate(self, node: Aggregate) -> ScalarType:
        if node.name is None or node.function == "count":
            return _INT
        kinds = {
            kind
            for (variable, name), kind in self.types.items()
            if name == node.name and node.variable in (None, variable)
        }
        kind = kinds.pop() if len(kinds) == 1 else _FLOAT if kinds == set(_NUMERIC) else _UNKNOWN
        if kind is _BOOL or (node.function in ("sum", "avg") and kind in (_STRING, _TIMESTAMP)):
            message = f"`{node.function}` needs numbers, and `{node.name}` holds none"
            return self._note(node, message, kind)
        return _FLOAT if node.function == "avg" else kind


def _is_text(node: Literal) -> bool:
    return isinstance(node.value, str)


def _of(node: Expression, kind: ScalarType) -> str:
    match node:
        case Attribute(variable, name) | Previous(variable, name) | Every(variable, name):
            return f"`{variable}.{name}` ({kind.value})"
        case Literal(value):
            return f"`{value!r}` ({kind.value})"
        case _:
            return _IN_WORDS[kind]


def _compare_help(node: Compare, left: ScalarType, right: ScalarType) -> str | None:
    for literal, kind in ((node.left, right), (node.right, left)):
        if not isinstance(literal, Literal):
            continue
        if isinstance(literal.value, str) and kind in _NUMERIC:
            try:
                float(literal.value)
            except ValueError:
                return None
            return f"write {literal.value} without quotes"
        if isinstance(literal.value, int | float) and kind is _STRING:
            return f"write '{literal.value}' in quotes"
    return None
