"""Events a query cannot use, late or bad: counted and kept for the user, never just dropped."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cepheid.hosts.batch_columns import ColumnOf, int64_values
from cepheid.model.errors import DataError
from cepheid.model.event_time import MAX_TIME
from cepheid.model.options import Options

_KEPT_ROWS = 1_000_000

MATCH_START = "match_start"
"""The column in which events that are matches of another query say when those started."""


class SideOutput:
    """Rows set aside: `count` of all, `table()` of those still kept (the newest million)."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.count = 0
        self._batches: list[pa.RecordBatch] = []
        self._kept = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Set rows aside; the oldest leave when too many are kept."""
        self.count += batch.num_rows
        self._batches.append(batch)
        self._kept += batch.num_rows
        while self._kept > _KEPT_ROWS and len(self._batches) > 1:
            self._kept -= self._batches.pop(0).num_rows

    def table(self) -> pa.Table:
        """The rows kept, in order of arrival."""
        if not self._batches:
            return pa.table({})
        tables = [pa.Table.from_batches([b]) for b in self._batches]
        return pa.concat_tables(tables, promote_options="permissive")

    def take(self) -> pa.Table:
        """The rows kept, which are then forgotten (a host delivers them downstream)."""
        table = self.table()
        self._batches, self._kept = [], 0
        return table

    def __len__(self) -> int:
        """How many rows were ever set aside."""
        return self.count

    def __repr__(self) -> str:
        """The count, for people."""
        return f"<{self.count} events set aside>"


class SetAside:
    """The two side outputs of an engine."""

    def __init__(self) -> None:
        """Nothing late, nothing bad yet."""
        self.late = SideOutput()
        self.quarantined = SideOutput()

    def add_late(self, batch: pa.RecordBatch, rows: np.ndarray) -> None:
        """Keep the rows that came after the watermark had passed them."""
        self.late.add(batch.take(pa.array(rows)))

    def quarantine(
        self,
        batch: pa.RecordBatch,
        codes: np.ndarray,
        times: np.ndarray,
        bad_time: np.ndarray | None,
        unnamed: np.ndarray,
        arrived: int | np.ndarray,
        lacks: Mapping[str, np.ndarray],
        options: Options,
    ) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray, np.ndarray, Mapping[str, np.ndarray]]:
        """Take rows without type or usable time out of a batch, with the reason."""
        wrong = np.zeros(len(times), np.bool_)
        reason = np.full(len(times), "", object)
        if bad_time is not None:
            wrong |= bad_time
            reason[bad_time] = f"`{options.end_column}` is null or out of range"
        if len(unnamed):
            wrong |= unnamed
            reason[unnamed] = f"`{options.type}` is null"
        rows = np.flatnonzero(wrong)
        taken = batch.take(pa.array(rows))
        self.quarantined.add(
            taken.append_column("quarantine_reason", pa.array(reason[rows], pa.string()))
        )
        good = np.flatnonzero(~wrong)
        return (
            batch.take(pa.array(good)),
            codes[good],
            times[good],
            good + arrived if isinstance(arrived, int) else arrived[good],
            {name: flags[good] for name, flags in lacks.items()},
        )


def event_times(
    batch: pa.RecordBatch,
    options: Options,
    *,
    check_range: bool = True,
    column: ColumnOf | None = None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Times as int64 (microseconds for timestamps), and the rows without a usable one.

    The time of an event that lasts is its end; it must not start after that.
    A caller that finds the times in order looks at their ends and saves `check_range` its pass; one
    that has the batch's columns gives them.
    """
    named = column or batch.column
    times, bad = time_numbers(
        named(options.end_column), options.end_column, check_range=check_range
    )
    if options.start is None:
        return times, bad
    starts, wrong = time_numbers(named(options.start), options.start)
    wrong = starts > times if wrong is None else wrong | (starts > times)
    if wrong.any():
        bad = wrong if bad is None else bad | wrong
    return times, bad


def event_starts(batch: pa.RecordBatch, options: Options, ends: np.ndarray) -> np.ndarray:
    """When the events of a batch start; for those that happen at an instant, when they end."""
    if options.start is not None:
        starts, _ = time_numbers(batch.column(options.start), options.start, check_range=False)
        return starts
    if batch.schema.get_field_index(MATCH_START) < 0:
        return ends
    starts, missing = time_numbers(batch.column(MATCH_START), MATCH_START, check_range=False)
    return starts if missing is None else np.where(missing, ends, starts)


def time_numbers(
    column: pa.Array, name: str, *, check_range: bool = True
) -> tuple[np.ndarray, np.ndarray | None]:
    """A column of times as int64, and the rows without a usable one; `name` is for messages."""
    if isinstance(column, pa.Int64Array) and not (check_range or column.null_count):
        return int64_values(column), None  # as most often
    kind = column.type
    if pa.types.is_timestamp(kind):
        if kind.unit != "us":
            column = _microseconds(column, kind)
        whole = column.view(pa.int64())
    elif pa.types.is_integer(kind):
        whole = column if pa.types.is_int64(kind) else _signed(column)
    elif pa.types.is_null(kind):
        return np.zeros(len(column), np.int64), np.ones(len(column), np.bool_)
    else:
        raise DataError.of(
            "bad-time-column",
            f"the time column `{name}` holds {kind}, not integers or timestamps",
            help="name the right column with time=, or cast it to timestamps or integer ticks",
        )
    if whole.null_count:
        missing = whole.is_null().to_numpy(zero_copy_only=False)
        times = whole.fill_null(0).to_numpy(zero_copy_only=False)
    else:
        missing = None
        times = whole.to_numpy(zero_copy_only=False)
    if (
        check_range
        and len(times)
        and (int(times.max()) >= MAX_TIME or int(times.min()) <= -MAX_TIME)
    ):
        outside = (times >= MAX_TIME) | (times <= -MAX_TIME)
        missing = outside if missing is None else missing | outside
    return times, missing


def _microseconds(column: pa.Array, kind: pa.TimestampType) -> pa.Array:
    if kind.unit == "ns":  # cut off below a microsecond
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    try:
        return column.cast(pa.timestamp("us", kind.tz))
    except pa.ArrowInvalid:
        # Seconds or milliseconds so far away that microseconds overflow: null them, quarantined.
        raw = column.view(pa.int64())
        factor = {"s": 1_000_000, "ms": 1_000}[kind.unit]
        numbers = raw.fill_null(0).to_numpy(zero_copy_only=False)
        far = np.abs(numbers) >= MAX_TIME // factor
        lost = far | column.is_null().to_numpy(zero_copy_only=False)
        return pa.array(np.where(far, 0, numbers) * factor, mask=lost).cast(
            pa.timestamp("us", kind.tz)
        )


def _signed(column: pa.Array) -> pa.Array:
    if not pa.types.is_uint64(column.type):
        return column.cast(pa.int64())
    # Beyond int64 there is no time: such numbers become null, and their rows are quarantined.
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    lost = column.is_null().to_numpy(zero_copy_only=False) | (values > np.uint64(MAX_TIME))
    return pa.array(np.where(lost, np.uint64(0), values).astype(np.int64), mask=lost)
