"""What must be known of event files to slice them by time: read by tasks, never by the driver.

Parquet tells the times of its row groups in its footers; text files have to be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from cepheid.hosts.event_files import EventFile, EventFiles, FileFormat, file_system
from cepheid.hosts.set_aside import event_times
from cepheid.hosts.text_events import read_text, text_schema, unreadable
from cepheid.model.errors import DataError
from cepheid.model.options import Options

_MICROSECONDS = {"milliseconds": 1_000, "microseconds": 1}


@dataclass(frozen=True, slots=True)
class Unit:
    """The least that is read at once: a row group, or a text file.

    `low` and `high` are its first and last time. `is_ordered` is known of text files; a row group
    shows it when it is read. `has_untyped` counts as true when rows without a type may be in it.
    """

    file: int
    group: int
    low: int
    high: int
    rows: int
    size: int
    is_ordered: bool
    has_untyped: bool


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The columns of a file, and its units that have a usable time."""

    file: int
    schema: pa.Schema
    units: tuple[Unit, ...]


FACTS = pa.schema(
    [
        ("file", pa.int64()),
        ("schema", pa.binary()),
        ("group", pa.int64()),
        ("low", pa.int64()),
        ("high", pa.int64()),
        ("rows", pa.int64()),
        ("size", pa.int64()),
        ("is_ordered", pa.bool_()),
        ("has_untyped", pa.bool_()),
    ]
)
"""One row per unit, and one with the schema per file."""


def describe_files(files: EventFiles, numbers: list[int], options: Options) -> pa.RecordBatch:
    """The facts of some files as rows of FACTS."""
    system, _ = file_system(files.root)
    rows: list[dict[str, Any]] = []
    for number in numbers:
        facts = describe_file(system, files, number, options)
        rows.append({"file": number, "schema": facts.schema.serialize().to_pybytes()})
        rows += [{name: getattr(unit, name, None) for name in FACTS.names} for unit in facts.units]
    return pa.RecordBatch.from_pylist(rows, schema=FACTS)


def read_facts(table: pa.Table) -> list[FileFacts]:
    """The facts that tasks sent, in the order of the files' numbers."""
    units: dict[int, list[Unit]] = {}
    schemas: dict[int, pa.Schema] = {}
    known: dict[bytes, pa.Schema] = {}
    for row in table.to_pylist():
        written = row.pop("schema")
        if written is None:
            units.setdefault(row["file"], []).append(Unit(**row))
            continue
        if written not in known:
            known[written] = pa.ipc.read_schema(pa.py_buffer(written))
        schemas[row["file"]] = known[written]
    return [
        FileFacts(number, schema, tuple(units.get(number, ())))
        for number, schema in sorted(schemas.items())
    ]


def describe_file(
    system: fs.FileSystem, files: EventFiles, number: int, options: Options
) -> FileFacts:
    """Schema and units of one file."""
    file = files.files[number]
    if file.size == 0:
        return FileFacts(number, pa.schema([]), ())
    if files.format is FileFormat.PARQUET:
        return _describe_parquet(system, file, number, options)
    return _describe_text(system, file, files.format, number, options)


def open_parquet(system: fs.FileSystem, file: EventFile, **how: Any) -> pq.ParquetFile:
    """A Parquet file; old time stamps of 96 bits are read as microseconds."""
    try:
        return pq.ParquetFile(file.path, filesystem=system, coerce_int96_timestamp_unit="us", **how)
    except (pa.ArrowInvalid, OSError) as problem:
        raise unreadable(file, FileFormat.PARQUET, problem) from None


def parquet_schema(opened: pq.ParquetFile) -> pa.Schema:
    """The columns of a Parquet file; time stamps of 96 bits are points in time, as for Spark."""
    old = {
        opened.schema.column(i).path
        for i in range(len(opened.schema))
        if opened.schema.column(i).physical_type == "INT96"
    }
    fields = []
    for field in opened.schema_arrow:
        if field.name in old:
            field = field.with_type(pa.timestamp("us", "UTC"))
        fields.append(field.remove_metadata())
    return pa.schema(fields)


def _describe_parquet(
    system: fs.FileSystem, file: EventFile, number: int, options: Options
) -> FileFacts:
    with open_parquet(system, file) as opened:
        schema = parquet_schema(opened)
        time = _column_number(opened, options.end_column)
        kind = _column_number(opened, options.type)
        if time is None:
            return FileFacts(number, schema, ())
        scale = _time_scale(opened.schema.column(time))
        units = []
        for group in range(opened.metadata.num_row_groups):
            part = opened.metadata.row_group(group)
            found = _statistics(part.column(time), scale) or _times_of(
                opened.read_row_group(group, [options.end_column], use_threads=False), options
            )
            if part.num_rows and found is not None:
                told = None if kind is None else part.column(kind).statistics
                untyped = told is None or not told.has_null_count or told.null_count > 0
                size = part.total_byte_size
                units.append(Unit(number, group, *found, part.num_rows, size, False, untyped))
    return FileFacts(number, schema, tuple(units))


def _column_number(opened: pq.ParquetFile, name: str) -> int | None:
    for i in range(len(opened.schema)):
        if opened.schema.column(i).path == name:
            return i
    return None


def _time_scale(column: Any) -> int | None:
    """What the stored numbers are multiplied by to be times; None when they must be read."""
    if column.physical_type not in ("INT32", "INT64"):
        return None
    told = json.loads(column.logical_type.to_json())
    match told["Type"]:
        case "None" | "Int" if told.get("isSigned", True):
            return 1
        case "Timestamp":
            return _MICROSECONDS.get(told["timeUnit"])
    return None


def _statistics(column: Any, scale: int | None) -> tuple[int, int] | None:
    told = column.statistics
    if scale is None or told is None or not told.has_min_max:
        return None
    return int(told.min_raw) * scale, int(told.max_raw) * scale


def _times_of(table: pa.Table, options: Options) -> tuple[int, int] | None:
    """First and last usable time; None when there is none."""
    lows, highs = [], []
    for batch in table.to_batches():
        times, bad = event_times(batch, options)
        good = times if bad is None else times[~bad]
        if len(good):
            lows.append(int(good.min()))
            highs.append(int(good.max()))
    return (min(lows), max(highs)) if lows else None


def _describe_text(
    system: fs.FileSystem, file: EventFile, kind: FileFormat, number: int, options: Options
) -> FileFacts:
    schema = text_schema(system, file, kind, options.type)
    wanted = [name for name in (options.end_column, options.type) if name in schema.names]
    if options.end_column not in wanted:
        return FileFacts(number, schema, ())
    _refuse_texts_as_times(schema, file, options)
    low, high, rows, ordered, untyped = 2**63 - 1, -(2**63), 0, True, False
    for batch in read_text(system, file, kind, schema, wanted, options.type):
        times, bad = event_times(batch, options)
        good = times if bad is None else times[~bad]
        rows += batch.num_rows
        untyped = untyped or options.type not in wanted or _has_nulls(batch, options.type)
        if len(good):
            ordered = ordered and high <= int(good[0]) and bool(np.all(good[1:] >= good[:-1]))
            low, high = min(low, int(good.min())), max(high, int(good.max()))
    if low > high:
        return FileFacts(number, schema, ())
    unit = Unit(number, 0, low, high, rows, file.size, ordered, untyped)
    return FileFacts(number, schema, (unit,))


def _has_nulls(batch: pa.RecordBatch, name: str) -> bool:
    return bool(batch.column(name).null_count)


def _refuse_texts_as_times(schema: pa.Schema, file: EventFile, options: Options) -> None:
    kind = schema.field(options.end_column).type
    if pa.types.is_string(kind):
        raise DataError.of(
            "bad-time-column",
            f"the time column `{options.end_column}` of `{file.path}` holds texts, not times",
            help="write times as 2026-03-01T12:00:00Z, or as integers, in every row",
        )
