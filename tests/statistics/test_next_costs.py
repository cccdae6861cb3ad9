"""NEXT's cost table, printed and corrected, against the numbers worked out by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest

from cepheid.algebra.pattern import Pattern
from cepheid.algebra.text import from_text
from cepheid.model.errors import OptionError
from cepheid.statistics.event_statistics import EventStatistics, TypeStatistics
from cepheid.statistics.next_costs import (
    Mode,
    NextCosts,
    NotCosted,
    Traffic,
    delayed,
    filtered,
    followed,
    guarded,
    merged,
    source,
)

MODES: tuple[Mode, ...] = ("paper", "corrected")
A, B, C, D, N = (f"Atom([{type}], {type.lower()})" for type in "ABCDN")


def traffic(text: str, rates: dict[str, float], mode: Mode = "corrected", **how: Any) -> Traffic:
    found = NextCosts(rates, mode).of(from_text(text), **how)
    assert isinstance(found, Traffic)
    return found


def reason(text: str, rates: dict[str, float], mode: Mode = "corrected") -> str:
    found = NextCosts(rates, mode).of(from_text(text))
    assert isinstance(found, NotCosted)
    return found.reason


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("first", "second", "cost"), [(10, 3, 20), (3, 10, 13)])
def test_two_sources(mode: Mode, first: float, second: float, cost: float) -> None:
    assert traffic(f"Next({A}, {B})", {"A": first, "B": second}, mode).cost == pytest.approx(cost)


def test_the_rare_one_comes_first() -> None:
    rates = {"A": 1.0, "B": 50.0, "C": 80.0}
    right, left = f"Next({A}, Next({B}, {C}))", f"Next(Next({A}, {B}), {C})"
    assert traffic(right, rates, "paper").cost == pytest.approx(162.64, abs=0.005)
    assert traffic(left, rates, "paper").cost == pytest.approx(131.02, abs=0.005)
    assert traffic(right, rates).cost == pytest.approx(181.625)
    assert traffic(left, rates).cost == pytest.approx(131.98, abs=0.005)


def test_the_table_row_by_row() -> None:
    first, second = Traffic(6, 0.5, 3, 2, cost=10), Traffic(20, 0.2, 4, 5, cost=100)
    assert filtered(first) == Traffic(6, 0.5, 3, 2, 6, 16)
    assert guarded(first, second) == Traffic(6, 0.5, 3, 2, 26, 136)
    assert merged(first, second, "paper") == Traffic(26, 1 / 7, 26, 7, 26, 136)
    assert merged(first, second) == Traffic(26, 1 / 7, 26 / 7, 7, 26, 136)
    # cpu: 6 + 0.2/0.5 * 3 * 4 * 5 + (5 - 2) * 4
    assert followed(first, second, "paper") == Traffic(
        6, 0.7, pytest.approx(1.2), 2, pytest.approx(42), pytest.approx(152)
    )
    assert followed(first, second) == Traffic(
        6, 0.7, pytest.approx(3), 2, pytest.approx(42), pytest.approx(152)
    )
    assert delayed(first, 8, "paper") == Traffic(6, 8.5, 3, 2, 6, 16)
    assert delayed(first, 8) == Traffic(6, 0.5, 3, 2, 6, 16)


def test_the_two_errors_of_the_printed_table() -> None:
    # A burst of a union can not hold more events than the largest of its streams' bursts.
    union = f"Union({A}, {B})"
    assert traffic(union, {"A": 10, "B": 30}, "paper").burst_size == pytest.approx(40)
    assert traffic(union, {"A": 10, "B": 30}).burst_size == pytest.approx(1)
    # A burst of E1 leaves whole, however often E2 comes.
    chain = f"Next({A}, {B})"
    assert traffic(chain, {"A": 3, "B": 10}, "paper").burst_size == pytest.approx(0.3)
    assert traffic(chain, {"A": 3, "B": 10}).burst_size == pytest.approx(1)


def random_tree(numbers: random.Random, depth: int) -> str:
    if depth == 0:
        return f"Atom([{numbers.choice('ABCDN')}], v{numbers.randrange(10**9)})"
    inner = random_tree(numbers, depth - 1)
    other = random_tree(numbers, numbers.randrange(depth))
    kind = numbers.randrange(6)
    if kind < 2:
        return f"Next({inner}, {other})" if kind else f"Next({other}, {inner})"
    if kind == 2:
        return f"Union({inner}, {other}, {random_tree(numbers, 0)})"
    if kind == 3:
        return f"Filter({inner}, 1 < 2)"
    if kind == 4:
        return f"Timer({inner}, delay=4)"
    return f"Within({inner}, window=3, inclusive=true)"


def is_consistent(found: Traffic) -> bool:
    return found.burst_size * found.burst_rate == pytest.approx(found.rate)


def test_size_times_rate_of_bursts_is_the_rate_of_events() -> None:
    numbers = random.Random(4)
    broken = 0
    for _ in range(500):
        tree = from_text(random_tree(numbers, numbers.choice((1, 2, 3, 4))))
        rates = {type: numbers.choice((1, 2, 64, 0.3)) for type in "ABCDN"}
        corrected, printed = (NextCosts(rates, mode).of(tree) for mode in reversed(MODES))
        assert isinstance(corrected, Traffic)
        assert isinstance(printed, Traffic)
        assert is_consistent(corrected), tree
        broken += not is_consistent(printed)
    assert broken > 100, "the printed table breaks its own invariant"


def test_thinned_bursts_keep_the_invariant() -> None:
    burst = followed(source(64), source(1))
    assert burst.burst_size == pytest.approx(64)
    for share in (1.0, 0.5, 0.01, 0.0):
        thinned = filtered(burst, share)
        assert is_consistent(thinned)
        assert thinned.burst_size >= 1 - 1e-9
        assert thinned.rate == pytest.approx(burst.rate * max(share, 1e-6))
    assert filtered(source(8), 0.25) == Traffic(2, 0.5, 1, 2, 8, 8)


def test_a_union_is_merged_along_the_rates_or_as_written() -> None:
    text = f"Union({A}, {B}, {C}, {D})"
    rates = {"A": 1400.0, "B": 200.0, "C": 200.0, "D": 500.0}
    # (E1|(E4|(E2|E3))), cost 3600: figure 4 of the paper, whose rates are lost.
    assert traffic(text, rates).cost == 400 + 900 + 2300
    assert traffic(text, rates, unions_as_written=True).cost == 1600 + 1800 + 2300
    nested = f"Union({A}, Union({D}, Union({B}, {C})))"
    assert traffic(nested, rates, unions_as_written=True).cost == 3600


def test_an_exception_reads_both_streams() -> None:
    found = traffic(f"Except(Next({A}, {B}), {N}, since=a)", {"A": 3, "B": 10, "N": 5})
    assert (found.cpu, found.cost) == (pytest.approx(8), pytest.approx(21))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"Plus({A})", "an iteration has no bound"),
        (f"Next({A}, Next(Plus({B}), {C}))", "an iteration has no bound"),
        (f"Union({A}, Plus({B}), {C})", "an iteration has no bound"),
        (f"Next({A}, {D})", "no rate is known of events of type D"),
        (f"Except({A}, {D}, since=a)", "no rate is known of events of type D"),
        (f"Seq({A}, {B})", "the cost of Seq is not modelled"),
    ],
)
def test_what_has_no_cost_says_why(text: str, words: str) -> None:
    assert words in reason(text, {"A": 1, "B": 2, "C": 3})


def test_a_delay_without_a_length_matters_only_to_the_printed_table() -> None:
    text = f"Timer({A}, delay=5 seconds)"
    assert "no length" in reason(text, {"A": 2}, "paper")
    assert traffic(text, {"A": 2}).detection_time == 0.5


def test_any_type_has_the_rate_of_all() -> None:
    assert traffic("Atom([], x)", {"A": 2, "B": 3}).rate == 5
    assert traffic("Atom([A, B], x)", {"A": 2, "B": 3}).rate == 5


@pytest.mark.parametrize("rate", [-1, float("nan"), float("inf"), "fast", True])
def test_a_rate_that_is_none_is_refused(rate: Any) -> None:
    with pytest.raises(OptionError, match="rate of `A`"):
        NextCosts({"A": rate})


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(OptionError, match="cost model 'printed'"):
        NextCosts({"A": 1}, "printed")  # type: ignore[arg-type]


def statistics() -> EventStatistics:
    types = {
        name: TypeStatistics(count, rate, None, {})
        for name, count, rate in (("A", 100, 1.0), ("B", 400, 4.0))
    }
    return EventStatistics("tick", 0, 100, 500, 0, 0, types)


def of(pattern: Pattern, mode: Mode) -> Traffic:
    found = NextCosts(statistics(), mode).of(pattern)
    assert isinstance(found, Traffic)
    return found


def test_statistics_give_rates_and_what_filters_pass() -> None:
    plain = from_text(f"Next({A}, {B})")
    assert of(plain, "corrected").cost == pytest.approx(1 + 4)
    tested = from_text(f"Next({A}, Atom([B], b, b.v > 1))")
    nested = from_text(f"Next({A}, Filter({B}, b.v > 1))")
    # A third of B passes an unknown condition: 4 for the filter, 1 + 4/3 for the Next.
    assert of(tested, "corrected").cost == pytest.approx(4 + 1 + 4 / 3)
    assert of(tested, "corrected") == of(nested, "corrected")
    # The paper ignores selectivity (section 4.2, assumption 3).
    assert of(tested, "paper").cost == pytest.approx(4 + 1 + 4)
