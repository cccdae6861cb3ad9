"""Which node runs which query, where the operators of a query stay together.

The cost of the paper's section 4.2 with every operator of a query on one node: nothing crosses
between nodes, so a query goes where what it adds and what is there already come to least. An
operator that runs on a node costs nothing more there, which brings queries with common parts
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cepheid.planner.operator_graph import Operator
from cepheid.planner.placement import Strategy


@dataclass(slots=True)
class FusedPlacement:
    """Nodes 0 to `nodes` - 1; queries arrive one after the other and stay.

    >>> pair = [Operator(0, "A;B", ("A", "B"), 1.0, 3.0)]
    >>> placement = FusedPlacement(2)
    >>> placement.place(pair), placement.place([Operator(0, "C;D", ("C", "D"), 1.0, 4.0)])
    (0, 1)
    >>> placement.place([*pair, Operator(1, "(A;B);E", (0, "E"), 1.0, 2.0)])
    0
    """

    nodes: int
    strategy: Strategy = "greedy"
    loads: list[float] = field(default_factory=list)
    running: list[set[str]] = field(default_factory=list)
    _placed: int = 0

    def __post_init__(self) -> None:
        """Nothing runs yet."""
        self.loads = [0.0] * self.nodes
        self.running = [set() for _ in range(self.nodes)]

    def place(self, query: Sequence[Operator]) -> int:
        """The node of one more query."""
        if self.strategy == "round robin":
            node = self._placed % self.nodes
        else:
            node = min(range(self.nodes), key=lambda n: self._added(query, n) + self.loads[n])
        self._placed += 1
        self.loads[node] += self._added(query, node)
        self.running[node].update(operator.canonical for operator in query)
        return node

    def _added(self, query: Sequence[Operator], node: int) -> float:
        """What the query's operators cost on a node beyond what runs there."""
        known = self.running[node] if self.strategy == "greedy" else set()
        own: set[str] = set()
        cpu = 0.0
        for operator in query:
            if operator.canonical not in known and operator.canonical not in own:
                cpu += operator.cpu
            if self.strategy == "greedy":
                own.add(operator.canonical)
        return cpu
