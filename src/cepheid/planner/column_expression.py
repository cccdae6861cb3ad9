"""Scalar expressions over whole columns, with NumPy for numbers and Arrow for strings.

The meaning is that of `algebra.expression`; `tests/laws/test_expression_agreement.py` compares it
with the other evaluators. Undefined numbers are kept as a mask beside the raw integers (floats
have NaN), which exists only where a column has such rows: clean columns pay for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.expression import (
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
)
from cepheid.model.errors import InternalError
from cepheid.model.undefined import ABSENT_FLOAT, MAX_INT, MIN_INT, NULL_FLOAT, NULL_INT
from cepheid.planner.aggregates import ElementsOf, aggregate
from cepheid.planner.columns import Column, Mask
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

Lookup: TypeAlias = Callable[[str, str], Column]
"""The column of (variable, attribute): one row per match, as long as `rows`."""

_COMPARE = {
    "=": (np.equal, pc.equal),
    "!=": (np.not_equal, pc.not_equal),
    "<": (np.less, pc.less),
    "<=": (np.less_equal, pc.less_equal),
    ">": (np.greater, pc.greater),
    ">=": (np.greater_equal, pc.greater_equal),
}
_SEARCH: dict[str, tuple[Any, Callable[[str, str], bool]]] = {
    "contains": (pc.match_substring, lambda text, part: part in text),
    "starts_with": (pc.starts_with, str.startswith),
    "ends_with": (pc.ends_with, str.endswith),
}
_SURELY_FITS = 2.0**62


def evaluate_predicate(expression: Expression, lookup: Lookup, rows: int, absent: Absent) -> Mask:
    """Where the condition holds. With `Absent.ERROR` an absent attribute raises `absent-attribute`.

    >>> column = Column(ScalarType.INT, np.array([1, 5, NULL_INT]))
    >>> small = Compare("<", Attribute("x", "v"), Literal(3))
    >>> evaluate_predicate(small, lambda variable, name: column, 3, Absent.FALSE).tolist()
    [True, False, False]
    """
    return _Evaluation(lookup, rows, absent).predicate(expression)


def evaluate_value(
    expression: Expression,
    lookup: Lookup,
    rows: int,
    absent: Absent,
    *,
    variables: tuple[str, ...] = (),
    elements: ElementsOf | None = None,
) -> Column:
    """The values of an expression of a RETURN clause.

    A copied attribute stays absent where it is; any other expression over an absent attribute is
    undefined (with `Absent.ERROR` both raise). An aggregate without a variable goes over
    `variables`, the positive ones of the match; `elements` gives the events of those that are
    iterated or not bound in every match.
    """
    return _Evaluation(lookup, rows, absent, variables, elements).value(expression)


def check_present(expression: Expression, lookup: Lookup) -> None:
    """Raise `absent-attribute` when some row lacks an attribute the expression refers to.

    For those who evaluate elsewhere (in a kernel) and cannot raise there.
    """
    for variable, name in sorted(attributes(expression)):
        absent = lookup(variable, name).absent_rows()
        if absent is not None and absent.any():
            raise absent_attribute(variable, name)


@dataclass(frozen=True, slots=True)
class _Operand:
    """Values of an expression, an array or one scalar for all rows.

    `undefined` marks rows without a value (True: all of them); floats may hold NaN besides, and
    strings have Arrow's nulls instead.
    """

    type: ScalarType
    data: Any
    undefined: Mask | bool = False


_UNDEFINED = _Operand(ScalarType.UNKNOWN, np.int64(0), True)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    lookup: Lookup
    rows: int
    absent: Absent
    variables: tuple[str, ...] = ()
    elements: ElementsOf | None = None

    def predicate(self, node: Expression) -> Mask:
        match node:
            case And(operands):
                return reduce(np.logical_and, map(self.predicate, operands), self._all(True))
            case Or(operands):
                return reduce(np.logical_or, map(self.predicate, operands), self._all(False))
            case Not(operand):
                return ~self.predicate(operand)
            case _:
                return self._atom(node)

    def value(self, node: Expression) -> Column:
        if is_condition(node):
            truth = self.predicate(node).astype(np.int64)
            return Column(ScalarType.BOOL, truth, may_be_undefined=False, may_be_absent=False)
        without = self._absent_rows(node)
        if isinstance(node, Attribute):
            return self.lookup(node.variable, node.name)
        return self._column(self._operand(node), without)

    def _all(self, truth: bool) -> Mask:
        return np.full(self.rows, truth, np.bool_)

    def _atom(self, node: Expression) -> Mask:
        without = self._absent_rows(node)
        holds = self._test(node)
        if without is None:
            return holds
        return holds | without if self.absent is Absent.TRUE else holds & ~without

    def _absent_rows(self, node: Expression) -> Mask | None:
        """The rows that lack an attribute of the atom; an error where the language wants one."""
        found: Mask | None = None
        for variable, name in sorted(attributes(node)):
            absent = self.lookup(variable, name).absent_rows()
            if absent is None:
                continue
            if self.absent is Absent.ERROR and absent.any():
                raise absent_attribute(variable, name)
            found = absent if found is None else found | absent
        return found

    def _test(self, node: Expression) -> Mask:
        """The atom as if every attribute were present."""
        match node:
            case Compare(op, left, right):
                return self._compare(op, self._operand(left), self._operand(right))
            case Call(function, (text, part)) if function in _SEARCH:
                return self._search(function, self._operand(text), self._operand(part))
            case Apart():
                return self._all(is_between_one(node))
            case _:
                return self._compare("=", self._operand(node), _literal(Literal(True)))

    def _compare(self, op: str, left: _Operand, right: _Operand) -> Mask:
        numeric, textual = _COMPARE[op]
        holds: Any
        match comparison_type(op, left.type, right.type):
            case ScalarType.UNKNOWN:
                return self._all(False)
            case ScalarType.STRING:
                return self._mask(textual(left.data, right.data))
            case ScalarType.FLOAT:
                left, right = _as_float(left), _as_float(right)
                holds = numeric(left.data, right.data)
                if op == "!=":
                    # The one comparison that IEEE answers with true for NaN.
                    holds = holds & (left.data == left.data) & (right.data == right.data)
            case ScalarType.INT | ScalarType.BOOL | ScalarType.TIMESTAMP:
                holds = numeric(left.data, right.data)
        undefined = _either(left.undefined, right.undefined)
        if undefined is not False:
            holds = holds & ~np.asarray(undefined)
        return self._spread(holds)

    def _search(self, function: str, text: _Operand, part: _Operand) -> Mask:
        if text.type is not ScalarType.STRING or part.type is not ScalarType.STRING:
            return self._all(False)
        vectorised, single = _SEARCH[function]
        if isinstance(part.data, pa.Scalar):
            return self._mask(vectorised(text.data, pattern=part.data.as_py()))
        pairs = zip(self._texts(text), self._texts(part), strict=True)
        holds = (t is not None and p is not None and single(t, p) for t, p in pairs)
        return np.fromiter(holds, np.bool_, self.rows)

    def _mask(self, answer: Any) -> Mask:
        """Arrow's three truth values as two."""
        if isinstance(answer, pa.Scalar):
            return self._all(bool(answer.as_py()))
        if answer.null_count:
            answer = answer.fill_null(False)
        mask: Mask = answer.to_numpy(zero_copy_only=False)
        return mask

    def _texts(self, operand: _Operand) -> list[str | None]:
        if isinstance(operand.data, pa.Scalar):
            return [operand.data.as_py()] * self.rows
        texts: list[str | None] = operand.data.to_pylist()
        return texts

    def _spread(self, values: Any) -> npt.NDArray[Any]:
        """One value for all rows as an array of them; arrays stay as they are."""
        return np.asarray(values) if np.ndim(values) else np.full(self.rows, values)

    def _operand(self, node: Expression) -> _Operand:
        match node:
            case Literal():
                return _literal(node)
            case Attribute(variable, name):
                return _attribute(self.lookup(variable, name))
            case Arithmetic(op, left, right):
                return _arithmetic(op, self._operand(left), self._operand(right))
            case Negative(operand):
                return _negative(self._operand(operand))
            case Call() | Compare() | Apart() | And() | Or() | Not() if is_condition(node):
                # Only the outermost atom knows of absent attributes, so the rule here is moot.
                inner = _Evaluation(self.lookup, self.rows, Absent.FALSE)
                return _Operand(ScalarType.BOOL, inner.predicate(node).astype(np.int64))
            case Call(function, arguments):
                return _call(function, [self._operand(argument) for argument in arguments])
            case Aggregate():
                column = aggregate(node, self.lookup, self.rows, self.variables, self.elements)
                return _attribute(column)
            case Parameter() | Previous() | Every() | Compare() | Apart() | And() | Or() | Not():
                raise unresolved(node)
            case _:
                assert_never(node)

    def _column(self, operand: _Operand, without: Mask | None) -> Column:
        match operand.type:
            case ScalarType.STRING:
                strings = operand.data
                if isinstance(strings, pa.Scalar):
                    strings = pa.array([strings.as_py()] * self.rows, strings.type)
                if without is not None:
                    strings = pc.if_else(pa.array(without), pa.scalar(None, strings.type), strings)
                return Column(ScalarType.STRING, strings=strings, may_be_absent=False)
            case ScalarType.FLOAT:
                null: Any = NULL_FLOAT
                # A computed result that looks like the mark of absence must not become one.
                values = np.where(operand.data == ABSENT_FLOAT, null, operand.data)
            case _:
                null, values = NULL_INT, operand.data
        values = self._spread(values)
        for rows in (operand.undefined, without):
            if rows is not None and rows is not False:
                values = np.where(rows, null, values)
        return Column(operand.type, values, may_be_absent=False)


def _literal(literal: Literal) -> _Operand:
    kind = literal_type(literal.value)
    match kind:
        case ScalarType.UNKNOWN:
            return _UNDEFINED
        case ScalarType.STRING:
            return _Operand(kind, pa.scalar(str(literal.value)))
        case ScalarType.FLOAT:
            return _Operand(kind, np.float64(literal_number(literal)))
        case _:
            return _Operand(kind, np.int64(literal_number(literal)))


def _attribute(column: Column) -> _Operand:
    match column.type:
        case ScalarType.UNKNOWN:
            return _UNDEFINED
        case ScalarType.STRING:
            return _Operand(column.type, column.strings)
        case ScalarType.FLOAT:
            return _Operand(column.type, column.numbers)
        case _:
            if column.may_be_undefined or column.may_be_absent:
                return _Operand(column.type, column.numbers, column.numbers < MIN_INT)
            return _Operand(column.type, column.numbers)


def _either(left: Mask | bool, right: Mask | bool) -> Mask | bool:
    if left is False or right is True:
        return right
    if right is False or left is True:
        return left
    return left | right


def _as_float(operand: _Operand) -> _Operand:
    if operand.type is ScalarType.FLOAT:
        return operand
    return _Operand(ScalarType.FLOAT, np.float64(operand.data), operand.undefined)


def _arithmetic(op: str, left: _Operand, right: _Operand) -> _Operand:
    kind = arithmetic_type(op, left.type, right.type)
    if kind is ScalarType.UNKNOWN:
        return _UNDEFINED
    undefined = _either(left.undefined, right.undefined)
    with np.errstate(all="ignore"):
        if kind is ScalarType.FLOAT:
            return _Operand(kind, _float_result(op, _as_float(left), _as_float(right)), undefined)
        result, outside = _int_result(op, left.data, right.data)
    return _Operand(kind, result, _either(undefined, outside))


def _float_result(op: str, left: _Operand, right: _Operand) -> Any:
    match op:
        case "+":
            return left.data + right.data
        case "-":
            return left.data - right.data
        case "*":
            return left.data * right.data
        case _:
            return left.data / np.where(right.data == 0.0, NULL_FLOAT, right.data)


def _int_result(op: str, left: Any, right: Any) -> tuple[Any, Mask | bool]:
    """The wrapped result, and the rows where the true one is no int64 value."""
    match op:
        case "+":
            result = left + right
            outside = ((left ^ result) & (right ^ result)) < 0
        case "-":
            result = left - right
            outside = ((left ^ right) & (left ^ result)) < 0
        case _:
            result = left * right
            if not np.any(np.abs(np.float64(left) * np.float64(right)) >= _SURELY_FITS):
                return result, False
            # A wrapped product is off by a multiple of 2**64, which division cannot hide.
            outside = (left != 0) & (np.floor_divide(result, left) != right)
    outside = outside | (result < MIN_INT)
    return result, outside if outside.any() else False


def _negative(operand: _Operand) -> _Operand:
    kind = number_type(operand.type)
    if kind is ScalarType.UNKNOWN:
        return _UNDEFINED
    undefined = operand.undefined
    if kind is ScalarType.INT:
        # The largest int64 has a negative, but a reserved one.
        outside = np.asarray(operand.data == MAX_INT)
        undefined = _either(undefined, outside if outside.any() else False)
    with np.errstate(over="ignore"):
        return _Operand(kind, -operand.data, undefined)


def _call(function: str, arguments: list[_Operand]) -> _Operand:
    match function, arguments:
        case (("abs" | "sqrt"), [operand]):
            return _unary(function, operand)
        case (("least" | "greatest"), [left, right]):
            return _choice(function, left, right)
        case _ if any(operand.type is not ScalarType.STRING for operand in arguments):
            return _UNDEFINED
        case "length", [text]:
            lengths = pc.utf8_length(text.data)
            if isinstance(lengths, pa.Scalar):
                return _Operand(ScalarType.INT, np.int64(lengths.as_py()))
            undefined = False
            if lengths.null_count:
                undefined = lengths.is_null().to_numpy(zero_copy_only=False)
                lengths = lengths.fill_null(0)
            return _Operand(ScalarType.INT, lengths.to_numpy().astype(np.int64), undefined)
        case "lower", [text]:
            return _Operand(ScalarType.STRING, pc.ascii_lower(text.data))
        case "upper", [text]:
            return _Operand(ScalarType.STRING, pc.ascii_upper(text.data))
        case "concat", [left, right]:
            joined = pc.binary_join_element_wise(left.data, right.data, "")
            return _Operand(ScalarType.STRING, joined)
        case _:
            raise InternalError.of(
                "unknown-function", f"no function `{function}` of these arguments"
            )


def _unary(function: str, operand: _Operand) -> _Operand:
    kind = number_type(operand.type)
    if kind is ScalarType.UNKNOWN:
        return _UNDEFINED
    with np.errstate(all="ignore"):
        if function == "abs":
            return _Operand(kind, np.abs(operand.data), operand.undefined)
        return _Operand(ScalarType.FLOAT, np.sqrt(_as_float(operand).data), operand.undefined)


def _choice(function: str, left: _Operand, right: _Operand) -> _Operand:
    kind = number_type(left.type, right.type)
    if kind is ScalarType.UNKNOWN:
        return _UNDEFINED
    undefined = _either(left.undefined, right.undefined)
    if kind is ScalarType.FLOAT:
        left, right = _as_float(left), _as_float(right)
    takes_right = right.data < left.data if function == "least" else right.data > left.data
    takes_right = takes_right | (right.data != right.data)
    return _Operand(kind, np.where(takes_right, right.data, left.data), undefined)
