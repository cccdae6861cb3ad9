"""What Figures 11 and 12 share: cepheid beside Spark's joins, normalised as in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

import cepheid
from benchmarks.figures.figure import Figure, Point, speed
from benchmarks.figures.joins import (
    MOST_PAIRS,
    MOST_STREAMS,
    PAIRS_PER_RUN,
    Join,
    cache_streams,
    fixed_seconds,
    run_join,
    streams,
)
from benchmarks.figures.measuring import make_stream
from benchmarks.harness import Answer, Clock, Contender, interleave
from benchmarks.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CEPHEID = "cepheid"
PLAIN = "Spark SQL self-join"
BUCKETED = "Spark SQL, time buckets"


def feed_ids(detector: cepheid.Detector, batches: Sequence[pa.RecordBatch]) -> Answer:
    """Feed all batches and take every match as references to its events."""
    return sum(len(detector.feed(batch).ids) for batch in batches) + len(detector.close().ids)


def time_cepheid(
    figure: Figure,
    options: Options,
    panel: str,
    x: float,
    series: str,
    query: str,
    domains: tuple[int, ...],
    events: int,
) -> None:
    """The plan cepheid chooses by itself, every match delivered as event references."""
    compiled = cepheid.compile(query)
    batches = make_stream(events, domains=domains)
    one = Contender(series, events, lambda: partial(feed_ids, cepheid.Detector(compiled), batches))
    runs = interleave([one], options.times(5, quick=1), warmups=1)
    figure.keep(f"{panel} {x:g} {series}", runs)
    figure.points.append(
        Point(panel, x, series, events, runs[series].matches, {}, speed(runs[series], Clock.CPU))
    )


class JoinedStreams:
    """Streams of one kind, known to Spark in as many copies as a join can take at once."""

    def __init__(self, spark: SparkSession, events: int, domains: dict[str, int]) -> None:
        """Each stream has `events` events with these attributes."""
        self._spark = spark
        self._events = events
        self._domains = domains
        self._streams: list[list[pa.RecordBatch]] = []
        self._views: dict[int, str] = {}
        self._matches: dict[str, list[int]] = {}

    def time(
        self,
        figure: Figure,
        options: Options,
        panel: str,
        x: float,
        series: str,
        join: Join,
        query: str,
    ) -> None:
        """Time a join; it must find what cepheid finds in the same streams."""
        pairs = join.pairs(self._events, self._domains)
        if pairs > MOST_PAIRS:
            stopped = f"not run: {pairs:.1g} pairs to compare"
            figure.points.append(Point(panel, x, series, self._events, None, {}, None, stopped))
            return
        copies = max(1, min(MOST_STREAMS, int(PAIRS_PER_RUN / max(pairs, 1))))
        if options.quick:
            copies = min(copies, 2)
        view = self._view(copies)
        events = copies * self._events
        fixed = fixed_seconds(self._spark, join.sql(f"{view}_empty"))
        runs = run_join(
            self._spark,
            series,
            join.sql(view),
            events,
            self._expected(query, copies),
            options.times(3, quick=1),
        )
        figure.keep(f"{panel} {x:g} {series}", {series: runs})
        figure.notes[f"{panel} {x:g} {series}: streams, seconds over no events"] = (copies, fixed)
        beyond = max(runs.median() - fixed, 0.001)
        figure.points.append(Point(panel, x, series, events, runs.matches, {}, events / beyond))

    def forget(self) -> None:
        """Give the cached events back."""
        self._spark.catalog.clearCache()

    def _first(self, count: int) -> list[list[pa.RecordBatch]]:
        if len(self._streams) < count:
            self._streams = streams(self._events, self._domains, count)
        return self._streams[:count]

    def _view(self, copies: int) -> str:
        if copies not in self._views:
            view = f"events_{copies}_" + "_".join(map(str, self._domains.values()))
            cache_streams(self._spark, view, self._first(copies), self._domains["attr1"])
            self._views[copies] = view
        return self._views[copies]

    def _expected(self, query: str, copies: int) -> int:
        known = self._matches.setdefault(query, [])
        for stream in self._first(copies)[len(known) :]:
            known.append(feed_ids(cepheid.Detector(cepheid.compile(query)), stream) or 0)
        return sum(known[:copies])


def normalised(figure: Figure, panel: str, series: str, lightest: float) -> dict[float, float]:
    """Throughput over that at the lightest load, for every x that was timed."""
    base = figure.speed(panel, lightest, series)
    return {
        p.x: p.events_per_second / base
        for p in figure.points
        if (p.panel, p.series) == (panel, series) and p.events_per_second is not None
    }


def normalised_gross(
    figure: Figure, panel: str, series: str, lightest: float
) -> dict[float, float]:
    """The same of the raw times, in which a join's fixed cost is not taken off."""
    timed = [p.x for p in figure.points if p.series == series and p.events_per_second is not None]
    raw = {x: figure.runs[f"{panel} {x:g} {series}"][0].events_per_second() for x in timed}
    return {x: value / raw[lightest] for x, value in raw.items()}
