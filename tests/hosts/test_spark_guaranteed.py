"""Guaranteed detection on Spark: streams whose inputs are far apart, and histories."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.hosts.spark import explain_spark
from cepheid.model.errors import EnvironmentProblem, OptionError
from tests.hosts.test_guaranteed_detection import interleaved
from tests.hosts.test_spark_streaming import (
    GUARDED,
    SPARK_TICKS,
    TICKS,
    Files,
    Streamed,
    cut,
    in_process,
    random_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Row = dict[str, Any]
INPUTS = ("A", "B")
PAIR = "SELECT * FROM A x; B y WHERE FILTER(x.id = y.id)"


def ends(ts: int) -> list[Row]:
    """A last event of every input, so that nothing waits for one."""
    return [{"type": kind, "ts": ts, "id": 99, "v": 0} for kind in INPUTS]


def test_inputs_far_apart_on_a_stream_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rows = random_rows(3, 500)
    files = Files(tmp_path / "in", TICKS)
    workload = cepheid.Workload({"pair": PAIR}, policy="guaranteed", buckets=2)

    def run() -> Streamed:
        matches = cepheid.detect(files.stream(spark, SPARK_TICKS), workload)
        return Streamed(matches, tmp_path / "checkpoint", tmp_path / "out")

    arriving = interleaved(rows, random.Random(3), kinds="ABCDZ", at_once=25)
    first, second, third = cut(arriving, 180, 390)
    files.add(first)
    some = run()
    files.add(second)
    files.add(third)
    files.add([*ends(5_000), {"type": None, "ts": 1, "id": 1, "v": 1}])
    found = run()
    expected = in_process(PAIR, rows, TICKS)
    assert sum(expected.values()) > 20
    assert found.ids == expected
    assert some.metric("late") == found.metric("late") == found.dropped_by_spark == 0
    assert found.metric("quarantined") == 1


def test_a_silent_input_is_waited_for_up_to_the_time_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = Files(tmp_path / "in", TICKS)
    for part in ("A1 B3", "A12 A30", "B19 B20", "A31 B40"):
        files.add([{"type": e[0], "ts": int(e[1:]), "id": 1, "v": 0} for e in part.split()])
    matches = cepheid.detect(
        files.stream(spark, SPARK_TICKS), PAIR, policy="guaranteed", input_timeout=10, buckets=1
    )
    found = Streamed(matches, tmp_path / "checkpoint", tmp_path / "out")
    assert Counter((row["x"]["ts"], row["y"]["ts"]) for row in found.rows) == {
        (1, 3): 1,
        (12, 20): 1,
    }
    assert found.metric("late") == 1, "B at 19 lies more than 10 before A at 30"


def test_a_history_is_complete_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    rows = random_rows(5, 200)
    table = pa.Table.from_pylist(rows, schema=TICKS)
    pq.write_table(table, tmp_path / "events.parquet")
    frame = spark.createDataFrame(table)
    expected = in_process(GUARDED, rows, TICKS)
    assert expected
    assert in_process(GUARDED, rows, TICKS, policy="guaranteed") == expected
    for found in (
        cepheid.detect(frame, GUARDED, policy="guaranteed"),
        cepheid.scan(spark, str(tmp_path / "events.parquet"), GUARDED, policy="guaranteed"),
        cepheid.detect(frame, cepheid.Workload({"q": GUARDED}, policy="guaranteed")),
    ):
        ids = found.select("match_id").toArrow().column("match_id").to_pylist()
        assert Counter(ids) == expected
    with pytest.raises(OptionError) as refused:
        cepheid.detect(frame, GUARDED, policy="guaranteed", close_at_end=False)
    assert refused.value.code == "guaranteed-end"


@pytest.fixture
def latest_of_all(spark: SparkSession) -> Iterator[None]:
    name = "spark.sql.streaming.multipleWatermarkPolicy"
    spark.conf.set(name, "max")
    yield
    spark.conf.unset(name)


def test_what_a_stream_waits_for_is_told_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    stream = Files(tmp_path / "in", TICKS).stream(spark, SPARK_TICKS)
    told = explain_spark(stream, PAIR, policy="guaranteed", input_timeout=7)
    assert "the least of what the inputs A, B have reached, each waited for up to 7" in told
    marked = stream.selectExpr("type", "timestamp_millis(ts) ts", "id").withWatermark(
        "ts", "1 second"
    )
    with pytest.raises(OptionError, match="guaranteed"):
        cepheid.detect(marked, PAIR, policy="guaranteed")
    with pytest.raises(OptionError, match="come and go"):
        cepheid.detect(
            stream,
            cepheid.Workload({"q": PAIR}, policy="guaranteed"),
            control=cepheid.WorkloadControl(tmp_path / "orders"),
        )


@pytest.mark.usefixtures("latest_of_all")
def test_a_session_that_takes_the_latest_watermark_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = Files(tmp_path / "in", TICKS).stream(spark, SPARK_TICKS)
    with pytest.raises(EnvironmentProblem, match="least of all watermarks"):
        cepheid.detect(stream, PAIR, policy="guaranteed")
