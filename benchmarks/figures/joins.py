"""Sequences as self-joins in Spark SQL: the stand-in for the relational stream processor.

Two ways to write them. *Plain* is what one writes first: a join of the type streams on the
equivalence attribute, with the order of the events and the window as further conditions. *Bucketed*
also joins on time buckets as wide as the window, earlier events lying in two of them, so that only
events of neighbouring windows meet.

Timed is counting the joined rows, wall time, on local[1] over events cached in memory. Not timed:
starting Spark and loading the events; one run goes before, untimed. What Spark takes for the same
query over no events, planning and launching, is a cost that a standing query pays once: a point's
speed is without it, and the record has both times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.harness import Runs, WrongAnswerError
from benchmarks.process_tree import tree_cpu_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A run that takes longer is not repeated; a point that would take longer is left out and says so.
LONG_RUN_SECONDS = 5.0
MOST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Join:
    """A sequence of `length` types within `window`, equal in `keys`, as SQL over `view`.

    `filters` are attributes that must be equal too but are tested after the join on the keys, pair
    by pair, as the paper's TelegraphCQ does with all equivalence tests but the first.
    """

    view: str
    length: int
    window: int
    keys: tuple[str, ...]
    filters: tuple[str, ...] = ()
    bucketed: bool = False

    def sql(self) -> str:
        """The query; all of its text is made here, of names and numbers."""
        lines = ["SELECT count(*) AS matches", f"FROM {self._stream(1)}"]
        for n in range(2, self.length + 1):
            conditions = [f"e{n - 1}.{key} = e{n}.{key}" for key in self.keys]
            if self.bucketed:
                conditions.append(f"e{n - 1}.bucket = e{n}.bucket")
            conditions += [f"e{n - 1}.{name} - e{n}.{name} = 0" for name in self.filters]
            conditions.append(f"e{n - 1}.ts < e{n}.ts")
            if n == self.length or self.bucketed:
                conditions.append(f"e{n}.ts - e1.ts < {self.window}")
            lines.append(f"JOIN {self._stream(n)} ON {' AND '.join(conditions)}")
        return "\n".join(lines)

    def _stream(self, number: int) -> str:
        columns = ", ".join(["ts", *self.keys, *self.filters])
        bucket = f"ts DIV {self.window}"
        if self.bucketed and number < self.length:
            bucket = f"explode(array({bucket}, {bucket} + 1))"
        chosen = f"{columns}, {bucket} AS bucket" if self.bucketed else columns
        return f"(SELECT {chosen} FROM {self.view} WHERE type = 'E{number}') e{number}"


@contextmanager
def one_core_session() -> Iterator[SparkSession]:
    """Spark on one core, as all contenders here are."""
    from cepheid.hosts.spark_session import local_session

    spark = local_session(
        "local[1]", **{"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "3g"}
    )
    try:
        yield spark
    finally:
        spark.stop()


def cache_events(spark: SparkSession, view: str, batches: Sequence[pa.RecordBatch]) -> None:
    """The events as a cached view, and none of them as `<view>_empty`."""
    table = pa.Table.from_batches(batches)
    types = table["type"].cast(pa.string())
    frame = spark.createDataFrame(table.set_column(0, "type", types))
    frame = frame.repartition(1).cache()
    frame.count()
    frame.createOrReplaceTempView(view)
    frame.where("ts < 0").createOrReplaceTempView(f"{view}_empty")


def net_speed(runs: Runs, fixed: float) -> float:
    """Events per second of the median run, without what the query takes over no events."""
    return runs.events / max(runs.median() - fixed, 0.001)


def run_join(
    spark: SparkSession, name: str, join: Join, events: int, expected: int, repeats: int
) -> Runs:
    """Time one join; a wrong count is an error, a long first run the only one."""
    wall: list[float] = []
    cpu: list[float] = []
    warmups = 0
    while len(wall) < repeats:
        cpu_start, start = tree_cpu_seconds(), time.perf_counter()
        found = spark.sql(join.sql()).collect()[0]["matches"]
        seconds, used = time.perf_counter() - start, tree_cpu_seconds() - cpu_start
        if found != expected:
            msg = f"{name} finds {found} matches, {expected} expected"
            raise WrongAnswerError(msg)
        if not warmups and not wall and seconds < LONG_RUN_SECONDS:
            warmups = 1
            continue
        wall.append(seconds)
        cpu.append(used)
        if seconds >= LONG_RUN_SECONDS:
            break
    return Runs(name, events, expected, warmups, tuple(wall), tuple(cpu))


def fixed_seconds(spark: SparkSession, join: Join, repeats: int) -> float:
    """What Spark takes for the same query over no events: the least of several runs."""
    empty = Join(
        f"{join.view}_empty", join.length, join.window, join.keys, join.filters, join.bucketed
    )
    taken = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        spark.sql(empty.sql()).collect()
        taken.append(time.perf_counter() - start)
    return min(taken[1:])
