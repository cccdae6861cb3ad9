"""Spark's JVMs start in half the time when Java has an archive of the classes that they load.

The tests start some forty of them. The archive is made once and kept, by a job that does what tests
do, beside the first tests; a JVM that finds none starts as it always did.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from cepheid.hosts.spark_java import find_java
from cepheid.kernels.compiled import cache_folder

# They live for a minute or two here, and save more by compiling less than they lose.
_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_PATIENCE = 300


def use_archive(*, make: bool) -> None:
    """Set the options of all JVMs that start from now on; `make` the archive if there is none."""
    if "JDK_JAVA_OPTIONS" in os.environ:  # a user's, or set by the process that started this one
        return
    os.environ["JDK_JAVA_OPTIONS"] = _OPTIONS
    archive = _archive()
    if archive is None:
        return
    if make and not archive.exists():
        command = [sys.executable, "-m", "tests.quick_java", str(archive)]
        quiet = subprocess.DEVNULL
        subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    # Of an archive that does not fit a JVM's classes Java would tell, and do without.
    os.environ["JDK_JAVA_OPTIONS"] += f" -XX:SharedArchiveFile={archive} -Xlog:disable"


def _archive() -> Path | None:
    """Where the archive is or will be: it belongs to one Java and one place of Spark's classes."""
    java = find_java()
    if java is None:
        return None
    facts = (
        f"{java} {java.executable.resolve()} {pyspark.__version__} {pyspark.__file__} {_OPTIONS}"
    )
    digest = hashlib.sha256(facts.encode()).hexdigest()[:16]
    return cache_folder() / f"spark-classes-{digest}.jsa"


def _make(archive: Path) -> None:
    """Run a job whose JVM writes what it loaded when it ends."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        draft = Path(folder) / archive.name
        own = {"SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={draft} -Xlog:disable"}
        command = [sys.executable, "-m", "tests.quick_java", "--job", folder]
        environment = os.environ | own | {"JDK_JAVA_OPTIONS": _OPTIONS}
        job = subprocess.Popen(command, env=environment, start_new_session=True)
        job.wait(_PATIENCE)
        deadline = time.monotonic() + _PATIENCE
        while _is_any_left(job.pid) and time.monotonic() < deadline:
            time.sleep(0.2)
        if draft.exists():
            draft.replace(archive)


def _is_any_left(session: int) -> bool:
    """Whether the JVM, which outlives the job, is still writing."""
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False


def _job(folder: Path) -> None:
    """A stream, a scan of files, a batch: the roads of the hosts."""
    import cepheid
    from cepheid.hosts.spark_session import local_session
    from tests.hosts import streaming_job

    rows = [{"event": n, "type": "ABCD"[n % 4], "ts": n, "id": n % 3} for n in range(100)]
    (folder / "in").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "in" / "events.parquet")
    sys.argv[1:] = [str(folder / name) for name in ("in", "checkpoint", "out")]
    streaming_job.main()
    spark = local_session()
    query = streaming_job.QUERY
    found = cepheid.scan(spark, str(folder / "in"), query).toArrow()
    frame = spark.createDataFrame(pa.Table.from_pylist(rows))
    assert cepheid.detect(frame, query).toArrow().num_rows == found.num_rows
    spark.read.parquet(str(folder / "out")).collect()
    spark.stop()


if __name__ == "__main__":
    if sys.argv[1] == "--job":
        _job(Path(sys.argv[2]))
    else:
        _make(Path(sys.argv[1]))
