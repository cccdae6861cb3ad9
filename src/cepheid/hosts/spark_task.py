"""What runs in a Python worker: a detector over sorted Arrow batches, matches out in portions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.hosts.in_process import Detector
from cepheid.hosts.matches import Matches
from cepheid.hosts.spark_types import fit
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery

ROWS_PER_FEED = 1 << 18
"""Spark hands over batches of 10,000 rows: too small to pay a feed for each."""

MATCHES_PER_BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class DetectionTask:
    """The work on one partition: small enough to be sent with every task.

    `schema` is that of the matches on Spark. The query travels as text; translating it again is
    remembered in the worker's process, and kernels come from the disk.
    """

    query: CompiledQuery
    options: Options
    schema: pa.Schema

    def by_key(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A partition that has all events of its keys, in order of time."""
        yield from self.detect(batches)

    def detect(
        self, batches: Iterator[pa.RecordBatch], first_events: tuple[int, int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The matches in sorted events; `first_events` says whose matches these are."""
        detector = Detector.for_host(
            self.query, replace(self.options, lateness=0), first_events=first_events
        )
        for table in in_large_pieces(batches):
            yield from self.written(detector.feed(table))
        yield from self.written(detector.close())

    def written(self, matches: Matches) -> Iterator[pa.RecordBatch]:
        """Matches as batches of bounded size in the types Spark expects."""
        if len(matches):
            table = fit(matches.table(), self.schema)
            yield from table.to_batches(max_chunksize=MATCHES_PER_BATCH)


def in_large_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in the same order, in fewer pieces."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
        if rows >= ROWS_PER_FEED:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)
