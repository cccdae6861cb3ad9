"""The rewrites of SPEC B5 on random histories: valid ones hold, INVALID ones have a counterexample.

Patterns are in the algebra's text form; a law compares two patterns by the bag of their matches'
events, so a rewrite may change the order in which variables are bound but not what is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from cepheid.algebra.invariants import check
from cepheid.algebra.text import from_text
from tests.oracle.denotation import matches
from tests.oracle.events import Ev, Match
from tests.oracle.histories import random_history

HISTORIES = 300

A, B, C, N = (f"Atom([{type}], {type.lower()})" for type in "ABCN")
AB = f"Next({A}, {B})"


def identity(match: Match) -> tuple[object, ...]:
    return (tuple(sorted((name, event.id) for name, event in match.bindings if event)), match.te)


def bag(text: str, history: list[Ev]) -> Counter[tuple[object, ...]]:
    return Counter(identity(match) for match in matches(from_text(text), history))


def differs_at(before: str, after: str, make: Callable[[int], list[Ev]]) -> int | None:
    """The first seed on which two patterns differ; also proves that the law was not vacuous."""
    for text in (before, after):
        check(from_text(text), closed=True)
    found = 0
    for seed in range(HISTORIES):
        history = make(seed)
        left, right = bag(before, history), bag(after, history)
        if left != right:
            return seed
        found += sum(left.values())
    assert found > 0, "no history had a match: the law was not put to the test"
    return None


def instants(seed: int) -> list[Ev]:
    return random_history(seed)


def intervals(seed: int) -> list[Ev]:
    return random_history(seed, intervals=True)


def untied(seed: int) -> list[Ev]:
    return random_history(seed, ties=False)


BETWEEN = "low=max end([a]), low_closed={closed}, high=min start([{q}]), high_closed={closed}"
AND_INTERVAL = (
    "low=max end([a], [b]) - 1 windows, low_closed=true, "
    "high=min end([a], [b]) + 1 windows, high_closed=true, window=3"
)
MIDDLE = BETWEEN.format(closed="false", q="b")
LEADING = (
    "low=max end([b]) - 1 windows, low_closed=true, high=min start([a]), high_closed=true, window=4"
)

VALID = {
    "next is associative": (
        f"Next({AB}, {C})",
        f"Next({A}, Next({B}, {C}))",
        intervals,
    ),
    "next is associative with one key in every skip": (
        f"Next(Next({A}, {B}, skip=a.k = b.k), {C}, skip=b.k = c.k)",
        f"Next({A}, Next({B}, {C}, skip=b.k = c.k), skip=a.k = b.k)",
        intervals,
    ),
    "next is associative when the test on B moves outwards": (
        f"Next(Next({A}, {B}, test=b.v > 1), {C})",
        f"Next({A}, Next({B}, {C}), test=b.v > 1)",
        intervals,
    ),
    "next distributes over a union on its left": (
        f"Next(Union({A}, {B}), {C})",
        f"Union(Next({A}, {C}), Next({B}, {C}))",
        intervals,
    ),
    "a skip on the successor alone is a filter below": (
        f"Next({A}, {B}, skip=b.v > 1)",
        f"Next({A}, Filter({B}, b.v > 1))",
        intervals,
    ),
    "a test on the first alone is a filter below": (
        f"Next({A}, {B}, test=a.v > 1)",
        f"Next(Filter({A}, a.v > 1), {B})",
        intervals,
    ),
    "seq distributes over a union on its left": (
        f"Seq(Union({A}, {B}), {C}, window=4)",
        f"Union(Seq({A}, {C}, window=4), Seq({B}, {C}, window=4))",
        intervals,
    ),
    "seq distributes over a union on its right": (
        f"Seq({A}, Union({B}, {C}), window=4)",
        f"Union(Seq({A}, {B}, window=4), Seq({A}, {C}, window=4))",
        intervals,
    ),
    "seq nests to the right": (
        f"Seq({A}, {B}, {C}, window=5)",
        f"Seq({A}, Seq({B}, {C}), window=5)",
        intervals,
    ),
    "seq nests to the left with an explicit window": (
        f"Seq({A}, {B}, {C}, window=5)",
        f"Within(Seq(Seq({A}, {B}), {C}), window=5, inclusive=true, measure=end_to_end, "
        "first=a, second=c)",
        intervals,
    ),
    "a filter on positives goes through a guard": (
        f"Filter(Guard(Seq({A}, {B}), {N}, {MIDDLE}), a.k = b.k)",
        f"Guard(Filter(Seq({A}, {B}), a.k = b.k), {N}, {MIDDLE})",
        intervals,
    ),
    "guards commute": (
        f"Guard(Guard(Seq({A}, {B}), {N}, {MIDDLE}), {C}, {LEADING})",
        f"Guard(Guard(Seq({A}, {B}), {C}, {LEADING}), {N}, {MIDDLE})",
        intervals,
    ),
    "pairing all with all is a sequence": (
        f"Pair({A}, {B}, ordered=true, window=4)",
        f"Seq({A}, {B}, window=4)",
        instants,
    ),
    "union commutes": (f"Union({A}, {B}, {C})", f"Union({C}, {A}, {B})", intervals),
    "union is associative": (
        f"Union(Union({A}, {B}), {C})",
        f"Union({A}, Union({B}, {C}))",
        intervals,
    ),
    "dedup is idempotent": (
        f"Dedup(Dedup({A}, key=[a.k]), key=[a.k])",
        f"Dedup({A}, key=[a.k])",
        intervals,
    ),
    "an end-to-end window in a chain may be tested early": (
        f"Within(Next(Next({A}, {B}), {C}), window=4, inclusive=true, measure=end_to_end, "
        "first=a, second=c)",
        f"Within(Next(Within(Next({A}, {B}), window=4, inclusive=true, measure=end_to_end, "
        f"first=a, second=b), {C}), window=4, inclusive=true, measure=end_to_end, "
        "first=a, second=c)",
        intervals,
    ),
}

INVALID = {
    "next is not associative with a test on C": (
        f"Next({AB}, {C}, test=c.v = 1)",
        f"Next({A}, Next({B}, {C}, test=c.v = 1))",
        intervals,
    ),
    "next is not associative with a skip between B and C only": (
        f"Next({AB}, {C}, skip=b.k = c.k)",
        f"Next({A}, Next({B}, {C}, skip=b.k = c.k))",
        intervals,
    ),
    "next does not distribute over a union on its right": (
        f"Next({A}, Union({B}, {C}))",
        f"Union(Next({A}, {B}), Next({A}, {C}))",
        intervals,
    ),
    "a test on the successor alone is no filter below": (
        f"Next({A}, {B}, test=b.v > 1)",
        f"Next({A}, Filter({B}, b.v > 1))",
        intervals,
    ),
    "seq does not nest to the left with its window": (
        f"Seq({A}, {B}, {C}, window=3)",
        f"Seq(Seq({A}, {B}), {C}, window=3)",
        intervals,
    ),
    "conj does not nest": (
        f"Conj({A}, {B}, {C}, window=3)",
        f"Conj(Conj({A}, {B}, window=3), {C}, window=3)",
        intervals,
    ),
    "a guard does not go below the choice of a successor": (
        f"Guard(Next({A}, {B}), {N}, low=min start([b]) - 1 windows, low_closed=true, "
        "high=min start([b]), high_closed=true, window=2)",
        f"Next({A}, Guard({B}, {N}, low=min start([b]) - 1 windows, low_closed=true, "
        "high=min start([b]), high_closed=true, window=2))",
        intervals,
    ),
    "a filter does not go through a pair that selects": (
        f"Filter(Pair({A}, {B}, ordered=true, window=5, select_first=first), a.v > 1)",
        f"Pair(Filter({A}, a.v > 1), {B}, ordered=true, window=5, select_first=first)",
        instants,
    ),
    "a filter does not go through a pair that consumes": (
        f"Filter(Pair({A}, {B}, ordered=true, window=5, consume=unique), b.v > 1)",
        f"Pair({A}, Filter({B}, b.v > 1), ordered=true, window=5, consume=unique)",
        instants,
    ),
    "an exception does not leave the part whose successor is chosen": (
        f"Next({A}, Except(Next({B}, {C}), {N}, since=b))",
        f"Except(Next({A}, Next({B}, {C})), {N}, since=b)",
        instants,
    ),
    "an exception does not change its since": (
        f"Next({A}, Except(Next({B}, {C}), {N}, since=b))",
        f"Except(Next({A}, Next({B}, {C})), {N}, since=a)",
        instants,
    ),
    "an exception on a chain differs from one on its last part by more than brackets": (
        f"Except(Next({A}, {B}), {N}, since=a)",
        f"Next({A}, Except({B}, {N}, since=b))",
        instants,
    ),
}


@pytest.mark.parametrize("law", VALID)
def test_valid_rewrite(law: str) -> None:
    before, after, make = VALID[law]
    assert differs_at(before, after, make) is None


@pytest.mark.parametrize("law", INVALID)
def test_invalid_rewrite_has_a_counterexample(law: str) -> None:
    before, after, make = INVALID[law]
    assert differs_at(before, after, make) is not None


def test_seq_is_an_ordered_conj() -> None:
    def is_ordered(match: Match) -> bool:
        return all(x.te < y.ts for x, y in zip(match.events, match.events[1:], strict=False))

    conj, seq = f"Conj({A}, {B}, {C}, window=4)", f"Seq({A}, {B}, {C}, window=4)"
    for seed in range(HISTORIES):
        history = intervals(seed)
        ordered = Counter(identity(m) for m in matches(from_text(conj), history) if is_ordered(m))
        assert ordered == bag(seq, history)


def test_a_guard_on_a_conj_is_an_anti_join_with_the_extended_conj() -> None:
    guard = f"Guard(Conj({A}, {B}, window=3), {N}, {AND_INTERVAL})"
    extended = f"Conj({A}, {B}, {N}, window=3)"
    for seed in range(HISTORIES):
        history = intervals(seed)
        cancelled = {m.ids[:2] for m in matches(from_text(extended), history)}
        left = {m.ids for m in matches(from_text(f"Conj({A}, {B}, window=3)"), history)}
        assert left - cancelled == {m.ids for m in matches(from_text(guard), history)}


def window_as_skip_and_as_test(seed: int, start_based: bool) -> bool:
    """SPEC B5: an end-to-end window may skip or kill; a start-based one may not."""
    history = intervals(seed)
    firsts = [event for event in history if event.type == "A"]
    seconds = [event for event in history if event.type == "B"]

    def successors(m: Ev, candidates: list[Ev]) -> set[tuple[str, str]]:
        behind = [q for q in candidates if m.te < q.ts]
        least = min(((q.te, q.ts) for q in behind), default=None)
        return {(m.id, q.id) for q in behind if (q.te, q.ts) == least}

    def near(m: Ev, q: Ev) -> bool:
        return (q.ts - m.te if start_based else q.te - m.te) <= 3

    inside = {e.id: e for e in history}
    skipped = {p for m in firsts for p in successors(m, [q for q in seconds if near(m, q)])}
    tested = {p for m in firsts for p in successors(m, seconds) if near(m, inside[p[1]])}
    return skipped == tested


def test_an_end_to_end_window_may_skip_or_kill() -> None:
    assert all(window_as_skip_and_as_test(seed, start_based=False) for seed in range(HISTORIES))


def test_a_start_based_window_may_not() -> None:
    assert not all(window_as_skip_and_as_test(seed, start_based=True) for seed in range(HISTORIES))


KEYED = {
    "a sequence with a key over all operands": (
        f"Filter(Seq({A}, {B}, window=5), a.k = b.k)",
        True,
    ),
    "a conjunction with a key over all operands": (
        f"Filter(Conj({A}, {B}, window=5), a.k = b.k)",
        True,
    ),
    "a guard whose key covers the negated operand": (
        f"Guard(Filter(Seq({A}, {B}), a.k = b.k), {N}, {MIDDLE}, predicate=n.k = a.k)",
        True,
    ),
    "a guard whose key covers the positives only": (
        f"Guard(Filter(Seq({A}, {B}), a.k = b.k), {N}, {MIDDLE})",
        False,
    ),
    "next with the key in its skip": (f"Next({A}, {B}, skip=a.k = b.k)", True),
    "next with the key in its test": (f"Next({A}, {B}, test=a.k = b.k)", False),
    "plus with the key in its skip": (f"Plus({A}, skip=prev(a.k) = a.k)", True),
    "plus with the key in its test": (f"Plus({A}, test=prev(a.k) = a.k)", False),
    "a pair by its own key": (
        f"Pair({A}, {B}, ordered=true, window=5, select_first=first, consume=unique, "
        "key=[(a.k, b.k)])",
        True,
    ),
    "nth": (f"Nth({A}, position=2)", False),
}


@pytest.mark.parametrize("law", KEYED)
def test_partition_by_key(law: str) -> None:
    text, is_valid = KEYED[law]
    equal = True
    for seed in range(HISTORIES):
        history = random_history(seed, types="AABBN")
        whole = bag(text, history)
        parts: Counter[tuple[object, ...]] = Counter()
        for key in {event.attrs["k"] for event in history}:
            parts += bag(text, [event for event in history if event.attrs["k"] == key])
        equal = equal and whole == parts
    assert equal is is_valid


def test_keeping_only_maximal_runs_loses_prefixes() -> None:
    text = f"Plus({A}, test=prev(a.v) < a.v)"
    for seed in range(HISTORIES):
        runs = [m.ids for m in matches(from_text(text), untied(seed))]
        if any(a != b and b[: len(a)] == a for a in runs for b in runs):
            return
    pytest.fail("no run had a prefix")


def test_negation_splits_a_sequence_in_two() -> None:
    # RELIABILITY section 4, relation 17: SEQ(A, !N, B) and {(a, b) with some n between} = SEQ(A, B)
    for seed in range(HISTORIES):
        history = intervals(seed)
        without = bag(f"Guard(Seq({A}, {B}), {N}, {MIDDLE})", history)
        every = bag(f"Seq({A}, {B})", history)
        between = Counter(
            identity(m)
            for m in matches(from_text(f"Seq({A}, {B})"), history)
            if any(e.type == "N" and m.events[0].te < e.te < m.events[1].ts for e in history)
        )
        assert without + between == every
