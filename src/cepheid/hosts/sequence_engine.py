"""Runs one sequence query over batches of events, in process; every host drives this engine.

The road of a batch: type codes -> relevant rows (late ones set aside) -> arrays -> stacks kernel ->
selection -> negation -> matches. Events are handed to the kernel in time order. A monotone query
(no negation) sees them at once, and when one arrives out of order the stacks are taken back to its
time and the events after it are fed again, so that a match leaves in the call that brought its last
missing event. A query with negation sees events once the watermark has reached them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.hosts.batch_columns import ColumnOf
from cepheid.hosts.event_columns import EventColumns
from cepheid.hosts.event_reader import AbsentKey
from cepheid.hosts.live_engine import BEGINNING, END_OF_TIME, LiveEngine
from cepheid.hosts.match_columns import holds_for
from cepheid.hosts.matches import Flat, Piece, kernel_output
from cepheid.hosts.negation import NegationProbes
from cepheid.hosts.plain_columns import PlainColumns
from cepheid.hosts.store import Chunk, LiveColumns, View, tidy
from cepheid.kernels.scans import SequenceScan, start_scan
from cepheid.model.event_time import MAX_TIME
from cepheid.planner.prepare import Prepared
from cepheid.planner.sequence_layout import Layout
from cepheid.planner.sequence_plan import SequencePlan

_SPARE_KEYS = 1 << 16
_NO_WINDOW = 2 * MAX_TIME
_CONSECUTIVE = np.zeros(0, np.int64)


class SequenceEngine(LiveEngine):
    """The running state of one query; see the module's text for how a batch goes through it."""

    _columns: EventColumns

    def __init__(
        self,
        prepared: Prepared,
        *,
        lateness: int = 0,
        first_events: tuple[int, int] | None = None,
    ) -> None:
        """`lateness` in the time column's unit; `first_events` limits which events may start."""
        assert isinstance(prepared.plan, SequencePlan)
        self._plan = prepared.plan
        self._partitioned = True
        self._frontier = BEGINNING
        self._parked = np.zeros((0, self._plan.length), np.int64)
        self._order_base = 0
        self._numbers_rise = True
        self._new: dict[str, Any] = {}
        super().__init__(prepared, lateness=lateness, first_events=first_events)

    # -- what hosts call ------------------------------------------------------------------------

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
        if self._plain is None:
            return 0
        read = self._plain.read(batch, column, codes, times, max(self.watermark, self.latest))
        if read is None:
            return 0
        inputs = self._columns.complete(read.mask, read.times, batch, read.selected, codes)
        inputs |= {"mask": read.mask, "t": read.times, "k0": read.keys}
        rows = len(read.selected)
        first = self._ordinal
        self._took(batch, read, times, arrived)
        if self._by_arrival:
            pieces += self._run(inputs, rows, arrived, numbers=read.selected)
        else:
            pieces += self._run(inputs, rows, first)
        return read.taken

    @property
    def layout(self) -> Layout:
        """How the query runs now; it changes when column types or absent keys show up."""
        return self._layout

    @property
    def is_partitioned(self) -> bool:
        """Whether no event has come that lacks its key: until then the key, if any, is in use."""
        return self._partitioned

    @property
    def counters(self) -> dict[str, int]:
        """What the kernel counted (plan option `counting`)."""
        names = ("pushed", "edges", "sequences")
        return dict(zip(names, (int(c) for c in self._stacks.counters), strict=True))

    # -- state as events ------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """The earliest watermark that would make something final; None when nothing waits."""
        times = []
        if len(self._held):
            times.append(int(self._live.take("t", self._held).min()))
        if len(self._parked):
            times.append(int(self._probes.due_times(self._parked).min()))
        return min(times, default=None)

    # -- building up ----------------------------------------------------------------------------

    def _start_over(self) -> None:
        layout = self.prepared.layout(
            self._column_types, partitioned=self._partitioned, undoable=self._lateness > 0
        )
        # Events that never come out of order and have no witnesses to probe need not be kept in
        # arrays: the stacks have all they need, and a rebuild reads the chunks again. Such events
        # the kernel may call by their arrival numbers, so that these need not be looked up.
        self._keeps_arrays = self._lateness > 0 or bool(layout.probes)
        self._layout = layout
        self._columns = EventColumns(layout, self.options, self._first_events)
        self._stacks = self._make_stacks(layout)
        self._live = LiveColumns()
        self._live.base = self._live.end = self._chunks[0].base if self._chunks else self._ordinal
        self._probes = NegationProbes(layout, self._columns, self._live)
        self._plain = None
        if not self._keeps_arrays and self.options.types is None and layout.is_plain:
            self._plain = PlainColumns(self._columns)
        self._by_arrival = (
            self._numbers_rise and self._plain is not None and layout.shape.factorised
        )

    def _make_stacks(self, layout: Layout) -> SequenceScan:
        return start_scan(layout.scan, layout.shape, layout.families)

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
                self._run_chunk(chunk, emit=False)
        if self._keeps_arrays:
            self._replay(emit=False)
        self._stacks.counters[:] = counted  # what is replayed was counted when it came

    def _replay_restored(self) -> None:
        if self._keeps_arrays:
            self._replay(emit=bool(self._probes.at_end))
        else:
            self._run_chunk(self._chunks[-1], emit=False)

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

    # -- one batch ------------------------------------------------------------------------------

    def _keep(self, arrays: dict[str, np.ndarray], rows: int) -> None:
        if self._keeps_arrays:
            self._live.append(arrays, rows)
        else:
            self._new = arrays

    def _expect(self, arrived: np.ndarray | int) -> None:
        if not self._by_arrival:
            return
        first = arrived if isinstance(arrived, int) else arrived[0]
        rising = not self._chunks or first > self._chunks[-1].last_position
        if not isinstance(arrived, int):
            rising = rising and bool((arrived[1:] > arrived[:-1]).all())
        if not rising:  # then they do not tell events apart, and ordinals have to
            self._numbers_rise = False
            self._rebuild()

    def _leave_key(self) -> None:
        self._partitioned = False
        self._rebuild()

    def _process(self, first_new: int) -> list[Piece]:
        """Hand the kernel what it may see now."""
        if not self._keeps_arrays:
            if first_new == self._ordinal:
                return []
            return self._run_chunk(self._chunks[-1])
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

    def _run_chunk(self, chunk: Chunk, *, emit: bool = True) -> list[Piece]:
        """Let the newest events into the kernel, where it alone keeps them."""
        if self._by_arrival:
            return self._run(self._new, len(chunk), numbers=chunk.positions, emit=emit)
        return self._run(self._new, len(chunk), chunk.base, emit=emit)

    def _run_range(self, begin: int, end: int) -> list[Piece]:
        inputs = {name: self._live.slice(name, begin, end) for name in self._live.names()}
        return self._run(inputs, end - begin, begin)

    def _run_ordinals(self, ordinals: np.ndarray, *, emit: bool = True) -> list[Piece]:
        if not len(ordinals):
            return []
        inputs = {name: self._live.take(name, ordinals) for name in self._live.names()}
        return self._run(inputs, len(ordinals), numbers=ordinals, emit=emit)

    def _run(
        self,
        inputs: dict[str, Any],
        rows: int,
        first: int = 0,
        *,
        numbers: np.ndarray = _CONSECUTIVE,
        emit: bool = True,
    ) -> list[Piece]:
        """Let events into the kernel, which are called `first` and on, or first + numbers."""
        if not rows:
            return []
        if not len(numbers) and (self._layout.probes or self._layout.scan != "stacks"):
            first, numbers = 0, np.arange(first, first + rows)  # these read them one by one
        window = self._plan.window
        inputs |= {
            "row": numbers,
            "row_base": first,
            "emit": int(emit and not (window is not None and window <= 0)),
            "W": _NO_WINDOW if window is None else window,
            "prune_to": self._prune_time(),
            "order_base": self._order_base,
            "ci": self._columns.ints,
            "cf": self._columns.floats,
        }
        self._order_base += rows
        if self._columns.keys is not None:
            self._stacks.admit_keys(self._columns.keys.count)
        self._probes.note_witnesses(inputs)
        view = View(list(self._chunks))
        pieces: list[Piece] = []

        def deliver(out: dict[str, np.ndarray], filled: int, listed: int) -> None:
            part = kernel_output(self.layout.shape, out, filled, listed)
            if isinstance(part, Flat) and self.layout.needs_flat_rows:
                part = Flat(self._chosen(part.rows, view))
            pieces.append(Piece(part, view, self._by_arrival))

        self._stacks.run(inputs, rows, deliver)
        if self._probes.at_end and emit:
            self._park(pieces)
            return []
        return pieces

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
        horizon = self.horizon()
        if horizon is None or not self._chunks:
            return
        while self._chunks and self._chunks[0].last_time <= horizon:
            self._live_rows -= len(self._chunks.pop(0))
        first = self._chunks[0].base if self._chunks else self._ordinal
        self._live.drop_before(first)
        self._probes.drop_until(horizon)
        tidy(self._chunks)
        keys = self._columns.keys
        known = self._columns.strings.count + (keys.count if keys else 0)
        if known > 4 * self.live_rows + _SPARE_KEYS:
            self._rebuild()
