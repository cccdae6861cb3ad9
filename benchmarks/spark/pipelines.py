"""The Spark pipelines a host is compared with: the same road, nothing detected at its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from benchmarks.harness import Answer
from benchmarks.workload import LENGTH
from cepheid.hosts.spark_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TREE = Path(__file__).resolve().parent.parent.parent
CORES = 2
PATTERN_TYPES = [f"E{number}" for number in range(1, LENGTH + 1)]


def session(scratch: Path) -> SparkSession:
    """Two cores, whatever the machine has, so that results of two machines can be told apart."""
    # Workers unpickle the no-op processor by its module's name.
    folders = [str(TREE), str(TREE / "src"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(folder for folder in folders if folder)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = scratch / "spark-local"
    local.mkdir(parents=True, exist_ok=True)
    return local_session(
        f"local[{CORES}]",
        **{"spark.driver.memory": "6g", "spark.local.dir": str(local)},
    )


def to_nowhere(frame: DataFrame) -> None:
    """Compute all rows and drop them."""
    frame.write.format("noop").mode("overwrite").save()


def count_to_nowhere(frame: DataFrame) -> Answer:
    """Compute all rows, drop them, and return how many there were; all in one pass."""
    from pyspark.sql import Observation

    seen = Observation()
    to_nowhere(frame.observe(seen, functions.count(functions.lit(1)).alias("rows")))
    return int(seen.get["rows"])


def relevant(frame: DataFrame) -> DataFrame:
    """What every host pushes to the source: the pattern's types only."""
    return frame.where(functions.col("type").isin(PATTERN_TYPES))


def no_op_kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read all rows as Arrow and find nothing."""
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})


def batch_pipeline(frame: DataFrame, key: str) -> DataFrame:
    """Filter, repartition by key, sort by time, map with a kernel that does nothing."""
    return (
        relevant(frame)
        .repartition(key)
        .sortWithinPartitions("ts")
        .mapInArrow(no_op_kernel, "rows long")
    )


class NoOperation(StatefulProcessor):
    """A stateful processor that reads its rows, keeps nothing and returns nothing."""

    def init(self, handle: object) -> None:
        """Keep no state."""

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: object,
        rows: Iterator[Any],
        timerValues: object,
    ) -> Iterator[pd.DataFrame]:
        """Read everything."""
        for _ in rows:
            pass
        yield from ()

    def close(self) -> None:
        """Nothing to let go."""


def streaming_pipeline(frame: DataFrame, key: str, buckets: int, time_mode: str) -> DataFrame:
    """Filter, hash the key to buckets, run the stateful operator that does nothing."""
    bucketed = relevant(frame).withColumn(
        "bucket", functions.pmod(functions.hash(key), functions.lit(buckets))
    )
    return bucketed.groupBy("bucket").transformWithStateInPandas(
        NoOperation(), "rows long", "Append", time_mode
    )
