"""Figure 8: Basic and AIS while the domain size V1 of the equivalence attribute varies."""

from __future__ import annotations

from itertools import pairwise
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
from benchmarks.figures.figure import Figure, Record
from benchmarks.figures.measuring import (
    SEED,
    TYPES,
    compare,
    feed,
    make_stream,
    selectivity,
    sequence_query,
)
from benchmarks.figures.plans import AIS, BASIC, ais, basic
from benchmarks.options import Options
from cepheid.generate import StreamParameters, generate_batches

LENGTH = 3
PANEL = "V1"


def simulated_types(domain: int, length: int = LENGTH, types: int = TYPES) -> int:
    """The number of types that makes sequences as rare as an equivalence test over `domain` values.

    Formula (1) has T^L V^(L-1) below the line: T V^((L-1)/L) types and no test give the same.
    """
    return round(types * domain ** ((length - 1) / length))


def run(options: Options) -> Figure:
    """Measure both algorithms at every domain size, and formula (1) at three places."""
    figure = Figure(
        "sase_fig08",
        "Basic and AIS, varying the domain size V1",
        options.quick,
        folder="sase_fig08",
    )
    window = 500 if options.quick else 10_000
    events = 20_000 if options.quick else 3_000_000
    domains = (10, 100, 1_000) if options.quick else (100, 300, 1_000, 3_000, 10_000)
    figure.parameters |= {"seed": SEED, "events": events, "W": window, "L": LENGTH}
    figure.parameters["types"] = {str(v): simulated_types(v) for v in domains}
    query = sequence_query(LENGTH, window)
    for domain in domains:
        batches = make_stream(events, types=simulated_types(domain))
        plans = {AIS: (query, ais()), BASIC: (query, basic())}
        compare(figure, options, PANEL, domain, plans, batches)
    selectivities(figure, quick=options.quick)
    claims(figure, domains)
    return figure


def selectivities(figure: Figure, *, quick: bool) -> None:
    """S0: results per event in separate batches of W events, as formula (1) counts them."""
    cases = ((300, 5, 40), (300, 20, 200)) if quick else SELECTIVITY_CASES
    for window, domain, batches in cases:
        expected = selectivity(window, LENGTH, TYPES, domain)
        found, sliding = measured_selectivity(window, domain, batches)
        figure.says(
            "S0",
            f"selectivity by formula (1), W={window:,}, V1={domain:,}",
            f"{expected:.3g} results per event, within 25%",
            f"{found:.3g} in separate batches of W events ({batches} batches); "
            f"{sliding:.3g} when the window slides over them",
            holds=abs(found / expected - 1) <= 0.25,
        )


# W, V1, and how many batches of W events it takes to see some hundred results.
SELECTIVITY_CASES = ((10_000, 100, 20), (10_000, 10_000, 1_500), (100_000, 10_000, 20))


def measured_selectivity(window: int, domain: int, count: int) -> tuple[float, float]:
    """Results per event with a detector for each batch of W events, and with one for them all."""
    parameters = StreamParameters(
        events=window * count, types=TYPES, attributes=1, domain_sizes=domain, seed=SEED
    )
    compiled = cepheid.compile(sequence_query(LENGTH, window, where="[attr1]"))
    whole = cepheid.Detector(compiled)
    separate = sliding = 0
    for batch in generate_batches(parameters, window):
        separate += feed(cepheid.Detector(compiled), [batch]) or 0
        sliding += len(whole.feed(batch))
    return separate / parameters.events, sliding / parameters.events


def claims(figure: Figure, domains: tuple[int, ...]) -> None:
    """S1, by steps per event and by CPU time."""
    few, many = domains[0], domains[-1]
    work = {v: ratio_of_work(figure, v) for v in domains}
    times = {v: figure.speed(PANEL, v, AIS) / figure.speed(PANEL, v, BASIC) for v in domains}
    edges = {v: figure.point(PANEL, v, BASIC).per_event("edges") for v in (few, many)}
    figure.says(
        "S1",
        f"AIS outperforms Basic by a large factor at V1={few}",
        "about 18x; 5x or more counts as the same shape",
        f"{work[few]:.0f}x fewer steps per event, {times[few]:.1f}x the throughput",
        holds=work[few] >= 5 and times[few] >= 5,
    )
    falls = all(work[a] > work[b] for a, b in pairwise(domains))
    figure.says(
        "S1",
        "the advantage shrinks as V1 grows",
        "ratio of steps falls from each V1 to the next; edges per event near 0 at the end",
        ", ".join(f"{work[v]:.1f}x" for v in domains)
        + f"; Basic's edges per event {edges[few]:.3g} -> {edges[many]:.3g}",
        holds=falls,
    )
    figure.says(
        "S1",
        f"both are close at V1={many:,}",
        "at most 2x in throughput",
        f"{times[many]:.1f}x the throughput, {work[many]:.1f}x fewer steps",
        holds=times[many] <= 2,
    )


def ratio_of_work(figure: Figure, domain: int) -> float:
    """Steps per event of Basic over those of AIS."""
    return figure.point(PANEL, domain, BASIC).work / figure.point(PANEL, domain, AIS).work


def draw(record: Record, path: Path) -> None:
    """Throughput as in the paper, and the edges that explain it."""
    picture, (speed, edges) = axes_for(["throughput", "DAG edges visited per event"])
    draw_lines(speed, record, PANEL, throughput)
    draw_lines(edges, record, PANEL, counted_per(1, "edges"))
    speed.set_ylabel("throughput (million events / CPU s)")
    edges.set_ylabel("edges per event")
    log_scale(edges, y=True)
    speed.set_ylim(bottom=0)
    for axes in (speed, edges):
        log_scale(axes, x=True)
        axes.set_xlabel("domain size V1 of the equivalence attribute (simulated)")
        axes.legend(frameon=False, fontsize=9)
    save(picture, path)
