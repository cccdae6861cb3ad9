"""Many queries over one stream, together in a workload and each alone.

Timed: feeding Arrow batches of 100,000 rows to a running workload, and to running detectors one
after the other (a sample of the queries, times their number over the sample's). Not timed: making
the events, compiling, and the first batch, with which an engine is laid out. The sample's matches
are counted both ways before a time is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import cepheid
from benchmarks.harness import Answer, Clock, Contender, Ratio, Runs, WrongAnswerError, interleave
from benchmarks.options import Options
from benchmarks.report import Report
from benchmarks.workload import SEED, arrow_events

WINDOW = 10_000
KEYS = 1_000
VALUES = 100
TYPES = 20


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of queries of three steps, with a test of every step or without."""

    name: str
    count: int
    with_tests: bool
    text: str
    asked: float


SEQUENCE = "EVENT SEQ(E{0} x, E{1} y, E{2} z) WHERE [attr1]{3} WITHIN " + str(WINDOW)
CHAIN = (
    "SELECT * FROM E{0} x; E{1} y; E{2} z WHERE FILTER(x.attr1 = y.attr1), "
    "FILTER(y.attr1 = z.attr1){3}, (x, z) OCCURS WITHIN " + str(WINDOW)
)
KINDS = (
    Kind("1,000 sequences with tests", 1_000, True, SEQUENCE, 1 / 60),
    Kind("100 sequences without tests", 100, False, SEQUENCE, 1 / 2),
    Kind("1,000 chains of successors with tests", 1_000, True, CHAIN, 1 / 60),
    Kind("100 chains of successors without tests", 100, False, CHAIN, 1 / 2),
)


def run(options: Options) -> Report:
    """Measure every kind of query."""
    report = Report("many_queries", "many queries over one stream", options.quick)
    rows = 200_000 if options.quick else 1_000_000
    report.parameters |= {"rows": rows, "window": WINDOW, "keys": KEYS, "values": VALUES}
    batches = with_values(arrow_events(rows, KEYS))
    for kind in KINDS:
        if options.wants(kind.name.split(" ")[1]):
            measure(kind, batches, report, options)
    return report


def measure(kind: Kind, batches: list[pa.RecordBatch], report: Report, options: Options) -> None:
    """One kind of query: all together, and a sample of them alone."""
    count = kind.count // 10 if options.quick else kind.count
    texts = queries_of(kind, count)
    sample = texts[:: max(1, count // 10)]
    check(texts, sample, batches)
    events = sum(batch.num_rows for batch in batches[1:])
    together = Contender("together", events, lambda: _together(texts, batches))
    alone = Contender("a sample alone", events * len(sample), lambda: _alone(sample, batches))
    runs = report.keep(kind.name, interleave([together, alone], options.times(5), warmups=1))
    ratio = shared_cost(runs["together"], runs["a sample alone"], count)
    report.claim(f"{kind.name}: cost per event and query / alone", kind.asked, ratio, at_most=True)
    report.notes[f"{kind.name}: nanoseconds per event of all"] = round(
        runs["together"].median(Clock.CPU) / events * 1e9, 1
    )


def shared_cost(together: Runs, alone: Runs, count: int) -> Ratio:
    """What an event and query cost together, over what they cost alone; a ratio for each round."""
    rounds = [
        (one / together.events / count) / (other / alone.events)
        for one, other in zip(together.cpu_seconds, alone.cpu_seconds, strict=True)
    ]
    return Ratio(float(np.median(rounds)), min(rounds), max(rounds))


def queries_of(kind: Kind, count: int) -> list[str]:
    """Queries of random types, all different within a query, and random constants."""
    random = np.random.default_rng(SEED)
    texts = []
    for _ in range(count):
        types = random.choice(TYPES, 3, replace=False) + 1
        tests = ""
        if kind.with_tests:
            values = random.integers(0, VALUES, 3)
            pairs = zip("xyz", values, strict=True)
            if kind.text is SEQUENCE:
                tests = "".join(f" AND {name}.attr2 = {value}" for name, value in pairs)
            else:
                tests = "".join(f", FILTER({name}.attr2 = {value})" for name, value in pairs)
        texts.append(kind.text.format(*types, tests))
    return texts


def with_values(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The events with a second attribute of their own."""
    random = np.random.default_rng(SEED)
    return [
        batch.append_column("attr2", pa.array(random.integers(0, VALUES, batch.num_rows)))
        for batch in batches
    ]


def check(texts: Sequence[str], sample: Sequence[str], batches: list[pa.RecordBatch]) -> None:
    """The sample finds together what it finds alone, match by match."""
    workload = cepheid.Workload({str(n): text for n, text in enumerate(texts)})
    found = dict.fromkeys(sample, 0)
    for batch in batches:
        for name, matches in workload.feed(batch).items():
            if texts[int(name)] in found:
                found[texts[int(name)]] += len(matches)
    for name, matches in workload.close().items():
        if texts[int(name)] in found:
            found[texts[int(name)]] += len(matches)
    for text in sample:
        detector = cepheid.Detector(text)
        alone = sum(len(detector.feed(batch)) for batch in batches) + len(detector.close())
        if alone * texts.count(text) != found[text]:
            raise WrongAnswerError(f"{alone} matches alone, {found[text]} together: {text}")


def _together(texts: Sequence[str], batches: list[pa.RecordBatch]) -> Callable[[], Answer]:
    workload = cepheid.Workload(texts)
    workload.feed(batches[0])

    def feed() -> Answer:
        for batch in batches[1:]:
            _ = workload.feed(batch).total
        return None

    return feed


def _alone(texts: Sequence[str], batches: list[pa.RecordBatch]) -> Callable[[], Answer]:
    detectors = [cepheid.Detector(text) for text in texts]
    for detector in detectors:
        detector.feed(batches[0])

    def feed() -> Answer:
        for detector in detectors:
            for batch in batches[1:]:
                _ = len(detector.feed(batch))
        return None

    return feed
