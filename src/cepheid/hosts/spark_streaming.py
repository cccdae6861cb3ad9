"""The Spark Structured Streaming host: matches of a live stream, exactly once per checkpoint.

The road of an event: watermark -> filter and project -> packed by bucket -> shuffle -> the stateful
operator that holds the buckets' detectors -> matches. All of a program runs in the one
operator. The set of matches depends on the events alone; an event that comes later than the allowed
lateness is counted, and delivered on demand, never lost.
"""

from __future__ import annotations

import hashlib
import json
import uuid
import warnings
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cepheid.hosts.prepared_program import PreparedProgram, prepare_program
from cepheid.hosts.spark_batch import refuse_arrival_order
from cepheid.hosts.spark_filter import EventTests
from cepheid.hosts.spark_inputs import AwaitedInputs, of_stream
from cepheid.hosts.spark_packing import EVERYWHERE, PACK_SCHEMA, ROUTE, Packing
from cepheid.hosts.spark_routes import route_column
from cepheid.hosts.spark_session import check_packages
from cepheid.hosts.spark_stream_output import stream_output
from cepheid.hosts.spark_stream_processor import DetectionProcessor
from cepheid.hosts.spark_types import arrow_schema, plain_schema
from cepheid.hosts.spark_watermark import is_bad, unmarked, with_guard, with_watermark
from cepheid.hosts.stream_bucket import StreamTask
from cepheid.hosts.stream_clock import StreamClock
from cepheid.hosts.stream_routing import Routing, route
from cepheid.model.errors import EnvironmentProblem, PerformanceWarning
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """A detection on a stream, ready to run; `own` are the event columns that travel."""

    marked: DataFrame
    tests: EventTests
    routing: Routing
    clock: StreamClock
    query: CompiledQuery
    own: pa.Schema
    awaited: AwaitedInputs | None

    @property
    def options(self) -> Options:
        """The options of the detection."""
        return self.tests.options

    def matches(self) -> DataFrame:
        """The streaming DataFrame of the matches, for output mode append."""
        run = uuid.uuid4().hex
        metric = f"cepheid_{self.query.name}_{run[:8]}"
        form = plain_schema(self.tests.program.form.schema)
        task = StreamTask(
            self.query,
            self.options,
            self.own,
            self.clock,
            self.routing,
            _fingerprint(self.query, self.tests.program, self.routing, self.own),
            run,
        )
        packing = Packing(self.routing.stray_bucket, self.own)
        packed = self._routed(f"{metric}_input").mapInArrow(packing.pack, PACK_SCHEMA)
        aside = plain_schema(self.own) if self.options.late_output else None
        output = stream_output(form, aside)
        found = (
            with_guard(packed)
            .groupBy("bucket")
            .transformWithStateInPandas(
                DetectionProcessor(task, output), output.schema, "append", "EventTime"
            )
        )
        return output.matches(found, metric)

    def explain(self) -> str:
        """How the detection runs, for people."""
        routing, types = self.routing, self.tests.program.types
        said = "all types" if types is None else f"type in ({', '.join(types)})"
        notes = ["host: Spark streaming", f"filtered before the shuffle: {said}"]
        if self.awaited is not None:
            notes.append(f"watermark: {self.awaited}; the stream is read once for each")
        elif self.clock.is_shown:
            notes.append(f"watermark: set here, {self.options.lateness} behind the latest event")
        else:
            notes.append("watermark: the stream's own")
        if routing.is_one_task:
            notes.append(f"one bucket, in one task: {routing.reason}")
        elif routing.by_instant:
            notes.append(f"{routing.buckets} buckets by time stamp: each match is one event")
        else:
            notes.append(f"{routing.buckets} buckets by the key {routing.key}")
        if routing.strays:
            notes.append(
                "events without a key go to every bucket; types= or columns that hold no nulls "
                "say that there are none"
            )
        return "\n".join(notes)

    def _routed(self, metric: str) -> DataFrame:
        """The events that matter, each with its route; those that can match nothing are counted."""
        needed = self.marked.filter(is_bad(self.clock, self.tests) | self.tests.matters())
        if self.routing.is_one_task:
            return needed.select(*unmarked(self.own))
        code = route_column(self.routing, self.options, self.tests).alias(ROUTE)
        routed = needed.select(*unmarked(self.own), code)
        if self.routing.strays:
            lacking = sf.count_if(sf.col(ROUTE) == sf.lit(EVERYWHERE)).alias("without_key")
            return routed.observe(metric, lacking)
        if self.routing.key is not None and self.routing.null_bucket is None:
            undefined = sf.count_if(sf.col(ROUTE).isNull()).alias("null_keys")
            return routed.observe(metric, undefined).filter(sf.col(ROUTE).isNotNull())
        return routed


def detect_stream(events: DataFrame, query: CompiledQuery, options: Options) -> DataFrame:
    """The matches of a streaming DataFrame, as a streaming DataFrame for output mode append.

    A watermark the events already have on their time column is used; otherwise one is set, with the
    option `lateness`. Late and unusable events are counted in the query's progress under a metric
    whose name starts with `cepheid`, and delivered too with `late_output=True`: in a row without a
    match, as the column `late`, with a `reason`.

    The state is kept in `buckets` parts, by the key that all components share. An event whose key
    is null lacks it, as far as one wide table can tell, so that it is compared with nothing and
    concerns every key: it goes to every bucket. The option `types` says which attributes an event
    type has, and a schema without nulls that all are there; then a null key matches nothing. Where
    that cannot be exact (a program of several stages, or components that are compared in a chain
    only) or there is no key, all events go through one task, with a warning.
    """
    plan = plan_stream(events, query, options)
    if plan.routing.is_one_task:
        _warn_of_one_task(plan.routing.reason)
    return plan.matches()


def plan_stream(events: DataFrame, query: CompiledQuery, options: Options) -> StreamPlan:
    """Check everything that can be checked on the driver and decide how to divide the work."""
    check_packages()
    require_state_store(events.sparkSession)
    refuse_arrival_order(options, "a micro-batch")
    awaited, options = of_stream([query.stages(options)], options, events.sparkSession)
    schema = arrow_schema(events.schema)
    program = prepare_program(query, options, schema)
    tests = EventTests(program, schema)
    routing = route(program, schema, options.buckets)
    clock, marked = with_watermark(events, program, tests, awaited)
    own = pa.schema([schema.field(name) for name in program.columns(schema)])
    return StreamPlan(marked, tests, routing, clock, query, own, awaited)


def require_state_store(spark: SparkSession) -> None:
    """Refuse a session whose state store cannot hold many segments."""
    if "RocksDB" not in (spark.conf.get(_PROVIDER, None) or ""):
        raise EnvironmentProblem.of(
            "state-store",
            "a streaming detection keeps its state in RocksDB, which this session does not use",
            help=f'spark.conf.set("{_PROVIDER}", "{_ROCKSDB}")',
        )


def _warn_of_one_task(reason: str) -> None:
    warnings.warn(
        f"the whole stream goes through one task: {reason}; an equality over all components, such "
        "as [id], and the option types= (which attributes each event type has) spread the work",
        PerformanceWarning,
        stacklevel=5,
    )


def _fingerprint(
    query: CompiledQuery, program: PreparedProgram, routing: Routing, own: pa.Schema
) -> str:
    """What must be the same for a checkpoint to be gone on from.

    The algebra holds the options that change a text's meaning (NEXT's cap and failures). What a
    text may lack is left out then, so that older checkpoints are known.
    """
    options = program.options
    meaning: dict[str, object] = {
        "queries": [stage.form.fingerprint for stage in program.stages],
        "columns": [options.type, options.end_column, options.id],
        "types": {name: sorted(own) for name, own in (options.types or {}).items()},
        "tie": options.tie,
        "buckets": routing.buckets,
        "key": str(routing.key),
        "strays": routing.strays,
        "events": [(field.name, str(field.type)) for field in own],
    }
    if options.start is not None:
        meaning["start"] = options.start
    sources = query.program.catalogue.sources.values()
    if sources:
        meaning["sources"] = [
            [each.name, each.own_names, each.time, each.clock_error] for each in sources
        ]
    text = json.dumps(meaning, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
