"""Spark as others run it: with executors of its own, and behind Spark Connect."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
QUERY = "EVENT SEQ(A x, !(C n), B y) WHERE [id] WITHIN 12"
KEYLESS = "EVENT SEQ(!(D n), A x, B y) WHERE x.v = n.v AND x.v < y.v WITHIN 6"

MANY = {
    "keyed": QUERY,
    "pair": "EVENT SEQ(A x, B y) WHERE [id] WITHIN 5",
    "chain": "SELECT * FROM A x; B y WHERE FILTER(x.id = y.id), (x, y) OCCURS WITHIN 9",
    "anywhere": "SELECT * FROM A x; D y WHERE x.v = 1, (x, y) OCCURS WITHIN 6",
}
"""A workload: by key and on nodes, in both languages."""

CUT = {
    "then": "SELECT * FROM (A x; B y); C z WHERE x.v < y.v",
    "before": "SELECT * FROM D w; (A x; B y) WHERE x.v < y.v",
}
"""Queries with a part in common, which runs on another node than they do."""

TOLD = "register sink told as callback QUERY told SELECT A.id FROM A; B WHERE FILTER(A.id = B.id)"

PROGRAM = """
import json, sys
import cepheid

kind, path, folder = sys.argv[1:]
if kind == "connect":
    sys.path.append(folder)
    from tests.spark_connect import connect_session
    spark = connect_session("local[2]")
else:
    from cepheid.hosts.spark_session import local_session
    spark = local_session(
        "local-cluster[2,1,1024]",
        **{"spark.executor.memory": "1g", "spark.executorEnv.HOME": folder},
    )
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
workload = cepheid.Workload(json.loads(%(workload)r), partitions=3, buckets=2)
rows = cepheid.detect(frame, workload).collect()
found["workload"] = sorted([row["query"], row["match_id"]] for row in rows)
cut = cepheid.Workload(json.loads(%(cut)r), partitions=3, plan={"placement": "round-robin"})
rows = cepheid.detect(frame, cut).collect()
found["cut"] = sorted([row["query"], row["match_id"]] for row in rows)
told = []
take = {"told": lambda matches: told.extend(match["match_id"] for match in matches)}
cepheid.deliver(frame, %(told)r, sinks=take)
found["told"] = sorted(told)
stream = spark.readStream.schema(frame.schema).parquet(path)
if kind == "connect":
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", store)
    try:
        cepheid.deliver(stream, %(told)r, sinks=take, checkpoint=path + ".checkpoint")
    except cepheid.CepheidError as error:
        found["refused"] = str(error)
else:
    query = (
        cepheid.detect(stream, workload)
        .writeStream.format("memory")
        .queryName("streamed")
        .option("checkpointLocation", path + ".checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(240)
    rows = spark.sql("SELECT query, match_id FROM streamed").collect()
    found["streamed"] = sorted([row["query"], row["match_id"]] for row in rows)
places = spark.range(0, 4, 1, 4).mapInArrow(where, "a string, b string, c string, d string")
found["places"] = [list(row) for row in places.collect()]
print(json.dumps(found))
spark.stop()
"""


def run(kind: str, tmp_path: Path, other: Path, **environment: str) -> dict[str, Any]:
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
    texts = {"keyed": QUERY, "keyless": KEYLESS, "workload": json.dumps(MANY)}
    texts |= {"cut": json.dumps(CUT), "told": TOLD}
    program.write_text(PROGRAM % texts)
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_REMOTE")}
    answer = subprocess.run(
        [sys.executable, str(program), kind, str(folder), str(other)],
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
    assert found["cut"] == _each_alone(events, CUT)
    assert found["told"] == sorted(cepheid.detect(events, TOLD)["match_id"].to_pylist())
    expected = _each_alone(events, MANY)
    assert found["workload"] == expected
    # What has become final: a stream does not end, so the last successors are still waited for.
    streamed = found.get("streamed", expected)
    assert not [each for each in streamed if each not in expected]
    assert len(streamed) > 0.9 * len(expected)
    return found


def _each_alone(events: pa.Table, queries: dict[str, str]) -> list[list[str]]:
    """The query and id of every match; all queries have some."""
    found = sorted(
        [name, match]
        for name, query in queries.items()
        for match in cepheid.detect(events, query)["match_id"].to_pylist()
    )
    assert {name for name, _ in found} == set(queries)
    return found


@pytest.fixture(scope="module")
def other_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and what it needs, but without the checkout."""
    folder = tmp_path_factory.mktemp("other")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=200)
    environment = folder / "environment"
    venv.create(environment, with_pip=False)
    (packages,) = environment.glob("lib/python*/site-packages")
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(packages)
    # Only the paths: what makes the checkout importable there is not followed.
    (packages / "requirements.pth").write_text("\n".join(site.getsitepackages()))
    return environment


def test_executors_with_another_environment_home_and_folder(
    tmp_path: Path, other_environment: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    python = str(other_environment / "bin" / "python")
    found = run("cluster", tmp_path, home, PYSPARK_PYTHON=python)
    folders = {place[0] for place in found["places"]}
    assert not folders & {str(tmp_path), str(Path.cwd())}
    assert {place[1] for place in found["places"]} == {str(home)}
    assert all(place[2].startswith(str(other_environment)) for place in found["places"])
    assert len({place[3] for place in found["places"]}) > 1, "two executors took part"


def test_spark_connect(tmp_path: Path) -> None:
    found = run("connect", tmp_path, ROOT, PYSPARK_PYTHON=sys.executable)
    assert "out of reach for a stream of Spark Connect" in found["refused"]
