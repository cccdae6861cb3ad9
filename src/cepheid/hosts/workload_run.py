"""Many queries over one stream, running: groups of them in shared engines, others each in its own.

The set of queries is fixed while a run lasts; `Workload` makes a new run when it changes, and hands
the state over. Hosts that keep the state themselves (a stream's buckets) drive it as they drive a
`Detector`: by `engines`, whose live events are all there is to store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepheid.hosts.composites import Composites
from cepheid.hosts.found import Found
from cepheid.hosts.in_process import Detector
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.live_engine import LiveEvents
from cepheid.hosts.matches import Matches
from cepheid.hosts.seen_events import seen_by
from cepheid.hosts.set_aside import SetAside, SideOutput
from cepheid.hosts.shared_sequence_engine import SharedSequenceEngine
from cepheid.hosts.snapshot import with_notes, without_notes
from cepheid.hosts.stream_front import StreamFront
from cepheid.hosts.unit_dispatch import WORTH_IT, UnitDispatch
from cepheid.model.options import Options
from cepheid.planner.active import Active
from cepheid.planner.shared_successions import SharedSuccessions
from cepheid.planner.workload_plan import (
    KEYLESS_GRAPH,
    Group,
    Member,
    Sharing,
    keeps_totals,
    plan_workload,
)

DRIVEN = 2**62
"""A lateness no event reaches: the watermark moves only when it is told to."""


class Unit(ABC):
    """The running state of one group."""

    def __init__(self, group: Group, options: Options) -> None:
        """A unit of this group."""
        self.group = group
        self._options = options
        active = [member.active for member in group.members]
        self._active = Active(min(a.since for a in active), max(a.until for a in active))

    def feed(self, events: EventBatch) -> Found:
        """Take events, those that any member may see; what became final."""
        seen = seen_by(self._active, events, self._options)
        return self._take(seen) if seen.batch.num_rows else Found()

    @abstractmethod
    def _take(self, events: EventBatch) -> Found:
        """Take events; what became final."""

    @abstractmethod
    def advance(self, watermark: int) -> Found:
        """Move the watermark on; what became final."""

    @property
    @abstractmethod
    def engines(self) -> tuple[LiveEvents, ...]:
        """The engines whose live events are the unit's state."""

    @property
    def counters(self) -> dict[str, int]:
        """What the engine counted; that of the last stage where there are several."""
        return self.engines[-1].counters

    @property
    def is_idle(self) -> bool:
        """Whether the watermark means nothing to it: nothing waits and nothing is kept."""
        return not any(e.live_rows or e.next_deadline() is not None for e in self.engines)

    def compact(self) -> None:
        """Let go of events that no instance needs, where many are."""
        for engine in self.engines:
            engine.compact()

    def front_state(self) -> dict[str, Any] | None:
        """What decides lateness for queries that read each other's events; else None."""
        return None

    def set_front(self, state: dict[str, Any] | None) -> None:
        """Go on from such a state."""
        assert state is None


class SequencesUnit(Unit):
    """Sequences that share their events."""

    def __init__(self, group: Group, options: Options, lateness: int) -> None:
        """`lateness` in the time column's unit."""
        super().__init__(group, options)
        active = [member.active for member in group.members]
        self._engine = SharedSequenceEngine(group.queries, active, lateness=lateness)
        self._names = tuple(member.name for member in group.members)

    def _take(self, events: EventBatch) -> Found:
        """Take events; what became final."""
        return Found.of_many(self._names, self._engine.feed(events))

    def advance(self, watermark: int) -> Found:
        """Move the watermark on; what became final."""
        return Found.of_many(self._names, self._engine.advance(watermark))

    @property
    def engines(self) -> tuple[LiveEvents, ...]:
        """The one engine of all."""
        return (self._engine,)


class SuccessionsUnit(Unit):
    """Queries of successors as one graph of shared operators."""

    def __init__(
        self, group: Group, options: Options, lateness: int, given: Sequence[str] = ()
    ) -> None:
        """`lateness` in the time column's unit; the parts `given` are found elsewhere."""
        # Its kernel is compiled when it is loaded, for which sequences need not wait.
        from cepheid.hosts.cut_succession_engines import FedSuccessionEngine  # noqa: PLC0415
        from cepheid.hosts.shared_succession_engine import (  # noqa: PLC0415
            RunningQuery,
            SharedSuccessionEngine,
        )

        super().__init__(group, options)
        queries = [
            RunningQuery(prepared, member.active.since, member.active.until)
            for member, prepared in zip(group.members, group.queries, strict=True)
        ]
        self._fed = FedSuccessionEngine(queries, given, lateness=lateness) if given else None
        self._engine = self._fed or SharedSuccessionEngine(queries, lateness=lateness)
        self._names = tuple(member.name for member in group.members)

    def take_composites(self, composites: Composites) -> None:
        """Composites of the given parts, whose time has not come."""
        assert self._fed is not None
        self._fed.take(composites)

    def _take(self, events: EventBatch) -> Found:
        """Take events; what became final."""
        return Found.of_each(self._names, self._engine.feed(events))

    def advance(self, watermark: int) -> Found:
        """Move the watermark on; what became final."""
        return Found.of_each(self._names, self._engine.advance(watermark))

    @property
    def graph(self) -> SharedSuccessions:
        """The operators, for `explain`."""
        return self._engine.graph

    @property
    def engines(self) -> tuple[LiveEvents, ...]:
        """The one engine of all."""
        return (self._engine,)


class OwnUnit(Unit):
    """One query, or several that are equal but for their names."""

    def __init__(
        self,
        group: Group,
        options: Options,
        schema: pa.Schema,
        *,
        open_schema: bool,
        driven: bool,
    ) -> None:
        """`driven`: the watermark moves only by `advance`."""
        super().__init__(group, options)
        self._detector = Detector.for_host(
            group.members[0].query,
            options,
            driven=driven,
            may_keep_totals=keeps_totals(group.prepared[0]),
        )
        self._detector.start(schema, open_schema=open_schema)

    def _take(self, events: EventBatch) -> Found:
        """Take events; what became final."""
        return self._named(self._detector.feed(events))

    def advance(self, watermark: int) -> Found:
        """Move the watermark on, but not past the query's own end; what became final."""
        return self._named(self._detector.advance(min(watermark, self._active.until)))

    def _named(self, matches: Matches) -> Found:
        return Found.of_one(tuple(m.name for m in self.group.members), matches)

    @property
    def engines(self) -> tuple[LiveEvents, ...]:
        """The engine of every stage."""
        return self._detector.engines

    def front_state(self) -> dict[str, Any] | None:
        """What decides lateness for queries that read each other's events; else None."""
        return None if self._detector.front is None else self._detector.front.state()

    def set_front(self, state: dict[str, Any] | None) -> None:
        """Go on from such a state."""
        if self._detector.front is not None and state is not None:
            self._detector.front.set_state(state)


class WorkloadRun:
    """The units of some members over events of one schema."""

    def __init__(
        self,
        members: Sequence[Member],
        options: Options,
        schema: pa.Schema,
        *,
        open_schema: bool = False,
        driven: bool = False,
        before: WorkloadRun | None = None,
        given: Sequence[str] = (),
    ) -> None:
        """`driven`: the watermark moves only by `advance`; else events come in order of time.

        It goes on from the state of the run `before`. The parts `given`, canonical texts of the
        graph that no key divides, are found elsewhere (`take_composites`).
        """
        self.members = tuple(members)
        self._set_aside = SetAside()
        self.options = options if driven else replace(options, lateness=0)
        self.groups = plan_workload(members, self.options, schema, open_schema=open_schema)
        known = {} if before is None else {unit.group.state: unit for unit in before.units}
        units: list[Unit] = []
        for group in self.groups:
            old = known.get(group.state)
            if old is not None and old.group == group:
                units.append(old)
                continue
            if group.sharing is Sharing.SEQUENCES:
                unit: Unit = SequencesUnit(group, self.options, DRIVEN if driven else 0)
            elif group.sharing is Sharing.SUCCESSIONS:
                own = given if group.state == KEYLESS_GRAPH else ()
                unit = SuccessionsUnit(group, self.options, DRIVEN if driven else 0, own)
            else:
                unit = OwnUnit(group, self.options, schema, open_schema=open_schema, driven=driven)
            if old is not None:
                hand_over(old, unit)
            units.append(unit)
        self.units: tuple[Unit, ...] = tuple(units)
        self._shared = tuple(unit for unit in units if not isinstance(unit, OwnUnit))
        self._own = tuple(unit for unit in units if isinstance(unit, OwnUnit))
        self._dispatch = (
            UnitDispatch([unit.group for unit in self._own], self.options)
            if len(self._own) >= WORTH_IT
            else None
        )

    @property
    def engines(self) -> tuple[LiveEvents, ...]:
        """All engines: their live events are the state."""
        return tuple(engine for unit in self.units for engine in unit.engines)

    @property
    def front(self) -> _Fronts | None:
        """What decides lateness inside units whose queries read each other's events."""
        fronts = _Fronts(self.units)
        return fronts if any(each is not None for each in fronts.state()["fronts"]) else None

    @property
    def quarantined(self) -> SideOutput:
        """Rows without a type or a usable time: every engine has set them aside, one tells."""
        engines = self.engines
        for engine in engines[1:]:
            engine.set_aside.quarantined.take()
        return (engines[0].set_aside if engines else self._set_aside).quarantined

    def feed(self, events: EventBatch) -> Found:
        """Take events; the matches that became final."""
        if not self.units:  # all queries are gone, but not the bad rows
            StreamFront.quarantine(events, self.options, self._set_aside)
            return Found()
        found = _together(unit.feed(events) for unit in self._shared)
        if self._dispatch is None:
            return found + _together(unit.feed(events) for unit in self._own)
        for unit, rows in zip(self._own, self._dispatch.rows(events), strict=True):
            if len(rows):
                is_most = 2 * len(rows) > events.batch.num_rows
                found = found + unit.feed(events if is_most else events.only(rows))
        return found

    def take_composites(self, composites: Composites) -> None:
        """Composites that end no earlier than any event that was fed; parts by their places."""
        for unit in self.units:
            if isinstance(unit, SuccessionsUnit) and unit.group.state == KEYLESS_GRAPH:
                unit.take_composites(composites)

    def advance(self, watermark: int) -> Found:
        """No event before `watermark` will come any more; the matches this makes final."""
        return _together(unit.advance(watermark) for unit in self.units if not unit.is_idle)


class _Fronts:
    """The fronts of all units, as one."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = units

    def state(self) -> dict[str, Any]:
        """What is stored of them."""
        return {"fronts": [unit.front_state() for unit in self._units]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        for unit, front in zip(self._units, state["fronts"], strict=True):
            unit.set_front(front)


def hand_over(old: Unit, new: Unit) -> None:
    """Let a unit go on where another left off; queries that only the new one has see nothing."""
    for before, after in zip(old.engines, new.engines, strict=True):
        table, positions = before.live_table()
        events, _ = without_notes(with_notes(table, positions, before.absent_flags()))
        beside = before.state_beside_events()
        if beside:
            after.expect_beside_events(beside)
        after.restore(
            events,
            positions,
            watermark=before.watermark,
            latest=before.latest,
            position=before.position,
            horizon=before.dead_until,
        )
    new.set_front(old.front_state())


def _together(parts: Iterator[Found]) -> Found:
    found = Found()
    for part in parts:
        found = found + part
    return found
