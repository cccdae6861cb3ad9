"""Records of registered sources as events, on Spark: new columns of the same DataFrame, no job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cepheid.hosts.spark_sources import quoted_name
from cepheid.hosts.spark_types import arrow_schema, spark_schema
from cepheid.model.errors import DataError
from cepheid.planner.registered_sources import Part, Registrations


def registered_frames(records: Any, registrations: Registrations | None) -> Any:
    """What the Spark hosts take instead of a source's records (as hosts.registered_events).

    A stream keeps its watermark where its time column only gets another name.
    """
    if registrations is None:
        return records
    if not isinstance(records, Mapping):
        return _events(records, None, registrations)
    for name, frame in records.items():
        if name not in registrations.sources:
            raise registrations.unknown_source(name)
        if not hasattr(frame, "sparkSession"):
            return records  # the host says that tables of several kinds do not go together
    return {name: _events(frame, name, registrations) for name, frame in records.items()}


def _events(frame: DataFrame, source: str | None, registrations: Registrations) -> DataFrame:
    records = arrow_schema(frame.schema)
    given, options = registrations.given, registrations.options
    if source is None and given.type not in records.names:
        source = registrations.only_source()
        if source is None:
            raise DataError.of(
                "unknown-column",
                f"the records have no column `{given.type}` that tells their source",
                help="name it with type=, or give a dict of DataFrames by source",
            )
    kind = sf.lit(source) if source is not None else sf.col(quoted_name(given.type))
    names = (source,) if source is not None else registrations.participants(records)
    schema = registrations.event_schema(records, names)
    parts = registrations.event_columns(names)
    if source is None and any(len(each) > 1 for each in parts.values()):
        # Rows of unregistered types have none of the columns that a type chooses among.
        frame = frame.filter(kind.isNull() | kind.cast("string").isin(*names))
    columns = [
        _column(parts[field.name], kind, records, schema, field.name, registrations)
        for field in schema
    ]
    return frame.select(kind.alias(options.type), *columns)


def _column(
    parts: Sequence[Part],
    kind: Column,
    records: pa.Schema,
    events: pa.Schema,
    name: str,
    registrations: Registrations,
) -> Column:
    wanted = events.field(name)
    data_type = spark_schema(pa.schema([wanted])).fields[0].dataType
    values = []
    for part in parts:
        given = records.field(part.own).type
        value = _moved(sf.col(quoted_name(part.own)), registrations.clock_error(part, given), given)
        values.append(value if given == wanted.type else value.cast(data_type))
    column = values[0]
    for part, value in zip(parts[1:], values[1:], strict=True):
        column = sf.when(kind.cast("string").isin(*part.sources), value).otherwise(column)
    return column.alias(name)


def _moved(time: Column, error: int, kind: pa.DataType) -> Column:
    """A time that is that much later, or earlier."""
    if not error:
        return time
    if pa.types.is_timestamp(kind):
        seconds = Decimal(error) / 1_000_000
        # An interval, and no detour through numbers: those of a time without zone depend on one.
        return time + sf.make_dt_interval(sf.lit(0), sf.lit(0), sf.lit(0), sf.lit(seconds))
    return time.cast("long") + sf.lit(error)
