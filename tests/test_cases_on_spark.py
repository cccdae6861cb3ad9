"""The cases on the Spark hosts, many in one job; the answers must be those of the definition.

Batch takes every case. Streaming starts a Python worker per case and micro-batch, so it takes the
ones named below, or all with CEPHEID_ALL_CASES=1. Each stream comes in two cuts and a heartbeat,
which moves the watermark past every deadline.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.model.errors import PerformanceWarning
from cepheid.testing import match_difference
from tests.cases.loading import NAME, Case, load_cases

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CASES = load_cases()
CASES_PER_JOB = 30
CHOSEN = {
    "absent_and_null: a component without the key is joined to all",
    "absent_and_null: a negative with a null does not cancel",
    "negation: a negated end is settled by the end of input",
    "negation: a negated end with a predicate and a key",
    "negation: every match has its own deadline",
    "negation: negatives at the start, in the middle and at the end",
    "negation: the start interval depends on the match",
    "paper_queries: misplaced inventory",
    "paper_queries: Q2, shoplifting",
    "returning: a derived event with a negated end",
    "next: D23, a currency that differs from all before",
    "next: every aggregate of a run, and what is null counts for nothing",
    "next: one query reads the results of another",
    "next: small purchases and then a large one",
    "returning: one query reads the events of another",
    "sequences: times below zero",
    "time: a negated end with ticks of a second",
    "time: times before 1970",
}
TAKES_ALL = os.environ.get("CEPHEID_ALL_CASES") == "1"
STREAMED = [case for case in CASES if TAKES_ALL or str(case) in CHOSEN]
HEARTBEATS = {int: 10**13, datetime: datetime(2100, 1, 1)}

_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_JSON = {"ignoreNullFields": "false", "timestampFormat": _TIME, "timestampNTZFormat": _TIME}

Found = dict[str, list[dict[str, Any]]]


def as_json(case: Case, matches: DataFrame) -> DataFrame:
    """Matches of all forms as rows of one form, so that many cases fit one job."""
    from pyspark.sql import functions as sf

    return matches.select(
        sf.lit(str(case)).alias("case"),
        sf.to_json(sf.struct("*"), _JSON).alias("match"),
    )


def from_json(text: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(text)
    for side in ("start", "end"):
        if isinstance(row[side], str):
            row[side] = datetime.fromisoformat(row[side])
    return row


ARRIVAL = "arrival"


def numbered(case: Case) -> pa.Table:
    """The events; where arrival decides ties, Spark needs a column that tells it."""
    events = case.table()
    if case.options.get("tie") == "seqno":
        events = events.append_column(ARRIVAL, pa.array(range(events.num_rows)))
    return events


def detected(case: Case, events: DataFrame) -> DataFrame:
    query = cepheid.compile(case.text, case.language)
    id_column = ARRIVAL if case.options.get("tie") == "seqno" else NAME
    return as_json(case, cepheid.detect(events, query, **({"id": id_column} | case.options)))


def together(frames: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionAll(other), frames)


@pytest.fixture(scope="module")
def found_in_batch(spark: SparkSession) -> Found:
    found: Found = {str(case): [] for case in CASES}
    for first in range(0, len(CASES), CASES_PER_JOB):
        some = CASES[first : first + CASES_PER_JOB]
        with warnings.catch_warnings():
            # Some cases have neither key nor window.
            warnings.simplefilter("ignore", PerformanceWarning)
            frames = [detected(case, spark.createDataFrame(numbered(case))) for case in some]
        for row in together(frames).collect():
            found[row["case"]].append(from_json(row["match"]))
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_spark_batch(case: Case, found_in_batch: Found) -> None:
    difference = match_difference(case.wide, found_in_batch[str(case)], NAME)
    assert not difference, f"the matches differ\n{difference}"


def streamed(spark: SparkSession, case: Case, folder: Path) -> DataFrame:
    """The case's events as a stream of files: each micro-batch takes the next one."""
    folder.mkdir()
    events = numbered(case)
    beat = {NAME: "beat", "type": "HEARTBEAT", "ts": HEARTBEATS[type(case.rows[0]["ts"])]}
    heartbeat = pa.Table.from_pylist([beat], schema=events.schema)
    middle = (events.num_rows + 1) // 2
    for number, part in enumerate((events[:middle], events[middle:], heartbeat)):
        file = folder / f"{number}.parquet"
        pq.write_table(part, file)
        os.utime(file, (10**9 + number, 10**9 + number))  # Spark takes older files first
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


@pytest.fixture(scope="module")
def one_partition(spark: SparkSession) -> Iterator[None]:
    """A worker for each case and micro-batch, not two: the streams are tiny."""
    usual = spark.conf.get("spark.sql.shuffle.partitions", "2") or "2"
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", usual)


@pytest.fixture(scope="module")
def found_in_stream(
    spark: SparkSession, one_partition: None, tmp_path_factory: pytest.TempPathFactory
) -> Found:
    found: Found = {str(case): [] for case in STREAMED}
    folder = tmp_path_factory.mktemp("streams")
    # One watermark serves a whole streaming query, so ticks and time stamps go apart.
    for kind in HEARTBEATS:
        cases = [case for case in STREAMED if type(case.rows[0]["ts"]) is kind]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PerformanceWarning)
            frames = [
                detected(case, streamed(spark, case, folder / f"{kind.__name__}{number}"))
                for number, case in enumerate(cases)
            ]
        name = f"found_with_{kind.__name__}"
        running = (
            together(frames)
            .writeStream.format("memory")
            .queryName(name)
            .outputMode("append")
            .option("checkpointLocation", str(folder / f"{kind.__name__}_checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert running.awaitTermination(1200), "the stream did not end in time"
        for row in spark.table(name).collect():
            found[row["case"]].append(from_json(row["match"]))
    return found


def test_spark_streams_are_chosen_by_names_that_exist() -> None:
    assert {str(case) for case in CASES} >= CHOSEN


@pytest.mark.parametrize("case", STREAMED, ids=str)
def test_spark_streaming(case: Case, found_in_stream: Found) -> None:
    difference = match_difference(case.wide, found_in_stream[str(case)], NAME)
    assert not difference, f"the matches differ\n{difference}"
