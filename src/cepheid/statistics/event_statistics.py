"""The statistics of events as values, and as the one JSON file that optimiser and planners read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cepheid.model.errors import DataError

VERSION = 1
KIND = "cepheid event statistics"
TIME_UNITS = ("us", "tick")

Value = int | float | str | bool


@dataclass(frozen=True, slots=True)
class AttributeStatistics:
    """The values of one attribute over the events of one type.

    `distinct` is exact while `is_exact`, else an estimate within a few percent. `frequent` lists
    the commonest values with their share of the events. Times are microseconds.
    """

    type: str
    null_fraction: float
    distinct: int
    is_exact: bool
    least: Value | None
    greatest: Value | None
    frequent: tuple[tuple[Value, float], ...]


@dataclass(frozen=True, slots=True)
class GapStatistics:
    """Time from one event to the next of the same type, in the unit of time."""

    mean: float
    least: int
    median: int
    p90: int
    p99: int
    greatest: int


@dataclass(frozen=True, slots=True)
class TypeStatistics:
    """The events of one type; `rate` is events per unit of time."""

    count: int
    rate: float
    gaps: GapStatistics | None
    attributes: Mapping[str, AttributeStatistics]


@dataclass(frozen=True, slots=True)
class EventStatistics:
    """All that is known of a stream.

    `time_unit` is "us" for timestamps and "tick" for integer times. `disorder` is how far, at most,
    an event stood behind the latest one before it: a lateness that loses nothing.
    `unusable` counts rows without a type or a time.
    """

    time_unit: str
    first: int | None
    last: int | None
    events: int
    unusable: int
    disorder: int
    types: Mapping[str, TypeStatistics]

    @property
    def span(self) -> int:
        """From the first event to the last, at least one unit."""
        return 1 if self.first is None or self.last is None else max(1, self.last - self.first)

    def rate(self, types: tuple[str, ...]) -> float:
        """Events per unit of time of these types together; of all types when none is named."""
        if not types:
            return sum(each.rate for each in self.types.values())
        return sum(self.types[name].rate for name in types if name in self.types)


def save_statistics(statistics: EventStatistics, path: Path | str) -> None:
    """Write the file; it gets its name only when it is whole."""
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_text(to_json(statistics), encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def load_statistics(path: Path | str) -> EventStatistics:
    """Read a file that `save_statistics` wrote; anything else is refused by name."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError.of(
            "no-statistics",
            f"the statistics file `{path}` cannot be read: {problem}",
            help="make one with: cepheid analyze EVENTS -o stats.json",
        ) from None
    return from_json(text, name=str(path))


def to_json(statistics: EventStatistics) -> str:
    """The statistics as indented JSON."""
    return json.dumps(
        {"kind": KIND, "version": VERSION, **asdict(statistics)}, ensure_ascii=False, indent=2
    )


def from_json(text: str, *, name: str = "statistics") -> EventStatistics:
    """The statistics that a text holds."""
    try:
        document = json.loads(text)
    except ValueError as problem:
        raise _broken(name, f"it is not JSON: {problem}") from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise _broken(name, f'it does not say `"kind": "{KIND}"`')
    if document.get("version") != VERSION:
        raise DataError.of(
            "statistics-version",
            f"`{name}` is of version {document.get('version')!r}; version {VERSION} is read",
            help="make it anew with: cepheid analyze EVENTS -o stats.json",
        )
    return _Reader(name).statistics(document)


def _broken(name: str, why: str) -> DataError:
    return DataError.of(
        "bad-statistics",
        f"`{name}` is not a statistics file: {why}",
        help="make one with: cepheid analyze EVENTS -o stats.json",
    )


class _Reader:
    """Reads parsed JSON strictly: a field that is missing or of another type is named."""

    def __init__(self, name: str) -> None:
        self._name = name

    def statistics(self, document: dict[str, Any]) -> EventStatistics:
        unit = self._field(document, "time_unit", str, "")
        if unit not in TIME_UNITS:
            raise _broken(self._name, f"`time_unit` is {unit!r}, not one of {TIME_UNITS}")
        types = self._field(document, "types", dict, "")
        return EventStatistics(
            time_unit=unit,
            first=self._optional_int(document, "first"),
            last=self._optional_int(document, "last"),
            events=self._field(document, "events", int, ""),
            unusable=self._field(document, "unusable", int, ""),
            disorder=self._field(document, "disorder", int, ""),
            types={name: self._type(value, f"types.{name}") for name, value in types.items()},
        )

    def _type(self, value: object, where: str) -> TypeStatistics:
        found = self._object(value, where)
        gaps = found.get("gaps")
        attributes = self._field(found, "attributes", dict, where)
        return TypeStatistics(
            count=self._field(found, "count", int, where),
            rate=self._number(found, "rate", where),
            gaps=None if gaps is None else self._gaps(gaps, f"{where}.gaps"),
            attributes={
                name: self._attribute(each, f"{where}.attributes.{name}")
                for name, each in attributes.items()
            },
        )

    def _gaps(self, value: object, where: str) -> GapStatistics:
        found = self._object(value, where)
        return GapStatistics(
            mean=self._number(found, "mean", where),
            least=self._field(found, "least", int, where),
            median=self._field(found, "median", int, where),
            p90=self._field(found, "p90", int, where),
            p99=self._field(found, "p99", int, where),
            greatest=self._field(found, "greatest", int, where),
        )

    def _attribute(self, value: object, where: str) -> AttributeStatistics:
        found = self._object(value, where)
        frequent = self._field(found, "frequent", list, where)
        for pair in frequent:
            if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], int | float)):
                raise _broken(
                    self._name, f"`{where}.frequent` holds {pair!r}, not a value and share"
                )
        return AttributeStatistics(
            type=self._field(found, "type", str, where),
            null_fraction=self._number(found, "null_fraction", where),
            distinct=self._field(found, "distinct", int, where),
            is_exact=self._field(found, "is_exact", bool, where),
            least=found.get("least"),
            greatest=found.get("greatest"),
            frequent=tuple((value, float(share)) for value, share in frequent),
        )

    def _object(self, value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _broken(self._name, f"`{where}` is not an object")
        return value

    def _field(self, found: dict[str, Any], name: str, kind: type, where: str) -> Any:
        value = found.get(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            place = f"{where}.{name}" if where else name
            raise _broken(self._name, f"`{place}` is {value!r}, not of type {kind.__name__}")
        return value

    def _number(self, found: dict[str, Any], name: str, where: str) -> float:
        value = found.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _broken(self._name, f"`{where}.{name}` is {value!r}, not a number")
        return float(value)

    def _optional_int(self, found: dict[str, Any], name: str) -> int | None:
        return None if found.get(name) is None else int(self._field(found, name, int, ""))
