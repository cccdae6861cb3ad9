"""Statistics of events that come as Arrow batches, in memory that does not grow with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.model.catalogue import AttributeType, attribute_type
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import DataError
from cepheid.model.options import Options
from cepheid.statistics.distinct import DistinctCount, hash_numbers, hash_texts
from cepheid.statistics.event_statistics import (
    AttributeStatistics,
    EventStatistics,
    GapStatistics,
    TypeStatistics,
    Value,
)
from cepheid.statistics.frequent_values import FrequentValues
from cepheid.statistics.quantiles import GapHistogram

FREQUENT_VALUES = 10
_LONGEST_TEXT = 200
_COUNTED_PER_BATCH = 512
"""Of a batch's values only the commonest are counted, so that unique keys cost little."""

Times = npt.NDArray[np.int64]


class StatisticsCollector:
    """Takes batch after batch; `finish` tells what was seen.

    >>> import pyarrow as pa
    >>> collector = StatisticsCollector(Options())
    >>> collector.add(pa.record_batch({"type": ["A", "B", "A"], "ts": [0, 5, 10]}))
    >>> collector.finish().types["A"].gaps.mean
    10.0
    """

    def __init__(self, options: Options) -> None:
        """`options` name the columns of type and time."""
        self._type = options.type
        self._time = options.end_column
        self._types: dict[str, _TypeCollector] = {}
        self._unit: str | None = None
        self._first: int | None = None
        self._last: int | None = None
        self._rows = 0
        self._unusable = 0
        self._disorder = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch of events, in order of arrival."""
        self._rows += batch.num_rows
        usable = pc.and_(pc.is_valid(self._column(batch, self._type)), self._usable_times(batch))
        if not pc.all(usable).as_py():
            self._unusable += batch.num_rows - int(pc.sum(usable).as_py() or 0)
            batch = batch.filter(usable)
        if batch.num_rows == 0:
            return
        times = _times(batch.column(self._time))
        self._note_times(times)
        types = _plain(batch.column(self._type)).cast(pa.string()).dictionary_encode()
        codes = types.indices.to_numpy(zero_copy_only=False)
        names = types.dictionary.to_pylist()
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
        shared = {
            name: batch.column(name) for name in batch.schema.names if name not in self._facts
        }
        for code, name in enumerate(names):
            rows = order[starts[code] : starts[code + 1]]
            collector = self._types.setdefault(name, _TypeCollector())
            collector.add_times(times[rows])
            for attribute, column in shared.items():
                collector.add_values(attribute, _plain(column.take(rows)))

    def finish(self) -> EventStatistics:
        """What was seen so far."""
        first, last = self._first, self._last
        span = 1 if first is None or last is None else max(1, last - first)
        return EventStatistics(
            time_unit=self._unit or "tick",
            first=first,
            last=last,
            events=self._rows - self._unusable,
            unusable=self._unusable,
            disorder=self._disorder,
            types={name: self._types[name].finish(span) for name in sorted(self._types)},
        )

    @property
    def _facts(self) -> tuple[str, str]:
        return self._type, self._time

    def _column(self, batch: pa.RecordBatch, name: str) -> Any:
        if batch.schema.get_field_index(name) < 0:
            raise DataError.of(
                "unknown-column",
                f"the events have no column `{name}`",
                help=did_you_mean(name, batch.schema.names)
                or f"name the columns of type and time; there are {', '.join(batch.schema.names)}",
            )
        return batch.column(name)

    def _usable_times(self, batch: pa.RecordBatch) -> Any:
        column = self._column(batch, self._time)
        kind = column.type
        if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
            raise DataError.of(
                "bad-time-column",
                f"the time column `{self._time}` holds {kind}, not integers or timestamps",
                help="name the right column of time, or cast it to timestamps or integer ticks",
            )
        self._unit = "us" if pa.types.is_timestamp(kind) else "tick"
        return pc.is_valid(column)

    def _note_times(self, times: Times) -> None:
        least, greatest = int(times.min()), int(times.max())
        before = self._last if self._last is not None else int(times[0])
        latest = np.maximum(np.maximum.accumulate(times), before)
        self._disorder = max(self._disorder, int((latest - times).max()))
        self._first = least if self._first is None else min(self._first, least)
        self._last = greatest if self._last is None else max(self._last, greatest)


class _TypeCollector:
    def __init__(self) -> None:
        self.count = 0
        self._gaps = GapHistogram()
        self._latest: int | None = None
        self._attributes: dict[str, _AttributeCollector] = {}

    def add_times(self, times: Times) -> None:
        self.count += len(times)
        ordered = np.sort(times)
        if self._latest is not None:
            ordered = np.concatenate([np.array([self._latest], np.int64), ordered])
        gaps = np.diff(ordered)
        self._gaps.add(gaps[gaps >= 0])  # an event behind the batch before it has no gap
        latest = int(ordered.max())
        self._latest = latest if self._latest is None else max(self._latest, latest)

    def add_values(self, name: str, values: Any) -> None:
        self._attributes.setdefault(name, _AttributeCollector()).add(values)

    def finish(self, span: int) -> TypeStatistics:
        gaps = self._gaps
        return TypeStatistics(
            count=self.count,
            rate=self.count / span,
            gaps=GapStatistics(
                mean=gaps.mean,
                least=gaps.least,
                median=gaps.quantile(0.5),
                p90=gaps.quantile(0.9),
                p99=gaps.quantile(0.99),
                greatest=gaps.greatest,
            )
            if gaps.count
            else None,
            attributes={
                name: each.finish(self.count)
                for name, each in self._attributes.items()
                if each.has_values
            },
        )


class _AttributeCollector:
    def __init__(self) -> None:
        self._type: AttributeType | None = None
        self._defined = 0
        self._distinct = DistinctCount()
        self._frequent = FrequentValues()
        self._least: Any = None
        self._greatest: Any = None

    @property
    def has_values(self) -> bool:
        """A column that is null in all events of a type is no attribute of that type."""
        return self._defined > 0

    def add(self, values: Any) -> None:
        kind = attribute_type(values.type)
        if kind is AttributeType.UNKNOWN:
            return
        values = _countable(values.drop_null(), kind)
        if not len(values):
            return
        self._type = kind if self._type is None else self._type.merge(kind)
        self._defined += len(values)
        counted = values.value_counts()
        distinct, counts = counted.field(0), counted.field(1).to_numpy(zero_copy_only=False)
        if kind is AttributeType.STRING:
            self._distinct.add(hash_texts(distinct.to_pylist()))
        else:
            self._distinct.add(hash_numbers(distinct.to_numpy(zero_copy_only=False)))
        most = np.argsort(-counts, kind="stable")[:_COUNTED_PER_BATCH]
        common = distinct.take(most).to_pylist()
        as_value = bool if kind is AttributeType.BOOL else _same
        self._frequent.add(
            (as_value(value), int(count))
            for value, count in zip(common, counts[most], strict=True)
            if not isinstance(value, str) or len(value) <= _LONGEST_TEXT
        )
        bounds: Any = pc.min_max(values)
        self._widen(as_value(bounds["min"].as_py()), as_value(bounds["max"].as_py()))

    def _widen(self, least: Any, greatest: Any) -> None:
        if self._type is AttributeType.UNKNOWN:  # numbers in one file, strings in another
            self._least = self._greatest = None
            return
        self._least = least if self._least is None else min(self._least, least)
        self._greatest = greatest if self._greatest is None else max(self._greatest, greatest)

    def finish(self, events: int) -> AttributeStatistics:
        frequent = self._frequent.most_frequent(FREQUENT_VALUES)
        return AttributeStatistics(
            type=(self._type or AttributeType.UNKNOWN).value,
            null_fraction=1 - self._defined / events,
            distinct=self._distinct.estimate,
            is_exact=self._distinct.is_exact,
            least=_shortened(self._least),
            greatest=_shortened(self._greatest),
            frequent=tuple((value, count / events) for value, count in frequent if count > 1),
        )


def _same(value: Value) -> Value:
    return value


def _shortened(value: Any) -> Any:
    return value[:_LONGEST_TEXT] if isinstance(value, str) else value


def _plain(column: Any) -> Any:
    """The column without dictionary encoding."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _countable(values: Any, kind: AttributeType) -> Any:
    """The values as int64, float64 without NaN, or string; times are microseconds."""
    match kind:
        case AttributeType.STRING:
            return values.cast(pa.string())
        case AttributeType.FLOAT:
            floats = values.cast(pa.float64(), safe=False)
            return floats.filter(pc.invert(pc.is_nan(floats)))
        case AttributeType.TIMESTAMP:
            return values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        case _:
            return values.cast(pa.int64(), safe=False)


def _times(column: Any) -> Times:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    found: Times = column.cast(pa.int64(), safe=False).to_numpy(zero_copy_only=False)
    return found
