"""Shapes by cost: chosen where rates are given, kept where not, and told to the user."""

from __future__ import annotations

import random

import pytest

from cepheid.algebra.pattern import Union, bound_variables, walk
from cepheid.algebra.text import from_text, to_text
from cepheid.model.errors import OptionError
from cepheid.optimizer.cost_comparison import compare_costs, shape_text
from cepheid.optimizer.optimizer import optimise
from cepheid.optimizer.union_shape import UnionShape, nested_union, union_shapes
from cepheid.statistics.next_costs import NextCosts, NotCosted
from tests.optimizer.comparing import careless_history, found, meaning
from tests.optimizer.next_patterns import random_chain

CHAINS = 500
HISTORIES = 4

A, B, C, D, N = (f"Atom([{type}], {type.lower()})" for type in "ABCDN")
RIGHT = f"Next({A}, Next({B}, {C}))"
COSTS = NextCosts({"A": 1, "B": 50, "C": 80, "D": 5, "N": 2})


def random_costs(seed: int) -> NextCosts:
    numbers = random.Random(seed)
    rates = {type: float(2 ** numbers.randrange(8)) for type in "ABCDN"}
    return NextCosts(rates, numbers.choice(("paper", "corrected")))


def test_chosen_shapes_keep_the_meaning() -> None:
    changed, seen = 0, 0
    for seed in range(CHAINS):
        chain = random_chain(seed)
        costs = random_costs(seed)
        done = optimise(chain, costs=costs, check=True, search=("pareto", "paper")[seed % 2])
        changed += any(step.cost_after is not None for step in done.trace)
        for number in range(seed * HISTORIES, (seed + 1) * HISTORIES):
            events = careless_history(number)
            right = meaning(chain, events)
            assert meaning(done.pattern, events) == right, (seed, number)
            seen += found(right)
    assert changed > 80
    assert seen > 100


def test_a_chosen_shape_costs_no_more_and_stays() -> None:
    for seed in range(CHAINS):
        chain, costs = random_chain(seed), random_costs(seed)
        done = optimise(chain, costs=costs)
        for step in done.trace:
            if step.cost_before is not None and step.cost_after is not None:
                assert step.cost_after < step.cost_before
        again = optimise(done.pattern, costs=costs)
        assert all(step.cost_after is None for step in again.trace), seed


def test_the_variables_of_a_match_keep_their_order() -> None:
    done = optimise(from_text(RIGHT), costs=COSTS)
    assert bound_variables(done.pattern) == ("a", "b", "c")


def test_without_rates_the_shape_stays() -> None:
    assert optimise(from_text(RIGHT)).trace == ()
    unknown = NextCosts({"A": 1, "B": 50})
    assert optimise(from_text(RIGHT), costs=unknown).trace == ()


def test_a_shape_rule_can_be_switched_off() -> None:
    assert optimise(from_text(RIGHT), costs=COSTS, off=["reassociate_next"]).trace == ()


def test_an_iteration_is_never_bracketed_anew() -> None:
    for text in (f"Next(Plus({A}), Next({B}, {C}))", f"Next({A}, Next(Plus({B}), {C}))"):
        assert optimise(from_text(text), costs=COSTS).trace == ()


def test_a_part_is_not_made_cheaper_at_the_price_of_the_whole() -> None:
    rates = {"A": 64.0, "B": 16.0, "C": 16.0, "D": 4.0, "N": 2.0}
    costs = NextCosts(rates)
    chain = from_text(f"Next(Next(Next(Next({A}, {B}), {C}), {D}), {N})")
    best, plain = optimise(chain, costs=costs), optimise(chain, costs=costs, search="paper")
    found_cost, plain_cost = (costs.of(done.pattern) for done in (best, plain))
    assert not isinstance(found_cost, NotCosted)
    assert not isinstance(plain_cost, NotCosted)
    assert found_cost.cost < plain_cost.cost


def test_a_search_that_is_none_is_refused() -> None:
    with pytest.raises(OptionError, match="search 'greedy'"):
        optimise(from_text(RIGHT), costs=COSTS, search="greedy")  # type: ignore[arg-type]


def test_a_window_bounds_the_parts_of_the_shape_that_was_chosen() -> None:
    window = "window=9, inclusive=true, measure=end_to_end"
    done = optimise(from_text(f"Within({RIGHT}, {window}, first=a, second=c)"), costs=COSTS)
    assert to_text(done.pattern) == to_text(
        from_text(
            f"Within(Next(Within(Next({A}, {B}), {window}, first=a, second=b), {C}), {window}, "
            "first=a, second=c)"
        )
    )


def test_the_fraud_query_keeps_its_tests_where_they_kill() -> None:
    # Section 3 of the paper: two small transactions of an account, then a large one.
    t = [f"Atom([T], {name})" for name in ("s", "u", "l")]
    written = from_text(
        f"Next(Next({t[0]}, {t[1]}, skip=s.acc = u.acc, test=s.amount < 100 and u.amount < 100), "
        f"{t[2]}, skip=u.acc = l.acc, test=l.amount > 250)"
    )
    done = optimise(written, costs=NextCosts({"T": 875}))
    # The first one's own condition is a filter; the others decide about a successor and stay.
    assert to_text(done.pattern) == to_text(
        from_text(
            f"Next(Next(Atom([T], s, s.amount < 100, absent=false), {t[1]}, skip=s.acc = u.acc, "
            f"test=u.amount < 100), {t[2]}, skip=u.acc = l.acc, test=l.amount > 250)"
        )
    )


def test_unions_are_merged_beside_the_pattern() -> None:
    union = from_text(f"Union({A}, {B}, {C}, {D})")
    assert isinstance(union, Union)
    done = optimise(union, costs=COSTS)
    assert done.pattern == union, "the order of the operands is the user's"
    (shape,) = union_shapes(done.pattern, COSTS)
    assert shape == UnionShape(union, (((0, 3), 1), 2))
    nested = nested_union(shape)
    assert shape_text(nested) == "((a | d) | b) | c"
    assert all(len(node.patterns) == 2 for node in walk(nested) if isinstance(node, Union))
    for seed in range(2000):
        events = careless_history(seed)
        assert meaning(nested, events) == meaning(union, events)
    assert union_shapes(union, NextCosts({"A": 1})) == ()


def test_the_comparison_tells_before_and_after_cost_and_rule() -> None:
    written = from_text(f"Except(Filter({RIGHT}, a.v > 1), {N}, since=a)")
    done = optimise(written, costs=COSTS)
    assert compare_costs(written, done, COSTS).splitlines() == [
        "Shape, by estimated cost (events handled per unit of time)",
        "  as written  185.62  (a ; (b ; c)) \\ n",
        "  as run      135.98  ((a ; b) ; c) \\ n, 27 % less",
        "  reassociate_next: 182.62 -> 132.98",
        "    a ; (b ; c)",
        "    (a ; b) ; c",
    ]


def test_the_comparison_tells_how_a_union_is_merged() -> None:
    written = from_text(f"Union({C}, {B}, {D}, {A})")
    done = optimise(written, costs=COSTS)
    assert compare_costs(written, done, COSTS).splitlines() == [
        "Shape, by estimated cost (events handled per unit of time)",
        "  as written  401.00  c | b | d | a",
        "  as run      198.00  c | b | d | a, 51 % less",
        "  union, the rarest merged first: 401.00 -> 198.00",
        "    ((a | d) | b) | c",
    ]


def test_the_comparison_says_why_there_is_no_cost() -> None:
    written = from_text(f"Next(Plus({A}), {B})")
    text = compare_costs(written, optimise(written, costs=COSTS), COSTS)
    assert text.splitlines()[1:] == [
        "  no cost of the whole: an iteration has no bound on its matches"
    ]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (f"Within(Next({A}, Timer({B}, delay=3)), window=3, inclusive=true)", "a ; b@"),
        (f"Plus(Union({A}, {B}))", "(a | b)+"),
        (f"Seq({A}, Next({B}, {C}))", "Seq(a, (b ; c))"),
    ],
)
def test_shapes_in_short(text: str, shape: str) -> None:
    assert shape_text(from_text(text)) == shape
