"""A workload on Spark: one job or one streaming query finds what each query finds alone."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cepheid
from cepheid.hosts.spark_workload import plan_workload_batch
from cepheid.model.errors import OptionError, PerformanceWarning
from tests.hosts.test_spark_streaming import Files, Streamed
from tests.hosts.test_workload_sources import ID, TEXTS, as_table
from tests.hosts.test_workload_sources import random_records as records_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("event", pa.int64()),
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("id", pa.int64()),
        ("v", pa.int64()),
    ]
)
SPARK_SCHEMA = "event long, type string, ts long, id long, v long"
TYPES = {name: ["id", "v"] for name in "ABCD"}
QUERIES = {
    "pair": "EVENT SEQ(A x, B y) WHERE [id] WITHIN 20",
    "triple": "EVENT SEQ(A x, B y, C z) WHERE [id] AND y.v = 1 WITHIN 30",
    "unpaid": "EVENT SEQ(A x, !(B n), C y) WHERE [id] WITHIN 25",
    "left": "EVENT SEQ(A x, !(B n)) WHERE [id] WITHIN 9",
    "by value": "EVENT SEQ(B x, D y) WHERE [v] WITHIN 12",
    "one": "EVENT D x WHERE x.v = 2",
    "next": "SELECT * FROM A x; B y; C z WHERE FILTER(x.id = y.id), FILTER(y.id = z.id)",
    "anywhere": "SELECT * FROM A x; D y WHERE (x, y) OCCURS WITHIN 15",
    "no key": "EVENT SEQ(C x, D y) WITHIN 4",
}


def random_events(seed: int, size: int, *, nulls: bool = False) -> list[dict[str, Any]]:
    """Events in order of time, some of them simultaneous."""
    r = random.Random(seed)
    rows, time = [], 0
    for event in range(size):
        time += r.choice((0, 1, 1, 2))
        key = None if nulls and r.random() < 0.03 else r.randint(0, 5)
        row = {"event": event, "type": r.choice("ABCDZ"), "ts": time, "id": key}
        rows.append({**row, "v": r.randint(0, 2)})
    return rows


def in_process(events: pa.Table, **options: Any) -> Counter[tuple[str, str]]:
    """The matches of each query on its own."""
    found: Counter[tuple[str, str]] = Counter()
    for name, text in QUERIES.items():
        ids = cepheid.detect(events, text, id="event", **options).column("match_id")
        found.update((name, match) for match in ids.to_pylist())
    return found


def told(rows: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter((row["query"], row["match_id"]) for row in rows)


@pytest.mark.parametrize("partitions", [1, 3])
def test_one_job_finds_what_each_query_finds(spark: SparkSession, partitions: int) -> None:
    events = pa.Table.from_pylist(random_events(1, 400), schema=SCHEMA)
    workload = cepheid.Workload(QUERIES, id="event", types=TYPES, partitions=partitions)
    frame = spark.createDataFrame(events)
    rows = cepheid.detect(frame, workload).toArrow().to_pylist()
    assert told(rows) == in_process(events, types=TYPES)
    assert told(workload.detect(events).to_pylist()) == told(rows)
    pair = next(row for row in rows if row["query"] == "pair")
    assert [each["variable"] for each in pair["events"]] == ["x", "y"]
    assert pair["events"][0]["event"]["type"] == "A"


def test_events_without_a_key_on_spark(spark: SparkSession) -> None:
    events = pa.Table.from_pylist(random_events(2, 300, nulls=True), schema=SCHEMA)
    workload = cepheid.Workload(QUERIES, id="event", partitions=3)
    with pytest.warns(PerformanceWarning, match="do not have the key"):
        found = cepheid.detect(spark.createDataFrame(events), workload)
    assert told(found.toArrow().to_pylist()) == in_process(events)


def test_time_that_does_not_run_on_is_the_same_on_spark(spark: SparkSession) -> None:
    events = pa.Table.from_pylist(random_events(8, 60), schema=SCHEMA)
    options: dict[str, Any] = {"types": TYPES, "close_at_end": False}
    workload = cepheid.Workload(QUERIES, id="event", partitions=3, **options)
    rows = cepheid.detect(spark.createDataFrame(events), workload).toArrow().to_pylist()
    expected = told(workload.detect(events).to_pylist())
    assert told(rows) == expected
    assert expected != in_process(events, types=TYPES), "some deadline lies behind the last event"


def test_lanes_are_told_on_spark(spark: SparkSession) -> None:
    events = spark.createDataFrame(pa.Table.from_pylist(random_events(3, 20), schema=SCHEMA))
    workload = cepheid.Workload(QUERIES, id="event", types=TYPES, partitions=2)
    text = plan_workload_batch(events, workload.members, workload.options).explain()
    assert "by the key [id]: pair, triple, unpaid, left, next" in text
    assert "by the key [v]: by value" in text
    assert "node 0" in text
    assert "node 1" in text


def test_records_of_registered_sources_on_spark(spark: SparkSession) -> None:
    records = as_table(records_of(1))
    texts = {name: TEXTS[name] for name in ("pair", "one", "other")}
    workload = cepheid.Workload(texts, id=ID, partitions=2)
    rows = cepheid.detect(spark.createDataFrame(records), workload).toArrow().to_pylist()
    assert told(rows) == told(workload.detect(records).to_pylist())
    assert len(rows) > 5


def test_queries_of_many_keys_are_placed_whole(spark: SparkSession) -> None:
    """By each of six keys an event would be copied, on one node it is not."""
    events = pa.Table.from_pylist(random_events(9, 200), schema=SCHEMA)
    columns = {name: pa.array(range(200), pa.int64()) for name in "pqrs"}
    for name, values in columns.items():
        events = events.append_column(name, pc.bit_wise_and(values, 7 if name < "r" else 3))
    keys = ("id", "v", *columns)
    texts = {key: f"EVENT SEQ(A x, B y) WHERE [{key}] WITHIN 20" for key in keys}
    types = dict.fromkeys("ABCDZ", keys)
    workload = cepheid.Workload(texts, id="event", types=types, partitions=1)
    frame = spark.createDataFrame(events)
    plan = plan_workload_batch(frame, workload.members, workload.options)
    assert [lane.node for lane in plan.lanes] == [0]
    assert (
        "node 0: by 6 keys each event would be copied more often than to 1 node" in plan.explain()
    )
    rows = cepheid.detect(frame, workload).toArrow().to_pylist()
    assert told(rows) == told(workload.detect(events).to_pylist())
    wide = cepheid.Workload(texts, id="event", types=types, partitions=16)
    plan = plan_workload_batch(frame, wide.members, wide.options)
    assert [str(lane.routing.key) for lane in plan.lanes] == [f"[{key}]" for key in keys]


CUT = {
    "then": "SELECT * FROM (A x; B y); C z WHERE x.v < y.v",
    "before": "SELECT * FROM D w; (A x; B y) WHERE x.v < y.v",
    "runs": "SELECT * FROM (A x; B y)+; D z WHERE x.v < y.v, PREV(x.id) <> x.id",
    "guarded": "SELECT * FROM D x; (B y \\ C n)",
    "counted": "SELECT count(x) AS n, sum(y.v) AS total, z.v FROM (A x; B y)+; C z WHERE x.v < y.v",
    "itself": "SELECT * FROM A x; B y WHERE x.v < y.v",
    "keyed": "SELECT * FROM A x; B y WHERE FILTER(x.id = y.id)",
    "sequence": "EVENT SEQ(C x, D y) WITHIN 4",
}


@pytest.mark.parametrize(("by_content", "close_at_end"), [(True, True), (False, False)])
def test_parts_of_queries_run_on_other_nodes(
    spark: SparkSession, by_content: bool, close_at_end: bool
) -> None:
    """Composites are shuffled in the middle of the job, and nobody can tell."""
    rows = random_events(11, 200)
    events = pa.Table.from_pylist(rows, schema=SCHEMA)
    options: dict[str, Any] = {"id": "event", "close_at_end": close_at_end}
    if by_content:  # some are there twice, and are told apart by their number alone
        del options["id"]
        events = pa.concat_tables([events, events.slice(0, 70)]).drop_columns(["event"])
        events = events.sort_by("ts")
    workload = cepheid.Workload(
        CUT, cap=4, partitions=2, plan={"placement": "round-robin"}, **options
    )
    frame = spark.createDataFrame(events)
    plan = plan_workload_batch(frame, workload.members, workload.options)
    text = plan.explain()
    assert "part on node 0: Next(Atom([A]), Atom([B]), test=(v0.v < v1.v))" in text
    assert "shuffled to node 1" in text
    found = plan.matches().toArrow().to_pylist()
    expected = workload.detect(events).to_pylist()
    assert told(found) == told(expected)
    assert {row["query"] for row in found} == set(CUT)
    by_id = {(row["query"], row["match_id"]): row for row in expected}
    assert all(row == by_id[row["query"], row["match_id"]] for row in found)
    physical = plan.matches()._jdf.queryExecution().executedPlan().toString()
    assert physical.count("Exchange") == 2, "one job, with one exchange for each stage"


def test_rare_parts_run_once_and_lanes_need_no_events(spark: SparkSession) -> None:
    """Whoever is given all parts reads no event at all."""
    one, other = "(A a; B b)", "(C c; D d)"
    within = "FILTER(a.v <> b.v), FILTER(c.v <> d.v)"
    texts = {
        f"{first} {op}": f"SELECT * FROM {first}; {second} WHERE {within}, a.v {op} c.v"
        for first, second in ((one, other), (other, one))
        for op in ("=", "<", ">=")
    }
    rates = {"A": 1.0, "B": 50.0, "C": 1.0, "D": 50.0}
    events = pa.Table.from_pylist(random_events(12, 150), schema=SCHEMA)
    workload = cepheid.Workload(texts, id="event", partitions=2, statistics=rates)
    frame = spark.createDataFrame(events)
    plan = plan_workload_batch(frame, workload.members, workload.options)
    assert plan.cuts is not None
    assert {lane.read for lane in plan.lanes} == {()}
    assert [lane.read for lane in plan.cuts.finding] == [("A", "B"), ("C", "D")]
    rows = plan.matches().toArrow().to_pylist()
    assert told(rows) == told(workload.detect(events).to_pylist())
    assert len(rows) > 10
    whole = cepheid.Workload(
        texts, id="event", partitions=2, statistics=rates, plan={"cuts": False}
    )
    plan = plan_workload_batch(frame, whole.members, whole.options)
    assert plan.cuts is None
    assert "all its operators fuse, no edge is shuffled" in whole.explain(frame)


@pytest.mark.parametrize("nulls", [False, True])
def test_one_streaming_query_finds_what_each_query_finds(
    spark: SparkSession, tmp_path: Path, nulls: bool
) -> None:
    rows = random_events(4, 260, nulls=nulls)
    options: dict[str, Any] = {} if nulls else {"types": TYPES}
    files = Files(tmp_path / "events", SCHEMA)
    r = random.Random(5)
    moved = sorted(rows, key=lambda row: row["ts"] + r.uniform(0, 2.9))
    workload = cepheid.Workload(QUERIES, id="event", lateness=3, buckets=3, **options)
    stream = files.stream(spark, SPARK_SCHEMA)
    matches = cepheid.detect(stream, workload)
    files.add(moved[:90])
    files.add(moved[90:130])
    Streamed(matches, tmp_path / "checkpoint", tmp_path / "sink")
    files.add(moved[130:])  # the second run goes on from the first one's checkpoint
    far = {"event": 10_000, "type": "Z", "ts": 10_000, "id": 1, "v": 0}
    files.add([far])
    files.add([{**far, "event": 10_001, "ts": 10_001}])
    found = told(Streamed(matches, tmp_path / "checkpoint", tmp_path / "sink").rows)
    expected = in_process(pa.Table.from_pylist(rows, schema=SCHEMA), **options)
    assert found == expected


def test_queries_come_and_go_on_a_stream_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    texts = {name: QUERIES[name] for name in ("pair", "unpaid", "next", "by value")}
    new = {"triple": QUERIES["triple"], "other": "EVENT SEQ(B x, Z y) WHERE [id] WITHIN 40"}
    early = random_events(6, 120)
    change = early[-1]["ts"] + 20
    late = [
        {**row, "event": row["event"] + 1_000, "ts": row["ts"] + change}
        for row in random_events(7, 120)
    ]
    files = Files(tmp_path / "events", SCHEMA)
    control = cepheid.WorkloadControl(tmp_path / "orders")
    workload = cepheid.Workload(texts, id="event", types=TYPES | {"Z": ["id", "v"]}, buckets=2)
    with pytest.raises(OptionError, match="belongs to no stream"):
        control.add(new["triple"], name="triple")
    matches = cepheid.detect(files.stream(spark, SPARK_SCHEMA), workload, control=control)
    files.add(early)
    Streamed(matches, tmp_path / "checkpoint", tmp_path / "sink")
    for name, text in new.items():
        control.add(text, name=name, at=change)
    control.pause("pair", at=change)
    control.remove("by value", at=change)
    with pytest.raises(OptionError, match="as no query of this stream does"):
        control.add(QUERIES["no key"], name="no key")
    files.add(late[:60])
    Streamed(matches, tmp_path / "checkpoint", tmp_path / "sink")
    again = cepheid.WorkloadControl(tmp_path / "orders")  # a restart of everything
    matches = cepheid.detect(files.stream(spark, SPARK_SCHEMA), workload, control=again)
    assert set(again.names) >= {"triple", "other", "unpaid", "pair"}
    assert "by value" not in again.names
    files.add(late[60:])
    far = {"event": 10_000, "type": "D", "ts": 10_000, "id": 1, "v": 0}
    files.add([far])
    files.add([{**far, "event": 10_001, "ts": 10_001}])
    found = told(Streamed(matches, tmp_path / "checkpoint", tmp_path / "sink").rows)
    expected: Counter[tuple[str, str]] = Counter()
    for name, text in (texts | new).items():
        seen = [*early, *late]
        if name in new:
            seen = late
        elif name in ("pair", "by value"):
            seen = early
        table = pa.Table.from_pylist(seen, schema=SCHEMA)
        ids = cepheid.detect(table, text, id="event", types=TYPES | {"Z": ["id", "v"]})
        expected.update((name, match) for match in ids.column("match_id").to_pylist())
    assert found == expected
    assert all(any(query == name for query, _ in found) for name in texts | new)


def test_running_totals_in_a_workload_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    runs = """SELECT count(x) AS n, sum(x.v) AS total FROM A x+; B y
    WHERE FILTER(PREV(x.id) = x.id), FILTER(x.id = y.id)"""
    queries = {"runs": runs, "pair": QUERIES["pair"]}
    rows = random_events(8, 300)
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    expected = Counter(
        (name, match)
        for name, text in queries.items()
        for match in cepheid.detect(table, text, id="event")["match_id"].to_pylist()
    )
    assert {name for name, _ in expected} == set(queries)
    options: dict[str, Any] = {"id": "event", "types": TYPES, "plan": {"running_totals": True}}
    workload = cepheid.Workload(queries, buckets=2, **options)
    found = cepheid.detect(spark.createDataFrame(table), workload).toArrow().to_pylist()
    assert told(found) == expected
    files = Files(tmp_path / "events", SCHEMA)
    matches = cepheid.detect(files.stream(spark, SPARK_SCHEMA), workload)
    files.add(rows[:140])
    Streamed(matches, tmp_path / "checkpoint", tmp_path / "sink")
    files.add(rows[140:])
    files.add([{"event": 10_000, "type": "Z", "ts": 10_000, "id": 1, "v": 0}])
    files.add([{"event": 10_001, "type": "Z", "ts": 10_001, "id": 1, "v": 0}])
    assert told(Streamed(matches, tmp_path / "checkpoint", tmp_path / "sink").rows) == expected
