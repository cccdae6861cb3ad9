"""Placement for real: queries without a key on two nodes, executors of a local Spark cluster.

Timed: one job that runs the whole workload over a DataFrame in memory, for each way to place its
queries. Not timed: making the events, starting the cluster, a first job. The number of matches must
be that of the same workload in one process. Figure 11 is a simulation; this is two real nodes.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import cepheid
from benchmarks.figures.next_workload.queries import RATES, as_text, random_query
from benchmarks.harness import Answer, Clock, Contender, interleave, speed_ratio
from benchmarks.options import Options
from benchmarks.report import Report
from cepheid.model.strategy import Strategy

NODES = 2
OPERATORS = 5
STRATEGIES = tuple(Strategy)


def run(options: Options) -> Report:
    """Place queries of five operators in three ways and run them."""
    from benchmarks.spark.pipelines import count_to_nowhere
    from cepheid.hosts.spark_session import local_session

    report = Report("placement", "queries placed on two executors", options.quick)
    count, seconds = (10, 60) if options.quick else (60, 600)
    report.parameters |= {"queries": count, "nodes": NODES, "seconds of events": seconds}
    texts = queries(count)
    events = poisson_events(seconds)
    expected = cepheid.Workload(texts, statistics=RATES).detect(events).num_rows
    spark = local_session(f"local-cluster[{NODES},1,1024]", **{"spark.executor.memory": "1g"})
    try:
        frame = spark.createDataFrame(events).repartition(NODES).cache()
        frame.count()

        def contender(strategy: Strategy) -> Contender:
            def prepare() -> Callable[[], Answer]:
                workload = cepheid.Workload(
                    texts, statistics=RATES, partitions=NODES, plan={"placement": strategy.value}
                )
                found = cepheid.detect(frame, workload)

                def job() -> Answer:
                    return count_to_nowhere(found)

                return job

            return Contender(strategy.value, events.num_rows, prepare)

        runs = report.keep(
            "two executors",
            interleave(
                [contender(each) for each in STRATEGIES],
                options.times(5),
                warmups=1,
                expected=expected,
            ),
        )
    finally:
        spark.stop()
    for each in STRATEGIES[:2]:
        report.notes[f"{each}: speed / round-robin"] = round(
            speed_ratio(runs[each], runs[Strategy.ROUND_ROBIN], Clock.WALL).value, 2
        )
    return report


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
