"""Types of expressions: what fits, what does not, and time stamps written as ISO strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.algebra.expression import (
    FUNCTIONS,
    Aggregate,
    Arithmetic,
    Attribute,
    Call,
    Compare,
    Expression,
    Literal,
    Negative,
    ScalarType,
)
from cepheid.algebra.expression_text import expression_text
from cepheid.algebra.pattern import Atom
from cepheid.algebra.text import from_text
from cepheid.algebra.typing import check_predicate, coerce, find_mismatches, infer, iso_microseconds
from cepheid.model.diagnostics import SourceText, Span
from cepheid.model.errors import QueryError

BOOL, INT, FLOAT = ScalarType.BOOL, ScalarType.INT, ScalarType.FLOAT
STRING, TIMESTAMP, UNKNOWN = ScalarType.STRING, ScalarType.TIMESTAMP, ScalarType.UNKNOWN
TYPES = {
    ("x", "b"): BOOL,
    ("x", "i"): INT,
    ("x", "f"): FLOAT,
    ("x", "s"): STRING,
    ("x", "t"): TIMESTAMP,
    ("y", "i"): INT,
    ("y", "f"): INT,
}


def predicate(text: str) -> Expression:
    atom = from_text(f"Atom([A], x, {text})")
    assert isinstance(atom, Atom)
    return atom.predicate


def value(text: str) -> Expression:
    compare = predicate(f"{text} = 0")
    assert isinstance(compare, Compare)
    return compare.left


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.i + 1", INT),
        ("x.i * 1.5", FLOAT),
        ("x.i - y.i", INT),
        ("x.i / x.i", FLOAT),
        ("x.u / x.i", FLOAT),
        ("x.u + x.i", UNKNOWN),
        ("-(x.f)", FLOAT),
        ("-(x.i)", INT),
        ("x.t - x.t", INT),
        ("x.u - x.t", INT),
        ("x.t - x.u", UNKNOWN),
        ("x.t + 5", TIMESTAMP),
        ("x.t - x.i", TIMESTAMP),
        ("5 + x.t", TIMESTAMP),
        ("x.t + x.u", TIMESTAMP),
        ("abs(x.i)", INT),
        ("abs(x.f)", FLOAT),
        ("abs(x.u)", UNKNOWN),
        ("sqrt(x.i)", FLOAT),
        ("least(x.i, 1)", INT),
        ("greatest(x.i, x.f)", FLOAT),
        ("least(x.u, 1)", UNKNOWN),
        ("9223372036854775808", FLOAT),
        ("length(concat(x.s, 'a'))", INT),
        (":p", UNKNOWN),
        ("x.b", BOOL),
    ],
)
def test_inference(text: str, expected: ScalarType) -> None:
    assert infer(value(text), TYPES) is expected


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (Aggregate("count", None), INT),
        (Aggregate("count", "s"), INT),
        (Aggregate("sum", "i"), INT),
        (Aggregate("sum", "f"), FLOAT),  # a float of x, an integer of y
        (Aggregate("sum", "f", "y"), INT),
        (Aggregate("avg", "i"), FLOAT),
        (Aggregate("max", "s"), STRING),
        (Aggregate("min", "t"), TIMESTAMP),
        (Aggregate("sum", "u"), UNKNOWN),
    ],
)
def test_aggregates(aggregate: Aggregate, expected: ScalarType) -> None:
    assert infer(aggregate, TYPES) is expected


@pytest.mark.parametrize(
    "text",
    [
        "x.i = 1.5",
        "x.f < x.i",
        "x.s = 'a'",
        "x.s < x.s",
        "x.b = true",
        "x.b != x.b",
        "x.t = x.t",
        "x.t >= '2026-03-01'",
        "'2026-03-01T10:00:00+02:00' < x.t",
        "x.u = 'a' and x.u = 1 and x.u = x.t",
        "x.s = :p",
        "contains(x.s, 'a') or not x.i = 1",
        "x.t - x.t < 60000000",
        "x.t + 60000000 > x.t",
    ],
)
def test_what_fits(text: str) -> None:
    check_predicate(predicate(text), TYPES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x.i = 'a'", "`x.i` (int) is compared with `'a'` (string)"),
        ("x.s > 1", "`x.s` (string) is compared with `1` (int)"),
        ("x.b = 1", "`x.b` (bool) is compared with `1` (int)"),
        ("x.b < true", "`<` has no meaning between truth values"),
        ("x.t = 1", "`x.t` (timestamp) is compared with `1` (int)"),
        ("x.t = x.s", "`x.t` (timestamp) is compared with `x.s` (string)"),
        ("x.t > 'noon'", "a time stamp is compared with a string that is none"),
        ("x.s + 1 = 2", "`+` needs numbers"),
        ("x.b * 2 = 2", "`*` needs numbers"),
        ("-(x.s) = 2", "a minus sign needs a number"),
        ("x.t * 2 = 2", "`*` has no meaning between these types"),
        ("x.t + x.t = x.t", "`+` has no meaning between these types"),
        ("x.t + 1.5 = x.t", "`+` has no meaning between these types"),
        ("1 - x.t = 2", "`-` has no meaning between these types"),
        ("abs(x.s) = 2", "`abs` needs a number here"),
        ("length(x.i) = 2", "`length` needs a string here"),
        ("contains(x.s, 1)", "`contains` needs a string here"),
    ],
)
def test_what_does_not_fit(text: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        check_predicate(predicate(text), TYPES)
    assert refused.value.code == "type-mismatch"
    assert refused.value.message == message


@pytest.mark.parametrize(
    "aggregate", [Aggregate("sum", "s"), Aggregate("avg", "t"), Aggregate("max", "b", "x")]
)
def test_aggregates_that_do_not_fit(aggregate: Aggregate) -> None:
    with pytest.raises(QueryError, match="type-mismatch"):
        infer(aggregate, TYPES)


def test_a_value_is_no_predicate() -> None:
    with pytest.raises(QueryError, match="a condition is needed"):
        check_predicate(Attribute("x", "i"), TYPES)


def test_all_mismatches_are_told_with_their_place() -> None:
    source = SourceText("x.i = 'a' and x.s + 1 = 2")
    both = predicate(source.text)
    places = [Span(0, 9), Span(14, 25)]
    assert len(find_mismatches(both, TYPES)) == 2
    first = Compare("=", Attribute("x", "i"), Literal("a"), span=places[0])
    (found,) = find_mismatches(first, TYPES, source)
    assert found.span == places[0]
    assert "1 | x.i = 'a' and" in found.render()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.t > '1970-01-01'", "x.t > 0"),
        ("'1970-01-01 00:00:01.5' <= x.t", "1500000 <= x.t"),
        ("x.t + 5 = '1969-12-31T23:00:00-01:00'", "x.t + 5 = 0"),
        ("x.s = '1970-01-01'", "x.s = '1970-01-01'"),
        ("x.u = '1970-01-01'", "x.u = '1970-01-01'"),
        ("x.t > 'noon'", "x.t > 'noon'"),
        ("not (x.t > '1970-01-02' or x.i = 1)", "not (x.t > 86400000000 or x.i = 1)"),
    ],
)
def test_iso_literals_become_microseconds(text: str, expected: str) -> None:
    assert expression_text(coerce(predicate(text), TYPES)) == expected


def test_coercion_keeps_the_place() -> None:
    late = Compare(">", Attribute("x", "t"), Literal("1970-01-01", span=Span(6, 18)))
    coerced = coerce(late, TYPES)
    assert isinstance(coerced, Compare)
    assert coerced.right.span == Span(6, 18)


@pytest.mark.parametrize("text", ["", "noon", "2026-13-01", "1", "0001-01-01T00:00:00+23:59", "é"])
def test_iso_microseconds_of_other_texts(text: str) -> None:
    found = iso_microseconds(text)
    assert found is None or isinstance(found, int)


@given(st.text(max_size=30))
def test_iso_microseconds_never_fails(text: str) -> None:
    found = iso_microseconds(text)
    assert found is None or isinstance(found, int)


LEAVES = st.sampled_from(
    [Attribute("x", name) for name in "bifstu"] + [Literal(v) for v in (1, 2.5, "a", True)]
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
        st.builds(Negative, inner),
        st.sampled_from(sorted(FUNCTIONS)).flatmap(
            lambda name: st.builds(
                Call, st.just(name), st.tuples(*[inner] * len(FUNCTIONS[name][0]))
            )
        ),
        st.builds(Compare, st.sampled_from(["=", "<"]), inner, inner),
    ),
    max_leaves=8,
)


@given(TREES)
def test_unknown_types_take_away_errors_and_never_add_any(tree: Expression) -> None:
    known = len(find_mismatches(tree, TYPES))
    unknown = len(find_mismatches(tree, {}))
    assert unknown <= known
