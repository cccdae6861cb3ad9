"""Windows pushed to the scan (SS), to construction (SC), to both or to neither."""

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
from benchmarks.figures.plans import plan
from benchmarks.options import Options

LENGTH = 3
PANEL = "W"
NEITHER, SCAN, CONSTRUCTION, BOTH = "neither", "SS", "SC", "SS and SC"


def run(options: Options) -> Figure:
    """Measure the four ways at every window size."""
    figure = Figure(
        "sase_windows",
        "windows pushed down to scan (SS) and construction (SC)",
        options.quick,
        folder="sase_windows",
    )
    domain = 10 if options.quick else 100
    events = 10_000 if options.quick else 200_000
    windows = (200, 1_000) if options.quick else (1_000, 3_000, 10_000, 30_000)
    figure.parameters |= {"seed": SEED, "events": events, "V1": domain, "L": LENGTH}
    batches = make_stream(events, domains=(domain,))
    for window in windows:
        query = sequence_query(LENGTH, window, where="[attr1]")
        ways = {
            name: (query, plan(window_in_scan=scan, window_in_construction=construction))
            for name, scan, construction in WAYS
        }
        compare(figure, options, PANEL, window, ways, batches, repeats=3)
    claims(figure, windows)
    return figure


WAYS = (
    (NEITHER, False, False),
    (SCAN, True, False),
    (CONSTRUCTION, False, True),
    (BOTH, True, True),
)


def claims(figure: Figure, windows: tuple[int, ...]) -> None:
    """The summary in section 5.3: pushing windows to both reduces intermediate results."""
    parts, fewer = [], True
    for window in windows:
        points = {name: figure.point(PANEL, window, name) for name, _, _ in WAYS}
        built = [points[name].sequences for name, _, _ in WAYS]
        parts.append(f"W={window:,}: " + " / ".join(f"{each:,}" for each in built))
        fewer &= points[BOTH].sequences < points[NEITHER].sequences
        pushed = points[SCAN].counters["pushed"], points[NEITHER].counters["pushed"]
        fewer &= pushed[0] < pushed[1] if window == windows[0] else pushed[0] <= pushed[1]
        fewer &= points[CONSTRUCTION].sequences < points[NEITHER].sequences
    figure.says(
        "windows",
        "pushing windows down to both scan and construction reduces intermediate results",
        "SC and both build fewer sequences than neither at every W; SS pushes fewer entries at the "
        "smallest W and never more",
        "sequences built by neither / SS / SC / both: " + "; ".join(parts),
        holds=fewer,
    )
    gain = {w: figure.speed(PANEL, w, BOTH) / figure.speed(PANEL, w, NEITHER) for w in windows}
    figure.says(
        "windows",
        "and is effective",
        "both faster than neither at every W",
        "; ".join(f"W={w:,}: {each:.1f}x" for w, each in gain.items()),
        holds=all(each > 1 for each in gain.values()),
    )


def draw(record: Record, path: Path) -> None:
    """Throughput, sequences built, entries pushed."""
    titles = ["throughput", "sequences built", "stack entries pushed"]
    picture, (speed, built, pushed) = axes_for(titles)
    draw_lines(speed, record, PANEL, throughput)
    draw_lines(built, record, PANEL, counted_per(10_000, "sequences"))
    draw_lines(pushed, record, PANEL, counted_per(10_000, "pushed"))
    speed.set_ylabel("throughput (million events / CPU s)")
    speed.set_ylim(bottom=0)
    built.set_ylabel("sequences per 10,000 events")
    log_scale(built, y=True)
    pushed.set_ylabel("entries per 10,000 events")
    pushed.set_ylim(bottom=0)
    for axes in (speed, built, pushed):
        log_scale(axes, x=True)
        axes.set_xlabel("window size W (events)")
        axes.legend(frameon=False, fontsize=9)
    save(picture, path)
