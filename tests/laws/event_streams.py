"""Random streams: rows with integer ticks, and the forms in which a host can be given them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow as pa

Row: TypeAlias = dict[str, Any]

ATTRIBUTES = ("k", "v", "w", "s", "u", "b")
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Clock:
    """How the ticks of a stream become times: integers, or timestamps of an Arrow unit.

    `length` is a tick in microseconds, `window_unit` the unit in which windows are written, `tick`
    the option of that name.
    """

    unit: str | None = None
    zone: str | None = None
    length: int = 1
    window_unit: str | None = None
    tick: Any = None

    @property
    def is_timestamp(self) -> bool:
        return self.unit is not None

    def internal(self, tick: int) -> int:
        """A tick as the engine counts: microseconds for timestamps."""
        return tick * self.length if self.is_timestamp else tick

    def value(self, tick: int) -> int | datetime:
        """A tick as it stands in a dict."""
        if not self.is_timestamp:
            return tick
        naive = EPOCH + timedelta(microseconds=tick * self.length)
        if self.zone is None:
            return naive
        return naive.replace(tzinfo=UTC).astimezone(ZoneInfo(self.zone))

    def duration(self, ticks: int) -> Any:
        """A length of time as the option `lateness` takes it."""
        if self.is_timestamp:
            return timedelta(microseconds=ticks * self.length)
        return ticks


TICKS = Clock()
CLOCKS = (
    Clock(length=1_000_000, window_unit="s", tick="1 s"),
    Clock(length=60_000_000, window_unit="min", tick=timedelta(minutes=1)),
    Clock("us", None, 1_000_000, "seconds", "1 s"),
    Clock("us", "UTC", 1_000_000, None, 1_000_000),
    Clock("s", None, 1_000_000, "sec", "1 s"),
    Clock("ms", "Europe/Berlin", 1_000, "ms", "1 ms"),
    Clock("ns", None, 1, "us", None),
    Clock("ns", "UTC", 3_600_000_000, "hours", "1 h"),
)


def random_stream(
    r: random.Random, types: Sequence[str], size: int, *, careless: bool = False
) -> list[Row]:
    """Up to `size` events in order of time, mostly of these types, with ties.

    In a `careless` stream attributes are null, missing, or no finite number here and there.
    """
    span = r.choice((4, 8, 12, 20)) if size <= 14 else r.choice((20, 40))
    times = sorted(r.randint(0, span) for _ in range(r.randint(size // 3, size)))
    keys = r.choice((1, 1, 2, 3))
    numbers = r.choice((1, 3, 3))
    rows = []
    for position, time in enumerate(times):
        row: Row = {
            "event": position,
            "type": r.choice(types) if r.random() < 0.9 else r.choice(("Z", "", "Ä-Ω")),
            "ts": time,
            "k": r.randrange(keys),
            "v": r.randint(0, numbers),
            "w": r.choice((0.0, -0.0, 0.5, 1.0, 2.5)),
            "s": r.choice(("p", "q", "Q", "", "ä")[: keys + r.choice((0, 2))]),
            "u": r.randint(0, 2),
            "b": r.random() < 0.5,
        }
        if careless:
            for name in ATTRIBUTES:
                chance = r.random()
                if chance < 0.07:
                    row[name] = None
                elif chance < 0.14:
                    del row[name]
            if r.random() < 0.04:
                row["w"] = r.choice((float("nan"), float("inf"), float("-inf")))
        rows.append(row)
    return rows


def without_nulls(rows: Sequence[Row]) -> list[Row]:
    """The same events as one wide table tells them: what is null there counts as absent."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


TABLES = ("plain", "dictionary", "narrow", "decimal", "chunks")
FORMS = ("dicts", *TABLES)
"""How events come: dicts, or tables with various encodings of the same values."""


def fitting(form: str, rows: Sequence[Row]) -> str:
    """The form, or another one when it cannot hold the values."""
    finite = all(math.isfinite(row.get("w") or 0.0) for row in rows)
    return "plain" if form == "decimal" and not finite else form


def in_form(rows: Sequence[Row], form: str, clock: Clock, *, ids: bool = True) -> Any:
    """Something `Detector.feed` takes; without ids equal rows are twins."""
    names = [name for name in _NAMES if ids or name != "event"]
    if form == "dicts":
        dicts = [{**row, "ts": clock.value(row["ts"])} for row in rows]
        return [{name: row[name] for name in names if name in row} for row in dicts]
    table = pa.table([_column(rows, name, form, clock) for name in names], names=names)
    if form == "chunks":
        half = len(rows) // 2
        return pa.concat_tables([table.slice(0, half), table.slice(half)])
    return table.to_batches()[0] if rows else table


_NAMES = ("event", "type", "ts", *ATTRIBUTES)
_PLAIN: dict[str, pa.DataType] = {
    "event": pa.int64(),
    "type": pa.string(),
    "k": pa.int64(),
    "v": pa.int64(),
    "w": pa.float64(),
    "s": pa.string(),
    "u": pa.int64(),
    "b": pa.bool_(),
}
_OTHER: dict[str, dict[str, pa.DataType]] = {
    "dictionary": {
        "type": pa.dictionary(pa.int8(), pa.string()),
        "s": pa.dictionary(pa.int32(), pa.large_string()),
    },
    "narrow": {
        "event": pa.int32(),
        "type": pa.large_string(),
        "k": pa.int32(),
        "v": pa.int8(),
        "w": pa.float32(),
        "s": pa.large_string(),
        "u": pa.uint16(),
    },
    "decimal": {"type": pa.dictionary(pa.int32(), pa.string()), "w": pa.decimal128(9, 2)},
}


def _column(rows: Sequence[Row], name: str, form: str, clock: Clock) -> pa.Array:
    if name == "ts":
        if clock.unit is None:
            return pa.array(
                [row["ts"] for row in rows], pa.int32() if form == "narrow" else pa.int64()
            )
        micro = pa.array([clock.internal(row["ts"]) for row in rows], pa.int64())
        kind = pa.timestamp(clock.unit, clock.zone)
        return micro.cast(pa.timestamp("us", clock.zone)).cast(kind)
    values = [row.get(name) for row in rows]
    kind = _OTHER.get(form, {}).get(name, _PLAIN[name])
    if pa.types.is_decimal(kind):
        values = [None if value is None else Decimal(str(value)) for value in values]
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)
