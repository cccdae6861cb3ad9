"""The one door to the Spark hosts; what lies behind it loads pyspark."""

from __future__ import annotations

from typing import Any

from cepheid.hosts.spark_batch import detect_batch, plan_batch
from cepheid.hosts.spark_scan import plan_scan, scan_files
from cepheid.model.options import Options, make_options
from cepheid.planner.compiled_query import CompiledQuery, compile_text


def detect_spark(events: Any, query: CompiledQuery, options: Options) -> Any:
    """The matches in a Spark DataFrame: a lazy one for a batch, a streaming one for a stream."""
    if getattr(events, "isStreaming", False):
        from cepheid.hosts.spark_streaming import detect_stream  # noqa: PLC0415 (loads more)

        return detect_stream(events, query, options)
    return detect_batch(events, query, options)


def scan_spark(spark: Any, path: Any, query: CompiledQuery, options: Options) -> Any:
    """The matches in event files, found by tasks that each read a slice of time: lazy."""
    return scan_files(spark, path, query, options)


def explain_spark(
    events: Any, query: CompiledQuery | str, *, spark: Any = None, **options: Any
) -> str:
    """How a detection would run on Spark: on which host, divided how, filtered where, and why.

    `events` is a DataFrame, or the path of files together with the session `spark`. Planning may
    run the small jobs that the hosts run before a detection.
    """
    compiled = compile_text(query) if isinstance(query, str) else query
    chosen = make_options(options)
    if spark is not None:
        return plan_scan(spark, events, compiled, chosen).explain()
    if getattr(events, "isStreaming", False):
        from cepheid.hosts.spark_streaming import plan_stream  # noqa: PLC0415 (loads more)

        return plan_stream(events, compiled, chosen).explain()
    return plan_batch(events, compiled, chosen).explain()
