"""Which operator has which meaning for which types, when an expression is evaluated.

`algebra.typing` refuses an ill-typed query with a message; these rules say what remains when types
are known only from the data: an operator without meaning for its operands is undefined, so the atom
is false (docs/semantics.md#conditions). The three evaluators (columns, kernels, Spark) share them.
"""

from __future__ import annotations

import math
from typing import assert_never

from cepheid.algebra.expression import (
    FUNCTIONS,
    And,
    Apart,
    Call,
    Compare,
    Expression,
    Literal,
    Not,
    Or,
    ScalarType,
)
from cepheid.model.errors import DataError, InternalError
from cepheid.model.undefined import is_value

_NUMERIC = (ScalarType.INT, ScalarType.FLOAT)


def literal_type(value: int | float | str | bool | None) -> ScalarType:
    """The type of a constant; NaN and integers that 64 bits cannot hold are undefined."""
    match value:
        case bool():
            return ScalarType.BOOL
        case int():
            return ScalarType.INT if is_value(value) else ScalarType.UNKNOWN
        case float():
            return ScalarType.UNKNOWN if math.isnan(value) else ScalarType.FLOAT
        case str():
            return ScalarType.STRING
        case None:
            return ScalarType.UNKNOWN
        case _:
            assert_never(value)


def literal_number(literal: Literal) -> int | float:
    """A defined numeric constant as it travels: booleans as 0 and 1."""
    value = literal.value
    assert isinstance(value, int | float)
    return int(value) if isinstance(value, bool) else value


def arithmetic_type(op: str, left: ScalarType, right: ScalarType) -> ScalarType:
    """The type of `left op right`, UNKNOWN where it has no meaning.

    Time minus time is microseconds; time plus or minus microseconds is a time.

    >>> arithmetic_type("-", ScalarType.TIMESTAMP, ScalarType.TIMESTAMP)
    <ScalarType.INT: 'int'>
    """
    match left, op, right:
        case (ScalarType.INT, "+" | "-" | "*", ScalarType.INT):
            return ScalarType.INT
        case (ScalarType.INT | ScalarType.FLOAT, _, ScalarType.INT | ScalarType.FLOAT):
            return ScalarType.FLOAT
        case (ScalarType.TIMESTAMP, "-", ScalarType.TIMESTAMP):
            return ScalarType.INT
        case (ScalarType.TIMESTAMP, "+" | "-", ScalarType.INT):
            return ScalarType.TIMESTAMP
        case (ScalarType.INT, "+", ScalarType.TIMESTAMP):
            return ScalarType.TIMESTAMP
        case _:
            return ScalarType.UNKNOWN


def comparison_type(op: str, left: ScalarType, right: ScalarType) -> ScalarType:
    """The type in which two operands are compared, UNKNOWN where it has no meaning.

    A time may meet an integer because ISO literals have become microseconds by then.
    """
    pair = {left, right}
    if pair == {ScalarType.BOOL}:
        return ScalarType.BOOL if op in ("=", "!=") else ScalarType.UNKNOWN
    if len(pair) == 1:
        return left
    if pair == {ScalarType.TIMESTAMP, ScalarType.INT}:
        return ScalarType.INT
    return number_type(left, right)


def number_type(*kinds: ScalarType) -> ScalarType:
    """INT for whole numbers only, FLOAT when some are not, UNKNOWN when some are no numbers."""
    if not all(kind in _NUMERIC for kind in kinds):
        return ScalarType.UNKNOWN
    return ScalarType.FLOAT if ScalarType.FLOAT in kinds else ScalarType.INT


def is_condition(node: Expression) -> bool:
    """Whether a node always answers yes or no: a connective or an atom."""
    match node:
        case And() | Or() | Not() | Compare() | Apart():
            return True
        case Call(function, _):
            return FUNCTIONS[function][1] is ScalarType.BOOL
        case _:
            return False


def absent_attribute(variable: str, name: str) -> DataError:
    """The error of a language that does not allow an attribute to be missing."""
    return DataError.of(
        "absent-attribute",
        f"an event bound to `{variable}` has no attribute `{name}`",
        help=f"give every event of its type a value for `{name}`, or filter those out first",
    )


def is_between_one(atom: Apart) -> bool:
    """True for an event and itself, the one time atom about single events; else it is unresolved.

    What is evaluated for single events knows their attributes and not those of others.
    """
    if atom.first != atom.second:
        raise unresolved(atom)
    return True


def unresolved(node: Expression) -> InternalError:
    """The error for a node that must have been replaced before an expression is evaluated."""
    return InternalError.of(
        "unresolved-expression",
        f"{type(node).__name__} reached an evaluator of single expressions",
        help="this is a bug: parameters, PREV and ALL are replaced while planning",
    )
