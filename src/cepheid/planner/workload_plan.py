"""Which queries of a workload run together: one graph of successors, sequences by key, the rest.

Queries are told apart by what they need of an engine, never by language. Each query that runs on
its own has a reason, which `explain` prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from cepheid.algebra.expression import ScalarType
from cepheid.model.options import Options
from cepheid.planner.active import ALWAYS, Active
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.match_schema import scalar_type
from cepheid.planner.prepare import Prepared, prepare
from cepheid.planner.shared_sequences import Shareable, shareable
from cepheid.planner.succession_plan import SuccessionPlan, shared_key


class Sharing(Enum):
    """How the queries of a group share their work."""

    SEQUENCES = "sequences"
    SUCCESSIONS = "successions"
    ALONE = "alone"


@dataclass(frozen=True, slots=True)
class Member:
    """A query of a workload, under the name that its matches carry, and when it is active."""

    name: str
    query: CompiledQuery
    active: Active = ALWAYS


@dataclass(frozen=True, slots=True)
class Group:
    """Members that run in one engine; one that is alone has a `reason` for it.

    `prepared` are the stages of each member, inputs first. `state` is equal for groups one of which
    can go on with the state of the other.
    """

    sharing: Sharing
    state: object
    members: tuple[Member, ...]
    prepared: tuple[tuple[Prepared, ...], ...]
    reason: str | None = None

    @property
    def queries(self) -> tuple[Prepared, ...]:
        """The last stage of each member: that which finds its matches."""
        return tuple(stages[-1] for stages in self.prepared)


def plan_workload(
    members: Sequence[Member], options: Options, events: pa.Schema, *, open_schema: bool
) -> tuple[Group, ...]:
    """The members in groups; equal queries that are active at the same times run once."""
    types = {field.name: scalar_type(field.type) for field in events}
    together: dict[_Kind, list[tuple[Member, tuple[Prepared, ...]]]] = {}
    for member in members:
        stages = prepared_stages(member.query, options, events, open_schema=open_schema)
        kind = _kind_of(member, stages, types)
        together.setdefault(kind, []).append((member, stages))
    return tuple(
        Group(
            group.sharing,
            group.state,
            tuple(member for member, _ in found),
            tuple(stages for _, stages in found),
            group.reason,
        )
        for group, found in together.items()
    )


def prepared_stages(
    query: CompiledQuery, options: Options, events: pa.Schema, *, open_schema: bool
) -> tuple[Prepared, ...]:
    """A query and those whose events it reads, inputs first, ready for events of this schema."""
    stages = query.stages(options)
    return tuple(
        prepare(
            stage,
            options,
            events,
            open_schema=open_schema or len(stages) > 1,
            known_parameters=query.parameters,
        )
        for stage in stages
    )


def keeps_totals(stages: Sequence[Prepared]) -> bool:
    """Whether a query has runs that are kept as totals, as the plan option asks.

    Without it queries of a workload share the events of their runs instead.
    """
    kept = [stage.may_keep_totals for stage in stages if stage.options.plan.running_totals]
    return any(kept)


KEYLESS_GRAPH = (Sharing.SUCCESSIONS, None)
"""The state of the group of successors that no key divides."""


def joins_keyless_graph(
    member: Member, stages: tuple[Prepared, ...], types: Mapping[str, ScalarType]
) -> bool:
    """Whether a query runs in the graph of successors that no key divides."""
    return _kind_of(member, stages, types).state == KEYLESS_GRAPH


@dataclass(frozen=True, slots=True)
class _Kind:
    """What members must have in common to run together, and why one runs alone if it does."""

    sharing: Sharing
    state: object
    ends: object = None
    reason: str | None = None


def _kind_of(
    member: Member, stages: tuple[Prepared, ...], types: Mapping[str, ScalarType]
) -> _Kind:
    def type_of(name: str) -> ScalarType:
        return types.get(name, ScalarType.UNKNOWN)

    reason: str | None = "it reads events that another query makes"
    if keeps_totals(stages):
        reason = "its runs are kept as running totals, whose events no other query can use"
    elif len(stages) == 1:
        (stage,) = stages
        atoms = shareable(stage, type_of)
        if isinstance(atoms, Shareable):
            return _Kind(Sharing.SEQUENCES, (Sharing.SEQUENCES, atoms.group))
        if isinstance(stage.plan, SuccessionPlan):
            key = shared_key(stage.plan)
            divided = None if key is None else tuple(sorted(set(key.values())))
            return _Kind(Sharing.SUCCESSIONS, (Sharing.SUCCESSIONS, divided))
        reason = atoms
    same = tuple(stage.form.fingerprint for stage in stages)
    # When a query ends does not decide its state, but only equal ends can share a run.
    state = (Sharing.ALONE, same, member.active.since)
    return _Kind(Sharing.ALONE, state, member.active.until, reason)
