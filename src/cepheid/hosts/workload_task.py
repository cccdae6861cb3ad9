"""What runs in a Python worker for a workload: the queries of each lane over its sorted events.

Where queries are cut, a first task finds the composites of parts; for the second they lie among the
events, sorted by their ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cepheid.hosts.composites import EVENTS, PART, Composites, FoundComposites
from cepheid.hosts.found import Found
from cepheid.hosts.ingest import event_batches
from cepheid.hosts.live_engine import END_OF_TIME
from cepheid.hosts.plain_types import fit
from cepheid.hosts.set_aside import event_times
from cepheid.hosts.sorted_runs import SortedRuns, in_large_pieces
from cepheid.hosts.worker_process import prepare_for_engines
from cepheid.hosts.workload_run import DRIVEN, WorkloadRun
from cepheid.model.options import Options
from cepheid.planner.workload_plan import KEYLESS_GRAPH, Member, plan_workload

LANE = "__cepheid_lane__"
"""The number of the lane a row was copied for."""

_MATCHES_PER_BATCH = 1 << 16
_COMPOSITES_PER_BATCH = 1 << 13


@dataclass(frozen=True, slots=True)
class LaneTask:
    """The queries of a lane; `given` are the parts of them that are found elsewhere, by number."""

    members: tuple[Member, ...]
    given: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadTask:
    """The work on one partition; queries travel as texts, by lane.

    `columns` names those of the input, since mapInArrow stumbles over names with dots; `schema` is
    that of the matches on Spark, `events` that of the events. `end` is how far time has run when it
    must not run on for ever (close_at_end=False). `parts` are the canonical texts of what is found
    elsewhere: then rows with a part are composites.
    """

    lanes: tuple[LaneTask, ...]
    options: Options
    columns: tuple[str, ...]
    events: pa.Schema
    schema: pa.Schema
    end: int | None = None
    parts: tuple[str, ...] = ()

    def detect(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A partition in order of lane and time."""
        prepare_for_engines()
        named = (batch.rename_columns(list(self.columns)) for batch in batches)
        runs = SortedRuns(in_large_pieces(named), LANE)
        while (number := runs.current()) is not None:
            lane = self.lanes[number]
            workload = WorkloadRun(
                lane.members,
                self.options,
                self.events,
                driven=self.end is not None,
                given=[self.parts[part] for part in lane.given],
            )
            for table in runs.of(number):
                events = self._without_composites(table, lane, workload) if self.parts else table
                for batch in event_batches(events, self.options):
                    yield from self._written(workload.feed(batch))
                if lane.given and self.end is None:
                    # There may be composites alone, and these do not move time on by themselves.
                    yield from self._written(workload.advance(self._last_time(table)))
            end = END_OF_TIME if self.end is None else self.end
            yield from self._written(workload.advance(end))

    def _last_time(self, table: pa.Table) -> int:
        (last,) = table.slice(len(table) - 1).combine_chunks().to_batches()
        times, _ = event_times(last, self.options)
        return int(times[0])

    def _without_composites(
        self, table: pa.Table, lane: LaneTask, workload: WorkloadRun
    ) -> pa.Table:
        """The events alone; the composites among them are taken first, and wait for their time."""
        events = table.drop_columns([PART, EVENTS])
        is_composite = table.column(PART).is_valid().to_numpy()
        if not is_composite.any():
            return events
        chosen = table.filter(pa.array(is_composite))
        read = Composites.read(chosen.combine_chunks(), events.schema)
        place = np.full(len(self.parts), -1, np.int64)
        place[list(lane.given)] = np.arange(len(lane.given))
        workload.take_composites(read.with_parts(place[read.parts]))
        return events.filter(pa.array(~is_composite))

    def _written(self, found: Found) -> Iterator[pa.RecordBatch]:
        """Matches as batches of bounded size in the types Spark expects."""
        for table in found.tables(_MATCHES_PER_BATCH):
            yield from fit(table, self.schema).combine_chunks().to_batches()


@dataclass(frozen=True, slots=True)
class FindingLane:
    """The parts that are found on a node, by number, and the queries that have them."""

    members: tuple[Member, ...]
    finds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartsTask:
    """The work on one partition of the stage that finds composites; fields as in WorkloadTask."""

    lanes: tuple[FindingLane, ...]
    options: Options
    columns: tuple[str, ...]
    events: pa.Schema
    schema: pa.Schema
    parts: tuple[str, ...]
    end: int | None = None

    def find(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The composites in a partition in order of lane and time."""
        # Its kernel is compiled when it is loaded, for which no other task need wait.
        from cepheid.hosts.cut_succession_engines import PartsEngine  # noqa: PLC0415

        prepare_for_engines()
        named = (batch.rename_columns(list(self.columns)) for batch in batches)
        runs = SortedRuns(in_large_pieces(named), LANE)
        while (number := runs.current()) is not None:
            lane = self.lanes[number]
            groups = plan_workload(lane.members, self.options, self.events, open_schema=False)
            (graph,) = (group for group in groups if group.state == KEYLESS_GRAPH)
            lateness = 0 if self.end is None else DRIVEN
            texts = [self.parts[part] for part in lane.finds]
            engine = PartsEngine(graph.queries, texts, lateness=lateness)
            for table in runs.of(number):
                for batch in event_batches(table, self.options):
                    yield from self._written(lane, engine.feed(batch))
            end = END_OF_TIME if self.end is None else self.end
            yield from self._written(lane, engine.advance(end))

    def _written(self, lane: FindingLane, found: list[FoundComposites]) -> Iterator[pa.RecordBatch]:
        numbers = np.array(lane.finds, np.int64)
        for each in found:
            whole = each.with_parts(numbers[each.parts])
            for portion in whole.portions(_COMPOSITES_PER_BATCH):
                yield from portion.table(self.options, self.schema).combine_chunks().to_batches()
