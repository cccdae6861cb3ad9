"""Which slices of time a scan of files is cut into, and how much each of them reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace

import numpy as np

from cepheid.hosts.division import TimeReach
from cepheid.hosts.file_facts import Unit
from cepheid.hosts.time_slices import TimeSlices, choose_slices

ROWS_PER_SLICE = 100_000
"""Fewer rows are not worth a task of their own."""
SLICES_PER_CORE = 4
"""More than one, so that slices of different weight even out; few, since each reads overlaps."""
_TOLERANCE = 1.03


@dataclass(frozen=True, slots=True)
class Slicing:
    """Slices, and for each of them the share of all files it has to read.

    `wanted` is how many slices the amount of data would deserve, were the window not in the way.
    """

    slices: TimeSlices
    shares: tuple[float, ...]
    wanted: int

    @property
    def read(self) -> float:
        """What all slices read together, as a multiple of what is stored."""
        return sum(self.shares)

    def end(self, cores: int) -> float:
        """When the last slice ends, in units of one core reading everything once."""
        free = [0.0] * cores
        for share in self.shares:
            heapreplace(free, free[0] + share)
        return max(free)


class UnitTimes:
    """Units in order of their first times, as arrays: there may be very many."""

    def __init__(self, units: Sequence[Unit]) -> None:
        """For the units of all files."""
        self.units = sorted(units, key=lambda unit: (unit.low, unit.high, unit.file, unit.group))
        self._low = np.array([unit.low for unit in self.units], np.int64)
        self._high = np.array([unit.high for unit in self.units], np.int64)
        self._size = np.array([unit.size for unit in self.units], np.float64)
        self._rows = np.cumsum([unit.rows for unit in self.units], dtype=np.int64)
        self._latest = np.maximum.accumulate(self._high) if len(self.units) else self._high
        # A unit that overlaps others may have its rows anywhere: a part of it costs the whole.
        before = np.concatenate([[True], self._latest[:-1] <= self._low[1:]])
        after = np.concatenate([self._high[:-1] <= self._low[1:], [True]])
        self._alone = (before & after)[: len(self.units)]

    @property
    def rows(self) -> int:
        """The rows of all units."""
        return int(self._rows[-1]) if self.units else 0

    def of_slice(self, slices: TimeSlices, number: int) -> tuple[Unit, ...]:
        """The units that a slice reads, in order of time."""
        first, last = self._touched(*slices.read(number))
        low = slices.read(number)[0]
        return tuple(unit for unit in self.units[first:last] if unit.high >= low)

    def evenly(self, reach: TimeReach, number: int) -> TimeSlices:
        """Slices of about equally many rows, with edges where units begin."""
        if not self.units:
            return TimeSlices((), reach)
        marks = self.rows * np.arange(1, number) / number
        starts = np.searchsorted(self._rows, marks) + 1
        edges = np.unique(self._low[starts[starts < len(self.units)]])
        return choose_slices(
            edges.tolist(), int(self._low[0]), int(self._latest[-1]), reach, number
        )

    def weighed(self, slices: TimeSlices, wanted: int) -> Slicing:
        """The slices with what each of them reads."""
        stored = float(self._size.sum()) or 1.0
        shares = []
        for number in range(len(slices)):
            low, high = slices.read(number)
            first, last = self._touched(low, high)
            lows, highs = self._low[first:last], self._high[first:last]
            part = np.minimum(highs + 1, high) - np.maximum(lows, low)
            share = np.where(self._alone[first:last], part / (highs - lows + 1.0), 1.0)
            share[highs < low] = 0.0
            shares.append(float((share * self._size[first:last]).sum()) / stored)
        return Slicing(slices, tuple(shares), wanted)

    def _touched(self, low: int, high: int) -> tuple[int, int]:
        """The range of units outside of which none has a time in [low, high)."""
        first = int(np.searchsorted(self._latest, low, side="left"))
        return first, int(np.searchsorted(self._low, high, side="left"))


def slice_units(
    units: UnitTimes, reach: TimeReach, cores: int, exactly: int | None = None
) -> Slicing:
    """As many slices as make the work end soonest on `cores` cores, with edges between units.

    Of numbers of slices that end about equally soon the largest is taken. `exactly` asks for a
    number, which a long window can still lower.
    """
    wanted = exactly or min(SLICES_PER_CORE * cores, max(1, units.rows // ROWS_PER_SLICE))
    tried: dict[tuple[int, ...], Slicing] = {}
    for number in [exactly] if exactly else _numbers(wanted, cores):
        slices = units.evenly(reach, number)
        if slices.edges not in tried:
            tried[slices.edges] = units.weighed(slices, wanted)
    ends = {edges: slicing.end(cores) for edges, slicing in tried.items()}
    soonest = min(ends.values())
    good = [edges for edges, end in ends.items() if end <= soonest * _TOLERANCE]
    return tried[max(good, key=len)]


def disorder(units: UnitTimes, slicing: Slicing) -> float:
    """How often the files would be read if there were no window: 1 when they are in order."""
    return units.weighed(units.evenly(TimeReach(0, 0), slicing.wanted), slicing.wanted).read


def _numbers(wanted: int, cores: int) -> list[int]:
    """Numbers of slices worth a look: all small ones, and multiples of the cores."""
    some = {*range(1, 9), *(cores * part // 4 for part in range(1, 4 * SLICES_PER_CORE + 1))}
    return sorted({min(number, wanted) for number in some if number >= 1})
