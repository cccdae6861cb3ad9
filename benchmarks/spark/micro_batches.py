"""Runs a streaming query over files, one per micro-batch, and reads Spark's own record of each."""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from benchmarks.harness import Answer, Runs
from benchmarks.process_tree import tree_cpu_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMEOUT_SECONDS = 1_800


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What Spark says of one micro-batch that had rows."""

    rows: int
    seconds: float
    found: int
    state_rows: int
    state_bytes: int
    state_bytes_moved: int  # read and written by RocksDB


@dataclass(frozen=True, slots=True)
class Streamed:
    """A finished streaming query."""

    batches: tuple[MicroBatch, ...]
    cpu_seconds: float
    found: int  # also in micro-batches without rows, which timers cause


Pipeline = Callable[["DataFrame"], "DataFrame"]


def stream_files(spark: SparkSession, folder: Path, pipeline: Pipeline, scratch: Path) -> Streamed:
    """Run the pipeline over a folder's files, one per micro-batch, until none is left."""
    checkpoint = scratch / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    schema = spark.read.parquet(str(folder)).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    answer = pipeline(source.withWatermark("ts", "0 seconds"))
    observed = answer.observe("found", functions.count(functions.lit(1)).alias("rows"))
    cpu_start = tree_cpu_seconds()
    running = (
        observed.writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    deadline = time.monotonic() + TIMEOUT_SECONDS
    running.awaitTermination(TIMEOUT_SECONDS)
    if time.monotonic() > deadline:
        running.stop()
        msg = f"streaming query not finished after {TIMEOUT_SECONDS} s"
        raise TimeoutError(msg)
    cpu = tree_cpu_seconds() - cpu_start
    progress = [_micro_batch(json.loads(each.json)) for each in running.recentProgress]
    shutil.rmtree(checkpoint, ignore_errors=True)
    return Streamed(
        tuple(each for each in progress if each.rows), cpu, sum(each.found for each in progress)
    )


def _micro_batch(progress: dict[str, Any]) -> MicroBatch:
    state = progress["stateOperators"][0] if progress["stateOperators"] else {}
    metrics = state.get("customMetrics", {})
    moved = sum(metrics.get(f"rocksdbTotalBytes{way}", 0) for way in ("Read", "Written"))
    return MicroBatch(
        rows=progress["numInputRows"],
        seconds=progress["durationMs"].get("triggerExecution", 0) / 1000,
        found=int(progress.get("observedMetrics", {}).get("found", {}).get("rows", 0)),
        state_rows=state.get("numRowsTotal", 0),
        state_bytes=state.get("memoryUsedBytes", 0),
        state_bytes_moved=moved,
    )


def as_runs(name: str, streamed: list[Streamed], skip: int, matches: Answer) -> Runs:
    """One run per streaming query: the median micro-batch after those that warm up or fill state.

    CPU time is that of the whole query, shared evenly among its micro-batches.
    """
    counted = [each.batches[skip:] for each in streamed]
    return Runs(
        name=name,
        events=counted[0][0].rows,
        matches=matches,
        warmups=skip,
        wall_seconds=tuple(statistics.median(b.seconds for b in each) for each in counted),
        cpu_seconds=tuple(each.cpu_seconds / len(each.batches) for each in streamed),
    )
