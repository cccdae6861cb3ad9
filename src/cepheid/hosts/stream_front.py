"""The common front of several queries over one stream: lateness and bad rows are decided once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.set_aside import SetAside, event_times
from cepheid.kernels.relevance import is_in_order, select_any_order
from cepheid.model.options import Options

_BEGINNING = -(2**62)


class StreamFront:
    """Passes on the events that are in time; keeps the watermark and what was set aside."""

    def __init__(self, options: Options, lateness: int) -> None:
        """`lateness` in the time column's unit."""
        self.watermark = _BEGINNING
        self.latest = _BEGINNING
        self.position = 0
        self.set_aside = SetAside()
        self._options = options
        self._lateness = lateness

    def tell_of(self, options: Options) -> None:
        """Know the columns of the events, which registered sources may have named anew."""
        self._options = options

    @staticmethod
    def quarantine(events: EventBatch, options: Options, aside: SetAside) -> None:
        """Only set bad rows aside: nobody wants the others."""
        batch = events.batch
        times, bad = event_times(batch, options)
        unnamed = batch.column(options.type).is_null().to_numpy(zero_copy_only=False)
        if bad is not None or unnamed.any():
            codes = np.zeros(len(times), np.int64)
            aside.quarantine(batch, codes, times, bad, unnamed, 0, events.lacks, options)

    def accept(self, events: EventBatch) -> EventBatch:
        """The events of a batch that can be used."""
        batch = events.batch
        lacks = events.lacks
        times, bad = event_times(batch, self._options)
        names = batch.column(self._options.type)
        if bad is None and not names.null_count and self._is_in_order(times):
            accepted = EventBatch(batch, lacks, events.open_schema, self.position)
            self.position += batch.num_rows
            self.advance(int(times[-1]) - self._lateness)
            self.latest = max(self.latest, int(times[-1]))
            return accepted
        unnamed = names.is_null().to_numpy(zero_copy_only=False)
        codes = np.zeros(len(times), np.int64)
        arrived: np.ndarray | int = self.position
        if bad is not None or unnamed.any():
            batch, codes, times, arrived, lacks = self.set_aside.quarantine(
                batch, codes, times, bad, unnamed, self.position, lacks, self._options
            )
        self.position += events.batch.num_rows
        kept = np.empty(len(times) + 1, np.int64)
        late = np.empty(len(times) + 1, np.int64)
        count, late_count = self._choose(batch, times, kept, late)
        accepted = EventBatch(batch, lacks, events.open_schema, arrived)
        if late_count:
            self.set_aside.add_late(batch, late[:late_count])
            return accepted.only(kept[:count])
        return accepted

    def _is_in_order(self, times: np.ndarray) -> bool:
        """Whether all events are in time because none lies before the one before it."""
        return len(times) > 0 and bool(is_in_order(times, self.watermark))

    def _choose(
        self, batch: pa.RecordBatch, times: np.ndarray, kept: np.ndarray, late: np.ndarray
    ) -> tuple[int, int]:
        """Write the rows that are in time and those that are late; how many of each."""
        wanted, codes = np.ones(1, np.int64), np.zeros(len(times), np.int64)
        count, late_count, self.latest, self.watermark = select_any_order(
            codes, times, wanted, self.latest, self.watermark, self._lateness, kept, late
        )
        return count, late_count

    def advance(self, watermark: int) -> None:
        """Move the watermark on."""
        self.watermark = max(self.watermark, watermark)
        self.latest = max(self.latest, watermark)

    def state(self) -> dict[str, Any]:
        """What a snapshot keeps of the front."""
        return {
            "watermark": self.watermark,
            "latest": self.latest,
            "position": self.position,
            "late": self.set_aside.late.count,
            "quarantined": self.set_aside.quarantined.count,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.watermark, self.latest = state["watermark"], state["latest"]
        self.position = state["position"]
        self.set_aside.late.count = state["late"]
        self.set_aside.quarantined.count = state["quarantined"]
