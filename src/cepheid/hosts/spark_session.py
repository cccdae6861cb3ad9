"""The one door to Spark: checks what it needs and starts a quiet local session."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cepheid.hosts.spark_java import java_home_for_spark, require_java
from cepheid.model.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What Spark imports on its own when a stateful streaming query starts, long after the session did:
# asked for here, so that a missing package is told before any work is done.
_PACKAGES = {
    "pyspark": "pyspark",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "google.protobuf": "protobuf",
}

_LOGGING = Path(__file__).with_name("spark_log4j2.properties")

_DEFAULTS = {
    "spark.app.name": "cepheid",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    # One machine: Spark's 200 would give a streaming query 200 state stores to commit each batch.
    "spark.sql.shuffle.partitions": "8",
    # PySpark would ask the JVM several times about every expression, to tell in errors which line
    # made it; those lines are ours, not the user's, and planning a query takes twice the time.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # transformWithState works with no other provider.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def local_session(master: str = "local[*]", **conf: str) -> SparkSession:
    """
    A Spark session on this machine, with `conf` going before the defaults; a running one is reused.

    Names of settings have dots: `local_session("local[2]", **{"spark.driver.memory": "4g"})`.
    """
    check_packages()
    if os.environ.get("SPARK_REMOTE"):
        raise EnvironmentProblem.of(
            "spark-remote-set",
            "a local Spark session was asked for, but SPARK_REMOTE names a remote one",
            help="unset SPARK_REMOTE, or build the session yourself and pass its DataFrames",
        )
    # The JVM reads its environment once, when it starts; the caller's is put back afterwards.
    with _environment(_spark_environment()):
        return _start(master, {**_DEFAULTS, **conf})


def check_packages() -> None:
    """Raise with the command to run when a package of the extra `spark` is missing."""
    missing = [package for module, package in _PACKAGES.items() if not _is_installed(module)]
    if missing:
        raise EnvironmentProblem.of(
            "missing-package",
            f"Spark needs {', '.join(missing)}, not installed for {sys.executable}",
            help="pip install 'cepheid[spark]'",
        )


def _start(master: str, settings: Mapping[str, str]) -> SparkSession:
    """Build the session; the logging set-up must reach the JVM on its command line."""
    # Imported here and not above: importing this module must not need pyspark.
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    options = settings.get("spark.driver.extraJavaOptions", "")
    if "log4j2.configurationFile" not in options:
        options = f"{options} -Dlog4j2.configurationFile={_LOGGING.as_uri()}".strip()
    builder = SparkSession.builder.master(master)
    for name, value in {**settings, "spark.driver.extraJavaOptions": options}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as problem:
        raise EnvironmentProblem.of(
            "spark-did-not-start",
            f"Spark could not be started on {master}: {problem}",
            notes=[f"JAVA_HOME was {os.environ.get('JAVA_HOME')}"],
            help="the lines that Java printed above this message say why",
        ) from problem


def _spark_environment() -> dict[str, str]:
    """What the JVM and its Python workers must see; a user's choice of Python stays."""
    return {
        "JAVA_HOME": str(java_home_for_spark(require_java())),
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", sys.executable),
    }


def _is_installed(module: str) -> bool:
    """Whether the module could be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
