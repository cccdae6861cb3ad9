"""Figure 9: Basic and AIS while the window W varies."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures.drawing import (
    axes_for,
    counted_per,
    draw_lines,
    log_scale,
    save,
    throughput,
)
from benchmarks.figures.figure import Figure, Record
from benchmarks.figures.measuring import SEED, compare, make_stream, sequence_query
from benchmarks.figures.plans import AIS, BASIC, ais, basic
from benchmarks.figures.sase_fig08.run import LENGTH, simulated_types
from benchmarks.options import Options

PANEL = "W"


def run(options: Options) -> Figure:
    """Measure both algorithms at every window size."""
    figure = Figure(
        "sase_fig09", "Basic and AIS, varying the window W", options.quick, folder="sase_fig09"
    )
    domain = 30 if options.quick else 10_000
    events = 20_000 if options.quick else 3_000_000
    windows = (200, 1_000, 2_000) if options.quick else (10_000, 25_000, 50_000, 75_000, 100_000)
    types = simulated_types(domain)
    figure.parameters |= {"seed": SEED, "events": events, "V1": domain, "types": types, "L": LENGTH}
    batches = make_stream(events, types=types)
    for window in windows:
        query = sequence_query(LENGTH, window)
        plans = {AIS: (query, ais()), BASIC: (query, basic())}
        compare(figure, options, PANEL, window, plans, batches)
    claims(figure, windows)
    return figure


def claims(figure: Figure, windows: tuple[int, ...]) -> None:
    """S2, by steps per event and by CPU time."""
    first, last = windows[0], windows[-1]

    def growth(name: str) -> float:
        return figure.point(PANEL, last, name).work / figure.point(PANEL, first, name).work

    def kept(name: str) -> float:
        return figure.speed(PANEL, last, name) / figure.speed(PANEL, first, name)

    figure.says(
        "S2",
        f"as W grows from {first:,} to {last:,}, Basic falls much faster than AIS",
        "Basic's steps grow at least twice as much as AIS's, and it keeps a smaller share of its "
        "throughput",
        f"steps per event grow {growth(BASIC):.1f}x (Basic) and {growth(AIS):.2f}x (AIS); "
        f"throughput kept: {kept(BASIC):.2f} (Basic), {kept(AIS):.2f} (AIS)",
        holds=growth(BASIC) >= 2 * growth(AIS) and kept(BASIC) < kept(AIS),
    )


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
        axes.set_xlabel("window size W (events)")
        axes.legend(frameon=False, fontsize=9)
    save(picture, path)
