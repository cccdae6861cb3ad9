"""The most frequent values of a column, counted in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable

_KEPT = 1024

Value = int | float | str | bool


class FrequentValues:
    """Exact counts while there are few values; of many, the rare ones are forgotten now and then.

    A value is then counted too low by what was forgotten of it, so frequent ones are hardly hurt
    (lossy counting, Manku and Motwani, VLDB 2002).
    """

    def __init__(self) -> None:
        self._counts: dict[Value, int] = {}

    def add(self, counted: Iterable[tuple[Value, int]]) -> None:
        """Take values with how often each occurred."""
        counts = self._counts
        for value, count in counted:
            counts[value] = counts.get(value, 0) + count
        if len(counts) > 4 * _KEPT:
            best = sorted(counts.items(), key=lambda item: -item[1])[:_KEPT]
            self._counts = dict(best)

    def most_frequent(self, number: int) -> list[tuple[Value, int]]:
        """The commonest values and their counts, the most frequent first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], str(item[0])))
        return ordered[:number]
