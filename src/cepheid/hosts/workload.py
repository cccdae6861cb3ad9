"""Many queries over one stream, in process; queries come and go while it runs.

What changes takes effect at an event time, so that it does not depend on how the stream was cut:
a query sees the events from the time on at which it was added, and none from the time on at which
it was removed or paused (docs/semantics.md#workloads).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cepheid.hosts.found import Found
from cepheid.hosts.in_process import as_time, in_time_order
from cepheid.hosts.ingest import EventBatch, event_batches
from cepheid.hosts.input_front import InputFront, inputs_of, refuse_heartbeat
from cepheid.hosts.live_engine import BEGINNING, END_OF_TIME
from cepheid.hosts.query_names import free_name, known_query, refuse_taken
from cepheid.hosts.registered_events import registered_events
from cepheid.hosts.set_aside import SideOutput
from cepheid.hosts.snapshot import pack, unpack
from cepheid.hosts.stream_front import StreamFront
from cepheid.hosts.workload_orders import (
    read_member,
    read_query,
    written_member,
    written_query,
)
from cepheid.hosts.workload_run import WorkloadRun
from cepheid.hosts.workload_saving import measure_saving
from cepheid.hosts.workload_state import restore_state, state_of
from cepheid.model.errors import OptionError, StateError
from cepheid.model.options import Options, make_options
from cepheid.planner.active import ALWAYS, Active
from cepheid.planner.active import END_OF_TIME as NO_END
from cepheid.planner.compiled_query import CompiledQuery, compile_text
from cepheid.planner.explain import assumed_schema
from cepheid.planner.explain_workload import Measured, explain_groups
from cepheid.planner.joint_registrations import joined, refuse_unregistered
from cepheid.planner.prepare import in_time_unit, lateness_of, time_domain, with_statistics
from cepheid.planner.registered_sources import Registrations
from cepheid.planner.workload_graph import GraphOfGroup, graph_of
from cepheid.planner.workload_plan import Group, Member, plan_workload


@dataclass(frozen=True, slots=True)
class Entry:
    """A query that the workload knows; while it is paused it sees no events."""

    name: str
    query: CompiledQuery
    is_paused: bool = False


class Workload:
    """Queries that run together over one stream of events.

    >>> import cepheid
    >>> w = cepheid.Workload({"pair": "EVENT SEQ(A x, B y) WHERE [id] WITHIN 10"})
    >>> w.add("EVENT SEQ(A x, C y) WHERE [id] WITHIN 10", name="other")
    'other'
    >>> w.feed([{"type": "A", "ts": 1, "id": 7}]).total
    0
    >>> found = w.feed([{"type": "B", "ts": 4, "id": 7}, {"type": "C", "ts": 5, "id": 7}])
    >>> {name: len(matches) for name, matches in found.items()}
    {'pair': 1, 'other': 1}
    """

    def __init__(
        self,
        queries: Mapping[str, CompiledQuery | str] | Iterable[CompiledQuery | str] = (),
        **options: Any,
    ) -> None:
        """Queries by name, or without names; options as for `cepheid.detect`."""
        self._given = make_options(options)
        self.options: Options = self._given
        self._registrations: Registrations | None = None
        self._registering: list[CompiledQuery] = []
        self._entries: dict[str, Entry] = {}
        self._members: list[Member] = []
        self._run: WorkloadRun | None = None
        self._front: StreamFront | None = None
        self._inputs: InputFront | None = None
        if self._given.policy == "guaranteed":
            self._inputs = InputFront(self._given, self._given.inputs or ())
        self._schema: pa.Schema | None = None
        self._open_schema = False
        self._told_watermark = BEGINNING
        self._ends_of: list[Member] | None = None
        self._soonest = 0
        named = queries.items() if isinstance(queries, Mapping) else ((None, q) for q in queries)
        for name, query in named:
            self.add(query, name=name)

    # -- which queries ----------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The queries, in the order in which they were added; paused ones too."""
        return tuple(self._entries)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The queries and whether they are paused."""
        return tuple(self._entries.values())

    @property
    def members(self) -> tuple[Member, ...]:
        """What runs: a query that was paused and resumed appears once for each time."""
        return tuple(self._members)

    def add(self, query: CompiledQuery | str, *, name: str | None = None, at: Any = None) -> str:
        """Add a query that sees events from the time `at` on (default: all that is still to come).

        Returns its name. The other queries go on undisturbed. Sources that its text registers are
        those of all queries, which must agree about them.
        """
        compiled = compile_text(query) if isinstance(query, str) else query
        chosen = name or free_name(compiled.name, self._entries)
        refuse_taken(chosen, self._entries)
        if self._inputs is not None:
            inputs_of(compiled.stages(self.options), self._given.inputs)  # refuses what is unknown
        self._register(compiled)
        self._begin(Entry(chosen, compiled), at)
        return chosen

    def _register(self, query: CompiledQuery) -> None:
        """Know the sources that a text registers; they stay when the query goes."""
        known = self._registrations
        if not query.program.catalogue.sources:
            if known is not None:
                refuse_unregistered(query, known)
            return
        found = joined(known, query, self._given)
        new = found.sources.keys() - (set() if known is None else known.sources.keys())
        if new and self._front is not None:
            raise OptionError.of(
                "sources-while-running",
                f"`{query.name}` registers `{min(new)}`, and events have been seen without it",
                help="register all sources before the first events come",
            )
        if known is None:
            for entry in self._entries.values():
                refuse_unregistered(entry.query, found)
        if new:
            self._registering.append(query)
        self._registrations = found
        self.options = replace(found.options, statistics=self.options.statistics)

    @property
    def registrations(self) -> Registrations | None:
        """The sources that the queries' texts register; None if they register none."""
        return self._registrations

    def remove(self, name: str, *, at: Any = None) -> None:
        """Remove a query: it sees no event from the time `at` on, and is forgotten."""
        entry = known_query(name, self._entries)
        if not entry.is_paused:
            self._end(name, at)
        del self._entries[name]

    def pause(self, name: str, *, at: Any = None) -> None:
        """Let a query see no event from the time `at` on until it is resumed; it costs nothing."""
        entry = known_query(name, self._entries)
        if entry.is_paused:
            return
        self._end(name, at)
        self._entries[name] = replace(entry, is_paused=True)

    def resume(self, name: str, *, at: Any = None) -> None:
        """Let a paused query see events from the time `at` on; those before are forgotten."""
        entry = known_query(name, self._entries)
        if entry.is_paused:
            self._begin(replace(entry, is_paused=False), at)

    def _begin(self, entry: Entry, at: Any) -> None:
        since = self._effective(at) if at is not None or self._seen_any else ALWAYS.since
        member = Member(entry.name, entry.query, Active(since=since))
        self._change([*self._members, member])
        self._entries[entry.name] = entry

    def _end(self, name: str, at: Any) -> None:
        until = self._effective(at)
        self._change(
            [
                replace(m, active=replace(m.active, until=min(m.active.until, until)))
                if m.name == name
                else m
                for m in self._members
            ]
        )

    @property
    def _seen_any(self) -> bool:
        return self._front is not None and self._front.latest > BEGINNING

    def _effective(self, at: Any) -> int:
        """When a change takes effect: never before an event that was seen already."""
        earliest = self._front.latest + 1 if self._front is not None and self._seen_any else None
        if at is None:
            return ALWAYS.since if earliest is None else earliest
        time = as_time(at)
        if earliest is not None and time < earliest:
            raise OptionError.of(
                "too-early",
                f"events up to {earliest - 1} have been seen, so nothing can change at {time}",
                help="leave at= out, or give a later time",
            )
        return time

    def _change(self, members: list[Member]) -> None:
        """Go on with other members; those that stay keep their state."""
        members = [m for m in members if m.active.since < m.active.until]
        if self._run is not None:
            self._run = self._started(members)
        self._members = members
        self._listen()

    def _listen(self) -> None:
        """Wait for the inputs that the queries read; time stands still while there is no query."""
        if self._inputs is None or self._given.inputs is not None or not self._members:
            return
        read = {
            name
            for member in self._members
            for name in inputs_of(member.query.stages(self.options), None)
        }
        self._inputs.listen_to(sorted(read))

    # -- events -----------------------------------------------------------------------------------

    def feed(self, events: Any) -> Found:
        """Take events; the matches of all queries that became final with them."""
        found = Found()
        for batch in event_batches(registered_events(events, self._registrations), self.options):
            if batch.batch.num_rows:
                found = found + self._feed(batch)
        return found

    def detect(self, events: Any) -> pa.Table:
        """All matches of all queries in a finite history, in one table; the state stays as it is.

        Events may come in any order.
        """
        return self._run_through(self._history(events), self._members).table()

    def _history(self, events: Any) -> list[EventBatch]:
        events = registered_events(events, self._registrations)
        return in_time_order(list(event_batches(events, self.options)), self.options)

    def _run_through(self, history: list[EventBatch], members: list[Member]) -> Found:
        """What these queries find in a history; the state stays as it is."""
        fresh = Workload.__new__(Workload)
        fresh.__dict__.update(self.__dict__)
        fresh.options = replace(self.options, lateness=0)
        fresh._members = members
        fresh._run = fresh._front = fresh._schema = None
        if self._inputs is not None:
            fresh._inputs = InputFront(self.options, self._inputs.inputs)
        fresh._told_watermark = BEGINNING
        found = Found()
        for batch in history:
            found = found + fresh._feed(batch)
        return found + fresh.close()

    def advance(self, watermark: Any) -> Found:
        """Say that no event before `watermark` will come; what this makes final."""
        time = as_time(watermark)
        self._told_watermark = max(self._told_watermark, time)
        return self._advance(time)

    def heartbeat(self, source: str, time: Any) -> Found:
        """Say that an input brings nothing before `time` any more; what this makes final.

        Inputs are those of policy="guaranteed" (docs/semantics.md#guaranteed-detection): here the
        types or sources that any of the queries reads.
        """
        if self._inputs is None:
            raise refuse_heartbeat()
        self._inputs.heartbeat(source, as_time(time))
        return Found() if self._run is None else self._moved()

    def close(self) -> Found:
        """End of input: deadlines after the last event pass (unless close_at_end=False)."""
        if not self.options.close_at_end:
            return Found()
        return self._advance(END_OF_TIME)

    def _feed(self, events: EventBatch) -> Found:
        self._start(events)
        assert self._front is not None and self._run is not None
        for unit in self._run.units:
            unit.compact()
        accepted = self._front.accept(events)
        found = self._run.feed(accepted) if accepted.batch.num_rows else Found()
        return found + self._moved()

    def _advance(self, time: int) -> Found:
        if self._front is None:
            return Found()
        self._front.advance(time)
        return self._moved()

    def _moved(self) -> Found:
        """What the watermark makes final; queries whose end it has passed are gone then."""
        assert self._front is not None and self._run is not None
        found = self._run.advance(self._front.watermark)
        watermark = self._front.watermark
        if watermark >= self._first_end:
            self._change([m for m in self._members if not m.active.is_over(watermark)])
        return found

    def _start(self, events: EventBatch) -> None:
        if self._run is not None:
            return
        self._schema, self._open_schema = events.batch.schema, events.open_schema
        self._run = self._started(self._members)
        self._front = self._new_front()
        if self._told_watermark > BEGINNING:
            self._front.advance(self._told_watermark)

    def _new_front(self) -> StreamFront:
        """What decides which events are in time, and moves the watermark."""
        if self._inputs is None:
            return StreamFront(self.options, self._lateness())
        timeout = self._given.input_timeout
        if timeout is not None:
            assert self._schema is not None
            domain = time_domain(self._schema, self.options)
            self._inputs.timeout = in_time_unit(timeout, "input_timeout", domain)
        self._inputs.tell_of(self.options)
        return self._inputs

    def _started(self, members: list[Member]) -> WorkloadRun:
        assert self._schema is not None
        return WorkloadRun(
            members,
            self._options_of_engines,
            self._schema,
            open_schema=self._open_schema,
            driven=self._inputs is not None or self._lateness() > 0,
            before=self._run,
        )

    @property
    def _options_of_engines(self) -> Options:
        """The front of the workload waits for inputs, and tells engines the time."""
        return replace(self.options, policy="bounded", inputs=None, input_timeout=None)

    @property
    def _first_end(self) -> int:
        """When the first of the queries ends; looked for once for each set of them."""
        if self._ends_of is not self._members:
            ends = [m.active.until for m in self._members if m.active.until < NO_END]
            self._ends_of, self._soonest = self._members, min(ends, default=2 * END_OF_TIME)
        return self._soonest

    def _lateness(self) -> int:
        """The allowed lateness in the time column's unit."""
        assert self._schema is not None
        return lateness_of(self.options, time_domain(self._schema, self.options))

    @property
    def watermark(self) -> int:
        """No event before this time can still be used."""
        front = self._front or self._inputs
        return self._told_watermark if front is None else front.watermark

    @property
    def late(self) -> SideOutput:
        """Events that came after the watermark had passed them: `.count`, `.table()`."""
        return SideOutput() if self._front is None else self._front.set_aside.late

    @property
    def quarantined(self) -> SideOutput:
        """Rows without a type or a usable time, with the reason."""
        return SideOutput() if self._front is None else self._front.set_aside.quarantined

    @property
    def live_events(self) -> int:
        """Events kept because they can still be part of a match, once for each engine."""
        return 0 if self._run is None else sum(e.live_rows for e in self._run.engines)

    # -- telling ----------------------------------------------------------------------------------

    def explain(self, events: Any = None, *, measure: bool = False) -> str:
        """Which queries run together, what they share and what that saves, for people.

        `events` is a table or schema like the events to come; a running workload knows them, and
        tells what it has counted. Of a Spark DataFrame it tells how the work would be divided.
        With `measure` all queries are run over the events, together and each by itself.
        """
        if type(events).__module__.startswith("pyspark."):
            if measure:
                msg = "a Spark DataFrame is divided among many processes"
                raise _nothing_to_measure(msg)
            from cepheid.hosts.spark import explain_workload_spark  # noqa: PLC0415 (pyspark's door)

            return explain_workload_spark(events, self)
        if measure and (events is None or isinstance(events, pa.Schema)):
            msg = "no events are given"
            raise _nothing_to_measure(msg)
        counted = None
        if self._run is not None:
            counted = {n: unit.counters for n, unit in enumerate(self._run.units)}
        rates = with_statistics(self.options).statistics
        measured = self._measured(events) if measure else None
        return explain_groups(self._groups(events), rates, counted, measured)

    def _measured(self, events: Any) -> Measured:
        """What the queries that run now would take over these events."""
        history = self._history(events)
        running = [entry for entry in self.entries if not entry.is_paused]
        members = [Member(entry.name, entry.query, ALWAYS) for entry in running]
        return measure_saving(
            history,
            lambda: self._run_through(history, members).total,
            [entry.query for entry in running],
            replace(self._options_of_engines, lateness=0),
        )

    def graph(self, events: Any = None) -> tuple[GraphOfGroup, ...]:
        """The same as data; `cepheid.report.workload_graph` draws it."""
        return tuple(graph_of(group) for group in self._groups(events))

    def _groups(self, events: Any) -> tuple[Group, ...]:
        if self._run is not None:
            return self._run.groups
        schema = events if isinstance(events, pa.Schema) else getattr(events, "schema", None)
        if self._registrations is not None and events is not None:
            schema = self._registrations.described(events)
        assumed = schema or assumed_schema([m.query for m in self._members], self.options)
        return plan_workload(self._members, self.options, assumed, open_schema=schema is None)

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Queries and state as bytes; `Workload.restore` needs nothing else but the options."""
        header: dict[str, Any] = {
            "workload": 1,
            "options": repr(replace(self._given, statistics=None)),
            "registering": [written_query(query) for query in self._registering],
            "entries": [[e.name, *written_query(e.query), e.is_paused] for e in self.entries],
            "members": [written_member(m) for m in self._members],
            "told": self._told_watermark,
        }
        front = self._front or self._inputs
        if front is not None:
            header["front"] = front.state()
        parts: list[bytes] = []
        if self._run is not None and self._schema is not None:
            header["open_schema"] = self._open_schema
            header["fronts"] = [unit.front_state() for unit in self._run.units]
            header["engines"], parts = state_of(self._run.engines)
            parts.append(self._schema.serialize().to_pybytes())
        return pack(header, parts)

    @classmethod
    def restore(cls, snapshot: bytes, **options: Any) -> Workload:
        """A workload that goes on where `snapshot` was taken, with the options it had."""
        header, parts = unpack(snapshot)
        workload = cls(**options)
        told = repr(replace(workload._given, statistics=None))
        if "workload" not in header or header["options"] != told:
            raise StateError.of(
                "other-query",
                "the snapshot belongs to a single query or to other options",
                help="restore it with the options it was taken with",
            )
        for registering in header.get("registering", ()):
            workload._register(read_query(tuple(registering)))
        for name, text, language, query, paused in header["entries"]:
            compiled = read_query((text, language, query))
            workload._entries[name] = Entry(name, compiled, paused)
        workload._members = [read_member(values) for values in header["members"]]
        workload._told_watermark = header["told"]
        workload._listen()
        if workload._inputs is not None:
            workload._inputs.set_state(header["front"])
        if parts:
            workload._schema = pa.ipc.read_schema(pa.py_buffer(parts[-1]))
            workload._open_schema = header["open_schema"]
            workload._run = workload._started(workload._members)
            workload._front = workload._new_front()
            workload._front.set_state(header["front"])
            restore_state(workload._run.engines, header["engines"], parts[:-1])
            for unit, front in zip(workload._run.units, header["fronts"], strict=True):
                unit.set_front(front)
        return workload


def _nothing_to_measure(why: str) -> OptionError:
    return OptionError.of(
        "nothing-to-measure",
        f"measure=True runs the queries over events, and {why}",
        help="give some events as a table or a list of dicts",
    )
