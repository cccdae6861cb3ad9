"""Placement for real: queries without a key on two nodes, executors of a local Spark cluster.

Timed: one job that runs the whole workload over a DataFrame in memory, for each way to place its
queries; and for queries that have costly parts in common, whose composites are rare, with these
parts cut off to run once and with every query whole. Not timed: making the events, starting the
cluster, a first job. The number of matches must be that of the same workload in one process.
Figure 11 is a simulation; this is two real nodes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
from benchmarks.figures.next_workload.queries import RATES, as_text, random_query
from benchmarks.harness import Answer, Clock, Contender, Runs, interleave, speed_ratio
from benchmarks.options import Options
from benchmarks.report import Report
from cepheid.model.strategy import Strategy

NODES = 2
OPERATORS = 5
STRATEGIES = tuple(Strategy)
PARTS = range(4)
WAITING = 1000
"""First events of a part that wait at any time."""

PART_RATES = {f"A{n}": 1.0 for n in PARTS} | {f"B{n}": 10.0 for n in PARTS}
CUT, WHOLE = "cut", "whole"


def run(options: Options) -> Report:
    """Place queries of five operators in three ways, and others with and without cuts."""
    from cepheid.hosts.spark_session import local_session

    report = Report("placement", "queries placed on two executors", options.quick)
    report.parameters["nodes"] = NODES
    spark = local_session(
        f"local-cluster[{NODES},1,1024]",
        # The driver's is that of its JVM, which other benchmarks of one call share.
        **{"spark.executor.memory": "1g", "spark.driver.memory": "4g"},
    )
    try:
        if options.wants("strategies"):
            _strategies(spark, report, options)
        if options.wants("cuts"):
            _cuts(spark, report, options)
    finally:
        spark.stop()
    return report


def _strategies(spark: Any, report: Report, options: Options) -> None:
    count, seconds = (10, 60) if options.quick else (60, 600)
    report.parameters |= {"queries": count, "seconds of events": seconds}
    plans = {str(each): {"placement": each.value} for each in STRATEGIES}
    events = poisson_events(seconds)
    runs = report.keep(
        "two executors", _timed(spark, queries(count), events, RATES, plans, options)
    )
    for each in STRATEGIES[:2]:
        report.notes[f"{each}: speed / round-robin"] = round(
            speed_ratio(runs[each], runs[Strategy.ROUND_ROBIN], Clock.WALL).value, 2
        )


def _cuts(spark: Any, report: Report, options: Options) -> None:
    count = 40_000 if options.quick else 440_000
    report.parameters |= {"events of shared parts": count, "shared parts": len(PARTS)}
    plans = {CUT: {}, WHOLE: {"cuts": False}}
    events = part_events(count)
    runs = report.keep(
        "shared parts", _timed(spark, queries_of_parts(), events, PART_RATES, plans, options)
    )
    ratio = speed_ratio(runs[CUT], runs[WHOLE], Clock.WALL)
    report.notes["parts cut off: speed / every query whole"] = round(ratio.value, 2)


def _timed(
    spark: Any,
    texts: Sequence[str],
    events: pa.Table,
    rates: Mapping[str, float],
    plans: Mapping[str, Mapping[str, Any]],
    options: Options,
) -> dict[str, Runs]:
    """The same workload with other plan options, by name."""
    from benchmarks.spark.pipelines import count_to_nowhere

    expected = cepheid.Workload(list(texts), statistics=rates).detect(events).num_rows
    frame = spark.createDataFrame(events).repartition(NODES).cache()
    frame.count()

    def contender(name: str, plan: Mapping[str, Any]) -> Contender:
        def prepare() -> Callable[[], Answer]:
            workload = cepheid.Workload(
                list(texts), statistics=rates, partitions=NODES, plan=dict(plan)
            )
            found = cepheid.detect(frame, workload)

            def job() -> Answer:
                return count_to_nowhere(found)

            return job

        return Contender(name, events.num_rows, prepare)

    contenders = [contender(name, plan) for name, plan in plans.items()]
    try:
        return interleave(contenders, options.times(5), warmups=1, expected=expected, tree=True)
    finally:
        frame.unpersist()


def queries_of_parts() -> list[str]:
    """Every part before every other one."""
    texts = []
    for one, other in permutations(PARTS, 2):
        pattern = "; ".join(f"(A{n} a{n}; B{n} b{n})" for n in (one, other))
        ticks = WAITING * int(sum(PART_RATES.values()))
        tests = [
            f"FILTER(a{n}.v + b{n}.v = 1000000), (a{n}, b{n}) OCCURS WITHIN {ticks}"
            for n in (one, other)
        ]
        texts.append(f"SELECT * FROM {pattern} WHERE {', '.join(tests)}")
    return texts


def part_events(count: int) -> pa.Table:
    """One event per tick; of a hundred first events of a part about one is followed."""
    random = np.random.default_rng(10)
    kinds = np.array(list(PART_RATES))
    shares = np.array(list(PART_RATES.values()))
    return pa.table(
        {
            "type": pa.array(kinds[random.choice(len(kinds), count, p=shares / shares.sum())]),
            "ts": pa.array(np.arange(count)),
            "v": pa.array(random.integers(0, 1_000_000, count)),
        }
    )


def queries(count: int) -> list[str]:
    """Queries of the paper's kind `next`, every third one of them asked for twice."""
    numbers = random.Random(9)
    texts = [as_text(random_query("next", OPERATORS, numbers)) for _ in range(count)]
    return [texts[n - 1] if n % 3 == 2 else text for n, text in enumerate(texts)]


def poisson_events(seconds: int) -> pa.Table:
    """Events of the eight sources in order of time, in microseconds."""
    random = np.random.default_rng(9)
    times, kinds = [], []
    for name, rate in RATES.items():
        own = np.cumsum(random.exponential(1e6 / rate, int(rate * seconds)))
        times.append(own.astype(np.int64))
        kinds.append(np.full(len(own), name))
    order = np.argsort(np.concatenate(times), kind="stable")
    return pa.table(
        {
            "type": pa.array(np.concatenate(kinds)[order]),
            "ts": pa.array(np.concatenate(times)[order]),
            "id": pa.array(np.arange(len(order))),
        }
    )
