"""Figure 11: normalised throughput of cepheid and of self-joins while the length L varies."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures.against_joins import (
    BUCKETED,
    CEPHEID,
    PLAIN,
    JoinedStreams,
    normalised,
    normalised_gross,
    time_cepheid,
)
from benchmarks.figures.drawing import axes_for, draw_lines, log_scale, save
from benchmarks.figures.figure import Figure, Record
from benchmarks.figures.joins import Join, one_core_session
from benchmarks.figures.measuring import SEED, sequence_query
from benchmarks.options import Options

PANEL = "L"
LENGTHS = (2, 3, 4, 5, 6)
DOMAIN = 100


def run(options: Options) -> Figure:
    """Measure cepheid, then the joins on the same kind of stream."""
    figure = Figure(
        "sase_fig11", "varying the sequence length L", options.quick, folder="sase_fig11"
    )
    window = 1_000 if options.quick else 10_000
    domain = 10 if options.quick else DOMAIN
    events = 20_000 if options.quick else 500_000
    joined = 5 * window if options.quick else 10 * window
    lengths = (2, 3, 4) if options.quick else LENGTHS
    figure.parameters |= {
        "seed": SEED,
        "W": window,
        "V1": domain,
        "events": events,
        "events joined": joined,
    }
    for length in lengths:
        query = sequence_query(length, window, where="[attr1]")
        time_cepheid(figure, options, PANEL, length, CEPHEID, query, (domain,), events)
    if options.wants("joins"):
        time_joins(figure, options, lengths, window, domain, joined)
        claims(figure, lengths)
    return figure


def time_joins(
    figure: Figure,
    options: Options,
    lengths: tuple[int, ...],
    window: int,
    domain: int,
    events: int,
) -> None:
    """Both joins at every length; one that would take too long is left out."""
    with one_core_session() as spark:
        stream = JoinedStreams(spark, events, {"attr1": domain})
        for bucketed, series in ((False, PLAIN), (True, BUCKETED)):
            for length in lengths:
                join = Join(length, window, ("attr1",), bucketed=bucketed)
                query = sequence_query(length, window, where="[attr1]")
                stream.time(figure, options, PANEL, length, series, join, query)


def claims(figure: Figure, lengths: tuple[int, ...]) -> None:
    """S6."""
    lightest, longest = lengths[0], lengths[-1]
    mine = normalised(figure, PANEL, CEPHEID, lightest)
    join = normalised(figure, PANEL, PLAIN, lightest)
    better = normalised(figure, PANEL, BUCKETED, lightest)
    gross = normalised_gross(figure, PANEL, PLAIN, lightest)

    def listed(values: dict[float, float]) -> str:
        return ", ".join(f"L={length:g}: {value:.3g}" for length, value in values.items())

    figure.says(
        "S6",
        f"cepheid decreases gracefully with L, to about 0.5 at L={longest}",
        f"at least 0.4 of the throughput of L={lightest}",
        listed(mine),
        holds=mine[longest] >= 0.4,
    )
    low = [length for length in lengths if length >= 5]
    unfinished = [p.x for p in figure.points if p.series == PLAIN and p.stopped]
    figure.says(
        "S6",
        "the join falls below 0.01 from L=5 on",
        "below 0.01, or not finished, at L=5 and 6",
        listed(join)
        + "".join(f"; L={x:g} not run" for x in unfinished)
        + f" (with Spark's fixed cost: {listed(gross)})",
        holds=bool(low) and all(length in unfinished or join[length] < 0.01 for length in low),
    )
    figure.says(
        "S6",
        "the join drops sharply from L=2 to L=3",
        "to 0.5 or less",
        f"{join[lengths[1]]:.2f} (with Spark's fixed cost: {gross[lengths[1]]:.2f})",
        holds=join[lengths[1]] <= 0.5,
    )
    figure.says(
        "S6",
        "cepheid scales better than the join, also than one with time buckets (not in the paper)",
        f"cepheid keeps more than it at L={longest}",
        f"{mine[longest]:.2f} against {better[longest]:.2f}; time buckets: {listed(better)}",
        holds=mine[longest] > better[longest],
    )


def draw(record: Record, path: Path) -> None:
    """Normalised throughput over L."""
    picture, (linear, log) = axes_for(["as in the paper", "the same, logarithmic"])
    base = {
        p["series"]: p["events_per_second"]
        for p in sorted(record["points"], key=lambda p: -p["x"])
        if p["events_per_second"] is not None
    }
    for axes in (linear, log):
        draw_lines(
            axes,
            record,
            PANEL,
            lambda p: p["events_per_second"] and p["events_per_second"] / base[p["series"]],
        )
        axes.set_xticks(sorted({p["x"] for p in record["points"]}))
        axes.set_xlabel("sequence length L")
        axes.set_ylabel("normalised throughput")
        axes.legend(frameon=False, fontsize=9)
    linear.set_ylim(0, 1.05)
    log_scale(log, y=True)
    save(picture, path)
