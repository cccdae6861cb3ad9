"""The scan host on Parquet files beside a bare Spark scan of the same columns and filter.

Timed: reading, detecting and counting all matches, nothing collected. Not timed: starting Spark,
writing the files. Both read all columns of the files, because a match carries its events.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cepheid
from benchmarks.harness import Answer, Clock, Contender, interleave, speed_ratio
from benchmarks.options import Options
from benchmarks.report import Report
from benchmarks.spark.event_files import EventFiles
from benchmarks.spark.pipelines import count_to_nowhere, relevant, to_nowhere
from benchmarks.workload import SEED, query
from cepheid.generate import StreamParameters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOW = 10_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Files, query and what it must find."""

    name: str
    path: Path
    window: int
    key: str
    expected: int


def event_files(options: Options) -> EventFiles:
    """20 million events; attr1 suits the narrow window, attr2 the wide ones."""
    rows = 200_000 if options.quick else 20_000_000
    domains = (1_000, rows // 20)
    return EventFiles(
        StreamParameters(events=rows, attributes=2, domain_sizes=domains, seed=SEED), options.data
    )


def measure_scan(spark: SparkSession, report: Report, options: Options) -> None:
    """Measure the asked figure, and report the layouts that are hard for a scan."""
    events = event_files(options)
    rows = events.parameters.events
    files, small = (4, 100) if options.quick else (20, 10_000)
    narrow = events.matches(WINDOW)
    ordered = events.ordered(files)
    wide = {share: rows * share // 100 for share in (10, 100)}
    layouts = [
        Layout("ordered", ordered, WINDOW, "attr1", narrow),
        *(
            Layout(
                f"window {share}% of the span",
                ordered,
                window,
                "attr2",
                events.matches(window, "attr2"),
            )
            for share, window in wide.items()
        ),
        Layout("shuffled files", events.shuffled(files), WINDOW, "attr1", narrow),
        Layout(f"{small} small files", events.ordered(small), WINDOW, "attr1", narrow),
    ]
    for layout in layouts:
        group = f"scan, {layout.name}"
        try:
            measure_layout(spark, report, options, layout, rows)
        except Exception as error:  # the other layouts are still worth their time
            report.failed(group, error)


def measure_layout(
    spark: SparkSession, report: Report, options: Options, layout: Layout, rows: int
) -> None:
    """Time one layout; only the ordered files have a figure to reach."""
    is_asked = layout.name == "ordered"
    compiled = cepheid.compile(query(layout.window, layout.key))

    def bare() -> Answer:
        to_nowhere(relevant(spark.read.parquet(str(layout.path))))
        return None

    def scan() -> Answer:
        return count_to_nowhere(cepheid.scan(spark, str(layout.path), compiled))

    group = f"scan, {layout.name}"
    runs = report.keep(
        group,
        interleave(
            [
                Contender("bare Spark scan", rows, lambda: bare),
                Contender("cepheid.scan", rows, lambda: scan),
            ],
            options.times(7 if is_asked else 3, quick=1),
            warmups=2 if is_asked else 1,
            expected=layout.expected,
            tree=True,
        ),
    )
    ratio = speed_ratio(runs["cepheid.scan"], runs["bare Spark scan"], Clock.WALL)
    if is_asked:
        report.claim("scan of ordered Parquet / bare Spark scan", 0.75, ratio)
    else:
        report.notes[f"{group}: speed / bare Spark scan"] = round(ratio.value, 3)
