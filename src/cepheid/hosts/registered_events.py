"""Records of registered sources as events, in this process: columns of Arrow, no loop over rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.ingest import EventBatch, event_batches
from cepheid.hosts.set_aside import time_numbers
from cepheid.model.errors import DataError
from cepheid.planner.registered_sources import Part, Registrations


def registered_events(records: Any, registrations: Registrations | None) -> Any:
    """What the hosts take instead of a source's records: events with the names of the schema.

    Records come by source, in a dict, or in one table with a column of their type, which a text
    with one source needs not have. In whatever form they come, the events are a form of Arrow.
    """
    if registrations is None:
        return records
    given = registrations.given
    if isinstance(records, Mapping):
        if isinstance(records.get(given.type), str):
            records = [records]  # one record
        else:
            return {name: _of_source(name, each, registrations) for name, each in records.items()}
    return _events(records, None, registrations)


def _of_source(name: Any, records: Any, registrations: Registrations) -> Any:
    if name not in registrations.sources:
        raise registrations.unknown_source(name)
    return _events(records, name, registrations)


def _events(records: Any, source: str | None, registrations: Registrations) -> Any:
    if isinstance(records, EventBatch):
        return _Batch(records, source, registrations).events()
    if isinstance(records, pa.RecordBatch):
        return _Batch(EventBatch(records), source, registrations).events().batch
    if type(records).__module__.startswith("pandas"):
        records = pa.Table.from_pandas(records, preserve_index=False)
    if isinstance(records, pa.Table):
        none = pa.RecordBatch.from_pylist([], schema=records.schema)
        batches = [
            _Batch(EventBatch(batch), source, registrations).events().batch
            for batch in (none, *records.unify_dictionaries().to_batches())
        ]
        return pa.Table.from_batches(batches)
    if isinstance(records, Sequence) and not records:
        return records
    (batch,) = event_batches(records, registrations.given)  # dicts make one batch
    return _Batch(batch, source, registrations).events()


class _Batch:
    """One batch of records, and which sources they may be of."""

    def __init__(
        self, records: EventBatch, source: str | None, registrations: Registrations
    ) -> None:
        self._records = records
        self._registrations = registrations
        self._batch = records.batch
        source = source or self._told_source()
        if source is not None:
            self._sources: tuple[str, ...] = (source,)
        elif records.open_schema:
            self._sources = tuple(registrations.sources)
        else:
            self._sources = registrations.participants(records.batch.schema)
        self._source = source

    def _told_source(self) -> str | None:
        kind = self._registrations.given.type
        if self._batch.schema.get_field_index(kind) >= 0:
            return None
        only = self._registrations.only_source()
        if only is None:
            raise DataError.of(
                "unknown-column",
                f"the records have no column `{kind}` that tells their source",
                help="name it with type=, or give the records by source: {"
                + ", ".join(f'"{name}": ...' for name in self._registrations.sources)
                + "}",
            )
        return only

    def events(self) -> EventBatch:
        """The events; records of no known source are left out where they would have no time."""
        registrations, options = self._registrations, self._registrations.options
        is_open = self._records.open_schema
        schema = registrations.event_schema(self._batch.schema, self._sources, is_open=is_open)
        if schema.get_field_index(options.end_column) < 0:
            raise registrations.missing_time(self._batch.schema.names)
        columns: dict[str, pa.Array] = {options.type: self._types()}
        lacks: dict[str, np.ndarray] = {}
        is_mixed = False
        for name, parts in registrations.event_columns(self._sources).items():
            if schema.get_field_index(name) < 0:
                continue  # no dict has it so far
            kind = schema.field(name).type
            is_time = name in (options.start, options.end_column)
            columns[name] = self._column(parts, kind, is_time)
            is_mixed = is_mixed or len(parts) > 1
            if is_open and not is_time and name != options.id:
                lacks[name] = self._lacking(parts)
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        if is_mixed and self._source is None:
            return self._registered(batch, lacks)
        return EventBatch(batch, lacks, is_open)

    def _types(self) -> pa.Array:
        if self._source is not None:
            return pa.repeat(pa.scalar(self._source), self._batch.num_rows)
        return self._batch.column(self._registrations.given.type)

    def _registered(self, batch: pa.RecordBatch, lacks: dict[str, np.ndarray]) -> EventBatch:
        """Without the rows of unregistered types, for which no column is the right one."""
        kinds = self._kinds()
        kept = pc.or_(pc.is_null(kinds), self._are_of(self._sources))
        rows = kept.to_numpy(zero_copy_only=False)
        left = {name: flags[rows] for name, flags in lacks.items()}
        return EventBatch(batch.filter(kept), left, self._records.open_schema)

    def _kinds(self) -> pa.Array:
        kinds = self._types()
        return kinds if kinds.type == pa.string() else kinds.cast(pa.string())

    def _are_of(self, sources: Sequence[str]) -> pa.Array:
        return pc.is_in(self._kinds(), pa.array(sources, pa.string()))

    def _column(self, parts: Sequence[Part], kind: pa.DataType, is_time: bool) -> pa.Array:
        """The column that the records' type chooses among the parts, else the first."""
        column = self._part(parts[0], kind, is_time)
        for part in parts[1:]:
            column = pc.if_else(self._are_of(part.sources), self._part(part, kind, is_time), column)
        return column

    def _part(self, part: Part, kind: pa.DataType, is_time: bool) -> pa.Array:
        if self._batch.schema.get_field_index(part.own) < 0:
            return pa.nulls(self._batch.num_rows, kind)
        column = self._batch.column(part.own)
        error = self._registrations.clock_error(part, column.type)
        if column.type == kind and not error:
            return column
        if is_time:  # what no time can be becomes null, and is set aside as ever
            times, missing = time_numbers(column, part.own)
            return pa.array(times + error, pa.int64(), mask=missing).cast(kind)
        return column.cast(kind, safe=False)

    def _lacking(self, parts: Sequence[Part]) -> np.ndarray:
        """The rows of dicts that do not have what the column is made of."""
        found = np.ones(self._batch.num_rows, np.bool_)
        for number, part in enumerate(parts):
            if self._batch.schema.get_field_index(part.own) < 0:
                lacking = np.ones(self._batch.num_rows, np.bool_)
            else:
                lacking = self._records.lacks.get(part.own, np.zeros(len(found), np.bool_))
            if number == 0:
                found = lacking
            else:
                of = self._are_of(part.sources).to_numpy(zero_copy_only=False)
                found = np.where(of, lacking, found)
        return found
