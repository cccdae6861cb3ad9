"""Figure 10: the highest rate of events with and without rewriting, by the number of queries."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median

import numpy as np

from benchmarks.figures.drawing import axes_for, draw_lines, log_labels, log_scale, save
from benchmarks.figures.figure import Figure, Point, Record, speed
from benchmarks.figures.next_workload.automata import BINS_PER_SECOND, Metric, poisson_sources
from benchmarks.figures.next_workload.overload import is_overloaded, largest_factor
from benchmarks.figures.next_workload.pools import (
    ISSUED,
    REWRITTEN,
    Pool,
    as_batch,
    check_by_definition,
    fused_contender,
    random_pools,
    seconds_per_step,
)
from benchmarks.figures.next_workload.queries import RATES, WORKLOADS, Workload
from benchmarks.harness import interleave
from benchmarks.options import Options

SEED = 2010
SIZE = 5
NODE = "the paper's node"
FUSED = "fused kernel"
_BIN_SECONDS = 0.005
_OBSERVED_SECONDS = 30.0


def run(options: Options) -> Figure:
    """Throughput of one node for every workload and number of queries."""
    figure = Figure(
        "next_fig10",
        "highest rate of events with and without rewriting, by the number of queries",
        options.quick,
        folder="next_fig10",
    )
    counts = (4, 12) if options.quick else (10, 20, 50, 100, 200)
    most_fused = 4 if options.quick else 50
    seconds = 6 if options.quick else 40
    step = seconds_per_step(4 if options.quick else 60, SEED, 1 if options.quick else 3)
    sources = poisson_sources(seconds, SEED)
    figure.parameters |= {
        "seed": SEED,
        "rates": RATES,
        "operators of a query": SIZE,
        "seconds of stream": seconds,
        "seconds per step": step,
    }
    for workload in WORKLOADS:
        pools = random_pools(workload, SIZE, counts[-1], SEED, sources, seconds)
        for count in counts:
            _keep_simulated(figure, workload, count, pools, step)
        for count in counts:
            if count <= most_fused:
                _keep_fused(figure, options, workload, count, pools, as_batch(sources))
        figure.notes[f"{workload}: matches on a short stream, as by definition"] = (
            check_by_definition(pools[0].queries[:4], SEED)
        )
    claims(figure, counts)
    return figure


def highest_rate(pool: Pool, count: int, metric: Metric, step_seconds: float) -> float:
    """Events a second of all sources that a node bears for the first queries of a pool.

    Faster sources send the same events in less time: without windows an operator's steps do not
    depend on it. The stream is repeated until it fills the time that is observed.
    """
    work = Pool(pool.queries[:count], pool.runs[:count], pool.seconds).by_time(metric)
    work = work * step_seconds

    def is_too_fast(rate: float) -> bool:
        group = max(1, round(_BIN_SECONDS * BINS_PER_SECOND * rate))
        bin_seconds = group / BINS_PER_SECOND / rate
        bins = int(_OBSERVED_SECONDS / bin_seconds)
        repeats = -(-bins * group // len(work))
        tiled = np.tile(work, repeats)[: bins * group].reshape(bins, group).sum(axis=1)
        return is_overloaded(tiled, tiled, bin_seconds)

    return sum(RATES.values()) * largest_factor(is_too_fast)


def _keep_simulated(
    figure: Figure, workload: Workload, count: int, pools: tuple[Pool, Pool], step: float
) -> None:
    for name, pool in zip((ISSUED, REWRITTEN), pools, strict=True):
        part = Pool(pool.queries[:count], pool.runs[:count], pool.seconds)
        matches = part.matches
        for metric, series in (("indexed", name), ("node", f"{name}, {NODE}")):
            counters = {"steps": round(part.steps(metric))}
            figure.points.append(
                Point(
                    workload,
                    count,
                    series,
                    round(sum(RATES.values()) * pool.seconds),
                    matches,
                    counters,
                    highest_rate(pool, count, metric, step),
                )
            )


def _keep_fused(
    figure: Figure,
    options: Options,
    workload: Workload,
    count: int,
    pools: tuple[Pool, Pool],
    batch: object,
) -> None:
    runs = figure.keep(
        f"{workload}, {count} queries, fused",
        interleave(
            [
                fused_contender(f"{name}, {FUSED}", pool.queries[:count], batch)
                for name, pool in zip((ISSUED, REWRITTEN), pools, strict=True)
            ],
            options.times(5, quick=1),
            warmups=0 if options.quick else 1,
            expected=sum(run.matches for run in pools[0].runs[:count]),
        ),
    )
    for name, each in runs.items():
        figure.points.append(
            Point(workload, count, name, each.events, each.matches, {}, speed(each))
        )


def claims(figure: Figure, counts: tuple[int, ...]) -> None:
    """N3: by the highest rate without overload."""

    def gains(workload: str, suffix: str = "") -> list[float]:
        return [
            figure.speed(workload, count, REWRITTEN + suffix)
            / figure.speed(workload, count, ISSUED + suffix)
            for count in counts
            if any(
                (p.panel, p.x, p.series) == (workload, count, ISSUED + suffix)
                for p in figure.points
            )
        ]

    def listed(found: list[float]) -> str:
        return ", ".join(f"{n}: {each:.2f}x" for n, each in zip(counts, found, strict=False))

    node, fused = f", {NODE}", f", {FUSED}"
    for text, suffix in (("", ""), (f" ({NODE})", node), (f" (CPU time, {FUSED})", fused)):
        found = gains("next", suffix)
        figure.says(
            "N3",
            f"rewriting doubles the throughput of next in many cases{text}",
            "1.8x or more at half of the numbers of queries",
            f"queries: gain {listed(found)}",
            holds=median(found) >= 1.8,
        )
    for text, suffix in (("", ""), (f" ({NODE})", node)):
        union = gains("union", suffix)
        figure.says(
            "N3",
            f"about +20% on average for union{text}",
            "+10% to +40% on average",
            f"queries: gain {listed(union)}",
            holds=1.1 <= fmean(union) <= 1.4,
        )
    figure.notes["union: gain of CPU time, fused"] = listed(gains("union", fused))
    for text, suffix in (("", ""), (f" ({NODE})", node)):
        means = {w: fmean(gains(w, suffix)) for w in WORKLOADS}
        figure.says(
            "N3",
            f"mix lies between the two{text}",
            "on average over the numbers of queries",
            ", ".join(f"{w}: {each:.2f}x" for w, each in means.items()),
            holds=min(means["next"], means["union"])
            <= means["mix"]
            <= max(means["next"], means["union"]),
        )


ROWS = {"the paper's node": f", {NODE}", "a node, instances indexed": ""}
ROWS |= {"measured, fused kernel": f", {FUSED}"}


def draw(record: Record, path: Path) -> None:
    """Throughput by the number of queries: simulated nodes above, the product's kernel below."""
    titles = [f"{workload}: {row}" for row in ROWS for workload in WORKLOADS]
    picture, axes = axes_for(titles, columns=3, height=3.0)
    places = [(suffix, workload) for suffix in ROWS.values() for workload in WORKLOADS]
    for each, (suffix, workload) in zip(axes, places, strict=True):
        names = {f"{name}{suffix}": name for name in (ISSUED, REWRITTEN)}
        shown = [
            {**point, "series": names[point["series"]]}
            for point in record["points"]
            if point["series"] in names
        ]
        draw_lines(
            each, {"points": shown}, workload, lambda point: point["events_per_second"] / 1e3
        )
        is_measured = suffix == f", {FUSED}"
        each.set_ylabel("thousand events / CPU s" if is_measured else "thousand events / s")
        each.set_xlabel("5-operator queries on the node")
        log_scale(each, x=True)
        log_labels(each)
        counts = sorted({point["x"] for point in shown})
        each.set_xticks(counts, [f"{count:g}" for count in counts])
        each.legend(frameon=False, fontsize=8, loc="lower left")
    save(picture, path)
