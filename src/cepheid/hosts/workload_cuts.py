"""Lanes of a workload that are cut: some find parts of queries, others go on with them.

What planner.cut_placement decides, as lanes: a lane for every node that finds parts, which is the
first stage of the job, and the lanes of the queries, which are the second one. A lane reads the
types that its own operators need, and no others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.algebra.pattern import Atom, Pattern, walk
from cepheid.hosts.prepared_program import PreparedProgram
from cepheid.hosts.stream_routing import Routing
from cepheid.hosts.workload_lanes import Lane
from cepheid.model.options import Options
from cepheid.model.strategy import Strategy
from cepheid.planner.canonical_succession import CanonicalForms
from cepheid.planner.cut_patterns import atoms_left, uses
from cepheid.planner.cut_placement import CutPlacement, Placeable, place_with_cuts
from cepheid.planner.match_schema import scalar_type
from cepheid.planner.prepare import costs_of
from cepheid.planner.shared_successions import succession_of
from cepheid.planner.workload_plan import Member, joins_keyless_graph


@dataclass(frozen=True, slots=True)
class CutLanes:
    """The lanes of queries, with the parts they are given, and the lanes that find these.

    Parts are called by their place in `texts`; `placement` tells why.
    """

    lanes: tuple[Lane, ...]
    finding: tuple[Lane, ...]
    texts: tuple[str, ...]
    placement: CutPlacement

    def users(self, part: int) -> list[int]:
        """The lanes of queries that are given a part."""
        return [number for number, lane in enumerate(self.lanes) if part in lane.given]


@dataclass(frozen=True, slots=True)
class _Query:
    member: Member
    program: PreparedProgram
    reason: str
    is_cuttable: bool

    @property
    def pattern(self) -> Pattern:
        return self.patterns[0]

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Of a query that may be cut that which its kernel is made of, where texts must agree."""
        stages = self.program.stages
        if self.is_cuttable:
            return tuple(succession_of(stage).pattern for stage in stages)
        return tuple(stage.optimised.pattern for stage in stages)


def cut_lanes(
    lanes: Sequence[Lane], options: Options, events: pa.Schema, nodes: int
) -> CutLanes | None:
    """The same queries with cuts, where these pay; None where every query is to run whole."""
    if not options.plan.cuts:
        return None
    if options.failures:
        return None  # which of simultaneous exceptions is told depends on the order of findings
    types = {each.name: scalar_type(each.type) for each in events}
    queries: list[_Query] = []
    whole: list[int] = []
    for lane in lanes:
        if lane.node is None:
            continue
        for member, program in zip(lane.members, lane.programs, strict=True):
            cuttable = joins_keyless_graph(member, program.stages, types)
            if cuttable and program.types is None:
                return None  # which types a lane needs could not be told
            queries.append(_Query(member, program, lane.routing.reason, cuttable))
            whole.append(lane.node)
    placement = place_with_cuts(
        [Placeable(each.patterns, each.is_cuttable) for each in queries],
        whole,
        nodes,
        costs_of(options),
        Strategy(options.plan.placement),
    )
    if placement is None:
        return None
    divided = [lane for lane in lanes if lane.node is None]
    return _Cutting(queries, placement).lanes(divided)


class _Cutting:
    """Makes the lanes of a placement."""

    def __init__(self, queries: Sequence[_Query], placement: CutPlacement) -> None:
        self._queries = queries
        self._placement = placement
        self._texts = tuple(part.text for part in placement.parts)
        self._forms = CanonicalForms()
        for each in queries:
            if each.is_cuttable:
                self._forms.add_query(each.pattern)

    def lanes(self, divided: Sequence[Lane]) -> CutLanes:
        at = self._placement.nodes
        placed = [
            self._of_queries([q for q, n in zip(self._queries, at, strict=True) if n == node], node)
            for node in sorted(set(at))
        ]
        nodes = sorted({part.node for part in self._placement.parts})
        finding = tuple(self._of_parts(node) for node in nodes)
        return CutLanes((*divided, *placed), finding, self._texts, self._placement)

    def _of_queries(self, queries: list[_Query], node: int) -> Lane:
        told = dict.fromkeys(each.reason for each in queries)
        reasons = "; ".join(r for r in told if not any(r != other and r in other for other in told))
        cut = [each.pattern for each in queries if each.is_cuttable]
        given = {text for pattern in cut for text in self._used(pattern, self._texts)}
        lane = _lane(queries, Routing(1, None, reason=reasons), node)
        if not given:
            return lane
        left = {
            kind: None
            for pattern in cut
            for atom in atoms_left(pattern, self._forms, given)
            for kind in atom.types
        }
        others = [each.program.types for each in queries if not each.is_cuttable]
        read = None
        if all(types is not None for types in others):
            read = tuple(sorted({*left, *(name for types in others for name in types or ())}))
        numbers = tuple(n for n, text in enumerate(self._texts) if text in given)
        return replace(lane, given=numbers, read=read)

    def _of_parts(self, node: int) -> Lane:
        parts = [n for n, part in enumerate(self._placement.parts) if part.node == node]
        texts = {self._texts[n] for n in parts}
        users = [q for q in self._queries if q.is_cuttable and self._used(q.pattern, texts)]
        atoms = [
            atom
            for each in users
            for part, _ in uses(each.pattern, self._forms, texts)
            for atom in walk(part)
            if isinstance(atom, Atom)
        ]
        read = tuple(sorted({name for atom in atoms for name in atom.types}))
        lane = _lane(users, Routing(1, None, reason="finds parts for others"), node)
        return replace(lane, finds=tuple(parts), read=read)

    def _used(self, pattern: Pattern, texts: Collection[str]) -> set[str]:
        return {self._forms.of(part).text for part, _ in uses(pattern, self._forms, texts)}


def _lane(queries: Sequence[_Query], routing: Routing, node: int) -> Lane:
    members = tuple(each.member for each in queries)
    return Lane(members, tuple(each.program for each in queries), routing, node)


def explain_cuts(cuts: CutLanes | None) -> list[str]:
    """Which operators run apart from their queries, and which edges are shuffled, for people."""
    if cuts is None:
        return ["every query runs whole on its node: all its operators fuse, no edge is shuffled"]
    placement = cuts.placement
    known = "if all types were equally frequent" if placement.equal_rates else "by the statistics"
    lines = [
        f"{len(cuts.texts)} parts run once, in a stage before; all other operators fuse",
        f"  estimated {known}: the busiest nodes handle and move {placement.busiest:,.6g} events "
        f"per unit of time, {placement.uncut:,.6g} with every query whole",
    ]
    for number, part in enumerate(placement.parts):
        to = ", ".join(f"node {cuts.lanes[lane].node}" for lane in cuts.users(number))
        lines.append(f"part on node {part.node}: {part.text}")
        lines.append(f"  shuffled to {to}; estimated composites per unit of time: {part.rate:,.4g}")
    return lines
