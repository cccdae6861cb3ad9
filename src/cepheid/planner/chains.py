"""Matches of any length: each a chain of (variable, event), as NEXT's operators find them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cepheid.planner.run_totals import RunTotals  # loads the kernels of successors

FAILURE = -1
"""The variable of the last event of a chain that tells of a failed detection (SPEC B3, 13)."""


@dataclass(slots=True)
class Chains:
    """Rows [variable, event], match after match; those of match m end before ends[m].

    `delays` tell how long after its last event each match ends, where timers make a difference.
    With `totals` some rows stand for whole runs, and name the last event of each.
    """

    ends: np.ndarray
    rows: np.ndarray
    delays: np.ndarray | None = None
    totals: RunTotals | None = None

    def __len__(self) -> int:
        """How many matches."""
        return len(self.ends)

    @property
    def is_empty(self) -> bool:
        """Whether there is no match."""
        return not len(self.ends)

    @property
    def begins(self) -> np.ndarray:
        """The first row of each match."""
        return np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])

    def moved(self, base: int) -> Chains:
        """The same with events counted from `base`."""
        return self.with_events(self.rows[:, 1] - base)

    def with_events(self, events: np.ndarray) -> Chains:
        """The same with other numbers for the events."""
        rows = np.column_stack([self.rows[:, 0], events])
        return Chains(self.ends, rows, self.delays, self.totals)

    def part(self, begin: int, end: int) -> Chains:
        """Some of the matches."""
        first = int(self.ends[begin - 1]) if begin else 0
        delays = None if self.delays is None else self.delays[begin:end]
        places = slice(first, int(self.ends[end - 1]))
        totals = None if self.totals is None else self.totals.chosen(places)
        return Chains(self.ends[begin:end] - first, self.rows[places], delays, totals)

    def chosen(self, matches: np.ndarray) -> Chains:
        """Matches by their numbers, in this order."""
        begins, ends = self.begins[matches], self.ends[matches]
        lengths = ends - begins
        places = np.arange(int(lengths.sum())) + np.repeat(
            begins - np.cumsum(lengths) + lengths, lengths
        )
        delays = None if self.delays is None else self.delays[matches]
        totals = None if self.totals is None else self.totals.chosen(places)
        return Chains(np.cumsum(lengths), self.rows[places], delays, totals)

    def last_of(self, variable: int) -> np.ndarray:
        """The last event that each match binds to a variable; -1 for none."""
        places, owners = self.places(variable)
        found = np.full(len(self), -1, np.int64)
        found[owners] = self.rows[places, 1]  # of several the last one stays
        return found

    def places(self, variable: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows that bind a variable, and the match of each."""
        places = np.flatnonzero(self.rows[:, 0] == variable)
        return places, np.searchsorted(self.ends, places, side="right")

    def elements(self, variable: int) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and events: all that each match binds to a variable."""
        places, owners = self.places(variable)
        counts = np.bincount(owners, minlength=len(self))
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), self.rows[places, 1]
