"""SEQ(E1, ..., En) [attr1] WITHIN W as written with NumPy, DuckDB and Polars, on one thread each.

All three return row numbers, one column per pattern component, and compare times strictly, so that
tied events never follow each other and last - first < W. Rows come in time order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from benchmarks.workload import LENGTH, Columns, Int64s

Rows = list[Int64s]  # row numbers of the first, second, ... event of each match

_LARGEST = np.iinfo(np.int64).max
_EXPANSION = 4_000_000  # matches built at once: bounds memory where a batch has more
_BLOCK = 1_000_000  # matches DuckDB hands over at once
_RADIX_SORTED = 1 << 16  # NumPy sorts 16-bit integers by radix, wider ones by comparisons


@dataclass(slots=True)
class _Component:
    """The candidates for one place of the sequence, sorted by key and time."""

    row: Int64s
    position: Int64s  # key and time in one number: key * span + time


class NumpySequence:
    """Sort by key, find each range of partners with searchsorted, expand the ranges from the end.

    Rows that can still take part in a match (less than W old) are carried to the next batch and
    sorted again with it. Cost per batch: O((b + w) log(b + w)) for b new and w carried rows of the
    pattern's types, plus the matches.
    """

    def __init__(self, window: int, length: int = LENGTH) -> None:
        """Start with nothing carried."""
        self._window = window
        self._length = length
        self._seen = 0
        self._carried: Columns | None = None
        self._carried_rows: Int64s = np.empty(0, np.int64)

    def feed(self, batch: Columns) -> Iterator[Rows]:
        """Yield the matches whose last event is in the batch, in blocks of bounded size."""
        relevant = np.flatnonzero(batch.type < self._length)
        rows = relevant + self._seen
        events = Columns(batch.type[relevant], batch.key[relevant], batch.time[relevant])
        self._seen += len(batch)
        if self._carried is not None:
            rows = np.concatenate([self._carried_rows, rows])
            events = Columns(
                np.concatenate([self._carried.type, events.type]),
                np.concatenate([self._carried.key, events.key]),
                np.concatenate([self._carried.time, events.time]),
            )
        first_new = len(self._carried_rows)
        if len(batch):
            self._carry(events, rows, int(batch.time[-1]) - self._window)
        if len(events):
            yield from self._matches(events, rows, first_new)

    def _carry(self, events: Columns, rows: Int64s, horizon: int) -> None:
        start = int(np.searchsorted(events.time, horizon, "right"))
        kept = events.slice(start, len(events))
        self._carried = Columns(kept.type.copy(), kept.key.copy(), kept.time.copy())
        self._carried_rows = rows[start:].copy()

    def _matches(self, events: Columns, rows: Int64s, first_new: int) -> Iterator[Rows]:
        # No two events are further apart than the data's span: a wider window means the same.
        window = min(self._window, int(events.time[-1] - events.time[0]) + 1)
        components = self._components(events, rows, first_new, window)
        # Forward: `reach[i]` counts the partners before event i in the previous component, `start`
        # is the latest first event on any path to it, so that events no path reaches drop out.
        starts, reaches = [components[0].position], [np.empty(0, np.int64)]
        for previous, current in pairwise(components):
            if not len(previous.row):
                return
            reach = np.searchsorted(previous.position, current.position, "left")
            start = starts[-1][np.maximum(reach - 1, 0)]
            alive = (reach > 0) & (start > current.position - window)
            current.row, current.position = current.row[alive], current.position[alive]
            starts.append(start[alive])
            reaches.append(reach[alive])
        last = components[-1].position
        ranges = [
            (
                np.searchsorted(component.position, last - window, "right"),
                np.searchsorted(component.position, last, "left"),
            )
            for component in components[:-1]
        ]
        for block in _blocks(ranges, len(last)):
            yield _expand(components, starts, reaches, [low for low, _ in ranges], window, block)

    def _components(
        self, events: Columns, rows: Int64s, first_new: int, window: int
    ) -> list[_Component]:
        """Sort the candidates of each component; the last one takes new events only."""
        origin = int(events.time[0]) - window
        span = int(events.time[-1]) - origin + window + 1  # `position - window` keeps to its key
        keys = events.key - events.key.min()
        domain = int(keys.max()) + 1
        if domain > _LARGEST // span:
            values, keys = np.unique(events.key, return_inverse=True)
            domain = len(values)
        narrow = np.uint16 if domain <= _RADIX_SORTED else np.int64
        components = []
        for number in range(self._length):
            chosen = np.flatnonzero(events.type == number)
            if number == self._length - 1:
                chosen = chosen[np.searchsorted(chosen, first_new) :]
            key = keys[chosen]
            order = np.argsort(key.astype(narrow), kind="stable")
            chosen, key = chosen[order], key[order]
            position = key * span + (events.time[chosen] - origin)
            components.append(_Component(rows[chosen], position))
        return components


def _expand(
    components: list[_Component],
    starts: list[Int64s],
    reaches: list[Int64s],
    lowest: list[Int64s],
    window: int,
    block: slice,
) -> Rows:
    """Backwards from the accepting events: one partial match for each partner in its range."""
    last = components[-1]
    accepting = np.arange(len(last.row))[block]
    bound = [accepting]
    top = reaches[-1][accepting]
    for number in range(len(components) - 2, -1, -1):
        parent, partner = _unroll(np.minimum(lowest[number][accepting], top), top)
        accepting = accepting[parent]
        bound = [column[parent] for column in bound]
        if number > 0:
            inside = starts[number][partner] > last.position[accepting] - window
            if not inside.all():
                accepting, partner = accepting[inside], partner[inside]
                bound = [column[inside] for column in bound]
            top = reaches[number][partner]
        bound.insert(0, partner)
    return [component.row[column] for component, column in zip(components, bound, strict=True)]


def _unroll(low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
    """Return every position of the ranges [low, high) with the number of its range."""
    counts = high - low
    parent = np.repeat(np.arange(len(counts)), counts)
    offset = np.cumsum(counts) - counts - low
    return parent, np.arange(len(parent)) - offset[parent]


def _blocks(ranges: list[tuple[Int64s, Int64s]], accepting: int) -> Iterator[slice]:
    """Cut the accepting events so that all combinations of a block stay below a bound."""
    combinations = np.ones(accepting)
    for low, high in ranges:
        combinations *= high - low
    total = np.cumsum(combinations)
    start = 0
    while start < accepting:
        before = total[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(total, before + _EXPANSION, "right")))
        yield slice(start, stop)
        start = stop


class DuckdbBuckets:
    """A DuckDB self-join on key and time bucket, the bucket as wide as the window.

    The last event's bucket decides; earlier events stand in their own bucket and in the next, so
    that every pair less than W apart meets in exactly one.
    """

    def __init__(self, events: Columns, window: int, length: int = LENGTH) -> None:
        """Load the events into a DuckDB table."""
        columns = pa.table(
            {
                "type": pa.array(events.type),
                "key": pa.array(events.key),
                "time": pa.array(events.time - (events.time[0] if len(events) else 0)),
                "row": pa.array(np.arange(len(events))),
            }
        )
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._connection.register("arrow_events", columns)
        self._connection.execute("CREATE TABLE events AS SELECT * FROM arrow_events").fetchall()
        self._from = _duckdb_join(window, length)
        self._columns = ", ".join(f"c{i}.row AS row{i}" for i in range(length))

    def matches(self) -> Iterator[Rows]:
        """Yield the matches in blocks as DuckDB produces them."""
        answer = self._connection.sql(f"SELECT {self._columns} {self._from}")
        for block in answer.to_arrow_reader(_BLOCK):
            yield [column.to_numpy() for column in block.columns]

    def count(self) -> int:
        """Return the number of matches without building them."""
        # All rows are fetched, though there is one: DuckDB refuses work beside an open result.
        ((found,),) = self._connection.execute(f"SELECT count(*) {self._from}").fetchall()
        return int(found)


def _duckdb_join(window: int, length: int) -> str:
    last = length - 1
    sources = [
        f"(SELECT row, key, time, time // {window} + shift AS bucket"
        f" FROM events, (VALUES (0), (1)) AS shifts(shift) WHERE type = {number}) AS c{number}"
        for number in range(last)
    ]
    sources.append(
        f"(SELECT row, key, time, time // {window} AS bucket FROM events WHERE type = {last})"
        f" AS c{last}"
    )
    tests = [f"c{last}.time - c0.time < {window}"]
    for number in range(last):
        tests.append(f"c{number}.key = c{last}.key AND c{number}.bucket = c{last}.bucket")
        tests.append(f"c{number}.time < c{number + 1}.time")
    return f"FROM {', '.join(sources)} WHERE {' AND '.join(tests)}"


class PolarsBuckets:
    """The same bucketed self-join with Polars' lazy frames, time order tested after each join."""

    _ENGINE: Final = "streaming"  # faster here than the in-memory engine, and bounds memory

    def __init__(self, events: Columns, window: int, length: int = LENGTH) -> None:
        """Load the events into one frame per component."""
        frame = pl.DataFrame(
            {
                "type": events.type,
                "key": events.key,
                "time": events.time - (events.time[0] if len(events) else 0),
                "row": np.arange(len(events)),
            }
        ).with_columns(bucket=pl.col("time") // window)
        self._window = window
        self._components = [
            frame.filter(pl.col("type") == number).drop("type") for number in range(length)
        ]

    def matches(self, buckets_at_once: int | None = None) -> Iterator[Rows]:
        """Yield the matches of so many buckets (None: of all) at once, to bound their memory."""
        final = self._components[-1]["bucket"].max()
        if not isinstance(final, int):  # no last event, no bucket
            return
        step = buckets_at_once or final + 1
        for bucket in range(0, final + 1, step):
            found = self._join(bucket, bucket + step - 1).collect(engine=self._ENGINE)
            yield [column.to_numpy() for column in found.iter_columns()]

    def count(self) -> int:
        """Return the number of matches; the streaming engine never holds them all."""
        final = self._components[-1]["bucket"].max()
        if not isinstance(final, int):
            return 0
        joined = self._join(0, final)
        return int(joined.select(pl.len()).collect(engine=self._ENGINE).item())

    def _join(self, first: int, final: int) -> pl.LazyFrame:
        """Join the matches whose last event is in the buckets from `first` to `final`."""
        chosen = pl.col("bucket").is_between(first, final)
        last = len(self._components) - 1
        joined = _numbered(self._components[last].lazy().filter(chosen), last)
        for number in range(last - 1, -1, -1):
            own = self._components[number].lazy()
            both = pl.concat([own, own.with_columns(bucket=pl.col("bucket") + 1)]).filter(chosen)
            joined = joined.join(_numbered(both, number), on=["key", "bucket"]).filter(
                pl.col(f"time{number}") < pl.col(f"time{number + 1}"),
                pl.col(f"time{last}") - pl.col(f"time{number}") < self._window,
            )
        return joined.select(f"row{number}" for number in range(last + 1))


def _numbered(component: pl.LazyFrame, number: int) -> pl.LazyFrame:
    return component.rename({"time": f"time{number}", "row": f"row{number}"})


def polars_threads() -> int:
    """Return how many threads Polars was imported with; a comparison on one core needs 1."""
    return pl.thread_pool_size()
