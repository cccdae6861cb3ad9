"""Predicates pushed down or left to a selection: equivalence, simple and parameterised ones."""

from __future__ import annotations

import time
from pathlib import Path

import cepheid
from benchmarks.figures.drawing import (
    axes_for,
    counted_per,
    draw_lines,
    log_scale,
    save,
    throughput,
)
from benchmarks.figures.figure import Figure, Point, Record
from benchmarks.figures.measuring import SEED, compare, count, make_stream, sequence_query
from benchmarks.figures.plans import Plan, plan
from benchmarks.options import Options

LENGTH = 3
EQUIVALENCE, SIMPLE, PARAMETERISED = "equivalence", "simple", "parameterised"
NOTHING, PAIS = "nothing pushed down", "PAIS"
IN_SCAN, IN_CONSTRUCTION, IN_SELECTION = "in the scan", "in construction", "in Selection"
SIMPLE_DOMAIN = 10


def run(options: Options) -> Figure:
    """Measure the three kinds of predicate."""
    figure = Figure(
        "sase_predicates",
        "predicates pushed down, or left to Selection",
        options.quick,
        folder="sase_predicates",
    )
    window = 1_000 if options.quick else 10_000
    events = 20_000 if options.quick else 1_000_000
    figure.parameters |= {"seed": SEED, "events": events, "W": window, "L": LENGTH}
    parts = {
        EQUIVALENCE: equivalence_tests,
        SIMPLE: simple_predicates,
        PARAMETERISED: parameterised_predicates,
    }
    for name, part in parts.items():
        if options.wants(name):
            part(figure, options, window, events)
    return figure


def equivalence_tests(figure: Figure, options: Options, window: int, events: int) -> None:
    """S3: no equivalence test pushed down at all, stopped after so many sequences or seconds."""
    domain = 10 if options.quick else 100
    most_sequences = 10**6 if options.quick else 10**9
    most_seconds = 5.0 if options.quick else 60.0
    query = sequence_query(LENGTH, window, where="[attr1]")
    stream = make_stream(events, domains=(domain,))
    matches, _ = count(query, plan(), stream)  # compiles, too
    started = time.process_time()
    again, counters = count(query, plan(), stream)
    seconds = time.process_time() - started
    assert again == matches
    figure.points.append(
        Point(EQUIVALENCE, domain, PAIS, events, matches, counters, events / seconds)
    )
    figure.points.append(
        until(
            figure,
            query,
            plan(partition="none", predicates="selection"),
            domain,
            events,
            most_sequences,
            most_seconds,
        )
    )
    pais = figure.point(EQUIVALENCE, domain, PAIS)
    nothing = figure.point(EQUIVALENCE, domain, NOTHING)
    per_event = nothing.per_event("sequences")
    needed = 9 * window  # the paper's runs take 9 batches of W events at the least
    slower = (pais.events_per_second or 0) / (nothing.events_per_second or 1)
    figure.says(
        "S3",
        "with no equivalence test pushed down too many sequences are built",
        "10^8 or more in the 9 batches of W events that a run takes",
        f"{per_event:,.0f} per event, {per_event * needed:.2g} in 9 W events "
        f"(PAIS: {pais.per_event('sequences') * needed:,.0f})",
        holds=per_event * needed >= 1e8,
    )
    figure.says(
        "S3",
        "pushing one down is a must: without it the paper's run did not complete",
        "100x slower than PAIS, or worse",
        f"{slower:,.0f}x slower; {nothing.stopped or 'the stream ended'}, in "
        f"{nothing.events / (nothing.events_per_second or 1):.1f} CPU s",
        holds=slower >= 100,
    )


def until(
    figure: Figure,
    query: str,
    way: Plan,
    domain: int,
    events: int,
    most_sequences: int,
    most_seconds: float,
) -> Point:
    """Feed small batches until the stream or the patience ends; check against PAIS so far."""
    batches = [
        batch.slice(at, 1_000)
        for batch in make_stream(events, domains=(domain,))
        for at in range(0, batch.num_rows, 1_000)
    ]
    compiled = cepheid.compile(query)
    cepheid.Detector(compiled, plan={**way, "counting": True}).feed(batches[0])  # compiles
    detector = cepheid.Detector(compiled, plan={**way, "counting": True})
    reference = cepheid.Detector(compiled, plan=plan())
    matches = right = fed = 0
    seconds = 0.0
    stopped = None
    for batch in batches:
        started = time.process_time()
        matches += len(detector.feed(batch))
        seconds += time.process_time() - started
        right += len(reference.feed(batch))
        fed += batch.num_rows
        sequences = detector.counters["sequences"]
        if sequences >= most_sequences or seconds >= most_seconds:
            stopped = f"stopped after {sequences:,} sequences, {fed:,} of {events:,} events"
            break
    if matches != right:
        msg = f"{figure.name}: {matches} matches without push-down, {right} with PAIS"
        raise AssertionError(msg)
    return Point(
        EQUIVALENCE, domain, NOTHING, fed, matches, detector.counters, fed / seconds, stopped
    )


def simple_predicates(figure: Figure, options: Options, window: int, events: int) -> None:
    """S5: a simple predicate of varying selectivity, kept from the stacks or tested on top."""
    domain = 10 if options.quick else 100
    stream = make_stream(events, domains=(domain, 1, SIMPLE_DOMAIN))
    limits = (1, 10) if options.quick else (1, 2, 5, 10)
    for limit in limits:
        query = sequence_query(LENGTH, window, where=f"[attr1] AND x2.attr3 <= {limit}")
        ways = {
            IN_SCAN: (query, plan()),
            IN_SELECTION: (query, plan(simple_in_scan=False)),
        }
        compare(figure, options, SIMPLE, limit / SIMPLE_DOMAIN, ways, stream)
    selectivities = [limit / SIMPLE_DOMAIN for limit in limits]
    gains = {
        x: figure.speed(SIMPLE, x, IN_SCAN) / figure.speed(SIMPLE, x, IN_SELECTION)
        for x in selectivities
    }
    fewer = all(
        figure.point(SIMPLE, x, IN_SCAN).sequences < figure.point(SIMPLE, x, IN_SELECTION).sequences
        for x in selectivities
        if x < 1
    )
    figure.says(
        "S5",
        "pushing simple predicates down always helps",
        "fewer sequences and at least the throughput (0.95x) at every selectivity",
        "throughput " + ", ".join(f"{g:.2f}x at {x:g}" for x, g in gains.items()),
        holds=fewer and all(gain >= 0.95 for gain in gains.values()),
    )


def parameterised_predicates(figure: Figure, options: Options, window: int, events: int) -> None:
    """S5: an inequality between two events, tested in construction or on top."""
    domains = (3, 100) if options.quick else (10, 100, 1_000, 10_000)
    where = f"[attr1] AND x2.attr3 <= {SIMPLE_DOMAIN // 2} AND x2.attr4 < x3.attr4"
    query = sequence_query(LENGTH, window, where=where)
    ways = {
        IN_CONSTRUCTION: (query, plan()),
        IN_SELECTION: (query, plan(predicates="selection")),
    }
    for domain in domains:
        stream = make_stream(events, domains=(domain, 1, SIMPLE_DOMAIN, 100))
        compare(figure, options, PARAMETERISED, domain, ways, stream)
    cost = {
        v: figure.speed(PARAMETERISED, v, IN_CONSTRUCTION)
        / figure.speed(PARAMETERISED, v, IN_SELECTION)
        for v in domains
    }
    figure.says(
        "S5",
        "other parameterised predicates cost little in Selection once the rest is pushed down",
        "construction at most 1.25x as fast as Selection wherever V1 >= 100",
        "; ".join(f"V1={v:,}: {each:.2f}x" for v, each in cost.items()),
        holds=all(each <= 1.25 for v, each in cost.items() if v >= 100),
    )


def draw(record: Record, path: Path) -> None:
    """Sequences without push-down, then throughput for simple and parameterised predicates."""
    titles = ["equivalence test", "simple predicate", "parameterised predicate"]
    picture, (first, second, third) = axes_for(titles)
    built = counted_per(10_000, "sequences")
    bars = [p for p in record["points"] if p["panel"] == EQUIVALENCE]
    names = [p["series"] + ("\n(stopped early)" if p["stopped"] else "") for p in bars]
    drawn = first.bar(names, [built(p) or 0 for p in bars], color=["#0b5fa5", "#c2410c"], width=0.5)
    first.bar_label(drawn, [f"{built(p) or 0:,.0f}" for p in bars], fontsize=9)
    log_scale(first, y=True)
    first.set_ylabel("sequences built per 10,000 events")
    draw_lines(second, record, SIMPLE, throughput)
    second.set_xlabel("selectivity of the simple predicate")
    draw_lines(third, record, PARAMETERISED, throughput)
    log_scale(third, x=True)
    third.set_xlabel("domain size V1 of attr1")
    for axes in (second, third):
        axes.set_ylabel("throughput (million events / CPU s)")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=9)
    save(picture, path)
