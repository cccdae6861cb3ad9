"""Which node runs a query: whole queries, so that all operators of one are fused on its node.

A plan costs what section 4.4 of NEXT (DEBS 2009) says: every operator pays its own CPU and that of
the others on its node, which is, over all nodes, the number of operators times their load. Nothing
crosses between nodes, because queries are whole. A query goes where it adds least to that sum; with
reuse an operator that runs on a node already adds nothing there, so that queries with
sub-expressions in common meet on one node, where the workload shares them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice

from cepheid.manager.strategy import Strategy
from cepheid.planner.operator_graph import Operator


@dataclass(frozen=True, slots=True)
class Place:
    """Where a query runs and who delivers its matches."""

    node: int
    sink: int


@dataclass(slots=True)
class Placement:
    """Nodes, sink proxies, and the queries on them.

    >>> pair = [Operator(0, "A", ("A",), 1.0, 1.0), Operator(1, "A;B", (0, "B"), 1.0, 3.0)]
    >>> placement = Placement(nodes=2, sinks=1)
    >>> placement.put("first", placement.choose(pair), pair)
    >>> placement.choose([*pair, Operator(2, "(A;B);C", (1, "C"), 1.0, 2.0)]).node
    0
    >>> placement.choose([Operator(0, "D;E", ("D", "E"), 1.0, 2.0)]).node
    1
    """

    nodes: int
    sinks: int
    strategy: Strategy = Strategy.GREEDY
    _places: dict[str, Place] = field(default_factory=dict)
    _operators: dict[str, tuple[Operator, ...]] = field(default_factory=dict)
    _users: dict[tuple[int, str], dict[str, Operator]] = field(default_factory=dict)
    placed_ever: int = 0

    def choose(self, operators: Collection[Operator]) -> Place:
        """Where one more query would go; the first of equal nodes."""
        if self.strategy is Strategy.ROUND_ROBIN:
            node = self.placed_ever % self.nodes
        else:
            added = [self._added(each, operators) for each in range(self.nodes)]
            node = added.index(min(added))
        sunk = [0.0] * self.sinks
        for name, place in self._places.items():
            sunk[place.sink] += _sent(self._operators[name])
        return Place(node, sunk.index(min(sunk)))

    def put(self, name: str, place: Place, operators: Iterable[Operator]) -> None:
        """A query runs there."""
        self.placed_ever += name not in self._places
        self.drop(name)
        self._places[name] = place
        self._operators[name] = tuple(operators)
        for each in self._operators[name]:
            self._users.setdefault((place.node, each.canonical), {})[name] = each

    def drop(self, name: str) -> None:
        """A query does not run any more."""
        place = self._places.pop(name, None)
        for each in self._operators.pop(name, ()):
            assert place is not None
            users = self._users.get((place.node, each.canonical), {})
            users.pop(name, None)
            if not users:
                self._users.pop((place.node, each.canonical), None)

    def operators(self, node: int) -> dict[str, Operator]:
        """What runs on a node by canonical text: shared operators once."""
        return {
            text: next(iter(users.values()))
            for (there, text), users in self._users.items()
            if there == node
        }

    def load(self, node: int) -> float:
        """Events that the operators of a node handle per unit of time, by the statistics."""
        return sum(each.cpu for each in self.operators(node).values())

    def shares_with(self, name: str, most: int = 20) -> list[str]:
        """Queries on the same node that have operators in common with one; not all if many do."""
        place = self._places.get(name)
        found: dict[str, None] = {}
        if place is not None:
            for each in self._operators[name]:
                others = (o for o in self._users[place.node, each.canonical] if o != name)
                found.update(dict.fromkeys(islice(others, most)))
        return list(found)[:most]

    def _all_on(self, node: int) -> Iterable[Operator]:
        for name, place in self._places.items():
            if place.node == node:
                yield from self._operators[name]

    def _added(self, node: int, operators: Collection[Operator]) -> float:
        """What a query adds to the cost of the plan on a node."""
        if self.strategy is Strategy.GREEDY:
            running = self.operators(node)
            there: Collection[Operator] = running.values()
            new: Collection[Operator] = {
                each.canonical: each for each in operators if each.canonical not in running
            }.values()
        else:
            there, new = list(self._all_on(node)), operators
        load = sum(each.cpu for each in there)
        more = sum(each.cpu for each in new)
        return (len(there) + len(new)) * (load + more) - len(there) * load


def _sent(operators: tuple[Operator, ...]) -> float:
    """The rate of a query's matches: what its root sends, and a little for being there at all."""
    return (operators[-1].rate if operators else 0.0) + 1e-9
