"""Columns written on a command line: `type:string,ts:timestamp,id:int`."""

from __future__ import annotations

import pyarrow as pa

from cepheid.model.catalogue import TYPE_NAMES, AttributeType
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import OptionError

_ARROW: dict[AttributeType, pa.DataType] = {
    AttributeType.BOOL: pa.bool_(),
    AttributeType.INT: pa.int64(),
    AttributeType.FLOAT: pa.float64(),
    AttributeType.STRING: pa.string(),
    AttributeType.TIMESTAMP: pa.timestamp("us", "UTC"),
    AttributeType.UNKNOWN: pa.null(),
}


def read_schema(text: str) -> pa.Schema:
    """The schema that a text names.

    >>> read_schema("type:string, ts:timestamp, id:int").names
    ['type', 'ts', 'id']
    """
    fields = []
    for column in text.split(","):
        name, colon, word = (part.strip() for part in column.rpartition(":"))
        kind = TYPE_NAMES.get(word.casefold())
        if not colon or not name or kind is None:
            raise OptionError.of(
                "bad-schema",
                f"`{column.strip()}` is not a column and its type",
                help=did_you_mean(word, TYPE_NAMES)
                or "write NAME:TYPE, with types int, float, string, bool and timestamp",
            )
        fields.append(pa.field(name, _ARROW[kind]))
    return pa.schema(fields)
