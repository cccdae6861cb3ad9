"""The stateful operator of a streaming query: Spark's side of `stream_bucket`.

Where a query starts Spark has the processor name its state variables, in a process of its own for
that alone. So this module loads little, and task and engines stay packed until the first rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

if TYPE_CHECKING:
    import pandas as pd

    from cepheid.hosts.spark_stream_output import StreamOutput
    from cepheid.hosts.spark_stream_steps import BucketSteps
    from cepheid.hosts.stream_running import Task

_DATA = StructType([StructField("data", BinaryType())])
_NUMBER = StructType([StructField("number", LongType())])


class DetectionProcessor(StatefulProcessor):
    """Detects in every bucket."""

    def __init__(self, task: Task[Any], output: StreamOutput) -> None:
        """`output` makes rows of what is found."""
        serializer = CloudPickleSerializer()  # type: ignore[no-untyped-call]
        self._packed: bytes = serializer.dumps((task, output))  # type: ignore[no-untyped-call]
        self._opened: BucketSteps | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state variables."""
        self._handle = handle
        self._header = handle.getValueState("header", _DATA)
        self._segments = handle.getMapState("segments", _NUMBER, _DATA)

    def handleInputRows(  # noqa: N802 (Spark's name; rows are pandas)
        self,
        key: Any,
        rows: Iterator[Any],  # of pandas DataFrames
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """The packs of one bucket."""
        yield from self._steps().take(key, rows, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """A bucket to which nothing came."""
        fired = expiredTimerInfo.getExpiryTimeInMs()
        yield from self._steps().expire(key, timerValues.getCurrentWatermarkInMs(), fired)

    def close(self) -> None:
        """Nothing is held open."""

    def _steps(self) -> BucketSteps:
        if self._opened is None:
            from cepheid.hosts.spark_stream_steps import BucketSteps  # noqa: PLC0415 (loads numba)

            self._opened = BucketSteps(self._packed, self._handle, self._header, self._segments)
        return self._opened
