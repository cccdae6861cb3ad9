"""Tables of matches made plain: dictionaries decoded, and for CSV a column for each attribute."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cepheid.delivery.json_text import json_text


def plain_table(table: pa.Table) -> pa.Table:
    """The same table without dictionary encoding, also inside structs and lists."""
    schema = pa.schema([field.with_type(_plain_type(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def _plain_type(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([field.with_type(_plain_type(field.type)) for field in fields])
    if pa.types.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind


def flat_table(table: pa.Table) -> pa.Table:
    """Structs as columns `x.id`, lists (the events of an iterated variable) as JSON text.

    >>> flat_table(pa.table({"x": [{"id": 1, "ts": 5}]})).column_names
    ['x.id', 'x.ts']
    """
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for position, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            values = table.column(position).to_pylist()
            texts = [None if value is None else json_text(value) for value in values]
            table = table.set_column(position, field.name, pa.array(texts, pa.string()))
    return table
