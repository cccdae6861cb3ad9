"""Event time on a watermark's clock: whole milliseconds after 1970, whatever the time column holds.

Spark keeps one watermark per query, in milliseconds, and it starts at zero: events of 1969 would
never move it, and small integer ticks would stand still for a thousand ticks each. So a time is
shown to Spark through a map onto positive milliseconds that never decreases. Where it is coarse the
watermark moves in larger steps, which delays answers and changes none.
"""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.model.event_time import MAX_TIME

BEGINNING = -MAX_TIME
_MICROSECONDS_PER_MILLISECOND = 1_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """Times from `start` on are shown as `shown + ((time - start) >> shift)`."""

    start: int
    shift: int
    shown: int


def _stretches(first_shown: int, *parts: tuple[int, int]) -> tuple[Stretch, ...]:
    """Adjoining stretches from (start, shift) pairs, the first one shown from `first_shown` on."""
    found: list[Stretch] = []
    shown = first_shown
    for number, (start, shift) in enumerate(parts):
        found.append(Stretch(start, shift, shown))
        if number + 1 < len(parts):
            shown += ((parts[number + 1][0] - start) >> shift) + 1
    return tuple(found)


_FAR_TICKS = 4 * 10**15
_YEAR_1971 = 365 * 86_400_000
_YEAR_1897 = -2_300_000_000_000
_BEFORE_1971 = _stretches(1, (-MAX_TIME // 1_000 - 1, 19), (_YEAR_1897, 7))

TICKS = _stretches(1, (-MAX_TIME, 14), (-_FAR_TICKS, 0), (_FAR_TICKS, 14))
"""A tick is shown as a millisecond, unless it is a count of nanoseconds or as large."""

MILLISECONDS = (*_BEFORE_1971, Stretch(_YEAR_1971, 0, _YEAR_1971))
"""From 1971 on milliseconds show as they are, so that people can read a query's progress."""


@dataclass(frozen=True, slots=True)
class StreamClock:
    """How times of the time column (ticks or microseconds) and a watermark belong together.

    `is_shown` says that the watermark comes through the map; otherwise it is the user's own, in
    plain milliseconds, and means nothing as long as it has not left 1970.
    """

    is_timestamp: bool
    is_shown: bool = True

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The map in force, over ticks or milliseconds."""
        return MILLISECONDS if self.is_timestamp else TICKS

    def watermark(self, milliseconds: int) -> int:
        """The latest time before which no event can come that is within the allowed lateness.

        >>> StreamClock(is_timestamp=True).watermark(1_700_000_000_123)
        1700000000123000
        """
        if milliseconds <= 0:
            return BEGINNING
        unit = _MICROSECONDS_PER_MILLISECOND if self.is_timestamp else 1
        return unit * (self._first_shown_at(milliseconds) if self.is_shown else milliseconds)

    def due(self, time: int) -> int:
        """The least watermark in milliseconds that stands for at least this time."""
        before = time - 1
        if self.is_timestamp:
            before //= _MICROSECONDS_PER_MILLISECOND
        return (self.shown(before) if self.is_shown else before) + 1

    def shown(self, time: int) -> int:
        """The milliseconds that Spark is shown for a time (in ticks or milliseconds)."""
        stretch = self.stretches[0]
        for later in self.stretches[1:]:
            if later.start <= time:
                stretch = later
        return stretch.shown + (max(time - stretch.start, 0) >> stretch.shift)

    def _first_shown_at(self, milliseconds: int) -> int:
        """The earliest time that is shown as this or later."""
        ends = [*(s.start for s in self.stretches[1:]), None]
        time = BEGINNING
        for stretch, end in zip(self.stretches, ends, strict=True):
            time = stretch.start + (max(milliseconds - stretch.shown, 0) << stretch.shift)
            if end is None or time < end:
                return time
        return time
