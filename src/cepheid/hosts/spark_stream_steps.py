"""What the stateful operator of a stream does with rows and timers: a step of their bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState

from cepheid.hosts.spark_packing import open_pack
from cepheid.hosts.spark_stream_output import StreamOutput
from cepheid.hosts.stream_bucket import KEPT, Arrival, Bucket
from cepheid.hosts.stream_running import Task
from cepheid.hosts.worker_process import prepare_for_engines
from cepheid.model.errors import StateError


class SparkStore:
    """A bucket's state in Spark's state store; Spark sets the bucket before each call."""

    def __init__(self, header: ValueState, segments: MapState) -> None:
        """The two state variables of the operator."""
        self._header = header
        self._segments = segments

    def header(self) -> bytes | None:
        """The header, if there is one."""
        value = self._header.get()
        return None if value is None else bytes(value[0])

    def set_header(self, data: bytes) -> None:
        """Replace the header."""
        self._header.update((data,))

    def segment(self, number: int) -> bytes:
        """One segment."""
        value = self._segments.getValue((number,))
        if value is None:
            raise StateError.of(
                "missing-segment",
                f"the checkpoint's state lists segment {number} and does not have it",
                help="the checkpoint is damaged: start with a new one and replay the events",
            )
        return bytes(value[0])

    def set_segment(self, number: int, data: bytes) -> None:
        """Write a segment."""
        self._segments.updateValue((number,), (data,))

    def drop_segment(self, number: int) -> None:
        """Remove a segment."""
        self._segments.removeKey((number,))


class BucketSteps:
    """Detects in every bucket; rows in are packs (see spark_packing)."""

    def __init__(
        self, packed: bytes, handle: StatefulProcessorHandle, header: ValueState, segments: MapState
    ) -> None:
        """`packed` are the task and the output, as the processor brought them."""
        prepare_for_engines()
        serializer = CloudPickleSerializer()  # type: ignore[no-untyped-call]
        task, output = serializer.loads(packed)  # type: ignore[no-untyped-call]
        self._task: Task[Any] = task
        self._output: StreamOutput = output
        self._handle = handle
        self._store = SparkStore(header, segments)

    def take(self, key: Any, rows: Iterator[Any], watermark_ms: int) -> Iterator[pd.DataFrame]:
        """The packs of one bucket, in pandas DataFrames."""
        arrivals, orders = [], []
        for frame in rows:
            for task, number, is_copy, events in zip(
                *(frame[name] for name in ("task", "number", "is_copy", "events")), strict=True
            ):
                if number < 0:  # an order to a workload
                    orders.append(bytes(events).decode())
                else:
                    pack = open_pack(events, self._task.schema)
                    arrivals.append(Arrival(task, number, is_copy, pack))
        yield from self._step(key, arrivals, watermark_ms, None, orders)

    def expire(self, key: Any, watermark_ms: int, fired: int) -> Iterator[pd.DataFrame]:
        """A bucket to which nothing came has something that became final, or can be forgotten."""
        yield from self._step(key, (), watermark_ms, fired)

    def _step(
        self,
        key: Any,
        arrivals: Sequence[Arrival],
        watermark_ms: int,
        fired: int | None,
        orders: Sequence[str] = (),
    ) -> Iterator[pd.DataFrame]:
        bucket = Bucket(self._task, int(key[0]), self._store, KEPT)
        step = bucket.step(arrivals, watermark_ms, fired, orders)
        if step.timer_to_delete is not None:
            self._handle.deleteTimer(step.timer_to_delete)
        if step.timer_to_register is not None:
            self._handle.registerTimer(step.timer_to_register)
        yield from self._output.frames(step)
