"""From when on a change of a query counts, and how times are written and told."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from cepheid.hosts.in_process import as_time
from cepheid.model.errors import OptionError

_LARGEST = 2**62
"""No time of an event lies beyond; it leaves room for windows and lateness in 64 bits."""


def parse_time(at: str | int) -> int:
    """A time as a client writes it: a number in the events' unit, or a date and time of ISO 8601.

    >>> parse_time("12"), parse_time("1970-01-01T00:00:01Z")
    (12, 1000000)
    """
    text = str(at).strip()
    try:
        time = int(text) if text.lstrip("-").isdigit() else as_time(datetime.fromisoformat(text))
    except ValueError:
        raise _bad_time(text, "is not a time") from None
    if not -_LARGEST < time < _LARGEST:
        raise _bad_time(text, "is beyond all times that events can have")
    return time


def _bad_time(text: str, why: str) -> OptionError:
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    return OptionError.of(
        "bad-time",
        f"`{shown}` {why}",
        help="write a whole number, or e.g. 2026-01-31T12:00:00Z",
    )


def effective_time(
    at: str | int | None, latest: int | None, column: pa.DataType | None
) -> int | None:
    """From when on a change counts: never before an event that was seen already.

    `latest` is the time of the latest event seen, in a column of that type.
    """
    if at is None:
        return None if latest is None else latest + 1
    time = parse_time(at)
    if latest is not None and time <= latest:
        raise OptionError.of(
            "too-early",
            f"events up to {told_time(latest, column)} have been seen, "
            f"so nothing can change at {told_time(time, column)}",
            help="leave out --at, or give a later time",
        )
    return time


def told_time(time: int, column: pa.DataType | None) -> str:
    """A time as people write it."""
    if column is None or not pa.types.is_timestamp(column):
        return str(time)
    zone = "" if column.tz is None else "Z"
    return f"{pa.scalar(time, pa.timestamp('us')).as_py().isoformat()}{zone}"
