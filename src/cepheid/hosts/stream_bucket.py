"""The work on one bucket of a streaming query: bring its detector up, feed it, store what is new.

Lateness is decided here, from event time: an event is late if it lies before the watermark that
holds for the whole micro-batch, the same in every bucket. The watermark moves first and the events
come after it, so whatever is within the allowed lateness is used, however the stream is cut.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts import stream_checkpoint, stream_state
from cepheid.hosts.header_store import HeaderStore
from cepheid.hosts.in_process import Detector
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.matches import Matches
from cepheid.hosts.set_aside import event_times
from cepheid.hosts.snapshot import join_events, with_notes, without_notes
from cepheid.hosts.stream_clock import BEGINNING, StreamClock
from cepheid.hosts.stream_routing import Routing
from cepheid.hosts.stream_running import F, Running, Task
from cepheid.hosts.stream_state import Header, Store
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery

_MOST_BYTES_KEPT = 1 << 30
_MEMORY_PER_STORED_BYTE = 8
_PATIENCE = 16
_LONGEST_STEP = 64  # in windows: after a leap in time patience has an end


@dataclass(frozen=True, slots=True)
class StreamTask:
    """What a worker has to know of a streaming query; it travels with every micro-batch.

    `fingerprint` names query, options and columns, and is kept with the state. `run` tells apart
    the detectors of several queries in one worker.
    """

    query: CompiledQuery
    options: Options
    schema: pa.Schema
    clock: StreamClock
    routing: Routing
    fingerprint: str
    run: str

    def detector(self, bucket: int, queries: list[Any] | None) -> Detector:
        """A detector for a bucket that has seen nothing."""
        detector = Detector.for_host(self.query, self.options, driven=True, may_keep_totals=True)
        detector.start(self.schema)
        return detector

    def changed(
        self, detector: Running[Matches], bucket: int, orders: Sequence[str], watermark: int
    ) -> None:
        """One query stays as it is."""

    def owned(self, matches: Matches, bucket: int) -> Matches:
        """The matches that belong to a bucket, of those it has found."""
        return self.routing.owned(matches, bucket, self.options)

    def is_slowed(self, detector: Running[Matches], bucket: int) -> bool:
        """Whether it left its key for an event without one, and could go back now that it is gone.

        Built anew from the state, it will use the key again.
        """
        routing = self.routing
        if not routing.strays or bucket == routing.stray_bucket:
            return False
        (engine,) = detector.engines
        if engine.is_partitioned:
            return False
        live, _ = engine.live_table()
        return routing.is_whole(live, self.options)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Events of one bucket from one task of the stage before, in their order there.

    `is_copy` marks events that also went to another bucket, which accounts for them.
    """

    task: int
    number: int
    is_copy: bool
    events: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Step(Generic[F]):
    """What one step of a bucket brought; timers are in milliseconds of the watermark."""

    matches: F
    late: pa.Table
    quarantined: pa.Table
    timer_to_delete: int | None
    timer_to_register: int | None


@dataclass(frozen=True, slots=True)
class _Kept:
    detector: Running[Any]
    token: str
    size: int


class DetectorCache:
    """Detectors a worker keeps in memory between micro-batches, up to a number of bytes.

    It saves reading the state again and is never trusted: a detector is used only if the state
    names its version as the current one or one of those before.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES_KEPT) -> None:
        """Nothing kept yet."""
        self._kept: OrderedDict[tuple[str, int], _Kept] = OrderedDict()
        self._most_bytes = most_bytes
        self._bytes = 0

    def take(self, key: tuple[str, int]) -> _Kept | None:
        """Take a detector out: if the step fails half-way, nobody finds it again."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.size
        return kept

    def keep(self, key: tuple[str, int], kept: _Kept) -> None:
        """Keep a detector; those not used for longest make room."""
        self._kept[key] = kept
        self._bytes += kept.size
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= gone.size


KEPT = DetectorCache()
"""The cache of this worker process."""


class Bucket(Generic[F]):
    """One bucket's step in one micro-batch."""

    def __init__(self, task: Task[F], number: int, store: Store, cache: DetectorCache) -> None:
        """`store` is this bucket's part of the state."""
        self._task = task
        self._number = number
        self._store = HeaderStore(store)
        self._cache = cache

    def step(
        self,
        arrivals: Sequence[Arrival],
        watermark_ms: int,
        fired: int | None = None,
        orders: Sequence[str] = (),
    ) -> Step[F]:
        """Move the watermark, take the events, store what changed; `fired` is an expired timer.

        Orders to a workload are carried out before the events of the same micro-batch are seen.
        """
        header = self._header()
        detector = self._detector(header)
        header = self._compacted(header, detector)
        marks = [engine.next_ordinal for engine in detector.engines]
        watermark = self._task.clock.watermark(watermark_ms)
        matches = detector.advance(watermark)  # which may make events for later stages
        change = self._task.changed(detector, self._number, orders, watermark)
        if change is not None:
            detector, queries = change
            header = self._rewritten(header, detector, queries)
            marks = [engine.next_ordinal for engine in detector.engines]
        late: pa.Table = self._task.schema.empty_table()
        if arrivals:
            events, late = self._in_time(arrivals, watermark)
            if events.num_rows:
                matches = matches + detector.feed(EventBatch(events))
        matches = self._task.owned(matches, self._number)
        quarantined = detector.quarantined.take()
        token = os.urandom(8).hex()
        after, is_fresh = self._stored(header.next(token), detector, marks)
        before = header.stages[0].watermark if header.stages else BEGINNING
        advanced = watermark - before if before > BEGINNING else 0
        after, delete, register = self._timers(after, detector, watermark_ms, fired, advanced)
        self._store.set_header(after.to_bytes())
        if is_fresh and not self._task.is_slowed(detector, self._number):
            size = _MEMORY_PER_STORED_BYTE * sum(s.size for s in after.segments)
            self._cache.keep((self._task.run, self._number), _Kept(detector, token, size))
        return Step(matches, late, quarantined, delete, register)

    # -- bringing the detector up ---------------------------------------------------------------

    def _header(self) -> Header:
        data = self._store.header()
        fingerprint = self._task.fingerprint
        return Header(fingerprint) if data is None else Header.from_bytes(data, fingerprint)

    def _detector(self, header: Header) -> Running[F]:
        kept = self._cache.take((self._task.run, self._number))
        if kept is not None:
            version = header.version_of(kept.token)
            if version is not None and self._catch_up(kept.detector, header, version):
                known: Running[F] = kept.detector
                return known
        return self._restored(header)

    def _catch_up(self, detector: Running[F], header: Header, version: int) -> bool:
        """Let a detector of an earlier version see what came since; its matches left long ago."""
        if version == header.version:
            return True
        if version < header.changed:
            return False
        if version < header.lost and not all(e.forgets_by_time for e in detector.engines):
            return False
        news = []
        for number in range(len(header.stages)):
            tables = stream_state.read_stage(self._store, header, number, after=version)
            if tables is None:
                return False
            news.append(tables)
        for engine, tables, state in zip(detector.engines, news, header.stages, strict=True):
            events = without_notes(join_events(tables))[0] if tables else None
            engine.catch_up(events, state.watermark)
            engine.latest, engine.position = state.latest, state.position
        if detector.front is not None and header.front is not None:
            detector.front.set_state(header.front)
        return True

    def _restored(self, header: Header) -> Running[F]:
        task = self._task
        detector = task.detector(self._number, header.queries)
        for number, (engine, stage) in enumerate(
            zip(detector.engines, header.stages, strict=False)
        ):
            tables = stream_state.read_stage(self._store, header, number)
            assert tables is not None
            stream_checkpoint.go_on(engine, tables, stage, task.schema)
        if detector.front is not None and header.front is not None:
            detector.front.set_state(header.front)
        return detector

    # -- events ---------------------------------------------------------------------------------

    def _in_time(
        self, arrivals: Sequence[Arrival], watermark: int
    ) -> tuple[pa.RecordBatch, pa.Table]:
        """The events to use, in order of time and then of arrival, and the late ones."""
        arrivals = sorted(arrivals, key=lambda a: (a.task, a.number))
        batch = pa.Table.from_batches([a.events for a in arrivals]).combine_chunks().to_batches()[0]
        times, bad = event_times(batch, self._task.options)
        late: pa.Table = self._task.schema.empty_table()
        is_late = times < watermark
        if bad is not None:
            is_late &= ~bad
        kinds = batch.column(self._task.options.type)
        if kinds.null_count:  # no events at all, as in process
            is_late &= ~kinds.is_null().to_numpy(zero_copy_only=False)
        if is_late.any():
            sizes = [a.events.num_rows for a in arrivals]
            is_copy = np.repeat([a.is_copy for a in arrivals], sizes)
            late = pa.Table.from_batches([batch.filter(pa.array(is_late & ~is_copy))])
            used = np.flatnonzero(~is_late)
            batch, times = batch.take(pa.array(used)), times[used]
        options = self._task.options
        if options.tie == "seqno" and options.id is not None:
            rank = pc.rank(batch.column(options.id)).to_numpy()
            batch = batch.take(pa.array(np.lexsort((rank, times))))
        elif not bool((times[1:] >= times[:-1]).all()):
            batch = batch.take(pa.array(np.argsort(times, kind="stable")))
        return batch, late

    def _compacted(self, header: Header, detector: Running[F]) -> Header:
        """The state without what no instance needs any more, where that is most of it."""
        time_column = self._task.options.end_column
        for number, engine in enumerate(detector.engines):
            if engine.compact():
                noted = stream_checkpoint.whole_state(engine)
                header = stream_state.replace_stage(self._store, header, number, noted, time_column)
        return header

    def _rewritten(self, header: Header, detector: Running[F], queries: list[Any]) -> Header:
        """The state of other queries: the live events of their engines, written anew."""
        time_column, engines = self._task.options.end_column, detector.engines
        for number in range(max(len(header.stages), len(engines))):
            noted = self._task.schema.empty_table()
            if number < len(engines):
                events, positions = engines[number].live_table()
                noted = with_notes(events, positions, engines[number].absent_flags())
            header = stream_state.replace_stage(self._store, header, number, noted, time_column)
        return replace(header, queries=queries, changed=header.version + 1)

    # -- storing --------------------------------------------------------------------------------

    def _stored(
        self, header: Header, detector: Running[F], marks: Sequence[int]
    ) -> tuple[Header, bool]:
        """The state with this step's events; whether the detector may go on from it."""
        engines = detector.engines
        time_column = self._task.options.end_column
        for number, (engine, mark) in enumerate(zip(engines, marks, strict=True)):
            if not engine.needs_state:
                continue
            events, positions = engine.live_table(since=mark)
            if len(events):
                noted = with_notes(events, positions, engine.absent_flags(since=mark))
                header = stream_state.append(self._store, header, number, noted, time_column)
        horizons = [engine.horizon() for engine in engines]
        header = stream_state.drop_dead(self._store, header, horizons)
        is_fresh = True
        for segment in stream_state.mostly_dead(header, horizons):
            header = stream_state.rewrite(
                self._store, header, [segment], horizons[segment.stage], time_column
            )
            is_fresh = False  # the detector would keep the dead events in memory
        keeps_totals = [not engine.is_told_by_events for engine in engines]
        for number in range(len(engines)):
            # Buckets start their merges at different times: none has to wait for all.
            most = stream_state.MOST_SEGMENTS + self._number % stream_state.MERGED_AT_ONCE
            run = stream_state.cheapest_run(header, number, most, keeps_first=keeps_totals[number])
            if run:
                header = stream_state.rewrite(
                    self._store, header, run, horizons[number], time_column
                )
        stages = tuple(map(stream_checkpoint.state_of, engines))
        front = None if detector.front is None else detector.front.state()
        return replace(header, stages=stages, front=front), is_fresh

    def _timers(
        self,
        header: Header,
        detector: Running[F],
        watermark_ms: int,
        fired: int | None,
        advanced: int,
    ) -> tuple[Header, int | None, int | None]:
        """One timer at most: when something becomes final, or when all can be forgotten.

        Forgetting can wait for a while, counted in steps like this one (`advanced`), for it is only
        a silent bucket's: one that goes on forgets by itself and need not set its timer each time.
        """
        current, delete = header.timer, None
        if current is not None and current <= watermark_ms:
            delete = None if current == fired else current
            current = None
        deadlines = [d for e in detector.engines if (d := e.next_deadline()) is not None]
        expiries = [
            expiry + _PATIENCE * min(advanced, _LONGEST_STEP * (engine.retention or 0))
            for engine in detector.engines
            if (expiry := engine.expires_at()) is not None
        ]
        if expiries and header.segments:
            deadlines.append(max(expiries))
        register = None
        if deadlines:
            wanted = max(self._task.clock.due(min(deadlines)), watermark_ms + 1)
            if current is None or wanted < current:
                delete = delete if current is None else current
                register = current = wanted
        return replace(header, timer=current), delete, register
