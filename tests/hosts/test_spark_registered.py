"""Registered sources on Spark: the same events, and so the same matches, as in process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.hosts.spark import explain_spark
from cepheid.hosts.spark_types import spark_schema
from cepheid.model.errors import DataError
from tests.hosts.test_registered_events import CLOCKS, FRAUDS, OF_A, OF_B, RECORDS, wide

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::cepheid.model.errors.PerformanceWarning")


def rows_of(matches: Any) -> list[dict[str, Any]]:
    table = matches if isinstance(matches, pa.Table) else matches.toArrow()
    return sorted(table.to_pylist(), key=lambda match: match["match_id"])


def test_frames_by_source_and_in_one(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(RECORDS)
    here = rows_of(cepheid.detect(RECORDS, FRAUDS))
    assert len(here) == 1
    for events in (frame, {"t": frame}):
        assert rows_of(cepheid.detect(events, FRAUDS)) == here
    pq.write_table(RECORDS, tmp_path / "records.parquet")
    assert rows_of(cepheid.scan(spark, str(tmp_path), FRAUDS)) == here
    assert "become events first" in explain_spark(str(tmp_path), FRAUDS, spark=spark)
    with pytest.raises(DataError, match="have no column `value`"):
        cepheid.detect(frame.drop("value"), FRAUDS)
    with pytest.raises(DataError, match="no such source"):
        cepheid.detect({"u": frame}, FRAUDS)


def test_clock_errors_make_the_same_intervals(spark: SparkSession) -> None:
    one, other = wide(*OF_A), wide(*OF_B)
    here = rows_of(cepheid.detect(wide(*OF_A, *OF_B), CLOCKS))
    assert len(here) == 1
    frames = {name: spark.createDataFrame(table) for name, table in (("A", one), ("B", other))}
    assert rows_of(cepheid.detect(frames, CLOCKS)) == here
    assert rows_of(cepheid.detect(spark.createDataFrame(wide(*OF_A, *OF_B)), CLOCKS)) == here

    text = "register source t schema (v int) time at clock error 2 ms SELECT * FROM t WHERE t.v = 1"
    for zone in (None, "UTC"):
        at = pa.array([1_700_000_000_000_001], pa.timestamp("us", zone))
        table = pa.table({"v": pa.array([1]), "at": at})
        frame = spark.createDataFrame(table, spark_schema(table.schema))
        there = rows_of(cepheid.detect(frame, text))
        assert there == rows_of(cepheid.detect(table, text))


def test_a_stream_keeps_its_watermark_under_the_name_of_the_schema(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = "`account no` string, value long, booked_at timestamp"
    frame = spark.readStream.schema(columns).parquet(str(tmp_path))
    marked = frame.withWatermark("booked_at", "1 minute")
    assert "watermark: the stream's own" in explain_spark(marked, FRAUDS)
    assert "watermark: set here" in explain_spark(frame, FRAUDS)
    found = cepheid.detect(marked, FRAUDS)
    assert found.isStreaming
    assert found.columns == ["match_id", "query", "start", "end", "acc", "amount"]
