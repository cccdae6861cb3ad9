"""Each rule on patterns has a pattern that breaks it."""

from __future__ import annotations

import pytest

from cepheid.algebra.invariants import check
from cepheid.algebra.text import from_text
from cepheid.model.errors import InternalError

GOOD = [
    "Atom([A], x, x.v > 3)",
    "Filter(Seq(Atom([A], x), Atom([B], y)), x.k = y.k)",
    "Union(Atom([A], x), Atom([B], x))",
    "Within(Seq(Atom([A], x), Atom([B], y)), window=3, inclusive=true, measure=end_to_end, "
    "first=x, second=y)",
    "Guard(Seq(Atom([A], x), Atom([B], y)), Atom([N], n), low=max end([x]), low_closed=false, "
    "high=min start([y]), high_closed=false, predicate=n.k = x.k)",
    "Next(Plus(Atom([A], x), test=prev(x.v) < x.v), Atom([B], y), test=all(x.v) < y.v)",
    "Except(Next(Atom([A], x), Atom([B], y)), Atom([N], n), since=x, predicate=n.k = y.k)",
    "Except(Next(Union(Atom([A], x), Atom([B], y)), Plus(Atom([C], z), most=1)), Atom([N], n), "
    "since=x, or_since=[y])",
    "Map(Seq(Atom([A], x), Atom([B], y)), type=C, attributes={n: count{*.*}}, variable=c)",
    "Lossy(components=[x(loss=0.1, exponential[0.1]), not y(loss=0.1, exponential[0.1])], "
    "predicate=x.k = y.k, window=3, threshold=0.5, defaults=[x.k: y.k])",
    "Agg(Atom([A], x), over=3, function=sum, argument=x.v, group={k: x.k}, having=g.value > 3, "
    "type=G, variable=g)",
    "Pair(Atom([A], x), Atom([B], y), ordered=true, window=3, key=[(x.k, y.k)])",
]

BROKEN = [
    ("arity", "Seq()"),
    ("arity", "Union()"),
    ("arity", "Conj(window=3)"),
    ("arity", "Lossy(components=[not y(loss=0.1, exponential[0.1])], predicate=always, window=3, "
     "threshold=0.5)"),
    ("arity", "Agg(Atom([A], x), over=3, function=sum, argument=none, group={}, having=always, "
     "type=G, variable=g)"),
    ("unique-variables", "Seq(Atom([A], x), Atom([B], x))"),
    ("unique-variables", "Next(Atom([A], x), Seq(Atom([B], y), Atom([C], x)))"),
    ("unique-variables", "Guard(Atom([A], x), Atom([N], x), low=max end([x]), low_closed=false, "
     "high=max end([x]), high_closed=false)"),
    ("unique-variables", "Lossy(components=[x(loss=0.1, exponential[0.1]), "
     "x(loss=0.1, exponential[0.1])], predicate=always, window=3, threshold=0.5)"),
    ("bound-variables", "Atom([A], x, y.v > 3)"),
    ("bound-variables", "Filter(Atom([A], x), z.v > 3)"),
    ("bound-variables", "Dedup(Atom([A], x), key=[z.v])"),
    ("bound-variables", "Pair(Atom([A], x), Atom([B], y), ordered=true, window=3, "
     "key=[(y.k, x.k)])"),
    ("bound-variables", "Except(Atom([A], x), Atom([N], n), since=n)"),
    ("bound-variables", "Except(Atom([A], x), Atom([N], n), since=x, or_since=[y])"),
    ("bound-variables", "Within(Atom([A], x), window=3, inclusive=true, measure=end_to_end)"),
    ("bound-variables", "Agg(Atom([A], x), over=3, function=count, argument=none, group={}, "
     "having=x.value > 3, type=G, variable=g)"),
    ("bound-variables", "Lossy(components=[x(loss=0.1, exponential[0.1])], predicate=always, "
     "window=3, threshold=0.5, defaults=[z.k: x.k])"),
    ("windows", "Conj(Atom([A], x), window=-1)"),
    ("windows", "Within(Atom([A], x), window=3, inclusive=true, first=x)"),
    ("time-bounds", "Guard(Atom([A], x), Atom([N], n), low=max end(), low_closed=false, "
     "high=max end([x]), high_closed=false)"),
    ("time-bounds", "Guard(Atom([A], x), Atom([N], n), low=max end([n]), low_closed=false, "
     "high=max end([x]), high_closed=false)"),
    ("time-bounds", "Guard(Atom([A], x), Atom([N], n), low=max end([x]), low_closed=false, "
     "high=max end([x]) + 1 windows, high_closed=false)"),
    ("position-from-1", "Plus(Atom([A], x), most=0)"),
    ("position-from-1", "Nth(Atom([A], x), position=0)"),
    ("position-from-1", "Pair(Atom([A], x), Atom([B], y), ordered=true, window=3, nth_first=0)"),
    ("probabilities", "Lossy(components=[x(loss=1.5, exponential[0.1])], predicate=always, "
     "window=3, threshold=0.5)"),
    ("known-functions", "Filter(Atom([A], x), nothing(x.v))"),
    ("known-functions", "Filter(Atom([A], x), contains(x.v))"),
    ("aggregates-in-map", "Filter(Atom([A], x), sum{*.v} > 3)"),
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_well_formed_patterns_pass(text: str) -> None:
    check(from_text(text), closed=True)


@pytest.mark.parametrize(("rule", "text"), BROKEN)
def test_the_broken_rule_is_named(rule: str, text: str) -> None:
    with pytest.raises(InternalError) as refusal:
        check(from_text(text))
    assert refusal.value.code == rule


@pytest.mark.parametrize("text", ["Atom([A], x, x.v = :v)", "Timer(Atom([A], x), delay=3 ticks)"])
def test_only_closed_patterns_run(text: str) -> None:
    check(from_text(text))
    with pytest.raises(InternalError) as refusal:
        check(from_text(text), closed=True)
    assert refusal.value.code == "closed"
