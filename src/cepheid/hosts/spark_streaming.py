"""The Spark Structured Streaming host: matches of a live stream, exactly once per checkpoint.

The road of an event: watermark -> filter and project -> packed by bucket -> shuffle -> the stateful
operator that holds the buckets' detectors -> matches, unpacked. Spark's own treatment of late rows
is put out of action (see `_with_guard`): it drops rows at the watermark, decides by the previous
micro-batch, and would lose events that are within the allowed lateness.
"""

from __future__ import annotations

import hashlib
import json
import uuid
import warnings
from collections.abc import Sequence
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampNTZType, TimestampType

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.prepared_program import PreparedProgram, prepare_program
from cepheid.hosts.spark_filter import EventTests, quoted, time_number
from cepheid.hosts.spark_packing import EVERYWHERE, PACK_SCHEMA, ROUTE, Packing, Unpacking
from cepheid.hosts.spark_stream_processor import STEP_SCHEMA, DetectionProcessor
from cepheid.hosts.spark_types import arrow_schema, plain_schema, spark_schema
from cepheid.hosts.stream_bucket import StreamTask
from cepheid.hosts.stream_clock import StreamClock
from cepheid.hosts.stream_routing import Routing, declared_without, route
from cepheid.model.errors import OptionError, PerformanceWarning
from cepheid.model.event_time import MAX_TIME
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.match_schema import scalar_type

_WATERMARK_KEY = "spark.watermarkDelayMs"
"""The column metadata by which Spark itself knows a watermark."""
_SHOWN = "__cepheid_shown"


def detect_stream(events: DataFrame, query: CompiledQuery, options: Options) -> DataFrame:
    """The matches of a streaming DataFrame, as a streaming DataFrame for output mode append.

    A watermark the events already have on their time column is used; otherwise one is set, with the
    option `lateness`. Late and unusable events are counted in the query's progress under a metric
    whose name starts with `cepheid`, and delivered too with `late_output=True`: in a row without a
    match, as the column `late`, with a `reason`.
    """
    schema = arrow_schema(events.schema)
    program = prepare_program(query, options, schema)
    tests = EventTests(program, schema)
    routing = route(program, schema, options.buckets)
    if routing.key is None:
        _warn_of_one_task(routing.reason)
    own = pa.schema([schema.field(name) for name in program.columns(schema)])
    clock, marked = _with_watermark(events, program, tests)
    needed = marked.filter(_is_bad(clock, tests) | tests.matters())
    routed = needed.select(*_unmarked(own))
    if routing.key is not None:
        routed = needed.select(*_unmarked(own), _route(routing, options, tests).alias(ROUTE))
    run = uuid.uuid4().hex
    metric = f"cepheid_{query.name}_{run[:8]}"
    if routing.key is not None and routing.null_bucket is None:
        undefined = sf.count_if(sf.col(ROUTE).isNull()).alias("undefined_keys")
        routed = routed.observe(f"{metric}_input", undefined).filter(sf.col(ROUTE).isNotNull())
    packed = routed.mapInArrow(Packing(routing.stray_bucket, own).pack, PACK_SCHEMA)
    task = StreamTask(query, options, own, clock, routing, _fingerprint(program, routing, own), run)
    form = plain_schema(program.form.schema)
    found = (
        _with_guard(packed)
        .groupBy("bucket")
        .transformWithStateInPandas(
            DetectionProcessor(task, form), STEP_SCHEMA, "append", "EventTime"
        )
    )
    counted = found.observe(
        metric,
        *(sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in _COUNTED),
    )
    rows = _row_schema(form, own, options)
    return counted.select("matches", "aside").mapInArrow(
        Unpacking(rows, options.late_output).unpack, spark_schema(rows)
    )


_DERIVED_OUTSIDE = (
    "derived-type-in-stream: an event of the stream has a type that a query of the program makes, "
    "and lacks the key; give the query's RETURN another type"
)
_COUNTED = ("matched", "late", "quarantined")


def _row_schema(form: pa.Schema, own: pa.Schema, options: Options) -> pa.Schema:
    if not options.late_output:
        return form
    event = pa.struct(list(plain_schema(own)))
    return pa.schema([*form, pa.field("late", event), pa.field("reason", pa.string())])


def _warn_of_one_task(reason: str) -> None:
    warnings.warn(
        f"the whole stream goes through one task: {reason}; an equality over all components, such "
        "as [id], and the option types= (which attributes each event type has) spread the work",
        PerformanceWarning,
        stacklevel=5,
    )


# -- the watermark --------------------------------------------------------------------------------


def _with_watermark(
    events: DataFrame, program: PreparedProgram, tests: EventTests
) -> tuple[StreamClock, DataFrame]:
    """The events with a watermark on them, and how to read it."""
    name = program.options.end_column
    marked = [field.name for field in events.schema.fields if _WATERMARK_KEY in field.metadata]
    field = events.schema[name]
    if marked and program.lateness:
        raise OptionError.of(
            "two-latenesses",
            f"the stream has a watermark, and lateness={program.options.lateness!r} is given, too",
            help="leave out lateness=, or the stream's own withWatermark",
        )
    if marked == [name]:
        return StreamClock(is_timestamp=True, is_shown=False), events
    if marked:
        raise OptionError.of(
            "other-watermark",
            f"the stream has its watermark on `{marked[0]}`, but the time column is `{name}`",
            help=f"put it on `{name}`, or none at all and say lateness=",
        )
    clock = StreamClock(is_timestamp=isinstance(field.dataType, TimestampType | TimestampNTZType))
    time = time_number(tests.schema, program.options)
    usable = tests.has_time() & (time < sf.lit(MAX_TIME)) & (time > sf.lit(-MAX_TIME))
    # Lateness is taken off here, where it is exact, and not by Spark, in milliseconds.
    shown = _shown(clock, time - sf.lit(program.lateness).cast("long"))
    column = sf.timestamp_millis(sf.when(usable, shown).otherwise(sf.lit(0).cast("long")))
    return clock, events.withColumn(_SHOWN, column).withWatermark(_SHOWN, "0 seconds")


def _shown(clock: StreamClock, time: Column) -> Column:
    """A time as positive milliseconds (see stream_clock)."""
    if clock.is_timestamp:
        time = sf.unix_millis(sf.timestamp_micros(time))
    first, *later = clock.stretches
    shown = sf.lit(first.shown) + sf.shiftright(
        sf.greatest(time - sf.lit(first.start), sf.lit(0).cast("long")), first.shift
    )
    for stretch in later:
        own = sf.lit(stretch.shown) + sf.shiftright(time - sf.lit(stretch.start), stretch.shift)
        shown = sf.when(time >= sf.lit(stretch.start), own).otherwise(shown)
    return shown


def _is_bad(clock: StreamClock, tests: EventTests) -> Column:
    """Rows without a type or a usable time.

    The condition reads the column that carries the watermark, and so keeps Catalyst from moving the
    filter below the watermark, where events of other types would no longer move it.
    """
    if clock.is_shown:
        lost: Column = sf.col(_SHOWN) <= sf.timestamp_millis(sf.lit(0))
    else:
        lost = ~tests.has_time()
    return lost | ~tests.has_type()


def _unmarked(own: pa.Schema) -> list[Column]:
    """The event columns without the watermark's metadata: Spark drops late rows by it."""
    return [quoted(f.name).alias(f"c{number}", metadata={}) for number, f in enumerate(own)]


def _with_guard(packed: DataFrame) -> DataFrame:
    """A null that carries the watermark's metadata: an operator with timers asks for it.

    Null is not at or before any watermark, so no row is dropped.
    """
    guard = sf.lit(None).cast("timestamp").alias("guard", metadata={_WATERMARK_KEY: 0})
    return packed.select("*", guard)


# -- buckets --------------------------------------------------------------------------------------


def _route(routing: Routing, options: Options, tests: EventTests) -> Column:
    """The bucket of an event, or a code for several (see Packing); null for none.

    An event whose key is null, not absent, equals nothing: it can only match alone or among events
    that lack theirs.
    """
    key = routing.key
    assert key is not None
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
    """Whether an event does not have its whole key (SPEC A2.3)."""
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


# -- identity -------------------------------------------------------------------------------------


def _fingerprint(program: PreparedProgram, routing: Routing, own: pa.Schema) -> str:
    """What must be the same for a checkpoint to be gone on from."""
    options = program.options
    meaning = {
        "queries": [stage.form.fingerprint for stage in program.stages],
        "columns": [options.type, options.end_column, options.id],
        "types": {name: sorted(own) for name, own in (options.types or {}).items()},
        "tie": options.tie,
        "buckets": routing.buckets,
        "key": str(routing.key),
        "strays": routing.strays,
        "events": [(field.name, str(field.type)) for field in own],
    }
    text = json.dumps(meaning, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
