"""A stage's whole state in one segment, where the events alone do not tell it.

An engine with running totals lets events go that its instances are made of (docs/decisions/0015).
So when it does, its live events are written anew with its instances in the notes of their table,
and where time stood. What comes later is appended as events, as ever: to go on is to take up the
instances, and to see those events again.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
import pyarrow as pa

from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.live_engine import LiveEvents
from cepheid.hosts.snapshot import join_events, with_notes, without_notes
from cepheid.hosts.stream_state import StageState

_NOTE = b"cepheid_beside"


def state_of(engine: LiveEvents) -> StageState:
    """Where an engine stands."""
    return StageState(engine.watermark, engine.latest, engine.position, engine.dead_until)


def whole_state(engine: LiveEvents) -> pa.Table:
    """The live events of an engine, with all that they do not tell."""
    events, positions = engine.live_table()
    noted = with_notes(events, positions, engine.absent_flags())
    parts = engine.state_beside_events()
    if not parts:
        return noted
    told = {
        "stage": astuple(state_of(engine)),
        "parts": [b64encode(part).decode() for part in parts],
    }
    return noted.replace_schema_metadata({_NOTE: json.dumps(told).encode()})


def go_on(
    engine: LiveEvents, tables: Sequence[pa.Table], stage: StageState, schema: pa.Schema
) -> None:
    """Bring an engine that has seen nothing to where its stage stands; nothing is delivered."""
    told = (tables[0].schema.metadata or {}).get(_NOTE) if tables else None
    if told is None:
        _restore(engine, tables, stage, schema)
        return
    known = json.loads(told)
    engine.expect_beside_events([b64decode(part) for part in known["parts"]])
    _restore(engine, tables[:1], StageState(*known["stage"]), schema)
    later = [table.replace_schema_metadata(None) for table in tables[1:]]
    engine.catch_up(without_notes(join_events(later))[0] if later else None, stage.watermark)
    engine.latest, engine.position = stage.latest, stage.position


def _restore(
    engine: LiveEvents, tables: Sequence[pa.Table], stage: StageState, schema: pa.Schema
) -> None:
    if tables:
        plain = [table.replace_schema_metadata(None) for table in tables]
        events, positions = without_notes(join_events(plain))
    else:
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        events, positions = EventBatch(empty), np.zeros(0, np.int64)
    engine.restore(
        events,
        positions,
        watermark=stage.watermark,
        latest=stage.latest,
        position=stage.position,
        horizon=stage.dead_until,
    )
