"""Binding closes a pattern, once, and refuses what it can not close."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from cepheid.algebra import expression as ex
from cepheid.algebra import pattern as pt
from cepheid.algebra.bind import bind, bind_query, collect_parameters, query_parameters
from cepheid.algebra.query import Output, Query
from cepheid.algebra.text import from_text, to_text
from cepheid.model.diagnostics import SourceText, Span
from cepheid.model.errors import CepheidError, OptionError, QueryError
from cepheid.model.event_time import TimeDomain
from tests.algebra.trees import patterns

TICKS = TimeDomain(is_timestamp=False)
SECONDS = TimeDomain(is_timestamp=True, tick_us=1_000_000)

NEGATED_END = """
Guard(
  Within(Seq(Atom([A], x)), window={w}, inclusive=false, ticks=-1),
  Atom([B], y),
  low=max end([x]), low_closed=false,
  high=min start([x]) + 1 windows - 1 ticks, high_closed=true,
  window={w}, ends_match=true)
"""


def bound_text(text: str, domain: TimeDomain, **parameters: object) -> str:
    return to_text(bind(from_text(text), domain, parameters))


def test_ticks_become_internal_units() -> None:
    closed = bind(from_text(NEGATED_END.format(w="5 s")), SECONDS, {})
    assert isinstance(closed, pt.Guard)
    assert isinstance(closed.pattern, pt.Within)
    assert (closed.pattern.window, closed.pattern.ticks) == (5_000_000, -1_000_000)
    assert (closed.window, closed.high.windows, closed.high.ticks) == (5_000_000, 1, -1_000_000)
    assert bind(closed, SECONDS, {}) == closed


def test_a_unitless_window_counts_ticks() -> None:
    closed = bind(from_text(NEGATED_END.format(w="5 ticks")), TICKS, {})
    assert isinstance(closed, pt.Guard)
    assert (closed.window, closed.high.ticks) == (5, -1)


@pytest.mark.parametrize(
    ("text", "parameters", "expected"),
    [
        ("Conj(Atom([A], x), window=:w min)", {"w": 2}, "Conj(Atom([A], x), window=120000000)"),
        ("Seq(Atom([A], x), window=0.1 s)", {}, "Seq(Atom([A], x), window=100000)"),
        ("Seq(Atom([A], x))", {}, "Seq(Atom([A], x))"),
        ("Absence(Atom([A], x), duration=1 h)", {}, "Absence(Atom([A], x), duration=3600000000)"),
        ("Atom([A], x, x.v = :v)", {"v": "it's"}, "Atom([A], x, x.v = 'it\\'s')"),
        ("Atom([A], x, x.v = :v)", {"v": None}, "Atom([A], x, x.v = null)"),
        ("Atom([A], x, x.v = :v)", {"v": np.int32(7)}, "Atom([A], x, x.v = 7)"),
        ("Atom([A], x, x.v = :v)", {"v": np.float32(0.5)}, "Atom([A], x, x.v = 0.5)"),
        (
            "Next(Atom([A], x), Atom([B], y), skip=y.k = :k)",
            {"k": True},
            "Next(Atom([A], x), Atom([B], y), skip=y.k = true)",
        ),
    ],
)
def test_values_take_the_parameters_places(
    text: str, parameters: dict[str, object], expected: str
) -> None:
    assert bound_text(text, SECONDS, **parameters) == expected


def code_of(text: str, domain: TimeDomain = SECONDS, **parameters: object) -> str:
    with pytest.raises(CepheidError) as refusal:
        bind(from_text(text), domain, parameters)
    return refusal.value.code


def test_refusals() -> None:
    atom = "Atom([A], x, x.v = :v)"
    assert code_of(atom) == "missing-parameter"
    assert code_of(atom, v=1, w=2) == "unknown-parameter"
    assert code_of(atom, v=[1]) == "bad-parameter"
    assert code_of(atom, v=2**63) == "bad-parameter"
    assert code_of(atom, v=float("nan")) == "bad-parameter"
    timer = "Timer(Atom([A], x), delay=:w s)"
    assert code_of(timer, w="10 s") == "bad-parameter"
    assert code_of(timer, w=True) == "bad-parameter"
    assert code_of(timer, w=float("inf")) == "bad-parameter"
    assert code_of(timer, w=-1) == "window-negative"
    assert code_of(timer, TICKS, w=1) == "window-needs-tick"
    assert code_of(timer, w=1e-7) == "window-not-whole"
    assert code_of("Timer(Atom([A], x), delay=3 ticks)", TimeDomain(True)) == "window-needs-unit"


def test_a_missing_parameter_is_shown_in_the_text() -> None:
    source = SourceText("EVENT A WHERE v = :limit WITHIN 10 s")
    limit = ex.Parameter("limit", span=Span(18, 24))
    pattern = pt.Atom(("A",), "x", ex.Compare("=", ex.Attribute("x", "v"), limit))
    with pytest.raises(QueryError) as refusal:
        bind(pattern, SECONDS, {}, source=source)
    assert "query:1:19" in str(refusal.value)
    assert "^^^^^^ no value given" in str(refusal.value)
    assert 'params={"limit": ...}' in str(refusal.value)


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(OptionError) as refusal:
        bind(from_text("Atom([A], x, x.v = :limit)"), SECONDS, {"limt": 1})
    assert refusal.value.help == "did you mean `limit`?"


def test_a_query_binds_its_return_clause_too() -> None:
    pattern = from_text("Atom([A], x, x.v = :v)")
    factor = ex.Arithmetic("*", ex.Attribute("x", "v"), ex.Parameter("factor"))
    query = Query("q", "sase", pattern, ("x",), Output("B", (("v", factor),)))
    assert query_parameters(query) == ("v", "factor")
    closed = bind_query(query, TICKS, {"v": 1, "factor": 2, "other": 3}, known=["other"])
    assert closed.output is not None
    assert to_text(closed.output) == "Output(B, attributes={v: x.v * 2})"


@settings(max_examples=200, deadline=None)
@given(patterns)
def test_bound_patterns_hold_neither_durations_nor_parameters(pattern: pt.Pattern) -> None:
    values = dict.fromkeys(collect_parameters(pattern), 3)
    try:
        closed = bind(pattern, SECONDS, values)
    except QueryError as refusal:
        if refusal.code in ("unknown-unit", "window-not-whole", "window-too-large"):
            return  # trees with such windows are made on purpose
        raise
    assert collect_parameters(closed) == ()
    assert "Duration(" not in repr(closed)
    assert bind(closed, SECONDS, {}) == closed


def test_the_window_of_a_time_atom_is_bound() -> None:
    pattern = from_text("Next(Atom([A], x), Atom([B], y), test=not apart(x, y, :w min))")
    assert collect_parameters(pattern) == ("w",)
    closed = bind(pattern, TimeDomain(is_timestamp=True), {"w": 2})
    assert to_text(closed).endswith("test=not apart(x, y, 120000000))")
    assert bind(closed, TimeDomain(is_timestamp=True), {}) == closed
