"""Events in CSV and JSON lines as Arrow batches: the types their values tell, times among them.

CSV: an empty field is a null, a quoted empty one an empty text, and nothing else is a null. JSON
lines: a text column whose values are all ISO 8601 date-times holds times. The event type is a text
in both, even where it looks like a number. Times are in microseconds, in UTC where a zone is given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
from pyarrow import fs

from cepheid.hosts.event_files import EventFile, FileFormat, codec
from cepheid.model.errors import DataError

_BLOCK = 4 << 20
"""Bytes of text that become one batch."""
_MOST_BYTES_AT_ONCE = 512 << 20
"""Larger files are not read whole to find the types that fit every row."""
_SAMPLED_LINES = 200

_ISO_TIME = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?$"
_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"
_TYPE_NAMES = pa.dictionary(pa.int32(), pa.string())


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
            reader = _open_csv(stream, _known(schema, type_column), type_column)
        else:
            reader = pa.json.open_json(
                stream,
                read_options=pa.json.ReadOptions(block_size=_BLOCK, use_threads=False),
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
    helps = {
        FileFormat.JSON: "each line must hold one object: JSON lines, not one large array",
        FileFormat.CSV: "the first line must name the columns, and every line have as many fields",
        FileFormat.PARQUET: "the file must be a whole Parquet file",
    }
    return DataError.of(
        "unreadable-events", f"`{file.path}` cannot be read: {problem}", help=helps[kind]
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
                read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
                parse_options=pa.csv.ParseOptions(newlines_in_values=True),
                convert_options=_conversion({}, type_column),
            ).schema
        else:
            schema = _open_csv(stream, {}, type_column).schema
    return pa.schema([_in_microseconds(field) for field in schema])


def _open_csv(stream: Any, types: dict[str, Any], type_column: str) -> Any:
    return pa.csv.open_csv(
        stream,
        read_options=pa.csv.ReadOptions(block_size=_BLOCK, use_threads=False),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=_conversion(types, type_column),
    )


def _conversion(types: dict[str, Any], type_column: str) -> Any:
    return pa.csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types={**types, type_column: _TYPE_NAMES},
    )


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
            block = max(_BLOCK, min(file.size + 1, 64 << 20))
            table = pa.json.read_json(
                stream,
                read_options=pa.json.ReadOptions(use_threads=False, block_size=block),
                parse_options=options,
            )
        else:
            reader = pa.json.open_json(
                stream,
                read_options=pa.json.ReadOptions(use_threads=False, block_size=_BLOCK),
                parse_options=options,
            )
            table = pa.Table.from_batches([reader.read_next_batch()])
    fields = []
    for field in table.schema:
        kind = _time_in(table.column(field.name)) if field.name in texts - {type_column} else None
        fields.append(_in_microseconds(field if kind is None else field.with_type(kind)))
    return pa.schema(fields)


def _text_columns(system: fs.FileSystem, file: EventFile) -> set[str]:
    """Columns whose first values are texts."""
    with _open(system, file) as stream:
        head = stream.read(_BLOCK // 8).decode("utf-8", errors="replace")
    texts: set[str] = set()
    others: set[str] = set()
    for line in head.split("\n")[:_SAMPLED_LINES]:
        try:
            row = json.loads(line)
        except ValueError:  # cut in the middle, or broken: the reader will tell
            continue
        for name, value in row.items() if isinstance(row, dict) else ():
            if value is not None:
                (texts if isinstance(value, str) else others).add(name)
    return texts - others


def _time_in(column: Any) -> Any:
    """The type of times that all values of a text column are; None when they are not."""
    values = column.drop_null()
    if not len(values) or not pc.all(pc.match_substring_regex(values, _ISO_TIME)).as_py():
        return None
    zoned = pc.any(pc.match_substring_regex(values, _ZONE)).as_py()
    return pa.timestamp("us", "UTC" if zoned else None)


def _in_microseconds(field: Any) -> Any:
    """Whole seconds in some rows do not mean that no time has a fraction."""
    kind = field.type
    if pa.types.is_timestamp(kind):
        return field.with_type(pa.timestamp("us", kind.tz))
    return field
