"""Runs many sequences over batches of events as one: each event is looked at and kept once.

Matches of sequences leave at once, as in the engine of one without negation: when an event arrives
out of order, the rings are taken back to its time and what came after it is fed again. A late event
could come between those of a succession, so events of successions are held until the watermark has
passed them, unless they come in order.

Where an event lacks its key, equality is not transitive any more, and the queries go on separately,
each with an engine of its own (docs/semantics.md#null-and-absent); live events stay in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.event_reader import AbsentKey
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.live_engine import BEGINNING, END_OF_TIME, LiveEvents
from cepheid.hosts.many_matches import ManyMatches
from cepheid.hosts.matches import Flat, Matches, Piece
from cepheid.hosts.seen_events import seen_by, seen_rows
from cepheid.hosts.sequence_engine import SequenceEngine
from cepheid.hosts.set_aside import event_times
from cepheid.hosts.shared_columns import SharedColumns
from cepheid.hosts.snapshot import with_notes, without_notes
from cepheid.hosts.store import LiveColumns, View, tidy
from cepheid.kernels.shared_events import Rows, SharedEvents
from cepheid.planner.active import Active
from cepheid.planner.prepare import Prepared
from cepheid.planner.shared_sequences import (
    Shareable,
    SharedSequences,
    share_sequences,
    shareable,
)

_SPARE_KEYS = 1 << 16
_CONSECUTIVE = np.zeros(0, np.int64)


class SharedSequenceEngine(LiveEvents):
    """The running state of many sequences that nothing but a key and windows hold together."""

    def __init__(
        self, queries: Sequence[Prepared], active: Sequence[Active], *, lateness: int = 0
    ) -> None:
        """Queries of one sharing group, and when each of them sees events."""
        self.queries = tuple(queries)
        self._active = tuple(active)
        self._frontier = BEGINNING
        self._new: dict[str, np.ndarray] = {}
        self._apart: tuple[SequenceEngine, ...] = ()
        self._time_before = (BEGINNING, BEGINNING, 0)
        names = sorted({name for each in queries for name in each.needed_columns})
        types = {n: t for each in queries for n, t in each.column_types.items()}
        common = replace(queries[0], needed_columns=tuple(names), column_types=types)
        super().__init__(common, lateness=lateness)

    # -- what hosts call ------------------------------------------------------------------------

    def feed(self, events: EventBatch) -> ManyMatches:
        """Take a batch; the matches of every query that became final."""
        self._time_before = (self.watermark, self.latest, self.position)
        pieces = self._take_in(events)
        return self._told(pieces, [self._seen(q, events) for q in range(len(self._apart))])

    def advance(self, watermark: int) -> ManyMatches:
        """No event before `watermark` will come any more."""
        pieces = self._move_on(watermark)
        return self._told(pieces, [engine.advance(watermark) for engine in self._apart])

    def _told(self, pieces: list[Piece], apart: list[Matches]) -> ManyMatches:
        return ManyMatches(self._forms, self._lengths, pieces, self._schema, apart)

    def _seen(self, query: int, events: EventBatch) -> Matches:
        """What a query that goes on by itself finds in the events that it may see."""
        return self._apart[query].feed(seen_by(self._active[query], events, self.options))

    def catch_up(self, events: EventBatch | None, watermark: int) -> None:
        """See events, and time pass, whose matches left long ago."""
        if events is not None:
            self.feed(events)
        self.advance(watermark)

    @property
    def is_shared(self) -> bool:
        """Whether the queries still run together."""
        return not self._apart

    @property
    def counters(self) -> dict[str, int]:
        """Queries that events might have ended, events kept, matches."""
        names = ("touched", "kept", "found")
        return dict(zip(names, (int(c) for c in self._rings.counters), strict=True))

    @property
    def retention(self) -> int | None:
        """An event older than the watermark by this much matters no more; None: never so."""
        return self._retention

    @property
    def needs_state(self) -> bool:
        """Whether past events can matter to any of the queries."""
        return self.options.id is None or any(len(steps) > 1 for steps in self._shared.steps)

    @property
    def is_partitioned(self) -> bool:
        """Whether no event has come that lacks its key."""
        return self.is_shared

    @property
    def shared(self) -> SharedSequences:
        """The common atoms, for `explain`."""
        return self._shared

    def next_deadline(self) -> int | None:
        """The earliest watermark that would let a held event in; None when nothing is held."""
        if not len(self._held):
            return None
        return int(self._live.take("t", self._held).min()) + 1

    def _end_restore(self) -> None:
        if self._apart:  # an event without its key is among them
            self._time_before = (self.watermark, self.latest, self.position)
            self._leave_key()

    # -- building up ----------------------------------------------------------------------------

    def _start_over(self) -> None:
        def type_of(name: str) -> ScalarType:
            return self._column_types.get(name, ScalarType.UNKNOWN)

        parts = [shareable(query, type_of) for query in self.queries]
        self._shared = share_sequences([each for each in parts if isinstance(each, Shareable)])
        self._retention = self._shared.retention
        self._forms = [each.form for each in self.queries]
        self._lengths = [len(steps) for steps in self._shared.steps]
        self._columns = SharedColumns(self._shared, self.options)
        table, self._numbers = self._shared.table(self._active)
        self._rings = SharedEvents(table)
        self._keeps_arrays = self._lateness > 0
        self._live, self._pairs = LiveColumns(), LiveColumns()
        self._live.base = self._live.end = self._chunks[0].base if self._chunks else self._ordinal

    def _rebuild(self) -> None:
        """Lay out anew and replay the live events: the same state, other rings."""
        counted = self._rings.counters
        self._start_over()
        if self._apart:
            return  # each of them does it for itself
        for chunk in self._chunks:
            try:
                arrays = self._arrays(chunk.batch, None, chunk.lacks, True)
            except AbsentKey:
                self._leave_key()
                return
            self._keep(arrays, len(chunk))
            if not self._keeps_arrays:
                self._run(self._new, chunk.base, emit=False)
        if self._keeps_arrays:
            self._replay()
        self._rings.counters[:] = counted  # what is replayed was counted when it came

    def _replay_restored(self) -> None:
        if self._apart:
            return
        if self._keeps_arrays:
            self._replay()
        else:
            self._run(self._new, emit=False)

    def _replay(self) -> None:
        ordinals = np.arange(self._live.base, self._live.end)
        times = (
            self._live.slice("t", self._live.base, self._live.end) if len(ordinals) else ordinals
        )
        if self._shared.is_succession:
            waiting = times >= self._processed_to
            self._held = ordinals[waiting]
            ordinals, times = ordinals[~waiting], times[~waiting]
        if len(ordinals):
            self._frontier = int(times.max())
            self._run_ordinals(ordinals[np.argsort(times, kind="stable")], emit=False)

    def _leave_key(self) -> None:
        """Give every query an engine of its own that has seen what this one has seen."""
        table, positions = self.live_table()
        live, _ = without_notes(with_notes(table, positions, self.absent_flags()))
        watermark, latest, position = self._time_before
        apart = []
        for prepared, active in zip(self.queries, self._active, strict=True):
            engine = SequenceEngine(prepared, lateness=self._lateness)
            seen, where = seen_rows(active, live, positions, self.options)
            engine.restore(seen, where, watermark=watermark, latest=latest, position=position)
            apart.append(engine)
        self._apart = tuple(apart)

    def _arrays(
        self,
        batch: pa.RecordBatch,
        selected: np.ndarray | None,
        lacks: Mapping[str, np.ndarray],
        open_schema: bool,
        codes: np.ndarray | None = None,
        times: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        if not self._apart:
            return super()._arrays(batch, selected, lacks, open_schema, codes, times)
        if times is None:
            times, _ = event_times(batch, self.options)
        return {"t": times if selected is None else times[selected]}

    # -- one batch ------------------------------------------------------------------------------

    def _keep(self, arrays: dict[str, np.ndarray], rows: int) -> None:
        if not self._keeps_arrays or self._apart:
            self._new = arrays
            return
        pair_rows, pair_atoms = arrays.pop("pair_rows"), arrays.pop("pair_atoms")
        counts = np.bincount(pair_rows, minlength=rows)
        arrays["pairs"] = counts
        arrays["first_pair"] = self._pairs.end + np.cumsum(counts) - counts
        self._live.append(arrays, rows)
        self._pairs.append({"atom": pair_atoms}, len(pair_atoms))

    def _process(self, first_new: int) -> list[Piece]:
        if self._shared.is_succession and self._keeps_arrays:
            return self._process_stable(first_new)
        if first_new == self._ordinal or self._apart:
            return []
        if not self._keeps_arrays:
            return self._run(self._new, first_new)
        times = self._live.slice("t", first_new, self._ordinal)
        earliest = int(times.min())
        if earliest >= self._frontier:
            order = np.arange(first_new, self._ordinal)[np.argsort(times, kind="stable")]
            self._frontier = int(times.max())
            return self._run_ordinals(order)
        self._rings.take_back(earliest)
        everything = np.arange(self._live.base, self._ordinal)
        every_time = self._live.slice("t", self._live.base, self._ordinal)
        again = everything[(every_time >= earliest) | (everything >= first_new)]
        times = self._live.take("t", again)
        self._frontier = max(self._frontier, int(times.max()))
        fresh = []
        for piece in self._run_ordinals(again[np.argsort(times, kind="stable")]):
            rows = piece.rows
            fresh.append(Piece(Flat(rows[rows[:, 1:].max(axis=1) >= first_new]), piece.view))
        return fresh

    def _process_stable(self, first_new: int) -> list[Piece]:
        """Hand over what the watermark has passed, in order of time."""
        waiting = np.concatenate([self._held, np.arange(first_new, self._ordinal)])
        if not len(waiting):
            return []
        times = self._live.take("t", waiting)
        ready = times < self.watermark
        self._held = waiting[~ready]
        self._processed_to = self.watermark
        order = np.argsort(times[ready], kind="stable")
        return self._run_ordinals(waiting[ready][order]) if len(order) else []

    def _run_ordinals(self, ordinals: np.ndarray, *, emit: bool = True) -> list[Piece]:
        inputs = {name: self._live.take(name, ordinals) for name in self._live.names()}
        counts, firsts = inputs["pairs"], inputs["first_pair"]
        inputs["pair_rows"] = np.repeat(np.arange(len(ordinals)), counts)
        within = np.arange(len(inputs["pair_rows"])) - np.repeat(np.cumsum(counts) - counts, counts)
        numbers = np.repeat(firsts, counts) + within
        atoms = self._pairs.take("atom", numbers) if len(numbers) else np.zeros(0, np.int64)
        return self._run({**inputs, "pair_atoms": atoms}, numbered=ordinals, emit=emit)

    def _run(
        self,
        inputs: dict[str, np.ndarray],
        first: int = 0,
        *,
        numbered: np.ndarray = _CONSECUTIVE,
        emit: bool = True,
    ) -> list[Piece]:
        """Let events in, which have the ordinals given or those from `first` on."""
        times, groups = inputs["t"], len(self._shared.key_groups)
        if groups == 1:
            keys = inputs["k0"].reshape(1, -1)
        else:
            keys = np.empty((groups, len(times)), np.int64)
            for g in range(groups):
                keys[g] = inputs[f"k{g}"]
        if self._columns.keys is not None:
            self._rings.admit_keys(self._columns.keys.count)
        view = View(list(self._chunks))
        pieces: list[Piece] = []

        def deliver(rows: np.ndarray) -> None:
            rows[:, 0] = self._numbers[rows[:, 0]]
            pieces.append(Piece(Flat(rows), view))

        self._rings.run(
            Rows(inputs["pair_rows"], inputs["pair_atoms"], times, keys, first, numbered),
            safe=self.watermark if self._lateness else END_OF_TIME,
            emit=emit,
            deliver=deliver,
        )
        return pieces

    def _prune(self) -> None:
        horizon = self.horizon()
        if horizon is None or not self._chunks:
            return
        while self._chunks and self._chunks[0].last_time <= horizon:
            self._live_rows -= len(self._chunks.pop(0))
        first = self._chunks[0].base if self._chunks else self._ordinal
        if self._keeps_arrays and not self._apart:
            pairs = self._pairs.end
            if first < self._live.end:
                pairs = int(self._live.take("first_pair", np.array([first]))[0])
            self._pairs.drop_before(pairs)
            self._live.drop_before(first)
        tidy(self._chunks)
        if self._apart:
            return
        keys = self._columns.keys
        known = self._columns.strings.count + (keys.count if keys else 0)
        if known > 4 * self.live_rows + _SPARE_KEYS:
            self._rebuild()
