"""Pools of random queries, run as issued and as rewritten; both must find the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

import cepheid
from benchmarks.figures.next_workload.automata import (
    Metric,
    QueryRun,
    Stream,
    Work,
    poisson_sources,
    run_query,
)
from benchmarks.figures.next_workload.denotation import count_matches
from benchmarks.figures.next_workload.overload import is_overloaded, largest_factor
from benchmarks.figures.next_workload.queries import (
    Trees,
    Workload,
    as_text,
    crossing_rate,
    model_cost,
    random_query,
    rewritten,
    size_of,
)
from benchmarks.harness import Answer, Contender, WrongAnswerError
from cepheid.algebra.pattern import Pattern

ISSUED = "as issued"
REWRITTEN = "rewritten"

SHORT_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Pool:
    """Queries of one workload and size in one form, and what running them took."""

    queries: tuple[Pattern, ...]
    runs: tuple[QueryRun, ...]
    seconds: int

    @property
    def works(self) -> list[Work]:
        """What all operators did."""
        return [work for run in self.runs for work in run.works]

    @property
    def operators(self) -> int:
        """How many there are."""
        return sum(map(size_of, self.queries))

    @property
    def matches(self) -> int:
        """What all queries found."""
        return sum(run.matches for run in self.runs)

    @property
    def cpu_seconds(self) -> float:
        """CPU time of all kernels."""
        return sum(work.cpu_seconds for work in self.works)

    @property
    def model(self) -> float:
        """Steps a second by the cost model."""
        return sum(map(model_cost, self.queries))

    @property
    def model_crossing(self) -> float:
        """Events a second that come from sources or go to the sink, by the cost model."""
        return sum(map(crossing_rate, self.queries))

    def steps(self, metric: Metric) -> float:
        """Steps a second, counted."""
        return sum(run.steps(metric) for run in self.runs) / self.seconds

    def by_time(self, metric: Metric) -> np.ndarray:
        """Steps in each bin of time."""
        return sum((run.by_time(metric) for run in self.runs), start=np.zeros(1))


def random_pools(
    workload: Workload,
    operators: int,
    count: int,
    seed: int,
    sources: Mapping[str, Stream],
    seconds: int,
    trees: Trees = "shapes",
) -> tuple[Pool, Pool]:
    """The same random queries as issued and as rewritten; both must find the same."""
    numbers = random.Random(f"{workload} {operators} {seed}")
    issued = tuple(random_query(workload, operators, numbers, trees) for _ in range(count))
    both = []
    for queries in (issued, tuple(map(rewritten, issued))):
        runs = tuple(run_query(each, sources, seconds) for each in queries)
        both.append(Pool(queries, runs, seconds))
    check_same(issued, both[0].runs, both[1].runs)
    return both[0], both[1]


def check_same(
    queries: Sequence[Pattern], one: Sequence[QueryRun], other: Sequence[QueryRun]
) -> None:
    """Both forms of every query must find the same number of matches."""
    for query, left, right in zip(queries, one, other, strict=True):
        if left.matches != right.matches:
            msg = f"{as_text(query)}: {left.matches} matches as issued, {right.matches} rewritten"
            raise WrongAnswerError(msg)


def check_by_definition(queries: Sequence[Pattern], seed: int) -> int:
    """Compare operators and fused kernel with the definition on a short stream; what was found."""
    sources = poisson_sources(SHORT_SECONDS, seed)
    total = 0
    for query in queries:
        expected = count_matches(query, sources)
        ways = {
            "operators": run_query(query, sources, SHORT_SECONDS).matches,
            "rewritten": run_query(rewritten(query), sources, SHORT_SECONDS).matches,
            "fused": fused_matches(query, as_batch(sources)),
            "fused, rewritten": fused_matches(rewritten(query), as_batch(sources)),
        }
        if set(ways.values()) != {expected}:
            msg = f"{as_text(query)}: {expected} matches by definition, found {ways}"
            raise WrongAnswerError(msg)
        total += expected
    return total


def supported_operators(pool: Pool, metric: Metric, step_seconds: float) -> float:
    """Operators of such queries that one node runs without overload (the paper's criterion).

    The pool stands for the mixture: so many copies of it as the node bears, also a part of one.
    """
    work = pool.by_time(metric) * step_seconds
    return pool.operators * largest_factor(lambda factor: is_overloaded(work * factor, work))


def as_batch(sources: Mapping[str, Stream]) -> pa.RecordBatch:
    """All sources as one batch of events in order of time."""
    times = np.concatenate([stream.starts for stream in sources.values()])
    names = np.repeat(np.arange(len(sources)), [len(stream) for stream in sources.values()])
    order = np.argsort(times, kind="stable")
    types = pa.DictionaryArray.from_arrays(
        pa.array(names[order].astype(np.int8)), pa.array(list(sources))
    )
    return pa.record_batch({"type": types, "ts": pa.array(times[order])})


def fused_contender(name: str, queries: Sequence[Pattern], batch: pa.RecordBatch) -> Contender:
    """Queries as the product runs them: all operators of one in one kernel, fed with Arrow."""
    compiled = [cepheid.compile(as_text(query)) for query in queries]

    def prepare() -> Callable[[], Answer]:
        return partial(_feed, [cepheid.Detector(each) for each in compiled], batch)

    return Contender(name, batch.num_rows, prepare)


def fused_matches(query: Pattern, batch: pa.RecordBatch) -> Answer:
    """What the fused kernel finds."""
    return fused_contender("", [query], batch).prepare()()


def _feed(detectors: Sequence[cepheid.Detector], batch: pa.RecordBatch) -> int:
    return sum(len(each.feed(batch)) + len(each.close()) for each in detectors)


def seconds_per_step(seconds: int, seed: int, repeats: int = 3) -> float:
    """What one step takes: CPU time of operators' kernels over their steps, fastest of some runs.

    Measured on rewritten queries of all workloads and sizes, on a stream long enough that starting
    a kernel does not count.
    """
    sources = poisson_sources(seconds, seed)
    numbers = random.Random(seed)
    queries = [
        rewritten(random_query(workload, size, numbers))
        for workload in ("next", "mix", "union")
        for size in (2, 5, 10)
    ]
    times = []
    for _ in range(repeats):
        works = [work for query in queries for work in run_query(query, sources, seconds).works]
        steps = sum(work.indexed for work in works)
        times.append(sum(work.cpu_seconds for work in works) / steps)
    return min(times)
