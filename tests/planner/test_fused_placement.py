"""Where queries go: by reuse, by load, in turn."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import cepheid
from cepheid.manager.query_load import submitted_operators
from cepheid.model.errors import CepheidError
from cepheid.model.options import Options
from cepheid.model.strategy import Strategy
from cepheid.planner.fused_placement import FusedPlacement
from cepheid.statistics.collect import StatisticsCollector


def operators(text, statistics=None):
    return submitted_operators(cepheid.compile(text), Options(), None, statistics)


def placed(strategy, texts, nodes=2, sinks=1):
    placement = FusedPlacement(nodes, sinks, strategy)
    found = []
    for number, text in enumerate(texts):
        each = operators(text)
        place = placement.choose(each)
        placement.put(f"q{number}", place, each)
        found.append(place)
    return placement, found


AB = "SELECT * FROM A a ; B b"
ABC = "SELECT * FROM (A x ; B y) ; C z"
DE = "SELECT * FROM D d ; E e"


def test_queries_with_a_common_part_meet_and_others_go_elsewhere():
    placement, found = placed(Strategy.GREEDY, [AB, DE, ABC])
    assert [each.node for each in found] == [0, 1, 0]
    # `A;B` runs once: two operators for two queries.
    assert placement.operators(0) == 2


def test_without_reuse_only_loads_count():
    _, reusing = placed(Strategy.GREEDY, [AB, AB, AB])
    _, without = placed(Strategy.GREEDY_WITHOUT_REUSE, [AB, AB, AB])
    assert [each.node for each in reusing] == [0, 0, 0]
    assert [each.node for each in without] == [0, 1, 0]


def test_round_robin_goes_round():
    _, found = placed(Strategy.ROUND_ROBIN, [AB, AB, AB, AB, AB], nodes=3)
    assert [each.node for each in found] == [0, 1, 2, 0, 1]


def test_sequences_meet_where_their_stacks_are():
    texts = [
        "EVENT SEQ(A x, B y, C z) WHERE [id] WITHIN 10",
        "EVENT SEQ(P x, Q y) WHERE [id] WITHIN 10",
        "EVENT SEQ(A v, B w) WHERE [id] WITHIN 30",
    ]
    _, found = placed(Strategy.GREEDY, texts)
    assert [each.node for each in found] == [0, 1, 0]


def test_a_node_that_has_too_much_gets_no_more():
    """Reuse saves work, but not as much as a crowd costs."""
    many = [f"SELECT * FROM A a ; T{n} t" for n in range(8)]
    _, found = placed(Strategy.GREEDY, [*many, "SELECT * FROM (A x ; T1 y) ; C z"])
    assert {each.node for each in found[:8]} == {0, 1}


def test_a_query_that_is_gone_leaves_no_load():
    placement, _ = placed(Strategy.GREEDY, [AB])
    assert placement.load(0) > 0
    placement.drop("q0")
    assert placement.load(0) == 0


def test_loads_are_those_of_what_is_left():
    """Queries that come and go at random leave the load of those that stayed."""
    numbers = random.Random(1)
    texts = [AB, DE, ABC, "EVENT SEQ(A x, B y) WITHIN 9", "EVENT SEQ(A x, B y, D z) WITHIN 9"]
    placement, left = FusedPlacement(2), {}
    for step in range(200):
        name = f"q{numbers.randrange(12)}"
        if numbers.random() < 0.4:
            placement.drop(name)
            left.pop(name, None)
        else:
            each = operators(numbers.choice(texts))
            place = placement.choose(each)
            placement.put(name, place, each)
            left[name] = place.node, each
        for node in range(2):
            own = {o.canonical: o.cpu for at, each in left.values() for o in each if at == node}
            assert placement.operators(node) == len(own), step
            assert placement.load(node) == pytest.approx(sum(own.values())), step


def test_sink_proxies_are_filled_evenly():
    _, found = placed(Strategy.GREEDY, [AB, DE, AB, DE], sinks=2)
    assert sorted(each.sink for each in found) == [0, 0, 1, 1]


def test_rates_decide_loads():
    collector = StatisticsCollector(Options())
    types = ["A"] * 8 + ["B"] * 2
    collector.add(pa.record_batch({"type": types, "ts": list(range(10))}))
    statistics = collector.finish()
    frequent = operators("EVENT SEQ(A x, A y) WITHIN 10", statistics)
    rare = operators("EVENT SEQ(B x, B y) WITHIN 10", statistics)
    assert sum(each.cpu for each in frequent) > sum(each.cpu for each in rare) > 0


def test_a_missing_parameter_is_told_before_any_event_came():
    with pytest.raises(CepheidError, match="limit"):
        operators("EVENT A x WHERE x.v > :limit")
