"""The Arrow schema of events in any form that `detect` takes, without reading them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from cepheid.model.errors import DataError

_SAMPLE = 1000
_SPARK: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def schema_of(events: Any) -> pa.Schema:
    """The columns and types of a schema, table, batch, DataFrame (pandas, Spark), or dicts.

    >>> schema_of([{"type": "A", "ts": 1}, {"type": "B", "ts": 2, "id": 7}]).names
    ['type', 'ts', 'id']
    """
    if isinstance(events, pa.Schema):
        return events
    found = getattr(events, "schema", None)
    if isinstance(found, pa.Schema):
        return found
    module = type(events).__module__
    if module.startswith("pandas"):
        return pa.Schema.from_pandas(events, preserve_index=False)
    if module.startswith("pyspark"):
        # Names of types are read, not their classes: pyspark stays behind its door.
        return pa.schema([(name, _SPARK.get(kind, pa.null())) for name, kind in events.dtypes])
    if isinstance(events, Mapping):
        return pa.unify_schemas(
            [schema_of(each) for each in events.values()], promote_options="permissive"
        )
    if isinstance(events, Sequence) and not isinstance(events, str | bytes):
        rows = [pa.Table.from_pylist([dict(row)]).schema for row in events[:_SAMPLE]]
        return pa.unify_schemas(rows, promote_options="permissive")
    raise DataError.of(
        "unknown-events",
        f"events of type {type(events).__name__} tell no columns",
        help="give a pyarrow schema or table, a pandas or Spark DataFrame, or a list of dicts",
    )
