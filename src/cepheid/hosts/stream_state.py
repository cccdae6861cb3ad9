"""The durable state of one bucket: its live events in segments, and a small header that lists them.

Each step appends one segment with the events it brought, so a step costs what it brings and not
what is alive. A segment goes when all its events are too old to matter; small ones are merged, and
one that is mostly dead is written anew, so that neither their number nor their dead weight grows.
The header names the version: a detector that a worker kept in memory goes on only if it is at this
version, or at an earlier one from which the segments since then lead here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.snapshot import join_events, read_table, write_table
from cepheid.hosts.stream_clock import BEGINNING
from cepheid.model.errors import StateError

FORMAT = 1
MOST_SEGMENTS = 48
MERGED_AT_ONCE = 16
_VERSIONS_REMEMBERED = 64
_SMALL = 4_096
_WORTH_COMPRESSING = 1 << 16


class Store(Protocol):
    """Where a bucket's state is kept: one header and numbered segments."""

    def header(self) -> bytes | None:
        """The header, if there is one."""

    def set_header(self, data: bytes) -> None:
        """Replace the header."""

    def segment(self, number: int) -> bytes:
        """One segment."""

    def set_segment(self, number: int, data: bytes) -> None:
        """Write a segment."""

    def drop_segment(self, number: int) -> None:
        """Remove a segment."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Events of the versions first..last of one stage; times tell when they can be forgotten."""

    number: int
    stage: int
    first_version: int
    last_version: int
    rows: int
    size: int
    first_time: int
    last_time: int


@dataclass(frozen=True, slots=True)
class StageState:
    """Where one stage stands."""

    watermark: int
    latest: int
    position: int
    dead_until: int = BEGINNING


@dataclass(frozen=True, slots=True)
class Header:
    """All of a bucket's state but the events.

    `tokens` are random names of the newest versions, oldest first; `timer` is the event-time timer
    that is set, in milliseconds. `lost` is the latest version of which some event is gone.
    `queries` are those of a workload that has changed while it ran, and `changed` the version at
    which it did so last.
    """

    fingerprint: str
    version: int = 0
    tokens: tuple[str, ...] = ()
    next_number: int = 0
    timer: int | None = None
    stages: tuple[StageState, ...] = ()
    front: dict[str, Any] | None = None
    segments: tuple[Segment, ...] = ()
    lost: int = 0
    queries: list[Any] | None = None
    changed: int = 0

    def to_bytes(self) -> bytes:
        """JSON, so that any version can at least read whose state it is."""
        values = {name: getattr(self, name) for name in _HEADER_FIELDS}
        values["stages"] = [astuple(stage) for stage in self.stages]
        values["segments"] = [_SEGMENT_VALUES(segment) for segment in self.segments]
        return json.dumps({"format": FORMAT, **values}, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes, fingerprint: str) -> Header:
        """The header, refused by name when another query or another format wrote it."""
        values = json.loads(data)
        found = values.pop("format", None)
        if found != FORMAT:
            raise StateError.of(
                "state-format",
                f"the checkpoint holds state of format {found}; this version reads {FORMAT}",
                help="go on with the version that wrote it, or start with a new checkpoint",
            )
        if values["fingerprint"] != fingerprint:
            raise StateError.of(
                "other-query",
                "the checkpoint belongs to another query, other options or other event columns",
                notes=("a running query's state cannot be read as another's",),
                help="start with a new checkpoint location, or restore the old query",
            )
        values["tokens"] = tuple(values["tokens"])
        values["stages"] = tuple(StageState(*each) for each in values["stages"])
        values["segments"] = tuple(Segment(*each) for each in values["segments"])
        return cls(**values)

    def version_of(self, token: str) -> int | None:
        """The version that has this name; None when it is too old or was never committed."""
        if token not in self.tokens:
            return None
        return self.version - (len(self.tokens) - 1 - self.tokens.index(token))

    def next(self, token: str) -> Header:
        """The header of the following version, for now with the same content."""
        return replace(
            self,
            version=self.version + 1,
            tokens=(*self.tokens[1 - _VERSIONS_REMEMBERED :], token),
        )


_HEADER_FIELDS = tuple(field.name for field in fields(Header))
_SEGMENT_VALUES = attrgetter(*(field.name for field in fields(Segment)))


def read_stage(
    store: Store, header: Header, stage: int, after: int | None = None
) -> list[pa.Table] | None:
    """The stored events of a stage, of versions later than `after`; None when they are mixed."""
    wanted = [s for s in header.segments if s.stage == stage]
    if after is not None:
        wanted = [s for s in wanted if s.last_version > after]
        if any(s.first_version <= after for s in wanted):
            return None
    return [read_table(store.segment(s.number)) for s in wanted]


def append(store: Store, header: Header, stage: int, events: pa.Table, time_column: str) -> Header:
    """Add the events of this version; the header that lists them."""
    times = _times(events, time_column)
    data = _written(events)
    number = header.next_number
    store.set_segment(number, data)
    added = Segment(
        number,
        stage,
        header.version,
        header.version,
        len(events),
        len(data),
        int(times.min()),
        int(times.max()),
    )
    return replace(header, next_number=number + 1, segments=(*header.segments, added))


def drop_dead(store: Store, header: Header, horizons: Sequence[int | None]) -> Header:
    """Remove the segments all of whose events lie at or before their stage's horizon."""
    alive = []
    for segment in header.segments:
        horizon = horizons[segment.stage]
        if horizon is not None and segment.last_time <= horizon:
            store.drop_segment(segment.number)
            header = replace(header, lost=max(header.lost, segment.last_version))
        else:
            alive.append(segment)
    return header if len(alive) == len(header.segments) else replace(header, segments=tuple(alive))


def mostly_dead(header: Header, horizons: Sequence[int | None]) -> tuple[Segment, ...]:
    """Segments worth writing anew: large, and by their times more than half dead."""
    found = []
    for segment in header.segments:
        horizon = horizons[segment.stage]
        if horizon is None or segment.rows < _SMALL:
            continue
        span = segment.last_time - segment.first_time
        if 2 * (horizon - segment.first_time) > span:
            found.append(segment)
    return tuple(found)


def cheapest_run(
    header: Header, stage: int, most: int = MOST_SEGMENTS, *, keeps_first: bool = False
) -> tuple[Segment, ...]:
    """Adjacent segments to merge because there are too many: those with the fewest bytes.

    One with the whole state of its stage is none of them where it tells more than its events.
    """
    mine = [s for s in header.segments if s.stage == stage]
    if keeps_first:
        mine = [s for s in mine if s.first_version > 0]
    if len(mine) <= most:
        return ()
    runs = [mine[i : i + MERGED_AT_ONCE] for i in range(len(mine) - MERGED_AT_ONCE + 1)]
    return tuple(min(runs, key=lambda run: sum(s.size for s in run)))


def rewrite(
    store: Store,
    header: Header,
    old: Sequence[Segment],
    horizon: int | None,
    time_column: str,
) -> Header:
    """Put segments of one stage together into one, without the events that are dead."""
    events = join_events([read_table(store.segment(s.number)) for s in old])
    times = _times(events, time_column)
    if horizon is not None and len(times):
        alive = times > horizon
        events, times = events.filter(pa.array(alive)), times[alive]
    for segment in old:
        store.drop_segment(segment.number)
    kept = [s for s in header.segments if s not in old]
    if horizon is not None:
        header = replace(header, lost=max(header.lost, *(s.last_version for s in old)))
    if not len(events):
        return replace(header, segments=tuple(kept))
    data = _written(events)
    number = header.next_number
    store.set_segment(number, data)
    merged = Segment(
        number,
        old[0].stage,
        min(s.first_version for s in old),
        max(s.last_version for s in old),
        len(events),
        len(data),
        int(times.min()),
        int(times.max()),
    )
    where = header.segments.index(old[0])
    return replace(header, next_number=number + 1, segments=(*kept[:where], merged, *kept[where:]))


def replace_stage(
    store: Store, header: Header, stage: int, events: pa.Table, time_column: str
) -> Header:
    """All events of a stage anew; whoever knows an earlier version has to read them all."""
    for segment in header.segments:
        if segment.stage == stage:
            store.drop_segment(segment.number)
    kept = tuple(s for s in header.segments if s.stage != stage)
    header = replace(header, segments=kept, lost=header.version)
    if not len(events):
        return header
    header = append(store, header, stage, events, time_column)
    *others, whole = header.segments
    return replace(header, segments=(*others, replace(whole, first_version=0)))


def _written(events: pa.Table) -> bytes:
    return write_table(events, "lz4" if events.nbytes > _WORTH_COMPRESSING else None)


def _times(events: pa.Table, time_column: str) -> np.ndarray:
    column = events.column(time_column)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    times: np.ndarray = pc.cast(column, pa.int64(), safe=False).to_numpy()
    return times
