"""The witnesses of one negated component: in time order, chained per key, dropped in partitions."""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import compiled


@compiled
def _link(codes, heads, prev, begin):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        code = codes[i]
        prev[begin + i] = heads[code]
        heads[code] = begin + i


@compiled
def _relink(prev, heads, size, shift):  # type: ignore[no-untyped-def]
    for i in range(size):
        prev[i] = prev[i + shift] - shift if prev[i + shift] >= shift else -1
    for k in range(heads.shape[0]):
        heads[k] = heads[k] - shift if heads[k] >= shift else -1


class Witnesses:
    """Times, rows and per-key chains; whole partitions of old ones leave together (SASE 4.3)."""

    def __init__(self, *, keyed: bool) -> None:
        """No witness yet."""
        self.keyed = keyed
        self.size = 0
        self.times = np.zeros(1024, np.int64)
        self.rows = np.zeros(1024, np.int64)
        self.prev = np.zeros(1024, np.int64)
        self.heads = np.full(1, -1, np.int64)

    def append(self, times: np.ndarray, rows: np.ndarray, codes: np.ndarray | None) -> None:
        """Add witnesses in processing order."""
        count = len(times)
        if not count:
            return
        if self.size + count > len(self.times):
            room = 2 * (self.size + count)
            for name in ("times", "rows", "prev"):
                new = np.zeros(room, np.int64)
                new[: self.size] = getattr(self, name)[: self.size]
                setattr(self, name, new)
        self.times[self.size : self.size + count] = times
        self.rows[self.size : self.size + count] = rows
        if codes is not None:
            most = int(codes.max()) + 1
            if most > len(self.heads):
                heads = np.full(2 * most, -1, np.int64)
                heads[: len(self.heads)] = self.heads
                self.heads = heads
            _link(codes, self.heads, self.prev, self.size)
        self.size += count

    def drop_until(self, time: int) -> None:
        """Forget witnesses at or before `time`, once half of them are."""
        dead = int(np.searchsorted(self.times[: self.size], time, side="right"))
        if (dead < 1024 and dead * 2 <= self.size) or dead == 0:
            return
        live = self.size - dead
        self.times[:live] = self.times[dead : self.size].copy()
        self.rows[:live] = self.rows[dead : self.size].copy()
        if self.keyed:
            _relink(self.prev, self.heads, live, dead)
        self.size = live
