"""Events in CSV and JSON lines as Arrow batches: the types their values tell, times among them.

A text column of JSON lines whose values are all ISO 8601 date-times holds times, in UTC where a
zone is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
from pyarrow import fs

from cepheid.hosts.event_files import EventFile, FileFormat, codec
from cepheid.hosts.text_formats import (
    BLOCK,
    ISO_TIME,
    UNREADABLE,
    ZONE,
    csv_conversion,
    csv_parsing,
    in_microseconds,
    open_csv,
    sampled_values,
)
from cepheid.model.errors import DataError

_MOST_BYTES_AT_ONCE = 512 << 20
"""Larger files are not read whole to find the types that fit every row."""


def text_schema(
    system: fs.FileSystem, file: EventFile, kind: FileFormat, type_column: str
) -> pa.Schema:
    """The columns of a text file, in types that fit all rows (the first ones, if it is huge)."""
    try:
        if kind is FileFormat.CSV:
            return _csv_schema(system, file, type_column)
        return _json_schema(system, file, type_column)
    except pa.ArrowInvalid as problem:
        raise unreadable(file, kind, problem) from None


def read_text(
    system: fs.FileSystem,
    file: EventFile,
    kind: FileFormat,
    schema: pa.Schema,
    columns: Sequence[str],
    type_column: str,
) -> Iterator[pa.RecordBatch]:
    """The rows of a text file in order; `schema` has the types of all columns of all files."""
    stream = _open(system, file)
    try:
        if kind is FileFormat.CSV:
            reader = open_csv(stream, _known(schema, type_column), type_column)
        else:
            reader = pa.json.open_json(
                stream,
                read_options=pa.json.ReadOptions(block_size=BLOCK, use_threads=False),
                parse_options=pa.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore"
                ),
            )
        for batch in reader:
            if batch.num_rows:
                yield _selected(batch, columns, schema)
    except pa.ArrowInvalid as problem:
        raise unreadable(file, kind, problem) from None
    finally:
        stream.close()


def unreadable(file: EventFile, kind: FileFormat, problem: Exception) -> DataError:
    """The error for a file that is not what its name says."""
    return DataError.of(
        "unreadable-events",
        f"`{file.path}` cannot be read: {problem}",
        help=UNREADABLE[kind.value],
    )


def _open(system: fs.FileSystem, file: EventFile) -> Any:
    return system.open_input_stream(file.path, compression=codec(file.path))


def _selected(batch: Any, columns: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """The wanted columns; a file may lack some that others have."""
    arrays = [
        batch.column(name)
        if batch.schema.get_field_index(name) >= 0
        else pa.nulls(batch.num_rows, schema.field(name).type)
        for name in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


# -- CSV ------------------------------------------------------------------------------------------


def _csv_schema(system: fs.FileSystem, file: EventFile, type_column: str) -> pa.Schema:
    with _open(system, file) as stream:
        if file.size <= _MOST_BYTES_AT_ONCE:
            schema = pa.csv.read_csv(
                stream,
                read_options=pa.csv.ReadOptions(use_threads=False, block_size=BLOCK),
                parse_options=csv_parsing(),
                convert_options=csv_conversion({}, type_column),
            ).schema
        else:
            schema = open_csv(stream, {}, type_column).schema
    return pa.schema([in_microseconds(field) for field in schema])


def _known(schema: pa.Schema, type_column: str) -> dict[str, Any]:
    return {field.name: field.type for field in schema if field.name != type_column}


# -- JSON lines -----------------------------------------------------------------------------------


def _json_schema(system: fs.FileSystem, file: EventFile, type_column: str) -> pa.Schema:
    """Left to itself the reader takes `2020-01-01` for a time, and one with a fraction for none."""
    texts = _text_columns(system, file) | {type_column}
    explicit = pa.schema([(name, pa.string()) for name in sorted(texts)])
    options = pa.json.ParseOptions(explicit_schema=explicit)
    with _open(system, file) as stream:
        if file.size <= _MOST_BYTES_AT_ONCE:
            block = max(BLOCK, min(file.size + 1, 64 << 20))
            table = pa.json.read_json(
                stream,
                read_options=pa.json.ReadOptions(use_threads=False, block_size=block),
                parse_options=options,
            )
        else:
            reader = pa.json.open_json(
                stream,
                read_options=pa.json.ReadOptions(use_threads=False, block_size=BLOCK),
                parse_options=options,
            )
            table = pa.Table.from_batches([reader.read_next_batch()])
    fields = []
    for field in table.schema:
        kind = _time_in(table.column(field.name)) if field.name in texts - {type_column} else None
        fields.append(in_microseconds(field if kind is None else field.with_type(kind)))
    return pa.schema(fields)


def _text_columns(system: fs.FileSystem, file: EventFile) -> set[str]:
    """Columns whose first values are texts."""
    texts: set[str] = set()
    others: set[str] = set()
    with _open(system, file) as stream:
        for name, value in sampled_values(stream):
            (texts if isinstance(value, str) else others).add(name)
    return texts - others


def _time_in(column: Any) -> Any:
    """The type of times that all values of a text column are; None when they are not."""
    values = column.drop_null()
    if (
        not len(values)
        or not pc.all(pc.match_substring_regex(values, f"^{ISO_TIME}{ZONE}?$")).as_py()
    ):
        return None
    zoned = pc.any(pc.match_substring_regex(values, f"{ZONE}$")).as_py()
    return pa.timestamp("us", "UTC" if zoned else None)
