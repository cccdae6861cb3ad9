"""How events stand in CSV and JSON lines, for every reader of them.

CSV: an empty field is a null, a quoted empty one an empty text, and nothing else is a null. JSON
lines: one object a line. The event type is a text in both, even where it looks like a number. Times
are in microseconds, or finer where they are written so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.csv

BLOCK = 4 << 20
"""Bytes of text that become one batch."""
TYPE_NAMES = pa.dictionary(pa.int32(), pa.string())

ISO_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?"
ZONE = r"(?:Z|[+-]\d\d(?::?\d\d)?)"

UNREADABLE = {
    "json": "each line must hold one object: JSON lines, not one large array",
    "csv": "the first line must name the columns, and every line must have as many fields",
    "parquet": "the file must be a whole Parquet file",
}
"""What to do about a file that is not what its name says."""

_SAMPLED_BYTES = 512 << 10
_SAMPLED_LINES = 200


def open_csv(stream: Any, types: Mapping[str, pa.DataType], type_column: str) -> Any:
    """A reader of blocks; columns without a given type get the one that fits the first block."""
    return pa.csv.open_csv(
        stream,
        read_options=pa.csv.ReadOptions(block_size=BLOCK, use_threads=False),
        parse_options=csv_parsing(),
        convert_options=csv_conversion(types, type_column),
    )


def csv_parsing() -> Any:
    """Quoted fields may hold line breaks."""
    return pa.csv.ParseOptions(newlines_in_values=True)


def csv_conversion(types: Mapping[str, pa.DataType], type_column: str) -> Any:
    """What is a null, and the types of columns that are known."""
    return pa.csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types={**types, type_column: TYPE_NAMES},
    )


def sampled_values(stream: Any) -> Iterator[tuple[str, Any]]:
    """The attributes in the first JSON lines, without nulls."""
    head = stream.read(_SAMPLED_BYTES).decode("utf-8", errors="replace")
    for line in head.split("\n")[:_SAMPLED_LINES]:
        try:
            row = json.loads(line)
        except ValueError:  # cut in the middle, or broken: the reader will tell
            continue
        if isinstance(row, dict):
            yield from ((name, value) for name, value in row.items() if value is not None)


def in_microseconds(field: pa.Field) -> pa.Field:
    """Whole seconds in some rows do not mean that no time has a fraction; finer ones stay."""
    kind = field.type
    if pa.types.is_timestamp(kind) and kind.unit in ("s", "ms"):
        return field.with_type(pa.timestamp("us", kind.tz))
    return field
