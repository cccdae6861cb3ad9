"""The Spark batch host: filter in the JVM, bring together what can match, detect in the workers.

Three ways to bring events together, in this order of preference: by the key that all components
share; by slices of time, an event going to each slice that needs it; all into one task. Before the
work is divided, small jobs may look at the events, each told by `explain`: whether an event lacks
its key (only if the columns may hold nulls and types= does not settle it; Parquet answers from its
statistics), and how the events lie in time (only for slices). The result itself is lazy.

Rows without a type or a usable time match nothing; `quarantined` gives them with the reason.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from cepheid.algebra.expression_text import expression_text
from cepheid.hosts.division import KeyByType, TimeReach, Undivided, key_of, reach_of
from cepheid.hosts.plain_types import plain_schema
from cepheid.hosts.prepared_program import PreparedProgram, prepare_program
from cepheid.hosts.spark_filter import EventTests, has_usable_time, quoted, time_number
from cepheid.hosts.spark_sources import Sources, read_sources, together
from cepheid.hosts.spark_task import SLICE, SOURCE, DetectionTask
from cepheid.hosts.spark_types import arrow_schema, spark_schema
from cepheid.hosts.time_slices import TimeSlices, choose_slices
from cepheid.model.errors import OptionError, PerformanceWarning
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery

ROWS_PER_SLICE = 200_000
"""Fewer rows are not worth a task of their own."""

_MOST_SLICES = 1_000


@dataclass(frozen=True, slots=True)
class ByKey:
    """Each key's events are in one partition."""

    key: KeyByType


@dataclass(frozen=True, slots=True)
class ByInstant:
    """Each match is one event: any partition will do in which equal rows are together."""


@dataclass(frozen=True, slots=True)
class BySlices:
    """Each slice of time has its events and those its matches can reach."""

    slices: TimeSlices


@dataclass(frozen=True, slots=True)
class InOneTask:
    """All events are in one partition."""


Division: TypeAlias = ByKey | ByInstant | BySlices | InOneTask


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """A detection on DataFrames, ready to run; `notes` say why it runs this way."""

    needed: DataFrame
    tests: EventTests
    task: DetectionTask
    division: Division
    notes: tuple[str, ...]

    def matches(self) -> DataFrame:
        """The lazy DataFrame of the matches."""
        options, number = self.task.options, self.task.options.partitions
        work = self.task.detect
        order = _order(options)
        match self.division:
            case ByKey(key):
                divided = _repartitioned(self.needed, number, self.tests.key_columns(key))
            case ByInstant():
                instant = [quoted(options.end_column)]
                named = options.id is not None and number is None  # equal rows have other ids
                divided = self.needed if named else _repartitioned(self.needed, number, instant)
            case BySlices(slices):
                divided = self._sliced(slices)
                order = [sf.col(SLICE), *order]
                work = self.task.detect_in_slices
            case InOneTask():
                divided = self.needed.repartition(1)
            case _:
                assert_never(self.division)
        schema = spark_schema(self.tests.program.form.schema)
        ordered = divided.sortWithinPartitions(*order)
        numbered = ordered.toDF(*(f"c{number}" for number in range(len(ordered.columns))))
        return numbered.mapInArrow(work, schema)

    def _sliced(self, slices: TimeSlices) -> DataFrame:
        """Each event once for every slice that reads it."""
        time = time_number(self.tests.schema, self.task.options)
        first = _slice_of(slices.edges, time - sf.lit(slices.reach.forward))
        last = _slice_of(slices.edges, time + sf.lit(slices.reach.back))
        copies = self.needed.withColumn(SLICE, sf.explode(sf.sequence(first, last)))
        return copies.repartitionById(len(slices), SLICE)

    def explain(self) -> str:
        """How the detection runs, for people."""
        return "\n".join(["host: Spark batch", *self.notes])


def detect_batch(events: Any, query: CompiledQuery, options: Options) -> DataFrame:
    """The matches in a DataFrame, or in a dict of them by type or source, as a lazy DataFrame."""
    return plan_batch(events, query, options).matches()


def plan_batch(events: Any, query: CompiledQuery, options: Options) -> BatchPlan:
    """Check everything that can be checked on the driver and decide how to divide the work."""
    sources = read_sources(events, options)
    program = prepare_program(query, options, sources.schema, open_schema=sources.by_table)
    refuse_arrival_order(options)
    columns = [*program.columns(sources.schema), *([SOURCE] if sources.by_table else [])]
    tests = [
        EventTests(program, sources.schema, part.lacking if sources.by_table else None)
        for part in sources.parts
    ]
    key = key_of(program)
    # Small numbers instead of names make rows lighter; a key by type still asks for the names.
    is_by_type = isinstance(key, KeyByType) and key.of_any is None
    names = None if is_by_type else tests[0].types_worth_numbers()
    kept = [
        part.frame.filter(test.matters()) for part, test in zip(sources.parts, tests, strict=True)
    ]
    needed = together(
        [
            frame.select(*test.selected(columns, names))
            for frame, test in zip(kept, tests, strict=True)
        ]
    )
    notes = [
        _filter_note(tests[0]),
        "rows without type or usable time match nothing (spark_batch.quarantined has them)",
        _columns_note(columns, sources.schema),
    ]
    division = _divide(key, needed, kept, tests, notes)
    if not options.close_at_end:
        notes.append("looked before for the time of the last event, because of close_at_end=False")
    task = DetectionTask(
        query,
        options,
        plain_schema(program.form.schema),
        tuple(columns) + ((SLICE,) if isinstance(division, BySlices) else ()),
        names,
        sources.lacking,
        division.slices if isinstance(division, BySlices) else None,
        None if options.close_at_end else end_of_time(sources, program),
    )
    return BatchPlan(needed, tests[0], task, division, tuple(notes))


def quarantined(events: DataFrame, options: Options | None = None) -> DataFrame:
    """The rows a detection passes over for want of a type or a usable time, with the reason."""
    given = options or Options()
    schema = arrow_schema(events.schema)
    untyped = quoted(given.type).isNull()
    reason = sf.when(untyped, sf.lit(f"`{given.type}` is null")).when(
        ~has_usable_time(schema, given), sf.lit(f"`{given.end_column}` is null or out of range")
    )
    marked = events.withColumn("quarantine_reason", reason)
    return marked.filter(sf.col("quarantine_reason").isNotNull())


# -- dividing the work --------------------------------------------------------------------


def _divide(
    key: KeyByType | Undivided,
    needed: DataFrame,
    kept: list[DataFrame],
    tests: list[EventTests],
    notes: list[str],
) -> Division:
    program, options = tests[0].program, tests[0].options
    if isinstance(key, KeyByType) and not all(stage.is_succession for stage in program.stages):
        key = _key_all_events_have(key, kept, tests, notes)
    if isinstance(key, KeyByType):
        notes.append(f"divided by the key {key} into {_partition_note(needed, options)}")
        if not isinstance(reach_of(program), Undivided):
            notes.append("plan={'partition': 'none'} would divide by time: for keys of uneven size")
        return ByKey(key)
    notes.append(f"not divided by key: {key.reason}")
    reach = reach_of(program)
    if isinstance(reach, Undivided):
        notes.append(f"not divided by time: {reach.reason}")
        notes.append("all events go to one task")
        _warn(f"all events go to one task: {key.reason}, and {reach.reason}")
        return InOneTask()
    if reach == TimeReach(0, 0):
        notes.append("each match is one event: divided by time stamp")
        return ByInstant()
    return _slices(needed, tests[0], reach, notes)


def _key_all_events_have(
    key: KeyByType, kept: list[DataFrame], tests: list[EventTests], notes: list[str]
) -> KeyByType | Undivided:
    """Equality by way of an absent attribute is not transitive: then the key divides nothing."""
    options = tests[0].options
    for name, attributes in key.of.items():
        declared = options.attributes_of(name)
        missing = [a for a in attributes if declared is not None and a not in declared]
        if missing:
            return Undivided(f"events of type {name} have no attribute {missing[0]}")
    doubtful = [
        frame.filter(lacking).select(sf.lit(1))
        for frame, test in zip(kept, tests, strict=True)
        if (lacking := test.lacks_key(key)) is not None
    ]
    if not doubtful:
        return key
    notes.append(
        "looked for events without a key before (a pass over the filtered key columns; types= or "
        "columns that hold no nulls spare it)"
    )
    # One job without a shuffle of rows. `limit(1)` would stop earlier where keys are missing, but
    # takes twice as long where none is, which is what one waits for.
    if together(doubtful).count() == 0:
        return key
    return Undivided("some events do not have the key, and are equal to every key")


def _slices(needed: DataFrame, test: EventTests, reach: TimeReach, notes: list[str]) -> Division:
    options = test.options
    most = min(options.partitions or _shuffle_partitions(needed.sparkSession), _MOST_SLICES)
    time = time_number(test.schema, options)
    fractions = [number / most for number in range(1, most)] or [0.5]
    (lie,) = needed.agg(
        sf.count(time).alias("rows"),
        sf.min(time).alias("low"),
        sf.max(time).alias("high"),
        sf.percentile_approx(time, fractions, 10_000).alias("quantiles"),
    ).collect()
    notes.append("looked before how the events lie in time (a pass over the filtered times)")
    if not lie["rows"]:
        return InOneTask()
    wanted = most if options.partitions else min(most, -(-lie["rows"] // ROWS_PER_SLICE))
    inner = [lie["quantiles"][number * most // wanted - 1] for number in range(1, wanted)]
    slices = choose_slices(inner, lie["low"], lie["high"], reach, wanted)
    notes.append(
        f"divided by time into {len(slices)} slices, each reading {reach.back} before and "
        f"{reach.forward} after its own first events"
    )
    if len(slices) == 1 and lie["rows"] > ROWS_PER_SLICE:
        notes.append("the window is too long for more slices")
        _warn("all events go to one task: there is no key, and the window is too long for slices")
    return BySlices(slices)


def _slice_of(edges: tuple[int, ...], time: Column) -> Column:
    """The number of edges at or before a time, found by halving."""

    def search(low: int, high: int) -> Column:
        if low == high:
            return sf.lit(low)
        middle = (low + high) // 2
        before = time < sf.lit(edges[middle])
        return sf.when(before, search(low, middle)).otherwise(search(middle + 1, high))

    return search(0, len(edges))


def end_of_time(sources: Sources, program: PreparedProgram) -> int:
    """The watermark after the last event of all, also of types the query does not read."""
    options = program.options
    usable = has_usable_time(sources.schema, options) & quoted(options.type).isNotNull()
    time = time_number(sources.schema, options)
    times = [part.frame.filter(usable).select(time.alias("t")) for part in sources.parts]
    (last,) = together(times).agg(sf.max("t").alias("t")).collect()
    return -(2**62) if last["t"] is None else int(last["t"]) - program.lateness


def refuse_arrival_order(options: Options, where: str = "a DataFrame") -> None:
    """On Spark only an id column can say which of two events of one time came first."""
    if options.tie == "seqno" and options.id is None:
        raise OptionError.of(
            "no-arrival-order",
            f"tie='seqno' needs an order of arrival, which {where} does not have",
            help="name a column that increases with arrival by id=; it then decides ties",
        )


def _order(options: Options) -> list[Column]:
    order = [quoted(options.end_column)]
    if options.tie == "seqno" and options.id is not None:
        order.append(quoted(options.id).asc_nulls_last())
    return order


def _repartitioned(frame: DataFrame, number: int | None, columns: list[Column]) -> DataFrame:
    if number is None:
        return frame.repartition(*columns)
    return frame.repartition(number, *columns)


def _shuffle_partitions(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


# -- telling ------------------------------------------------------------------------------


def _warn(message: str) -> None:
    warnings.warn(message, PerformanceWarning, stacklevel=2)


def _partition_note(frame: DataFrame, options: Options) -> str:
    if options.partitions is not None:
        return f"{options.partitions} partitions"
    return f"up to {_shuffle_partitions(frame.sparkSession)} partitions"


def _filter_note(test: EventTests) -> str:
    types = test.program.types
    said = "all types" if types is None else f"type in ({', '.join(types)})"
    tests = [expression_text(each) for each in test.tests()]
    return "filtered before the shuffle: " + " and ".join([said, *tests])


def _columns_note(columns: list[str], schema: pa.Schema) -> str:
    if len(columns) >= len(schema.names):
        return "all columns are kept: matches carry whole events, or are known by all they hold"
    return f"columns kept: {', '.join(columns)}"
