"""Constants are arguments of a kernel: 1,000 queries of one shape compile it once.

Counted: kernel sources the engine loads and functions numba compiles (numba's own events, so the
count does not rest on the engine's word). Timed: compiling and running the first query, in a cache
of its own, and each of the others.
"""

import os
import statistics
import tempfile
import time
from dataclasses import dataclass

import numpy as np

import cepheid
from benchmarks.harness import Ratio, WrongAnswerError
from benchmarks.options import Options
from benchmarks.report import Report
from benchmarks.workload import Columns, arrow_events, columns

ROWS = 2_000
DOMAIN = 5


@dataclass(frozen=True, slots=True)
class Constants:
    """What one query differs in from the others."""

    window: int
    least: int
    key: int

    def text(self) -> str:
        """The query."""
        return (
            f"EVENT SEQ(E1 x, E2 y, E3 z) WHERE [attr1] AND x.attr2 > {self.least}"
            f" AND y.attr1 != {self.key} WITHIN {self.window}"
        )


def run(options: Options) -> Report:
    """Compile and run queries that differ in their constants alone."""
    report = Report("compile_once", "1,000 queries of one shape compile once", options.quick)
    count = 50 if options.quick else 1_000
    report.parameters |= {"queries": count, "rows": ROWS}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["CEPHEID_CACHE"] = cache  # nothing compiled by an earlier run is found
        seconds, after_first, after_all = run_queries(count)
    added = {name: after_all[name] - after_first[name] for name in after_all}
    report.notes["compiled for the first query"] = after_first
    report.notes["compiled for all the others"] = added
    report.notes["seconds of the first query"] = seconds[0]
    report.notes["median seconds of the others"] = statistics.median(seconds[1:])
    for name, more in added.items():
        report.claim(f"{name} beyond the first query's", 0, Ratio(more, more, more), at_most=True)
    return report


def run_queries(count: int) -> tuple[list[float], dict[str, int], dict[str, int]]:
    """Run all queries; return their times and what was compiled after the first and after all."""
    from numba.core import event

    from cepheid.kernels.compiled import counters

    batch = arrow_events(ROWS, DOMAIN, attributes=2)[0]
    keys, second = columns([batch]), columns([batch], key="attr2").key
    seconds = []
    after_first: dict[str, int] = {}
    recorder = event.RecordingListener()  # type: ignore[no-untyped-call]
    loaded = counters.loaded

    def compiled() -> dict[str, int]:
        begun = [each for _, each in recorder.buffer if each.is_start]
        return {"kernel sources": counters.loaded - loaded, "numba compilations": len(begun)}

    with event.install_listener("numba:compile", recorder):
        for number in range(count):
            constants = Constants(200 + number % 700, number % (DOMAIN - 1), 1 + number % DOMAIN)
            start = time.perf_counter()
            found = len(cepheid.Detector(cepheid.compile(constants.text())).feed(batch))
            seconds.append(time.perf_counter() - start)
            if number % 97 == 0:
                check(constants, found, keys, second)
            if number == 0:
                after_first = compiled()
        return seconds, after_first, compiled()


def check(constants: Constants, found: int, events: Columns, second: np.ndarray) -> None:
    """Raise WrongAnswerError unless plain loops over the definition count the same matches."""
    right = 0
    rows = [np.flatnonzero(events.type == number) for number in range(3)]
    for x in rows[0][second[rows[0]] > constants.least]:
        for y in rows[1][(rows[1] > x) & (events.key[rows[1]] == events.key[x])]:
            if events.key[y] != constants.key:
                z = rows[2][(rows[2] > y) & (events.key[rows[2]] == events.key[x])]
                right += int((events.time[z] - events.time[x] < constants.window).sum())
    if found != right:
        msg = f"{constants.text()}: {found} matches found, {right} by definition"
        raise WrongAnswerError(msg)
