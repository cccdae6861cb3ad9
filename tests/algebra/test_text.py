"""The text form parses back exactly, over every node and expression."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest
from hypothesis import given, settings

from cepheid.algebra import expression as ex
from cepheid.algebra import pattern as pt
from cepheid.algebra.fingerprint import fingerprint
from cepheid.algebra.query import Output
from cepheid.algebra.text import _SHAPES, expression_from_text, from_text, to_text
from cepheid.model.errors import LimitExceeded, QueryError
from tests.algebra.trees import expressions, patterns


def literal_types(node: ex.Expression) -> list[type]:
    return [type(part.value) for part in ex.walk(node) if isinstance(part, ex.Literal)]


@settings(max_examples=500, deadline=None)
@given(expressions)
def test_every_expression_parses_back(node: ex.Expression) -> None:
    read = expression_from_text(to_text(node))
    assert read == node
    assert literal_types(read) == literal_types(node)  # 1, 1.0 and True are equal in Python


@settings(max_examples=400, deadline=None)
@given(patterns)
def test_every_pattern_parses_back(node: pt.Pattern) -> None:
    assert from_text(to_text(node)) == node
    assert from_text(to_text(node, multiline=True)) == node
    assert to_text(from_text(to_text(node))) == to_text(node)


@pytest.mark.parametrize("node", get_args(pt.Pattern))
def test_the_text_form_knows_every_field(node: type) -> None:
    shape = _SHAPES[node.__name__]
    written = {*shape.operands, *shape.plain, *shape.named}
    assert written == {field.name for field in fields(node)} - {"span"}


def test_operands_stand_on_their_own_lines() -> None:
    text = to_text(
        from_text("Within(Seq(Atom([A], x), Atom([B], y)), window=12 hours, inclusive=false)"),
        multiline=True,
    )
    assert text == (
        "Within(\n"
        "  Seq(\n"
        "    Atom([A], x),\n"
        "    Atom([B], y)),\n"
        "  window=12 hours, inclusive=false)"
    )


def test_open_and_closed_windows_differ() -> None:
    def delay(text: str) -> pt.Window:
        node = from_text(f"Timer(Atom([A], x), delay={text})")
        assert isinstance(node, pt.Timer)
        return node.delay

    assert delay("10") == 10
    assert delay("10 ticks") == ex.Duration(10)
    assert delay("1.5 hours") == ex.Duration(1.5, "hours")
    assert delay(":w min") == ex.Duration(ex.Parameter("w"), "min")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", 1),
        ("Atom", 5),
        ("Nothing([A], x)", 1),
        ("Atom([A], x, x.v >)", 19),
        ("Atom([A], x) y", 14),
        ("Atom([A])", 9),
        ("Atom([A], x, absent=maybe)", 21),
        ("Timer(Atom([A], x), delay=1.5)", 30),
        ("Timer(Atom([A], x), delay=1, delay=2)", 30),
        ("Filter(Atom([A], x), x.v ? 3)", 26),
        ("Filter(Atom([A], x), v)", 23),
    ],
)
def test_what_is_no_text_of_a_pattern_is_refused_with_its_place(text: str, place: int) -> None:
    with pytest.raises(QueryError) as refusal:
        from_text(text)
    assert refusal.value.code == "algebra-syntax"
    diagnostic = refusal.value.diagnostics[0]
    assert diagnostic.span is not None
    assert diagnostic.span.start + 1 == place


@pytest.mark.parametrize(
    "text",
    [
        "Timer(" * 70 + "Atom([A], x)" + ", delay=1)" * 70,
        "Filter(Atom([A], x), " + "not " * 70 + "x.b)",
        "Filter(Atom([A], x), " + "(" * 70 + "x.b" + ")" * 70 + ")",
        "Filter(Atom([A], x), x.v" + " + 1" * 70 + " > 3)",
        "Filter(Atom([A], x), " + "(" * 100_000 + ")",
    ],
    ids=["patterns", "not", "parentheses", "sum", "attack"],
)
def test_deep_texts_are_refused(text: str) -> None:
    with pytest.raises(LimitExceeded) as refusal:
        from_text(text)
    assert refusal.value.code == "too-deep"


def test_depth_64_is_read() -> None:
    text = "Timer(" * 63 + "Atom([A], x)" + ", delay=1)" * 63
    assert to_text(from_text(text)) == text


def test_fingerprint_depends_on_meaning_alone() -> None:
    atom = from_text("Atom([A], x, x.v > 3)")
    same = from_text("Atom( [A], x, (x.v) > 3 )")
    assert fingerprint(atom) == fingerprint(same)
    assert fingerprint(atom) != fingerprint(from_text("Atom([A], x, x.v > 3.0)"))
    named = Output("Alert", (("v", ex.Attribute("x", "v")),))
    assert fingerprint(atom) != fingerprint(atom, named)
    # A stored match id must stay what it is: this value may never change.
    assert fingerprint(atom) == "e90b33f5d9d8102b62eb6963f0309bf4"
