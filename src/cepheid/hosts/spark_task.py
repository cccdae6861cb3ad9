"""What runs in a Python worker: a detector over sorted Arrow batches, matches out in portions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.hosts.in_process import Detector
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.matches import Matches
from cepheid.hosts.plain_types import fit
from cepheid.hosts.set_aside import event_times
from cepheid.hosts.sorted_runs import SortedRuns, in_large_pieces
from cepheid.hosts.time_slices import TimeSlices
from cepheid.hosts.worker_process import prepare_for_engines
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery

SLICE = "__cepheid_slice__"
"""The number of the slice of time a row was copied for."""

SOURCE = "__cepheid_source__"
"""The number of the table a row comes from, where that decides what its event does not have."""

MATCHES_PER_BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class DetectionTask:
    """The work on one partition: small enough to be sent with every task.

    The query travels as text; its translation is remembered in the worker's process, and kernels
    come from the disk. `schema` is that of the matches on Spark; `columns` names those of the
    input, since mapInArrow stumbles over names with dots; `types` are the names behind the numbers
    of the type column. `lacking` holds, for each source, the columns that its events do not have.
    `end` is how far time has run when it must not run on for ever (close_at_end=False): a partition
    does not see the others' last events.
    """

    query: CompiledQuery
    options: Options
    schema: pa.Schema
    columns: tuple[str, ...] = ()
    types: tuple[str, ...] | None = None
    lacking: tuple[frozenset[str], ...] | None = None
    slices: TimeSlices | None = None
    end: int | None = None

    def detect(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A partition that has all events its matches need, in order of time."""
        yield from self.matches(in_large_pieces(self._named(batches)))

    def detect_in_slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A partition with whole slices, in order of slice and time."""
        assert self.slices is not None
        run = SortedRuns(in_large_pieces(self._named(batches)), SLICE)
        while (number := run.current()) is not None:
            yield from self.matches(run.of(number), self.slices.owned(number))

    def matches(
        self, tables: Iterator[pa.Table], first_events: tuple[int, int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The matches in sorted events; `first_events` says which of them are this task's."""
        prepare_for_engines()
        detector = Detector.for_host(
            self.query,
            replace(self.options, lateness=0),
            first_events=first_events,
            driven=self.end is not None,
            may_keep_totals=True,
        )
        table: pa.Table | None = None
        for table in tables:
            yield from self._written(detector.feed(self._events(table)))
            if self.end is not None:
                yield from self._written(detector.advance(min(self._last_time(table), self.end)))
        if table is not None:
            last = detector.close() if self.end is None else detector.advance(self.end)
            yield from self._written(last)

    def _named(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        where = self.columns.index(self.options.type) if self.types is not None else -1
        names = pa.array(self.types or (), pa.string())
        for batch in batches:
            named = batch.rename_columns(list(self.columns))
            if where >= 0:
                kinds = pa.DictionaryArray.from_arrays(named.column(where), names)
                named = named.set_column(where, self.options.type, kinds)
            yield named

    def _events(self, table: pa.Table) -> Any:
        """The events alone, with what their tables lack."""
        if self.lacking is None:
            return table
        batch = table.combine_chunks().to_batches()[0]
        source = batch.column(SOURCE).to_numpy(zero_copy_only=False)
        lacks = {}
        for name in batch.schema.names:
            if name not in (SOURCE, self.options.type, self.options.end_column, self.options.id):
                numbers = [n for n, missing in enumerate(self.lacking) if name in missing]
                lacks[name] = np.isin(source, numbers)
        return EventBatch(batch.drop_columns([SOURCE]), lacks, open_schema=True)

    def _last_time(self, table: pa.Table) -> int:
        last = table.slice(len(table) - 1).to_batches()[0]
        return int(event_times(last, self.options)[0][0])

    def _written(self, matches: Matches) -> Iterator[pa.RecordBatch]:
        """Matches as batches of bounded size in the types Spark expects."""
        for table in matches.tables(MATCHES_PER_BATCH):
            yield from fit(table, self.schema).combine_chunks().to_batches()
