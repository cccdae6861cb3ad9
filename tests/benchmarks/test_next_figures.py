"""The figures of the NEXT paper: their parts are right, and small runs have the paper's shape."""

from __future__ import annotations

import importlib
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import module_of
from benchmarks.figures.figure import Figure
from benchmarks.figures.next_fig09.run import TREES, gain, panel_of
from benchmarks.figures.next_fig11.cluster import MACHINE_STEPS, Cluster, as_queries
from benchmarks.figures.next_workload.automata import (
    SECOND,
    Stream,
    poisson_sources,
    run_operator,
    run_query,
    scanned_reads,
)
from benchmarks.figures.next_workload.denotation import count_matches
from benchmarks.figures.next_workload.overload import (
    delays,
    is_overloaded,
    largest_factor,
)
from benchmarks.figures.next_workload.pools import (
    ISSUED,
    REWRITTEN,
    check_by_definition,
    random_pools,
)
from benchmarks.figures.next_workload.queries import (
    RATES,
    WORKLOADS,
    Trees,
    Workload,
    as_text,
    model_cost,
    random_query,
    rewritten,
    size_of,
)
from benchmarks.options import Options
from cepheid.algebra.pattern import Atom, Next, Pattern, Union, operands, walk
from cepheid.model.strategy import Strategy
from tests.oracle.denotation import matches
from tests.oracle.events import Ev


def stream(*times: int) -> Stream:
    found = np.array(times, np.int64)
    return Stream(found[:, None], found)


# -- queries ------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_random_query_has_its_size_and_rewriting_keeps_it(workload: Workload) -> None:
    numbers = random.Random(1)
    kinds = {"next": {Next}, "union": {Union}, "mix": {Next, Union}}[workload]
    seen: set[type] = set()
    for size in (1, 2, 5, 8):
        for _ in range(10):
            query = random_query(workload, size, numbers)
            assert size_of(query) == size_of(rewritten(query)) == size
            assert len({n.variable for n in walk(query) if isinstance(n, Atom)}) == size + 1
            assert all(len(operands(n)) == 2 for n in walk(rewritten(query)) if operands(n))
            assert model_cost(rewritten(query)) <= model_cost(query) * (1 + 1e-9)
            seen |= {type(node) for node in walk(query) if not isinstance(node, Atom)}
    assert seen == kinds


def shapes_of_three_operators(trees: Trees) -> list[int]:
    numbers = random.Random(2)
    texts = (as_text(random_query("next", 3, numbers, trees)) for _ in range(3_000))
    found = Counter("".join(c for c in text if c in "(;)") for text in texts)
    assert len(found) == 5
    return sorted(found.values())


def test_every_shape_of_three_operators_is_as_likely() -> None:
    assert shapes_of_three_operators("shapes") == pytest.approx([600] * 5, abs=100)


def test_operands_are_divided_anywhere() -> None:
    """A third of all trees divides four operands in the middle; the others have two shapes each."""
    found = shapes_of_three_operators("splits")
    assert found == pytest.approx([500] * 4 + [1_000], abs=100)


def test_sources_are_the_papers() -> None:
    assert sum(RATES.values()) == 255
    sources = poisson_sources(400, 3)
    for name, rate in RATES.items():
        assert len(sources[name]) / 400 == pytest.approx(rate, abs=5 * (rate / 400) ** 0.5)
    gaps = np.diff(sources["S8"].starts)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)  # as of a Poisson process


# -- one automaton per operator -------------------------------------------------------------------


def test_counters_of_one_next_by_hand() -> None:
    """m at 1, 2, 8; q at 5, 6, 9: two end with 5, nobody reads 6, the third ends with 9."""
    work, sent = run_operator(True, stream(1, 2, 8), stream(5, 6, 9), 1)
    assert len(sent) == 3
    assert (work.received, work.touched) == (6, 3)
    assert work.scanned == 3 + (2 + 1 + 1)
    assert work.indexed_by_time.sum() == 9
    assert work.scanned_by_time.sum() == 7


def test_instances_that_scan_read_what_began_before_them() -> None:
    """q = [0,4] and [3,4] end together after m at 2: m reads both, the second follows it."""
    second = Stream(np.array([[4, 0], [4, 3]]), np.array([0, 3]))
    work, sent = run_operator(True, stream(2), second, 1)
    assert sent.starts.tolist() == [2]
    assert work.touched == 1
    reads = scanned_reads(stream(2), second, np.array([0]), np.array([1]))
    assert reads.tolist() == [1, 1]
    assert work.scanned == 1 + 2


def test_a_union_handles_each_event_once() -> None:
    work, sent = run_operator(False, stream(1, 5), stream(3), 1)
    assert sent.ends.tolist() == [1, 3, 5]
    assert work.indexed == work.scanned == 3


def by_oracle(query: Pattern, sources: dict[str, Stream]) -> int:
    rows = sorted((t, name) for name, each in sources.items() for t in each.starts.tolist())
    history = [Ev(n, name, t, t, seq=n) for n, (t, name) in enumerate(rows)]
    return len(matches(query, history))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_operators_one_by_one_find_what_the_oracle_finds(workload: Workload) -> None:
    """Times of few values, so that many events end together and composites tie."""
    numbers = random.Random(4)
    for _ in range(60):
        sources = {
            name: stream(*sorted(numbers.randrange(12) for _ in range(numbers.randrange(1, 5))))
            for name in RATES
        }
        query = random_query(workload, numbers.randint(1, 5), numbers)
        expected = by_oracle(query, sources)
        assert count_matches(query, sources) == expected, as_text(query)
        assert run_query(query, sources, 1).matches == expected, as_text(query)
        assert run_query(rewritten(query), sources, 1).matches == expected, as_text(query)


def test_the_fused_kernel_agrees_on_poisson_streams() -> None:
    numbers = random.Random(5)
    queries = [random_query(workload, 3, numbers) for workload in WORKLOADS]
    assert check_by_definition(queries, 6) > 0


def test_instances_that_scan_cost_what_the_model_says() -> None:
    """Two sources: mu1 + max(mu1, mu2), the paper's own example of rare first."""
    sources = poisson_sources(200, 7)
    for first, second, cost in (("S1", "S8", 129.0), ("S8", "S1", 256.0), ("S4", "S4", 16.0)):
        work, _ = run_operator(True, sources[first], sources[second], 200)
        query = Next(Atom((first,), "a"), Atom((second,), "b"))
        assert model_cost(query) == cost
        if first != second:
            assert work.scanned / 200 == pytest.approx(cost, rel=0.06)


# -- overload -----------------------------------------------------------------------------------


def test_delays_are_those_of_a_queue() -> None:
    found = delays(np.array([3.0, 0.0, 0.0, 1.0]), bin_seconds=1.0)
    assert found.tolist() == [3.0, 2.0, 1.0, 1.0]


def test_overload_is_a_fifth_of_the_events_late_by_a_second() -> None:
    bins = 1_000  # twenty seconds
    events = np.ones(bins)
    assert not is_overloaded(np.full(bins, 0.0199), events)
    assert is_overloaded(np.full(bins, 0.025), events)
    burst = np.zeros(bins)
    burst[0] = 2.5  # late by more than a second for 1.5 s of a window of ten: 15%
    assert not is_overloaded(burst, events)
    burst[0] = 3.5  # for 2.5 s: 25%
    assert is_overloaded(burst, events)


def test_the_largest_factor_is_found() -> None:
    assert largest_factor(lambda factor: factor > 37.5) == pytest.approx(37.5, rel=2e-3)
    assert largest_factor(lambda factor: factor > 0.01) == pytest.approx(0.01, rel=2e-3)


def test_a_cluster_counts_work_network_and_sinks() -> None:
    """S8;S1 on one node: 128 + 1 in and 128 touched, 129 from sources, 128 to the sink."""
    seconds = 20
    sources = poisson_sources(seconds, 8)
    pool, _ = random_pools("next", 1, 1, 8, sources, seconds)
    [query] = as_queries(pool, "counted")
    cluster = Cluster.of(1, Strategy.GREEDY, 1, seconds)
    assert cluster.add(query) is None
    [work] = query.works
    read = sum(RATES[name] for name in query.operators[0].operands if isinstance(name, str))
    expected = work.indexed / seconds + read + work.sent / seconds
    assert cluster.work.sum() / seconds == pytest.approx(expected)
    assert cluster.deployment.sink_rates[0] == pytest.approx(work.sent / seconds)
    again = 0
    while cluster.add(query) is None:
        again += 1
    # All others are the first one, reused: only their results add to node and sink.
    assert len(cluster.deployment.placed) == 1
    assert again == pytest.approx(
        (MACHINE_STEPS - expected) / (work.sent / seconds), rel=0.05, abs=1
    )


def test_on_the_papers_node_events_cross_the_network() -> None:
    sources = poisson_sources(5, 1)
    for workload in WORKLOADS:
        query = random_query(workload, 3, random.Random(workload))
        leaves = [node.types[0] for node in walk(query) if isinstance(node, Atom)]
        done = run_query(query, sources, 5)
        crossing = sum(len(sources[name]) for name in leaves) + done.matches
        assert done.steps("node") == done.steps("scanned") + crossing
        for metric in ("indexed", "scanned", "node"):
            assert done.by_time(metric).sum() == pytest.approx(done.steps(metric), rel=1e-3)


# -- the figures ----------------------------------------------------------------------------------


def run_quick(name: str) -> Figure:
    figure: Figure = importlib.import_module(module_of(name)).run(Options(quick=True, repeats=1))
    assert figure.is_sound, figure.failures
    return figure


@pytest.mark.slow
def test_next9_rewriting_gains_and_the_model_says_how_much(tmp_path: Path) -> None:
    figure = run_quick("next9")

    for trees in TREES:
        chains, mixed, unions = (panel_of(workload, trees) for workload in WORKLOADS)
        for panel in (chains, mixed, unions):
            for size in (2, 8):
                assert gain(figure, panel, size, "indexed") >= 0.95
                modelled = gain(figure, panel, size, "model")
                assert gain(figure, panel, size, "scanned") == pytest.approx(modelled, rel=0.4)
                with_network = gain(figure, panel, size, "model_node")
                assert gain(figure, panel, size, "node") == pytest.approx(with_network, rel=0.4)
            assert gain(figure, panel, 8, "indexed") > 1.1
        assert gain(figure, chains, 8, "scanned") > gain(figure, chains, 2, "scanned")
        for counted in ("scanned", "node"):
            by_size = [gain(figure, panel, 8, counted) for panel in (chains, mixed, unions)]
            assert by_size == sorted(by_size, reverse=True)
            assert by_size[-1] > 1.1
    record = json.loads(figure.write(tmp_path).read_text())
    assert (tmp_path / "next_fig09.png").read_bytes().startswith(b"\x89PNG")
    assert {"N1", "N2"} == {each["name"] for each in record["paper_claims"]}


@pytest.mark.slow
def test_next10_rewriting_raises_the_throughput(tmp_path: Path) -> None:
    figure = run_quick("next10")
    for workload in WORKLOADS:
        few, many = (figure.speed(workload, count, REWRITTEN) for count in (4, 12))
        assert few > many
        assert many > figure.speed(workload, 12, ISSUED)
    figure.write(tmp_path)
    assert (tmp_path / "next_fig10.png").exists()


@pytest.mark.slow
def test_next11_placement_and_sinks(tmp_path: Path) -> None:
    figure = run_quick("next11")

    def queries(panel: str, nodes: int, series: str) -> int:
        return figure.point(panel, nodes, series).counters["supported"]

    for panel in ("next, 5 sink proxies", "union, 5 sink proxies"):
        robin, greedy, reuse, both = (
            queries(panel, 4, name)
            for name in ("Round robin", "Greedy", "Reuse", "Rewrite + Reuse")
        )
        assert robin <= greedy <= reuse < both
    full = figure.point("union, 1 sink proxy", 4, "Rewrite + Reuse")
    assert full.stopped == "sink proxy"
    assert 72 <= full.counters["supported"] <= 88
    arithmetic = [each.holds for each in figure.paper_claims if each.name == "N6"]
    assert arithmetic == [True, True]
    figure.write(tmp_path)
    assert (tmp_path / "next_fig11.png").exists()


def test_times_are_whole_microseconds() -> None:
    assert all(each.ends.max() < 3 * SECOND for each in poisson_sources(3, 1).values())
