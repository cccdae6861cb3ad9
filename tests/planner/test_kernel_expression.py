"""The text that conditions become inside kernels; what it computes is the laws' business."""

from __future__ import annotations

import ast
from random import Random

import pytest

from cepheid.algebra.expression import (
    FALSE,
    TRUE,
    Absent,
    Aggregate,
    And,
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
)
from cepheid.kernels import scalar
from cepheid.model.errors import InternalError
from cepheid.planner.kernel_expression import KernelSource, StringConstant, is_native
from tests.laws.test_expression_agreement import Shapes
from tests.laws.test_expression_agreement import type_of as type_of_shapes

TYPES = {
    "n": ScalarType.INT,
    "m": ScalarType.INT,
    "f": ScalarType.FLOAT,
    "s": ScalarType.STRING,
    "t": ScalarType.STRING,
    "flag": ScalarType.BOOL,
    "when": ScalarType.TIMESTAMP,
    "null": ScalarType.UNKNOWN,
}
N, M, F, S, T, FLAG, WHEN, NULL = (Attribute("x", name) for name in TYPES)


def type_of(variable: str, name: str) -> ScalarType:
    return TYPES[name]


def kernel(*, clean: bool = False) -> KernelSource:
    if clean:
        return KernelSource(
            lambda v, n: n, type_of, lambda v, n: False, may_be_absent=lambda v, n: False
        )
    return KernelSource(lambda v, n: n, type_of)


@pytest.mark.parametrize(
    ("node", "absent", "text"),
    [
        (TRUE, Absent.TRUE, "True"),
        (FALSE, Absent.TRUE, "False"),
        (Compare("<", N, Literal(3)), Absent.FALSE, "less_int(n, ci[0])"),
        (Compare(">", N, Literal(3)), Absent.FALSE, "(n > ci[0])"),
        (Compare("=", N, Literal(3)), Absent.FALSE, "(n == ci[0])"),
        (Compare("=", N, M), Absent.FALSE, "equal_int(n, m)"),
        (Compare("!=", N, Literal(3)), Absent.FALSE, "unequal_int(n, ci[0])"),
        (Compare("<=", Literal(3), N), Absent.FALSE, "(ci[0] <= n)"),
        (Compare(">=", Literal(3), N), Absent.FALSE, "at_most_int(n, ci[0])"),
        (Compare(">", F, Literal(3)), Absent.FALSE, "(f != ABSENT_FLOAT and (f > float(ci[0])))"),
        (Compare("<", N, Literal(0.5)), Absent.FALSE, "(to_float(n) < cf[0])"),
        (Compare("=", S, Literal("a")), Absent.TRUE, "(s == ABSENT_INT or (s == ci[0]))"),
        (Compare("=", S, N), Absent.FALSE, "False"),
        (Compare("<", WHEN, Literal(7)), Absent.FALSE, "less_int(when, ci[0])"),
        (Compare("=", NULL, N), Absent.TRUE, "(n == ABSENT_INT or null == ABSENT_INT or False)"),
        (FLAG, Absent.FALSE, "(flag == 1)"),
        (Not(And((FLAG, FLAG))), Absent.FALSE, "(not ((flag == 1) and (flag == 1)))"),
    ],
)
def test_conditions_as_text(node: Expression, absent: Absent, text: str) -> None:
    assert kernel().predicate(node, absent) == text


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Compare("<", N, Literal(3)), "(n < ci[0])"),
        (Compare("!=", N, M), "(n != m)"),
        (Compare("!=", F, Literal(0.5)), "(f != cf[0])"),
        (Compare("<", N, F), "(float(n) < f)"),
        (Compare("=", S, T), "(s == t)"),
        (Compare("<", Call("abs", (N,)), M), "(abs_int(n) < m)"),
        (Compare("<", Arithmetic("+", N, M), Literal(3)), "less_int(add_int(n, m), ci[0])"),
        (Compare("!=", Arithmetic("+", F, F), F), "unequal_float((f + f), f)"),
    ],
)
def test_checks_go_where_the_columns_are_clean(node: Expression, text: str) -> None:
    assert kernel(clean=True).predicate(node, Absent.TRUE) == text


def test_queries_that_differ_in_constants_share_their_text() -> None:
    def written(low: int, high: float, word: str) -> tuple[str, KernelSource]:
        source = kernel()
        node = Or((Compare(">", N, Literal(low)), Compare("<", F, Negative(Literal(high)))))
        both = And((node, Compare("=", S, Literal(word))))
        return source.predicate(both, Absent.TRUE), source

    first, one = written(1, 0.5, "a")
    second, other = written(-(10**18), float("inf"), "'); import os #")
    assert first == second
    assert one.int_constants == [1, StringConstant("a")]
    assert other.int_constants == [-(10**18), StringConstant("'); import os #")]
    assert other.float_constants == [float("inf")]


def test_constants_are_numbered_across_the_conditions_of_a_kernel() -> None:
    source = kernel()
    assert source.predicate(Compare(">", N, Literal(1)), Absent.FALSE) == "(n > ci[0])"
    assert source.predicate(Compare(">", N, Literal(True)), Absent.FALSE) == "False"
    assert source.predicate(Compare(">", N, Literal(5)), Absent.FALSE) == "(n > ci[2])"
    assert source.int_constants == [1, 1, 5]


def test_the_text_holds_only_names_of_the_plan_and_of_the_helpers() -> None:
    random = Random(3)
    source = KernelSource(lambda v, n: f"{v}_{n}", type_of_shapes)
    known = {*scalar.__all__, "ci", "cf", "float", "abs"}
    for _ in range(300):
        node = Shapes(random).predicate(2)
        if not is_native(node, type_of_shapes):
            continue
        tree = ast.parse(source.predicate(node, Absent.TRUE), mode="eval")
        names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
        assert {name for name in names if name[:2] not in ("x_", "y_")} <= known
        literals = [
            part.value
            for part in ast.walk(tree)
            if isinstance(part, ast.Constant) and not isinstance(part.value, bool)
        ]
        subscripts = [part for part in ast.walk(tree) if isinstance(part, ast.Subscript)]
        # Every number in the text is the place of a constant, or the 1 that a flag is tested for.
        assert sum(value != 1 for value in literals) <= len(subscripts)


@pytest.mark.parametrize(
    ("node", "native"),
    [
        (Compare("<", Arithmetic("*", N, F), Literal(3)), True),
        (Compare("=", Call("least", (N, M)), Call("sqrt", (F,))), True),
        (Compare("=", S, T), True),
        (Compare("!=", Literal("a"), S), True),
        (Compare("<", S, T), False),
        (Compare("=", Literal("a"), Literal("b")), False),
        (Compare("=", Call("lower", (S,)), Literal("a")), False),
        (Compare(">", Call("length", (S,)), Literal(3)), False),
        (Call("contains", (S, Literal("a"))), False),
        (Not(Or((FLAG, Compare("<", S, T)))), False),
        (Compare("=", S, N), True),
        (Compare("=", N, Parameter("p")), False),
        (Compare("=", N, Previous("x", "n")), False),
        (Compare("=", N, Every("x", "n")), False),
        (Compare("=", N, Aggregate("count", None)), False),
        (TRUE, True),
    ],
)
def test_which_conditions_a_kernel_can_take(node: Expression, native: bool) -> None:
    assert is_native(node, type_of) is native


def test_what_planning_should_have_replaced_is_our_error() -> None:
    with pytest.raises(InternalError, match="unresolved-expression"):
        kernel().predicate(Compare("=", N, Previous("x", "n")), Absent.TRUE)
