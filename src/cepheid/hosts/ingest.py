"""Events of every accepted form as Arrow batches; what is absent is kept apart from null."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.model.errors import DataError
from cepheid.model.options import Options

_ROWS_PER_BATCH = 1 << 20


@dataclass(frozen=True, slots=True)
class EventBatch:
    """One batch; `lacks[column]` marks rows whose event does not have that attribute.

    `open_schema` says that a column missing altogether means absent (dicts bring what they have),
    not a mistake of the caller. `arrived` are the rows' arrival numbers, or the first one's, where
    whoever takes the batch has not counted them itself.
    """

    batch: pa.RecordBatch
    lacks: Mapping[str, np.ndarray] = field(default_factory=dict)
    open_schema: bool = False
    arrived: np.ndarray | int | None = None

    def only(self, rows: np.ndarray) -> EventBatch:
        """Some of the rows."""
        lacks = {name: flags[rows] for name, flags in self.lacks.items()}
        arrived = self.arrived
        if arrived is not None:
            arrived = rows + arrived if isinstance(arrived, int) else arrived[rows]
        return EventBatch(self.batch.take(pa.array(rows)), lacks, self.open_schema, arrived)


def event_batches(events: Any, options: Options) -> Iterator[EventBatch]:
    """The batches of a table, batch, pandas frame, list of dicts, or dict of those by type."""
    if isinstance(events, EventBatch):
        yield events
    elif isinstance(events, pa.RecordBatch):
        yield EventBatch(events)
    elif isinstance(events, pa.Table):
        yield from (EventBatch(batch) for batch in _batches(events))
    elif isinstance(events, Mapping):
        if options.type in events and options.end_column in events:
            yield _from_dicts([events], options)
        else:
            yield from _by_type(events, options)
    elif hasattr(events, "__dataframe__") or type(events).__module__.startswith("pandas"):
        table = pa.Table.from_pandas(events, preserve_index=False)
        yield from (EventBatch(batch) for batch in _batches(table))
    elif isinstance(events, Sequence) and not isinstance(events, str | bytes):
        if events:
            yield _from_dicts(events, options)
    else:
        raise DataError.of(
            "unknown-events",
            f"events of type {type(events).__name__} cannot be read",
            help="give a pyarrow Table, a pandas or Spark DataFrame, or a list of dicts",
        )


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Few large batches: many small chunks are put together first."""
    if table.num_rows == 0:
        return
    chunks = max(table.column(0).num_chunks, 1) if table.num_columns else 1
    if chunks > 1 and table.num_rows / chunks < 50_000:
        table = table.unify_dictionaries().combine_chunks()
    yield from (b for b in table.to_batches(max_chunksize=_ROWS_PER_BATCH) if b.num_rows)


def _from_dicts(rows: Sequence[Any], options: Options) -> EventBatch:
    names: dict[str, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError.of(
                "not-an-event",
                f"event {number} is a {type(row).__name__}, not a dict",
                help="write each event as a dict with its type, time and attributes",
            )
        names.update(dict.fromkeys(row))
    arrays, lacks = [], {}
    for name in names:
        try:
            arrays.append(pa.array([row.get(name) for row in rows]))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as problem:
            raise _mixed(name, rows, problem) from None
        missing = np.fromiter((name not in row for row in rows), np.bool_, len(rows))
        if name not in (options.type, options.end_column, options.start, options.id):
            lacks[name] = missing
    batch = pa.RecordBatch.from_arrays(arrays, names=list(names))
    return EventBatch(batch, lacks, open_schema=True)


def _mixed(name: str, rows: Sequence[Mapping[str, Any]], problem: Exception) -> DataError:
    kinds: dict[str, int] = {}
    for number, row in enumerate(rows):
        if row.get(name) is not None:
            kinds.setdefault(type(row[name]).__name__, number)
    if len(kinds) > 1:
        said = ", ".join(f"{kind} (first in event {number})" for kind, number in kinds.items())
        return DataError.of(
            "mixed-types",
            f"attribute `{name}` holds values of several types: {said}",
            help="give every event's attribute the same type",
        )
    return DataError.of(
        "bad-value", f"attribute `{name}` holds a value that cannot be kept: {problem}"
    )


def _by_type(tables: Mapping[str, Any], options: Options) -> Iterator[EventBatch]:
    """Tables by type: a column that one of them lacks is absent for its events."""
    parts: list[pa.Table] = []
    own: list[set[str]] = []
    inner: list[Mapping[str, np.ndarray]] = []
    for name, events in tables.items():
        for piece in event_batches(events, options):
            table = pa.Table.from_batches([piece.batch])
            if options.type not in table.column_names:
                table = table.append_column(options.type, pa.repeat(pa.scalar(name), len(table)))
            parts.append(table)
            own.append(set(table.column_names))
            inner.append(piece.lacks)
    if not parts:
        return
    try:
        whole = pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
        raise DataError.of(
            "mixed-types",
            f"the tables do not agree on a column's type: {problem}",
            help="give columns of one name the same type in every table",
        ) from None
    lacks = {}
    for column in whole.column_names:
        if column in (options.type, options.end_column, options.start, options.id):
            continue
        lacks[column] = np.concatenate(
            [
                rows.get(column, np.full(len(part), column not in names, np.bool_))
                for part, names, rows in zip(parts, own, inner, strict=True)
            ]
        )
    order = whole.column(options.end_column)
    at = np.argsort(order.to_numpy(), kind="stable")
    whole = whole.take(pa.array(at)).unify_dictionaries().combine_chunks()
    yield EventBatch(
        whole.to_batches()[0], {name: rows[at] for name, rows in lacks.items()}, open_schema=True
    )
