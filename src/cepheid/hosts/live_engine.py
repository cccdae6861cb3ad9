"""What engines share: events in, checked, kept while they matter, and handed on in order.

An engine is the running state of one query, or of several together. Relevant events get ordinals as
they come; chunks keep them whole, `LiveColumns` what kernels read. They are also all of its durable
state: whoever feeds the live events to an empty engine gets the same one (`restore`). Only running
totals are more than that (`state_beside_events`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.batch_columns import BatchColumns, ColumnOf
from cepheid.hosts.batch_schema import check_batch_schema, merged_schema
from cepheid.hosts.event_reader import AbsentKey, EventReader
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.matches import Matches, Piece
from cepheid.hosts.plain_columns import PlainBatch
from cepheid.hosts.set_aside import SetAside, event_times
from cepheid.hosts.store import Chunk, View
from cepheid.kernels.relevance import RowSelector, is_in_order, select_any_order
from cepheid.model.errors import LimitExceeded, StateError
from cepheid.model.event_time import MAX_TIME
from cepheid.planner.match_schema import scalar_type, wider_type
from cepheid.planner.prepare import Prepared

BEGINNING = -(2**62)
END_OF_TIME = 2**62


class LiveEvents(ABC):
    """The events of what runs together; what is found in them, and for whom, is a subclass's."""

    _columns: EventReader

    forgets_by_time = True
    """Whether events that matter no more would not matter to an earlier state of it either.

    Otherwise an old event must not be fed again without the others of its time.
    """

    def __init__(
        self,
        prepared: Prepared,
        *,
        lateness: int = 0,
        first_events: tuple[int, int] | None = None,
    ) -> None:
        """`lateness` in the time column's unit; `first_events` limits which events may start."""
        self.prepared = prepared
        self.options = prepared.options
        self.form = prepared.form
        self.watermark = BEGINNING
        self.latest = BEGINNING
        self.position = 0
        self.set_aside = SetAside()
        self._lateness = lateness
        self._kept_for = prepared.plan.retention
        self._first_events = first_events
        self._column_types: dict[str, ScalarType] = dict(prepared.column_types)
        self._chunks: list[Chunk] = []
        self._ordinal = 0
        self._processed_to = BEGINNING  # the watermark may be ahead of what the kernel has seen
        self._dead_until = BEGINNING
        self._held = np.zeros(0, np.int64)
        self._schema: pa.Schema | None = None
        self._batch_columns = BatchColumns()
        self._selector = RowSelector()
        self._live_rows = 0
        self._start_over()

    # -- what hosts ask -------------------------------------------------------------------------

    @property
    def live_rows(self) -> int:
        """Events kept because they can still be part of a match."""
        return self._live_rows

    @property
    def undefined_keys(self) -> int:
        """Events that could not match because a key attribute was null."""
        return self._columns.undefined_rows

    @property
    def retention(self) -> int | None:
        """An event older than the watermark by this much matters no more; None: it depends."""
        return self._kept_for

    @property
    def needs_state(self) -> bool:
        """Whether past events can matter: where single events match, only to number equal ones."""
        plan = self.prepared.plan
        return plan.length > 1 or bool(plan.negations) or self.options.id is None

    @property
    def is_partitioned(self) -> bool:
        """Whether no event has come that lacks its key: until then the key, if any, is in use."""
        return True

    @property
    @abstractmethod
    def counters(self) -> dict[str, int]:
        """What the kernel counted."""

    @abstractmethod
    def next_deadline(self) -> int | None:
        """The earliest watermark that would make something final; None when nothing waits."""

    def horizon(self) -> int | None:
        """Events up to this time matter no more; None when that is never so."""
        retention = self.retention
        return None if retention is None else self.watermark - retention

    @property
    def dead_until(self) -> int:
        """Events up to this time must not be fed again, where that is not all the same."""
        return self._dead_until

    def expires_at(self) -> int | None:
        """The watermark at which the last live event can be forgotten; None when never or none."""
        if self.retention is None or not self._chunks:
            return None
        return max(chunk.last_time for chunk in self._chunks) + self.retention

    def compact(self) -> bool:
        """Let go of live events that no instance needs, where many are; whether there were any.

        Ordinals change, so hosts call it between batches.
        """
        return False

    def _is_over(self) -> bool:
        """Whether every live event is older than all windows."""
        window = self.retention
        if window is None or self._chunks[-1].last_time + window > self.watermark:
            return False
        return max(chunk.last_time for chunk in self._chunks) + window <= self.watermark

    # -- state as events ------------------------------------------------------------------------

    @property
    def next_ordinal(self) -> int:
        """The number the next relevant event gets: what came since is `live_table(since=...)`."""
        return self._ordinal

    def live_table(self, since: int = BEGINNING) -> tuple[pa.Table, np.ndarray]:
        """The events a snapshot must hold, from ordinal `since` on, and their arrival numbers."""
        view = View(self._chunks_since(since))
        if not view.chunks:
            return (self._schema or self.form.events).empty_table(), np.zeros(0, np.int64)
        return view.table, view.positions

    def absent_flags(self, since: int = BEGINNING) -> dict[str, np.ndarray]:
        """For events that came as dicts: which of the live ones lack which attribute."""
        chunks = self._chunks_since(since)
        names = {name for chunk in chunks for name in chunk.lacks}
        return {
            name: np.concatenate([chunk.lacking(name) for chunk in chunks])
            for name in sorted(names)
        }

    def _chunks_since(self, ordinal: int) -> list[Chunk]:
        return [c.since(ordinal) for c in self._chunks if c.base + len(c) > ordinal and len(c)]

    @property
    def is_told_by_events(self) -> bool:
        """Whether the live events are all of its state, which replaying brings back."""
        return True

    def state_beside_events(self) -> list[bytes]:
        """What live events do not tell of the state, for snapshots; nothing for most engines."""
        return []

    def expect_beside_events(self, parts: list[bytes]) -> None:
        """Take what another engine of this kind wrote beside its events, before `restore`."""
        raise StateError.of(
            "other-plan",
            "the snapshot holds running totals, which this plan of the query does not keep",
            help="restore it with the plan options and the version it was taken with",
        )

    def restore(
        self,
        events: EventBatch,
        positions: np.ndarray,
        *,
        watermark: int,
        latest: int,
        position: int,
        horizon: int = BEGINNING,
    ) -> None:
        """Become the engine that had these live events; nothing it had delivered comes again.

        Events up to `horizon` are there by chance, beside live ones: others like them are gone.
        """
        self.watermark, self.latest = watermark, latest
        self._processed_to = watermark
        self._dead_until = horizon
        batch = events.batch
        if batch.num_rows:
            self._learn(batch, events.open_schema)
            self._expect(positions)
            codes = self._columns.types.read(batch.column(self.options.type))
            times, _ = event_times(batch, self.options)
            everything = np.arange(batch.num_rows)
            self._add(batch, everything, codes, times, positions, events.lacks, events.open_schema)
            self._replay_restored()
        self.position = position
        self._end_restore()

    def _end_restore(self) -> None:  # noqa: B027 (most have nothing left to do)
        """Whatever is left to do once the live events are there."""

    def catch_up(self, events: EventBatch | None, watermark: int) -> None:
        """See events, and time pass, whose matches left long ago."""
        if events is not None:
            self._take_in(events)
        self._move_on(watermark)

    # -- what a kind of engine decides ----------------------------------------------------------

    @abstractmethod
    def _start_over(self) -> None:
        """Lay the query out for the column types known now, with no event seen."""

    @abstractmethod
    def _rebuild(self) -> None:
        """Lay out anew and replay the live events: the same state."""

    @abstractmethod
    def _replay_restored(self) -> None:
        """Feed the restored events to the kernel, without delivering what was delivered before."""

    @abstractmethod
    def _process(self, first_new: int) -> list[Piece]:
        """Hand the kernel what it may see now; events from ordinal `first_new` on are new."""

    @abstractmethod
    def _prune(self) -> None:
        """Let go of what cannot matter any more."""

    def _expect(self, arrived: np.ndarray | int) -> None:  # noqa: B027 (few care)
        """Events with these arrival numbers will come, or in a row from this one on."""

    def _leave_key(self) -> None:
        """Go on without the key: an event has come that lacks it."""
        raise AssertionError("an engine without a key cannot lose it")

    def _settle(self) -> list[Piece]:
        """Matches that waited for the watermark."""
        return []

    def _take_as_it_is(
        self,
        batch: pa.RecordBatch,
        column: ColumnOf,
        codes: np.ndarray,
        times: np.ndarray,
        arrived: int,
        pieces: list[Piece],
    ) -> int:
        """Let the kernel read a batch's columns as they are; how many rows it could take."""
        return 0

    # -- one batch ------------------------------------------------------------------------------

    def _take_in(self, events: EventBatch) -> list[Piece]:
        """Take a batch; the matches that became final."""
        batch = events.batch
        if batch.num_rows == 0:
            return []
        self._learn(batch, events.open_schema)
        arrived = self.position if events.arrived is None else events.arrived
        self._expect(arrived)
        last = arrived if isinstance(arrived, int) else int(arrived[-1]) - batch.num_rows + 1
        self.position = last + batch.num_rows
        types = self._columns.types
        column = self._batch_columns.of(batch)
        codes = types.read(column(self.options.type))
        times, bad = event_times(batch, self.options, check_range=False, column=column)
        # Some are Arrow's own: kernels are compiled for arrays that none may write to.
        codes.flags.writeable = times.flags.writeable = False
        pieces: list[Piece] = []
        lacks = events.lacks
        if bad is None and not types.some_unnamed and not lacks and isinstance(arrived, int):
            taken = self._take_as_it_is(batch, column, codes, times, arrived, pieces)
            if taken == batch.num_rows:
                self._prune()
                return pieces
            if taken:
                batch, codes, times = batch.slice(taken), codes[taken:], times[taken:]
                arrived += taken
        if bad is None and not types.some_unnamed and self._is_in_order(times):
            self.latest = self.watermark = int(times[-1])
            selected = self._selector.select(codes, types.wanted, types.wanted_codes(codes.dtype))
            where: np.ndarray | int = arrived
        else:
            batch, codes, times, where, lacks = self._usable(batch, codes, arrived, lacks)
            selected = self._select(batch, codes, times)
        self._add(batch, selected, codes, times, where, lacks, events.open_schema)
        pieces += self._process(self._ordinal - len(selected)) + self._settle()
        self._prune()
        return pieces

    def _move_on(self, watermark: int) -> list[Piece]:
        """The matches that become final when no event before `watermark` will come any more."""
        if watermark > self.watermark:
            self.watermark = watermark
            self.latest = max(self.latest, min(watermark, END_OF_TIME))
        pieces = self._process(self._ordinal) + self._settle()
        self._prune()
        return pieces

    def _is_in_order(self, times: np.ndarray) -> bool:
        return (
            self._lateness == 0
            and times[0] > -MAX_TIME
            and times[-1] < MAX_TIME
            and bool(is_in_order(times, max(self.watermark, self.latest)))
        )

    def _usable(
        self,
        batch: pa.RecordBatch,
        codes: np.ndarray,
        arrived: int | np.ndarray,
        lacks: Mapping[str, np.ndarray],
    ) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray, np.ndarray | int, Mapping[str, np.ndarray]]:
        """The batch without rows that have no type or no usable time; those are set aside."""
        times, bad = event_times(batch, self.options)
        unnamed = codes < 0 if self._columns.types.some_unnamed else np.zeros(0, np.bool_)
        if bad is None and not unnamed.any():
            return batch, codes, times, arrived, lacks
        return self.set_aside.quarantine(
            batch, codes, times, bad, unnamed, arrived, lacks, self.options
        )

    def _learn(self, batch: pa.RecordBatch, open_schema: bool) -> None:
        """Note new columns and wider types; a change lays the query out anew."""
        if self._schema is not None and batch.schema == self._schema:
            return
        check_batch_schema(batch.schema, self.prepared)
        types = dict(self._column_types)
        for name in self.prepared.needed_columns:
            where = batch.schema.get_field_index(name)
            if where >= 0:
                old = types.get(name, ScalarType.UNKNOWN)
                types[name] = wider_type(name, old, scalar_type(batch.schema.field(where).type))
        if open_schema or self._schema is None:
            self._schema = merged_schema(self._schema, batch.schema)
            self.form = self.form.with_events(self._schema)
        changed = types != self._column_types
        self._column_types = types
        if changed:
            self._rebuild()

    def _arrays(
        self,
        batch: pa.RecordBatch,
        selected: np.ndarray | None,
        lacks: Mapping[str, np.ndarray],
        open_schema: bool,
        codes: np.ndarray | None = None,
        times: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        if codes is None:
            codes = self._columns.types.read(batch.column(self.options.type))
        if times is None:
            times, _ = event_times(batch, self.options)
        return self._columns.arrays(batch, selected, codes, times, lacks, open_schema=open_schema)

    @abstractmethod
    def _keep(self, arrays: dict[str, np.ndarray], rows: int) -> None:
        """Keep what the kernel reads of new events."""

    def _select(self, batch: pa.RecordBatch, codes: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Relevant rows in any order; late ones are set aside."""
        selected = np.empty(len(codes) + 1, np.int64)
        late = np.empty(len(codes), np.int64)
        count, late_count, self.latest, self.watermark = select_any_order(
            codes,
            times,
            self._columns.types.wanted,
            self.latest,
            self.watermark,
            self._lateness,
            selected,
            late,
        )
        if late_count:
            self.set_aside.add_late(batch, late[:late_count])
        return selected[:count]

    def _add(
        self,
        batch: pa.RecordBatch,
        selected: np.ndarray,
        codes: np.ndarray,
        times: np.ndarray,
        positions: np.ndarray | int,
        lacks: Mapping[str, np.ndarray],
        open_schema: bool,
    ) -> None:
        if not len(selected):
            return
        where = positions if isinstance(positions, int) else positions[selected]
        some = selected if len(selected) < batch.num_rows else None
        try:
            arrays = self._arrays(batch, some, lacks, open_schema, codes, times)
        except AbsentKey:
            self._leave_key()
            arrays = self._arrays(batch, some, lacks, open_schema, None, times)
        self._keep(arrays, len(selected))
        own = {name: rows[selected] for name, rows in lacks.items()}
        in_order = self._lateness == 0
        chunk = Chunk(self._ordinal, batch, some, where, arrays["t"], own, in_order=in_order)
        self._chunks.append(chunk)
        self._count_new(len(selected))

    def _took(
        self, batch: pa.RecordBatch, read: PlainBatch, times: np.ndarray, arrived: int
    ) -> None:
        """Note rows that were taken as they are, in order of time."""
        self.latest = self.watermark = int(times[read.taken - 1])
        rows = len(read.selected)
        if rows:
            chunk = Chunk(self._ordinal, batch, read.selected, arrived, None, {}, batch_times=times)
            self._chunks.append(chunk)
            self._count_new(rows)

    def _count_new(self, rows: int) -> None:
        self._ordinal += rows
        self._live_rows += rows
        if self._live_rows > self.options.limits.live_events:
            raise LimitExceeded.of(
                "too-many-live-events",
                f"{self._live_rows} events are kept, more than limits.live_events allows",
                notes=("an event is kept as long as it can still become part of a match",),
                help="give the query a (shorter) WITHIN, or raise limits.live_events",
            )


class LiveEngine(LiveEvents):
    """The running state of one query."""

    def feed(self, events: EventBatch) -> Matches:
        """Take a batch; the matches that became final."""
        pieces = self._take_in(events)
        return Matches(self.form, pieces)

    def advance(self, watermark: int) -> Matches:
        """No event before `watermark` will come any more; the matches this makes final."""
        pieces = self._move_on(watermark)
        return Matches(self.form, pieces)

    def close(self) -> Matches:
        """End of input: time runs on for ever, so every deadline passes."""
        return self.advance(END_OF_TIME) if self.options.close_at_end else Matches(self.form)


def too_many_instances(waiting: int) -> LimitExceeded:
    """The error for more partial matches than the limit allows."""
    return LimitExceeded.of(
        "too-many-instances",
        f"{waiting} partial matches wait, more than limits.live_events allows",
        help="bound the query with OCCURS WITHIN or FILTER, or raise limits.live_events",
    )
