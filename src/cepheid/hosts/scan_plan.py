"""Which slices of time a scan of files is cut into, and how much each of them reads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace
from itertools import accumulate

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
    """Slices over units that stand in order of time; `shares[i]` is what slice i has to read.

    `read` is what all slices read together, as a multiple of what is stored. `wanted` is how many
    slices the amount of data would deserve, were the window not in the way.
    """

    slices: TimeSlices
    shares: tuple[float, ...]
    read: float
    wanted: int

    def end(self, cores: int) -> float:
        """When the last slice ends, in units of one core reading everything once."""
        free = [0.0] * cores
        for share in self.shares:
            heapreplace(free, free[0] + share)
        return max(free)


def slice_units(
    units: Sequence[Unit], reach: TimeReach, cores: int, exactly: int | None = None
) -> Slicing:
    """As many slices as make the work end soonest on `cores` cores, with edges between units.

    Of numbers of slices that end about equally soon the largest is taken. `exactly` asks for a
    number, which a long window can still lower.
    """
    ordered = sorted(units, key=lambda unit: (unit.low, unit.high))
    rows = sum(unit.rows for unit in ordered)
    wanted = exactly or min(SLICES_PER_CORE * cores, max(1, rows // ROWS_PER_SLICE))
    tried: dict[tuple[int, ...], Slicing] = {}
    for number in [exactly] if exactly else range(1, wanted + 1):
        slices = _evenly(ordered, reach, number)
        if slices.edges not in tried:
            tried[slices.edges] = _weighed(ordered, slices, wanted)
    ends = {edges: slicing.end(cores) for edges, slicing in tried.items()}
    soonest = min(ends.values())
    good = [edges for edges, end in ends.items() if end <= soonest * _TOLERANCE]
    return tried[max(good, key=len)]


def disorder(units: Sequence[Unit], slicing: Slicing) -> float:
    """How often the files would be read if there were no window: 1 when they are in order."""
    ordered = sorted(units, key=lambda unit: (unit.low, unit.high))
    slices = _evenly(ordered, TimeReach(0, 0), slicing.wanted)
    return _weighed(ordered, slices, slicing.wanted).read


def units_of(units: Sequence[Unit], slices: TimeSlices, number: int) -> list[Unit]:
    """The units a slice reads, in order of time."""
    low, high = slices.read(number)
    found = [unit for unit in units if unit.high >= low and unit.low < high]
    return sorted(found, key=lambda unit: (unit.low, unit.high, unit.file, unit.group))


def _evenly(ordered: Sequence[Unit], reach: TimeReach, number: int) -> TimeSlices:
    """Slices of about equally many rows."""
    sums = list(accumulate(unit.rows for unit in ordered))
    marks = [sums[-1] * i / number for i in range(1, number)] if sums else []
    starts = [bisect_left(sums, mark) + 1 for mark in marks]
    edges = {ordered[start].low for start in starts if start < len(ordered)}
    low = min((unit.low for unit in ordered), default=0)
    high = max((unit.high for unit in ordered), default=0)
    return choose_slices(sorted(edges), low, high, reach, number)


def _weighed(ordered: Sequence[Unit], slices: TimeSlices, wanted: int) -> Slicing:
    """What each slice reads: a unit that overlaps others has its rows anywhere, so all of it."""
    stored = sum(unit.size for unit in ordered) or 1
    alone = _standing_alone(ordered)
    shares = []
    for number in range(len(slices)):
        low, high = slices.read(number)
        share = 0.0
        for unit, is_alone in zip(ordered, alone, strict=True):
            if unit.high < low or unit.low >= high:
                continue
            span = unit.high - unit.low + 1
            part = min(unit.high + 1, high) - max(unit.low, low)
            share += unit.size * (part / span if is_alone else 1)
        shares.append(share / stored)
    return Slicing(slices, tuple(shares), sum(shares), wanted)


def _standing_alone(ordered: Sequence[Unit]) -> list[bool]:
    """Which units share no stretch of time with another."""
    latest = list(accumulate((unit.high for unit in ordered), max))
    alone = []
    for number, unit in enumerate(ordered):
        before = number == 0 or latest[number - 1] <= unit.low
        after = number + 1 == len(ordered) or unit.high <= ordered[number + 1].low
        alone.append(before and after)
    return alone
