"""A workload on a stream: all its queries in one streaming query, in one stateful operator.

The road of an event is that of a single query (spark_streaming), with a copy for each lane.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cepheid.hosts.match_union import union_schema
from cepheid.hosts.spark_batch import refuse_arrival_order
from cepheid.hosts.spark_filter import EventTests
from cepheid.hosts.spark_inputs import AwaitedInputs, of_stream
from cepheid.hosts.spark_packing import LANE, PACK_SCHEMA, ROUTE, LanePacking, Packing
from cepheid.hosts.spark_session import check_packages
from cepheid.hosts.spark_stream_output import stream_output
from cepheid.hosts.spark_stream_processor import DetectionProcessor
from cepheid.hosts.spark_streaming import require_state_store
from cepheid.hosts.spark_types import arrow_schema, plain_schema
from cepheid.hosts.spark_watermark import is_bad, unmarked, with_guard, with_watermark
from cepheid.hosts.spark_workload import routed_copies
from cepheid.hosts.spark_workload_control import WorkloadControl
from cepheid.hosts.stream_clock import StreamClock
from cepheid.hosts.stream_routing import DEFAULT_BUCKETS
from cepheid.hosts.stream_workload import StreamLane, WorkloadStreamTask
from cepheid.hosts.workload_lanes import Lane, lanes_of
from cepheid.model.errors import OptionError
from cepheid.model.options import Options
from cepheid.planner.workload_plan import Member


@dataclass(frozen=True, slots=True)
class WorkloadStreamPlan:
    """A workload on a stream, ready to run."""

    marked: DataFrame
    schema: pa.Schema
    lanes: tuple[Lane, ...]
    options: Options
    clock: StreamClock
    lateness: int
    control: WorkloadControl | None = None
    awaited: AwaitedInputs | None = None

    def matches(self) -> DataFrame:
        """The streaming DataFrame of all matches, for output mode append."""
        run = uuid.uuid4().hex
        form = plain_schema(union_schema(self.schema, self.options.end_column))
        lanes = self._stream_lanes()
        task = WorkloadStreamTask(
            lanes,
            self.options,
            self.schema,
            self.clock,
            self._fingerprint(lanes),
            run,
            self.lateness,
        )
        packing = LanePacking(
            tuple(Packing(lane.routing.stray_bucket, self.schema) for lane in lanes),
            tuple(lane.first for lane in lanes),
        )
        packed = self._routed().mapInArrow(packing.pack, PACK_SCHEMA)
        if self.control is not None:
            packed = packed.unionAll(self.control.packs(self.marked.sparkSession, lanes))
        aside = plain_schema(self.schema) if self.options.late_output else None
        output = stream_output(form, aside)
        processor = DetectionProcessor(task, output)
        found = (
            with_guard(packed)
            .groupBy("bucket")
            .transformWithStateInPandas(processor, output.schema, "append", "EventTime")
        )
        return output.matches(found, f"cepheid_workload_{run[:8]}")

    def _routed(self) -> DataFrame:
        """The events that matter, once for each lane; bad ones go with the first."""
        tests = EventTests(self.lanes[0].programs[0], self.schema)
        bad = is_bad(self.clock, tests)
        # Queries that are still to come may want types that nobody wants now.
        any_type = self.control is not None
        copies = routed_copies(self.lanes, self.schema, self.options, any_type=any_type)
        first = sf.array(sf.struct(sf.lit(0).alias("lane"), sf.lit(0).alias("place")))
        names = unmarked(self.schema)
        to = sf.explode(sf.when(bad, first).otherwise(copies)).alias("to")
        exploded = self.marked.select(*names, to)
        plain = [sf.col(f"c{number}") for number in range(len(self.schema))]
        return exploded.select(
            *plain, sf.col("to.lane").alias(LANE), sf.col("to.place").alias(ROUTE)
        )

    def _stream_lanes(self) -> tuple[StreamLane, ...]:
        lanes: list[StreamLane] = []
        for lane in self.lanes:
            first = lanes[-1].after if lanes else 0
            lanes.append(StreamLane(lane.members, lane.routing, first))
        return tuple(lanes)

    def _fingerprint(self, lanes: Sequence[StreamLane]) -> str:
        """What must be the same for a checkpoint to be gone on from."""
        options = self.options
        text = json.dumps(
            {
                "queries": [
                    [
                        (member.name, [s.form.fingerprint for s in program.stages])
                        for member, program in zip(lane.members, lane.programs, strict=True)
                    ]
                    for lane in self.lanes
                ],
                "lanes": [
                    [lane.first, lane.routing.buckets, str(lane.routing.key)] for lane in lanes
                ],
                "columns": [options.type, options.end_column, options.start, options.id],
                "types": {name: sorted(own) for name, own in (options.types or {}).items()},
                "tie": options.tie,
                "events": [(field.name, str(field.type)) for field in self.schema],
            },
            sort_keys=True,
        )
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def explain(self) -> str:
        """How the workload is divided, for people."""
        lines = ["host: Spark streaming, one query with one stateful operator"]
        for number, lane in enumerate(self.lanes):
            buckets = f"{lane.routing.buckets} buckets"
            lines.append(f"lane {number}, {lane}: {len(lane.members)} queries, {buckets}")
        if any(lane.node is not None for lane in self.lanes):
            lines.append("every query runs whole: only in a batch are edges shuffled")
        if self.awaited is not None:
            lines.append(f"watermark: {self.awaited}; the stream is read once for each")
        return "\n".join(lines)


def plan_workload_stream(
    events: DataFrame,
    members: Sequence[Member],
    options: Options,
    control: WorkloadControl | None = None,
) -> WorkloadStreamPlan:
    """Check everything that can be checked on the driver and decide how to divide the work."""
    check_packages()
    require_state_store(events.sparkSession)
    refuse_arrival_order(options, "a micro-batch")
    if control is not None and options.policy == "guaranteed" and options.inputs is None:
        raise OptionError.of(
            "unknown-inputs",
            'queries come and go, and policy="guaranteed" has to know the inputs of them all',
            help='name them, e.g. inputs=["A", "B"]',
        )
    programs = [member.query.stages(options) for member in members]
    awaited, options = of_stream(programs, options, events.sparkSession)
    schema = arrow_schema(events.schema)
    buckets = options.buckets or DEFAULT_BUCKETS
    partitions = int(events.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    nodes = options.partitions or partitions
    lanes = lanes_of(members, options, schema, buckets=buckets, nodes=nodes)
    tests = EventTests(lanes[0].programs[0], schema)
    clock, marked = with_watermark(events, lanes[0].programs[0], tests, awaited)
    if control is not None:
        if not clock.is_shown:
            raise OptionError.of(
                "own-watermark",
                "a workload under control sets its own watermark, and the stream has one",
                help="leave out withWatermark, and say lateness= to the workload",
            )
        control.bind(lanes, options, schema, buckets)
    lateness = lanes[0].programs[0].lateness
    return WorkloadStreamPlan(marked, schema, lanes, options, clock, lateness, control, awaited)
