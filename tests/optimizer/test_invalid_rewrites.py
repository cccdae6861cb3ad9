"""The rewrites that look right and are not: each has a history against it, and is not done.

The left side of each is optimised with every rule there is; what comes out must still mean the same
where the invalid form means something else, and must not be that form.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from cepheid.algebra.bind import bind
from cepheid.algebra.invariants import check
from cepheid.algebra.pattern import Pattern
from cepheid.algebra.text import from_text, to_text
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import make_options
from cepheid.optimizer.optimizer import ON_DEMAND, RULES, optimise
from cepheid.planner.compiled_query import compile_text
from cepheid.planner.sequence_plan import find_key, plan_sequence
from cepheid.statistics.next_costs import NextCosts
from cepheid.testing import assert_matches
from tests.laws.test_rewrites_b5 import INVALID as INVALID_LAWS
from tests.optimizer.comparing import meaning
from tests.oracle.events import Ev
from tests.oracle.histories import history, random_history

MOST_SEEDS = 2000

A, B, C, N = (f"Atom([{type}], {type.lower()})" for type in "ABCN")

# Left side, invalid right side, and a history that tells them apart.
BY_HAND = {
    "a test on the last operand does not go along when Next is nested to the right": (
        f"Next(Next({A}, {B}), {C}, test=c.v = 1)",
        f"Next({A}, Next({B}, {C}, test=c.v = 1))",
        "A1@1(v=0) B1@2(v=0) C1@3(v=0) B2@4(v=0) C2@5(v=1)",
    ),
    "a skip between the last two does not go along when Next is nested to the right": (
        f"Next(Next({A}, {B}), {C}, skip=b.k = c.k)",
        f"Next({A}, Next({B}, {C}, skip=b.k = c.k))",
        "A1@1(k=0) B1@2(k=1) B2@3(k=2) C2@4(k=2) C1@5(k=1)",
    ),
    "the same the other way: a pair of B and C that fails its test is no successor": (
        f"Next({A}, Next({B}, {C}, test=c.v = 1))",
        f"Next(Next({A}, {B}), {C}, test=c.v = 1)",
        "A1@1(v=0) B1@2(v=0) C1@3(v=0) B2@4(v=0) C2@5(v=1)",
    ),
    "candidates of two lengths are told apart by their predecessor": (
        f"Next(Next({A}, {B}), Union(Next({C}, Atom([D], d)), Atom([D], e)))",
        f"Next({A}, Next({B}, Union(Next({C}, Atom([D], d)), Atom([D], e))))",
        "A1@0 B1@1 C1@[2,4] B2@3 D1@6",
    ),
    "a window that ends before the last event does not bound the right side": (
        f"Within(Next({A}, Next({B}, {C})), window=3, inclusive=true, measure=end_to_end, "
        "first=a, second=b)",
        f"Within(Next({A}, Within(Next({B}, {C}), window=3, inclusive=true, measure=end_to_end, "
        "first=b, second=c)), window=3, inclusive=true, measure=end_to_end, first=a, second=b)",
        "A1@1 B1@2 B2@3 C1@6",
    ),
    "an exception is not widened to the whole chain": (
        f"Next({A}, Except(Next({B}, {C}), {N}, since=b))",
        f"Except(Next({A}, Next({B}, {C})), {N}, since=a)",
        "A1@1 N1@2 B1@3 C1@4",
    ),
    "the successor among B and C is one": (
        f"Next({A}, Union({B}, {C}))",
        f"Union(Next({A}, {B}), Next({A}, {C}))",
        "A1@1 B1@2 C1@3",
    ),
    "a test kills the successor, a filter skips it": (
        f"Next({A}, {B}, test=b.v > 1)",
        f"Next({A}, Atom([B], b, b.v > 1))",
        "A1@1(v=0) B1@2(v=0) B2@3(v=2)",
    ),
    "a filter above Next is a test, too": (
        f"Filter(Next({A}, {B}), b.v > 1)",
        f"Next({A}, Atom([B], b, b.v > 1))",
        "A1@1(v=0) B1@2(v=0) B2@3(v=2)",
    ),
    "a window from the start does not skip": (
        f"Within(Next({A}, {B}), window=6, inclusive=true)",
        f"Next({A}, Within({B}, window=2, inclusive=true))",
        "A1@1 B1@[2,9] B2@[10,11]",
    ),
    "a window is tested where it stands, not at the first operands of a chain": (
        f"Within(Next(Next({A}, {B}), {C}), window=4, inclusive=true)",
        f"Next(Within(Next({A}, {B}), window=4, inclusive=true), {C})",
        "A1@1 B1@2 C1@9",
    ),
    "a key in a test does not divide Next": (
        f"Next({A}, {B}, test=a.k = b.k)",
        f"Next({A}, {B}, skip=a.k = b.k)",
        "A1@2(k=1) B1@6(k=0) B2@9(k=1)",
    ),
    "a sequence under a window does not lose its inner brackets on the left": (
        f"Seq(Seq({A}, {B}), {C}, window=3)",
        f"Seq({A}, {B}, {C}, window=3)",
        "A1@1 B1@5 C1@8",
    ),
    "a sequence under a window does not get inner brackets on the left": (
        f"Seq({A}, {B}, {C}, window=3)",
        f"Seq(Seq({A}, {B}), {C}, window=3)",
        "A1@1 B1@5 C1@8",
    ),
    "a conjunction is not flattened": (
        f"Conj(Conj({A}, {B}, window=4), {C}, window=4)",
        f"Conj({A}, {B}, {C}, window=4)",
        "A1@4 B1@8 C1@11",
    ),
    "a conjunction is not nested": (
        f"Conj({A}, {B}, {C}, window=4)",
        f"Conj(Conj({A}, {B}, window=4), {C}, window=4)",
        "A1@4 B1@8 C1@11",
    ),
    "a guard does not go below the choice of a successor": (
        f"Guard(Next({A}, {B}), {N}, low=max end([b]) - 1 windows, low_closed=false, "
        "high=min start([b]), high_closed=false, window=3)",
        f"Next({A}, Guard({B}, {N}, low=max end([b]) - 1 windows, low_closed=false, "
        "high=min start([b]), high_closed=false, window=3))",
        "A1@1 N1@3 B1@4 B2@9",
    ),
    "a filter does not go through a pair that selects": (
        f"Filter(Pair({A}, {B}, ordered=true, window=9, select_first=first), a.v > 1)",
        f"Pair(Atom([A], a, a.v > 1), {B}, ordered=true, window=9, select_first=first)",
        "A1@1(v=0) A2@2(v=2) B1@3(v=0)",
    ),
    "a filter does not go through a pair that consumes": (
        f"Filter(Pair({A}, {B}, ordered=true, window=9, consume=unique), a.v > 1)",
        f"Pair(Atom([A], a, a.v > 1), {B}, ordered=true, window=9, consume=unique)",
        "A1@1(v=0) A2@2(v=2) B1@3(v=0)",
    ),
    "a window does not go into a pair that selects": (
        f"Within(Pair({A}, {B}, ordered=true, window=10, select_first=first), window=4, "
        "inclusive=true)",
        f"Pair({A}, {B}, ordered=true, window=4, select_first=first)",
        "A1@0 A2@6 B1@8",
    ),
    "an iteration gives all prefixes, not only the longest runs": (
        f"Plus({A})",
        f"Nth(Plus({A}), position=2)",
        "A1@1 A2@2",
    ),
    "an exception does not leave the part whose successor is chosen": (
        f"Next({A}, Except(Next({B}, {C}), {N}, since=b))",
        f"Except(Next({A}, Next({B}, {C})), {N}, since=b)",
        "A1@1 B1@2 N1@3 C1@4 B2@5 C2@6",
    ),
    "the second of all is not the second of each key": (
        f"Filter(Nth({A}, position=2), a.k = 1)",
        "Nth(Atom([A], a, a.k = 1), position=2)",
        "A1@1(k=0) A2@2(k=1) A3@3(k=1)",
    ),
}


# No costs at all, and costs by which each shape of a chain of three is the cheapest once.
RATES: list[dict[str, float] | None] = [
    None,
    *(
        {**dict(zip("ABC", rates, strict=True)), "D": 7, "N": 1}
        for rates in permutations((1, 50, 80))
    ),
]


def optimised(before: str, rates: dict[str, float] | None = None) -> Pattern:
    pattern = from_text(before)
    check(pattern, closed=True)
    costs = None if rates is None else NextCosts(rates)
    return optimise(pattern, rules=(*RULES, *ON_DEMAND), check=True, costs=costs).pattern


def is_refused(before: str, wrong: str, events: list[Ev]) -> None:
    """The optimiser keeps the left side's meaning on a history that tells the two apart."""
    right = meaning(from_text(before), events)
    assert right != meaning(from_text(wrong), events), "this history is no counterexample"
    for rates in RATES:
        done = optimised(before, rates)
        assert meaning(done, events) == right
        assert to_text(done) != to_text(from_text(wrong))
        assert to_text(done) != to_text(optimised(wrong, rates))


@pytest.mark.parametrize("name", BY_HAND)
def test_with_a_counterexample_by_hand(name: str) -> None:
    before, wrong, events = BY_HAND[name]
    is_refused(before, wrong, history(events))


@pytest.mark.parametrize("name", INVALID_LAWS)
def test_with_a_random_counterexample(name: str) -> None:
    before, wrong, make = INVALID_LAWS[name]
    for seed in range(MOST_SEEDS):
        events = make(seed)
        if meaning(from_text(before), events) != meaning(from_text(wrong), events):
            is_refused(before, wrong, events)
            return
    pytest.fail("no history tells them apart")


def test_a_key_that_does_not_cover_the_negated_event_does_not_divide_it() -> None:
    text = "EVENT SEQ(A x, !(N n), B y) WHERE x.k = y.k WITHIN 9"
    (query,) = compile_text(text).stages(make_options({}))
    bound = bind(query.pattern, TimeDomain(is_timestamp=False), {})
    key = find_key(plan_sequence(optimise(bound, check=True).pattern))
    assert key is not None
    assert key.of.keys() == {"x", "y"}
    # Divided by k, N1 would never meet A1 and B1.
    events = "A1@1(k=1) N1@2(k=2) B1@3(k=1)"
    assert_matches(events, text, [])
    assert_matches(events, text.replace("x.k = y.k", "[k]"), ["A1 B1"])


@pytest.mark.parametrize(
    "text",
    [f"Absence({N}, duration=3)", f"Plus({A}, test=prev(a.k) = a.k)", f"Dedup({A}, key=[a.v])"],
)
def test_nodes_with_a_history_of_their_own_stay_whole(text: str) -> None:
    assert optimised(text) == from_text(text)
    for seed in range(20):
        events = random_history(seed)
        assert meaning(optimised(text), events) == meaning(from_text(text), events)
