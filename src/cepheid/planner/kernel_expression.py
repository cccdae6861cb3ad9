"""Scalar expressions as source text inside generated kernels.

The text is made from the typed tree alone: names the planner gave, names of `kernels.scalar`, and
numbered constants (`ci[k]`, `cf[k]`). No literal of a query ever appears in it, so queries that
differ only in constants share one compiled kernel (docs/decisions/0002).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

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
    walk,
)
from cepheid.planner.operator_types import (
    arithmetic_type,
    comparison_type,
    is_between_one,
    is_condition,
    literal_number,
    literal_type,
    number_type,
    unresolved,
)

TypeOf: TypeAlias = Callable[[str, str], ScalarType]

_OF_STRINGS = ("length", "lower", "upper", "concat", "contains", "starts_with", "ends_with")
_INT_ARITHMETIC = {"+": "add_int", "-": "subtract_int", "*": "multiply_int"}
_PYTHON = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@dataclass(frozen=True, slots=True)
class StringConstant:
    """A string literal among the int constants: the caller puts the code of `text` there."""

    text: str


@dataclass(frozen=True, slots=True)
class _Value:
    """Source text of a value; a `defined` one is never undefined (nor absent) at run time."""

    text: str
    type: ScalarType
    defined: bool = False


_UNDEFINED = _Value("", ScalarType.UNKNOWN)


def is_native(expression: Expression, type_of: TypeOf) -> bool:
    """Whether a kernel can take the expression.

    Numbers, booleans and timestamps in any way; strings only when two attributes, or one and a
    literal, are tested for (in)equality, because a kernel knows strings by their codes.
    """
    match expression:
        case Compare(op, left, right) if _both_are_strings(left, right, type_of):
            operands = {type(left), type(right)}
            return op in ("=", "!=") and operands in ({Attribute}, {Attribute, Literal})
        case And(operands) | Or(operands):
            return all(is_native(operand, type_of) for operand in operands)
        case Not(operand) | Negative(operand):
            return is_native(operand, type_of)
        case Compare(_, left, right) | Arithmetic(_, left, right):
            return is_native(left, type_of) and is_native(right, type_of)
        case Call(function, arguments):
            return function not in _OF_STRINGS and all(is_native(a, type_of) for a in arguments)
        case Literal() | Attribute():
            return True
        case Apart(first, second):
            return first == second
        case Parameter() | Previous() | Every() | Aggregate():
            return False
        case _:
            assert_never(expression)


def orders_strings(expression: Expression, type_of: TypeOf) -> bool:
    """Whether two attributes that hold strings are compared by their order."""
    match expression:
        case Compare("<" | "<=" | ">" | ">=", Attribute() as left, Attribute() as right):
            return _both_are_strings(left, right, type_of)
        case _:
            return False


def _both_are_strings(left: Expression, right: Expression, type_of: TypeOf) -> bool:
    return all(_is_string(operand, type_of) for operand in (left, right))


def _is_string(node: Expression, type_of: TypeOf) -> bool:
    match node:
        case Attribute(variable, name):
            return type_of(variable, name) is ScalarType.STRING
        case Literal(value):
            return isinstance(value, str)
        case Call(function, _):
            return function in ("lower", "upper", "concat")
        case _:
            return False


def _perhaps(variable: str, name: str) -> bool:
    return True


@dataclass(slots=True)
class KernelSource:
    """Writes the conditions of one kernel and collects their constants.

    `name_of` gives the text that reads an attribute: int64, float64 for FLOAT, a code for STRING.
    `may_be_undefined` and `may_be_absent` let checks go where the planner knows the column.
    Constants are counted from `first_int` and `first_float` on, texts such as "i0 + ".
    `rank_of` is the text that gives a string's rank by its code `{}`, where a kernel is told ranks.
    A kernel cannot raise: under `Absent.ERROR` the caller has to `check_present` beforehand.

    >>> source = KernelSource(lambda v, n: f"{n}[i]", lambda v, n: ScalarType.INT)
    >>> source.predicate(Compare(">", Attribute("x", "price"), Literal(10)), Absent.FALSE)
    '(price[i] > ci[0])'
    >>> source.int_constants
    [10]
    """

    name_of: Callable[[str, str], str]
    type_of: TypeOf
    may_be_undefined: Callable[[str, str], bool] = _perhaps
    may_be_absent: Callable[[str, str], bool] = _perhaps
    int_constants: list[int | StringConstant] = field(default_factory=list)
    float_constants: list[float] = field(default_factory=list)
    first_int: str = ""
    first_float: str = ""
    rank_of: str | None = None

    def predicate(self, expression: Expression, absent: Absent) -> str:
        """Source text of a boolean expression for a native condition."""
        match expression:
            case And(operands):
                return self._joined(" and ", operands, absent, "True")
            case Or(operands):
                return self._joined(" or ", operands, absent, "False")
            case Not(operand):
                return f"(not {self.predicate(operand, absent)})"
            case _:
                return self._atom(expression, absent)

    def _joined(
        self, word: str, operands: tuple[Expression, ...], absent: Absent, nothing: str
    ) -> str:
        if not operands:
            return nothing
        return f"({word.join(self.predicate(operand, absent) for operand in operands)})"

    def _atom(self, node: Expression, absent: Absent) -> str:
        test = self._test(node)
        if absent is Absent.TRUE:
            missing = [f"{text} == {mark}" for text, _, mark in self._may_lack(node)]
            return f"({' or '.join([*missing, test])})" if missing else test
        # Every operation on an absent integer is undefined by itself, but a condition inside the
        # atom would make a plain 0 of that.
        nested = any(is_condition(part) for part in walk(node) if part is not node)
        present = [
            f"{text} != {mark}"
            for text, kind, mark in self._may_lack(node)
            if kind is ScalarType.FLOAT or nested
        ]
        return f"({' and '.join([*present, test])})" if present else test

    def _may_lack(self, node: Expression) -> list[tuple[str, ScalarType, str]]:
        found = []
        for variable, name in sorted(attributes(node)):
            if self.may_be_absent(variable, name):
                kind = self.type_of(variable, name)
                mark = "ABSENT_FLOAT" if kind is ScalarType.FLOAT else "ABSENT_INT"
                found.append((self.name_of(variable, name), kind, mark))
        return found

    def _test(self, node: Expression) -> str:
        if isinstance(node, Apart):
            return str(is_between_one(node))
        if isinstance(node, Compare):
            left, right = self._value(node.left), self._value(node.right)
            if self.rank_of is not None and orders_strings(node, self.type_of):
                ranks = [self.rank_of.format(each.text) for each in (left, right)]
                defined = f"{left.text} >= 0 and {right.text} >= 0"
                return f"({defined} and {ranks[0]} {node.op} {ranks[1]})"
            return self._compare(node.op, left, right)
        value = self._value(node)
        if value.type is not ScalarType.BOOL:
            return "False"
        return f"({value.text} == 1)"

    def _compare(self, op: str, left: _Value, right: _Value) -> str:
        match comparison_type(op, left.type, right.type):
            case ScalarType.UNKNOWN:
                return "False"
            case ScalarType.FLOAT:
                left, right = _as_float(left), _as_float(right)
                if op == "!=" and not (left.defined and right.defined):
                    return f"unequal_float({left.text}, {right.text})"
            case _:
                checked = _checked_int_comparison(op, left, right)
                if checked:
                    return checked
        return f"({left.text} {_PYTHON[op]} {right.text})"

    def _value(self, node: Expression) -> _Value:
        match node:
            case Literal():
                return self._constant(node)
            case Attribute(variable, name):
                kind = self.type_of(variable, name)
                if kind is ScalarType.UNKNOWN:
                    return _UNDEFINED
                unsure = self.may_be_undefined(variable, name) or self.may_be_absent(variable, name)
                return _Value(self.name_of(variable, name), kind, not unsure)
            case Arithmetic(op, left, right):
                return _arithmetic(op, self._value(left), self._value(right))
            case Negative(operand):
                return _negative(self._value(operand))
            case Call(function, arguments) if not is_condition(node):
                return _call(function, [self._value(argument) for argument in arguments])
            case Compare() | Apart() | And() | Or() | Not() | Call():
                # The atom around it has dealt with absent attributes.
                return _Value(f"truth({self._inner(node)})", ScalarType.BOOL, True)
            case Parameter() | Previous() | Every() | Aggregate():
                raise unresolved(node)
            case _:
                assert_never(node)

    def _inner(self, node: Expression) -> str:
        match node:
            case And(operands):
                return f"({' and '.join(map(self._inner, operands))})" if operands else "True"
            case Or(operands):
                return f"({' or '.join(map(self._inner, operands))})" if operands else "False"
            case Not(operand):
                return f"(not {self._inner(operand)})"
            case _:
                return self._test(node)

    def _constant(self, literal: Literal) -> _Value:
        kind = literal_type(literal.value)
        match kind:
            case ScalarType.UNKNOWN:
                return _UNDEFINED
            case ScalarType.FLOAT:
                self.float_constants.append(float(literal_number(literal)))
                return _Value(f"cf[{self.first_float}{len(self.float_constants) - 1}]", kind, True)
            case ScalarType.STRING:
                self.int_constants.append(StringConstant(str(literal.value)))
            case _:
                self.int_constants.append(int(literal_number(literal)))
        return _Value(f"ci[{self.first_int}{len(self.int_constants) - 1}]", kind, True)


def _checked_int_comparison(op: str, left: _Value, right: _Value) -> str | None:
    """The helper to call when undefined operands could make the plain comparison true.

    Undefined is below every value: what exceeds a value, or equals one, is itself defined.
    """
    match op:
        case "=" if not left.defined and not right.defined:
            return f"equal_int({left.text}, {right.text})"
        case "!=" if not left.defined or not right.defined:
            return f"unequal_int({left.text}, {right.text})"
        case "<" if not left.defined:
            return f"less_int({left.text}, {right.text})"
        case "<=" if not left.defined:
            return f"at_most_int({left.text}, {right.text})"
        case ">" if not right.defined:
            return f"less_int({right.text}, {left.text})"
        case ">=" if not right.defined:
            return f"at_most_int({right.text}, {left.text})"
        case _:
            return None


def _as_float(value: _Value) -> _Value:
    if value.type is ScalarType.FLOAT:
        return value
    convert = "float" if value.defined else "to_float"
    return _Value(f"{convert}({value.text})", ScalarType.FLOAT, value.defined)


def _arithmetic(op: str, left: _Value, right: _Value) -> _Value:
    kind = arithmetic_type(op, left.type, right.type)
    if kind is ScalarType.UNKNOWN:
        return _UNDEFINED
    if kind is not ScalarType.FLOAT:
        return _Value(f"{_INT_ARITHMETIC[op]}({left.text}, {right.text})", kind)
    left, right = _as_float(left), _as_float(right)
    if op == "/":
        return _Value(f"divide({left.text}, {right.text})", kind)
    return _Value(f"({left.text} {op} {right.text})", kind)


def _negative(operand: _Value) -> _Value:
    match number_type(operand.type):
        case ScalarType.FLOAT:
            return _Value(f"(-{operand.text})", ScalarType.FLOAT, operand.defined)
        case ScalarType.INT:
            return _Value(f"negative_int({operand.text})", ScalarType.INT)
        case _:
            return _UNDEFINED


def _call(function: str, arguments: list[_Value]) -> _Value:
    kind = number_type(*(argument.type for argument in arguments))
    if kind is ScalarType.UNKNOWN:
        return _UNDEFINED
    defined = all(argument.defined for argument in arguments)
    if function == "sqrt":
        return _Value(f"square_root({_as_float(arguments[0]).text})", ScalarType.FLOAT)
    if kind is ScalarType.FLOAT:
        texts = ", ".join(_as_float(argument).text for argument in arguments)
        name = {"abs": "abs", "least": "least_float", "greatest": "greatest_float"}[function]
    else:
        texts = ", ".join(argument.text for argument in arguments)
        name = {"abs": "abs_int", "least": "least_int", "greatest": "greatest_int"}[function]
    return _Value(f"{name}({texts})", kind, defined)
