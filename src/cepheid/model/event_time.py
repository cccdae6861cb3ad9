"""Event time: integers inside, microseconds for timestamps, ticks for integer columns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import OptionError, QueryError

MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SPELLINGS = {
    "us": "us microsecond microseconds usec",
    "ms": "ms millisecond milliseconds msec",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes m",
    "h": "h hr hrs hour hours",
    "day": "d day days",
    "week": "w week weeks",
}
UNITS = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}

MAX_TIME = 2**60
"""Times and windows beyond this (36,000 years of microseconds) are refused: kernels add and
subtract a few of them and must stay within 64 bits."""


@dataclass(frozen=True, slots=True)
class TimeDomain:
    """How a time column counts: integer ticks, or timestamps in microseconds.

    `tick` is the length of one tick: in microseconds for timestamps (SASE's negated end depends on
    it, docs/semantics.md#guard), and, for integer columns, what a window with a unit is divided by.
    """

    is_timestamp: bool
    tick_us: int | None = None

    @property
    def one_tick(self) -> int:
        """One tick in the column's internal integer unit."""
        return (self.tick_us or 1) if self.is_timestamp else 1

    def resolve(self, amount: float | Fraction, unit: str | None) -> int:
        """A duration in the column's internal unit.

        >>> TimeDomain(is_timestamp=True).resolve(12, "hours")
        43200000000
        >>> TimeDomain(is_timestamp=False).resolve(10, None)
        10
        """
        if unit is None:
            return _whole(Fraction(amount) * self._unitless())
        microseconds = Fraction(amount) * unit_microseconds(unit)
        if self.is_timestamp:
            return _whole(microseconds)
        if self.tick_us is None:
            raise QueryError.of(
                "window-needs-tick",
                f"the window is given in {unit}, but the time column holds integers",
                help='say how long one tick is, e.g. tick="1 s", or give the window in ticks',
            )
        return _whole(microseconds / self.tick_us)

    def _unitless(self) -> int:
        if not self.is_timestamp:
            return 1
        if self.tick_us is None:
            raise QueryError.of(
                "window-needs-unit",
                "the window has no unit, but the time column holds timestamps",
                help='write the unit, e.g. WITHIN 10 s, or give tick="1 s"',
            )
        return self.tick_us


def unit_microseconds(unit: str) -> int:
    """Microseconds in a unit, however it is spelt."""
    known = UNITS.get(unit.casefold())
    if known is None:
        raise QueryError.of(
            "unknown-unit", f"`{unit}` is not a unit of time", help=did_you_mean(unit, UNITS)
        )
    return MICROSECONDS[known]


def parse_duration(value: str | timedelta | int | None, option: str) -> int | None:
    """An option such as `tick` or `lateness` in microseconds: "1 s", a timedelta, or an integer.

    >>> parse_duration("1.5 s", "tick")
    1500000
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, timedelta):
        return _whole(Fraction(value / timedelta(microseconds=1)))
    if isinstance(value, str):
        number, _, unit = value.strip().partition(" ")
        if not unit:
            digits = len(number) - len(number.lstrip("0123456789."))
            number, unit = number[:digits], number[digits:]
        try:
            return _whole(Fraction(number) * unit_microseconds(unit.strip()))
        except (ValueError, QueryError):
            pass
    raise OptionError.of(
        "bad-duration",
        f"{option}={value!r} is not a duration",
        help=f'write e.g. {option}="10 s", a timedelta, or an integer of microseconds',
    )


def duration_text(amount: int, *, is_timestamp: bool) -> str:
    """A length of time in words, exactly, in the largest units that hold it.

    >>> duration_text(43_200_000_000, is_timestamp=True)
    '12 h'
    >>> duration_text(90_000_001, is_timestamp=True)
    '1 min 30.000001 s'
    >>> duration_text(10_000, is_timestamp=False)
    '10,000 ticks'
    """
    if not is_timestamp:
        return "1 tick" if amount == 1 else f"{amount:,} ticks"
    if abs(amount) < MICROSECONDS["ms"]:
        return f"{amount} us"
    if abs(amount) < MICROSECONDS["s"]:
        return f"{_decimal(amount, MICROSECONDS['ms'])} ms"
    words = []
    rest = abs(amount)
    for unit, name in (("day", "d"), ("h", "h"), ("min", "min")):
        count, rest = divmod(rest, MICROSECONDS[unit])
        if count:
            words.append(f"{count} {name}")
    if rest:
        words.append(f"{_decimal(rest, MICROSECONDS['s'])} s")
    return ("-" if amount < 0 else "") + " ".join(words)


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _whole(value: Fraction) -> int:
    if value.denominator != 1:
        raise QueryError.of(
            "window-not-whole",
            f"the length of time is {float(value)} ticks, which is not a whole number",
            help="choose a smaller tick or another length",
        )
    if abs(value) > MAX_TIME:
        raise QueryError.of("window-too-large", "the length of time is more than 36,000 years")
    return int(value)
