"""A workload on Spark: all its queries in one job over any DataFrame, or in one streaming query.

Each event is read once, and copied for every lane (workload_lanes) that can use it; partitions run
the queries of their lanes together, sharing what they have in common. The result has one form for
all queries (match_union).

Where queries are cut (workload_cuts), the job has a stage more: partitions find the composites of
parts, which then go among the events to the partitions whose queries use them. The events are read
once for each of the two stages.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType

from cepheid.hosts.composites import END, EVENTS, PART, travelling_schema
from cepheid.hosts.match_union import union_schema
from cepheid.hosts.spark_batch import end_of_time, refuse_arrival_order
from cepheid.hosts.spark_filter import EventTests, quoted
from cepheid.hosts.spark_routes import route_column
from cepheid.hosts.spark_sources import read_sources
from cepheid.hosts.spark_types import arrow_schema, plain_schema, spark_schema
from cepheid.hosts.stream_routing import Routing
from cepheid.hosts.workload_cuts import CutLanes, cut_lanes, explain_cuts
from cepheid.hosts.workload_lanes import Lane, by_key_or_placed, lanes_of, on_one_node
from cepheid.hosts.workload_task import LANE, FindingLane, LaneTask, PartsTask, WorkloadTask
from cepheid.model.errors import OptionError, PerformanceWarning
from cepheid.model.options import Options
from cepheid.planner.workload_plan import Member

_PARTITION = "__cepheid_partition__"


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """A workload on a DataFrame, ready to run."""

    events: DataFrame
    schema: pa.Schema
    lanes: tuple[Lane, ...]
    options: Options
    partitions: int
    end: int | None
    cuts: CutLanes | None = None

    def matches(self) -> DataFrame:
        """The lazy DataFrame of all matches."""
        form = union_schema(self.schema, self.options.end_column)
        columns: tuple[str, ...] = (*self.schema.names, LANE)
        copies = self._copies(self.lanes)
        if self.cuts is not None:
            columns = (*columns, PART, EVENTS)
            copies = copies.select("*", *_no_composite(self.schema, self.options))
            copies = copies.unionAll(self._composites(self.cuts))
        task = WorkloadTask(
            tuple(LaneTask(lane.members, lane.given) for lane in self.lanes),
            self.options,
            columns,
            self.schema,
            plain_schema(form),
            self.end,
            () if self.cuts is None else self.cuts.texts,
        )
        return self._in_order(copies).mapInArrow(task.detect, spark_schema(form))

    def _copies(self, lanes: Sequence[Lane]) -> DataFrame:
        """The events that matter, once for each lane, with their partitions."""
        names = [quoted(name) for name in self.schema.names]
        ways = routed_copies(lanes, self.schema, self.options, self._partition)
        copies = self.events.select(*names, sf.explode(ways).alias("to"))
        return copies.select(
            *names, sf.col("to.lane").alias(LANE), sf.col("to.place").alias(_PARTITION)
        )

    def _in_order(self, copies: DataFrame) -> DataFrame:
        """All rows of a partition together, sorted by lane and time, columns called by number."""
        placed = copies.repartitionById(self.partitions, _PARTITION)
        order = [sf.col(LANE), quoted(self.options.end_column)]
        if self.options.tie == "seqno" and self.options.id is not None:
            order.append(quoted(self.options.id).asc_nulls_last())
        ordered = placed.sortWithinPartitions(*order).drop(_PARTITION)
        return ordered.toDF(*(f"c{number}" for number in range(len(ordered.columns))))

    def _composites(self, cuts: CutLanes) -> DataFrame:
        """What the first stage finds, once for each lane that is given it, in place of events."""
        travelling = travelling_schema(self.schema, self.options)
        task = PartsTask(
            tuple(FindingLane(lane.members, lane.finds) for lane in cuts.finding),
            self.options,
            (*self.schema.names, LANE),
            self.schema,
            travelling,
            cuts.texts,
            self.end,
        )
        events = self._in_order(self._copies(cuts.finding))
        found = events.mapInArrow(task.find, spark_schema(travelling))
        ways = [
            sf.array(*(_way(number, self.lanes[number].node) for number in cuts.users(part)))
            for part in range(len(cuts.texts))
        ]
        to = sf.explode(sf.get(sf.array(*ways), sf.col(PART))).alias("to")
        types = spark_schema(self.schema)
        end = self.options.end_column
        columns = [
            sf.col(END).alias(end) if each.name == end else _nothing(each.dataType, each.name)
            for each in types
        ]
        sent = found.select(END, PART, EVENTS, to)
        lane, place = sf.col("to.lane").alias(LANE), sf.col("to.place").alias(_PARTITION)
        return sent.select(*columns, lane, place, PART, EVENTS)

    def _partition(self, lane: Lane, bucket: Column) -> Column:
        """The partition of a lane's bucket; lanes begin at different ones."""
        if lane.node is not None:
            return sf.lit(lane.node)
        shift = self.lanes.index(lane)  # only lanes of queries have a key
        return sf.pmod(bucket + sf.lit(shift), sf.lit(self.partitions)).cast("int")

    def explain(self) -> str:
        """How the workload is divided, for people."""
        lines = [f"host: Spark batch, one job of {self.partitions} partitions"]
        for number, lane in enumerate(self.lanes):
            names = ", ".join(member.name for member in lane.members[:6])
            more = f" and {len(lane.members) - 6} more" if len(lane.members) > 6 else ""
            lines.append(f"lane {number}, {lane}: {names}{more}")
        if any(lane.node is not None for lane in self.lanes):
            lines += explain_cuts(self.cuts)
        return "\n".join(lines)


def plan_workload_batch(
    events: DataFrame, members: Sequence[Member], options: Options
) -> WorkloadPlan:
    """Check everything that can be checked on the driver and decide how to divide the work."""
    refuse_arrival_order(options)
    if isinstance(events, dict):
        raise OptionError.of(
            "one-frame",
            "a workload on Spark reads one DataFrame",
            help="put the tables together with unionByName(..., allowMissingColumns=True)",
        )
    schema = arrow_schema(events.schema)
    spark = events.sparkSession
    given = options.partitions
    partitions = given or int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    lanes = lanes_of(members, options, schema, buckets=partitions, nodes=partitions)
    lanes = by_key_or_placed(lanes, options, partitions)
    lanes = _with_whole_keys(events, lanes, schema, options, partitions)
    end = None
    if not options.close_at_end:
        end = end_of_time(read_sources(events, options), lanes[0].programs[0])
    cuts = cut_lanes(lanes, options, schema, partitions)
    if cuts is not None:
        lanes = cuts.lanes
    return WorkloadPlan(events, schema, lanes, options, partitions, end, cuts)


def _with_whole_keys(
    events: DataFrame, lanes: tuple[Lane, ...], schema: pa.Schema, options: Options, nodes: int
) -> tuple[Lane, ...]:
    """Lanes whose events all have their key; the queries of others run undivided.

    Equality by way of an absent attribute is not transitive. One job looks for such events in all
    lanes, if there may be any.
    """
    doubtful = [number for number, lane in enumerate(lanes) if lane.routing.strays]
    if not doubtful:
        return lanes
    counts = []
    for number in doubtful:
        lane = lanes[number]
        tests = EventTests(lane.programs[0], schema)
        key = lane.routing.key
        lacking = None if key is None else tests.lacks_key(key)
        is_lacking = sf.lit(False) if lacking is None else _wanted(lane, tests) & lacking
        counts.append(sf.count_if(is_lacking).alias(f"lane{number}"))
    (found,) = events.agg(*counts).collect()
    kept: list[Lane] = []
    moved: list[Lane] = []
    for number, lane in enumerate(lanes):
        if number in doubtful and found[f"lane{number}"]:
            moved.append(lane)
        else:
            kept.append(replace(lane, routing=replace(lane.routing, strays=False)))
    if not moved:
        return tuple(kept)
    reason = "some events do not have the key, and are equal to every key"
    warnings.warn(f"queries run each in one task: {reason}", PerformanceWarning, stacklevel=4)
    return on_one_node(kept, moved, options, nodes, reason)


def routed_copies(
    lanes: Sequence[Lane],
    schema: pa.Schema,
    options: Options,
    place: Callable[[Lane, Column], Column] = lambda lane, bucket: bucket,
    *,
    any_type: bool = False,
) -> Column:
    """For each lane that an event matters to, the lane and the place of the event's bucket.

    With `any_type` events of all types matter.
    """
    ways = []
    for number, lane in enumerate(lanes):
        tests = EventTests(lane.programs[0], schema)
        bucket = _bucket(lane.routing, options, tests)
        to = sf.struct(sf.lit(number).alias("lane"), place(lane, bucket).cast("int").alias("place"))
        usable = tests.has_type() & tests.has_time()
        wanted = usable if any_type else _wanted(lane, tests)
        ways.append(sf.when(wanted & bucket.isNotNull(), to))
    return sf.filter(sf.array(*ways), lambda way: way.isNotNull())


def _no_composite(schema: pa.Schema, options: Options) -> list[Column]:
    """The columns of composites in the row of an event."""
    kinds = spark_schema(travelling_schema(schema, options))
    return [_nothing(kinds[name].dataType, name) for name in (PART, EVENTS)]


def _nothing(kind: DataType, name: str) -> Column:
    return sf.lit(None).cast(kind).alias(name)


def _way(lane: int, node: int | None) -> Column:
    return sf.struct(sf.lit(lane).alias("lane"), sf.lit(node).cast("int").alias("place"))


def _bucket(routing: Routing, options: Options, tests: EventTests) -> Column:
    return sf.lit(0) if routing.is_one_task else route_column(routing, options, tests)


def _wanted(lane: Lane, tests: EventTests) -> Column:
    """Usable events of the lane's types; one query's own conditions go before the shuffle, too."""
    if len(lane.programs) == 1 and lane.read is None:
        return tests.matters()
    usable = tests.has_type() & tests.has_time()
    types = lane.types
    return usable if types is None else usable & tests.is_of(types)
