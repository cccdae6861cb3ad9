"""Detector.feed on one core, beside the memory-scan limit, NumPy, DuckDB and Polars.

Timed: feeding Arrow batches of 100,000 rows and taking the matches, batch by batch. Not timed:
making the events, compiling the query, building the detector, loading a table into DuckDB or
Polars. Ratios are of CPU time, so that threads give nobody an advantage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import TypeAlias

import numpy as np
import pyarrow as pa

import cepheid
from benchmarks.harness import (
    Answer,
    Clock,
    Contender,
    Ratio,
    Runs,
    WrongAnswerError,
    interleave,
    speed_ratio,
)
from benchmarks.micro.baselines import (
    DuckdbBuckets,
    NumpySequence,
    PolarsBuckets,
    Rows,
    polars_threads,
)
from benchmarks.micro.limits import memory_scan
from benchmarks.options import Options
from benchmarks.process_tree import PeakMemory
from benchmarks.report import Report
from benchmarks.workload import BATCH_ROWS, Columns, arrow_events, columns, query, with_strings
from cepheid.hosts.matches import Matches

WINDOW = 10_000
MEGABYTE = 1 << 20

Deliver: TypeAlias = Callable[[Matches], int]


def deliver_ids(matches: Matches) -> int:
    """Take every match as references to its events."""
    return len(matches.ids)


def deliver_table(matches: Matches) -> int:
    """Take every match as a row of the result table."""
    return matches.table().num_rows


def deliver_count(matches: Matches) -> int:
    """Take the number of matches only; they stay factorised."""
    return len(matches)


def feed(detector: cepheid.Detector, batches: list[pa.RecordBatch], deliver: Deliver) -> Answer:
    """Feed all batches and take the matches of each."""
    found = sum(deliver(detector.feed(batch)) for batch in batches)
    return found + deliver(detector.close())


def detector_contender(
    name: str, batches: list[pa.RecordBatch], window: int, deliver: Deliver
) -> Contender:
    """The engine, with a new detector for each run."""
    compiled = cepheid.compile(query(window))
    rows = sum(batch.num_rows for batch in batches)
    return Contender(
        name, rows, lambda: partial(feed, cepheid.Detector(compiled), batches, deliver)
    )


def scan_contender(events: Columns) -> Contender:
    """The memory-scan limit of the same rows."""

    def scan() -> Answer:
        memory_scan(events)
        return None

    return Contender("memory scan", len(events), lambda: scan)


def numpy_contender(events: Columns, window: int) -> Contender:
    """Sort and searchsorted, in the same batches."""
    batches = events.batches()

    def detect(sequence: NumpySequence) -> Answer:
        return sum(len(block[0]) for batch in batches for block in sequence.feed(batch))

    return Contender("NumPy", len(events), lambda: partial(detect, NumpySequence(window)))


def run(options: Options) -> Report:
    """Measure all cases of the in-process host."""
    report = Report("in_process", "Detector.feed on one core", options.quick)
    rows = 1_000_000 if options.quick else 10_000_000
    report.parameters |= {"rows": rows, "batch_rows": 100_000, "window": WINDOW}
    cases: dict[str, Callable[[Report, Options, int], None]] = {
        "V=1000": few_matches,
        "V=100": many_matches,
        "strings": string_columns,
        "heavy": heavy_output,
    }
    for name, case in cases.items():
        if options.wants(name):
            try:
                case(report, options, rows)
            except WrongAnswerError as error:
                report.failed(name, error)
    return report


def few_matches(report: Report, options: Options, rows: int) -> None:
    """V=1000: the cost of looking at events, with hardly a match."""
    batches = arrow_events(rows, 1000)
    events = columns(batches)
    same_matches(batches, events, WINDOW)
    runs = report.keep(
        "V=1000",
        interleave(
            [
                scan_contender(events),
                detector_contender("cepheid feed", batches, WINDOW, deliver_count),
                detector_contender("cepheid ids", batches, WINDOW, deliver_ids),
                detector_contender("cepheid table", batches, WINDOW, deliver_table),
                numpy_contender(events, WINDOW),
            ],
            options.times(9),
            warmups=2,
        ),
    )
    scan = runs["memory scan"]
    report.claim("V=1000, feed / memory scan", 1 / 5, cpu_ratio(runs["cepheid feed"], scan))
    report.claim("V=1000, ids / memory scan", 1 / 5, cpu_ratio(runs["cepheid ids"], scan))
    report.claim("V=1000, ids / NumPy", 3, cpu_ratio(runs["cepheid ids"], runs["NumPy"]))


def many_matches(report: Report, options: Options, rows: int) -> None:
    """V=100: 0.6 matches per event, delivered as references and as a table."""
    batches = arrow_events(rows, 100)
    events = columns(batches)
    same_matches(batches, events, WINDOW)
    wide = arrow_events(rows, 100, attributes=5)
    runs = report.keep(
        "V=100",
        interleave(
            [
                scan_contender(events),
                detector_contender("cepheid ids", batches, WINDOW, deliver_ids),
                detector_contender("cepheid table", batches, WINDOW, deliver_table),
                detector_contender("cepheid table, 5 attributes", wide, WINDOW, deliver_table),
                numpy_contender(events, WINDOW),
            ],
            options.times(9),
            warmups=2,
        ),
    )
    scan = runs["memory scan"]
    report.claim("V=100, ids / memory scan", 1 / 12, cpu_ratio(runs["cepheid ids"], scan))
    report.claim("V=100, table / memory scan", 1 / 80, cpu_ratio(runs["cepheid table"], scan))


def string_columns(report: Report, options: Options, rows: int) -> None:
    """V=1000 with types and keys as plain strings: what encoding them costs."""
    batches = arrow_events(rows, 1000)
    events = columns(batches)
    strings = with_strings(batches)
    same_matches(strings, events, WINDOW)
    runs = report.keep(
        "strings",
        interleave(
            [
                scan_contender(events),
                detector_contender("cepheid ids", strings, WINDOW, deliver_ids),
                numpy_contender(events, WINDOW),
            ],
            options.times(7),
            warmups=2,
        ),
    )
    ratio = cpu_ratio(runs["cepheid ids"], runs["memory scan"])
    report.claim("string types and keys, ids / memory scan", 1 / 40, ratio)


def heavy_output(report: Report, options: Options, rows: int) -> None:
    """Wide windows and few keys: the output is what costs, and what must not fill the memory."""
    if polars_threads() != 1:
        msg = f"Polars was imported with {polars_threads()} threads; set POLARS_MAX_THREADS=1"
        raise RuntimeError(msg)
    scale = 10 if options.quick else 1
    for window, domain, ids_too in ((100_000, 100, True), (10_000, 10, True), (100_000, 10, False)):
        compare_heavy(report, options, window // scale, domain, ids_too=ids_too)
        bounded_memory(report, window // scale, domain)


def compare_heavy(
    report: Report, options: Options, window: int, domain: int, *, ids_too: bool
) -> None:
    """Against the bucketed joins; with thousands of matches per event all are only counted."""
    name = f"W={window} V={domain}"
    # The joins need minutes for a window's worth of such output: two windows have to do.
    batches = arrow_events(max((4 if ids_too else 2) * window, 20_000), domain)
    events = columns(batches)
    detector_contender("warm-up", arrow_events(1_000, domain), window, deliver_ids).prepare()()
    duckdb, polars = DuckdbBuckets(events, window), PolarsBuckets(events, window)
    size = len(events)
    contenders = [detector_contender("cepheid count", batches, window, deliver_count)]
    if ids_too:
        contenders += [
            detector_contender("cepheid ids", batches, window, deliver_ids),
            Contender("DuckDB ids", size, lambda: lambda: rows_in(duckdb.matches())),
            Contender("Polars ids", size, lambda: lambda: rows_in(polars.matches(1))),
        ]
    contenders += [
        Contender("DuckDB count", size, lambda: duckdb.count),
        Contender("Polars count", size, lambda: polars.count),
    ]
    expected = numpy_contender(events, window).prepare()()
    runs = report.keep(
        name,
        interleave(
            contenders,
            options.times(3, quick=1),
            warmups=1 if ids_too and not options.quick else 0,
            expected=expected,
        ),
    )
    for what in ("ids", "count") if ids_too else ("count",):
        best = min(
            (runs[f"{peer} {what}"] for peer in ("DuckDB", "Polars")),
            key=lambda each: each.median(Clock.CPU),
        )
        ratio = cpu_ratio(runs[f"cepheid {what}"], best)
        report.claim(f"{name}, {what} / {best.name}", 5, ratio)


def bounded_memory(report: Report, window: int, domain: int) -> None:
    """Twice the events may not take more memory once the window is full."""
    growth = {windows: in_own_process(window, domain, windows) / MEGABYTE for windows in (4, 8)}
    report.notes[f"W={window} V={domain}, peak memory growth in MB by windows fed"] = growth
    # Below some megabytes the figure is the allocator's noise.
    ratio = max(growth[8], 64) / max(growth[4], 64)
    text = f"W={window} V={domain}, peak memory of 8 windows / of 4"
    report.claim(text, 1.25, Ratio(ratio, ratio, ratio), at_most=True)


def in_own_process(window: int, domain: int, windows: int) -> int:
    """Peak memory growth in a new process: in this one, freed memory would hide some of it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
        return child.submit(peak_growth, window, domain, windows).result()


def peak_growth(window: int, domain: int, windows: int) -> int:
    """Bytes by which resident memory grew while the detector ran, its kernel being compiled."""
    compiled = cepheid.compile(query(window))
    feed(cepheid.Detector(compiled), arrow_events(1_000, domain), deliver_count)
    batches = arrow_events(windows * window, domain, batch_rows=min(BATCH_ROWS, window))
    detector = cepheid.Detector(compiled)
    with PeakMemory() as peak:
        feed(detector, batches, deliver_count)
    return peak.growth


def same_matches(batches: list[pa.RecordBatch], events: Columns, window: int) -> None:
    """Raise WrongAnswerError unless engine and NumPy find the same matches in the first batches."""
    detector = cepheid.Detector(cepheid.compile(query(window)))
    sequence = NumpySequence(window)
    for number, part in enumerate(events.batches()[:5]):
        found = np.asarray(detector.feed(batches[number]).ids)
        right = [np.concatenate(column) for column in zip(*sequence.feed(part), strict=True)]
        if not np.array_equal(in_order(found.T), in_order(np.array(right))):
            msg = f"engine and NumPy find different matches in batch {number}"
            raise WrongAnswerError(msg)


def in_order(rows: np.ndarray) -> np.ndarray:
    """The columns of matches sorted by row numbers."""
    return rows[:, np.lexsort(rows[::-1])]


def rows_in(blocks: Iterator[Rows]) -> Answer:
    """The number of matches in all blocks."""
    return sum(len(block[0]) for block in blocks)


def cpu_ratio(fast: Runs, slow: Runs) -> Ratio:
    """Events per CPU second relative to another contender's."""
    return speed_ratio(fast, slow, Clock.CPU)
