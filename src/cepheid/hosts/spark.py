"""The one door to the Spark hosts; what lies behind it loads pyspark."""

from __future__ import annotations

from typing import Any

from cepheid.hosts.spark_batch import detect_batch
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery


def detect_spark(events: Any, query: CompiledQuery, options: Options) -> Any:
    """The matches in a Spark DataFrame: a lazy one for a batch, a streaming one for a stream."""
    if events.isStreaming:
        from cepheid.hosts.spark_streaming import detect_stream  # noqa: PLC0415 (loads more)

        return detect_stream(events, query, options)
    return detect_batch(events, query, options)
