"""Schemas of events and matches between Spark and Arrow."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import StructType

from cepheid.hosts.plain_types import fit, plain_schema
from cepheid.model.errors import DataError

__all__ = ["arrow_schema", "fit", "plain_schema", "spark_schema"]


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a DataFrame's rows as Python workers get them, times in UTC."""
    fields = []
    for field in schema.fields:
        try:
            kind = to_arrow_type(field.dataType, timezone="UTC")
        except PySparkTypeError:
            raise DataError.of(
                "unsupported-type",
                f"column `{field.name}` is of type {field.dataType.simpleString()}, "
                "which Spark cannot hand to Python workers",
                help="cast it to another type, or drop it before detect",
            ) from None
        fields.append(pa.field(field.name, kind, field.nullable))
    return pa.schema(fields)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of tables that were made to fit `plain_schema(schema)`."""
    return from_arrow_schema(plain_schema(schema))
