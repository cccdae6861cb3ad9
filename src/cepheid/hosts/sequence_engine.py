"""Runs one sequence query over batches of events, in process; every host drives this engine.

The road of a batch: type codes -> relevant rows (late ones set aside) -> arrays -> stacks kernel ->
selection -> negation -> matches. Events are handed to the kernel in time order. A monotone query
(no negation) sees them at once, and when one arrives out of order the stacks are taken back to its
time and the events after it are fed again, so that a match leaves in the call that brought its last
missing event. A query with negation sees events once the watermark has reached them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.batch_schema import check_batch_schema, merged_schema
from cepheid.hosts.event_columns import AbsentKey, EventColumns
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.match_columns import holds_for
from cepheid.hosts.matches import Flat, Groups, Matches, Piece, kernel_output
from cepheid.hosts.negation import NegationProbes
from cepheid.hosts.plain_columns import MOST_PLAIN_TYPES, PlainColumns
from cepheid.hosts.set_aside import SetAside, event_times
from cepheid.hosts.store import Chunk, LiveColumns, View
from cepheid.kernels.relevance import RowSelector, is_in_order, select_any_order
from cepheid.kernels.scans import SequenceScan, start_scan
from cepheid.kernels.stacks import Stacks
from cepheid.model.errors import LimitExceeded
from cepheid.model.event_time import MAX_TIME
from cepheid.planner.match_schema import scalar_type, wider_type
from cepheid.planner.prepare import Prepared
from cepheid.planner.sequence_layout import Layout

BEGINNING = -(2**62)
END_OF_TIME = 2**62
_SPARE_KEYS = 1 << 16
_NO_WINDOW = 2 * MAX_TIME


class SequenceEngine:
    """The running state of one query; see the module's text for how a batch goes through it."""

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
        self._plan = prepared.plan
        self._lateness = lateness
        self._first_events = first_events
        self._column_types: dict[str, ScalarType] = dict(prepared.column_types)
        self._partitioned = True
        self._chunks: list[Chunk] = []
        self._ordinal = 0
        self._frontier = BEGINNING
        self._processed_to = BEGINNING  # the watermark may be ahead of what the kernel has seen
        self._held = np.zeros(0, np.int64)
        self._parked = np.zeros((0, self._plan.length), np.int64)
        self._schema: pa.Schema | None = None
        self._selector = RowSelector()
        self._live_rows = 0
        self._order_base = 0
        self._new: dict[str, Any] = {}
        self._start_over()

    # -- what hosts call ------------------------------------------------------------------------

    def feed(self, events: EventBatch) -> Matches:
        """Take a batch; the matches that became final."""
        batch = events.batch
        if batch.num_rows == 0:
            return Matches(self.form)
        self._learn(batch, events.open_schema)
        arrived = self.position
        self.position += batch.num_rows
        types = self._columns.types
        codes = types.read(batch.column(self.options.type))
        times, bad = event_times(batch, self.options, check_range=False)
        pieces: list[Piece] = []
        lacks = events.lacks
        if bad is None and not types.some_unnamed and self._plain is not None and not lacks:
            taken = self._take_plain(batch, codes, times, arrived, pieces)
            if taken == batch.num_rows:
                self._prune()
                return Matches(self.form, pieces)
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
        pieces += self._process(self._ordinal - len(selected))
        if len(self._parked):
            pieces += self._settle()
        self._prune()
        return Matches(self.form, pieces)

    def _is_in_order(self, times: np.ndarray) -> bool:
        return (
            self._lateness == 0
            and times[0] > -MAX_TIME
            and times[-1] < MAX_TIME
            and bool(is_in_order(times, max(self.watermark, self.latest)))
        )

    def _take_plain(
        self,
        batch: pa.RecordBatch,
        codes: np.ndarray,
        times: np.ndarray,
        arrived: int,
        pieces: list[Piece],
    ) -> int:
        """Let the kernel read a batch's columns as they are; how many rows it could take."""
        assert self._plain is not None and isinstance(self._stacks, Stacks)
        inputs = self._plain.inputs(batch)
        wanted = self._columns.types.wanted_codes(codes.dtype)
        ends = times[0] > -MAX_TIME and times[-1] < MAX_TIME
        if inputs is None or not ends or not 0 < len(wanted) <= MOST_PLAIN_TYPES:
            return 0
        if self._columns.keys is not None:
            self._stacks.admit_keys(self._columns.keys.count)
        inputs |= {"types": codes, "bits": self._columns.types.bits, "wanted": wanted, "t": times}
        inputs |= {"latest": max(self.watermark, self.latest), "row_base": self._ordinal}
        inputs |= self._call_inputs(emit=True)
        parts: list[Flat | Groups] = []
        taken, selected = self._stacks.run_plain(
            inputs,
            batch.num_rows,
            lambda out, filled, listed: parts.append(
                kernel_output(self.layout.shape, out, filled, listed)
            ),
        )
        self._order_base += len(selected)
        if taken:
            self.latest = self.watermark = int(times[taken - 1])
        if len(selected):
            self._chunks.append(
                Chunk(self._ordinal, batch, selected, arrived, None, {}, batch_times=times)
            )
            self._count_new(len(selected))
        view = View(list(self._chunks))
        pieces += [Piece(part, view) for part in parts]
        return taken

    def _usable(
        self,
        batch: pa.RecordBatch,
        codes: np.ndarray,
        arrived: int,
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

    def advance(self, watermark: int) -> Matches:
        """No event before `watermark` will come any more; the matches this makes final."""
        if watermark > self.watermark:
            self.watermark = watermark
            self.latest = max(self.latest, min(watermark, END_OF_TIME))
        pieces = self._process(self._ordinal) + self._settle()
        self._prune()
        return Matches(self.form, pieces)

    def close(self) -> Matches:
        """End of input: time runs on for ever, so every deadline passes."""
        return self.advance(END_OF_TIME) if self.options.close_at_end else Matches(self.form)

    @property
    def layout(self) -> Layout:
        """How the query runs now; it changes when column types or absent keys show up."""
        return self._columns.layout

    @property
    def is_partitioned(self) -> bool:
        """Whether no event has come that lacks its key: until then the key, if any, is in use."""
        return self._partitioned

    @property
    def live_rows(self) -> int:
        """Events kept because they can still be part of a match."""
        return self._live_rows

    @property
    def counters(self) -> dict[str, int]:
        """What the kernel counted (plan option `counting`)."""
        names = ("pushed", "edges", "sequences")
        return dict(zip(names, (int(c) for c in self._stacks.counters), strict=True))

    # -- state as events ------------------------------------------------------------------------

    @property
    def next_ordinal(self) -> int:
        """The number the next relevant event gets: what came since is `live_table(since=...)`."""
        return self._ordinal

    def live_table(self, since: int = BEGINNING) -> tuple[pa.Table, np.ndarray]:
        """The events a snapshot must hold, from ordinal `since` on, and their arrival numbers."""
        view = View([c for c in self._chunks if len(c) and c.base >= since])
        if not view.chunks:
            return (self._schema or self.form.events).empty_table(), np.zeros(0, np.int64)
        return view.table, view.positions

    def absent_flags(self, since: int = BEGINNING) -> dict[str, np.ndarray]:
        """For events that came as dicts: which of the live ones lack which attribute."""
        chunks = [c for c in self._chunks if len(c) and c.base >= since]
        names = {name for chunk in chunks for name in chunk.lacks}
        return {
            name: np.concatenate([chunk.lacking(name) for chunk in chunks])
            for name in sorted(names)
        }

    def next_deadline(self) -> int | None:
        """The earliest watermark that would make something final; None when nothing waits."""
        times = []
        if len(self._held):
            times.append(int(self._live.take("t", self._held).min()))
        if len(self._parked):
            times.append(int(self._probes.due_times(self._parked).min()))
        return min(times, default=None)

    def expires_at(self) -> int | None:
        """The watermark at which the last live event can be forgotten; None when never or none."""
        if self._plan.retention is None or not self._chunks:
            return None
        return max(chunk.last_time for chunk in self._chunks) + self._plan.retention

    def restore(
        self,
        events: EventBatch,
        positions: np.ndarray,
        *,
        watermark: int,
        latest: int,
        position: int,
    ) -> None:
        """Become the engine that had these live events; nothing it had delivered comes again."""
        self.watermark, self.latest = watermark, latest
        self._processed_to = watermark
        batch = events.batch
        if batch.num_rows:
            self._learn(batch, events.open_schema)
            codes = self._columns.types.read(batch.column(self.options.type))
            times, _ = event_times(batch, self.options)
            everything = np.arange(batch.num_rows)
            self._add(batch, everything, codes, times, positions, events.lacks, events.open_schema)
            if self._keeps_arrays:
                self._replay(emit=bool(self._probes.at_end))
            else:
                self._run(self._new, np.arange(self._ordinal), emit=False)
        self.position = position

    # -- building up ----------------------------------------------------------------------------

    def _start_over(self) -> None:
        layout = self.prepared.layout(
            self._column_types, partitioned=self._partitioned, undoable=self._lateness > 0
        )
        # Events that never come out of order and have no witnesses to probe need not be kept in
        # arrays: the stacks have all they need, and a rebuild reads the chunks again.
        self._keeps_arrays = self._lateness > 0 or bool(layout.probes)
        self._columns = EventColumns(layout, self.options, self._first_events)
        self._stacks = self._make_stacks(layout)
        self._live = LiveColumns()
        self._live.base = self._live.end = self._chunks[0].base if self._chunks else self._ordinal
        self._probes = NegationProbes(layout, self._columns, self._live)
        self._plain = None
        if not self._keeps_arrays and self._first_events is None and self.options.types is None:
            self._plain = PlainColumns.of(self._columns)

    def _make_stacks(self, layout: Layout) -> SequenceScan:
        return start_scan(layout.scan, layout.shape, layout.families)

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

    def _rebuild(self) -> None:
        """Lay out anew and replay the live events: the same state, other stacks."""
        counted = self._stacks.counters
        if not self._keeps_arrays:  # then every event was processed as it came
            self._processed_to = self.watermark
        self._start_over()
        for chunk in self._chunks:
            try:
                arrays = self._arrays(chunk.batch, None, chunk.lacks, True)
            except AbsentKey:  # an event from before the key was chosen
                self._partitioned = False
                self._stacks.counters[:] = counted
                self._rebuild()
                return
            self._keep(arrays, len(chunk))
            if not self._keeps_arrays:
                ordinals = np.arange(chunk.base, chunk.base + len(chunk))
                self._run(self._new, ordinals, emit=False)
        if self._keeps_arrays:
            self._replay(emit=False)
        self._stacks.counters[:] = counted  # what is replayed was counted when it came

    def _replay(self, *, emit: bool) -> None:
        """Feed what was fed before to empty stacks, and hold what was held."""
        processed = np.arange(self._live.base, self._live.end)
        if not len(processed):
            return
        times = self._live.slice("t", self._live.base, self._live.end)
        if not self._plan.is_monotone:
            waiting = times > self._processed_to
            self._held = processed[waiting]
            processed = processed[~waiting]
            times = times[~waiting]
        processed = processed[np.lexsort((processed, times))]
        if len(processed):
            self._frontier = int(times.max())
        self._run_ordinals(processed, emit=emit)
        if emit:  # candidates whose deadline had passed were settled before
            self._parked = self._parked[~self._probes.is_due(self._parked, self.watermark)]

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

    def _keep(self, arrays: dict[str, np.ndarray], rows: int) -> None:
        if self._keeps_arrays:
            self._live.append(arrays, rows)
        else:
            self._new = arrays

    # -- one batch ------------------------------------------------------------------------------

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
        try:
            arrays = self._arrays(batch, selected, lacks, open_schema, codes, times)
        except AbsentKey:
            self._partitioned = False
            self._rebuild()
            arrays = self._arrays(batch, selected, lacks, open_schema, None, times)
        self._keep(arrays, len(selected))
        own = {name: rows[selected] for name, rows in lacks.items()}
        whole = selected if len(selected) < batch.num_rows else None
        in_order = self._lateness == 0
        chunk = Chunk(self._ordinal, batch, whole, where, arrays["t"], own, in_order=in_order)
        self._chunks.append(chunk)
        self._count_new(len(selected))

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

    def _process(self, first_new: int) -> list[Piece]:
        """Hand the kernel what it may see now."""
        if not self._keeps_arrays:
            if first_new == self._ordinal:
                return []
            return self._run(self._new, np.arange(first_new, self._ordinal))
        if self._plan.is_monotone:
            return self._process_at_once(first_new)
        new = np.arange(first_new, self._ordinal)
        if not len(self._held):
            if not len(new):
                return []
            times = self._live.slice("t", first_new, self._ordinal)
            if self._lateness == 0 and times[-1] <= self.watermark:
                self._processed_to = self.watermark
                return self._run_range(first_new, self._ordinal)
        waiting = np.concatenate([self._held, new])
        times = self._live.take("t", waiting)
        order = np.lexsort((waiting, times))
        ready = int(np.searchsorted(times[order], self.watermark, side="right"))
        self._held = waiting[order[ready:]]
        self._processed_to = self.watermark
        return self._run_ordinals(waiting[order[:ready]])

    def _process_at_once(self, first_new: int) -> list[Piece]:
        if first_new == self._ordinal:
            return []
        times = self._live.slice("t", first_new, self._ordinal)
        earliest = int(times.min())
        if earliest >= self._frontier and bool((times[1:] >= times[:-1]).all()):
            self._frontier = int(times[-1])
            return self._run_range(first_new, self._ordinal)
        if earliest > self._frontier:
            order = np.lexsort((np.arange(len(times)), times))
            self._frontier = int(times.max())
            return self._run_ordinals(first_new + order)
        self._stacks.undo(earliest)
        everything = np.arange(self._live.base, self._ordinal)
        all_times = self._live.slice("t", self._live.base, self._ordinal)
        again = everything[(all_times >= earliest) | (everything >= first_new)]
        times = self._live.take("t", again)
        self._frontier = max(self._frontier, int(times.max()))
        pieces = self._run_ordinals(again[np.lexsort((again, times))])
        fresh = []
        for piece in pieces:
            rows = piece.rows
            fresh.append(Piece(Flat(rows[rows.max(axis=1) >= first_new]), piece.view))
        return fresh

    def _run_range(self, begin: int, end: int) -> list[Piece]:
        inputs = {name: self._live.slice(name, begin, end) for name in self._live.names()}
        return self._run(inputs, np.arange(begin, end))

    def _run_ordinals(self, ordinals: np.ndarray, *, emit: bool = True) -> list[Piece]:
        if not len(ordinals):
            return []
        inputs = {name: self._live.take(name, ordinals) for name in self._live.names()}
        return self._run(inputs, ordinals, emit=emit)

    def _run(
        self, inputs: dict[str, Any], ordinals: np.ndarray, *, emit: bool = True
    ) -> list[Piece]:
        inputs["row"] = ordinals
        inputs |= self._call_inputs(emit=emit)
        self._order_base += len(ordinals)
        if self._columns.keys is not None:
            self._stacks.admit_keys(self._columns.keys.count)
        self._probes.note_witnesses(inputs)
        view = View(list(self._chunks))
        pieces: list[Piece] = []

        def deliver(out: dict[str, np.ndarray], filled: int, listed: int) -> None:
            part = kernel_output(self.layout.shape, out, filled, listed)
            if isinstance(part, Flat) and self.layout.needs_flat_rows:
                part = Flat(self._chosen(part.rows, view))
            pieces.append(Piece(part, view))

        self._stacks.run(inputs, len(ordinals), deliver)
        if self._probes.at_end and emit:
            self._park(pieces)
            return []
        return pieces

    def _call_inputs(self, *, emit: bool) -> dict[str, Any]:
        """The arguments that are the same for both ways into the kernel."""
        window = self._plan.window
        return {
            "emit": int(emit and not (window is not None and window <= 0)),
            "W": _NO_WINDOW if window is None else window,
            "prune_to": self._prune_time(),
            "order_base": self._order_base,
            "ci": self._columns.ints,
            "cf": self._columns.floats,
        }

    def _prune_time(self) -> int:
        """Stack entries at or before this are gone for good, whatever still arrives."""
        if self._lateness == 0 or not self._plan.is_monotone:
            return END_OF_TIME
        retention = self._plan.retention
        return BEGINNING if retention is None else self.watermark - retention

    # -- after construction ---------------------------------------------------------------------

    def _chosen(self, rows: np.ndarray, view: View) -> np.ndarray:
        """Candidates that pass the selection on top and the negations known by now."""
        if self.layout.selection:
            holds = holds_for(
                self.layout.selection,
                self._plan,
                view,
                self.options,
                lambda variable: rows[:, self._plan.index(variable)],
                len(rows),
            )
            return self._probes.survivors(rows[holds], view)
        return self._probes.survivors(rows, view)

    def _park(self, pieces: list[Piece]) -> None:
        """Candidates of a negated end wait for their deadline."""
        self._parked = np.concatenate([self._parked, *(piece.rows for piece in pieces)])

    def _settle(self) -> list[Piece]:
        if not len(self._parked):
            return []
        due = self._probes.is_due(self._parked, self.watermark)
        if not due.any():
            return []
        view = View(list(self._chunks))
        rows = self._probes.survivors_at_end(self._parked[due], view)
        self._parked = self._parked[~due]
        return [Piece(Flat(rows), view)]

    def _prune(self) -> None:
        retention = self._plan.retention
        if retention is None or not self._chunks:
            return
        horizon = self.watermark - retention
        while self._chunks and self._chunks[0].last_time <= horizon:
            self._live_rows -= len(self._chunks.pop(0))
        first = self._chunks[0].base if self._chunks else self._ordinal
        self._live.drop_before(first)
        self._probes.drop_until(horizon)
        for chunk in self._chunks[:-2]:
            chunk.shrink()
        keys = self._columns.keys
        known = self._columns.strings.count + (keys.count if keys else 0)
        if known > 4 * self.live_rows + _SPARE_KEYS:
            self._rebuild()
