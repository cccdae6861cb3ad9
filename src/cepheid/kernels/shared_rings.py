"""The running state of many sequences over one stream: rings of events, and how they grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cepheid.kernels.shared_sequences import (
    DONE,
    FREE,
    NOBODY,
    OUT_COUNT,
    OUTPUT_FULL,
    OWNER,
    QUERY_WIDTH,
    RING_COUNT,
    RING_WIDTH,
    RINGS_FULL,
    SIZES,
    move_rings,
    run,
    take_back,
)

_FIRST_RINGS = 1 << 10
_FIRST_POOL = 1 << 13
_FIRST_OUTPUT = 1 << 14
_MOST_STEPS = 64
_MOST_DENSE = 1 << 17
_NEVER = -(2**62)


@dataclass(frozen=True, slots=True)
class SequenceTable:
    """Queries, by their last atom, and atoms, as rows (kernels.shared_sequences)."""

    atoms: np.ndarray
    queries: np.ndarray
    steps: np.ndarray

    @property
    def longest(self) -> int:
        """The most events a match has."""
        return int(self.queries[:, QUERY_WIDTH - 1].max(initial=1))


@dataclass(frozen=True, slots=True)
class Rows:
    """Events in order of time: pairs (row, atom) by row, and what the kernel reads of each row."""

    pair_rows: np.ndarray
    pair_atoms: np.ndarray
    times: np.ndarray
    keys: np.ndarray
    events: np.ndarray


Deliver = Callable[[np.ndarray], None]
"""Takes a row for each match, the query and then its events; a copy of its own."""


class SharedRings:
    """Events of all atoms by key."""

    def __init__(self, table: SequenceTable) -> None:
        """No events yet."""
        self._table = table
        self._rings = _no_rings(_FIRST_RINGS)
        self._is_dense = True
        self._latest = np.zeros(0, np.int64)
        self._pool = np.zeros((_FIRST_POOL, 2), np.int64)
        self._control = np.zeros(FREE + SIZES, np.int64)
        self._control[FREE:] = -1
        self._out = np.empty((_FIRST_OUTPUT, table.longest + 1), np.int64)
        self._scratch = np.zeros((4, max(_MOST_STEPS, len(table.atoms))), np.int64)
        self.counters = np.zeros(3, np.int64)

    @property
    def rings(self) -> int:
        """How many rings there are, live or not."""
        return int(self._control[RING_COUNT])

    def run(self, rows: Rows, *, safe: int, emit: bool, deliver: Deliver) -> None:
        """Take events; no event before `safe` comes after them."""
        begin = 0
        table = self._table
        while True:
            begin, status = run(
                begin,
                rows.pair_rows,
                rows.pair_atoms,
                rows.times,
                rows.keys,
                rows.events,
                emit,
                safe,
                table.atoms,
                table.queries,
                table.steps,
                self._rings,
                self._pool,
                self._latest,
                self._control,
                self.counters,
                self._out,
                self._scratch,
            )
            found = int(self._control[OUT_COUNT])
            if found and status in (DONE, OUTPUT_FULL):
                deliver(self._out[:found].copy())
                self._control[OUT_COUNT] = 0
            if status == DONE:
                return
            if status == OUTPUT_FULL:
                if not found:  # one event has more matches than there is room for
                    self._out = np.empty((2 * len(self._out), self._out.shape[1]), np.int64)
            elif status == RINGS_FULL:
                row = rows.pair_rows[begin]
                needed = int(np.searchsorted(rows.pair_rows, row, side="right")) - begin
                self._more_rings(needed, min(safe, int(rows.times[row])))
            else:
                self._pool = np.concatenate([self._pool, np.zeros_like(self._pool)])

    def take_back(self, since: int) -> None:
        """Forget the events from a time on; later times stand in `latest` until they come again."""
        take_back(self._rings, self._pool, since)

    def admit_keys(self, count: int) -> None:
        """Be told how many keys there are: keys are smaller than `count` from now on."""
        width = len(self._table.atoms)
        if count * width <= len(self._latest) or not self._is_dense:
            return
        size = 2 * count * width
        if size > _MOST_DENSE:
            self._is_dense = False
            self._latest = np.zeros(0, np.int64)
            self._more_rings(0, _NEVER)
            return
        latest, rings = np.full(size, _NEVER, np.int64), _no_rings(size)
        known = len(self._latest)
        latest[:known], rings[:known] = self._latest, self._rings[:known]
        self._latest, self._rings = latest, rings

    def _more_rings(self, needed: int, safe: int) -> None:
        """Let dead rings go; a table that is still a quarter full becomes larger."""
        places = len(self._rings)
        while True:
            more = _no_rings(places)
            atoms = self._table.atoms
            move_rings(self._rings, more, self._pool, atoms, safe, self._control)
            self._rings = more
            if 4 * (self.rings + needed) <= places:
                return
            places *= 2


def _no_rings(places: int) -> np.ndarray:
    """An empty table whose rows do not cross lines of the cache."""
    room = np.zeros(RING_WIDTH * (places + 1), np.int64)
    skip = -(room.ctypes.data // 8) % RING_WIDTH
    table = room[skip : skip + RING_WIDTH * places].reshape(places, RING_WIDTH)
    table[:, OWNER] = NOBODY
    return table
