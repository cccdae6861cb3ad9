"""What all tests share: one Spark session, repeatable random tests, no silent skips in CI."""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from cepheid.hosts.spark_session import local_session
from cepheid.kernels.quick_start import compile_quickly
from tests.quick_java import use_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

compile_quickly()

# Compiling a kernel on first use takes seconds, so single examples have no deadline.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if IN_CI else "default")


def pytest_configure(config: pytest.Config) -> None:
    """Before the workers start, which take over what is set here."""
    runs_all = bool(config.getoption("numprocesses", None)) and not config.option.markexpr
    use_archive(make=runs_all)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that all Spark tests of a run share; other settings need another process."""
    session = local_session("local[2]", **{"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


class SparkTestsInTwoWorkers(LoadScopeScheduling):
    """
    Spark tests are two units of work, those of streams and clusters and the others, so that two
    workers have a JVM each; they come first, being the largest. Every other test is a unit of its
    own and fills the workers.

    The scheduler sees names only. xdist's own way, `--dist loadgroup` with marks, does nothing
    under pytest 9.2 (pytest-xdist issue 1386).
    """

    def _split_scope(self, nodeid: str) -> str:
        if "spark" not in nodeid.lower():
            return nodeid
        # What a case is called says nothing of where it runs: one worker has all cases of a host.
        name = nodeid.partition("[")[0].lower()
        return "streams" if any(word in name for word in _OF_STREAMS) else "spark"


_OF_STREAMS = ("stream", "kill", "cluster")

_TURNS = {"test_cases.py": 0, "test_cases_on_spark.py": 2}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SparkTestsInTwoWorkers:
    return SparkTestsInTwoWorkers(config, log)


# Compiling leaves millions of objects behind, through which the collector would go again and again:
# it looks at young ones only, and every so often all that has survived is left alone for good.
gc.set_threshold(100_000, 50, 1_000_000)
_TESTS_PER_COLLECTION = 40
_finished = itertools.count(1)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Collect what the last tests left, then leave the rest out of later collections."""
    if next(_finished) % _TESTS_PER_COLLECTION == 0:
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use Spark, and see to it that the scheduler can tell them by name.

    The cases come first, and last on Spark: by then their kernels are compiled.
    """
    items.sort(key=lambda item: _TURNS.get(item.path.name, 1))
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark") and "spark" not in item.nodeid.lower():
            message = f"{item.nodeid} uses Spark: its file, name or parameter must say `spark`"
            raise pytest.UsageError(message)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI a skipped test is a failure: everything it needs is installed there."""
    gc.unfreeze()
    gc.collect()  # some libraries tell of objects that are alive at the very end
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(session.config, "workerinput")
    if not IN_CI or is_worker or reporter is None or exitstatus != pytest.ExitCode.OK:
        return
    if reporter.stats.get("skipped"):
        reporter.write_line("")
        reporter.write_line("tests were skipped, which CI does not allow", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
