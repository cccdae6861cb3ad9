"""What all tests share: one Spark session, repeatable random tests, no silent skips in CI."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

from cepheid.hosts.spark_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

# Compiling a kernel on first use takes seconds, so single examples have no deadline.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if IN_CI else "default")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that all Spark tests of a run share; other settings need another process."""
    session = local_session("local[2]", **{"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark tests go first and, under xdist's loadgroup, to one worker: one JVM at a time."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
    # They are the longest queue, so the other worker must find the rest of the tests behind them.
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI a skipped test is a failure: everything it needs is installed there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(session.config, "workerinput")
    if not IN_CI or is_worker or reporter is None or exitstatus != pytest.ExitCode.OK:
        return
    if reporter.stats.get("skipped"):
        reporter.write_line("")
        reporter.write_line("tests were skipped, which CI does not allow", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
