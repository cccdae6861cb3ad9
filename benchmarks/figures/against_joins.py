"""What Figures 11 and 12 share: cepheid beside Spark's joins, normalised as in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

import cepheid
from benchmarks.figures.figure import Figure, Point, speed
from benchmarks.figures.measuring import make_stream
from benchmarks.harness import Answer, Clock, Contender, interleave
from benchmarks.options import Options

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


def matches_in(query: str, batches: Sequence[pa.RecordBatch]) -> int:
    """How many matches the joins have to find."""
    found = feed_ids(cepheid.Detector(cepheid.compile(query)), batches)
    assert found is not None
    return found


def normalised_gross(
    figure: Figure, panel: str, series: str, lightest: float
) -> dict[float, float]:
    """The same of the raw times, in which a join's fixed cost is not taken off."""
    timed = [p.x for p in figure.points if p.series == series and p.events_per_second is not None]
    raw = {x: figure.runs[f"{panel} {x:g} {series}"][0].events_per_second() for x in timed}
    return {x: value / raw[lightest] for x, value in raw.items()}


def normalised(figure: Figure, panel: str, series: str, lightest: float) -> dict[float, float]:
    """Throughput over that at the lightest load, for every x that was timed."""
    base = figure.speed(panel, lightest, series)
    return {
        p.x: p.events_per_second / base
        for p in figure.points
        if (p.panel, p.series) == (panel, series) and p.events_per_second is not None
    }
