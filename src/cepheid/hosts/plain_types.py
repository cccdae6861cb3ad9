"""The Arrow types that Spark has too, and tables made to fit a schema of them.

Spark knows fewer types than Arrow: no dictionaries, no unsigned integers, microseconds only.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns in the types that Spark has; all of them may hold nulls."""
    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])


def plain_type(kind: Any) -> Any:
    """The nearest type that Spark has and that loses nothing (but nanoseconds)."""
    is_a = pa.types
    if is_a.is_dictionary(kind):
        return plain_type(kind.value_type)
    if is_a.is_large_string(kind) or is_a.is_string_view(kind):
        return pa.string()
    if is_a.is_large_binary(kind) or is_a.is_binary_view(kind) or is_a.is_fixed_size_binary(kind):
        return pa.binary()
    if is_a.is_unsigned_integer(kind):
        wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}
        return wider[kind.bit_width]
    if is_a.is_float16(kind):
        return pa.float32()
    if is_a.is_decimal(kind):
        return pa.decimal128(min(kind.precision, 38), kind.scale)
    if is_a.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if is_a.is_date(kind):
        return pa.date32()
    if is_a.is_time(kind):
        return pa.time64("ns")
    if is_a.is_duration(kind):
        return pa.duration("us")
    if is_a.is_struct(kind):
        return pa.struct([f.with_type(plain_type(f.type)) for f in kind])
    if is_a.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if is_a.is_list(kind) or is_a.is_large_list(kind) or is_a.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as dicts; times finer than Python's become those in microseconds."""
    coarse = pa.schema([field.with_type(_coarse(field.type)) for field in table.schema])
    rows: list[dict[str, Any]] = fit(table, coarse).to_pylist()
    return rows


def _coarse(kind: Any) -> Any:
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_coarse(field.type)) for field in kind])
    return kind


def fit(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns and types of `schema`; what it does not have becomes null."""
    if table.schema.equals(schema):
        return table
    columns = []
    for field in schema:
        where = table.schema.get_field_index(field.name)
        if where < 0:
            columns.append(pa.chunked_array([pa.nulls(len(table), field.type)]))
            continue
        chunks = [_fit(chunk, field.type) for chunk in table.column(where).chunks]
        columns.append(pa.chunked_array(chunks, field.type))
    return pa.table(columns, schema=schema)


def _fit(array: Any, kind: Any) -> Any:
    if array.type.equals(kind):
        return array
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        parts = []
        for field in kind:
            where = array.type.get_field_index(field.name)
            own = pa.nulls(len(array), field.type) if where < 0 else array.field(where)
            parts.append(_fit(own, field.type))
        missing = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=missing)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    return array.cast(kind, safe=False)
