"""Figure 9: operators that one node supports with and without rewriting, by query size."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from statistics import fmean

from benchmarks.figures.drawing import PointRecord, axes_for, draw_lines, log_scale, points_of, save
from benchmarks.figures.figure import Figure, Point, Record
from benchmarks.figures.next_workload.automata import poisson_sources
from benchmarks.figures.next_workload.pools import (
    ISSUED,
    REWRITTEN,
    Pool,
    as_batch,
    check_by_definition,
    fused_contender,
    random_pools,
    seconds_per_step,
    supported_operators,
)
from benchmarks.figures.next_workload.queries import RATES, WORKLOADS, Trees, Workload
from benchmarks.harness import Clock, interleave
from benchmarks.options import Options

SEED = 2009
FUSED = 10
"""Queries of each pool that are also run fused."""

WAYS = {
    "supported_node": "instances scan, and events cross the network, as on the paper's node",
    "supported": "instances indexed",
}
"""Ways to count what a node bears."""

MODELLED = (
    ("scanned", "model", "instances that scan"),
    ("node", "model_node", "the paper's node, the network on both sides"),
)
"""What is counted, and what the cost model says of it."""

TREES: dict[Trees, str] = {
    "splits": "operands divided anywhere",
    "shapes": "every shape as likely",
}
"""Ways to draw random trees; the paper's sentence can be read as either."""


def panel_of(workload: Workload, trees: Trees) -> str:
    """The panel of a workload whose trees were drawn so."""
    return f"{workload}, {TREES[trees]}"


def run(options: Options) -> Figure:
    """Run random queries of every workload and size, as issued and rewritten."""
    figure = Figure(
        "next_fig09",
        "supported operators with and without rewriting, by query size",
        options.quick,
        folder="next_fig09",
    )
    sizes = (2, 8) if options.quick else (2, 3, 4, 5, 6, 7, 10, 15)
    rounds = 1 if options.quick else 5
    queries = 5 if options.quick else 30
    seconds = 6 if options.quick else 40
    step = seconds_per_step(4 if options.quick else 60, SEED, 1 if options.quick else 3)
    figure.parameters |= {
        "seed": SEED,
        "rates": RATES,
        "sizes": sizes,
        "runs": rounds,
        "queries of a run": queries,
        "seconds of stream": seconds,
        "seconds per step": step,
    }
    for workload in WORKLOADS:
        for trees, size in product(TREES, sizes):
            pools = [
                random_pools(
                    workload,
                    size,
                    queries,
                    SEED + number,
                    poisson_sources(seconds, SEED + number),
                    seconds,
                    trees,
                )
                for number in range(rounds)
            ]
            _keep(figure, options, panel_of(workload, trees), size, pools, step)
        shortest = random_pools(workload, 4, 4, SEED, poisson_sources(2, SEED), 2)[0]
        figure.notes[f"{workload}: matches on a short stream, as by definition"] = (
            check_by_definition(shortest.queries, SEED)
        )
    claims(figure, sizes)
    return figure


def _keep(
    figure: Figure,
    options: Options,
    panel: str,
    size: int,
    pools: list[tuple[Pool, Pool]],
    step: float,
) -> None:
    """The points of one size, and the timed runs of some of its queries fused."""
    seconds = pools[0][0].seconds
    sources = poisson_sources(seconds, SEED)
    batch = as_batch(sources)
    timed = figure.keep(
        f"{panel}, {size} operators, fused",
        interleave(
            [
                fused_contender(name, pool.queries[:FUSED], batch)
                for name, pool in zip((ISSUED, REWRITTEN), pools[0], strict=True)
            ],
            options.times(5, quick=1),
            warmups=0 if options.quick else 1,
            expected=sum(run.matches for run in pools[0][0].runs[:FUSED]),
        ),
    )
    for form, name in enumerate((ISSUED, REWRITTEN)):
        own = [pair[form] for pair in pools]
        borne = [supported_operators(each, "indexed", step) for each in own]
        counters = {
            "supported": round(fmean(borne)),
            "supported_scanned": round(
                fmean(supported_operators(each, "scanned", step) for each in own)
            ),
            "supported_node": round(fmean(supported_operators(each, "node", step) for each in own)),
            "use_percent": round(
                100
                * step
                * fmean(
                    each.steps("indexed") * count / each.operators
                    for each, count in zip(own, borne, strict=True)
                )
            ),
            "indexed": round(sum(each.steps("indexed") for each in own)),
            "scanned": round(sum(each.steps("scanned") for each in own)),
            "model": round(sum(each.model for each in own)),
            "node": round(sum(each.steps("node") for each in own)),
            "model_node": round(sum(each.model + each.model_crossing for each in own)),
            "kernel_us": round(1e6 * sum(each.cpu_seconds for each in own)),
            "fused_us": round(1e6 * timed[name].median(Clock.CPU)),
        }
        events = batch.num_rows * len(pools)
        matches = sum(each.matches for each in own)
        figure.points.append(Point(panel, size, name, events, matches, counters))


def gain(figure: Figure, panel: str, size: float, *counted: str) -> float:
    """Steps as issued over steps rewritten."""
    before, after = (
        sum(figure.point(panel, size, name).counters[each] for each in counted)
        for name in (ISSUED, REWRITTEN)
    )
    return before / after


def supported_gain(figure: Figure, panel: str, size: float, counted: str = "supported") -> float:
    """Operators supported after rewriting over those before."""
    return 1 / gain(figure, panel, size, counted)


def percent(ratio: float) -> str:
    """A gain as the paper writes it."""
    return f"{ratio - 1:+.0%}"


def claims(figure: Figure, sizes: tuple[int, ...]) -> None:
    """N1 and N2: by counted steps, on one node with a queue."""
    for trees, counted in product(TREES, WAYS):
        _claims_of_gains(figure, sizes, trees, counted)
    for trees, (counted, modelled, what) in product(TREES, MODELLED):
        _claim_of_model(figure, sizes, trees, counted, modelled, what)
    use = [point.counters["use_percent"] for point in figure.points]
    figure.says(
        "N1",
        "overload is an 80th percentile of delay above 1 s in a 10-s window",
        "a node is declared overloaded near full use: 80% to 115% of its time over the stream",
        f"{min(use)}% to {max(use)}%",
        holds=all(80 <= each <= 115 for each in use),
    )


def _claims_of_gains(figure: Figure, sizes: tuple[int, ...], trees: Trees, counted: str) -> None:
    """What rewriting adds to the operators that a node supports."""
    gains = {
        workload: [
            supported_gain(figure, panel_of(workload, trees), size, counted) for size in sizes
        ]
        for workload in WORKLOADS
    }
    way = f"{WAYS[counted]}; {TREES[trees]}"

    def listed(workload: Workload) -> str:
        found = zip(sizes, gains[workload], strict=True)
        return "size: gain " + ", ".join(f"{size}: {percent(each)}" for size, each in found)

    figure.says(
        "N2",
        "rewriting supports more next operators, up to +100%, and the gain grows with query size "
        f"({way})",
        "at least +80% at the largest size, and larger there than at the smallest",
        listed("next"),
        holds=gains["next"][-1] >= 1.8 and gains["next"][-1] > gains["next"][0],
    )
    figure.says(
        "N2",
        f"the gain for union is smaller, up to about +20% ({way})",
        "+10% to +40% at every size",
        listed("union"),
        holds=all(1.1 <= each <= 1.4 for each in gains["union"]),
    )
    figure.says(
        "N2",
        f"mix lies between next and union ({way})",
        "at every size",
        listed("mix"),
        holds=all(
            min(n, u) <= m <= max(n, u)
            for n, m, u in zip(gains["next"], gains["mix"], gains["union"], strict=True)
        ),
    )


def _claim_of_model(
    figure: Figure, sizes: tuple[int, ...], trees: Trees, counted: str, modelled: str, what: str
) -> None:
    """Whether the cost model tells the gain that is counted."""
    off = {
        (w, size): gain(figure, panel_of(w, trees), size, counted)
        / gain(figure, panel_of(w, trees), size, modelled)
        - 1
        for w in WORKLOADS
        for size in sizes
    }
    worst = max(off, key=lambda key: abs(off[key]))
    chains, largest = panel_of("next", trees), sizes[-1]
    figure.says(
        "N2",
        f"the cost model tells relative costs (section 4.2): {what}; {TREES[trees]}",
        "gain by counted steps within 20% of the model's gain",
        f"at {largest} next operators {gain(figure, chains, largest, counted):.2f}x against "
        f"{gain(figure, chains, largest, modelled):.2f}x; largest difference "
        f"{off[worst]:+.0%} ({worst[0]}, {worst[1]} operators)",
        holds=all(abs(each) <= 0.2 for each in off.values()),
    )


GAINS = {
    "cost model": "model",
    "steps, instances scan": "scanned",
    "the same and the network": "node",
    "steps, instances indexed": "indexed",
    "CPU time, kernel per operator": "kernel_us",
    "CPU time, fused kernel": "fused_us",
}


def draw(record: Record, path: Path) -> None:
    """Supported operators by both counts; below, the gain by every way to count."""
    counts = {"the paper's node": "supported_node", "instances indexed": "supported"}
    places = [(workload, way) for way in counts for workload in WORKLOADS]
    below = [(workload, trees) for trees in TREES for workload in WORKLOADS]
    titles = [f"{workload} queries: {way}" for workload, way in places]
    titles += [f"{workload}: gain, {TREES[trees]}" for workload, trees in below]
    picture, axes = axes_for(titles, columns=3, height=3.2)
    for each, (workload, way) in zip(axes, places, strict=False):
        counted = counts[way]
        panel = panel_of(workload, "splits")
        draw_lines(each, record, panel, lambda point, by=counted: point["counters"][by] / 1e3)
        each.set_ylim(bottom=0)
        each.set_ylabel("thousand operators on a node")
    for each, (workload, trees) in zip(axes[len(places) :], below, strict=True):
        panel = panel_of(workload, trees)
        draw_lines(each, {"points": _gains(record, panel)}, panel, lambda point: point["gain"])
        log_scale(each, y=True)
        each.set_yticks([1, 2, 5, 10], ["1x", "2x", "5x", "10x"])
        each.set_ylim(0.6, 16)
        each.set_ylabel("cost as issued / rewritten")
        each.set_xlabel("query size (operators)")
    axes[0].legend(frameon=False, fontsize=9)
    axes[-1].legend(frameon=False, fontsize=8, loc="upper left")
    save(picture, path)


def _gains(record: Record, panel: str) -> list[PointRecord]:
    before, after = (points_of(record, panel, name) for name in (ISSUED, REWRITTEN))
    return [
        {
            "panel": panel,
            "series": name,
            "x": one["x"],
            "gain": one["counters"][counter] / other["counters"][counter],
        }
        for name, counter in GAINS.items()
        for one, other in zip(before, after, strict=True)
    ]
