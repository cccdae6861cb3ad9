"""Sequences as self-joins in Spark SQL: the stand-in for the relational stream processor.

Two ways to write them. *Plain* is what one writes first: a join of the type streams on the
equivalence attribute, with the order of the events and the window as further conditions. *Bucketed*
also joins on time buckets as wide as the window, earlier events lying in two of them, so that only
events of neighbouring windows meet.

Timed is counting the joined rows, wall time, on local[1] over events cached in memory. Not timed:
starting Spark and loading the events; one run goes before, untimed. A light query joins several
independent streams at once, so that its own work shows beside Spark's planning and launching. What
these take, measured with the same query over no events, a standing query pays once: a point's speed
is without it, and the record has both times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import comb, prod
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.figures.measuring import SEED, TYPES, make_stream
from benchmarks.harness import Runs, WrongAnswerError
from benchmarks.process_tree import tree_cpu_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG_RUN_SECONDS = 5.0  # a run that takes longer is not repeated
MOST_PAIRS = 4e9  # a join of more would take minutes: it is left out and says so
PAIRS_PER_RUN = 2e8  # as many streams are joined at once as have about so many
MOST_STREAMS = 20


@dataclass(frozen=True, slots=True)
class Join:
    """A sequence of `length` types within `window`, equal in `keys`, as SQL over a view.

    `filters` are attributes that must be equal too but are tested after the join on the keys, pair
    by pair, as the paper's TelegraphCQ does with all equivalence tests but the first.
    """

    length: int
    window: int
    keys: tuple[str, ...]
    filters: tuple[str, ...] = ()
    bucketed: bool = False

    def sql(self, view: str) -> str:
        """The query; all of its text is made here, of names and numbers."""
        lines = ["SELECT count(*) AS matches", f"FROM {self._stream(view, 1)}"]
        for n in range(2, self.length + 1):
            conditions = [f"e{n - 1}.{key} = e{n}.{key}" for key in self.keys]
            if self.bucketed:
                conditions.append(f"e{n - 1}.bucket = e{n}.bucket")
            conditions += [f"e{n - 1}.{name} - e{n}.{name} = 0" for name in self.filters]
            conditions.append(f"e{n - 1}.ts < e{n}.ts")
            if n == self.length or self.bucketed:
                conditions.append(f"e{n}.ts - e1.ts < {self.window}")
            lines.append(f"JOIN {self._stream(view, n)} ON {' AND '.join(conditions)}")
        return "\n".join(lines)

    def _stream(self, view: str, number: int) -> str:
        columns = ", ".join(["ts", *self.keys, *self.filters])
        bucket = f"ts DIV {self.window}"
        if self.bucketed and number < self.length:
            bucket = f"explode(array({bucket}, {bucket} + 1))"
        chosen = f"{columns}, {bucket} AS bucket" if self.bucketed else columns
        return f"(SELECT {chosen} FROM {view} WHERE type = 'E{number}') e{number}"

    def pairs(self, events: int, domains: dict[str, int]) -> float:
        """About how many pairs of equal keys the joins compare in one stream of events."""
        by_key = prod(domains[name] for name in self.keys)
        by_filter = prod(domains[name] for name in self.filters)
        together, parts = (2 * self.window, events / self.window) if self.bucketed else (events, 1)
        found = 0.0
        for n in range(2, self.length + 1):
            rows = comb(together, n - 1) / (TYPES ** (n - 1) * (by_key * by_filter) ** (n - 2))
            found += rows * together / (TYPES * by_key)
        return found * parts


@contextmanager
def one_core_session() -> Iterator[SparkSession]:
    """Spark on one core, as all contenders here are."""
    from cepheid.hosts.spark_session import local_session

    spark = local_session(
        "local[1]", **{"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "4g"}
    )
    try:
        yield spark
    finally:
        spark.stop()


def streams(events: int, domains: dict[str, int], count: int) -> list[list[pa.RecordBatch]]:
    """Independent streams of one kind, a seed each; attributes are attr1, attr2, ..."""
    sizes = tuple(domains.values())
    return [make_stream(events, domains=sizes, seed=SEED + number) for number in range(count)]


def cache_streams(
    spark: SparkSession, view: str, several: list[list[pa.RecordBatch]], domain: int
) -> None:
    """The streams as one cached view, no value of attr1 in two of them; none as `<view>_empty`."""
    tables = []
    for number, stream in enumerate(several):
        table = pa.Table.from_batches(stream)
        table = table.set_column(0, "type", table["type"].cast(pa.string()))
        where = table.schema.get_field_index("attr1")
        tables.append(
            table.set_column(where, "attr1", pc.add(table["attr1"], number * (domain + 1)))
        )
    events = pa.concat_tables(tables)
    # Nothing to read, either: reading the events is the join's own work.
    for name, table in ((view, events), (f"{view}_empty", events.slice(0, 0))):
        frame = spark.createDataFrame(table).repartition(1).cache()
        frame.count()
        frame.createOrReplaceTempView(name)


def run_join(
    spark: SparkSession, name: str, query: str, events: int, expected: int, repeats: int
) -> Runs:
    """Time one query; a wrong count is an error, a long first run the only one."""
    wall: list[float] = []
    cpu: list[float] = []
    warmups = 0
    while len(wall) < repeats:
        cpu_start, start = tree_cpu_seconds(), time.perf_counter()
        found = spark.sql(query).collect()[0]["matches"]
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


def fixed_seconds(spark: SparkSession, query: str, repeats: int = 3) -> float:
    """What Spark takes for a query over no events: the least of several runs, after one."""
    taken = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        spark.sql(query).collect()
        taken.append(time.perf_counter() - start)
    return min(taken[1:])
