"""The streaming host beside transformWithStateInPandas with a processor that does nothing.

Timed: Spark's own time of each micro-batch (triggerExecution), from files, one per micro-batch,
until none is left; the first micro-batches of each query warm up. Every query starts with an empty
checkpoint. Queries take turns.
"""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import cepheid
from benchmarks.harness import Clock, Ratio, WrongAnswerError, speed_ratio, time_ratio
from benchmarks.options import Options
from benchmarks.report import Report
from benchmarks.spark.event_files import EventFiles, with_timestamps
from benchmarks.spark.micro_batches import Pipeline, Streamed, as_runs, stream_files
from benchmarks.spark.pipelines import streaming_pipeline
from benchmarks.workload import SEED, query
from cepheid.generate import StreamParameters
from cepheid.hosts.stream_routing import DEFAULT_BUCKETS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOW = 10_000  # ticks, which the files write as milliseconds
LIVE_STATE_BYTES = 100 << 20
CHANGE = 0.01  # of the live state, per micro-batch


def detection(window: int) -> Pipeline:
    """What cepheid does with a stream."""
    compiled = cepheid.compile(f"{query(window)} ms")

    def detect(frame: DataFrame) -> DataFrame:
        matches: DataFrame = cepheid.detect(frame, compiled)
        return matches

    return detect


def no_operation(time_mode: str) -> Pipeline:
    """What a stateful operator costs at least."""
    return partial(streaming_pipeline, key="attr1", buckets=DEFAULT_BUCKETS, time_mode=time_mode)


def require_matches(streamed: Streamed, expected: int, what: str) -> None:
    """Raise WrongAnswerError unless the stream found what NumPy finds in the same rows."""
    if streamed.found != expected:
        msg = f"{what} found {streamed.found} matches, NumPy {expected}"
        raise WrongAnswerError(msg)


def measure_streaming(spark: SparkSession, report: Report, options: Options) -> None:
    """Measure throughput, flatness of state and the price of a large state."""
    parts = {
        "streaming throughput": throughput,
        "streaming flat state": flat_state,
        "streaming large state": large_state,
    }
    for name, part in parts.items():
        try:
            part(spark, report, options)
        except Exception as error:  # the other parts are still worth their time
            report.failed(name, error)


def throughput(spark: SparkSession, report: Report, options: Options) -> None:
    """500,000 rows per micro-batch, in turns with the operator that does nothing."""
    rows, batches, skip = (10_000, 3, 1) if options.quick else (500_000, 12, 3)
    events = stream_of(rows * batches, 1_000, options)
    folder = events.micro_batches([rows] * batches)
    expected = events.matches(WINDOW)
    contenders = {
        "no-op processor": no_operation("EventTime"),
        "no-op processor, no timers": no_operation("None"),
        "cepheid.detect": detection(WINDOW),
    }
    streamed: dict[str, list[Streamed]] = {name: [] for name in contenders}
    for _ in range(options.times(3, quick=1)):
        for name, pipeline in contenders.items():
            streamed[name].append(stream_files(spark, folder, pipeline, options.data))
    for each in streamed["cepheid.detect"]:
        require_matches(each, expected, "cepheid.detect")
    runs = {
        name: as_runs(name, each, skip, expected if name == "cepheid.detect" else None)
        for name, each in streamed.items()
    }
    report.keep("streaming, per micro-batch", runs)
    report.notes["streaming, seconds of each micro-batch"] = {
        name: [[batch.seconds for batch in each.batches] for each in turns]
        for name, turns in streamed.items()
    }
    mine = runs["cepheid.detect"]
    ratio = speed_ratio(mine, runs["no-op processor"], Clock.WALL)
    report.claim("streaming / no-op stateful processor", 0.7, ratio)
    bare = speed_ratio(mine, runs["no-op processor, no timers"], Clock.WALL)
    report.notes["streaming, speed / no-op processor without timers"] = round(bare.value, 3)


def flat_state(spark: SparkSession, report: Report, options: Options) -> None:
    """50 micro-batches of a steady stream: nothing may grow once the window is full."""
    rows, batches = (5_000, 6) if options.quick else (100_000, 50)
    events = stream_of(rows * batches, 1_000, options)
    folder = events.micro_batches([rows] * batches)
    streamed = stream_files(spark, folder, detection(WINDOW), options.data)
    require_matches(streamed, events.matches(WINDOW), "cepheid.detect")
    fifth = max(1, batches // 5)
    series: dict[str, list[float]] = {
        "state rows": [each.state_rows for each in streamed.batches],
        "state bytes moved": [each.state_bytes_moved for each in streamed.batches],
        "state store memory": [each.state_bytes for each in streamed.batches],
        "seconds": [each.seconds for each in streamed.batches],
    }
    report.notes["streaming, flat state, by micro-batch"] = series
    # Spark's own memory figure holds RocksDB's caches, which fill for a while: it is reported only.
    for name, limit in (("state rows", 1.1), ("state bytes moved", 1.2), ("seconds", 1.2)):
        early = statistics.median(series[name][fifth : 2 * fifth])
        late = statistics.median(series[name][-fifth:])
        growth = late / early if early else float(late > 0) + 1
        text = f"streaming, {name}: last fifth of {batches} micro-batches / second fifth"
        report.claim(text, limit, Ratio(growth, growth, growth), at_most=True)


def large_state(spark: SparkSession, report: Report, options: Options) -> None:
    """100 MB of live state of which each micro-batch changes 1%, beside the same with none."""
    target = LIVE_STATE_BYTES // (100 if options.quick else 1)
    live_rows = rows_for_state(target)
    change = max(1, int(live_rows * CHANGE))
    batches, skip = (4, 1) if options.quick else (20, 4)
    fill = [change * 10] * 10  # one window of rows, in a few micro-batches
    window = sum(fill)
    after = [change] * batches
    full = stream_of(window + sum(after), window, options, types=3)
    empty = stream_of(sum(after), window, options, types=3)
    full_files, empty_files = full.micro_batches(fill + after), empty.micro_batches(after)
    state = state_bytes(full, window)
    report.notes["streaming, large state: bytes of the snapshot"] = state
    if state < 0.9 * target:
        msg = f"live state is {state} bytes, {target} wanted"
        raise WrongAnswerError(msg)
    streamed: dict[str, list[Streamed]] = {"empty state": [], "large state": []}
    for _ in range(options.times(3, quick=1)):
        for name, events, folder in (
            ("empty state", empty, empty_files),
            ("large state", full, full_files),
        ):
            done = stream_files(spark, folder, detection(window), options.data)
            require_matches(done, events.matches(window), name)
            streamed[name].append(done)
    runs = {
        "empty state": as_runs("empty state", streamed["empty state"], skip, empty.matches(window)),
        "large state": as_runs(
            "large state", streamed["large state"], len(fill) + skip, full.matches(window)
        ),
    }
    report.keep("streaming, large state, per micro-batch", runs)
    ratio = time_ratio(runs["large state"], runs["empty state"], Clock.WALL)
    size = f"{state / (1 << 20):.0f} MB"
    text = f"streaming, micro-batch with {size} of live state / empty state"
    report.claim(text, 1.5, ratio, at_most=True)


def stream_of(rows: int, domain: int, options: Options, *, types: int = 20) -> EventFiles:
    """A steady stream with one key and two further attributes."""
    parameters = StreamParameters(
        events=rows, types=types, attributes=3, domain_sizes=(domain, 100, 100), seed=SEED
    )
    return EventFiles(parameters, Path(options.data))


def rows_for_state(target: int) -> int:
    """How many rows a window needs for so many bytes of state, by a sample's snapshot."""
    sample = 100_000
    parameters = StreamParameters(
        events=sample, types=3, attributes=3, domain_sizes=(sample, 100, 100), seed=SEED
    )
    size = state_bytes(EventFiles(parameters, Path()), sample)
    return int(target / size * sample)


def state_bytes(events: EventFiles, window: int) -> int:
    """The size of a detector's snapshot after the first window's rows."""
    detector = cepheid.Detector(cepheid.compile(f"{query(window)} ms"))
    fed = 0
    for batch in events.batches():
        if fed >= window:
            break
        for part in with_timestamps(pa.Table.from_batches([batch])).to_batches():
            detector.feed(part)
        fed += batch.num_rows
    return len(detector.snapshot())
