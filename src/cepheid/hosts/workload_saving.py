"""What running queries together saves, measured: all of them over some events, then each alone.

Steps of different kernels cannot be compared, so what is compared is CPU time. The fastest of a few
rounds counts: the first one may compile, and what else runs on a machine only ever adds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from cepheid.hosts.in_process import Detector
from cepheid.hosts.ingest import EventBatch
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.explain_workload import Measured

_ROUNDS = 3


def measure_saving(
    batches: Sequence[EventBatch],
    together: Callable[[], int],
    queries: Sequence[CompiledQuery],
    options: Options,
) -> Measured:
    """CPU seconds of `together`, which returns its matches, and of a detector for each query."""
    shared, matches = _fastest(together)
    alone = [_fastest(partial(_matches_of, query, batches, options)) for query in queries]
    return Measured(
        events=sum(each.batch.num_rows for each in batches),
        together=shared,
        apart=sum(seconds for seconds, _ in alone),
        matches=matches,
        matches_apart=sum(found for _, found in alone),
    )


def _matches_of(query: CompiledQuery, batches: Sequence[EventBatch], options: Options) -> int:
    detector = Detector.for_host(query, options, may_keep_totals=True)
    return sum(len(detector.feed(each)) for each in batches) + len(detector.close())


def _fastest(run: Callable[[], int]) -> tuple[float, int]:
    return min(_timed(run) for _ in range(_ROUNDS))


def _timed(run: Callable[[], int]) -> tuple[float, int]:
    began = time.process_time()
    found = run()
    return time.process_time() - began, found
