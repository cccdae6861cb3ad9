"""A simulated cluster: operators placed by the planner, work as counted on real streams.

What an operator does was counted when it ran (next_workload.automata). A machine does so many steps
a second; an event that comes from a source, from another node or goes to one, or to a sink, is a
step more on each machine it touches. Sink proxies are machines that only receive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from benchmarks.figures.next_workload.automata import BINS_PER_SECOND, Metric, QueryRun, Work
from benchmarks.figures.next_workload.overload import is_overloaded
from benchmarks.figures.next_workload.pools import Pool
from benchmarks.figures.next_workload.queries import COSTS, RATES
from cepheid.algebra.pattern import Pattern
from cepheid.model.strategy import Strategy
from cepheid.planner.operator_graph import Operator, operators_of
from cepheid.planner.placement import Deployment, Source
from cepheid.statistics.next_costs import NotCosted

MACHINE_STEPS = 15_300.0
"""Events a second at which the paper's sink proxy was full: 80 queries of 6 x 255 / 8 (N5)."""

Estimates: TypeAlias = Literal["counted", "model"]
"""Whose costs the planner is told: those counted on the stream, or the cost model's."""

_SOURCES = {name: Source(rate) for name, rate in RATES.items()}


class Query(NamedTuple):
    """Its operators as the planner sees them, and what each did when it ran."""

    operators: tuple[Operator, ...]
    works: tuple[Work, ...]


class Supported(NamedTuple):
    """How many queries the cluster bears, and what was full with one more."""

    queries: int
    full: str


@dataclass(slots=True)
class Cluster:
    """Nodes with the work they have in each bin of time."""

    deployment: Deployment
    seconds: int
    metric: Metric
    work: np.ndarray
    sent: list[float]

    @classmethod
    def of(
        cls, nodes: int, strategy: Strategy, sinks: int, seconds: int, metric: Metric = "indexed"
    ) -> Cluster:
        """Idle nodes."""
        work = np.zeros((nodes, seconds * BINS_PER_SECOND))
        return cls(Deployment(nodes, _SOURCES, strategy, sinks), seconds, metric, work, [])

    def add(self, query: Query) -> str | None:
        """Place one more query; what it overloads, if anything."""
        placed = self.deployment.placed
        before = len(placed)
        deployed = self.deployment.deploy(query.operators)
        changed = set()
        for number, each in zip(deployed.new, placed[before:], strict=True):
            done = query.works[number]
            self.work[each.node] += done.by_time(self.metric)
            self.sent.append(done.sent / self.seconds)
            changed.add(each.node)
            for operand in each.operator.operands:
                if isinstance(operand, str):
                    self._exchange(RATES[operand], each.node)
                elif placed[operand].node != each.node:
                    self._exchange(self.sent[operand], each.node, placed[operand].node)
                    changed.add(placed[operand].node)
        root = placed[deployed.root].node
        self._exchange(self.sent[deployed.root], root)
        changed.add(root)
        if max(self.deployment.sink_rates) > MACHINE_STEPS:
            return "sink proxy"
        if any(self._is_full(node) for node in changed):
            return "node"
        return None

    def _exchange(self, rate: float, *nodes: int) -> None:
        for node in nodes:
            self.work[node] += rate / BINS_PER_SECOND

    def _is_full(self, node: int) -> bool:
        steps = self.work[node]
        if steps.sum() < 0.5 * MACHINE_STEPS * self.seconds:
            return False  # it would take a burst of seconds to delay a fifth of the events
        return is_overloaded(steps / MACHINE_STEPS, steps)


def as_queries(pool: Pool, estimates: Estimates, metric: Metric = "indexed") -> list[Query]:
    """The queries of a pool as the planner is told of them."""
    return [
        Query(_operators(query, run, pool.seconds, estimates, metric), run.works)
        for query, run in zip(pool.queries, pool.runs, strict=True)
    ]


def _operators(
    query: Pattern, run: QueryRun, seconds: int, estimates: Estimates, metric: Metric
) -> tuple[Operator, ...]:
    found = operators_of(query, COSTS)
    assert not isinstance(found, NotCosted)
    if estimates == "model":
        return found
    return tuple(
        replace(
            operator,
            rate=work.sent / seconds,
            cpu=work.steps(metric) / seconds
            + sum(RATES[each] for each in operator.operands if isinstance(each, str)),
        )
        for operator, work in zip(found, run.works, strict=True)
    )


def supported(
    queries: Sequence[Query],
    nodes: int,
    strategy: Strategy,
    sinks: int,
    seconds: int,
    metric: Metric = "indexed",
) -> Supported:
    """How many of the queries, one after the other, run before something is overloaded."""
    cluster = Cluster.of(nodes, strategy, sinks, seconds, metric)
    for number, query in enumerate(queries):
        full = cluster.add(query)
        if full is not None:
            return Supported(number, full)
    return Supported(len(queries), "no more queries")
