"""The batch host on a DataFrame beside the same pipeline with a kernel that does nothing.

Timed: reading, filtering, shuffling by key, sorting, detecting and counting all matches. Both are
given the same three columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cepheid
from benchmarks.harness import Answer, Clock, Contender, interleave, speed_ratio
from benchmarks.options import Options
from benchmarks.report import Report
from benchmarks.spark.pipelines import batch_pipeline, count_to_nowhere, to_nowhere
from benchmarks.spark.scan import WINDOW, event_files
from benchmarks.workload import query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def measure_batch(spark: SparkSession, report: Report, options: Options) -> None:
    """Measure cepheid.detect on a batch DataFrame."""
    events = event_files(options)
    rows = events.parameters.events
    path = str(events.ordered(4 if options.quick else 20))
    compiled = cepheid.compile(query(WINDOW))

    def no_op() -> Answer:
        frame = spark.read.parquet(path).select("type", "ts", "attr1")
        to_nowhere(batch_pipeline(frame, "attr1"))
        return None

    def detect() -> Answer:
        frame = spark.read.parquet(path).select("type", "ts", "attr1")
        return count_to_nowhere(cepheid.detect(frame, compiled))

    runs = report.keep(
        "batch",
        interleave(
            [
                Contender("no-op kernel", rows, lambda: no_op),
                Contender("cepheid.detect", rows, lambda: detect),
            ],
            options.times(7, quick=1),
            warmups=1 if options.quick else 2,
            expected=events.matches(WINDOW),
            tree=True,
        ),
    )
    ratio = speed_ratio(runs["cepheid.detect"], runs["no-op kernel"], Clock.WALL)
    report.claim("batch / same pipeline with a no-op kernel", 0.8, ratio)
