"""Which node runs which operator: deployment plans of NEXT (DEBS 2009, sections 4.2 and 4.4).

Queries arrive one after the other and stay. Each is looked through from the root for the largest
part that runs already; what is left is placed bottom up, every operator where it costs least, and
can be reused from then on, also by the rest of its own query. That takes O(Q N) steps for a query
of Q operators on N nodes; it is greedy and need not find the best plan.

What a plan costs, over all operators o that run:

    sum of  [rates of the operands of o on other nodes]  +  CPU(o)  +  [CPU of others on its node]

The paper prints a delta that is 1 for operands on *equal* nodes; its prose, and this file, want
the traffic between *different* ones. A source may live on a node; then its rate counts like an
operator's. One that lives nowhere comes from outside, costs the same wherever it is read and is
left out of the sum. Sinks are proxies of their own, beside the nodes.

Hosts place whole queries (fused_placement), and in a batch cut off what is cheaper to carry than to
find again (cut_placement): between partitions of Spark every edge is an exchange of composites.
This is what Figure 11 simulates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cepheid.model.errors import OptionError
from cepheid.model.strategy import Strategy
from cepheid.planner.operator_graph import Operator


@dataclass(frozen=True, slots=True)
class Source:
    """A stream of events: its rate, and the node it lives on, if it lives on one."""

    rate: float
    node: int | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """An operator that runs; its number and those of its operands count all that run."""

    operator: Operator
    node: int


@dataclass(frozen=True, slots=True)
class DeployedQuery:
    """Where a query's operators run, by their numbers within the query.

    `new` were placed for it. `reused` ran before, its own equal parts included; what lies below
    them is not looked at and has no place here. Its results go from operator `root` (a number among
    all that run) to `sink`.
    """

    operators: tuple[Operator, ...]
    nodes: Mapping[int, int]
    new: tuple[int, ...]
    reused: tuple[int, ...]
    root: int
    sink: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Edges from operators, or sources that live on a node, to other nodes, and events on them."""

    edges: int
    rate: float


@dataclass(slots=True)
class Deployment:
    """Nodes 0 to `nodes` - 1 and all that runs on them.

    `looked_at` counts places compared and look-ups made, to show how the work grows.

    >>> first = Operator(0, "A;B", ("A", "B"), 1.0, 3.0)
    >>> deployment = Deployment(2, {"A": Source(1), "B": Source(2)})
    >>> deployment.deploy([first, Operator(1, "(A;B);C", (0, "B"), 1.0, 4.0)]).nodes
    {0: 0, 1: 1}
    >>> deployment.deploy([first]).reused
    (0,)
    """

    nodes: int
    sources: Mapping[str, Source]
    strategy: Strategy = Strategy.GREEDY
    sinks: int = 1
    placed: list[Placed] = field(init=False, default_factory=list)
    queries: list[DeployedQuery] = field(init=False, default_factory=list)
    looked_at: int = field(init=False, default=0)
    _running: dict[str, int] = field(init=False, default_factory=dict)
    _loads: list[float] = field(init=False)
    _sunk: list[float] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse what is no plan; nothing runs yet."""
        if self.nodes < 1 or self.sinks < 1:
            raise OptionError.of(
                "bad-placement",
                f"{self.nodes} nodes and {self.sinks} sink proxies cannot run a query",
                help="there must be at least one of each",
            )
        for name, source in self.sources.items():
            if source.node is not None and not 0 <= source.node < self.nodes:
                raise OptionError.of(
                    "bad-placement",
                    f"the source `{name}` is said to live on node {source.node}",
                    help=f"nodes are numbered 0 to {self.nodes - 1}",
                )
        self._loads = [0.0] * self.nodes
        self._sunk = [0.0] * self.sinks

    def deploy(self, query: Sequence[Operator]) -> DeployedQuery:
        """Place one more query, given as its operators, operands first and the root last."""
        self._refuse(query)
        wanted = self._not_running_yet(query)
        running: dict[int, int] = {}
        new: list[int] = []
        for operator in query:
            if operator.number not in wanted:
                continue
            found = self._find(operator)
            if found is None:
                found = self._place(operator, running)
                new.append(operator.number)
            running[operator.number] = found
        root = running[query[-1].number]
        deployed = DeployedQuery(
            tuple(query),
            {number: self.placed[each].node for number, each in running.items()},
            tuple(new),
            tuple(number for number in running if number not in set(new)),
            root,
            self._sink(self.placed[root].operator.rate),
        )
        self.queries.append(deployed)
        return deployed

    @property
    def loads(self) -> tuple[float, ...]:
        """CPU of the operators on each node."""
        return tuple(self._loads)

    @property
    def sink_rates(self) -> tuple[float, ...]:
        """Events that reach each sink proxy; a result that queries share leaves for each."""
        return tuple(self._sunk)

    @property
    def cost(self) -> float:
        """The cost of the whole plan by the formula above."""
        on_node = [0] * self.nodes
        for each in self.placed:
            on_node[each.node] += 1
        own = sum(each.operator.cpu for each in self.placed)
        # Each of the k operators of a node pays the load of the k - 1 others.
        others = sum((k - 1) * load for k, load in zip(on_node, self._loads, strict=True) if k)
        return self.crossing.rate + own + others

    @property
    def crossing(self) -> Traffic:
        """What goes from node to node: on Spark, the edges that are shuffled."""
        rates = [
            rate
            for each in self.placed
            for operand in each.operator.operands
            if (rate := self._carried(operand, each.node)) is not None
        ]
        return Traffic(len(rates), sum(rates))

    def received(self) -> tuple[float, ...]:
        """Events that reach each node from other nodes and from outside.

        A stream that several operators of a node read is sent there once.
        """
        into: list[dict[int | str, float]] = [{} for _ in range(self.nodes)]
        for each in self.placed:
            for operand in each.operator.operands:
                rate = self._carried(operand, each.node)
                if rate is None and isinstance(operand, str) and self.sources[operand].node is None:
                    rate = self.sources[operand].rate
                if rate is not None:
                    into[each.node][operand] = rate
        return tuple(sum(streams.values()) for streams in into)

    def _refuse(self, query: Sequence[Operator]) -> None:
        """A query that cannot be placed leaves nothing behind."""
        if not query:
            raise OptionError.of(
                "bad-placement",
                "a query without operators has nothing to place",
                help="one source alone can be read where it is",
            )
        for operator in query:
            for each in operator.operands:
                if isinstance(each, str) and each not in self.sources:
                    raise OptionError.of(
                        "bad-placement",
                        f"the source `{each}` is not known",
                        help=f"known: {', '.join(self.sources)}",
                    )

    def _not_running_yet(self, query: Sequence[Operator]) -> set[int]:
        """The operators to look at: from the root down to the first that run already."""
        by_number = {each.number: each for each in query}
        wanted: set[int] = set()
        waiting = [query[-1].number]
        while waiting:
            number = waiting.pop()
            if number in wanted:
                continue
            wanted.add(number)
            if self._find(by_number[number]) is None:
                below = by_number[number].operands
                waiting.extend(each for each in below if isinstance(each, int))
        return wanted

    def _find(self, operator: Operator) -> int | None:
        if self.strategy != Strategy.GREEDY:
            return None
        self.looked_at += 1
        return self._running.get(operator.canonical)

    def _place(self, operator: Operator, running: Mapping[int, int]) -> int:
        number = len(self.placed)
        operands = tuple(running[o] if isinstance(o, int) else o for o in operator.operands)
        if self.strategy == Strategy.ROUND_ROBIN:
            self.looked_at += 1
            node = number % self.nodes
        else:
            node = self._cheapest(operator, operands)
        self.placed.append(Placed(replace(operator, number=number, operands=operands), node))
        self._running[operator.canonical] = number
        self._loads[node] += operator.cpu
        return number

    def _cheapest(self, operator: Operator, operands: tuple[int | str, ...]) -> int:
        """The node on which the operator's own part of the cost is least; the first of equals."""

        def cost(node: int) -> float:
            self.looked_at += 1
            moved = sum(self._carried(each, node) or 0.0 for each in operands)
            return moved + operator.cpu + self._loads[node]

        return min(range(self.nodes), key=cost)

    def _carried(self, operand: int | str, to: int) -> float | None:
        """The rate of an operand that lives on another node than `to`; None if it need not move."""
        if isinstance(operand, int):
            placed = self.placed[operand]
            return None if placed.node == to else placed.operator.rate
        source = self.sources[operand]
        return None if source.node is None or source.node == to else source.rate

    def _sink(self, rate: float) -> int:
        """The sink proxy that receives least so far."""
        sink = min(range(self.sinks), key=self._sunk.__getitem__)
        self._sunk[sink] += rate
        return sink
