"""Runs one plain chain of successors (NEXT's `A ; B ; C`) over batches of events.

To hosts it is what the engine of successors is: events are held until the watermark has passed
their time, what the kernel has found is final, and the live events are those from the first event
of any waiting instance on (hosts/succession_engine.py). But its kernel is made for chains, and it
reads a batch in order of time with close keys as it is.

It keeps nothing of an event but the chunk it came in: whoever needs the kernel's arrays again, to
start over or to let go of what no instance needs, makes them from the chunks.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.hosts.batch_columns import ColumnOf
from cepheid.hosts.event_columns import EventColumns
from cepheid.hosts.live_engine import LiveEngine, too_many_instances
from cepheid.hosts.matches import Piece
from cepheid.hosts.plain_columns import PlainColumns
from cepheid.hosts.store import Chunk, View, tidy
from cepheid.kernels.chain_state import NO_ROWS, ChainState, Rows
from cepheid.planner.chains import Chains
from cepheid.planner.prepare import Prepared

_WORTH_COMPACTING = 1 << 15
_SPARE_ROWS = 512
_SPARE_KEYS = 1 << 16


class ChainEngine(LiveEngine):
    """The running state of one query; see the module's text."""

    _columns: EventColumns

    # An instance that was consumed would live on in a state from before, without what consumed it.
    forgets_by_time = False

    rows_as_they_are = 0
    """How many rows the kernel has read in the columns they came in."""

    _held_rows = NO_ROWS
    _new = NO_ROWS
    _looked_at = 0

    def __init__(
        self,
        prepared: Prepared,
        *,
        lateness: int = 0,
        first_events: tuple[int, int] | None = None,
    ) -> None:
        """`lateness` in the time column's unit; `first_events` limits which events may start."""
        self._compact_at = _WORTH_COMPACTING
        super().__init__(prepared, lateness=lateness, first_events=first_events)

    # -- what hosts call ------------------------------------------------------------------------

    @property
    def counters(self) -> dict[str, int]:
        """Entries looked at, entries that began to wait, matches found."""
        names = ("touched", "started", "finished")
        return dict(zip(names, (int(c) for c in self._state.counters), strict=True))

    @property
    def instances(self) -> int:
        """Partial matches that wait for a successor."""
        return self._state.survey(self._processed_to)[0]

    def next_deadline(self) -> int | None:
        """The earliest watermark that would let a held event in."""
        return int(self._held_rows.times.min()) + 1 if len(self._held_rows) else None

    def horizon(self) -> int | None:
        """Events up to this time matter no more; None when that is never so."""
        return self._dead_until

    def compact(self) -> bool:
        """Drop the events that no instance of their own key needs.

        Without a window the instance of a key that has gone silent waits for ever, and would hold
        all events since it began. But only events of its own key decide what becomes of it.
        """
        if not self._layout.chain.key or self._live_rows < self._compact_at:
            return False
        earliest = self._state.beginnings(self._processed_to)
        needed = []
        for chunk in self._chunks:
            rows = self._rows_of(chunk)
            needed.append(np.flatnonzero(rows.times >= self._needed_from(rows, earliest)))
        left = sum(len(places) for places in needed)
        self._compact_at = max(_WORTH_COMPACTING, 2 * left)
        if 2 * left > self._live_rows:
            return False
        base, chunks = self._ordinal - left, []
        for chunk, places in zip(self._chunks, needed, strict=True):
            if len(places):
                chunks.append(chunk.only(places, base))
            base += len(places)
        self._chunks = chunks
        self._live_rows = self._looked_at = left
        self._rebuild()
        return True

    def _needed_from(self, rows: Rows, earliest: np.ndarray) -> np.ndarray:
        """For each event the time from which on the instances of its key need events."""
        known = np.append(earliest, self._processed_to)
        needed: np.ndarray = np.minimum(
            known[np.minimum(rows.keys, len(earliest))], self._processed_to
        )
        return needed

    # -- building up ----------------------------------------------------------------------------

    def _start_over(self) -> None:
        layout = self.prepared.chain_layout(self._column_types)
        self._layout = layout
        self._columns = EventColumns(layout, self.options, self._first_events)
        self._state = ChainState(layout.steps, layout.chain.windows)
        self._held_rows = NO_ROWS
        in_order = self._lateness == 0 and self.options.types is None
        self._plain = PlainColumns(self._columns) if in_order and layout.is_plain else None

    def _rebuild(self) -> None:
        """Lay out anew and replay the live events: the same instances."""
        counted, undefined = self._state.counters, self._columns.undefined_rows
        self._start_over()
        rows = NO_ROWS
        for chunk in self._chunks:
            rows = rows.and_then(self._rows_of(chunk))
        self._replay(rows)
        self._state.counters[:] = counted  # what is replayed was counted when it came
        self._columns.undefined_rows = undefined

    def _replay_restored(self) -> None:
        self._replay(self._new)

    def _replay(self, rows: Rows) -> None:
        is_waiting = rows.times >= self._processed_to
        self._held_rows = rows.chosen(np.flatnonzero(is_waiting))
        seen = np.flatnonzero(~is_waiting & (rows.times > self._dead_until))
        self._take(_in_order(rows.chosen(seen)))

    def _rows_of(self, chunk: Chunk) -> Rows:
        counted = self._columns.undefined_rows
        arrays = self._arrays(chunk.batch, None, chunk.lacks, True)
        self._columns.undefined_rows = counted
        return _rows(arrays, chunk.base)

    def _keep(self, arrays: dict[str, np.ndarray], rows: int) -> None:
        self._new = _rows(arrays, self._ordinal)

    # -- one batch ------------------------------------------------------------------------------

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
        self._columns.complete(read.mask, read.times, batch, read.selected, codes)
        rows = Rows(read.mask, read.times, read.keys, self._ordinal)
        self.rows_as_they_are += read.taken
        self._took(batch, read, times, arrived)
        pieces += self._after_held(rows)
        return read.taken

    def _process(self, first_new: int) -> list[Piece]:
        """Let in what lies before the watermark, and hold the rest."""
        new = self._new if first_new < self._ordinal else NO_ROWS
        self._processed_to = self.watermark
        rows = self._held_rows.and_then(new)
        ready = rows.times < self.watermark
        self._held_rows = rows.chosen(np.flatnonzero(~ready))
        return self._pieces(_in_order(rows.chosen(np.flatnonzero(ready))))

    def _after_held(self, new: Rows) -> list[Piece]:
        """The same for events in order, none of which lies before those that are held.

        As events come in order, those held have one time: that of the watermark before.
        """
        self._processed_to = self.watermark
        held, pieces = self._held_rows, []
        if len(held) and held.times[0] < self.watermark:
            pieces = self._pieces(held)
            held = NO_ROWS
        ready = int(np.searchsorted(new.times, self.watermark))
        pieces += self._pieces(new.part(0, ready))
        self._held_rows = held.and_then(new.kept(ready))
        return pieces

    def _pieces(self, rows: Rows) -> list[Piece]:
        found = self._take(rows)
        return [] if found is None else [Piece(found, View(list(self._chunks)))]

    def _take(self, rows: Rows) -> Chains | None:
        if not len(rows):
            return None
        if self._columns.keys is not None:
            self._state.admit_keys(self._columns.keys.count)
        found = self._state.take(rows, self._dead_until)
        if not len(found):
            return None
        steps = self._layout.steps
        return Chains(np.arange(steps, len(found) + 1, steps), found)

    def _prune(self) -> None:
        """Let go of the events that are older than every instance."""
        if not self._chunks:
            return
        # Looking costs as much as there is alive: it pays when that has doubled, or all is over.
        if self._live_rows < 2 * self._looked_at + _SPARE_ROWS and not self._is_over():
            return
        waiting, earliest = self._state.survey(self._processed_to)
        if waiting > self.options.limits.live_events:
            raise too_many_instances(waiting)
        if len(self._held_rows):
            earliest = min(earliest, int(self._held_rows.times.min()))
        self._dead_until = min(earliest, self._processed_to) - 1
        while self._chunks and self._chunks[0].last_time <= self._dead_until:
            self._live_rows -= len(self._chunks.pop(0))
        tidy(self._chunks)
        self._looked_at = self._live_rows
        keys = self._columns.keys
        known = self._columns.strings.count + (keys.count if keys else 0)
        if known > 4 * self._live_rows + _SPARE_KEYS:
            self._rebuild()


def _rows(arrays: dict[str, np.ndarray], first: int) -> Rows:
    keys = arrays.get("k0")
    return Rows(
        arrays["mask"],
        arrays["t"],
        np.zeros(len(arrays["t"]), np.int64) if keys is None else keys,
        first,
    )


def _is_sorted(rows: Rows) -> bool:
    return bool((rows.times[1:] >= rows.times[:-1]).all())


def _in_order(rows: Rows) -> Rows:
    """By time and arrival (SPEC A1.1: the order in which streams deliver)."""
    if _is_sorted(rows):
        return rows
    return rows.chosen(np.lexsort((rows.numbers, rows.times)))
