"""The DataFrames a detection reads: one with all events, or several by type or by source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cepheid.hosts.spark_task import SOURCE
from cepheid.hosts.spark_types import arrow_schema, spark_schema
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import DataError
from cepheid.model.options import Options


@dataclass(frozen=True, slots=True)
class Source:
    """One DataFrame; `lacking` are the columns of the others that it does not have."""

    frame: DataFrame
    lacking: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Sources:
    """All events, in parts with the same columns.

    `by_table`: a column that a part lacks is absent for its events, and a null in one that it has
    is a null; in one wide table only the option `types` tells the two apart (docs/semantics.md).
    """

    parts: tuple[Source, ...]
    schema: pa.Schema
    by_table: bool = False

    @property
    def lacking(self) -> tuple[frozenset[str], ...] | None:
        """For each part what it lacks; None where nulls say what is absent."""
        return tuple(part.lacking for part in self.parts) if self.by_table else None


def read_sources(events: Any, options: Options) -> Sources:
    """The sources behind a DataFrame, or behind a dict of DataFrames by type or by source."""
    if not isinstance(events, Mapping):
        return Sources((Source(events),), arrow_schema(events.schema))
    frames = dict(events)
    strange = [name for name, frame in frames.items() if not hasattr(frame, "sparkSession")]
    if strange or not frames:
        raise DataError.of(
            "mixed-events",
            f"the events of `{strange[0]}` are no Spark DataFrame, others are"
            if strange
            else "a dict without a table holds no events",
            help="give all tables as Spark DataFrames, or none",
        )
    if any(frame.isStreaming for frame in frames.values()):
        raise DataError.of(
            "streams-by-type",
            "streaming DataFrames cannot be given by type",
            help="bring them together with unionByName(allowMissingColumns=True), and say with "
            "types= which attributes a type has",
        )
    named = [_with_type(frame, name, options) for name, frame in frames.items()]
    schemas = [arrow_schema(frame.schema) for frame in named]
    try:
        whole = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
        raise DataError.of(
            "mixed-types",
            f"the tables do not agree on a column's type: {problem}",
            help="give columns of one name the same type in every table",
        ) from None
    parts = []
    for number, (frame, schema) in enumerate(zip(named, schemas, strict=True)):
        lacking = frozenset(whole.names) - frozenset(schema.names)
        needed = {options.end_column, options.id} & lacking
        if needed:
            name = next(iter(needed))
            raise DataError.of(
                "unknown-column",
                f"the events of `{list(frames)[number]}` have no column `{name}`",
                help=did_you_mean(str(name), schema.names),
            )
        parts.append(Source(_like(frame, whole, lacking, number), lacking))
    return Sources(tuple(parts), whole, by_table=True)


def together(frames: list[DataFrame]) -> DataFrame:
    """The rows of frames that have the same columns."""
    return reduce(lambda one, other: one.unionByName(other), frames)


def quoted_name(name: str) -> str:
    """The name as Spark reads it literally, dots and all."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _with_type(frame: DataFrame, name: str, options: Options) -> DataFrame:
    if options.type in frame.columns:
        return frame
    return frame.withColumn(options.type, sf.lit(name))


def _like(frame: DataFrame, whole: pa.Schema, lacking: frozenset[str], number: int) -> DataFrame:
    columns = []
    for field in spark_schema(whole).fields:
        value = sf.lit(None) if field.name in lacking else sf.col(quoted_name(field.name))
        columns.append(value.cast(field.dataType).alias(field.name))
    return frame.select(*columns, sf.lit(number).alias(SOURCE))
