"""The running state of many sequences over one stream: kept events, and how they grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cepheid.kernels import shared_links, shared_sequences
from cepheid.kernels.shared_sequences import (
    DONE,
    FREE,
    NOBODY,
    OUT_COUNT,
    OUTPUT_FULL,
    OWNER,
    QUERY_WIDTH,
    REACH,
    RING_WIDTH,
    SIZES,
)

_FIRST_POOL = 1 << 13
_FIRST_OUTPUT = 1 << 14
_MOST_STEPS = 64
_MOST_RINGS = 1 << 12
"""More would not stay in the cache, and most of them would be empty."""
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
    """Events in order of time: pairs (row, atom) by row, and what the kernel reads of each row.

    They have the numbers given, or those from `first` on.
    """

    pair_rows: np.ndarray
    pair_atoms: np.ndarray
    times: np.ndarray
    keys: np.ndarray
    first: int
    numbered: np.ndarray

    @property
    def arguments(
        self,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, np.ndarray]:
        """All of it, in the order in which both kernels take it."""
        return (
            self.pair_rows, self.pair_atoms, self.times, self.keys, self.first, self.numbered
        )  # fmt: skip


Deliver = Callable[[np.ndarray], None]
"""Takes a row for each match, the query and then its events; a copy of its own."""


class SharedEvents:
    """Events of all atoms by key: in rings while atoms and keys are few, in lists beyond that."""

    def __init__(self, table: SequenceTable) -> None:
        """No events yet."""
        self._table = table
        self._kept: _Rings | _Links = _Rings(table)
        self._out = np.empty((_FIRST_OUTPUT, table.longest + 1), np.int64)
        self.counters = np.zeros(3, np.int64)

    def run(self, rows: Rows, *, safe: int, emit: bool, deliver: Deliver) -> None:
        """Take events; no event before `safe` comes after them."""
        begin, status = 0, OUTPUT_FULL
        while status != DONE:
            kept = self._kept
            begin, status = kept.run(begin, rows, emit, safe, self.counters, self._out)
            found = kept.taken_out()
            if found:
                deliver(self._out[:found].copy())
            elif status == OUTPUT_FULL:  # one event has more matches than there is room for
                self._out = np.empty((2 * len(self._out), self._out.shape[1]), np.int64)
            if status not in (DONE, OUTPUT_FULL):
                kept.grow()

    def take_back(self, since: int) -> None:
        """Forget the events from a time on."""
        self._kept.take_back(since)

    def admit_keys(self, count: int) -> None:
        """Be told how many keys there are: keys are smaller than `count` from now on."""
        if isinstance(self._kept, _Rings) and not self._kept.admit_keys(count):
            self._kept = _Links(self._table, self._kept.entries())


class _Rings:
    """A ring for each atom and key (kernels.shared_sequences)."""

    def __init__(self, table: SequenceTable) -> None:
        self._table = table
        self._rings = _no_rings(0)
        self._latest = np.zeros(0, np.int64)
        self._pool = np.zeros((_FIRST_POOL, 2), np.int64)
        self._control = np.zeros(FREE + SIZES, np.int64)
        self._control[FREE:] = -1
        self._scratch = np.zeros((4, max(_MOST_STEPS, len(table.atoms))), np.int64)
        self.admit_keys(1)

    def run(
        self, begin: int, rows: Rows, emit: bool, safe: int, counters: np.ndarray, out: np.ndarray
    ) -> tuple[int, int]:
        table = self._table
        stopped: tuple[int, int] = shared_sequences.run(
            begin,
            *rows.arguments,
            emit,
            safe,
            table.atoms,
            table.queries,
            table.steps,
            self._rings,
            self._pool,
            self._latest,
            self._control,
            counters,
            out,
            self._scratch,
        )
        return stopped

    def taken_out(self) -> int:
        found = int(self._control[OUT_COUNT])
        self._control[OUT_COUNT] = 0
        return found

    def grow(self) -> None:
        self._pool = np.concatenate([self._pool, np.zeros_like(self._pool)])

    def take_back(self, since: int) -> None:
        # Later times stand in `latest` until these events come again.
        shared_sequences.take_back(self._rings, self._pool, since)

    def entries(self) -> np.ndarray:
        """All entries as rows [time, event, key and atom], in order of time."""
        held: np.ndarray = shared_sequences.entries(self._rings, self._pool)
        return held[np.lexsort((held[:, 1], held[:, 0]))]

    def admit_keys(self, count: int) -> bool:
        """Room for more keys; whether there could be so much."""
        width = max(1, len(self._table.atoms))
        if count * width <= len(self._latest):
            return True
        size = 2 * count * width
        if size > _MOST_RINGS and count > 1:
            return False
        latest, rings = np.full(size, _NEVER, np.int64), _no_rings(size)
        known = len(self._latest)
        latest[:known], rings[:known] = self._latest, self._rings
        self._latest, self._rings = latest, rings
        return True


class _Links:
    """Lists of entries by the hash of atom and key (kernels.shared_links)."""

    def __init__(self, table: SequenceTable, held: np.ndarray) -> None:
        self._table = table
        self._reach = int(table.atoms[:, REACH].max())
        size = max(_FIRST_POOL, 1 << (2 * len(held)).bit_length())
        self._pool = np.zeros((size, shared_links.ENTRY_WIDTH), np.int64)
        self._pool[: len(held), :3] = held
        self._control = np.zeros(shared_links.CONTROLS, np.int64)
        self._control[shared_links.NEXT] = len(held)
        self._scratch = np.zeros((3, _MOST_STEPS), np.int64)
        self._link()

    def _link(self) -> None:
        self._heads = np.full((2 * len(self._pool), shared_links.HEAD_WIDTH), _NEVER, np.int64)
        shared_links.link(self._heads, self._pool, self._control)

    def run(
        self, begin: int, rows: Rows, emit: bool, safe: int, counters: np.ndarray, out: np.ndarray
    ) -> tuple[int, int]:
        table = self._table
        stopped: tuple[int, int] = shared_links.run(
            begin,
            *rows.arguments,
            emit,
            safe,
            self._reach,
            table.atoms,
            table.queries,
            table.steps,
            self._heads,
            self._pool,
            self._control,
            counters,
            out,
            self._scratch,
        )
        return stopped

    def taken_out(self) -> int:
        found = int(self._control[shared_links.OUT_COUNT])
        self._control[shared_links.OUT_COUNT] = 0
        return found

    def grow(self) -> None:
        oldest = int(self._control[shared_links.OLDEST])
        live = np.arange(oldest, int(self._control[shared_links.NEXT]))
        pool = np.zeros((2 * len(self._pool), self._pool.shape[1]), np.int64)
        pool[live & (len(pool) - 1)] = self._pool[live & (len(self._pool) - 1)]
        self._pool = pool
        self._link()

    def take_back(self, since: int) -> None:
        shared_links.unlink(self._heads, self._pool, self._control, since)


def _no_rings(places: int) -> np.ndarray:
    """An empty table whose rows do not cross lines of the cache."""
    room = np.zeros(RING_WIDTH * (places + 1), np.int64)
    skip = -(room.ctypes.data // 8) % RING_WIDTH
    table = room[skip : skip + RING_WIDTH * places].reshape(places, RING_WIDTH)
    table[:, OWNER] = NOBODY
    return table
