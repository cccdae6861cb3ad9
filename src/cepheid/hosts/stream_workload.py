"""A workload in the buckets of a stream: each lane has buckets of its own, one after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.hosts.found import Found
from cepheid.hosts.stream_clock import StreamClock
from cepheid.hosts.stream_routing import Routing
from cepheid.hosts.stream_running import Running
from cepheid.hosts.workload_orders import Order, read_member, written_member
from cepheid.hosts.workload_run import WorkloadRun
from cepheid.model.options import Options
from cepheid.planner.workload_plan import Member


@dataclass(frozen=True, slots=True)
class StreamLane:
    """The queries of a lane, how their events are routed, and the number of their first bucket."""

    members: tuple[Member, ...]
    routing: Routing
    first: int

    @property
    def after(self) -> int:
        """One past its last bucket, which is the stray one."""
        return self.first + self.routing.stray_bucket + 1


@dataclass(frozen=True, slots=True)
class WorkloadStreamTask:
    """What a worker has to know of a streaming workload (see stream_running.Task)."""

    lanes: tuple[StreamLane, ...]
    options: Options
    schema: pa.Schema
    clock: StreamClock
    fingerprint: str
    run: str
    lateness: int = 0

    def detector(self, bucket: int, queries: list[Any] | None) -> Running[Found]:
        """The queries of the bucket's lane, with nothing seen."""
        members = self._lane(bucket).members
        if queries is not None:
            members = tuple(read_member(each) for each in queries)
        return WorkloadRun(members, self.options, self.schema, driven=True)

    def changed(
        self, detector: Running[Found], bucket: int, orders: Sequence[str], watermark: int
    ) -> tuple[Running[Found], list[Any]] | None:
        """What runs after orders to the bucket's lane, and without the queries that are over."""
        assert isinstance(detector, WorkloadRun)
        number = self.lanes.index(self._lane(bucket))
        given = [order for text in orders if (order := Order.read(text)).lane == number]
        members = detector.members
        for order in sorted(given, key=lambda order: order.number):
            members = order.carried_out(members, watermark + self.lateness + 1)
        members = tuple(m for m in members if not m.active.is_over(watermark))
        if members == detector.members and not given:
            return None
        run = WorkloadRun(members, self.options, self.schema, driven=True, before=detector)
        return run, [written_member(member) for member in members]

    def owned(self, matches: Found, bucket: int) -> Found:
        """The matches that belong to a bucket, of those it has found."""
        lane = self._lane(bucket)
        if not lane.routing.strays:
            return matches
        return matches.chosen(
            lambda each: lane.routing.owned(each, bucket - lane.first, self.options)
        )

    def is_slowed(self, detector: Running[Found], bucket: int) -> bool:
        """Whether an engine left its key for an event without one that is gone now."""
        lane = self._lane(bucket)
        if not lane.routing.strays or bucket - lane.first == lane.routing.stray_bucket:
            return False
        slowed = [engine for engine in detector.engines if not engine.is_partitioned]
        return bool(slowed) and all(
            lane.routing.is_whole(engine.live_table()[0], self.options) for engine in slowed
        )

    def _lane(self, bucket: int) -> StreamLane:
        return self.lanes[bisect_right([lane.first for lane in self.lanes], bucket) - 1]
