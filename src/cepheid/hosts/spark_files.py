"""Matches as files that Spark writes: in parts, by the tasks that found them, and in what form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, StructType

from cepheid.hosts.spark_types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WRITERS = {"jsonl": "json"}


def as_files(matches: DataFrame, kind: str) -> tuple[DataFrame, str, dict[str, str]]:
    """What to write for a format of ours, Spark's name of the format, and the options it needs."""
    if kind == "csv":
        return _flat(matches), "csv", {"header": "true"}
    return matches, _WRITERS.get(kind, kind), {}


def _flat(matches: DataFrame) -> DataFrame:
    """Structs as columns `x.id`, lists (the events of an iterated variable) as JSON text."""

    def columns(struct: StructType, within: str, value: Column | None) -> Iterator[Column]:
        for field in struct.fields:
            own = matches[f"`{field.name}`"] if value is None else value.getField(field.name)
            name = f"{within}{field.name}"
            if isinstance(field.dataType, StructType):
                yield from columns(field.dataType, f"{name}.", own)
            else:
                is_list = isinstance(field.dataType, ArrayType)
                yield (sf.to_json(own) if is_list else own).alias(name)

    return matches.select(*columns(matches.schema, "", None))


def tables(matches: DataFrame, rows: int) -> Iterator[pa.Table]:
    """The matches as tables of at most so many rows; the driver holds one, and one partition."""
    schema = arrow_schema(matches.schema)
    some = []
    for row in matches.toLocalIterator():
        some.append(row.asDict(recursive=True))
        if len(some) == rows:
            yield pa.Table.from_pylist(some, schema)
            some = []
    if some:
        yield pa.Table.from_pylist(some, schema)
