"""`cepheid.deliver` on Spark: sinks get what they get in process, written by Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.model.errors import CepheidError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "type string, ts long, k long"
EVENTS = [
    {"type": kind, "ts": ts, "k": ts // 10}
    for kind, ts in (("A", 1), ("A", 2), ("B", 3), ("A", 11), ("B", 12))
]
RUNS = "QUERY {} SELECT * FROM A x+; B y WHERE FILTER(PREV(x.k) = x.k), FILTER(x.k = y.k)"
PAIRS = "QUERY {} SELECT A.k, B.ts AS t FROM A; B WHERE FILTER(A.k = B.k)"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([tuple(event.values()) for event in EVENTS], SCHEMA)


def ids_of(text: str, name: str) -> list[str]:
    return sorted(cepheid.detect(EVENTS, cepheid.compile(text)[name])["match_id"].to_pylist())


def test_every_kind_of_sink(events: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(
        [
            "register sink kept",
            "register sink filed as file 'found/pairs.parquet'",
            "register sink listed as file 'runs.csv'",
            "register sink shown as console",
            "register sink told as callback",
            *(PAIRS.format(name) for name in ("kept", "filed", "shown")),
            RUNS.format("listed"),
            RUNS.format("told"),
        ]
    )
    told: list[Any] = []
    tables = cepheid.deliver(events, text, sinks={"told": told.append})
    assert list(tables) == ["kept"]
    assert sorted(row["match_id"] for row in tables["kept"].collect()) == ids_of(text, "kept")
    filed = pq.read_table("found/pairs.parquet")["match_id"].to_pylist()
    assert sorted(filed) == ids_of(text, "filed")
    listed = events.sparkSession.read.csv(Path("runs.csv").absolute().as_uri(), header=True)
    assert sorted(row["match_id"] for row in listed.collect()) == ids_of(text, "listed")
    assert {len(json.loads(row["x"])) for row in listed.collect()} == {1, 2}
    assert {"y.ts", "y.k"} < set(listed.columns)
    shown = capsys.readouterr().out
    assert shown.startswith("shown\n")
    assert f"{len(filed)} matches" in shown
    assert sorted(match["match_id"] for found in told for match in found) == ids_of(text, "told")
    assert sum(map(len, told)) == listed.count()
    assert told[0].table().column_names == ["match_id", "query", "start", "end", "x", "y"]


def test_a_full_folder_is_not_written_to(events: DataFrame) -> None:
    text = f"register sink p as file 'pairs' {PAIRS.format('p')}"
    cepheid.deliver(events, text)
    with pytest.raises(CepheidError, match="exists and is not empty"):
        cepheid.deliver(events, text)


STREAM = "\n".join(
    [
        "register sink filed as file 'pairs'",
        "register sink told as callback",
        "register sink shown as console",
        *(PAIRS.format(name) for name in ("filed", "told", "shown")),
    ]
)


def test_spark_streams_go_on_where_they_stopped(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []
    taken: Callable[[Any], object] = lambda found: told.extend(m["match_id"] for m in found)  # noqa: E731
    folder = tmp_path / "in"
    folder.mkdir()
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    try:
        for number, part in enumerate((EVENTS[:3], EVENTS[3:], [{"type": "Z", "ts": 99, "k": 0}])):
            pq.write_table(pa.Table.from_pylist(part), folder / f"{number}.parquet")
            if number == 1:
                continue  # two files come after the restart
            stream = spark.readStream.schema(SCHEMA).parquet(str(folder))
            running = cepheid.deliver(
                stream,
                STREAM,
                sinks={"told": taken},
                checkpoint=tmp_path / "checkpoint",
                trigger={"availableNow": True},
            )
            assert list(running) == ["filed", "told", "shown"]
            assert all(each.awaitTermination(300) for each in running.values())
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", usual)
    assert sorted(told) == ids_of(STREAM, "told")
    written = spark.read.parquet((tmp_path / "pairs").as_uri()).collect()
    assert sorted(row["match_id"] for row in written) == ids_of(STREAM, "filed")
    assert "shown\n" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("register sink p " + PAIRS.format("p"), {"checkpoint": "c"}, "a stream has no end"),
        ("register sink p as console " + PAIRS.format("p"), {}, "a folder to note"),
        (
            "register sink p as callback " + PAIRS.format("p"),
            {"checkpoint": "c"},
            "no function for it",
        ),
    ],
)
def test_what_a_stream_needs(
    spark: SparkSession, tmp_path: Path, text: str, options: dict[str, str], message: str
) -> None:
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path))
    with pytest.raises(CepheidError, match=message):
        cepheid.deliver(stream, text, **options)


def test_settings_of_streams_are_for_streams(events: DataFrame) -> None:
    text = f"register sink p {PAIRS.format('p')}"
    for given in (events, EVENTS):
        with pytest.raises(CepheidError, match="are for streams"):
            cepheid.deliver(given, text, checkpoint="c")
