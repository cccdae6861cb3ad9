"""The running state of one plain chain: its arrays, and how they grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cepheid.kernels.chain_run import ENTRY, FAR, RECORD, SCRATCH, run, survey

_FIRST_RING = 1024
_FIRST_OUTPUT = 1 << 12
_MOST_KEPT = 1 << 18
_NOTHING = np.zeros(0, np.int64)


@dataclass(slots=True)
class Rows:
    """Events in order of time: their masks, times and keys.

    They have the numbers given, or those from `first` on.
    """

    mask: np.ndarray
    times: np.ndarray
    keys: np.ndarray
    first: int = 0
    numbered: np.ndarray = field(default_factory=lambda: _NOTHING)

    def __len__(self) -> int:
        """How many events."""
        return len(self.mask)

    @property
    def numbers(self) -> np.ndarray:
        """The number of each event."""
        if len(self.numbered) or not len(self):
            return self.numbered
        return np.arange(self.first, self.first + len(self))

    def part(self, begin: int, end: int) -> Rows:
        """Some of them, without a copy."""
        some = slice(begin, end)
        return Rows(
            self.mask[some], self.times[some], self.keys[some], self.first + begin,
            self.numbered[some],
        )  # fmt: skip

    def kept(self, begin: int) -> Rows:
        """Those from one on, copied."""
        if begin == len(self):
            return NO_ROWS
        some = self.part(begin, len(self))
        return Rows(some.mask.copy(), some.times.copy(), some.keys.copy(), numbered=some.numbers)

    def chosen(self, rows: np.ndarray) -> Rows:
        """Some of them, copied."""
        return Rows(self.mask[rows], self.times[rows], self.keys[rows], numbered=self.numbers[rows])

    def and_then(self, others: Rows) -> Rows:
        """These and others."""
        if not len(self) or not len(others):
            return others if not len(self) else self
        names = ("mask", "times", "keys", "numbers")
        mask, times, keys, numbers = (
            np.concatenate([getattr(self, name), getattr(others, name)]) for name in names
        )
        return Rows(mask, times, keys, numbered=numbers)


NO_ROWS = Rows(_NOTHING, _NOTHING, _NOTHING)


class ChainState:
    """The waiting instances of a chain of `steps` events."""

    def __init__(self, steps: int, windows: Sequence[tuple[int, int, int]]) -> None:
        """No instance yet; `windows` are (earlier step, later step, greatest distance)."""
        self.steps = steps
        self.counters = np.zeros(3, np.int64)
        self._gaps = np.full((steps, steps), FAR, np.int64)
        self._waits = np.full(steps, 2 * FAR, np.int64)
        for earlier, later, window in windows:
            self._gaps[earlier, later] = min(self._gaps[earlier, later], window)
            crossed = slice(earlier + 1, later + 1)
            self._waits[crossed] = np.minimum(self._waits[crossed], window)
        self._counts = np.ones(steps, np.int64)
        self._tails = np.ones(steps + 1, np.int64)
        self._ring = np.zeros(steps * _FIRST_RING * ENTRY, np.int64)
        self._records = np.zeros(0, np.int64)
        self._keys = 0
        self._out = np.zeros((_FIRST_OUTPUT, 2), np.int64)
        self._scratch = np.zeros((SCRATCH, steps), np.int64)
        self.admit_keys(1)

    def admit_keys(self, count: int) -> None:
        """Room for key codes below `count`."""
        if count <= self._keys:
            return
        size = max(256, 1 << (count - 1).bit_length())
        # Zeros cost nothing until a key is used: its pages are not there before.
        records = np.zeros(size * (self.steps + 1) * RECORD, np.int64)
        records[: len(self._records)] = self._records
        self._records = records
        self._keys = size

    def take(self, rows: Rows, dead: int) -> np.ndarray:
        """Let events come, later ones than those before; the matches as rows [step, event].

        Entries up to the time `dead` belong to no instance.
        """
        self._ring, self._out, filled = run(
            rows.mask,
            rows.times,
            rows.keys,
            rows.first,
            rows.numbered,
            self.steps,
            self._gaps,
            self._waits,
            dead,
            self._records,
            self._counts,
            self._tails,
            self._ring,
            self._out,
            self.counters,
            self._scratch,
        )
        found: np.ndarray = self._out[:filled]
        if len(self._out) <= _MOST_KEPT:
            return found.copy()
        self._out = np.zeros((_FIRST_OUTPUT, 2), np.int64)  # so much is rarely needed again
        return found

    def survey(self, now: int) -> tuple[int, int]:
        """How many instances wait at `now`, and when the first of them began."""
        waiting, earliest = self._survey(now, _NOTHING)
        return int(waiting), int(earliest)

    def beginnings(self, now: int) -> np.ndarray:
        """For each key when the first of the instances that wait at `now` began."""
        by_key = np.full(self._keys, FAR, np.int64)
        self._survey(now, by_key)
        return by_key

    def _survey(self, now: int, by_key: np.ndarray) -> tuple[int, int]:
        found: tuple[int, int] = survey(
            now,
            self.steps,
            self._gaps,
            self._records,
            self._counts,
            self._tails,
            self._ring,
            self.counters,
            self._scratch,
            by_key,
        )
        return found
