"""The in-process host: `Detector` takes events as they come, and returns the matches."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.algebra.query import Query
from cepheid.hosts.batch_schema import check_batch_schema, merged_schema
from cepheid.hosts.derived_events import DerivedEvents, derived_events, with_derived
from cepheid.hosts.ingest import EventBatch, event_batches
from cepheid.hosts.input_front import InputFront, inputs_of, refuse_heartbeat
from cepheid.hosts.live_engine import BEGINNING, END_OF_TIME, LiveEngine
from cepheid.hosts.matches import Matches
from cepheid.hosts.registered_events import registered_events
from cepheid.hosts.sequence_engine import SequenceEngine
from cepheid.hosts.set_aside import SetAside, SideOutput, event_times
from cepheid.hosts.snapshot import pack, read_events, unpack, write_events
from cepheid.hosts.stream_front import StreamFront
from cepheid.model.errors import OptionError, QueryError, StateError
from cepheid.model.options import Options, make_options
from cepheid.planner.chain_plan import Chain
from cepheid.planner.compiled_query import CompiledQuery, compile_text
from cepheid.planner.prepare import Prepared, in_time_unit, prepare
from cepheid.planner.registered_sources import Registrations, registrations_of

_DRIVEN_FROM_OUTSIDE = END_OF_TIME
"""A lateness no event reaches: the watermark moves only when it is told to."""


class Detector:
    """Incremental detection in one process.

    >>> import cepheid
    >>> d = cepheid.Detector("EVENT SEQ(A x, B y) WHERE [id] WITHIN 10")
    >>> len(d.feed([{"type": "A", "ts": 1, "id": 7}]))
    0
    >>> [m["y"]["ts"] for m in d.feed([{"type": "B", "ts": 4, "id": 7}])]
    [4]
    """

    def __init__(self, query: CompiledQuery | str, **options: Any) -> None:
        """Options as for `cepheid.detect` (docs/semantics.md#options)."""
        compiled = compile_text(query) if isinstance(query, str) else query
        given = make_options(options)
        registrations = registrations_of(compiled, given)
        known = given if registrations is None else registrations.options
        self._setup(compiled, known, None, False, True, registrations)

    def _setup(
        self,
        query: CompiledQuery,
        options: Options,
        first_events: tuple[int, int] | None,
        driven: bool,
        may_keep_totals: bool,
        registrations: Registrations | None = None,
    ) -> None:
        self.query = query
        self.options = options
        self._registrations = registrations
        self._first_events = first_events
        self._driven = driven
        self._may_keep_totals = may_keep_totals
        self._stages = query.stages(options)
        self._engines: list[LiveEngine] = []
        self._front: StreamFront | None = None
        self._inputs: InputFront | None = None
        if options.policy == "guaranteed":
            self._inputs = InputFront(options, inputs_of(self._stages, options.inputs))
        self._told_watermark = BEGINNING

    @classmethod
    def for_host(
        cls,
        query: CompiledQuery,
        options: Options,
        *,
        first_events: tuple[int, int] | None = None,
        driven: bool = False,
        may_keep_totals: bool = False,
    ) -> Detector:
        """A detector inside another host: `driven` ones move their watermark only by `advance`.

        Hosts say whether it may keep running totals: in a workload queries share their events.
        """
        detector = cls.__new__(cls)
        detector._setup(query, options, first_events, driven, may_keep_totals)
        return detector

    def feed(self, events: Any) -> Matches:
        """Take events; returns the matches that became final with them."""
        events = registered_events(events, self._registrations)
        if isinstance(events, pa.Table | pa.RecordBatch) and not self._engines:
            self._start(events.schema, False)
        if type(events) is pa.RecordBatch and events.num_rows:  # the common case, no detours
            return self._feed(EventBatch(events))
        found: Matches | None = None
        for batch in event_batches(events, self.options):
            matches = self._feed(batch)
            found = matches if found is None else found + matches
        return found if found is not None else self._nothing()

    def advance(self, watermark: Any) -> Matches:
        """Say that no event before `watermark` will come; returns what this makes final."""
        time = as_time(watermark)
        self._told_watermark = max(self._told_watermark, time)
        return self._advance(time) if self._engines else self._nothing()

    def heartbeat(self, source: str, time: Any) -> Matches:
        """Say that an input brings nothing before `time` any more; what this makes final.

        Inputs are those of policy="guaranteed" (docs/semantics.md#guaranteed-detection).
        """
        if self._inputs is None:
            raise refuse_heartbeat()
        self._inputs.heartbeat(source, as_time(time))
        if not self._engines:
            return self._nothing()
        return self._through_stages(None, self._inputs.watermark)

    def close(self) -> Matches:
        """End of input: deadlines after the last event pass (unless close_at_end=False)."""
        if not self._engines or not self.options.close_at_end:
            return self._nothing()
        return self._advance(END_OF_TIME)

    @property
    def late(self) -> SideOutput:
        """Events that came after the watermark had passed them: `.count`, `.table()`."""
        return self._set_aside.late

    @property
    def quarantined(self) -> SideOutput:
        """Rows without a type or a usable time, with the reason."""
        return self._set_aside.quarantined

    @property
    def watermark(self) -> int:
        """No event before this time can still be used."""
        if not self._engines:
            return self._told_watermark if self._inputs is None else self._inputs.watermark
        return self._front.watermark if self._front else self._engines[-1].watermark

    @property
    def undefined_keys(self) -> int:
        """Events that could not match because a key attribute was null."""
        return sum(engine.undefined_keys for engine in self._engines)

    @property
    def live_events(self) -> int:
        """Events kept because they can still be part of a match."""
        return sum(engine.live_rows for engine in self._engines)

    @property
    def counters(self) -> dict[str, int]:
        """What the last query's kernel counted (plan option `counting`)."""
        return self._engines[-1].counters if self._engines else {}

    def snapshot(self) -> bytes:
        """The whole state as bytes: live events, running totals, and where time stands."""
        header: dict[str, Any] = {
            "query": self._identity(),
            "told": self._told_watermark,
            "stages": [],
        }
        parts, beside = [], []
        for engine in self._engines:
            if not engine.is_told_by_events:
                engine.compact()
            table, positions = engine.live_table()
            parts.append(write_events(table, positions, engine.absent_flags()))
            beside.append(engine.state_beside_events())
            header["stages"].append(
                {
                    "watermark": engine.watermark,
                    "latest": engine.latest,
                    "position": engine.position,
                    "dead": engine.dead_until,
                    "late": engine.set_aside.late.count,
                    "quarantined": engine.set_aside.quarantined.count,
                }
            )
        front = self._inputs or self._front
        if front is not None:
            header["front"] = front.state()
        if any(beside):  # else as it was, so that older versions can read it
            header["beside"] = [len(part) for part in beside]
        return pack(header, [*parts, *(each for part in beside for each in part)])

    @classmethod
    def restore(cls, query: CompiledQuery | str, snapshot: bytes, **options: Any) -> Detector:
        """A detector that goes on where `snapshot` was taken; refuses another query's snapshot."""
        detector = cls(query, **options)
        detector._restore(snapshot)
        return detector

    def _restore(self, snapshot: bytes) -> None:
        header, parts = unpack(snapshot)
        if header["query"] != self._identity():
            raise StateError.of(
                "other-query",
                "the snapshot belongs to another query or to other options",
                help="restore it with the text and the options it was taken with",
            )
        self._told_watermark = header["told"]
        if not parts:
            if self._inputs is not None:
                self._inputs.set_state(header["front"])
            return
        stages = header["stages"]
        beside = _told_apart(parts[len(stages) :], header.get("beside", [0] * len(stages)))
        for number, (part, stage) in enumerate(zip(parts[: len(stages)], stages, strict=True)):
            events, positions = read_events(part)
            if number == 0:
                self._start(_with_lost_columns(events.batch.schema, beside), True)
            if beside[number]:
                self._engines[number].expect_beside_events(beside[number])
            self._engines[number].restore(
                events,
                positions,
                watermark=stage["watermark"],
                latest=stage["latest"],
                position=stage["position"],
                horizon=stage.get("dead", BEGINNING),
            )
            self._engines[number].set_aside.late.count = stage["late"]
            self._engines[number].set_aside.quarantined.count = stage["quarantined"]
        if self._front is not None:
            self._front.set_state(header["front"])

    def _identity(self) -> dict[str, Any]:
        o = self.options
        identity: dict[str, Any] = {
            "text": self.query.source.text,
            "name": self.query.name,
            "columns": [o.type, o.time, o.start, o.end, o.id],
            "meaning": [str(o.tick), o.discrete, o.tie, str(o.lateness), o.close_at_end],
            "params": {k: repr(v) for k, v in sorted(o.params.items())},
        }
        if o.cap is not None or o.failures:  # else as it was, so that older snapshots are known
            identity["successors"] = [o.cap, o.failures]
        if self._inputs is not None:
            identity["inputs"] = [*self._inputs.inputs, str(o.input_timeout)]
        return identity

    # -- for hosts that keep the state themselves ------------------------------------------------

    def start(self, schema: pa.Schema, *, open_schema: bool = False) -> None:
        """Make the engines for events of a known schema before any has come."""
        if not self._engines:
            self._start(schema, open_schema or len(self._stages) > 1)

    @property
    def engines(self) -> tuple[LiveEngine, ...]:
        """One engine per stage, inputs first; none before the first event."""
        return tuple(self._engines)

    @property
    def front(self) -> StreamFront | None:
        """What decides lateness for several stages; None when the one engine does."""
        return self._front

    # -- stages ---------------------------------------------------------------------------------

    @property
    def _set_aside(self) -> SetAside:
        if self._front is not None:
            return self._front.set_aside
        return self._engines[0].set_aside if self._engines else SetAside()

    def _nothing(self) -> Matches:
        if self._engines:
            return Matches(self._engines[-1].form)
        # No event has told how time is counted: as the query's window needs it.
        name, kind = self.options.end_column, pa.field(self.options.type, pa.string())
        ticks, stamps = (
            pa.schema([kind, (name, each)]) for each in (pa.int64(), pa.timestamp("us", "UTC"))
        )
        try:
            return Matches(self._prepared(self._stages[-1], ticks, True).form)
        except QueryError as problem:
            if problem.code != "window-needs-tick":
                raise
            return Matches(self._prepared(self._stages[-1], stamps, True).form)

    def _prepared(self, stage: Query, schema: pa.Schema, open_schema: bool) -> Any:
        return prepare(
            stage,
            self.options,
            schema,
            open_schema=open_schema,
            known_parameters=self.query.parameters,
        )

    def _start(self, schema: pa.Schema, open_schema: bool) -> None:
        chained = len(self._stages) > 1
        for number, stage in enumerate(self._stages):
            prepared = self._prepared(stage, schema, open_schema or chained)
            driven = chained or self._driven or self._inputs is not None
            kind = _kind_of(prepared, may_last=number > 0)
            if prepared.may_keep_totals and self._may_keep_totals:
                from cepheid.hosts.totals_engine import TotalsEngine  # noqa: PLC0415

                kind, prepared = TotalsEngine, prepared.keeping_totals()
            self._engines.append(
                kind(
                    prepared,
                    lateness=_DRIVEN_FROM_OUTSIDE if driven else prepared.lateness,
                    first_events=self._first_events if number == 0 else None,
                )
            )
            if number == 0 and self._inputs is not None:
                self._front = self._inputs
                timeout = self.options.input_timeout
                if timeout is not None:
                    domain = prepared.domain
                    self._inputs.timeout = in_time_unit(timeout, "input_timeout", domain)
            elif number == 0 and chained:
                lateness = _DRIVEN_FROM_OUTSIDE if self._driven else prepared.lateness
                self._front = StreamFront(self.options, lateness)
        if self._inputs is not None:
            self._through_stages(None, self._inputs.watermark)
        if self._told_watermark > BEGINNING:
            self._advance(self._told_watermark)

    def _feed(self, events: EventBatch) -> Matches:
        if not self._engines:
            check_batch_schema(
                events.batch.schema,
                self._prepared(self._stages[0], events.batch.schema, events.open_schema),
            )
            self._start(events.batch.schema, events.open_schema)
        if not self._driven:
            for engine in self._engines:
                engine.compact()
        if self._front is None:
            return self._engines[0].feed(events)
        accepted = self._front.accept(events)
        return self._through_stages(accepted, self._front.watermark)

    def _advance(self, time: int) -> Matches:
        if self._front is None:
            return self._engines[0].advance(time)
        self._front.advance(time)
        return self._through_stages(None, self._front.watermark)

    def _through_stages(self, events: EventBatch | None, watermark: int) -> Matches:
        """Each stage sees the events and what the stages before it derived, then the watermark."""
        matches: Matches | None = None
        derived: list[DerivedEvents] = []
        for stage, engine in zip(self._stages, self._engines, strict=True):
            merged = with_derived(events, derived, self.options, self._engines[0].form.events)
            fed = engine.feed(merged) if merged is not None else Matches(engine.form)
            matches = fed + engine.advance(watermark)
            if stage is not self._stages[-1] and len(matches):
                derived.append(derived_events(*matches.as_events(), stage, self.options))
        assert matches is not None
        return matches


def _kind_of(prepared: Prepared, *, may_last: bool) -> type[LiveEngine]:
    """The engine for a query; `may_last`: what other queries derived may last as their matches."""
    if not prepared.is_succession:
        return SequenceEngine
    # Their kernels are loaded when they are needed, for which sequences need not wait.
    if isinstance(prepared.chain, Chain) and not may_last:
        from cepheid.hosts.chain_engine import ChainEngine  # noqa: PLC0415

        return ChainEngine
    from cepheid.hosts.succession_engine import SuccessionEngine  # noqa: PLC0415

    return SuccessionEngine


def _told_apart(parts: list[bytes], sizes: list[int]) -> list[list[bytes]]:
    """The parts of each stage, of which it has so many."""
    ends = np.cumsum([0, *sizes]).tolist()
    return [parts[begin:end] for begin, end in pairwise(ends)]


def _with_lost_columns(events: pa.Schema, beside: list[list[bytes]]) -> pa.Schema:
    """The schema of live events, with what only events that are gone have had."""
    if not any(beside):
        return events
    from cepheid.hosts.instance_rows import schema_of  # noqa: PLC0415

    for parts in filter(None, beside):
        events = merged_schema(events, schema_of(parts).remove_metadata())
    return events


def as_time(value: Any) -> int:
    """A time that a caller gives, as the engine counts it."""
    if isinstance(value, datetime):
        micro = pa.scalar(value).cast(
            pa.timestamp("us", "UTC") if value.tzinfo else pa.timestamp("us")
        )
        return int(micro.value)
    if isinstance(value, int | np.integer):
        return int(value)
    raise OptionError.of(
        "bad-watermark",
        f"a watermark of type {type(value).__name__} is not a time",
        help="give an integer in the time column's unit, or a datetime",
    )


def detect_in_process(events: Any, query: CompiledQuery, options: Options) -> pa.Table:
    """All matches in a finite history; events may come in any order."""
    detector, batches = as_history(events, query, options)
    found = [*(detector.feed(batch) for batch in batches), detector.close()]
    whole = found[0]
    for more in found[1:]:
        whole = whole + more
    return whole.table()


def as_history(
    events: Any, query: CompiledQuery, options: Options
) -> tuple[Detector, list[EventBatch]]:
    """A detector, and all events in time order to feed it with before it is closed."""
    registrations = registrations_of(query, options)
    if registrations is not None:
        events, options = registered_events(events, registrations), registrations.options
    detector = Detector.for_host(query, options, driven=False, may_keep_totals=True)
    batches = list(event_batches(events, options))
    if not batches and isinstance(events, pa.Table | pa.RecordBatch):
        detector.feed(events)  # tells the columns
    return detector, in_time_order(batches, options)


def in_time_order(batches: list[EventBatch], options: Options) -> list[EventBatch]:
    """The batches sorted by time over all of them, unless they already are."""
    times = []
    for events in batches:
        if events.batch.schema.get_field_index(options.end_column) < 0:
            return batches  # the engine says what is missing
        found, _ = event_times(events.batch, options)
        times.append(found)
    if not times:
        return batches
    every = np.concatenate(times)
    if bool((every[1:] >= every[:-1]).all()):
        return batches
    table = pa.concat_tables(
        [pa.Table.from_batches([b.batch]) for b in batches], promote_options="permissive"
    )
    order = np.argsort(every, kind="stable")
    names = {name for b in batches for name in b.lacks}
    lacks = {
        name: np.concatenate(
            [b.lacks.get(name, np.zeros(b.batch.num_rows, np.bool_)) for b in batches]
        )[order]
        for name in names
    }
    table = table.unify_dictionaries().combine_chunks().take(pa.array(order)).combine_chunks()
    whole = table.to_batches()[0]
    return [EventBatch(whole, lacks, any(b.open_schema for b in batches))]
