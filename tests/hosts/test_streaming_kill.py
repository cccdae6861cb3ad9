"""kill -9 of a whole streaming query at random points: afterwards nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from tests.hosts.streaming_job import LATENESS, QUERY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = Path(__file__).with_name("streaming_job.py")
KILLS = int(os.environ.get("CEPHEID_KILLS", "5"))
BATCHES = 6 * KILLS
PATIENCE = 900
SCHEMA = pa.schema(
    [("event", pa.int64()), ("type", pa.string()), ("ts", pa.int64()), ("id", pa.int64())]
)


def write_events(folder: Path, batches: int, seed: int) -> pa.Table:
    """Events in as many files as micro-batches, out of order within the lateness; all of them."""
    r = random.Random(seed)
    folder.mkdir()
    rows = []
    for number in range(60 * batches):
        row = {"event": number, "type": r.choice("ABCDZ"), "ts": number, "id": r.randint(1, 6)}
        rows.append((number + r.randint(0, LATENESS), row))
    arriving = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    arriving.append({"event": -1, "type": "Z", "ts": 10**6, "id": 1})  # moves the watermark on
    for number in range(batches):
        part = arriving[60 * number : 60 * number + 60 if number + 1 < batches else None]
        path = folder / f"{number:04}.parquet"
        pq.write_table(pa.Table.from_pylist(part, schema=SCHEMA), path)
        os.utime(path, (number + 1, number + 1))
    return pa.Table.from_pylist([row for _, row in rows], schema=SCHEMA)


def expected_ids(events: pa.Table) -> Counter[str]:
    matches = cepheid.detect(events, QUERY, id="event")
    return Counter(matches.column("match_id").to_pylist())


def start(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(JOB), *(str(folder / n) for n in ("in", "checkpoint", "out"))]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [*command, *options], stdout=log, stderr=log, start_new_session=True, cwd=folder
        )


def kill_session(job: subprocess.Popen[bytes]) -> int:
    """SIGKILL to every process of the job's session: driver, JVM and Python workers."""
    killed = 0
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getsid(process.pid) == job.pid:
                os.kill(process.pid, signal.SIGKILL)
                killed += 1
    job.wait()
    return killed


def run_to_the_end(folder: Path, *options: str) -> None:
    job = start(folder, *options)
    try:
        assert job.wait(PATIENCE) == 0, (folder / "log").read_text()[-3_000:]
    finally:
        kill_session(job)


def batches_begun(folder: Path) -> int:
    return len(list((folder / "checkpoint" / "offsets").glob("[0-9]*")))


def wait_for_batches(folder: Path, count: int, job: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while batches_begun(folder) < count:
        assert job.poll() is None, (folder / "log").read_text()[-3_000:]
        assert time.monotonic() < deadline, f"{batches_begun(folder)} of {count} micro-batches"
        time.sleep(0.02)


def read_sink(spark: SparkSession, folder: Path) -> Counter[str]:
    """The sink through its commit log, as Spark reads it; a listing would show orphaned files."""
    rows = spark.read.parquet(str(folder / "out")).select("match_id").toArrow()
    return Counter(rows.column("match_id").to_pylist())


def points(r: random.Random) -> Sequence[tuple[int, float]]:
    """When to kill: after so many more micro-batches have begun, and that many seconds later."""
    return [(r.randint(1, 3), r.uniform(0.0, 1.5)) for _ in range(KILLS)]


@pytest.mark.slow
@pytest.mark.kill
def test_killed_spark_streams_lose_and_double_nothing(spark: SparkSession, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    events = write_events(tmp_path / "in", BATCHES, seed)
    for more, delay in points(random.Random(seed)):
        before = batches_begun(tmp_path)
        job = start(tmp_path, "--for-ever")
        try:
            wait_for_batches(tmp_path, min(before + more, BATCHES), job)
            time.sleep(delay)
        finally:
            assert kill_session(job) > 1, "the driver and its JVM at least"
    begun = batches_begun(tmp_path)
    assert begun < BATCHES, "the last kill must still find work to do"
    run_to_the_end(tmp_path, "--files-per-batch", "100")
    expected = expected_ids(events)
    assert sum(expected.values()) > 10 * KILLS
    assert read_sink(spark, tmp_path) == expected, f"seed {seed}"


@pytest.mark.slow
def test_a_stream_on_a_small_spark_cluster(spark: SparkSession, tmp_path: Path) -> None:
    events = write_events(tmp_path / "in", 3, 7)
    run_to_the_end(tmp_path, "--master", "local-cluster[2,1,1024]", "--partitions", "2")
    assert read_sink(spark, tmp_path) == expected_ids(events)
