"""How a point of a figure is measured: counters and matches first, times second.

Every plan runs once with counters on; the plans must agree on the number of matches, or nothing is
kept. Then all run in turns, counters off. Timed is Detector.feed over batches of 100,000 events and
taking the number of matches; the clock is CPU time. Not timed: making the events, parsing,
compiling (the untimed warm-up does it), building the detector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

import cepheid
from benchmarks.figures.figure import Figure, Point, speed
from benchmarks.figures.plans import Plan
from benchmarks.harness import Answer, Contender, WrongAnswerError, interleave
from benchmarks.options import Options
from cepheid.generate import StreamParameters, generate_batches

SEED = 2006
TYPES = 20
BATCH_ROWS = 100_000


def make_stream(
    events: int, *, types: int = TYPES, domains: tuple[int, ...] = (), seed: int = SEED
) -> list[pa.RecordBatch]:
    """Events one tick apart, types and attributes uniform (the paper's Table 1)."""
    parameters = StreamParameters(
        events=events, types=types, attributes=len(domains), domain_sizes=domains, seed=seed
    )
    return list(generate_batches(parameters, BATCH_ROWS))


def sequence_query(length: int, window: int, *, where: str = "") -> str:
    """SEQ(E1 x1, ..., E_L x_L), the paper's template."""
    components = ", ".join(f"E{n} x{n}" for n in range(1, length + 1))
    test = f" WHERE {where}" if where else ""
    return f"EVENT SEQ({components}){test} WITHIN {window}"


def selectivity(
    window: int, length: int, types: int, domain: int = 1, *, sliding: bool = False
) -> float:
    """Formula (1) of the paper: results per event of a query with one equivalence test.

    It counts the results inside one batch of W events. A window that slides over the stream has
    C(W-1, L-1) ways to complete the sequence that an event ends: L times as many.
    """
    ways = 1.0
    for k in range(length):
        ways *= (window - k) / (k + 1)
    found = ways / (types**length * domain ** (length - 1) * window)
    return length * found if sliding else found


def feed(detector: cepheid.Detector, batches: Sequence[pa.RecordBatch]) -> Answer:
    """Feed all batches; the number of matches."""
    return sum(len(detector.feed(batch)) for batch in batches) + len(detector.close())


def contender(name: str, query: str, plan: Plan, batches: Sequence[pa.RecordBatch]) -> Contender:
    """One plan over one stream, with a new detector for each run."""
    compiled = cepheid.compile(query)
    rows = sum(batch.num_rows for batch in batches)
    return Contender(
        name, rows, lambda: partial(feed, cepheid.Detector(compiled, plan=plan), batches)
    )


def count(query: str, plan: Plan, batches: Sequence[pa.RecordBatch]) -> tuple[int, dict[str, int]]:
    """Matches and counters of one plan."""
    detector = cepheid.Detector(cepheid.compile(query), plan={**plan, "counting": True})
    found = feed(detector, batches)
    assert found is not None
    return found, detector.counters


def compare(
    figure: Figure,
    options: Options,
    panel: str,
    x: float,
    queries: Mapping[str, tuple[str, Plan]],
    batches: Sequence[pa.RecordBatch],
    *,
    repeats: int = 5,
) -> None:
    """Count and time several plans of one meaning; their points join the figure."""
    counted = {name: count(query, plan, batches) for name, (query, plan) in queries.items()}
    matches = {found for found, _ in counted.values()}
    if len(matches) != 1:
        found_by = {name: found for name, (found, _) in counted.items()}
        msg = (
            f"{figure.name}, {panel} {x:g}: the plans find different numbers of matches {found_by}"
        )
        raise WrongAnswerError(msg)
    expected = matches.pop()
    # A quick run proves that it works: it may time the counting kernels and compile no others.
    extra = {"counting": True} if options.quick else {}
    runs = figure.keep(
        f"{panel} {x:g}".strip(),
        interleave(
            [
                contender(name, query, {**plan, **extra}, batches)
                for name, (query, plan) in queries.items()
            ],
            options.times(repeats, quick=1),
            warmups=1,
            expected=expected,
        ),
    )
    for name, (_, counters) in counted.items():
        events = runs[name].events
        figure.points.append(Point(panel, x, name, events, expected, counters, speed(runs[name])))
