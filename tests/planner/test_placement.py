"""Operators on nodes: vectors worked out by hand, and what holds for every graph."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from cepheid.algebra.text import from_text
from cepheid.model.errors import OptionError
from cepheid.model.strategy import Strategy
from cepheid.planner.canonical_succession import canonical
from cepheid.planner.key_parallel import compare_with_key_parallel
from cepheid.planner.operator_graph import Operator, operators_of
from cepheid.planner.placement import Deployment, Source, Traffic
from cepheid.statistics.next_costs import NextCosts, NotCosted

STRATEGIES = tuple(Strategy)
RATES = {name: 2.0**n for n, name in enumerate("ABCDEFGH")}
OUTSIDE = {name: Source(rate) for name, rate in RATES.items()}


def chain(text: str) -> tuple[Operator, ...]:
    found = operators_of(from_text(text), NextCosts(RATES))
    assert not isinstance(found, NotCosted)
    return found


def random_query(numbers: random.Random, size: int) -> tuple[Operator, ...]:
    """A random tree of `size` operators over the eight sources; the same leaves come often."""
    found: list[Operator] = []

    def grow(operators: int) -> int | str:
        if operators == 0:
            return numbers.choice("ABCDEFGH")
        left = numbers.randrange(operators)
        first, second = grow(left), grow(operators - 1 - left)
        texts = [found[e].canonical if isinstance(e, int) else e for e in (first, second)]
        rates = [found[e].rate if isinstance(e, int) else RATES[e] for e in (first, second)]
        number = len(found)
        text = f"({texts[0]};{texts[1]})"
        found.append(Operator(number, text, (first, second), rates[0], rates[0] + max(rates)))
        return number

    grow(size)
    return tuple(found)


def summed(deployment: Deployment) -> float:
    """The formula, term by term as it is printed, with the delta that the prose wants."""
    total = 0.0
    for each in deployment.placed:
        for operand in each.operator.operands:
            if isinstance(operand, int):
                other = deployment.placed[operand]
                total += (other.node != each.node) * other.operator.rate
        total += each.operator.cpu
        total += sum(
            other.operator.cpu
            for other in deployment.placed
            if other is not each and other.node == each.node
        )
    return total


# (x ; y) costs 10, its parent 4 and sends 7; see each test for the sums.
PAIR = (
    Operator(0, "A;B", ("A", "B"), 7.0, 10.0),
    Operator(1, "(A;B);C", (0, "C"), 7.0, 4.0),
)


def test_an_operator_goes_where_its_own_cost_is_least() -> None:
    """Node 0: 0 moved + 4 + 10 others = 14; node 1: 7 moved + 4 + 0 = 11."""
    deployment = Deployment(2, OUTSIDE)
    deployed = deployment.deploy(PAIR)
    assert deployed.nodes == {0: 0, 1: 1}
    assert deployed.new == (0, 1)
    assert deployed.reused == ()
    assert deployment.loads == (10.0, 4.0)
    assert deployment.crossing == Traffic(edges=1, rate=7.0)
    assert deployment.cost == 7 + 10 + 4


def test_traffic_keeps_an_operator_beside_its_operand() -> None:
    """Node 0: 0 + 4 + 10 = 14; node 1: 11 moved + 4 + 0 = 15."""
    deployment = Deployment(2, OUTSIDE)
    busy = (Operator(0, "A;B", ("A", "B"), 11.0, 10.0), PAIR[1])
    assert deployment.deploy(busy).nodes == {0: 0, 1: 0}
    assert deployment.crossing == Traffic(0, 0.0)
    assert deployment.cost == (10 + 4) + (4 + 10)


def test_a_source_that_lives_on_a_node_draws_its_reader() -> None:
    """From node 1 the 5 of source A would have to move: 5 + 10 on node 0, 10 on node 1."""
    here = {**OUTSIDE, "A": Source(5.0, node=1)}
    deployment = Deployment(2, here)
    assert deployment.deploy(PAIR[:1]).nodes == {0: 1}
    assert deployment.cost == 10
    robin = Deployment(2, here, Strategy.ROUND_ROBIN)
    assert robin.deploy(PAIR[:1]).nodes == {0: 0}
    assert robin.crossing == Traffic(1, 5.0)
    assert robin.received() == (5.0 + OUTSIDE["B"].rate, 0.0)


def test_the_largest_part_that_runs_is_reused() -> None:
    deployment = Deployment(3, OUTSIDE)
    deployment.deploy(PAIR)
    longer = (*PAIR, Operator(2, "((A;B);C);D", (1, "D"), 7.0, 20.0))
    again = deployment.deploy(longer)
    assert again.reused == (1,)
    assert again.new == (2,)
    assert 0 not in again.nodes  # below the part that is reused
    whole = deployment.deploy(longer)
    assert whole.reused == (2,)
    assert whole.new == ()
    assert whole.root == again.root
    assert len(deployment.placed) == 3


def test_equal_parts_of_one_query_run_once() -> None:
    twice = (
        Operator(0, "A;B", ("A", "B"), 1.0, 3.0),
        Operator(1, "A;B", ("A", "B"), 1.0, 3.0),
        Operator(2, "(A;B)|(A;B)", (0, 1), 2.0, 2.0),
    )
    deployment = Deployment(2, OUTSIDE)
    deployed = deployment.deploy(twice)
    assert deployed.new == (0, 2)
    assert deployed.reused == (1,)
    assert deployment.placed[1].operator.operands == (0, 0)
    assert len(Deployment(2, OUTSIDE, Strategy.GREEDY_WITHOUT_REUSE).deploy(twice).new) == 3


def test_round_robin_looks_at_nothing() -> None:
    deployment = Deployment(2, OUTSIDE, Strategy.ROUND_ROBIN)
    assert deployment.deploy(PAIR).nodes == {0: 0, 1: 1}
    assert deployment.deploy(PAIR).nodes == {0: 0, 1: 1}
    assert deployment.loads == (20.0, 8.0)
    # 14 moved, 28 of their own, and each pays the other on its node.
    assert deployment.cost == 14 + 28 + (10 + 10) + (4 + 4)


def test_results_are_spread_over_the_sink_proxies() -> None:
    deployment = Deployment(2, OUTSIDE, sinks=2)
    sinks = [deployment.deploy(PAIR).sink for _ in range(3)]
    assert sinks == [0, 1, 0]
    assert deployment.sink_rates == (14.0, 7.0)


def test_what_is_no_deployment_is_refused() -> None:
    with pytest.raises(OptionError, match="is not known"):
        Strategy.named("best")
    with pytest.raises(OptionError, match="0 nodes"):
        Deployment(0, OUTSIDE)
    with pytest.raises(OptionError, match="node 2"):
        Deployment(2, {"A": Source(1.0, node=2)})
    deployment = Deployment(2, {"A": Source(1.0)})
    with pytest.raises(OptionError, match="nothing to place"):
        deployment.deploy(chain("Atom([A], a)"))
    with pytest.raises(OptionError, match="`B` is not known"):
        deployment.deploy(PAIR)
    assert deployment.placed == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_operator_runs_exactly_once_and_the_sum_is_the_formula(strategy: Strategy) -> None:
    numbers = random.Random(4)
    for _ in range(60):
        deployment = Deployment(numbers.randint(1, 6), OUTSIDE, strategy)
        queries = [random_query(numbers, numbers.randint(1, 6)) for _ in range(8)]
        for query in queries:
            deployed = deployment.deploy(query)
            assert set(deployed.new).isdisjoint(deployed.reused)
            assert set(deployed.nodes) == {*deployed.new, *deployed.reused}
            assert deployment.placed[deployed.root].operator.canonical == query[-1].canonical
        texts = [each.operator.canonical for each in deployment.placed]
        if strategy == "greedy":
            assert len(texts) == len(set(texts))
            assert set(texts) == {each.canonical for query in queries for each in query}
        else:
            assert sorted(texts) == sorted(each.canonical for query in queries for each in query)
        assert deployment.cost == pytest.approx(summed(deployment))
        assert sum(deployment.loads) == pytest.approx(
            sum(each.operator.cpu for each in deployment.placed)
        )
        for at, each in enumerate(deployment.placed):
            assert each.operator.number == at
            assert all(o < at for o in each.operator.operands if isinstance(o, int))


def test_greedy_is_cheaper_than_round_robin_and_reuse_cheaper_still() -> None:
    numbers = random.Random(5)
    costs: dict[Strategy, list[float]] = {strategy: [] for strategy in STRATEGIES}
    busiest: dict[Strategy, list[float]] = {strategy: [] for strategy in STRATEGIES}
    for _ in range(60):
        nodes = numbers.randint(2, 12)
        queries = [random_query(numbers, 5) for _ in range(20)]
        for strategy in STRATEGIES:
            deployment = Deployment(nodes, OUTSIDE, strategy)
            for query in queries:
                deployment.deploy(query)
            costs[strategy].append(deployment.cost)
            busiest[strategy].append(max(deployment.loads))
    for measured in (costs, busiest):
        robin, alone, reused = (fmean(measured[s]) for s in reversed(STRATEGIES))
        assert reused < alone < robin


def test_work_grows_with_operators_times_nodes() -> None:
    def work(size: int, nodes: int) -> int:
        deployment = Deployment(nodes, OUTSIDE)
        query = tuple(
            Operator(n, str(n), (n - 1 if n else "A", "B"), 1.0, 1.0) for n in range(size)
        )
        deployment.deploy(query)
        return deployment.looked_at

    for size in (10, 100):
        for nodes in (1, 10, 40):
            assert work(size, nodes) == size * nodes + 2 * size


# -- from patterns ------------------------------------------------------------------------------


def test_a_chain_becomes_operators_with_the_models_traffic() -> None:
    """(A;B);H: A 1 and B 2 a second; the first costs 1 + 2, both send 1."""
    first, second = chain("Next(Next(Atom([A], a), Atom([B], b)), Atom([H], h))")
    assert first.operands == ("A", "B")
    assert (first.rate, first.cpu) == (1.0, 3.0)
    assert second.operands == (0, "H")
    assert second.rate == 1.0
    assert second.cpu == pytest.approx(
        NextCosts(RATES).of(from_text("Next(Next(Atom([A], a), Atom([B], b)), Atom([H], h))")).cpu  # type: ignore[union-attr]
    )


def test_a_wide_union_is_merged_rarest_first() -> None:
    first, second = chain("Union(Atom([H], h), Atom([A], a), Atom([B], b))")
    assert first.operands == ("A", "B")
    assert second.operands == (0, "H")
    assert (second.rate, second.cpu) == (131.0, 131.0)


def test_conditions_and_windows() -> None:
    filtered, followed = chain(
        "Within(Next(Atom([A], a, a.v > 1), Atom([B], b), test=a.v < b.v), window=10, "
        "inclusive=true, measure=end_to_end, first=a, second=b)"
    )
    assert filtered.operands == ("A",)
    assert followed.operands == (0, "B")
    assert followed.canonical.startswith("Within(")
    assert isinstance(operators_of(from_text("Plus(Atom([A], a))"), NextCosts(RATES)), NotCosted)
    assert chain("Atom([A], a)") == ()


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (
            "Next(Atom([A], x), Atom([A], y), skip=x.k = y.k)",
            "Next(Atom([A], y), Atom([A], x), skip=y.k = x.k)",
            True,
        ),
        (
            "Next(Atom([A], x), Atom([A], y), test=x.k < y.k)",
            "Next(Atom([A], x), Atom([A], y), test=y.k < x.k)",
            False,
        ),
        (
            "Union(Next(Atom([A], x), Atom([B], y)), Atom([C], z))",
            "Union(Atom([C], c), Next(Atom([A], a), Atom([B], b)))",
            True,
        ),
        ("Next(Atom([A], x), Atom([B], y))", "Next(Atom([B], x), Atom([A], y))", False),
        (
            "Except(Next(Atom([A], x), Atom([B], y)), Atom([C], z), since=x)",
            "Except(Next(Atom([A], x), Atom([B], y)), Atom([C], z), since=y)",
            False,
        ),
        ("Atom([A], x, x.v > 1)", "Atom([A], y, y.v > 1)", True),
        ("Atom([A], x, x.v > 1)", "Atom([A], x, x.v > 2)", False),
        ("Seq(Atom([A], x), Atom([B], y))", "Seq(Atom([A], x), Atom([B], y))", True),
    ],
)
def test_names_and_order_of_alternatives_do_not_hinder_reuse(
    one: str, other: str, is_same: bool
) -> None:
    assert (canonical(from_text(one)) == canonical(from_text(other))) is is_same


def test_deeply_nested_unions_have_a_canonical_form_at_once() -> None:
    text, mirrored = "Atom([A], v0)", "Atom([A], v0)"
    for n in range(1, 60):
        text, mirrored = f"Union({text}, Atom([B], v{n}))", f"Union(Atom([B], v{n}), {mirrored})"
    assert canonical(from_text(text)) == canonical(from_text(mirrored))


# -- beside key-parallel execution ----------------------------------------------------------------


def pair_by(key: str) -> tuple[Operator, ...]:
    """A pair of A (1 a second) and B (2) that are equal in one attribute."""
    return (Operator(0, f"A;B by {key}", ("A", "B"), 1.0, 3.0),)


def test_one_key_is_never_worse_than_whole_queries() -> None:
    """By key: 3 handled and 3 read on two partitions; placed: all that on one."""
    one = compare_with_key_parallel([[pair_by("k")]], RATES, nodes=2)
    assert (one.placed, one.by_key) == (6.0, 3.0)
    twice = compare_with_key_parallel([[pair_by("k"), pair_by("k")]], RATES, nodes=2)
    assert (twice.placed, twice.by_key) == (6.0, 3.0)  # the second query is the first
    assert not twice.takes_placement


def test_each_key_has_an_exchange_of_its_own() -> None:
    """Four keys on two nodes. By key: 4 x 3 handled and 4 x 3 read by two; placed: 6 and 3 each."""
    many = compare_with_key_parallel([[pair_by(str(n))] for n in range(4)], RATES, nodes=2)
    assert (many.placed, many.by_key) == (9.0, 12.0)
    assert many.takes_placement
    two = compare_with_key_parallel([[pair_by("1")], [pair_by("2")]], RATES, nodes=2)
    assert (two.placed, two.by_key) == (6.0, 6.0)
    assert not two.takes_placement
    robin = compare_with_key_parallel(
        [[pair_by(str(n))] for n in range(4)], RATES, 2, Strategy.ROUND_ROBIN
    )
    assert robin == many
