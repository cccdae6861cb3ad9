"""Runs queries of successors (NEXT) over batches of events; every host drives this engine.

It takes events in as the sequence engine does, and hands them to its kernel in the stable order
(end, start, arrival), whole sets of one end at a time: an event is held until the watermark has
passed its end, since one that is still to come might be an earlier successor (SPEC A1.4). So what
the kernel has found is final.

Live events are those from the end of the earliest event of any waiting instance on: whoever feeds
them to empty lists gets the same instances, because what becomes of an instance is decided by the
events after its first one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.event_columns import EventColumns
from cepheid.hosts.live_engine import END_OF_TIME, LiveEngine, LiveEvents, too_many_instances
from cepheid.hosts.live_facts import LiveFacts
from cepheid.hosts.matches import Piece
from cepheid.hosts.set_aside import event_starts, event_times
from cepheid.hosts.store import View, tidy
from cepheid.kernels.succession import Constants, Events, Succession, TooManyInstances, Touches
from cepheid.planner.chains import Chains
from cepheid.planner.succession_layout import SuccessionLayout
from cepheid.planner.succession_plan import shared_key

_WORTH_COMPACTING = 1 << 15
_SPARE_ROWS = 512


class LiveSuccessions(LiveEvents):
    """The running state of operators; see the module's text."""

    # An instance that was consumed would live on in a state from before, without what consumed it.
    forgets_by_time = False

    _columns: EventColumns
    _live: LiveFacts
    _key: tuple[int, bool] | None
    _compact_at: int

    # -- what hosts call ------------------------------------------------------------------------

    @property
    def counters(self) -> dict[str, int]:
        """Instances looked at, instances that began to wait, matches found, operators at work."""
        names = ("touched", "started", "finished", "visited")
        return dict(zip(names, (int(c) for c in self._succession.counters), strict=True))

    @property
    def instances(self) -> int:
        """Partial matches that wait for a successor."""
        return self._succession.instances

    @property
    def nodes(self) -> int:
        """How many nodes their partial matches have; matches that begin alike share some."""
        return self._succession.nodes

    def next_deadline(self) -> int | None:
        """The earliest watermark that would let a held event in, or a timer's instant."""
        soonest = self._succession.next_instant
        if len(self._held):
            soonest = min(soonest, int(self._live.ends(self._held).min()))
        return soonest + 1 if soonest < END_OF_TIME else None

    def horizon(self) -> int | None:
        """Events up to this time matter no more; None when that is never so."""
        return self._dead_until

    def compact(self) -> bool:
        """Drop the events that no instance of their own key needs.

        Without a window the instance of a key that has gone silent waits for ever, and would hold
        all events since it began. But where one key runs through all operators, only events of its
        own key decide what becomes of it.
        """
        if self._key is None or not self._chunks or self._live_rows < self._compact_at:
            return False
        self._succession.upkeep(self._events(), self._processed_to)
        needed = self._needed_by_key(*self._key)
        needed[: self._chunks[0].base - self._live.base] = False  # gone, though still in the facts
        rows = np.flatnonzero(needed)
        self._compact_at = max(_WORTH_COMPACTING, 2 * len(rows))
        if 2 * len(rows) > len(needed):
            return False
        self._keep_rows(needed)
        self._looked_at = self._live_rows
        return True

    def _keep_rows(self, needed: np.ndarray) -> None:
        """Let go of all live events but these; those that stay get new ordinals."""
        rows = np.flatnonzero(needed)
        before, base = self._live.base, self._ordinal - len(rows)
        names = np.cumsum(needed) - 1 + base
        self._succession.rename_events(names, before)
        self._held = names[self._held - before]
        self._live.keep_only(rows, base)
        chunks = []
        for chunk in self._chunks:
            begin = chunk.base - before
            own = np.flatnonzero(needed[begin : begin + len(chunk)])
            if len(own):
                chunks.append(chunk.only(own, base))
            base += len(own)
        self._chunks = chunks
        self._live_rows = len(rows)

    def _needed_by_key(self, number: int, is_real: bool) -> np.ndarray:
        """Which live events are not older than every instance of their key."""
        keys = self._live.column(number, is_real=is_real)
        everything = np.arange(self._live.base, self._live.end)
        ends = self._live.ends(everything)
        needed = ends >= self._processed_to
        needed[self._succession.named_events - self._live.base] = True
        firsts = self._succession.first_events()
        if len(firsts):
            of = keys[firsts - self._live.base]
            began = self._live.ends(firsts)
            order = np.lexsort((began, of))
            known, first = np.unique(of[order], return_index=True)
            earliest = began[order][first]
            place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            needed |= (known[place] == keys) & (ends >= earliest[place])
        return needed

    # -- building up ----------------------------------------------------------------------------

    def _start_over(self) -> None:
        layout = self._laid_out()
        self._layout = layout
        self._columns = EventColumns(layout, self.options, self._first_events)
        self._succession = Succession(layout.shape, self.options.limits.live_events)
        self._looked_at = 0
        self._compact_at = _WORTH_COMPACTING
        self._key = self._key_column(layout)
        self._some_last = False
        kinds = [kind is ScalarType.FLOAT for _, kind in layout.columns]
        self._live = LiveFacts(kinds.count(False), kinds.count(True))
        self._live.base = self._live.end = self._chunks[0].base if self._chunks else self._ordinal
        self._constants = self._known_constants()

    def _known_constants(self) -> Constants:
        """What conditions compare with: constants, and the ranks of all strings seen if they ask.

        Live events keep the codes of their strings; where new ones stand among them, ranks tell.
        """
        ints = np.append(self._columns.ints, 0)
        self._ranked = self._columns.strings.count
        if self._layout.orders_strings:
            ints = np.append(ints, self._columns.strings.ranks()[::-1])
        return Constants(ints, np.append(self._columns.floats, 0.0), self._layout.most)

    def _laid_out(self) -> SuccessionLayout:
        """The operators over columns of the types known now."""
        return self.prepared.succession(self._column_types)

    def _key_column(self, layout: SuccessionLayout) -> tuple[int, bool] | None:
        """The column that holds the key of every event: its number, and whether it has floats."""
        return column_of_key(layout, shared_key(layout.plan))

    def _rebuild(self) -> None:
        """Lay out anew and replay the live events: the same instances over other columns."""
        counted = self._succession.counters
        self._start_over()
        for chunk in self._chunks:
            arrays = self._arrays(chunk.batch, None, chunk.lacks, True)
            self._keep(arrays, len(chunk))
        self._replay_restored()
        self._succession.counters[:] = counted  # what is replayed was counted when it came

    def _replay_restored(self) -> None:
        everything = np.arange(self._live.base, self._live.end)
        if not len(everything):
            return
        times = self._live.ends(everything)
        is_waiting = times >= self._processed_to
        self._held = everything[is_waiting]
        seen = everything[~is_waiting & (times > self._dead_until)]
        self._run_ordinals(self._in_order(seen), emit=False)

    def _arrays(
        self,
        batch: pa.RecordBatch,
        selected: np.ndarray | None,
        lacks: Mapping[str, np.ndarray],
        open_schema: bool,
        codes: np.ndarray | None = None,
        times: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        if times is None:
            times, _ = event_times(batch, self.options)
        arrays = super()._arrays(batch, selected, lacks, open_schema, codes, times)
        starts = event_starts(batch, self.options, times)
        arrays["s"] = starts if selected is None else starts[selected]
        self._some_last |= starts is not times
        return arrays

    def _keep(self, arrays: dict[str, np.ndarray], rows: int) -> None:
        self._live.append(arrays, rows)

    # -- one batch ------------------------------------------------------------------------------

    def _process(self, first_new: int) -> list[Piece]:
        new = np.arange(first_new, self._ordinal)
        waiting = np.concatenate([self._held, new]) if len(self._held) else new
        self._processed_to = self.watermark
        if not len(waiting) and self._succession.next_instant >= self.watermark:
            return []
        ready = self._live.ends(waiting) < self.watermark
        self._held = waiting[~ready]
        return self._run_ordinals(self._in_order(waiting[ready]))

    def _in_order(self, ordinals: np.ndarray) -> np.ndarray:
        """By end, start and arrival (SPEC A1.1: the order in which streams deliver)."""
        ends = self._live.ends(ordinals)
        if not self._some_last:
            if bool((ends[1:] >= ends[:-1]).all()):
                return ordinals
            return ordinals[np.lexsort((ordinals, ends))]
        return ordinals[np.lexsort((ordinals, self._live.starts(ordinals), ends))]

    def _run_ordinals(self, ordinals: np.ndarray, *, emit: bool = True) -> list[Piece]:
        until = self._processed_to
        if not len(ordinals) and self._succession.next_instant >= until:
            return []
        view = View(list(self._chunks))
        pieces: list[Piece] = []

        def deliver(
            ends: np.ndarray, rows: np.ndarray, roots: np.ndarray, delays: np.ndarray
        ) -> None:
            if emit:
                later = delays if delays.any() else None
                pieces.extend(self._found(Chains(ends, rows, later), roots, view))

        touches = self._touches(ordinals)
        if self._layout.orders_strings and self._ranked != self._columns.strings.count:
            self._constants = self._known_constants()
        try:
            self._succession.run(self._events(), ordinals, until, self._constants, deliver, touches)
        except TooManyInstances as problem:
            raise too_many_instances(problem.instances) from None
        if self._succession.instances > self.options.limits.live_events:
            raise too_many_instances(self._succession.instances)
        return pieces

    def _found(self, chains: Chains, roots: np.ndarray, view: View) -> list[Piece]:
        """What a run has found, by the operators `roots`, as matches over live events."""
        return [Piece(chains, view)]

    def _touches(self, ordinals: np.ndarray) -> Touches | None:
        """The atoms that events touch; None where their masks tell it."""
        return None

    def _events(self) -> Events:
        return Events(self._live.base, self._live.facts, self._live.numbers)

    def _prune(self) -> None:
        """Let go of the events that are older than every instance."""
        if not self._chunks:
            return
        # Looking costs as much as there is alive: it pays when that has doubled, or all is over.
        if self._live_rows < 2 * self._looked_at + _SPARE_ROWS and not self._is_over():
            return
        earliest = self._succession.upkeep(self._events(), self._processed_to)
        if len(self._held):
            earliest = min(earliest, int(self._live.ends(self._held).min()))
        self._dead_until = min(earliest, self._processed_to) - 1
        while self._chunks and self._chunks[0].last_time <= self._dead_until:
            self._live_rows -= len(self._chunks.pop(0))
        self._live.drop_before(self._chunks[0].base if self._chunks else self._ordinal)
        tidy(self._chunks)
        self._looked_at = self._live_rows


class SuccessionEngine(LiveSuccessions, LiveEngine):
    """The running state of one query."""


def column_of_key(
    layout: SuccessionLayout, key: Mapping[str, str] | None
) -> tuple[int, bool] | None:
    """The column of a key that is one attribute everywhere: its number, whether it has floats."""
    if key is None or len(set(key.values())) > 1:
        return None
    (name,) = set(key.values())
    for is_real in (False, True):
        columns = [n for n, kind in layout.columns if (kind is ScalarType.FLOAT) == is_real]
        if name in columns:
            return columns.index(name), is_real
    return None
