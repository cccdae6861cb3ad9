"""Slices of time: each match belongs to the one slice that holds its first event.

A slice owns the first events in [low, high) and reads as far around as a match can reach, so that
slices know nothing of each other. The first and the last slice are open to the outside: an event
beyond the times that were known when the slices were chosen still has an owner.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cepheid.hosts.division import TimeReach

BEFORE_ALL = -(2**62)
AFTER_ALL = 2**62

MOST_READ = 1.5
"""A slice may read this much more than it owns; longer windows get fewer slices."""


@dataclass(frozen=True, slots=True)
class TimeSlices:
    """Slices between increasing `edges`; n edges make n + 1 slices."""

    edges: tuple[int, ...]
    reach: TimeReach

    def __post_init__(self) -> None:
        """The edges decide who owns a match: they may not be in doubt."""
        assert all(low < high for low, high in pairwise(self.edges)), self.edges

    def __len__(self) -> int:
        """How many slices there are."""
        return len(self.edges) + 1

    def owned(self, number: int) -> tuple[int, int]:
        """The times [low, high) of the first events whose matches a slice delivers."""
        low = self.edges[number - 1] if number > 0 else BEFORE_ALL
        high = self.edges[number] if number < len(self.edges) else AFTER_ALL
        return low, high

    def read(self, number: int) -> tuple[int, int]:
        """The times [low, high) that can matter to a slice's matches."""
        low, high = self.owned(number)
        return (
            low if low == BEFORE_ALL else low - self.reach.back,
            high if high == AFTER_ALL else high + self.reach.forward,
        )

    def holding(self, time: int) -> int:
        """The slice that owns first events at a time."""
        return bisect_right(self.edges, time)

    def reading(self, time: int) -> range:
        """The slices that must read an event at a time."""
        return range(
            self.holding(time - self.reach.forward), self.holding(time + self.reach.back) + 1
        )


def choose_slices(
    candidates: Sequence[int], low: int, high: int, reach: TimeReach, most: int
) -> TimeSlices:
    """At most `most` slices of the times low..high, with edges among `candidates`.

    The candidates are best where they part the events evenly (quantiles, starts of row groups). Of
    two that are too near for the reach, the earlier is taken.

    >>> choose_slices([10, 20, 30], 0, 40, TimeReach(0, 5), 4).edges
    (10, 20, 30)
    >>> choose_slices([10, 20, 30], 0, 40, TimeReach(0, 6), 4).edges
    (20,)
    """
    narrowest = narrowest_slice(reach)
    last = high + 1 - narrowest
    edges: list[int] = []
    before = low
    for edge in sorted(candidates):
        if len(edges) + 1 >= most:
            break
        if edge - before >= max(narrowest, 1) and edge <= last:
            edges.append(edge)
            before = edge
    return TimeSlices(tuple(edges), reach)


def narrowest_slice(reach: TimeReach) -> int:
    """The least width with (width + reach) / width <= MOST_READ."""
    return -int(-(reach.back + reach.forward) // (MOST_READ - 1))
