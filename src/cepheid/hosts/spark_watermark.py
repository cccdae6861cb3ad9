"""The watermark on a stream's events, and how Spark is kept from dropping rows by it.

Spark drops rows whose time is at or before the watermark before a stateful operator sees them, cuts
the watermark to milliseconds, and decides by the previous micro-batch. Lateness is ours to decide,
so the event columns lose the metadata by which Spark knows a watermark, and a column of nulls that
no watermark can reach carries it instead.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cepheid.hosts.prepared_program import PreparedProgram
from cepheid.hosts.spark_filter import EventTests, quoted, time_number
from cepheid.hosts.stream_clock import StreamClock
from cepheid.model.errors import OptionError
from cepheid.model.event_time import MAX_TIME

_WATERMARK_KEY = "spark.watermarkDelayMs"
"""The column metadata by which Spark itself knows a watermark."""
_SHOWN = "__cepheid_shown"


def with_watermark(
    events: DataFrame, program: PreparedProgram, tests: EventTests
) -> tuple[StreamClock, DataFrame]:
    """The events with a watermark on them, and how to read it."""
    name = program.options.end_column
    marked = [field.name for field in events.schema.fields if _WATERMARK_KEY in field.metadata]
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
    clock = StreamClock(is_timestamp=pa.types.is_timestamp(tests.schema.field(name).type))
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


def is_bad(clock: StreamClock, tests: EventTests) -> Column:
    """Rows without a type or a usable time.

    The condition reads the column that carries the watermark, and so keeps Catalyst from moving the
    filter below the watermark, where events of other types would no longer move it.
    """
    if clock.is_shown:
        lost: Column = sf.col(_SHOWN) <= sf.timestamp_millis(sf.lit(0))
    else:
        lost = ~tests.has_time()
    return lost | ~tests.has_type()


def unmarked(own: pa.Schema) -> list[Column]:
    """The event columns without the watermark's metadata: Spark drops late rows by it."""
    return [quoted(f.name).alias(f"c{number}", metadata={}) for number, f in enumerate(own)]


def with_guard(packed: DataFrame) -> DataFrame:
    """A null that carries the watermark's metadata: an operator with timers asks for it.

    Null is not at or before any watermark, so no row is dropped.
    """
    guard = sf.lit(None).cast("timestamp").alias("guard", metadata={_WATERMARK_KEY: 0})
    return packed.select("*", guard)
