"""A streaming query without Spark: micro-batches, hopping buckets, timers, failed attempts.

What Spark does around the operator is played here in plain Python: the watermark of the events
before, packs by bucket, timers, state that changes only when a micro-batch is committed, and
workers whose caches may be behind, ahead (of an attempt that failed) or empty.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cepheid.hosts.header_store import HeaderStore
from cepheid.hosts.prepared_program import prepare_program
from cepheid.hosts.spark_packing import EVERYWHERE, ROUTE, Packing, open_pack
from cepheid.hosts.stream_bucket import Arrival, Bucket, DetectorCache, Step, StreamTask
from cepheid.hosts.stream_clock import StreamClock
from cepheid.hosts.stream_routing import Routing, route
from cepheid.hosts.stream_state import Header
from cepheid.model.event_time import MAX_TIME
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery, compile_text

FINGERPRINT = "fingerprint"


@dataclass
class MemoryStore:
    """State of one bucket; `copy` is what an attempt works on."""

    head: bytes | None = None
    segments: dict[int, bytes] = field(default_factory=dict)
    read: int = 0

    def copy(self) -> MemoryStore:
        return MemoryStore(self.head, dict(self.segments))

    def header(self) -> bytes | None:
        return self.head

    def set_header(self, data: bytes) -> None:
        self.head = data

    def segment(self, number: int) -> bytes:
        self.read += 1
        return self.segments[number]

    def set_segment(self, number: int, data: bytes) -> None:
        assert number not in self.segments
        self.segments[number] = data

    def drop_segment(self, number: int) -> None:
        del self.segments[number]

    @property
    def held(self) -> dict[int, bytes]:
        """All segments, also those that travel with the header."""
        reader = HeaderStore(self.copy())
        head = reader.header()
        if head is None:
            return {}
        listed = Header.from_bytes(head, FINGERPRINT).segments
        found = {each.number: reader.segment(each.number) for each in listed}
        assert set(self.segments) <= set(found), "a segment that no header lists is lost space"
        return found


@dataclass
class BucketState:
    """What the state store holds for one bucket."""

    store: MemoryStore = field(default_factory=MemoryStore)
    timers: set[int] = field(default_factory=set)


class SimulatedStream:
    """One streaming query over events of one schema."""

    def __init__(
        self,
        query: CompiledQuery | str,
        schema: pa.Schema,
        *,
        seed: int = 0,
        workers: int = 1,
        failing: float = 0.0,
        **options: Any,
    ) -> None:
        self.query = compile_text(query) if isinstance(query, str) else query
        self.options = make_options(options)
        self.program = prepare_program(self.query, self.options, schema)
        self.routing = route(self.program, schema, self.options.buckets)
        is_timestamp = pa.types.is_timestamp(schema.field(self.options.end_column).type)
        self.clock = StreamClock(is_timestamp)
        self.schema = schema
        self.task = StreamTask(
            self.query, self.options, schema, self.clock, self.routing, FINGERPRINT, "run"
        )
        self.caches = [DetectorCache() for _ in range(workers)]
        self.states: dict[int, BucketState] = {}
        self.random = random.Random(seed)
        self.failing = failing
        self.latest: int | None = None
        self.watermark_ms = 0
        self.matches: list[dict[str, Any]] = []
        self.late: list[dict[str, Any]] = []
        self.quarantined: list[dict[str, Any]] = []

    def batch(self, rows: Sequence[dict[str, Any]]) -> None:
        """A micro-batch: its watermark comes from the events before it."""
        if self.latest is not None:
            late = self.latest - self.program.lateness
            shown = self.clock.shown(late // 1000 if self.clock.is_timestamp else late)
            self.watermark_ms = max(self.watermark_ms, shown)
        self._run(rows)
        times = [row[self.options.end_column] for row in rows]
        known = [int(t) for t in times if t is not None and abs(t) < MAX_TIME]
        if known:
            self.latest = max(known) if self.latest is None else max(self.latest, *known)

    def heartbeat(self, time: int) -> None:
        """An event of no interest, then a micro-batch without any."""
        self.latest = time if self.latest is None else max(self.latest, time)
        self.batch([])

    def restart(self) -> None:
        """New workers, the same checkpoint."""
        self.caches = [DetectorCache() for _ in self.caches]

    @property
    def segments(self) -> int:
        return sum(len(state.store.held) for state in self.states.values())

    # -- one micro-batch ------------------------------------------------------------------------

    def _run(self, rows: Sequence[dict[str, Any]]) -> None:
        arrivals = self._arrivals(rows) if rows else {}
        while True:
            attempt = {
                number: BucketState(state.store.copy(), set(state.timers))
                for number, state in self.states.items()
            }
            steps = self._attempt(attempt, arrivals)
            if steps is not None:
                break
        self.states = attempt
        for step in steps:
            self.matches += step.matches.table().to_pylist()
            self.late += step.late.to_pylist()
            self.quarantined += step.quarantined.to_pylist()

    def _attempt(
        self, states: dict[int, BucketState], arrivals: dict[int, list[Arrival]]
    ) -> list[Step] | None:
        steps = []
        for number in sorted(arrivals):
            steps.append(self._step(states, number, arrivals[number], None))
            if self.random.random() < self.failing:
                return None
        for number in sorted(states):
            for timer in sorted(states[number].timers):
                if timer <= self.watermark_ms:
                    steps.append(self._step(states, number, [], timer))
                    states[number].timers.discard(timer)
        return None if self.random.random() < self.failing else steps

    def _step(
        self,
        states: dict[int, BucketState],
        number: int,
        arrivals: list[Arrival],
        fired: int | None,
    ) -> Step:
        state = states.setdefault(number, BucketState())
        cache = self.random.choice(self.caches)
        step = Bucket(self.task, number, state.store, cache).step(
            arrivals, self.watermark_ms, fired
        )
        if step.timer_to_delete is not None:
            assert step.timer_to_delete in state.timers
            state.timers.discard(step.timer_to_delete)
        if step.timer_to_register is not None:
            assert step.timer_to_register > self.watermark_ms
            state.timers.add(step.timer_to_register)
        assert len(state.timers - {fired}) <= 1
        return step

    def _arrivals(self, rows: Sequence[dict[str, Any]]) -> dict[int, list[Arrival]]:
        table = pa.Table.from_pylist(list(rows), schema=self.schema)
        if not self.routing.is_one_task:
            codes = [route_of(row, self) for row in rows]
            kept = [i for i, code in enumerate(codes) if code is not None]
            table = table.take(pa.array(kept, pa.int64())).append_column(
                ROUTE, pa.array([codes[i] for i in kept], pa.int32())
            )
        found: dict[int, list[Arrival]] = {}
        for packs in Packing(self.routing.stray_bucket, self.schema).pack(iter(table.to_batches())):
            for pack in packs.to_pylist():
                events = open_pack(pack["events"], self.schema)
                arrival = Arrival(pack["task"], pack["number"], pack["is_copy"], events)
                found.setdefault(pack["bucket"], []).append(arrival)
        return found


def route_of(row: dict[str, Any], stream: SimulatedStream) -> int | None:
    """The route that Spark computes as a column (tests of the Spark host compare the answers)."""
    routing, options = stream.routing, stream.options
    if routing.key is None:
        return _hash(routing, (row[options.end_column],))
    kind = row[options.type]
    if kind is None or row[options.end_column] is None:
        return 0
    attributes = routing.key.of_any or routing.key.of.get(kind)
    if attributes is None:
        return None
    declared = options.attributes_of(kind)
    if declared is None:
        is_absent = any(row.get(name) is None for name in attributes)
    else:
        is_absent = not set(attributes) <= set(declared)
    if routing.strays and is_absent:
        return EVERYWHERE
    if any(row.get(name) is None or row[name] != row[name] for name in attributes):
        return routing.null_bucket
    bucket = _hash(routing, tuple(row[name] for name in attributes))
    is_witness = routing.witnesses is None or kind in routing.witnesses
    return bucket + routing.stray_bucket + 1 if routing.strays and is_witness else bucket


def _hash(routing: Routing, key: tuple[Any, ...]) -> int:
    return sum((i + 1) * (ord(c) + 7) for i, c in enumerate(repr(key))) % routing.buckets
