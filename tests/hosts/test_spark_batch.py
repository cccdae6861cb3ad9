"""The batch host finds on Spark what `detect` finds in process, row for row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts.spark import explain_spark
from cepheid.hosts.spark_batch import quarantined
from cepheid.hosts.spark_types import spark_schema
from cepheid.model.errors import DataError, OptionError, PerformanceWarning, QueryError
from tests.laws.random_queries import random_case, random_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WIDE = pa.schema(
    [
        ("event", pa.int64()),
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("k", pa.int64()),
        ("v", pa.int64()),
        ("w", pa.float64()),
        ("s", pa.string()),
        ("u", pa.int64()),
    ]
)


def random_events(rows: int, seed: int = 1) -> pa.Table:
    r = np.random.default_rng(seed)
    return pa.table(
        {
            "type": pa.array(r.choice(list("ABCD"), rows)),
            "ts": pa.array(r.integers(0, rows // 2, rows)),
            "id": pa.array(r.integers(0, 9, rows)),
            "v": pa.array(r.integers(0, 9, rows).astype(np.int32)),
        }
    )


def rows_of(matches: pa.Table) -> list[dict[str, Any]]:
    return sorted(matches.to_pylist(), key=lambda match: match["match_id"])


def assert_same(spark: SparkSession, events: pa.Table, query: str, **options: Any) -> int:
    here = rows_of(cepheid.detect(events, query, **options))
    there = rows_of(cepheid.detect(spark.createDataFrame(events), query, **options).toArrow())
    assert there == here
    return len(here)


def in_one_job(frames: dict[str, DataFrame]) -> dict[str, Counter[str]]:
    """The match ids of many detections; one job costs less than many."""
    from pyspark.sql import functions as sf

    named = [f.select(sf.lit(name).alias("of"), "match_id") for name, f in frames.items()]
    found: dict[str, Counter[str]] = {name: Counter() for name in frames}
    for row in reduce(lambda one, other: one.unionAll(other), named).collect():
        found[row["of"]][row["match_id"]] += 1
    return found


@pytest.mark.filterwarnings("ignore::cepheid.model.errors.PerformanceWarning")
@pytest.mark.parametrize(("partitions", "first"), [(1, 0), (2, 12), (7, 24)])
def test_random_queries(spark: SparkSession, partitions: int, first: int) -> None:
    """Ties, nulls, absent attributes, negations at all places, keys and slices.

    The queries are those that other tests divide without Spark: their kernels are compiled once.
    """
    frames, expected = {}, {}
    for seed in range(first, first + 12):
        case = random_case(seed)
        events = pa.Table.from_pylist(random_rows(7 * seed, 150), schema=WIDE)
        name = f"{seed}: {case.text} {case.options}"
        options = {"id": "event", **case.options}
        here = cepheid.detect(events, case.text, **options)
        expected[name] = Counter(here["match_id"].to_pylist())
        frame = spark.createDataFrame(events).coalesce(1)
        frames[name] = cepheid.detect(frame, case.text, partitions=partitions, **options)
    found = in_one_job(frames)
    wrong = [name for name in frames if found[name] != expected[name]]
    assert not wrong, "\n".join(wrong)
    assert sum(map(len, expected.values())) > 40


QUERIES = {
    "keyed": "EVENT SEQ(A x, B y, C z) WHERE [id] WITHIN 40",
    "keyed, negated in the middle": "EVENT SEQ(A x, !(B n), C y) WHERE [id] AND x.v > 2 WITHIN 30",
    "keyed, negated end": "EVENT SEQ(A x, !(B n)) WHERE [id] WITHIN 30",
    "sliced": "EVENT SEQ(A x, B y) WHERE x.v < y.v WITHIN 4",
    "sliced, negated start": "EVENT SEQ(!(D n), A x, B y) WHERE x.v = n.v WITHIN 4",
    "sliced, negated end": "EVENT SEQ(A x, B y, !(C n)) WHERE x.v < y.v WITHIN 5",
    "one event": "EVENT A x WHERE x.v > 5",
    "two keys": "EVENT SEQ(A x, B y) WHERE x.id = y.v WITHIN 9",
}


@pytest.mark.parametrize("partitions", [None, 7])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_whole_rows_without_event_ids(
    spark: SparkSession, query: str, partitions: int | None
) -> None:
    events = random_events(400)
    twins = pa.concat_tables([events, events.slice(0, 150)])  # known by content and ordinal
    assert assert_same(spark, twins, query, partitions=partitions) > 10


def test_many_slices(spark: SparkSession) -> None:
    events = random_events(400)
    query = "EVENT SEQ(!(D n), A x, B y) WHERE x.v != n.v WITHIN 2"
    assert "16 slices" in explain_spark(spark.createDataFrame(events), query, partitions=16)
    assert assert_same(spark, events, query, partitions=16) > 10


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def test_columns_of_every_type_keep_the_identity_of_events(spark: SparkSession, zone: str) -> None:
    start = datetime(2024, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    rows = 40
    table = pa.table(
        {
            "type": pa.array(["A", "B"] * (rows // 2)).dictionary_encode(),
            "ts": pa.array(
                [start + timedelta(seconds=i) for i in range(rows)], pa.timestamp("us", "UTC")
            ),
            "byte": pa.array([i % 7 for i in range(rows)], pa.int8()),
            "small": pa.array([i % 7 for i in range(rows)], pa.int16()),
            "whole": pa.array([i % 7 if i % 5 else None for i in range(rows)], pa.int32()),
            "long": pa.array([2**62 + i for i in range(rows)], pa.int64()),
            "short_float": pa.array([i / 3 for i in range(rows)], pa.float32()),
            "float": pa.array([float("nan") if i % 9 == 0 else -i / 7 for i in range(rows)]),
            "price": pa.array([Decimal(i) / 4 for i in range(rows)], pa.decimal128(10, 2)),
            "count": pa.array([Decimal(i) for i in range(rows)], pa.decimal128(20, 0)),
            "day": pa.array([date(2024, 1, 1) + timedelta(days=i % 5) for i in range(rows)]),
            "naive": pa.array(
                [datetime(1969, 12, 31, 23, 59, 59, i) for i in range(rows)], pa.timestamp("us")
            ),
            "flag": pa.array([i % 3 == 0 for i in range(rows)]),
            "name": pa.array([f"n{i % 3} é" for i in range(rows)]),
            "bytes": pa.array([bytes([i]) for i in range(rows)]),
            "list": pa.array([[i, None] for i in range(rows)]),
            "struct": pa.array([{"a": i, "b": str(i), "at": start} for i in range(rows)]),
            "never": pa.array([None] * rows, pa.string()),
        }
    )
    query = (
        "EVENT SEQ(A x, B y) WHERE [name] AND x.price < y.price AND x.day <= y.day "
        "AND x.naive >= '1960-01-01' AND x.float <= 0 WITHIN 10 s"
    )
    plain = table.set_column(0, "type", table["type"].cast(pa.string()))
    here = cepheid.detect(table, query)
    frame = spark.createDataFrame(plain, spark_schema(plain.schema))
    there = cepheid.detect(frame, query, partitions=3).toArrow()
    assert _without_nan(rows_of(there)) == _without_nan(rows_of(here))
    assert len(here) > 5


def _without_nan(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """NaN is not equal to itself."""
    for row in rows:
        for event in (row["x"], row["y"]):
            event["float"] = str(event["float"])
    return rows


def test_slices_of_times_without_zone(spark: SparkSession, zone: str) -> None:
    """In New York there is no 2:30 on the tenth of March; these times are of no place."""
    times = [datetime(2024, 3, 10, 1) + timedelta(minutes=n) for n in range(200)]
    events = random_events(200).set_column(1, "ts", pa.array(times, pa.timestamp("us")))
    frame = spark.createDataFrame(events, spark_schema(events.schema))
    query = "EVENT SEQ(A x, B y) WHERE x.v < y.v WITHIN 4 min"
    assert "8 slices" in explain_spark(frame, query, partitions=8)
    there = cepheid.detect(frame, query, partitions=8).toArrow()
    assert rows_of(there) == rows_of(cepheid.detect(events, query))


def test_event_types_that_are_numbers(spark: SparkSession) -> None:
    events = random_events(200)
    events = events.set_column(0, "type", pa.array(np.arange(200) % 5))
    assert assert_same(spark, events, "EVENT SEQ(`1` x, `3` y) WHERE [id] WITHIN 30") > 10


def test_a_column_of_nothing(spark: SparkSession) -> None:
    from pyspark.sql import functions as sf

    events = random_events(60)
    query = "EVENT SEQ(A x, B y) WHERE [id] AND x.void = y.void WITHIN 20"
    here = cepheid.detect(events.append_column("void", pa.nulls(60)), query)
    frame = spark.createDataFrame(events).withColumn("void", sf.lit(None))
    there = cepheid.detect(frame, query).toArrow()
    assert rows_of(there) == rows_of(here)
    assert len(here) > 0


def test_no_events(spark: SparkSession) -> None:
    frame = spark.createDataFrame(random_events(4)).limit(0)
    for query in QUERIES.values():
        matches = cepheid.detect(frame, query)
        assert matches.columns[:4] == ["match_id", "query", "start", "end"]
    assert cepheid.detect(frame, QUERIES["keyed"]).count() == 0
    assert cepheid.detect(frame, QUERIES["sliced"]).count() == 0


def test_an_absent_key_belongs_to_every_key(spark: SparkSession) -> None:
    """Equality through an absent attribute is not transitive, so the key must not divide."""
    events = pa.Table.from_pylist(
        [
            {"type": "A", "ts": 1, "id": 1},
            {"type": "B", "ts": 2, "id": None},
            {"type": "C", "ts": 3, "id": 2},
            {"type": "C", "ts": 4, "id": 1},
        ]
    )
    frame = spark.createDataFrame(events)
    query = "EVENT SEQ(A x, B y, C z) WHERE x.id = y.id AND y.id = z.id WITHIN 9"
    assert assert_same(spark, events, query, partitions=7) == 2
    assert "not divided by key: some events do not have the key" in explain_spark(frame, query)
    types = {"A": ["id"], "B": ["id"], "C": ["id"]}
    assert assert_same(spark, events, query, partitions=7, types=types) == 0
    assert "divided by the key [id]" in explain_spark(frame, query, types=types)
    types = {"A": ["id"], "B": [], "C": ["id"]}
    assert "type B have no attribute id" in explain_spark(frame, query, types=types)
    assert assert_same(spark, events, query, partitions=7, types=types) == 2


def test_tables_by_type(spark: SparkSession) -> None:
    tables = {
        "A": pa.table({"ts": [1, 5], "id": [1, 2], "v": [None, 3]}),
        "B": pa.table({"ts": [2, 6], "id": [1, 2]}),
        "C": pa.table({"ts": [3, 7], "v": [1, 4]}),
    }
    frames = {name: spark.createDataFrame(table) for name, table in tables.items()}
    for query in (
        "EVENT SEQ(A x, B y) WHERE [id] AND x.v > 0 WITHIN 9",
        "EVENT SEQ(A x, B y, C z) WHERE [id] WITHIN 9",
        "EVENT SEQ(A x, C z) WHERE x.v < z.v WITHIN 9",
        "EVENT SEQ(A x, B y) WHERE x.v <= y.v WITHIN 9",
    ):
        here, there = cepheid.detect(tables, query), cepheid.detect(frames, query).toArrow()
        assert rows_of(there) == rows_of(here), query
        assert len(here) > 0


def test_a_program_of_several_queries(spark: SparkSession) -> None:
    program = """
    QUERY pair EVENT SEQ(A x, B y) WHERE [id] WITHIN 9 RETURN Pair(x.id, y.v - x.v AS gain)
    QUERY chain EVENT SEQ(Pair p, !(D n), C z) WHERE [id] AND p.gain > 0 WITHIN 30
    """
    events = random_events(400)
    frame = spark.createDataFrame(events)
    assert assert_same(spark, events, program, partitions=7) > 5
    assert "divided by the key [id]" in explain_spark(frame, program)
    undivided = program.replace("x.id, y.v - x.v AS gain", "y.v - x.v AS gain")
    undivided = undivided.replace("[id] AND p.gain > 0 WITHIN 30", "p.gain > z.v WITHIN 4")
    with pytest.warns(PerformanceWarning, match="one task"):
        assert assert_same(spark, events, undivided) > 5


def test_what_return_leaves_out_is_not_shuffled(spark: SparkSession) -> None:
    events = random_events(200).append_column("n", pa.array(range(200)))
    events = events.append_column("ballast", pa.array(["x" * 50] * 200))
    query = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 30 RETURN Pair(x.id, sum(v) AS total)"
    assert assert_same(spark, events, query, id="n") > 10
    frame = spark.createDataFrame(events)
    assert "columns kept: type, ts, id, v, n" in explain_spark(frame, query, id="n")
    assert "all columns" in explain_spark(frame, query)
    assert assert_same(spark, events, query) > 10


def test_time_stops_with_the_last_event_if_told(spark: SparkSession) -> None:
    """The last event of all is of a type and a key that the deciding partition never sees."""
    rows = [{"type": "A", "ts": 1, "id": 1}, {"type": "A", "ts": 8, "id": 2}]
    query = "EVENT SEQ(A x, !(B n)) WHERE [id] WITHIN 5"
    for last, found in ((4, 0), (5, 0), (6, 1), (13, 2)):
        events = pa.Table.from_pylist([*rows[: 1 + (last > 8)], {"type": "Z", "ts": last}])
        for partitions in (1, 3):
            options = {"close_at_end": False, "partitions": partitions}
            assert assert_same(spark, events, query, **options) == found, last
    assert assert_same(spark, pa.Table.from_pylist(rows), query) == 2


def test_rows_without_type_or_time_are_passed_over_and_can_be_had(spark: SparkSession) -> None:
    events = pa.table(
        {
            "type": ["A", None, "B", "B", "A"],
            "ts": [1, 2, None, 2**62, 3],
            "id": [1, 1, 1, 1, 1],
        }
    )
    frame = spark.createDataFrame(events)
    assert assert_same(spark, events, "EVENT SEQ(A x, A y) WHERE [id] WITHIN 9") == 1
    bad = {(row["ts"], row["quarantine_reason"]) for row in quarantined(frame).collect()}
    assert bad == {
        (2, "`type` is null"),
        (None, "`ts` is null or out of range"),
        (2**62, "`ts` is null or out of range"),
    }


def test_ties_by_arrival_need_an_order(spark: SparkSession) -> None:
    events = pa.table({"type": ["A", "B", "A"], "ts": [1, 1, 1], "n": [3, 2, 1]})
    frame = spark.createDataFrame(events)
    query = "EVENT SEQ(A x, B y) WITHIN 5"
    with pytest.raises(OptionError, match="no-arrival-order"):
        cepheid.detect(frame, query, tie="seqno")
    (match,) = cepheid.detect(frame, query, tie="seqno", id="n").collect()
    assert match["x"]["n"] == 1


def test_without_window_and_key_one_task_is_enough_to_warn(spark: SparkSession) -> None:
    with pytest.warns(PerformanceWarning, match="one task"):
        assert assert_same(spark, random_events(60), "EVENT SEQ(A x, B y) WHERE x.v < y.v") > 10


@pytest.mark.parametrize(
    ("query", "options", "code"),
    [
        ("EVENT SEQ(A x, B y) WHERE x.pirce = y.id", {}, "unknown-column"),
        ("EVENT SEQ(A x, B y) WHERE [id]", {"time": "when"}, "unknown-column"),
        ("EVENT SEQ(A x, B y) WHERE [id]", {"time": "type"}, "bad-time-column"),
        ("EVENT SEQ(A x, B y) WITHIN 5 s", {}, "window-needs-tick"),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    spark: SparkSession, query: str, options: dict[str, Any], code: str
) -> None:
    with pytest.raises((DataError, QueryError)) as problem:
        cepheid.detect(spark.createDataFrame(random_events(4)), query, **options)
    assert problem.value.code == code


def test_names_with_dots_and_spaces(spark: SparkSession) -> None:
    events = random_events(100).rename_columns(["kind.of", "at time", "item no", "v.v"])
    query = "EVENT SEQ(A x, B y) WHERE [`item no`] AND x.`v.v` > 1 WITHIN 30"
    assert assert_same(spark, events, query, type="kind.of", time="at time") > 5
