"""The watermark on a stream's events, and how Spark is kept from dropping rows by it.

Spark drops rows whose time is at or before the watermark before a stateful operator sees them, cuts
the watermark to milliseconds, and decides by the previous micro-batch. Lateness is ours to decide,
so the event columns lose the metadata by which Spark knows a watermark, and a column of nulls that
no watermark can reach carries it instead.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cepheid.hosts.prepared_program import PreparedProgram
from cepheid.hosts.spark_filter import EventTests, quoted, time_number
from cepheid.hosts.spark_inputs import AwaitedInputs
from cepheid.hosts.stream_clock import StreamClock
from cepheid.model.errors import OptionError
from cepheid.model.event_time import MAX_TIME
from cepheid.planner.prepare import in_time_unit

_WATERMARK_KEY = "spark.watermarkDelayMs"
"""The column metadata by which Spark itself knows a watermark."""
_SHOWN = "__cepheid_shown"


def with_watermark(
    events: DataFrame,
    program: PreparedProgram,
    tests: EventTests,
    awaited: AwaitedInputs | None = None,
) -> tuple[StreamClock, DataFrame]:
    """The events with a watermark on them, and how to read it."""
    name = program.options.end_column
    marked = [field.name for field in events.schema.fields if _WATERMARK_KEY in field.metadata]
    if marked and (program.lateness or awaited is not None):
        given = 'policy="guaranteed"' if awaited else f"lateness={program.options.lateness!r}"
        raise OptionError.of(
            "two-latenesses",
            f"the stream has a watermark, and {given} is given, too",
            help="leave it out, or the stream's own withWatermark",
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

    def shown(less: int) -> Column:
        # What is taken off is so here, where it is exact, and not by Spark, in milliseconds.
        millis = _shown(clock, time - sf.lit(less).cast("long"))
        return sf.timestamp_millis(sf.when(usable, millis).otherwise(sf.lit(0).cast("long")))

    if awaited is None:
        return clock, events.withColumn(_SHOWN, shown(program.lateness)).withWatermark(
            _SHOWN, "0 seconds"
        )
    others = events.filter(~sf.coalesce(tests.is_of(awaited.names), sf.lit(False)))
    whole = others.withColumn(_SHOWN, shown(0))
    for each in awaited.names:
        whole = whole.unionAll(_branch(events, each, program, tests, awaited, shown))
    return clock, whole


def _branch(
    events: DataFrame,
    name: str,
    program: PreparedProgram,
    tests: EventTests,
    awaited: AwaitedInputs,
    shown: Callable[[int], Column],
) -> DataFrame:
    """The events of one input, and what it has reached: for a union Spark takes the least of all.

    An input that is waited for no longer than the time-out is shown the others' times less that.
    """
    of_it = tests.is_of([name])
    if awaited.timeout is None:
        return events.filter(of_it).withColumn(_SHOWN, shown(0)).withWatermark(_SHOWN, "0 seconds")
    timeout = in_time_unit(awaited.timeout, "input_timeout", program.stages[0].domain)
    reached = sf.when(sf.coalesce(of_it, sf.lit(False)), shown(0)).otherwise(shown(timeout))
    marked = events.withColumn(_SHOWN, reached).withWatermark(_SHOWN, "0 seconds")
    # No shown time is negative: that it is asked for keeps Catalyst from moving the filter below
    # the watermark, which would then see nothing of the other inputs.
    return marked.filter(of_it | (sf.col(_SHOWN) < sf.timestamp_millis(sf.lit(0))))


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
