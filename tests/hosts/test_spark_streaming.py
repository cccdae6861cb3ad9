"""The streaming host on a Spark session: the answers of one process, for any cut of the stream."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.hosts.spark import explain_spark
from cepheid.hosts.spark_stream_output import FlatOutput
from cepheid.hosts.spark_types import plain_schema
from cepheid.model.errors import OptionError, PerformanceWarning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Row = dict[str, Any]
TICKS = pa.schema(
    [("type", pa.string()), ("ts", pa.int64()), ("id", pa.int64()), ("v", pa.int64())]
)
SPARK_TICKS = "type string, ts long, id long, v long"


class Files:
    """A folder that files with events arrive in, in order."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder = folder
        self.schema = schema
        self.count = 0
        folder.mkdir()

    def add(self, rows: Sequence[Row]) -> None:
        table = pa.Table.from_pylist(list(rows), schema=self.schema)
        hidden = self.folder / f".{self.count}"
        pq.write_table(table, hidden)
        self.count += 1
        os.utime(hidden, (self.count, self.count))  # the order in which Spark reads them
        hidden.rename(self.folder / f"{self.count}.parquet")

    def stream(self, spark: SparkSession, schema: str) -> DataFrame:
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))


class Streamed:
    """The rows and the progress of a query that ran until no file was left."""

    def __init__(self, matches: DataFrame, checkpoint: Path, sink: Path) -> None:
        running = (
            matches.writeStream.format("parquet")
            .option("checkpointLocation", str(checkpoint))
            .option("path", str(sink))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert running.awaitTermination(240), "the streaming query did not finish"
        finally:
            running.stop()
        self.progress = [json.loads(each.json) for each in running.recentProgress]
        self.rows = matches.sparkSession.read.parquet(str(sink)).toArrow().to_pylist()

    @property
    def ids(self) -> Counter[str]:
        return Counter(row["match_id"] for row in self.rows if row["match_id"] is not None)

    def metric(self, name: str) -> int:
        found = 0
        for each in self.progress:
            for metric, values in each.get("observedMetrics", {}).items():
                assert metric.startswith("cepheid_")
                found += values.get(name, 0)
        return found

    @property
    def dropped_by_spark(self) -> int:
        return sum(
            o["numRowsDroppedByWatermark"] for p in self.progress for o in p["stateOperators"]
        )


def in_process(query: str, rows: Sequence[Row], schema: pa.Schema, **options: Any) -> Counter[str]:
    table = pa.Table.from_pylist(list(rows), schema=schema)
    return Counter(cepheid.detect(table, query, **options).column("match_id").to_pylist())


def random_rows(seed: int, count: int = 400, nulls: float = 0.0) -> list[Row]:
    r = random.Random(seed)
    times = sorted(r.randint(1, count) for _ in range(count))
    return [
        {
            "type": r.choice("ABCDZ"),
            "ts": time,
            "id": None if r.random() < nulls else r.randint(1, 12),
            "v": r.randint(0, 4),
        }
        for time in times
    ]


def arriving(rows: Sequence[Row], lateness: int, seed: int) -> list[Row]:
    """The rows out of order, none by more than the lateness."""
    r = random.Random(seed)
    delays = [(row["ts"] + r.randint(0, lateness), r.random()) for row in rows]
    return [row for _, row in sorted(zip(delays, rows, strict=True), key=lambda pair: pair[0])]


def cut(rows: Sequence[Row], *edges: int) -> list[Sequence[Row]]:
    return [rows[a:b] for a, b in zip((0, *edges), (*edges, len(rows)), strict=True)]


@contextmanager
def time_zone(spark: SparkSession, name: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


THREE = "EVENT SEQ(A x, B y, C z) WHERE [id] AND x.v <= z.v WITHIN 60"
GUARDED = "EVENT SEQ(A x, !(B n), C z, !(D w)) WHERE [id] WITHIN 40"


def test_small_ticks_out_of_order_and_null_keys(spark: SparkSession, tmp_path: Path) -> None:
    rows = random_rows(1, 500, nulls=0.02)
    files = Files(tmp_path / "in", TICKS)
    for part in cut(arriving(rows, 5, 1), 10, 150, 300):
        files.add(part)
    matches = cepheid.detect(files.stream(spark, SPARK_TICKS), THREE, lateness=5, buckets=4)
    found = Streamed(matches, tmp_path / "checkpoint", tmp_path / "out")
    expected = in_process(THREE, rows, TICKS)
    assert sum(expected.values()) > 50
    assert found.ids == expected
    assert found.metric("matched") == sum(expected.values())
    assert found.metric("late") == found.dropped_by_spark == 0


def test_before_1970_in_another_time_zone_with_silent_keys(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Negated ends leave by timers: only an event of no interest moves the watermark at the end."""
    start = datetime(1969, 12, 31, 23, 58, tzinfo=UTC)
    schema = TICKS.set(1, pa.field("ts", pa.timestamp("us", "UTC")))
    query = GUARDED.replace("40", "40 s")
    rows = [
        {**row, "ts": start + timedelta(seconds=row["ts"], microseconds=7)}
        for row in random_rows(2, nulls=0.02)
    ]
    files = Files(tmp_path / "in", schema)
    for part in cut(rows, 90, 200, 201):
        files.add(part)
    files.add([{"type": "HEARTBEAT", "ts": start + timedelta(hours=1), "id": 1, "v": 0}])
    with time_zone(spark, "America/New_York"):
        events = files.stream(spark, SPARK_TICKS.replace("ts long", "ts timestamp"))
        matches = cepheid.detect(events, query, buckets=4, tick="1 s")
        found = Streamed(matches, tmp_path / "checkpoint", tmp_path / "out")
    expected = in_process(query, rows, schema, tick="1 s")
    assert sum(expected.values()) > 20
    assert found.ids == expected
    assert found.dropped_by_spark == 0


def test_late_and_bad_rows_are_delivered_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(tmp_path / "in", TICKS)
    files.add([{"type": "A", "ts": 100, "id": 1}, {"type": "A", "ts": 96, "id": 2}])
    files.add(
        [
            {"type": "B", "ts": 94, "id": 1, "v": 1},  # late by one tick
            {"type": "A", "ts": 95, "id": 3, "v": 2},  # at the watermark: in time
            {"type": "C", "ts": 97, "id": 2, "v": 3},
            {"type": "C", "ts": 99, "id": 3, "v": 4},
            {"type": "Z", "ts": 1, "id": 3, "v": 5},  # late, but of no interest
            {"type": None, "ts": 99, "id": 3, "v": 6},
            {"type": "A", "ts": None, "id": 3, "v": 7},
            {"type": "A", "ts": 2**62, "id": 3, "v": 8},
        ]
    )
    files.add([{"type": "Z", "ts": 500, "id": 1, "v": 0}])
    query = "EVENT SEQ(A x, !(B n), C z) WHERE [id] WITHIN 50"
    events = files.stream(spark, SPARK_TICKS)
    matches = cepheid.detect(events, query, lateness=5, late_output=True, buckets=4)
    found = Streamed(matches, tmp_path / "checkpoint", tmp_path / "out")
    pairs = [(r["x"]["ts"], r["z"]["ts"]) for r in found.rows if r["match_id"] is not None]
    assert sorted(pairs) == [(95, 99), (96, 97)]
    aside = {r["late"]["v"]: r["reason"] for r in found.rows if r["match_id"] is None}
    assert aside == {
        1: "before the watermark",
        6: "`type` is null",
        7: "`ts` is null or out of range",
        8: "`ts` is null or out of range",
    }
    assert (found.metric("late"), found.metric("quarantined")) == (1, 3)


def test_a_watermark_of_the_user_is_used_and_ties_with_it_are_in_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = TICKS.set(1, pa.field("ts", pa.timestamp("us", "UTC")))
    at = datetime(2026, 3, 1, tzinfo=UTC)

    def event(kind: str, seconds: float, key: int) -> Row:
        return {"type": kind, "ts": at + timedelta(seconds=seconds), "id": key, "v": 0}

    files = Files(tmp_path / "in", schema)
    files.add([event("A", 1, 1), event("A", 20.0005, 2)])
    # The watermark is now 10 s, its half millisecond lost; Spark itself would drop rows at 10 s.
    files.add([event("A", 10, 3), event("C", 10.0005, 3), event("C", 9.999999, 1)])
    files.add([event("C", 21, 2), event("HEARTBEAT", 100, 0)])
    files.add([event("HEARTBEAT", 200, 0)])
    query = "EVENT SEQ(A x, !(B n), C z) WHERE [id] WITHIN 1 min"
    events = files.stream(spark, SPARK_TICKS.replace("ts long", "ts timestamp"))
    matches = cepheid.detect(events.withWatermark("ts", "10 seconds"), query, buckets=2)
    found = Streamed(matches, tmp_path / "checkpoint", tmp_path / "out")
    assert sorted(row["x"]["id"] for row in found.rows) == [2, 3]
    assert found.metric("late") == 1


def test_a_restart_on_the_checkpoint_loses_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = random_rows(3, 600)
    files = Files(tmp_path / "in", TICKS)
    first, second, third = cut(rows, 250, 420)
    files.add(first)
    checkpoint, sink = tmp_path / "checkpoint", tmp_path / "out"

    def run(query: str = GUARDED) -> Streamed:
        events = files.stream(spark, SPARK_TICKS)
        return Streamed(cepheid.detect(events, query, buckets=4), checkpoint, sink)

    some = run()
    files.add(second)
    more = run()
    files.add(third)
    files.add([{"type": "Z", "ts": 5_000, "id": 1, "v": 0}])
    found = run()
    expected = in_process(GUARDED, rows, TICKS)
    assert 0 < sum(some.ids.values()) < sum(more.ids.values()) < sum(expected.values())
    assert found.ids == expected
    files.add([{"type": "A", "ts": 6_000, "id": i, "v": 0} for i in range(9)])
    with pytest.raises(Exception, match="belongs to another query"):
        run("EVENT SEQ(A x, C z) WHERE [id] WITHIN 40")


PROGRAM = """
QUERY pairs EVENT SEQ(A x, B y) WHERE [id] WITHIN 90 RETURN Pair(x.id, y.v)
EVENT SEQ(Pair p, !(D n), C z) WHERE [id] WITHIN 90 RETURN p.id, p.v, z.v AS last
"""


def test_a_program_of_two_stages_in_buckets(spark: SparkSession, tmp_path: Path) -> None:
    """The types say that no event lacks its key, which two stages need; a null matches nothing."""
    rows = random_rows(5, 400, nulls=0.02)
    types = {name: ["id", "v"] for name in "ABCD"}
    files = Files(tmp_path / "in", TICKS)
    for part in cut(rows, 130, 131, 300):
        files.add(part)
    files.add([{"type": "Z", "ts": 5_000, "id": 1, "v": 0}])
    events = files.stream(spark, SPARK_TICKS)
    assert "4 buckets" in explain_spark(events, PROGRAM, buckets=4, types=types)
    matches = cepheid.detect(events, PROGRAM, buckets=4, types=types)
    found = Streamed(matches, tmp_path / "checkpoint", tmp_path / "out")
    expected = in_process(PROGRAM, rows, TICKS, types=types)
    assert sum(expected.values()) > 20
    assert found.ids == expected
    relevant = [row for row in rows if row["type"] != "Z"]
    assert found.metric("null_keys") == sum(row["id"] is None for row in relevant)


def test_columns_of_every_kind_come_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("type", pa.string()),
            ("at.time", pa.timestamp("us")),
            ("key", pa.string()),
            ("large", pa.int64()),
            ("price", pa.decimal128(12, 2)),
            ("day", pa.date32()),
            ("tags", pa.list_(pa.string())),
            ("more", pa.struct([("a", pa.int32()), ("when", pa.timestamp("us", "UTC"))])),
        ]
    )
    r = random.Random(6)
    start = datetime(2026, 3, 29)  # without zone, across a change of the clocks
    rows = [
        {
            "type": r.choice("AB"),
            "at.time": start + timedelta(minutes=5 * number, microseconds=number),
            "key": r.choice(("k", "é", "")),
            "large": r.choice((None, 2**53 + 1, -(2**62))),
            "price": r.choice((None, Decimal("1234567890.12"))),
            "day": date(2026, 3, 29),
            "tags": r.choice((None, [], ["a", None])),
            "more": r.choice((None, {"a": None, "when": datetime(1900, 1, 1, tzinfo=UTC)})),
        }
        for number in range(60)
    ]
    query = "EVENT SEQ(A x, B y) WHERE [key] WITHIN 30 min"
    files = Files(tmp_path / "in", schema)
    for part in cut(rows, 25):
        files.add(part)
    with time_zone(spark, "Europe/Paris"):
        matches = cepheid.detect(
            files.stream(
                spark,
                "type string, `at.time` timestamp_ntz, key string, large long, price decimal(12,2),"
                "day date, tags array<string>, more struct<a: int, when: timestamp>",
            ),
            query,
            time="at.time",
            buckets=3,
        )
        found = Streamed(matches, tmp_path / "checkpoint", tmp_path / "out")
    table = cepheid.detect(pa.Table.from_pylist(rows, schema=schema), query, time="at.time")
    assert len(table) > 20
    assert by_id(found.rows) == by_id(table.to_pylist())


def test_plain_columns_come_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    """Without a step in Python; of a union, one side is not bound."""
    schema = pa.schema(
        [
            ("type", pa.string()),
            ("ts", pa.timestamp("us", "UTC")),
            ("key", pa.int32()),
            ("a.large", pa.int64()),
            ("small", pa.int8()),
            ("part", pa.float64()),
            ("text", pa.string()),
            ("flag", pa.bool_()),
            ("seen", pa.timestamp("us", "UTC")),
        ]
    )
    r = random.Random(7)
    start = datetime(2026, 3, 29, tzinfo=UTC)
    rows = [
        {
            "type": r.choice("ABC"),
            "ts": start + timedelta(minutes=number, microseconds=number),
            "key": r.randint(0, 2),
            "a.large": r.choice((None, 2**53 + 1, -(2**62))),
            "small": r.choice((None, -128, 127)),
            "part": r.choice((None, 0.1, -0.0, float("inf"))),
            "text": r.choice((None, "", "é")),
            "flag": r.choice((None, True, False)),
            "seen": r.choice((None, datetime(1900, 1, 1, tzinfo=UTC))),
        }
        for number in range(90)
    ]
    rows[-1]["type"] = "C"  # the watermark passes all others
    query = "SELECT * FROM A x | B y"
    files = Files(tmp_path / "in", schema)
    for part in cut(rows, 40):
        files.add(part)
    events = files.stream(
        spark,
        "type string, ts timestamp, key int, `a.large` long, small byte, part double, text string,"
        "flag boolean, seen timestamp",
    )
    assert FlatOutput.suits(plain_schema(cepheid.Detector(query).feed(rows).form.schema))
    with time_zone(spark, "America/New_York"):
        with pytest.warns(PerformanceWarning, match="one task"):
            matches = cepheid.detect(events, query)
        found = Streamed(matches, tmp_path / "checkpoint", tmp_path / "out")
    table = cepheid.detect(pa.Table.from_pylist(rows, schema=schema), query)
    assert len({row["y"] is None for row in table.to_pylist()}) == 2
    assert len(table) > 20
    assert by_id(found.rows) == by_id(table.to_pylist())


def by_id(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["match_id"])


def test_without_a_key_the_stream_goes_through_one_task(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = random_rows(4, 120)
    files = Files(tmp_path / "in", TICKS)
    for part in cut(rows, 60):
        files.add(part)
    query = "EVENT SEQ(A x, B y) WHERE x.v > y.v WITHIN 9"
    with pytest.warns(PerformanceWarning, match="one task"):
        matches = cepheid.detect(files.stream(spark, SPARK_TICKS), query)
    found = Streamed(matches, tmp_path / "checkpoint", tmp_path / "out")
    assert found.ids == in_process(query, rows, TICKS)


def test_a_watermark_on_another_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(tmp_path / "in", TICKS)
    events = files.stream(spark, SPARK_TICKS).selectExpr("*", "timestamp_seconds(ts) AS at")
    with pytest.raises(OptionError) as refused:
        cepheid.detect(events.withWatermark("at", "1 second"), THREE)
    assert refused.value.code == "other-watermark"
