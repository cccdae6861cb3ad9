"""How far the stream has come: the clock that all nodes share, and the statistics of its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.set_aside import event_times
from cepheid.model.options import Options
from cepheid.planner.prepare import lateness_of, time_domain
from cepheid.statistics.collect import StatisticsCollector
from cepheid.statistics.event_statistics import EventStatistics, from_json, to_json

_BEGINNING = -(2**62)
_GROWTH = 10
"""The optimiser gets new statistics when so many times as many events have been seen."""


class StreamProgress:
    """What the manager itself learns from every batch; nodes see only those they need."""

    def __init__(self, options: Options) -> None:
        """Nothing seen yet."""
        self._options = options
        self.latest: int | None = None
        self.watermark = _BEGINNING
        self.events = 0
        self.late = 0
        self.unusable = 0
        self._collector = StatisticsCollector(options)
        self._collected = 0
        self._before: EventStatistics | None = None
        self._told: str | None = None
        self._told_at = 0

    def see(self, batch: pa.RecordBatch) -> frozenset[str]:
        """Take a batch; returns the types of its events.

        The watermark is that of a workload which sees all events: what is late depends on the order
        of arrival alone, not on which node got which batch.
        """
        options = self._options
        self.events += batch.num_rows
        types = batch.column(options.type)
        times, bad = event_times(batch, options)
        usable = types.is_valid().to_numpy(zero_copy_only=False)
        if bad is not None:
            usable = usable & ~bad
        if not usable.all():
            self.unusable += int((~usable).sum())
            times = times[usable]
        if len(times):
            lateness = lateness_of(options, time_domain(batch.schema, options))
            before = _BEGINNING if self.latest is None else self.latest
            latest = np.maximum.accumulate(np.concatenate([[before], times]))
            passed = np.maximum(latest[:-1] - lateness, self.watermark)
            self.late += int((times < passed).sum())
            self.latest = int(latest[-1])
            self.watermark = max(self.watermark, self.latest - lateness)
        return frozenset(pc.unique(types).drop_null().cast(pa.string()).to_pylist())

    def passes(self, time: int, schema: pa.Schema) -> int:
        """The time of an event after which none from before `time` counts any more."""
        return time + lateness_of(self._options, time_domain(schema, self._options))

    def collect(self, batch: pa.RecordBatch) -> None:
        """Take a batch into the statistics; that takes time, and nobody waits for it."""
        self._collector.add(batch)
        self._collected += batch.num_rows

    def statistics(self) -> EventStatistics | None:
        """What is known of the events so far; from before a restart while that is more."""
        if self._before is not None and self._collected * _GROWTH < self._before.events:
            return self._before
        return self._collector.finish() if self._collected else self._before

    def news(self) -> str | None:
        """Statistics for the optimiser, as JSON; the same text until much more has been seen."""
        if self.events and (self._told is None or self.events >= _GROWTH * self._told_at):
            known = self.statistics()
            self._told = None if known is None else to_json(known)
            self._told_at = self.events
        return self._told

    def mark(self) -> tuple[int | None, int, int, int, int]:
        """Where the stream stands, for `go_back`."""
        return self.latest, self.watermark, self.events, self.late, self.unusable

    def go_back(self, mark: tuple[int | None, int, int, int, int]) -> None:
        """A batch was not done after all; the statistics may well have seen it."""
        self.latest, self.watermark, self.events, self.late, self.unusable = mark

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        known = self.statistics()
        return {
            "latest": self.latest,
            "watermark": self.watermark,
            "events": self.events,
            "late": self.late,
            "unusable": self.unusable,
            "statistics": None if known is None else to_json(known),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.latest = state["latest"]
        self.watermark = state["watermark"]
        self.events = state["events"]
        self.late = state["late"]
        self.unusable = state["unusable"]
        self._before = None if state["statistics"] is None else from_json(state["statistics"])
