"""Figure 11: queries that up to 40 nodes support, by placement; a calibrated simulation."""

from __future__ import annotations

import math
from pathlib import Path

from benchmarks.figures.drawing import axes_for, draw_lines, save
from benchmarks.figures.figure import Figure, Point, Record
from benchmarks.figures.next_fig11.cluster import (
    MACHINE_STEPS,
    Estimates,
    as_queries,
    supported,
)
from benchmarks.figures.next_workload.automata import poisson_sources
from benchmarks.figures.next_workload.pools import (
    ISSUED,
    REWRITTEN,
    Pool,
    as_batch,
    check_by_definition,
    fused_contender,
    random_pools,
)
from benchmarks.figures.next_workload.queries import RATES, WORKLOADS, Workload
from benchmarks.harness import interleave
from benchmarks.options import Options
from cepheid.model.strategy import Strategy

SEED = 2011
SIZE = 5
FUSED = 10
"""Queries that also run fused, to see that they find the same."""
ROBIN, GREEDY, REUSE = "Round robin", "Greedy", "Reuse"
GREEDY_REWRITE, REUSE_REWRITE = "Rewrite + Greedy", "Rewrite + Reuse"
BY_MODEL = "Greedy, told by the cost model"
SERIES: dict[str, tuple[str, Strategy, Estimates]] = {
    ROBIN: (ISSUED, Strategy.ROUND_ROBIN, "counted"),
    GREEDY: (ISSUED, Strategy.GREEDY_WITHOUT_REUSE, "counted"),
    REUSE: (ISSUED, Strategy.GREEDY, "counted"),
    GREEDY_REWRITE: (REWRITTEN, Strategy.GREEDY_WITHOUT_REUSE, "counted"),
    REUSE_REWRITE: (REWRITTEN, Strategy.GREEDY, "counted"),
    BY_MODEL: (ISSUED, Strategy.GREEDY_WITHOUT_REUSE, "model"),
}
PANELS: dict[str, tuple[Workload, int]] = {
    "next, 5 sink proxies": ("next", 5),
    "union, 1 sink proxy": ("union", 1),
    "union, 5 sink proxies": ("union", 5),
}
NEXT, UNION_1, UNION_5 = PANELS


def run(options: Options) -> Figure:
    """Add 5-operator queries to clusters of every size until something is overloaded."""
    figure = Figure(
        "next_fig11",
        "queries supported by up to 40 nodes (simulated), by placement",
        options.quick,
        folder="next_fig11",
    )
    nodes = (1, 4) if options.quick else (1, 2, 5, 10, 15, 20, 25, 30, 35, 40)
    most = {"next": 130, "union": 85} if options.quick else {"next": 2_400, "union": 420}
    seconds = 4 if options.quick else 20
    sources = poisson_sources(seconds, SEED)
    figure.parameters |= {
        "seed": SEED,
        "rates": RATES,
        "operators of a query": SIZE,
        "queries at most": most,
        "seconds of stream": seconds,
        "steps a second of a machine": MACHINE_STEPS,
        "simulated": True,
    }
    for workload, count in most.items():
        assert workload in WORKLOADS
        pools = random_pools(workload, SIZE, count, SEED, sources, seconds)
        figure.notes[f"{workload}: matches on a short stream, as by definition"] = (
            check_by_definition(pools[0].queries[:3], SEED)
        )
        figure.keep(
            f"{workload}, {FUSED} queries, fused",
            interleave(
                [
                    fused_contender(name, pool.queries[:FUSED], as_batch(sources))
                    for name, pool in zip((ISSUED, REWRITTEN), pools, strict=True)
                ],
                options.times(1, quick=1),
                warmups=0,
                expected=sum(each.matches for each in pools[0].runs[:FUSED]),
            ),
        )
        by_form = dict(zip((ISSUED, REWRITTEN), pools, strict=True))
        told = {
            (form, estimates): as_queries(by_form[form], estimates)
            for form, estimates in {(form, estimates) for form, _, estimates in SERIES.values()}
        }
        if workload == "next":
            _note_scanning(figure, pools[0], nodes, seconds)
        for panel in (name for name, (each, _) in PANELS.items() if each == workload):
            for series, (form, strategy, estimates) in SERIES.items():
                for size in nodes:
                    found = supported(
                        told[form, estimates], size, strategy, PANELS[panel][1], seconds
                    )
                    matches = sum(each.matches for each in pools[0].runs[: found.queries])
                    figure.points.append(
                        Point(
                            panel,
                            size,
                            series,
                            sum(map(len, sources.values())),
                            matches,
                            {"supported": found.queries},
                            stopped=found.full,
                        )
                    )
    claims(figure, nodes)
    return figure


def _note_scanning(figure: Figure, pool: Pool, nodes: tuple[int, ...], seconds: int) -> None:
    """What the cluster bears where instances scan: bursts that no placement can divide."""
    queries = as_queries(pool, "counted", "scanned")
    for series in (ROBIN, GREEDY, REUSE):
        strategy = SERIES[series][1]
        found = [supported(queries, n, strategy, 5, seconds, "scanned").queries for n in nodes]
        figure.notes[f"{series}, next as issued, instances scan; nodes: queries"] = ", ".join(
            f"{size}: {count}" for size, count in zip(nodes, found, strict=True)
        )
    heaviest = max(work.scanned for work in pool.works) / seconds
    figure.notes["steps a second of the heaviest operator, instances scan"] = round(heaviest)


def claims(figure: Figure, nodes: tuple[int, ...]) -> None:
    """N4 to N6."""
    last = nodes[-1]

    def queries(panel: str, size: float, series: str) -> int:
        return figure.point(panel, size, series).counters["supported"]

    def listed(panel: str, series: str) -> str:
        return ", ".join(f"{size}: {queries(panel, size, series)}" for size in nodes)

    beyond = [size for size in nodes if size >= 15] or list(nodes[-2:])
    flat = queries(NEXT, last, ROBIN) / queries(NEXT, beyond[0], ROBIN)
    figure.says(
        "N4",
        "next: round robin grows slowly up to 15 nodes and is flat thereafter",
        f"at most 1.2x the queries on {last} nodes as on {beyond[0]}",
        f"{flat:.2f}x; nodes: queries {listed(NEXT, ROBIN)}",
        holds=flat <= 1.2,
    )
    wide = [size for size in nodes if size >= 5] or [last]
    figure.says(
        "N4",
        "next: greedy placement supports more than round robin",
        "at every number of nodes from 5 on",
        f"nodes: queries {listed(NEXT, GREEDY)}",
        holds=all(queries(NEXT, n, GREEDY) > queries(NEXT, n, ROBIN) for n in wide),
    )
    figure.says(
        "N4",
        "next: reuse increases it further",
        "at every number of nodes from 5 on",
        f"nodes: queries {listed(NEXT, REUSE)}",
        holds=all(queries(NEXT, n, REUSE) > queries(NEXT, n, GREEDY) for n in wide),
    )
    for name, rewrite, paper in ((GREEDY, GREEDY_REWRITE, 0.24), (REUSE, REUSE_REWRITE, 0.34)):
        more = queries(NEXT, last, rewrite) / queries(NEXT, last, name) - 1
        figure.says(
            "N4",
            f"next: on 40 nodes rewriting improves {name} by {paper:.0%}",
            f"an improvement of at least {paper:.0%} on {last} nodes",
            f"{more:+.0%}; nodes: queries {listed(NEXT, rewrite)}",
            holds=more >= paper,
        )
    gain_of = {
        name: queries(NEXT, last, rewrite) / queries(NEXT, last, name)
        for name, rewrite in ((GREEDY, GREEDY_REWRITE), (REUSE, REUSE_REWRITE))
    }
    figure.says(
        "N4",
        "rewriting before reuse makes more reuse possible",
        "rewriting improves Reuse by more than it improves Greedy",
        f"{gain_of[REUSE] - 1:+.0%} against {gain_of[GREEDY] - 1:+.0%} on {last} nodes",
        holds=gain_of[REUSE] > gain_of[GREEDY],
    )
    figure.notes["queries on the largest cluster, greedy told by the cost model"] = (
        f"{queries(NEXT, last, BY_MODEL)} next, {queries(UNION_5, last, BY_MODEL)} union"
    )
    most = {s: queries(UNION_1, last, s) for s in SERIES}
    stops = {figure.point(UNION_1, last, s).stopped for s in SERIES}
    figure.says(
        "N5",
        "union saturates at around 80 queries: the sink proxy is full",
        "72 to 88 queries for every placement on the largest cluster, stopped by the sink proxy",
        f"{min(most.values())} to {max(most.values())}, stopped by: "
        + ", ".join(sorted(map(str, stops))),
        holds=all(72 <= each <= 88 for each in most.values()) and stops == {"sink proxy"},
    )
    apart = {
        size: max(
            queries(UNION_5, size, rewrite) / queries(UNION_5, size, name)
            for name, rewrite in ((GREEDY, GREEDY_REWRITE), (REUSE, REUSE_REWRITE))
        )
        - 1
        for size in nodes
    }
    near = min(nodes, key=lambda size: abs(size - 10))
    figure.says(
        "N5",
        "with 5 sink proxies rewriting improves union by up to 50% at about 10 nodes",
        f"+15% to +60% on {near} nodes",
        ", ".join(f"{size}: {each:+.0%}" for size, each in apart.items()),
        holds=0.15 <= apart[near] <= 0.6,
    )
    _arithmetic(figure)


def _arithmetic(figure: Figure) -> None:
    """N6, and the sums of N5."""
    mean = sum(RATES.values()) / len(RATES)
    figure.says(
        "N6",
        "a next query sends 32 events/s on average, a union of 6 sources 191; 80 of them 2,500 and "
        "15,000",
        "31.9, 191, 2,550 and 15,300",
        f"{mean:.1f}, {6 * mean:.0f}, {80 * mean:,.0f} and {80 * 6 * mean:,.0f}",
        holds=round(mean, 1) == 31.9 and round(6 * mean) == 191,
    )
    yearly = 27.612e9
    rate = yearly / (365.25 * 24 * 3600)
    peak = 2_100
    figure.says(
        "N6",
        "27.612e9 card transactions a year are 875 a second, 2,100 at peak with a deviation of 46",
        "875 and 46 (Poisson: the root of 2,100), the peak 2.4 times the mean",
        f"{rate:.0f} and {math.sqrt(peak):.1f}, {peak / rate:.2f} times",
        holds=round(rate) == 875 and round(math.sqrt(peak)) == 46,
    )


def draw(record: Record, path: Path) -> None:
    """Supported queries by the number of nodes."""
    picture, axes = axes_for([f"{panel} (simulated)" for panel in PANELS], height=4.0)
    for each, panel in zip(axes, PANELS, strict=True):
        draw_lines(each, record, panel, lambda point: point["counters"]["supported"], SERIES)
        each.set_xlabel("operator nodes")
        each.set_ylabel("5-operator queries supported")
        each.set_ylim(bottom=0)
    handles, labels = axes[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    picture.suptitle(
        "Calibrated simulation: counted work of each operator, machines of "
        f"{record['parameters']['steps a second of a machine']:,.0f} steps/s",
        fontsize=10,
    )
    save(picture, path)
