"""Scalar expressions as Spark columns, exact to the last row, so that filters run before a shuffle.

Spark's rules are not ours: its truth has three values, its NaN equals itself and exceeds all else,
and in ANSI mode an overflow stops the query. Inside this translation undefined is null or, for
FLOAT, also NaN, which arithmetic hands on by itself; each atom turns both into false. Only
`pyspark.sql.functions` is used, so it works on Spark Connect too.

The columns given must fit their type: whole numbers for INT, anything with fractions (decimals too)
for FLOAT, TimestampType for TIMESTAMP. A DATE or a TIMESTAMP_NTZ would be read in the session's
time zone: the host casts those before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from string import ascii_lowercase, ascii_uppercase
from typing import TypeAlias, assert_never

from pyspark.sql import Column
from pyspark.sql import functions as sf

from cepheid.algebra.expression import (
    MIRRORED,
    Absent,
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
    attributes,
    walk,
)
from cepheid.model.errors import InternalError
from cepheid.model.undefined import ABSENT_FLOAT, MIN_INT
from cepheid.planner.operator_types import (
    absent_attribute,
    arithmetic_type,
    comparison_type,
    is_between_one,
    is_condition,
    literal_number,
    literal_type,
    number_type,
    unresolved,
)

ColumnOf: TypeAlias = Callable[[str, str], Column | None]
"""The Spark column of (variable, attribute); None when the events do not have it."""
TypeOf: TypeAlias = Callable[[str, str], ScalarType]

_COMPARE: dict[str, Callable[[Column, Column], Column]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_SEARCH: dict[str, Callable[[Column, Column], Column]] = {
    "contains": sf.contains,
    "starts_with": sf.startswith,
    "ends_with": sf.endswith,
}
_TRY = {"+": sf.try_add, "-": sf.try_subtract, "*": sf.try_multiply}


def to_column(
    expression: Expression,
    column_of: ColumnOf,
    type_of: TypeOf,
    absent: Absent,
    null_is_absent: bool,
) -> Column:
    """The condition as a boolean column that is never null.

    With `null_is_absent` a null means that the event does not have the attribute, else that it is
    undefined. Under `Absent.ERROR` an absent attribute fails the query, by name.
    """
    return _Translation(column_of, type_of, absent, null_is_absent).predicate(expression)


def to_filter(
    expression: Expression,
    column_of: ColumnOf,
    type_of: TypeOf,
    absent: Absent,
    null_is_absent: bool,
) -> Column:
    """The condition for `DataFrame.filter`, where null counts as false.

    It keeps the same rows as `to_column`; comparisons of an attribute with a literal are bare, so
    that Catalyst hands them to the reader of the files (Parquet row groups, partitions).
    """
    return _Translation(column_of, type_of, absent, null_is_absent).filter(expression)


@dataclass(frozen=True, slots=True)
class _Value:
    """A column of values; null is undefined, and NaN too unless the value is `defined`.

    A `leaf` costs nothing to write twice.
    """

    column: Column
    type: ScalarType
    defined: bool = False
    leaf: bool = False


def _undefined() -> _Value:
    return _Value(sf.lit(None), ScalarType.UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Translation:
    column_of: ColumnOf
    type_of: TypeOf
    absent: Absent
    null_is_absent: bool

    def predicate(self, node: Expression) -> Column:
        match node:
            case And(operands):
                return reduce(and_, map(self.predicate, operands)) if operands else sf.lit(True)
            case Or(operands):
                return reduce(or_, map(self.predicate, operands)) if operands else sf.lit(False)
            case Not(operand):
                return ~self.predicate(operand)
            case _:
                return self._atom(node)

    def filter(self, node: Expression) -> Column:
        match node:
            case And(operands) if operands:
                return reduce(and_, map(self.filter, operands))
            case Or(operands) if operands:
                return reduce(or_, map(self.filter, operands))
            case Compare(op, Attribute() as attribute, Literal() as literal):
                bare = self._bare_comparison(op, attribute, literal)
            case Compare(op, Literal() as literal, Attribute() as attribute):
                bare = self._bare_comparison(MIRRORED[op], attribute, literal)
            case _:
                bare = None
        return self.predicate(node) if bare is None else bare

    def _bare_comparison(self, op: str, attribute: Attribute, literal: Literal) -> Column | None:
        """`attribute op literal` as data sources understand it; None where they cannot."""
        column = self.column_of(attribute.variable, attribute.name)
        if column is None or (self.null_is_absent and self.absent is Absent.ERROR):
            return None
        kind = self.type_of(attribute.variable, attribute.name)
        compare = _COMPARE[op]
        match (
            kind,
            literal_type(literal.value),
            comparison_type(op, kind, literal_type(literal.value)),
        ):
            case _, _, ScalarType.UNKNOWN:
                return None
            case ScalarType.FLOAT, _, _:
                holds = _bare_float(op, column.cast("double"), float(literal_number(literal)))
            case ScalarType.INT, ScalarType.INT, _:
                number = column.cast("long")
                holds = compare(number, _long(literal_number(literal)))
                if op in ("<", "<=", "!="):
                    holds = holds & (number >= _long(MIN_INT))
            case ScalarType.TIMESTAMP, ScalarType.INT, _:
                holds = compare(column, sf.timestamp_micros(_long(literal_number(literal))))
            case ((ScalarType.STRING | ScalarType.BOOL), _, _):
                holds = compare(column, sf.lit(literal.value))
            case _:
                return None
        if self.null_is_absent and self.absent is Absent.TRUE:
            return column.isNull() | holds
        return holds

    def _atom(self, node: Expression) -> Column:
        holds = sf.coalesce(self._test(node), sf.lit(False))
        nested = any(is_condition(part) for part in walk(node) if part is not node)
        for variable, name in sorted(attributes(node), reverse=True):
            column = self.column_of(variable, name)
            if column is None:
                missing = sf.lit(True)
            elif self.null_is_absent:
                missing = column.isNull()
            else:
                continue
            match self.absent:
                case Absent.TRUE:
                    holds = missing | holds
                case Absent.FALSE if column is None or nested:
                    holds = ~missing & holds
                case Absent.FALSE:
                    pass  # null makes the atom false by itself
                case Absent.ERROR:
                    error = absent_attribute(variable, name)
                    failure = sf.raise_error(sf.lit(f"{error.code}: {error.message}"))
                    holds = sf.when(missing, failure.cast("boolean")).otherwise(holds)
        return holds

    def _test(self, node: Expression) -> Column:
        match node:
            case Compare(op, left, right):
                return _compare(op, self._value(left), self._value(right))
            case Call(function, (text, part)) if function in _SEARCH:
                values = self._value(text), self._value(part)
                if any(value.type is not ScalarType.STRING for value in values):
                    return sf.lit(False)
                return _SEARCH[function](values[0].column, values[1].column)
            case Apart():
                return sf.lit(is_between_one(node))
            case _:
                value = self._value(node)
                return value.column if value.type is ScalarType.BOOL else sf.lit(False)

    def _value(self, node: Expression) -> _Value:
        match node:
            case Literal():
                return _literal(node)
            case Attribute(variable, name):
                column = self.column_of(variable, name)
                if column is None:
                    return _undefined()
                return _attribute(column, self.type_of(variable, name))
            case Arithmetic(op, left, right):
                return _arithmetic(op, self._value(left), self._value(right))
            case Negative(operand):
                return _negative(self._value(operand))
            case Call(function, arguments) if not is_condition(node):
                return _call(function, [self._value(argument) for argument in arguments])
            case Compare() | Apart() | And() | Or() | Not() | Call():
                # The atom around it has dealt with absent attributes.
                inner = _Translation(self.column_of, self.type_of, Absent.FALSE, False)
                return _Value(inner.predicate(node), ScalarType.BOOL, defined=True)
            case Parameter() | Previous() | Every() | Aggregate():
                raise unresolved(node)
            case _:
                assert_never(node)


def _long(value: float) -> Column:
    return sf.lit(int(value)).cast("long")


def _literal(literal: Literal) -> _Value:
    kind = literal_type(literal.value)
    match kind:
        case ScalarType.UNKNOWN:
            return _undefined()
        case ScalarType.STRING | ScalarType.BOOL:
            column = sf.lit(literal.value)
        case ScalarType.FLOAT:
            column = sf.lit(float(literal_number(literal)))
        case _:
            column = _long(literal_number(literal))
    return _Value(column, kind, defined=True, leaf=True)


def _attribute(column: Column, kind: ScalarType) -> _Value:
    """The attribute without the values that are reserved in the engine's arrays."""
    match kind:
        case ScalarType.UNKNOWN:
            return _undefined()
        case ScalarType.STRING | ScalarType.BOOL:
            value = column
        case ScalarType.FLOAT:
            number = column.cast("double")
            value = sf.when(number != sf.lit(ABSENT_FLOAT), number)
        case ScalarType.INT | ScalarType.TIMESTAMP:
            whole = column.cast("long") if kind is ScalarType.INT else sf.unix_micros(column)
            value = sf.when(whole >= _long(MIN_INT), whole)
        case _:
            assert_never(kind)
    return _Value(value, kind, leaf=True)


def _as_double(value: _Value) -> _Value:
    if value.type is ScalarType.FLOAT:
        return value
    # Whole numbers know no NaN: null is all that can be undefined in them.
    return _Value(value.column.cast("double"), ScalarType.FLOAT, defined=True, leaf=value.leaf)


def _compare(op: str, left: _Value, right: _Value) -> Column:
    kind = comparison_type(op, left.type, right.type)
    if kind is ScalarType.UNKNOWN:
        return sf.lit(False)
    if kind is not ScalarType.FLOAT:
        return _COMPARE[op](left.column, right.column)
    left, right = _as_double(left), _as_double(right)
    holds = _COMPARE[op](left.column, right.column)
    # Spark's NaN is equal to itself and above all else: the side on which it could win is asked.
    if op in ("=", "!=", ">", ">=") and not left.defined:
        holds = holds & ~sf.isnan(left.column)
    if op in ("!=", "<", "<=") and not right.defined:
        holds = holds & ~sf.isnan(right.column)
    if op == "=" and left.defined and not right.defined:
        holds = holds & ~sf.isnan(right.column)
    return holds


def _bare_float(op: str, number: Column, literal: float) -> Column:
    """A comparison with a float literal that file readers may be given as well.

    Parquet's statistics and dictionaries hold -0.0 to be less than 0.0 and would drop rows that
    Spark itself keeps, so each side of zero gets the zero that excludes nothing.
    """
    if literal == 0.0:
        low, high = sf.lit(-0.0), sf.lit(0.0)
        if op == "=":
            return (number >= low) & (number <= high)
        bound = low if op in ("<", ">=") else high
    else:
        bound = sf.lit(literal)
    holds = _COMPARE[op](number, bound)
    if op in ("!=", ">", ">="):
        holds = holds & ~sf.isnan(number)
    if op in ("!=", "<", "<=") or literal <= ABSENT_FLOAT:
        holds = holds & (number != sf.lit(ABSENT_FLOAT))
    return holds


def _arithmetic(op: str, left: _Value, right: _Value) -> _Value:
    kind = arithmetic_type(op, left.type, right.type)
    if kind is ScalarType.UNKNOWN:
        return _undefined()
    if kind is not ScalarType.FLOAT:
        return _Value(_without_reserved(_TRY[op](left.column, right.column)), kind)
    left, right = _as_double(left), _as_double(right)
    match op:
        case "+":
            column = left.column + right.column
        case "-":
            column = left.column - right.column
        case "*":
            column = left.column * right.column
        case _:
            column = sf.try_divide(left.column, right.column)
    return _Value(column, kind)


def _without_reserved(whole: Column) -> Column:
    """Null for the two smallest integers.

    Down and up again: they overflow on the way. A test would need the operand twice, and nested
    sums would double at every level.
    """
    return sf.try_add(sf.try_subtract(whole, _long(2)), _long(2))


def _negative(operand: _Value) -> _Value:
    match number_type(operand.type):
        case ScalarType.FLOAT:
            return _Value(sf.negative(operand.column), ScalarType.FLOAT)
        case ScalarType.INT:
            return _Value(
                _without_reserved(sf.try_subtract(_long(0), operand.column)), ScalarType.INT
            )
        case _:
            return _undefined()


def _call(function: str, arguments: list[_Value]) -> _Value:
    match function, arguments:
        case (("abs" | "sqrt" | "least" | "greatest"), _):
            return _numeric_call(function, arguments)
        case _ if any(value.type is not ScalarType.STRING for value in arguments):
            return _undefined()
        case "length", [text]:
            return _Value(sf.length(text.column).cast("long"), ScalarType.INT)
        case "lower", [text]:
            lower = sf.translate(text.column, ascii_uppercase, ascii_lowercase)
            return _Value(lower, ScalarType.STRING)
        case "upper", [text]:
            upper = sf.translate(text.column, ascii_lowercase, ascii_uppercase)
            return _Value(upper, ScalarType.STRING)
        case "concat", [left, right]:
            return _Value(sf.concat(left.column, right.column), ScalarType.STRING)
        case _:
            raise InternalError.of("unknown-function", f"no function `{function}` on Spark")


def _numeric_call(function: str, arguments: list[_Value]) -> _Value:
    kind = number_type(*(argument.type for argument in arguments))
    if kind is ScalarType.UNKNOWN:
        return _undefined()
    if function == "sqrt":
        return _Value(sf.sqrt(_as_double(arguments[0]).column), ScalarType.FLOAT)
    if function == "abs":
        return _Value(sf.abs(arguments[0].column), kind)
    left, right = arguments
    if kind is ScalarType.FLOAT:
        left, right = _as_double(left), _as_double(right)
    if left.leaf and right.leaf:
        return _Value(_choose(function, kind, left.column, right.column), kind)
    # A lambda over one pair names the operands, so that nesting does not double them.
    pair = sf.array(sf.struct(left.column.alias("left"), right.column.alias("right")))
    chosen = sf.transform(pair, lambda p: _choose(function, kind, p["left"], p["right"]))
    return _Value(sf.element_at(chosen, 1), kind)


def _choose(function: str, kind: ScalarType, left: Column, right: Column) -> Column:
    """The least or greatest, the first of equals; Spark's own functions pass over nulls."""
    takes_right = right < left if function == "least" else right > left
    defined = left.isNotNull() & right.isNotNull()
    if kind is ScalarType.FLOAT:
        defined = defined & ~sf.isnan(left) & ~sf.isnan(right)
    return sf.when(defined, sf.when(takes_right, right).otherwise(left))
