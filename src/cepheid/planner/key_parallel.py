"""Queries divided by their keys, or each whole on a node: which is cheaper on Spark.

A node is a partition. Queries of one key need one exchange of their events, and then each partition
runs all of them for the keys it holds; but every key has an exchange of its own, so with many keys
an event is copied many times. Queries that are placed whole need an event once for every node that
reads it. Both are judged by their busiest partition, since a job is over when that one is: events
handled there plus `exchange` for each event that reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cepheid.model.strategy import Strategy
from cepheid.planner.fused_placement import FusedPlacement
from cepheid.planner.operator_graph import Operator

Queries = Sequence[Sequence[Operator]]


class Comparison(NamedTuple):
    """The estimated events at the busiest partition in both ways."""

    placed: float
    by_key: float

    @property
    def takes_placement(self) -> bool:
        """Whether to place the queries whole."""
        return self.placed < self.by_key


def compare_with_key_parallel(
    by_key: Sequence[Queries],
    rates: Mapping[str, float],
    nodes: int,
    strategy: Strategy = Strategy.GREEDY,
    exchange: float = 1.0,
) -> Comparison:
    """Compare key-parallel execution with whole queries on nodes.

    `by_key` has the queries of each key, `rates` tell the sources. Events of a key are taken to be
    spread evenly, and equal operators to run once where they meet.

    >>> pair = [Operator(0, "A;B", ("A", "B"), 1.0, 3.0)]
    >>> compare_with_key_parallel([[pair]], {"A": 1.0, "B": 2.0}, nodes=2)
    Comparison(placed=6.0, by_key=3.0)
    """
    divided = sum(_handled(own) + exchange * _read(own, rates) for own in by_key) / nodes
    placement = FusedPlacement(nodes, strategy=strategy)
    on_node: list[list[Sequence[Operator]]] = [[] for _ in range(nodes)]
    for number, query in enumerate(query for own in by_key for query in own):
        place = placement.choose(query)
        placement.put(str(number), place, query)
        on_node[place.node].append(query)
    placed = max(
        placement.load(node) + exchange * _read(own, rates) for node, own in enumerate(on_node)
    )
    return Comparison(placed, divided)


def _handled(queries: Queries) -> float:
    return sum({each.canonical: each.cpu for query in queries for each in query}.values())


def _read(queries: Queries, rates: Mapping[str, float]) -> float:
    names = {o for query in queries for each in query for o in each.operands if isinstance(o, str)}
    return sum(rates[name] for name in names)
