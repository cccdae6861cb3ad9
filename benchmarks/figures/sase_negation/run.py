"""What 0 to 2 negations cost, on top of the sequences and pushed down into the scan."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures.drawing import axes_for, draw_lines, save, throughput
from benchmarks.figures.figure import Figure, Record
from benchmarks.figures.measuring import SEED, compare, make_stream
from benchmarks.figures.plans import plan
from benchmarks.options import Options

ON_TOP, PUSHED = "NG on top (as in the paper)", "pushed down to the scan"
COMPONENTS = (
    "E1 x1, E2 x2, E3 x3",
    "E1 x1, !(E4 n1), E2 x2, E3 x3",
    "E1 x1, !(E4 n1), E2 x2, !(E5 n2), E3 x3",
)


def panel_of(domain: int) -> str:
    """The panel of one domain size."""
    return f"V1={domain:,}"


def run(options: Options) -> Figure:
    """Measure both places of negation for several domain sizes."""
    figure = Figure("sase_negation", "0 to 2 negations", options.quick, folder="sase_negation")
    window = 1_000 if options.quick else 10_000
    events = 20_000 if options.quick else 500_000
    domains = (3, 100) if options.quick else (30, 100, 10_000)
    figure.parameters |= {"seed": SEED, "events": events, "W": window, "domains": domains}
    ways = {ON_TOP: plan(negation_in_scan=False), PUSHED: plan()}
    for domain in domains:
        batches = make_stream(events, domains=(domain,))
        for count, components in enumerate(COMPONENTS):
            query = f"EVENT SEQ({components}) WHERE [attr1] WITHIN {window}"
            queries = {name: (query, way) for name, way in ways.items()}
            compare(figure, options, panel_of(domain), count, queries, batches)
    claims(figure, domains)
    return figure


def claims(figure: Figure, domains: tuple[int, ...]) -> None:
    """S5, its second half: the cost of negation against the number of sequences."""
    most = len(COMPONENTS) - 1
    few, many = panel_of(domains[-1]), panel_of(domains[0])

    def kept(panel: str, name: str) -> float:
        return figure.speed(panel, most, name) / figure.speed(panel, 0, name)

    built = {panel: figure.point(panel, 0, ON_TOP).per_event("sequences") for panel in (few, many)}
    figure.says(
        "S5",
        "negation on top is cheap while few sequences are built",
        f"two negations keep at least 0.5 of the throughput at {few}",
        f"{kept(few, ON_TOP):.2f} kept, {built[few]:.2g} sequences per event",
        holds=kept(few, ON_TOP) >= 0.5,
    )
    figure.says(
        "S5",
        "and becomes more significant otherwise",
        f"a smaller share is kept at {many}",
        f"{kept(many, ON_TOP):.2f} kept, {built[many]:.2g} sequences per event",
        holds=kept(many, ON_TOP) < kept(few, ON_TOP),
    )
    gain = figure.speed(many, most, PUSHED) / figure.speed(many, most, ON_TOP)
    figure.says(
        "S5",
        "which suggests pushing negation down to the scan (left open by the paper)",
        f"faster than on top at {many}, two negations",
        f"{gain:.1f}x the throughput",
        holds=gain > 1,
    )


def draw(record: Record, path: Path) -> None:
    """Throughput by the number of negations, a panel per domain size."""
    panels = list(dict.fromkeys(p["panel"] for p in record["points"]))
    picture, every = axes_for(panels)
    for axes, panel in zip(every, panels, strict=True):
        draw_lines(axes, record, panel, throughput)
        axes.set_xticks(range(len(COMPONENTS)))
        axes.set_xlabel("number of negations")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=9)
    every[0].set_ylabel("throughput (million events / CPU s)")
    save(picture, path)
