"""The events of a batch that a query sees while it is active."""

from __future__ import annotations

import numpy as np

from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.set_aside import event_times
from cepheid.model.options import Options
from cepheid.planner.active import Active


def seen_by(active: Active, events: EventBatch, options: Options) -> EventBatch:
    """The batch without events of other times."""
    if active.is_always:
        return events
    return seen_rows(active, events, np.zeros(events.batch.num_rows, np.int64), options)[0]


def seen_rows(
    active: Active, events: EventBatch, positions: np.ndarray, options: Options
) -> tuple[EventBatch, np.ndarray]:
    """The same, and the arrival numbers of what is left."""
    times, _ = event_times(events.batch, options)
    rows = np.flatnonzero((times >= active.since) & (times < active.until))
    if len(rows) == len(times):
        return events, positions
    return events.only(rows), positions[rows]
