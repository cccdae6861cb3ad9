"""Figure 10: three strategies for a second equivalence test, and the combined key."""

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
from benchmarks.figures.plans import (
    COMBINED,
    DYNAMIC,
    MULTI_PAIS,
    PAIS_SELECTION,
    combined,
    dynamic,
    multi_pais,
    pais_selection,
)
from benchmarks.options import Options

LENGTH = 3
SECOND_DOMAINS = (20, 5)
STRATEGIES = (PAIS_SELECTION, MULTI_PAIS, DYNAMIC)


def panel_of(second: int) -> str:
    """The panel of one domain size of attr2."""
    return f"V2={second}"


def run(options: Options) -> Figure:
    """Measure the strategies at every V1, for both V2."""
    figure = Figure(
        "sase_fig10",
        "strategies for a second equivalence test",
        options.quick,
        folder="sase_fig10",
    )
    window = 1_000 if options.quick else 10_000
    events = 20_000 if options.quick else 1_000_000
    firsts = (3, 10, 30) if options.quick else (10, 30, 100, 500, 1_000, 3_000, 10_000)
    figure.parameters |= {"seed": SEED, "events": events, "W": window, "L": LENGTH}
    query = sequence_query(LENGTH, window, where="[attr1, attr2]")
    plans = {
        PAIS_SELECTION: (query, pais_selection()),
        MULTI_PAIS: (query, multi_pais()),
        DYNAMIC: (query, dynamic()),
        COMBINED: (query, combined()),
    }
    for second in SECOND_DOMAINS:
        for first in firsts:
            batches = make_stream(events, domains=(first, second))
            compare(figure, options, panel_of(second), first, plans, batches)
    claims(figure, firsts)
    return figure


def claims(figure: Figure, firsts: tuple[int, ...]) -> None:
    """S4: sequences built, then throughput."""
    wide = panel_of(SECOND_DOMAINS[0])
    selective = [v for v in firsts if v <= 500]
    built = {
        v: tuple(figure.point(wide, v, name).sequences for name in STRATEGIES) for v in selective
    }
    figure.says(
        "S4",
        "sequences built: Selection > Multi-PAIS > Dynamic Filtering (V2=20)",
        "this order at every V1 <= 100; beyond, where hardly any are built, no other one",
        "; ".join(f"V1={v}: {a:,} > {b:,} > {c:,}" for v, (a, b, c) in built.items()),
        holds=all(a > b > c or (v > 100 and a >= b >= c) for v, (a, b, c) in built.items()),
    )

    def relative(panel: str, first: int, name: str, to: str = PAIS_SELECTION) -> float:
        return figure.speed(panel, first, name) / figure.speed(panel, first, to)

    low = firsts[0]
    figure.says(
        "S4",
        "Dynamic Filtering is the fastest of the three while V1 is small",
        f"fastest of the three at V1={low}, V2=20",
        f"{relative(wide, low, DYNAMIC):.2f}x Selection's throughput, "
        f"{relative(wide, low, DYNAMIC, MULTI_PAIS):.2f}x Multi-PAIS's",
        holds=relative(wide, low, DYNAMIC) > 1 and relative(wide, low, DYNAMIC, MULTI_PAIS) > 1,
    )
    figure.says(
        "S4",
        "Multi-PAIS is slower than Selection although it builds fewer sequences",
        f"less than 1x Selection's throughput at V1={low}, V2=20",
        f"{relative(wide, low, MULTI_PAIS):.2f}x",
        holds=relative(wide, low, MULTI_PAIS) < 1,
    )
    high = [v for v in firsts if v > 500] or [firsts[-1]]
    spread = {
        v: max(figure.speed(wide, v, n) for n in STRATEGIES)
        / min(figure.speed(wide, v, n) for n in STRATEGIES)
        for v in high
    }
    figure.says(
        "S4",
        "beyond V1=500 the three perform similarly",
        "fastest at most 1.5x the slowest",
        "; ".join(f"V1={v:,}: {ratio:.2f}x" for v, ratio in spread.items()),
        holds=all(ratio <= 1.5 for ratio in spread.values()),
    )
    narrow = panel_of(SECOND_DOMAINS[1])
    figure.says(
        "S4",
        "Multi-PAIS's overhead is magnified at V2=5",
        f"a smaller share of Selection's throughput than at V2=20, at V1={low}",
        f"{relative(narrow, low, MULTI_PAIS):.2f}x at V2=5, "
        f"{relative(wide, low, MULTI_PAIS):.2f}x at V2=20",
        holds=relative(narrow, low, MULTI_PAIS) < relative(wide, low, MULTI_PAIS),
    )


def draw(record: Record, path: Path) -> None:
    """(a) throughput and (b) sequences built, for both V2."""
    panels = [panel_of(second) for second in SECOND_DOMAINS]
    titles = [f"({letter}) {what}, {p}" for p in panels for letter, what in TITLES]
    picture, axes = axes_for(titles, columns=2)
    for number, panel in enumerate(panels):
        speed, built = axes[2 * number : 2 * number + 2]
        draw_lines(speed, record, panel, throughput)
        draw_lines(built, record, panel, counted_per(10_000, "sequences"))
        speed.set_ylabel("throughput (million events / CPU s)")
        speed.set_ylim(bottom=0)
        built.set_ylabel("sequences per 10,000 events")
        log_scale(built, y=True)
        for each in (speed, built):
            log_scale(each, x=True)
            each.set_xlabel("domain size V1 of attr1")
            each.legend(frameon=False, fontsize=8)
    save(picture, path)


TITLES = (("a", "throughput"), ("b", "sequences built"))
