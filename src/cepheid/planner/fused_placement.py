"""Which node runs which query, where the operators of a query stay together.

A plan costs what section 4.4 of NEXT (DEBS 2009) says: every operator pays its own CPU and that of
the others on its node, which is, over all nodes, the number of operators times their load. Nothing
crosses between nodes, because queries are whole. A query goes where it adds least to that sum; with
reuse an operator that runs on a node already adds nothing there, so that queries with
sub-expressions in common meet on one node, where they share them.

`placement` is the same for single operators, which only a simulation can spread over nodes at will;
`cut_placement` lets parts of queries run apart from them where there are two stages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cepheid.model.strategy import Strategy
from cepheid.planner.operator_graph import Operator


@dataclass(frozen=True, slots=True)
class Place:
    """Where a query runs, and which sink proxy delivers its matches."""

    node: int
    sink: int = 0


@dataclass(slots=True)
class _Load:
    """How many operators, and the events that they handle per unit of time."""

    operators: int = 0
    cpu: float = 0.0

    def add(self, operators: int, cpu: float) -> None:
        self.operators += operators
        self.cpu = self.cpu + cpu if self.operators else 0.0

    def added(self, operators: int, cpu: float) -> float:
        """By how much the cost of a plan would grow with these on the node."""
        together = (self.operators + operators) * (self.cpu + cpu)
        return together - self.operators * self.cpu


@dataclass(slots=True)
class _Running:
    """An operator on a node: its load as it was last estimated, and the queries that use it."""

    cpu: float
    users: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Node:
    """What runs on a node by canonical text; its load, and what it were if nothing were shared."""

    running: dict[str, _Running] = field(default_factory=dict)
    shared: _Load = field(default_factory=_Load)
    unshared: _Load = field(default_factory=_Load)

    def put(self, name: str, operators: Collection[Operator]) -> None:
        for text, operator in _by_text(operators).items():
            known = self.running.get(text)
            if known is None:
                known = self.running[text] = _Running(operator.cpu)
                self.shared.add(1, operator.cpu)
            else:
                self.shared.add(0, operator.cpu - known.cpu)
                known.cpu = operator.cpu
            known.users[name] = None
        self.unshared.add(len(operators), _cpu(operators))

    def drop(self, name: str, operators: Collection[Operator]) -> None:
        for text in _by_text(operators):
            known = self.running[text]
            del known.users[name]
            if not known.users:
                del self.running[text]
                self.shared.add(-1, -known.cpu)
        self.unshared.add(-len(operators), -_cpu(operators))


@dataclass(slots=True)
class FusedPlacement:
    """Nodes, sink proxies, and the queries on them.

    >>> pair = [Operator(0, "A", ("A",), 1.0, 1.0), Operator(1, "A;B", (0, "B"), 1.0, 3.0)]
    >>> placement = FusedPlacement(nodes=2)
    >>> placement.put("first", placement.choose(pair), pair)
    >>> placement.choose([*pair, Operator(2, "(A;B);C", (1, "C"), 1.0, 2.0)]).node
    0
    >>> placement.choose([Operator(0, "D;E", ("D", "E"), 1.0, 2.0)]).node
    1
    """

    nodes: int
    sinks: int = 1
    strategy: Strategy = Strategy.GREEDY
    placed_ever: int = 0
    _nodes: list[_Node] = field(init=False)
    _sunk: list[_Load] = field(init=False)
    _places: dict[str, Place] = field(init=False, default_factory=dict)
    _operators: dict[str, tuple[Operator, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Nothing runs yet."""
        self._nodes = [_Node() for _ in range(self.nodes)]
        self._sunk = [_Load() for _ in range(self.sinks)]

    def choose(self, operators: Collection[Operator]) -> Place:
        """Where one more query would go; the first of equal nodes."""
        if self.strategy == Strategy.ROUND_ROBIN:
            node = self.placed_ever % self.nodes
        else:
            wanted = {each.canonical: each.cpu for each in operators}
            whole = _Load(len(operators), _cpu(operators))
            node = min(range(self.nodes), key=lambda n: self._added(self._nodes[n], wanted, whole))
        # Of proxies that receive the same, that with fewer queries.
        sink = min(range(self.sinks), key=lambda n: (self._sunk[n].cpu, self._sunk[n].operators))
        return Place(node, sink)

    def put(self, name: str, place: Place, operators: Collection[Operator]) -> None:
        """A query runs there."""
        self.placed_ever += name not in self._places
        self.drop(name)
        self._places[name] = place
        self._operators[name] = tuple(operators)
        self._nodes[place.node].put(name, self._operators[name])
        self._sunk[place.sink].add(1, _sent(self._operators[name]))

    def drop(self, name: str) -> None:
        """A query does not run any more."""
        place = self._places.pop(name, None)
        if place is not None:
            operators = self._operators.pop(name)
            self._nodes[place.node].drop(name, operators)
            self._sunk[place.sink].add(-1, -_sent(operators))

    def operators(self, node: int) -> int:
        """How many operators run on a node: shared ones once."""
        return len(self._nodes[node].running)

    def load(self, node: int) -> float:
        """Events that the operators of a node handle per unit of time, by the statistics."""
        return self._nodes[node].shared.cpu

    def _added(self, node: _Node, wanted: Mapping[str, float], whole: _Load) -> float:
        """What a query adds to the cost of the plan on a node; `wanted` are loads by text."""
        if self.strategy != Strategy.GREEDY:
            return node.unshared.added(whole.operators, whole.cpu)
        new = [cpu for text, cpu in wanted.items() if text not in node.running]
        return node.shared.added(len(new), sum(new))


def _by_text(operators: Collection[Operator]) -> dict[str, Operator]:
    return {each.canonical: each for each in operators}


def _cpu(operators: Collection[Operator]) -> float:
    return sum(each.cpu for each in operators)


def _sent(operators: tuple[Operator, ...]) -> float:
    """The rate of a query's matches: what its root sends."""
    return operators[-1].rate if operators else 0.0
