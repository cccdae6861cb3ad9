"""The route of an event as a column: the bucket of its key, or a code for several buckets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.spark_filter import EventTests, quoted
from cepheid.hosts.spark_packing import EVERYWHERE
from cepheid.hosts.stream_routing import Routing, declared_without
from cepheid.model.options import Options
from cepheid.planner.match_schema import scalar_type

_DERIVED_OUTSIDE = (
    "derived-type-in-stream: an event of the stream has a type that a query of the program makes, "
    "and lacks the key; give the query's RETURN another type"
)


def route_column(routing: Routing, options: Options, tests: EventTests) -> Column:
    """The bucket of an event, or a code for several (see Packing); null for none.

    An event whose key is null, not absent, equals nothing: it can only match alone or among events
    that lack theirs.
    """
    key = routing.key
    if key is None:
        time = quoted(options.end_column)
        return sf.pmod(sf.xxhash64(time), sf.lit(routing.buckets)).cast("int")
    stray = sf.lit(routing.stray_bucket)
    code = sf.lit(None).cast("int")
    for attributes, types in [(key.of_any, ())] if key.of_any else key.groups().items():
        columns = [_key_column(tests.schema, name) for name in attributes]
        bucket = sf.pmod(sf.xxhash64(*columns), sf.lit(routing.buckets)).cast("int")
        if routing.strays:
            if routing.witnesses is None:
                bucket = bucket + stray + sf.lit(1)
            elif routing.witnesses:
                is_witness = tests.is_of(routing.witnesses)
                bucket = bucket + sf.when(is_witness, stray + sf.lit(1)).otherwise(sf.lit(0))
        is_null = reduce(or_, (column.isNull() for column in columns))
        if routing.derived:
            bucket = sf.when(
                tests.is_of(routing.derived) & is_null, sf.raise_error(sf.lit(_DERIVED_OUTSIDE))
            ).otherwise(bucket)
            is_null = is_null & ~tests.is_of(routing.derived)
        own = sf.when(is_null, sf.lit(routing.null_bucket).cast("int")).otherwise(bucket)
        if routing.strays:
            own = sf.when(_is_absent(attributes, options, tests), sf.lit(EVERYWHERE)).otherwise(own)
        code = own if not types else sf.when(tests.is_of(types), own).otherwise(code)
    usable = tests.has_type() & tests.has_time()
    return sf.when(usable, code).otherwise(sf.lit(0)).cast("int")


def _is_absent(attributes: Sequence[str], options: Options, tests: EventTests) -> Column:
    """Whether an event does not have its whole key."""
    is_null = reduce(
        or_,
        (
            quoted(name).isNull() if tests.schema.get_field_index(name) >= 0 else sf.lit(True)
            for name in attributes
        ),
    )
    if options.types is None:
        return is_null
    undeclared: Column = ~tests.is_of(options.types) & is_null
    lacking = declared_without(attributes, options)
    return tests.is_of(lacking) | undeclared if lacking else undeclared


def _key_column(schema: pa.Schema, name: str) -> Column:
    """A key attribute as a column whose equal values have equal hashes; null where undefined."""
    where = schema.get_field_index(name)
    kind = None if where < 0 else schema.field(where).type
    column = quoted(name)
    match ScalarType.UNKNOWN if kind is None else scalar_type(kind):
        case ScalarType.INT:
            return column.cast("long")
        case ScalarType.FLOAT:
            number = column.cast("double") + sf.lit(0.0)  # -0.0 equals 0.0
            return sf.when(~sf.isnan(number), number)
        case ScalarType.STRING | ScalarType.BOOL | ScalarType.TIMESTAMP:
            return column
        case ScalarType.UNKNOWN:
            return sf.lit(None).cast("long")  # never equal to anything
