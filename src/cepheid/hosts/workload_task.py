"""What runs in a Python worker for a workload: the queries of each lane over its sorted events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from cepheid.hosts.found import Found
from cepheid.hosts.ingest import event_batches
from cepheid.hosts.live_engine import END_OF_TIME
from cepheid.hosts.plain_types import fit
from cepheid.hosts.sorted_runs import SortedRuns, in_large_pieces
from cepheid.hosts.workload_run import WorkloadRun
from cepheid.model.options import Options
from cepheid.planner.workload_plan import Member

LANE = "__cepheid_lane__"
"""The number of the lane a row was copied for."""

_MATCHES_PER_BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class WorkloadTask:
    """The work on one partition; queries travel as texts, by lane.

    `columns` names those of the input, since mapInArrow stumbles over names with dots; `schema` is
    that of the matches on Spark, `events` that of the events. `end` is how far time has run when it
    must not run on for ever (close_at_end=False).
    """

    lanes: tuple[tuple[Member, ...], ...]
    options: Options
    columns: tuple[str, ...]
    events: pa.Schema
    schema: pa.Schema
    end: int | None = None

    def detect(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A partition in order of lane and time."""
        named = (batch.rename_columns(list(self.columns)) for batch in batches)
        runs = SortedRuns(in_large_pieces(named), LANE)
        while (lane := runs.current()) is not None:
            driven = self.end is not None
            workload = WorkloadRun(self.lanes[lane], self.options, self.events, driven=driven)
            for table in runs.of(lane):
                for events in event_batches(table, self.options):
                    yield from self._written(workload.feed(events))
            end = END_OF_TIME if self.end is None else self.end
            yield from self._written(workload.advance(end))

    def _written(self, found: Found) -> Iterator[pa.RecordBatch]:
        """Matches as batches of bounded size in the types Spark expects."""
        for table in found.tables(_MATCHES_PER_BATCH):
            yield from fit(table, self.schema).combine_chunks().to_batches()
