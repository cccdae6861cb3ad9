"""The graph of a workload: what is read, what is worked out once, and who gets the results.

Atoms (events of some types under a condition) come first, operators after their operands, queries
last. It is what `explain` prints and what `report.workload_graph` draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cepheid.algebra.expression import ScalarType, conjuncts
from cepheid.algebra.expression_text import expression_text
from cepheid.planner.match_schema import scalar_type
from cepheid.planner.sequence_plan import Component, Negation
from cepheid.planner.shared_sequences import Shareable, share_sequences, shareable
from cepheid.planner.shared_successions import share_successions
from cepheid.planner.workload_plan import Group, Sharing
from cepheid.statistics.event_statistics import EventStatistics


@dataclass(frozen=True, slots=True)
class Node:
    """Something that runs once: an atom, an operator over others, or a query at the end.

    `queries` are the names of those that use it, and `types` the event types an atom reads.
    """

    kind: str
    label: str
    operands: tuple[int, ...]
    queries: tuple[str, ...]
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphOfGroup:
    """The nodes of one group, operands first; `alone` is how many there would be unshared."""

    group: Group
    nodes: tuple[Node, ...]
    alone: int

    @property
    def shared(self) -> int:
        """How many nodes run, queries not counted."""
        return sum(node.kind != "query" for node in self.nodes)

    def reads(self, rates: Mapping[str, float] | EventStatistics | None) -> tuple[float, float]:
        """Events handed to atoms per unit of time: together, and if each query ran alone."""
        together = alone = 0.0
        for node in self.nodes:
            if node.kind == "atom":
                rate = _rate(node.types, rates)
                together += rate
                alone += rate * len(node.queries)
        return together, alone


def graph_of(group: Group) -> GraphOfGroup:
    """What runs for a group."""
    match group.sharing:
        case Sharing.SEQUENCES:
            return _sequences(group)
        case Sharing.SUCCESSIONS:
            return _successions(group)
        case Sharing.ALONE:
            return _alone(group)


def _sequences(group: Group) -> GraphOfGroup:
    parts = [shareable(query, _types_of(group)) for query in group.queries]
    shared = share_sequences([part for part in parts if isinstance(part, Shareable)])
    names = [member.name for member in group.members]
    used: list[list[str]] = [[] for _ in shared.atoms]
    reads = [
        tuple(dict.fromkeys((*steps, *rivals)))
        for steps, rivals in zip(shared.steps, shared.rivals, strict=True)
    ]
    for name, atoms in zip(names, reads, strict=True):
        for atom in atoms:
            used[atom].append(name)
    nodes = [
        Node("atom", str(atom), (), tuple(users), atom.types)
        for atom, users in zip(shared.atoms, used, strict=True)
    ]
    nodes += [
        Node("query", name, steps, (name,)) for name, steps in zip(names, shared.steps, strict=True)
    ]
    return GraphOfGroup(group, tuple(nodes), sum(len(steps) for steps in shared.steps))


def _successions(group: Group) -> GraphOfGroup:
    types: dict[str, ScalarType] = {}
    for query in group.queries:
        types |= dict(query.column_types)
    graph = share_successions(group.queries, types)
    names = [member.name for member in group.members]
    nodes = [
        Node(
            "operator" if each.operands else "atom",
            each.label,
            each.operands,
            tuple(names[query] for query in each.queries),
            each.types,
        )
        for each in graph.operators
    ]
    nodes += [
        Node("query", name, (place.root,), (name,))
        for name, place in zip(names, graph.queries, strict=True)
    ]
    return GraphOfGroup(group, tuple(nodes), graph.unshared)


def _alone(group: Group) -> GraphOfGroup:
    names = tuple(member.name for member in group.members)
    nodes: list[Node] = []
    for stage in group.prepared[0]:
        parts: list[Component | Negation] = [*stage.plan.components, *stage.plan.negations]
        for part in parts:
            test = f" where {expression_text(part.test)}" if conjuncts(part.test) else ""
            mark = "!" if isinstance(part, Negation) else ""
            label = mark + (" | ".join(part.types) or "any type") + test
            nodes.append(Node("atom", label, (), names, part.types))
    count = len(nodes)
    nodes += [Node("query", name, tuple(range(count)), (name,)) for name in names]
    return GraphOfGroup(group, tuple(nodes), count * len(names))


def _types_of(group: Group) -> Callable[[str], ScalarType]:
    kinds = {field.name: scalar_type(field.type) for field in group.queries[0].form.events}
    return lambda name: kinds.get(name, ScalarType.UNKNOWN)


def _rate(types: Sequence[str], rates: Mapping[str, float] | EventStatistics | None) -> float:
    """Events of some types per unit of time; one of each type where nothing is known."""
    if rates is None:
        return float(len(types) or 1)
    if isinstance(rates, EventStatistics):
        return rates.rate(tuple(types))
    return float(sum(rates.get(name, 0) for name in types or rates))
