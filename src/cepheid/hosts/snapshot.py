"""The bytes of a snapshot: a header in JSON and the live events in Arrow IPC, with a checksum.

Never pickle: a snapshot may come from a disk or a network. It names its format, the query's
fingerprint and the options that decide meaning, and is refused when they differ.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.hosts.ingest import EventBatch
from cepheid.model.errors import StateError

MAGIC = b"CEPHEID1"
FORMAT = 1
_ORDER = "__cepheid_position"
_LACKS = "__cepheid_lacks_"


def write_events(table: pa.Table, positions: np.ndarray, lacks: Mapping[str, np.ndarray]) -> bytes:
    """Live events with their arrival numbers and what each of them lacks."""
    return write_table(with_notes(table, positions, lacks))


def read_events(data: bytes) -> tuple[EventBatch, np.ndarray]:
    """The other way round."""
    return without_notes(read_table(data))


def with_notes(table: pa.Table, positions: np.ndarray, lacks: Mapping[str, np.ndarray]) -> pa.Table:
    """Events with columns of their own for arrival numbers and for what each of them lacks."""
    table = table.append_column(_ORDER, pa.array(positions))
    for name, flags in lacks.items():
        table = table.append_column(_LACKS + name, pa.array(flags))
    return table


def without_notes(table: pa.Table) -> tuple[EventBatch, np.ndarray]:
    """The events and their arrival numbers apart again."""
    table = table.unify_dictionaries().combine_chunks()
    positions = table.column(_ORDER).to_numpy()
    lacks = {
        name.removeprefix(_LACKS): table.column(name).to_numpy()
        for name in table.column_names
        if name.startswith(_LACKS)
    }
    plain = table.select([n for n in table.column_names if not n.startswith("__cepheid_")])
    batches = plain.to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=plain.schema)
    # What these events lack was judged when they came: a column that is not here is absent.
    return EventBatch(batch, lacks, open_schema=True), positions


def join_events(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables with notes one after the other; what was not noted in one of them is worked out."""
    if len({table.schema for table in tables}) <= 1:
        return pa.concat_tables(tables)
    noted = dict.fromkeys(n for t in tables for n in t.column_names if n.startswith(_LACKS))
    whole = []
    for table in tables:
        for note in noted:
            if note in table.column_names:
                continue
            name = note.removeprefix(_LACKS)
            flags = (
                table.column(name).is_null()
                if name in table.column_names
                else pa.chunked_array([np.ones(len(table), np.bool_)])
            )
            table = table.append_column(note, flags)
        whole.append(table)
    return pa.concat_tables(whole, promote_options="permissive")


def write_table(table: pa.Table, compression: str | None = None) -> bytes:
    """A table in Arrow IPC."""
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def read_table(data: bytes) -> pa.Table:
    """A table from Arrow IPC."""
    return pa.ipc.open_stream(data).read_all()


def pack(header: Mapping[str, Any], parts: Sequence[bytes]) -> bytes:
    """One self-contained value."""
    head = json.dumps(
        {"format": FORMAT, "parts": [len(p) for p in parts], **header}, sort_keys=True
    ).encode()
    body = len(head).to_bytes(8, "little") + head + b"".join(parts)
    return MAGIC + hashlib.blake2b(body, digest_size=16).digest() + body


def unpack(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Header and parts; anything damaged or foreign is refused by name."""
    if data[:8] != MAGIC:
        raise StateError.of(
            "not-a-snapshot",
            "these bytes are no snapshot of this program",
            help="pass what Detector.snapshot() returned",
        )
    digest, body = data[8:24], data[24:]
    if hashlib.blake2b(body, digest_size=16).digest() != digest:
        raise StateError.of(
            "damaged-snapshot",
            "the snapshot is damaged: its checksum does not fit",
            help="take an older snapshot and replay the events since",
        )
    size = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + size])
    if header["format"] != FORMAT:
        raise StateError.of(
            "snapshot-format",
            f"the snapshot has format {header['format']}; this version reads format {FORMAT}",
            help="restore it with the version that wrote it, or replay the events",
        )
    parts, at = [], 8 + size
    for length in header["parts"]:
        parts.append(body[at : at + length])
        at += length
    return header, parts
