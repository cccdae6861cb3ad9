"""Spark's stateful operator in Spark's own tester, which needs no session and no Java."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.tws_tester import TwsTester

from cepheid.hosts.prepared_program import prepare_program
from cepheid.hosts.snapshot import read_table
from cepheid.hosts.spark_packing import REASON
from cepheid.hosts.spark_stream_output import PackedOutput
from cepheid.hosts.spark_stream_processor import DetectionProcessor
from cepheid.hosts.stream_bucket import StreamTask
from cepheid.hosts.stream_clock import StreamClock
from cepheid.hosts.stream_routing import Routing
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import compile_text

SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("id", pa.int64())])
CLOCK = StreamClock(is_timestamp=False)


def operator_of(query: str, **options: Any) -> TwsTester:
    given = make_options(options)
    compiled = compile_text(query)
    form = prepare_program(compiled, given, SCHEMA).form
    task = StreamTask(compiled, given, SCHEMA, CLOCK, Routing(4, None), "fingerprint", query)
    return TwsTester(
        DetectionProcessor(task, PackedOutput(form.schema, SCHEMA if given.late_output else None)),
        timeMode="EventTime",
        eventTimeExtractor=lambda _: 2**62,  # the guard column: no row is late to Spark
    )


def pack(*events: tuple[str | None, int, int]) -> pd.DataFrame:
    rows = [dict(zip(SCHEMA.names, event, strict=True)) for event in events]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    data = batch.serialize().to_pybytes()
    return pd.DataFrame([(0, 0, False, data)], columns=["task", "number", "is_copy", "events"])


def matched(frame: pd.DataFrame) -> list[dict[str, Any]]:
    packs = [] if frame.empty else [data for data in frame["matches"] if data is not None]
    return [match for data in packs for match in read_table(data).to_pylist()]


def test_matches_leave_when_their_last_event_comes() -> None:
    bucket = operator_of("EVENT SEQ(A x, B y) WHERE [id] WITHIN 10")
    assert bucket.testInPandas(3, pack(("A", 1, 7))).empty
    (match,) = matched(bucket.testInPandas(3, pack(("B", 4, 7), ("B", 5, 8))))
    assert (match["x"]["ts"], match["y"]["ts"]) == (1, 4)
    assert not bucket.peekMapState("segments", 3), "small segments travel with the header"
    many = [("A", 6, key) for key in range(2_000)]
    assert bucket.testInPandas(3, pack(*many)).empty
    assert len(bucket.peekMapState("segments", 3)) == 1
    assert not bucket.peekMapState("segments", 2)


def test_a_silent_bucket_emits_its_negated_end_and_is_emptied_by_timers() -> None:
    bucket = operator_of("EVENT SEQ(A x, !(B n)) WHERE [id] WITHIN 10")
    assert bucket.testInPandas(0, pack(("A", 1, 7), ("A", 3, 8), ("B", 9, 8))).empty
    assert not matched(bucket.setWatermark(CLOCK.shown(10)))
    (match,) = matched(bucket.setWatermark(CLOCK.shown(11)))
    assert (match["x"]["id"], match["end"]) == (7, 10)
    assert not matched(bucket.setWatermark(CLOCK.shown(40)))
    assert not bucket.peekMapState("segments", 0)
    assert not list(bucket.handle.listTimers())


def test_late_and_bad_rows_are_counted_and_delivered_on_demand() -> None:
    query = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 10"
    for deliver in (False, True):
        bucket = operator_of(query, late_output=deliver)
        bucket.testInPandas(0, pack(("A", 100, 7)))
        bucket.setWatermark(CLOCK.shown(100))
        (row,) = bucket.testInPandas(0, pack(("A", 99, 1), ("A", 100, 2), (None, 100, 3))).to_dict(
            "records"
        )
        assert (row["late"], row["quarantined"], row["matches"]) == (1, 1, None)
        if deliver:
            aside = read_table(row["aside"]).to_pylist()
            assert [(each["id"], each[REASON]) for each in aside] == [
                (1, "before the watermark"),
                (3, "`type` is null"),
            ]
        else:
            assert row["aside"] is None
