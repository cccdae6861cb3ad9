"""The scan host: the same matches from files of every kind, and a sensible choice of host."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.hosts import scan_plan
from cepheid.hosts.spark import explain_spark
from cepheid.model.errors import DataError, PerformanceWarning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYED = "EVENT SEQ(A x, !(C n), B y) WHERE [id] AND x.v > 1 WITHIN 12"
KEYLESS = "EVENT SEQ(!(D n), A x, B y) WHERE x.v = n.v AND x.v < y.v WITHIN 6"


def random_events(rows: int = 900, seed: int = 1) -> pa.Table:
    r = np.random.default_rng(seed)
    return pa.table(
        {
            "type": pa.array(r.choice(list("ABCD"), rows)),
            "ts": pa.array(np.sort(r.integers(0, rows // 2, rows))),
            "id": pa.array(r.integers(0, 9, rows)),
            "v": pa.array(r.integers(0, 9, rows)),
            "s": pa.array([None if n % 3 == 0 else f"s{n}" for n in r.integers(0, 9, rows)]),
        }
    )


def write(folder: Path, events: pa.Table, files: int, suffix: str = ".parquet") -> str:
    folder.mkdir()
    size = -(-len(events) // files)
    for number in range(files):
        path = folder / f"part-{number:03}{suffix}"
        table = events.slice(number * size, size)
        if suffix == ".parquet":
            pq.write_table(table, path, row_group_size=50)
        elif suffix == ".csv":
            pa.csv.write_csv(table, path)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return str(folder)


def rows_of(matches: pa.Table) -> list[dict[str, Any]]:
    return sorted(matches.to_pylist(), key=lambda match: match["match_id"])


def assert_scanned(
    spark: SparkSession, path: str, events: pa.Table, query: str, **options: Any
) -> str:
    """The scan finds what is found in process; returns how it ran."""
    expected = rows_of(cepheid.detect(events, query, **options))
    assert len(expected) > 10
    for partitions in (None, 7):
        found = cepheid.scan(spark, path, query, partitions=partitions, **options).toArrow()
        assert rows_of(found) == expected, partitions
    return explain_spark(path, query, spark=spark, partitions=7, **options)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("query", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_files_in_order(spark: SparkSession, tmp_path: Path, suffix: str, query: str) -> None:
    events = random_events()
    path = write(tmp_path / "events", events, 20, suffix)
    said = assert_scanned(spark, path, events, query)
    assert "host: Spark scan" in said
    assert "7 slices" in said


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("query", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_files_in_no_order_go_through_the_batch_host(
    spark: SparkSession, tmp_path: Path, suffix: str, query: str
) -> None:
    events = random_events()
    shuffled = events.take(pa.array(np.random.default_rng(1).permutation(len(events))))
    path = write(tmp_path / "events", shuffled, 6, suffix)
    said = assert_scanned(spark, path, events, query)
    assert "not in order of time" in said
    assert "host: Spark batch" in said


def test_a_single_file_with_time_stamps_and_return(spark: SparkSession, tmp_path: Path) -> None:
    events = random_events()
    stamps = pa.array(events["ts"].to_numpy() * 1_000_000 + 1_700_000_000_000_000)
    events = events.set_column(1, "ts", stamps.cast(pa.timestamp("us", "UTC")))
    events = events.append_column("n", pa.array(range(len(events))))
    path = tmp_path / "events.parquet"
    pq.write_table(events, path, row_group_size=100)
    query = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 12 s RETURN Pair(x.id, y.ts AS at, sum(v) AS v)"
    said = assert_scanned(spark, str(path), events, query, id="n")
    assert "columns: type, ts, id, v, n" in said


def test_many_small_files(spark: SparkSession, tmp_path: Path) -> None:
    events = random_events()
    path = write(tmp_path / "events", events, 300)
    assert "300 parquet files" in assert_scanned(spark, path, events, KEYED)


def test_a_long_window_goes_by_key(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = random_events()
    path = write(tmp_path / "events", events, 6)
    long = "EVENT SEQ(A x, B y, C z) WHERE [id] AND x.v = y.v WITHIN 400"
    said = assert_scanned(spark, path, events, long)
    assert "the window is too long for slices, and there is a key" in said
    assert "divided by the key [id]" in said
    endless = long.replace(" WITHIN 400", "")
    assert "no WITHIN" in assert_scanned(spark, path, events, endless)
    monkeypatch.setattr(scan_plan, "ROWS_PER_SLICE", 100)
    keyless = "EVENT SEQ(A x, B y) WHERE x.v + y.v = 3 AND x.id < y.id WITHIN 400"
    with pytest.warns(PerformanceWarning, match="window is too long"):
        found = cepheid.scan(spark, path, keyless).toArrow()
    assert rows_of(found) == rows_of(cepheid.detect(events, keyless))


def test_a_file_that_changes_before_the_scan_runs(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "events", random_events(), 4)
    matches = cepheid.scan(spark, path, KEYED)
    assert matches.count() > 10
    os.utime(tmp_path / "events" / "part-002.parquet", ns=(1, 1))
    with pytest.raises(Exception, match="has changed since the scan was planned"):
        matches.count()
    assert cepheid.scan(spark, path, KEYED).count() > 10


def test_events_that_are_not_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no-events"):
        cepheid.scan(spark, str(tmp_path / "nowhere"), KEYED)
    path = write(tmp_path / "events", random_events().slice(0, 0), 2)
    matches = cepheid.scan(spark, path, KEYED)
    assert matches.count() == 0
    assert matches.columns == ["match_id", "query", "start", "end", "x", "y"]
    with pytest.raises(DataError, match="unknown-column"):
        cepheid.scan(spark, path, KEYED.replace("x.v", "x.pirce"))


def test_time_stops_with_the_last_event_if_told(spark: SparkSession, tmp_path: Path) -> None:
    events = random_events()
    path = write(tmp_path / "events", events, 6)
    query = "EVENT SEQ(A x, !(B n)) WHERE [id] WITHIN 40"
    assert_scanned(spark, path, events, query, close_at_end=False)
    assert_scanned(spark, path, events, query)


def test_folders_that_are_values_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    events = random_events()
    for day in (0, 1):
        folder = tmp_path / "events" / f"day={day}"
        folder.parent.mkdir(exist_ok=True)
        write(folder, events.slice(day * 450, 450), 2)
    path = str(tmp_path / "events")
    days = pa.array([0] * 450 + [1] * 450, pa.int32())
    said = assert_scanned(spark, path, events.append_column("day", days), KEYED)
    assert "the names of its folders hold values" in said


def test_what_spark_wrote_is_scanned(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's files have its own names, summary files beside them, and old time stamps."""
    from pyspark.sql import functions as sf

    events = random_events()
    frame = spark.createDataFrame(events).withColumn("ts", sf.timestamp_seconds("ts"))
    path = str(tmp_path / "events")
    kind = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(kind)
    spark.conf.set(kind, "INT96")
    try:
        frame.repartitionByRange(3, "ts").sortWithinPartitions("ts").write.parquet(path)
    finally:
        spark.conf.set(kind, before)
    stamped = frame.toArrow()
    query = KEYED.replace("WITHIN 12", "WITHIN 12 s")
    assert "host: Spark scan" in assert_scanned(spark, path, stamped, query)
