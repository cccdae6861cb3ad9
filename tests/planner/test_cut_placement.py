"""Which parts of queries are cut: where carrying composites costs less than finding them again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest

from cepheid.algebra.pattern import Pattern
from cepheid.algebra.text import from_text
from cepheid.model.strategy import Strategy
from cepheid.planner.canonical_succession import canonical
from cepheid.planner.cut_placement import CutPlacement, Placeable, place_with_cuts
from cepheid.planner.fused_placement import FusedPlacement
from cepheid.planner.query_operators import query_operators
from cepheid.statistics.next_costs import NextCosts

PARTS = [f"Next(Atom([A{n}], a{n}), Atom([B{n}], b{n}))" for n in range(4)]
PAIRS = [f"Next({one}, {other})" for one, other in permutations(PARTS, 2)]
RARE_FIRST = {f"A{n}": 1.0 for n in range(4)} | {f"B{n}": 10.0 for n in range(4)}
OFTEN_FIRST = {f"A{n}": 10.0 for n in range(4)} | {f"B{n}": 1.0 for n in range(4)}


def placed(
    texts: Sequence[str],
    rates: dict[str, float] | None,
    nodes: int = 2,
    strategy: Strategy = Strategy.GREEDY,
    uncut: Sequence[str] = (),
) -> CutPlacement | None:
    """Queries that may be cut, then such as may not, placed whole before."""
    costs = None if rates is None else NextCosts(rates)
    patterns: list[Pattern] = [from_text(text) for text in (*texts, *uncut)]
    fused = FusedPlacement(nodes, strategy=strategy)
    whole = []
    for number, pattern in enumerate(patterns):
        operators = query_operators([pattern], costs)
        place = fused.choose(operators)
        fused.put(str(number), place, operators)
        whole.append(place.node)
    queries = [Placeable((pattern,), n < len(texts)) for n, pattern in enumerate(patterns)]
    return place_with_cuts(queries, whole, nodes, costs, strategy)


def test_parts_that_are_costly_and_rare_run_once() -> None:
    found = placed(PAIRS, RARE_FIRST)
    assert found is not None
    assert {part.text for part in found.parts} == {canonical(from_text(text)) for text in PARTS}
    assert sorted(part.node for part in found.parts) == [0, 0, 1, 1]
    assert set(found.nodes) == {0, 1}
    assert found.busiest < found.uncut
    for part in found.parts:
        # Each composite is two events; finding it takes those that are read, too.
        assert (part.rate, part.carried) == (1.0, 2.0)
        assert part.handled > 11


@pytest.mark.parametrize(
    ("texts", "rates", "nodes"),
    [
        (PAIRS, OFTEN_FIRST, 2),  # as many composites as events
        (PAIRS, None, 2),  # nothing is known to be rare
        (PAIRS, RARE_FIRST, 1),
        (PAIRS[:1], RARE_FIRST, 2),  # nobody else needs its parts
        (PAIRS, RARE_FIRST | {"A0": 12.0, "A1": 12.0}, 2),  # too little for a stage more
        # Two stages with a part each take as long as one that finds both.
        ([f"Next({PARTS[0]}, Atom([A{n}], z))" for n in range(1, 3)], RARE_FIRST, 2),
    ],
)
def test_queries_stay_whole_where_cuts_do_not_pay(
    texts: list[str], rates: dict[str, float] | None, nodes: int
) -> None:
    assert placed(texts, rates, nodes) is None


def test_what_is_not_reused_is_not_cut() -> None:
    assert placed(PAIRS, RARE_FIRST, strategy=Strategy.GREEDY_WITHOUT_REUSE) is None


def test_iterations_are_not_cut_by_estimates() -> None:
    """Nobody knows how many composites there would be; what lies below may be cut."""
    runs = [f"Plus({part})" for part in PARTS]
    found = placed([f"Next({a}, {b})" for a, b in permutations(runs, 2)], RARE_FIRST)
    assert found is not None
    assert {part.text for part in found.parts} == {canonical(from_text(text)) for text in PARTS}


def test_queries_that_may_not_be_cut_are_placed_with_the_others() -> None:
    found = placed(PAIRS, RARE_FIRST, uncut=["Seq(Atom([A0], x), Atom([A1], y))"])
    assert found is not None
    assert len(found.nodes) == len(PAIRS) + 1
    assert len(found.parts) == 4


def test_round_robin_puts_each_operator_on_the_next_node() -> None:
    a_b, c = "Next(Atom([A], x), Atom([B], y))", "Atom([C], z)"
    found = placed([f"Next({a_b}, {c})", f"Next({c}, {a_b})"], None, 2, Strategy.ROUND_ROBIN)
    assert found is not None
    assert found.nodes == (1, 1)
    assert [(part.text, part.node) for part in found.parts] == [(canonical(from_text(a_b)), 0)]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        # An instant is no event; what it is added to can be carried.
        (
            "Next(Timer(Next(Atom([A], x), Atom([B], y)), delay=5), Atom([C], z))",
            ["Next(Atom([A]), Atom([B]))"],
        ),
        # What an exception may cancel waits with the exceptions.
        ("Except(Next(Atom([A], x), Atom([B], y)), Atom([C], z), since=x)", []),
        (
            "Next(Atom([D], d), Except(Next(Atom([A], x), Atom([B], y)), Atom([C], z), since=x))",
            ["Except(Next(Atom([A]), Atom([B])), Atom([C]), since=v0)"],
        ),
        ("Next(Atom([A], x), Atom([B], y))", []),
    ],
)
def test_what_may_be_cut(text: str, cut: list[str]) -> None:
    found = placed([text], None, 3, Strategy.ROUND_ROBIN)
    assert [part.text for part in found.parts] == cut if found else not cut
