"""Instants, durations and axis ticks as people read them, for clock time and integer ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import takewhile

MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# The steps of a clock; below a second and above a day, steps are 1, 2, 5 times a power of ten.
_CLOCK_STEPS = (
    *(seconds * SECOND for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 6, 12)),
    DAY,
)


@dataclass(frozen=True, slots=True)
class TimeScale:
    """How numbers are read: microseconds since 1970 in a time zone, or bare ticks (no zone)."""

    timezone: tzinfo | None

    @classmethod
    def of(cls, value: object) -> TimeScale:
        """The scale on which a value of the time column lies."""
        return cls((value.tzinfo or UTC) if isinstance(value, datetime) else None)

    @property
    def is_clock(self) -> bool:
        """Whether the numbers are moments on a clock."""
        return self.timezone is not None

    def number(self, value: object) -> int:
        """A value of the time column, or a duration, as a number."""
        match value:
            case datetime():
                aware = value if value.tzinfo else value.replace(tzinfo=UTC)
                return (aware - _EPOCH) // _MICROSECOND
            case timedelta():
                return value // _MICROSECOND
            case int():
                return value
        message = f"a time must be a timestamp or an integer, not {type(value).__name__}"
        raise TypeError(message)

    def instant(self, number: int, *, precision: int = SECOND, with_date: bool = False) -> str:
        """
        A moment, no finer than the precision.

        >>> TimeScale(UTC).instant(36_134_000_000)
        '10:02:14'
        >>> TimeScale(None).instant(10500)
        '10,500'
        """
        if self.timezone is None:
            return f"{number:,}"
        moment = self.moment(number)
        clock = f"{moment:%H:%M}"
        if precision < MINUTE:
            clock += f":{moment:%S}"
        if precision < SECOND:
            clock += f"{moment:.%f}"[: 4 if precision >= MILLISECOND else 7]
        return f"{moment.day} {moment:%b} {clock}" if with_date else clock

    def moment(self, number: int) -> datetime:
        """The number as a time of day in the scale's zone."""
        return (_EPOCH + number * _MICROSECOND).astimezone(self.timezone or UTC)

    def duration(self, number: int) -> str:
        """
        A length of time, in its two largest units.

        >>> TimeScale(UTC).duration(5_432 * SECOND)
        '1 h 30 min'
        >>> TimeScale(None).duration(5432)
        '5,432 ticks'
        """
        if self.timezone is None:
            return "1 tick" if number == 1 else f"{number:,} ticks"
        if number < SECOND:
            return f"{number / MILLISECOND:g} ms"
        if number < MINUTE:
            return f"{round(number / SECOND, 1):g} s"
        units = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
        first = next(i for i, (size, _) in enumerate(units) if number >= size)
        (large, large_name), (small, small_name) = units[first], units[first + 1]
        rest = number % large // small
        return f"{number // large} {large_name}" + (f" {rest} {small_name}" if rest else "")

    def ticks(self, low: int, high: int, most: int, *, elapsed: bool) -> list[tuple[int, str]]:
        """At most `most` round positions from low to high with their labels."""
        step = self._step(max(1, math.ceil((high - low) / most)))
        # Midnight of the zone, not of Greenwich, is where round hours of the day begin.
        offset = 0
        if self.is_clock and not elapsed:
            shift = self.moment(low).utcoffset() or timedelta()
            offset = shift // _MICROSECOND
        first = math.ceil((low + offset) / step) * step - offset
        positions = takewhile(lambda position: position <= high, range(first, high + 1, step))
        if elapsed:
            return [(p, f"+{self.duration(p)}" if p else "start") for p in positions]
        days = (high - low) >= DAY
        return [(p, self.instant(p, precision=step, with_date=days)) for p in positions]

    def _step(self, least: int) -> int:
        if self.is_clock and SECOND <= least <= DAY:
            return next(step for step in _CLOCK_STEPS if step >= least)
        unit = DAY if self.is_clock and least > DAY else 1
        wanted = math.ceil(least / unit)
        power = int(10 ** (len(str(wanted)) - 1))
        return unit * next(step * power for step in (1, 2, 5, 10) if step * power >= wanted)
