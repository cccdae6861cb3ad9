"""Spark as others run it: with executors of its own, and behind Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUERY = "EVENT SEQ(A x, !(C n), B y) WHERE [id] WITHIN 12"
KEYLESS = "EVENT SEQ(!(D n), A x, B y) WHERE x.v = n.v AND x.v < y.v WITHIN 6"

PROGRAM = """
import json, sys
import cepheid
from pyspark.sql import SparkSession

kind, path = sys.argv[1:]
if kind == "connect":
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
else:
    from cepheid.hosts.spark_session import local_session
    spark = local_session("local-cluster[2,1,1024]", **{"spark.executor.memory": "1g"})
spark.conf.set("spark.sql.shuffle.partitions", "3")

def where(batches):
    import os, sys, cepheid, pyarrow as pa
    for _ in batches:
        row = [os.getcwd(), os.environ.get("HOME", ""), cepheid.__file__, str(os.getppid())]
        yield pa.RecordBatch.from_arrays([pa.array([each]) for each in row], list("abcd"))

found = {}
frame = spark.read.parquet(path)
for name, query in (("keyed", %(keyed)r), ("keyless", %(keyless)r)):
    for host, matches in (
        ("batch", cepheid.detect(frame, query, partitions=3)),
        ("scan", cepheid.scan(spark, path, query, partitions=3)),
    ):
        found[f"{host} {name}"] = sorted(row["match_id"] for row in matches.collect())
places = spark.range(0, 4, 1, 4).mapInArrow(where, "a string, b string, c string, d string")
found["places"] = [list(row) for row in places.collect()]
print(json.dumps(found))
spark.stop()
"""


def run(kind: str, tmp_path: Path, **environment: str) -> dict[str, Any]:
    r = np.random.default_rng(1)
    events = pa.table(
        {
            "type": pa.array(r.choice(list("ABCD"), 600)),
            "ts": pa.array(np.sort(r.integers(0, 300, 600))),
            "id": pa.array(r.integers(0, 9, 600)),
            "v": pa.array(r.integers(0, 9, 600)),
        }
    )
    folder = tmp_path / "events"
    folder.mkdir()
    for number in range(6):
        pq.write_table(events.slice(number * 100, 100), folder / f"{number}.parquet")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM % {"keyed": QUERY, "keyless": KEYLESS})
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_REMOTE")}
    answer = subprocess.run(
        [sys.executable, str(program), kind, str(folder)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        cwd=tmp_path,
        env=inherited | environment,
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    found: dict[str, Any] = json.loads(answer.stdout.strip().splitlines()[-1])
    for name, query in (("keyed", QUERY), ("keyless", KEYLESS)):
        expected = sorted(cepheid.detect(events, query)["match_id"].to_pylist())
        assert len(expected) > 10
        assert found[f"batch {name}"] == expected
        assert found[f"scan {name}"] == expected
    return found


def test_executors_with_another_home_and_folder(tmp_path: Path) -> None:
    """The package reaches executors by the environment they run in, not by the driver's paths."""
    home = tmp_path / "home"
    home.mkdir()
    found = run("cluster", tmp_path, HOME=str(home))
    folders = {place[0] for place in found["places"]}
    assert all(folder not in (str(tmp_path), str(Path.cwd())) for folder in folders)
    assert {place[1] for place in found["places"]} == {str(home)}
    assert len({place[3] for place in found["places"]}) > 1, "two executors took part"


def test_spark_connect(tmp_path: Path) -> None:
    run("connect", tmp_path, PYSPARK_PYTHON=sys.executable)
