"""How a workload's queries are spread over partitions: lanes of queries that share a division.

Queries of one key go together, and their events by key to every partition. Queries that no key
divides are each run whole on one node, that is one partition (the placement of the paper's section
4.4, where operators of one query fuse): those with operators in common meet on the same node. A
lane's events are copied once for it, whatever the number of its queries. In a batch, parts of them
may run in lanes of their own (workload_cuts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.algebra.pattern import Pattern
from cepheid.hosts.division import KeyByType
from cepheid.hosts.prepared_program import PreparedProgram, prepare_program
from cepheid.hosts.stream_routing import Routing, route
from cepheid.model.options import Options
from cepheid.model.strategy import Strategy
from cepheid.planner.fused_placement import FusedPlacement
from cepheid.planner.key_parallel import compare_with_key_parallel
from cepheid.planner.prepare import costs_of
from cepheid.planner.query_operators import query_operators, source_rates
from cepheid.planner.workload_plan import Member


@dataclass(frozen=True, slots=True)
class Lane:
    """Queries whose events are divided in one way; without a key they all run on `node`.

    `programs` are the queries made ready, in the same order. Where queries are cut (workload_cuts),
    a lane `finds` parts for others and nothing else, or its queries are `given` parts; `read` are
    the types it needs then.
    """

    members: tuple[Member, ...]
    programs: tuple[PreparedProgram, ...]
    routing: Routing
    node: int | None = None
    finds: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    read: tuple[str, ...] | None = None

    @property
    def types(self) -> tuple[str, ...] | None:
        """The event types that matter; None when events of any type do."""
        if self.read is not None:
            return self.read
        every = [program.types for program in self.programs]
        if any(types is None for types in every):
            return None
        return tuple(sorted({name for types in every for name in types or ()}))

    def __str__(self) -> str:
        """How it is divided, for people."""
        if self.routing.is_one_task:
            return f"node {self.node}: {self.routing.reason}"
        if self.routing.by_instant:
            return "by time stamp: each match is one event"
        return f"by the key {self.routing.key}"


def lanes_of(
    members: Sequence[Member], options: Options, events: pa.Schema, *, buckets: int, nodes: int
) -> tuple[Lane, ...]:
    """The lanes of a workload over `nodes` partitions; keys are spread over `buckets` parts."""
    lanes: list[Lane] = []
    undivided: list[tuple[Member, PreparedProgram, Routing]] = []
    for member in members:
        program = prepare_program(member.query, options, events)
        routing = route(program, events, buckets)
        if routing.is_one_task:
            undivided.append((member, program, routing))
            continue
        for number, lane in enumerate(lanes):
            joint = together(lane.routing, routing)
            if joint is not None:
                lanes[number] = Lane((*lane.members, member), (*lane.programs, program), joint)
                break
        else:
            lanes.append(Lane((member,), (program,), routing))
    return (*lanes, *_placed(undivided, options, nodes))


def by_key_or_placed(lanes: tuple[Lane, ...], options: Options, nodes: int) -> tuple[Lane, ...]:
    """The lanes, or their queries whole on nodes where so many keys would cost more copies.

    Every lane has a copy of its events; a node has one for all its queries.
    """
    divided = [lane for lane in lanes if lane.node is None]
    if len(divided) < 2:  # one key is never worse than one node for each query
        return lanes
    costs = costs_of(options)
    by_key = [[query_operators(_patterns(p), costs) for p in lane.programs] for lane in divided]
    patterns = [each for lane in divided for p in lane.programs for each in _patterns(p)]
    strategy = Strategy(options.plan.placement)
    if compare_with_key_parallel(
        by_key, source_rates(patterns, costs), nodes, strategy
    ).takes_placement:
        reason = f"by {len(divided)} keys each event would be copied more often than to {nodes}"
        reason += " nodes" if nodes > 1 else " node"
        whole = [lane for lane in lanes if lane.node is not None]
        return on_one_node(whole, divided, options, nodes, reason)
    return lanes


def on_one_node(
    kept: Sequence[Lane], moved: Sequence[Lane], options: Options, nodes: int, reason: str
) -> tuple[Lane, ...]:
    """The lanes; those that turned out not to be divisible are placed with others like them."""
    undivided = [
        (member, program, replace(lane.routing, reason=lane.routing.reason or reason))
        for lane in (*(lane for lane in kept if lane.node is not None), *moved)
        for member, program in zip(lane.members, lane.programs, strict=True)
    ]
    divided = [lane for lane in kept if lane.node is None]
    return (*divided, *_placed(undivided, options, nodes))


def _placed(
    undivided: Sequence[tuple[Member, PreparedProgram, Routing]], options: Options, nodes: int
) -> list[Lane]:
    """A lane for each node that gets queries."""
    placed = place([program for _, program, _ in undivided], options, nodes)
    lanes = []
    for node in sorted(set(placed)):
        own = [each for each, at in zip(undivided, placed, strict=True) if at == node]
        reasons = dict.fromkeys(routing.reason for _, _, routing in own)
        routing = Routing(1, None, reason="; ".join(reasons))
        of_node = tuple(m for m, _, _ in own), tuple(p for _, p, _ in own)
        lanes.append(Lane(*of_node, routing, node))
    return lanes


def place(programs: Sequence[PreparedProgram], options: Options, nodes: int) -> list[int]:
    """The node of each query that no key divides."""
    costs = costs_of(options)
    placement = FusedPlacement(nodes, strategy=Strategy(options.plan.placement))
    found = []
    for number, program in enumerate(programs):
        operators = query_operators(_patterns(program), costs)
        chosen = placement.choose(operators)
        placement.put(str(number), chosen, operators)
        found.append(chosen.node)
    return found


def _patterns(program: PreparedProgram) -> list[Pattern]:
    return [stage.optimised.pattern for stage in program.stages]


def together(one: Routing, other: Routing) -> Routing | None:
    """The routing that serves two queries, if one can."""
    if one.by_instant or other.by_instant:
        return one if one.by_instant and other.by_instant else None
    if one.key is None or other.key is None or one.strays != other.strays:
        return None
    key = _common_key(one.key, other.key)
    if key is None:
        return None
    known = one.witnesses is not None and other.witnesses is not None
    both = {*(one.witnesses or ()), *(other.witnesses or ())}
    return replace(
        one,
        key=key,
        witnesses=tuple(sorted(both)) if known else None,
        is_lone=one.is_lone or other.is_lone,
        derived=tuple(sorted({*one.derived, *other.derived})),
    )


def _common_key(one: KeyByType, other: KeyByType) -> KeyByType | None:
    if one.of_any is not None or other.of_any is not None:
        if one.of_any != other.of_any:
            return None
        return replace(one, of={**one.of, **other.of})
    if one.width != other.width or any(
        other.of[name] != one.of[name] for name in one.of.keys() & other.of.keys()
    ):
        return None
    return replace(one, of={**one.of, **other.of})
