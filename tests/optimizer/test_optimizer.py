"""The optimiser as a whole: it keeps the meaning, ends, and names the rule that is to blame."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from cepheid.algebra.invariants import check
from cepheid.algebra.pattern import Atom, Filter, Nth, Pattern, Seq, walk
from cepheid.algebra.text import from_text, to_text
from cepheid.model.errors import InternalError, OptionError
from cepheid.optimizer import rewriting
from cepheid.optimizer.optimizer import ON_DEMAND, RULES, optimise
from tests.optimizer.comparing import careless_history, found, meaning
from tests.optimizer.next_patterns import random_chain
from tests.optimizer.random_patterns import random_pattern

PATTERNS = 720
HISTORIES = 5
MOST_MATCHES = 3000
"""Patterns that combine everything with everything make the oracle slow and show nothing new."""


def histories(seed: int) -> list[int]:
    return [seed * HISTORIES + number for number in range(HISTORIES)]


def test_random_patterns_keep_their_meaning() -> None:
    fired: set[str] = set()
    seen = 0
    for seed in range(PATTERNS):
        pattern = random_chain(seed) if seed % 4 == 1 else random_pattern(seed)
        check(pattern, closed=True)
        rules = (*RULES, *ON_DEMAND) if seed % 3 == 0 else RULES
        done = optimise(pattern, rules=rules, check=True)
        fired |= {step.rule for step in done.trace}
        if not done.trace:
            continue
        for history in histories(seed):
            events = careless_history(history)
            before = meaning(pattern, events)
            assert before == meaning(done.pattern, events), (seed, history)
            seen += found(before)
            if found(before) > MOST_MATCHES:
                break
    assert fired == {rule.__name__ for rule in (*RULES, *ON_DEMAND)}
    assert seen > 1000


def test_the_order_of_rules_is_a_matter_of_cost_only() -> None:
    for seed in range(90):
        pattern = random_chain(seed) if seed % 3 == 1 else random_pattern(seed)
        rules = list(RULES)
        random.Random(seed).shuffle(rules)
        done = optimise(pattern, rules=rules, check=True)
        for history in histories(seed)[:2]:
            events = careless_history(history)
            assert meaning(pattern, events) == meaning(done.pattern, events), (seed, history)


def test_what_is_optimised_stays() -> None:
    for make in (random_pattern, random_chain):
        for seed in range(PATTERNS):
            once = optimise(make(seed)).pattern
            assert optimise(once).trace == ()


def test_a_sase_query_takes_the_form_that_kernels_run() -> None:
    middle = "low=max end([x]), low_closed=false, high=min start([y]), high_closed=false"
    written = from_text(
        f"Filter(Within(Guard(Filter(Seq(Atom([A], x), Atom([B], y)), x.v > 1), Atom([N], n), "
        f"{middle}, predicate=n.v = 0 and n.k = x.k), window=9, inclusive=false), x.k = y.k)"
    )
    cheap = (
        "Guard(Filter(Within(Seq(Atom([A], x, x.v > 1), Atom([B], y)), window=9, inclusive=false), "
        f"x.k = y.k), Atom([N], n, n.v = 0), {middle}, predicate=n.k = x.k)"
    )
    assert to_text(optimise(written, check=True).pattern) == to_text(from_text(cheap))


def test_places_in_the_text_are_kept() -> None:
    import cepheid

    query = cepheid.compile("EVENT SEQ(A x, !(N n), B y) WHERE x.v > 1 AND n.v = 2 WITHIN 5")
    pattern = query.query.pattern
    before = {node.span for node in walk(pattern)}
    done = optimise(pattern).pattern
    assert {node.span for node in walk(done)} <= before
    spans = [
        part.predicate.span for part in walk(done) if isinstance(part, Atom) and part.predicate.span
    ]
    assert [query.source.text[span.start : span.end] for span in spans] == ["x.v > 1", "n.v = 2"]


def test_the_trace_tells_each_step() -> None:
    pattern = from_text("Nth(Filter(Filter(Atom([A], x), x.v > 1), x.k = 0), position=1)")
    done = optimise(pattern)
    assert [step.rule for step in done.trace] == [
        "push_filter_into_atoms",
        "drop_true_filter",
        "push_filter_into_atoms",
        "drop_true_filter",
    ]
    assert to_text(done.trace[0].before) == "Filter(Atom([A], x), x.v > 1)"
    assert to_text(done.trace[0].after) == "Filter(Atom([A], x, x.v > 1), always)"
    assert to_text(done.pattern) == "Nth(Atom([A], x, x.v > 1 and x.k = 0), position=1)"


@pytest.mark.parametrize("name", [rule.__name__ for rule in RULES])
def test_a_rule_can_be_switched_off(name: str) -> None:
    for seed in range(80):
        done = optimise(random_pattern(seed), off=[name])
        assert name not in {step.rule for step in done.trace}


def test_a_pattern_that_hands_failures_on_is_left_as_it_is() -> None:
    """Fewer matches of a part are fewer failures, too: a rule may drop what nobody would find."""
    text = (
        "Filter(Next(Except(Next(Atom([A], a), Atom([B], b)), Atom([N], n), since=a{}), "
        "Atom([C], c)), a.v > 0)"
    )
    assert optimise(from_text(text.format(""))).trace
    reporting = from_text(text.format(", report_failures=true"))
    assert optimise(reporting) == (reporting, ())


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(OptionError, match=r"no rule `merge_filter`[\s\S]*did you mean `merge_filt"):
        optimise(Atom(("A",), "x"), off=["merge_filter"])


def renames(node: Pattern) -> Pattern | None:
    """A wrong rule: the variable of an Atom is gone."""
    return replace(node, variable="y") if node == Atom(("A",), "x") else None


def forgets_scope(node: Pattern) -> Pattern | None:
    """A wrong rule: the predicate speaks of a variable that is not bound."""
    match node:
        case Filter(Seq((first, *_)), predicate):
            return Filter(first, predicate)
        case _:
            return None


@pytest.mark.parametrize(
    ("rule", "words"),
    [(renames, "binds y instead of x"), (forgets_scope, "`y` is not bound")],
)
def test_a_rule_that_breaks_the_pattern_is_named(rule: rewriting.Rule, words: str) -> None:
    pattern = from_text("Filter(Seq(Atom([A], x), Atom([B], y)), x.v = y.v)")
    pattern = pattern if rule is forgets_scope else from_text("Atom([A], x)")
    with pytest.raises(InternalError) as error:
        optimise(pattern, rules=[rule], check=True)
    assert error.value.code == "rule-breaks-pattern"
    assert f"the rule {rule.__name__}" in error.value.message
    assert words in error.value.message


def puts_filter_above(node: Pattern) -> Pattern | None:
    match node:
        case Nth(Filter(pattern, predicate), position):
            return Filter(Nth(pattern, position), predicate)
        case _:
            return None


def puts_filter_below(node: Pattern) -> Pattern | None:
    match node:
        case Filter(Nth(pattern, position), predicate):
            return Nth(Filter(pattern, predicate), position)
        case _:
            return None


def test_rules_that_undo_each_other_are_caught_with_both_trees() -> None:
    pattern = from_text("Nth(Filter(Atom([A], x), x.v > 1), position=1)")
    with pytest.raises(InternalError) as error:
        optimise(pattern, rules=[puts_filter_above, puts_filter_below])
    assert error.value.code == "rules-oscillate"
    assert "puts_filter_above, puts_filter_below" in error.value.message
    shown = str(error.value)
    assert "Nth(\n  Filter(" in shown
    assert "Filter(\n  Nth(" in shown


def adds_filter(node: Pattern) -> Pattern | None:
    return Nth(node, 1) if isinstance(node, Nth) else None


def test_a_rule_that_never_ends_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "MOST_STEPS", 20)
    with pytest.raises(InternalError) as error:
        optimise(from_text("Nth(Atom([A], x), position=1)"), rules=[adds_filter])
    assert error.value.code == "rules-never-end"
    assert "adds_filter" in error.value.message
