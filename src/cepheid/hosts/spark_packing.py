"""Packs: many events travel to the stateful operator, and matches back, as one binary value.

Spark hands a stateful Python operator its rows one by one, through Python objects and pandas, at
some microseconds each and with integers turned into floats where there are nulls. A pack is a
record batch in Arrow IPC, made and opened by mapInArrow: whole columns, exact in every type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from cepheid.hosts.plain_types import fit
from cepheid.hosts.snapshot import read_table, write_table
from cepheid.hosts.sorted_runs import in_large_pieces
from cepheid.hosts.worker_process import leave_modules_alone

REASON = "quarantine_reason"
"""The column in which set-aside events say why."""

ROUTE = "__cepheid_route"
LANE = "__cepheid_lane"
EVERYWHERE = -1

_LARGEST_PACK = 4 << 20
PACKS = pa.schema(
    [
        ("bucket", pa.int32()),
        ("task", pa.int32()),
        ("number", pa.int32()),
        ("is_copy", pa.bool_()),
        ("events", pa.binary()),
    ]
)
PACK_SCHEMA = "bucket int, task int, number int, is_copy boolean, events binary"


@dataclass(frozen=True, slots=True)
class Packing:
    """Packs routed events by bucket; `schema` is that of the events alone.

    A route is a bucket, `stray` (the bucket after the last), `stray + 1` and more for a bucket and
    the stray one as well, or EVERYWHERE (see stream_routing). Columns come in the schema's order
    and under any names: mapInArrow stumbles over names with dots.
    """

    stray: int
    schema: pa.Schema

    def pack(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For each large piece of a partition, one pack (or a few) per bucket."""
        yield from _packed(batches, self.by_bucket)

    def by_bucket(self, table: pa.Table) -> Iterator[tuple[int, bool, pa.RecordBatch]]:
        """For each bucket the events that go there, and whether another one accounts for them."""
        own = table.select(range(len(self.schema))).rename_columns(self.schema.names)
        events = fit(own, self.schema).combine_chunks().to_batches()[0]
        stray = self.stray
        if ROUTE not in table.column_names:
            yield 0, False, events
            return
        routes = table.column(ROUTE).to_numpy()
        to_stray_too = routes > stray
        buckets = np.where(to_stray_too, routes - stray - 1, routes)
        order = np.argsort(buckets, kind="stable")
        edges = np.searchsorted(buckets[order], np.arange(stray + 2))
        ordered = events.take(pa.array(order))
        everywhere = ordered.slice(0, int(edges[0]))
        for bucket in range(stray + 1):
            begin, end = int(edges[bucket]), int(edges[bucket + 1])
            if end > begin:
                yield bucket, False, ordered.slice(begin, end - begin)
            if everywhere.num_rows:
                # The stray bucket accounts for events that went everywhere.
                yield bucket, bucket < stray, everywhere
        if to_stray_too.any():
            yield stray, True, events.take(pa.array(np.flatnonzero(to_stray_too)))


@dataclass(frozen=True, slots=True)
class LanePacking:
    """Packs events that are copied for several lanes, whose buckets begin at `firsts`."""

    lanes: tuple[Packing, ...]
    firsts: tuple[int, ...]

    def pack(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For each large piece of a partition, one pack (or a few) per bucket."""
        yield from _packed(batches, self._by_bucket)

    def _by_bucket(self, table: pa.Table) -> Iterator[tuple[int, bool, pa.RecordBatch]]:
        numbers = table.column(LANE).to_numpy()
        for number, (packing, first) in enumerate(zip(self.lanes, self.firsts, strict=True)):
            rows = np.flatnonzero(numbers == number)
            if len(rows):
                own = table.take(pa.array(rows)).drop_columns([LANE])
                for bucket, is_copy, events in packing.by_bucket(own):
                    # The first lane accounts for events; those of the others are copies.
                    yield first + bucket, is_copy or number > 0, events


def _packed(
    batches: Iterator[pa.RecordBatch],
    by_bucket: Callable[[pa.Table], Iterator[tuple[int, bool, pa.RecordBatch]]],
) -> Iterator[pa.RecordBatch]:
    leave_modules_alone()
    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    number = 0
    for table in in_large_pieces(batches):
        rows: list[tuple[int, int, int, bool, bytes]] = []
        for bucket, is_copy, events in by_bucket(table):
            for part in _bounded(events):
                rows.append((bucket, task, number, is_copy, part.serialize().to_pybytes()))
                number += 1
        columns = zip(*rows, strict=True)
        yield pa.record_batch(
            [pa.array(c, f.type) for c, f in zip(columns, PACKS, strict=True)], schema=PACKS
        )


def open_pack(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The events of a pack."""
    return pa.ipc.read_record_batch(pa.py_buffer(data), schema)


@dataclass(frozen=True, slots=True)
class Unpacking:
    """Opens the packs a stateful operator wrote: matches, and the events it set aside.

    `schema` is that of the rows to make; it ends with `late` and `reason` if those are wanted.
    """

    schema: pa.Schema

    def unpack(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all packs."""
        for batch in batches:
            for name in ("matches", "aside"):
                for data in batch.column(name):
                    if not data.is_valid:
                        continue
                    table = read_table(data.as_py())
                    if name == "aside":
                        table = self._as_rows(table)
                    yield from fit(table, self.schema).to_batches()

    def _as_rows(self, aside: pa.Table) -> pa.Table:
        events = aside.drop_columns([REASON]).to_struct_array()
        return pa.table({"late": events, "reason": aside.column(REASON)})


def pack_table(table: pa.Table) -> bytes:
    """Matches, or events set aside, as one value."""
    return write_table(table)


def _bounded(events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Parts of bounded size: Spark gathers several packs in one Arrow vector of 2 GB at most."""
    parts = max(1, -(-events.nbytes // _LARGEST_PACK))
    rows = max(1, -(-events.num_rows // parts))
    for begin in range(0, events.num_rows, rows):
        yield events.slice(begin, rows)
