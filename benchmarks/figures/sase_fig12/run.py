"""Figure 12: normalised throughput while V1 varies, with one and two equivalence tests."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures.against_joins import (
    CEPHEID,
    JoinedStreams,
    normalised,
    normalised_gross,
    time_cepheid,
)
from benchmarks.figures.drawing import axes_for, draw_lines, log_scale, points_of, save
from benchmarks.figures.figure import Figure, Record
from benchmarks.figures.joins import Join, one_core_session
from benchmarks.figures.measuring import SEED, sequence_query
from benchmarks.options import Options

PANEL = "V1"
LENGTH = 3
SECOND_DOMAIN = 20
MINE_1, MINE_2 = f"{CEPHEID}, 1 equiv", f"{CEPHEID}, 2 equivs"
JOIN_1, JOIN_2 = "join, 1 equiv", "join, 2 equivs (2nd as filter)"
KEYS_2 = "join, 2 equivs (both as keys)"
BUCKETS_1 = "join with time buckets, 1 equiv"
WHERE = {MINE_1: "[attr1]", MINE_2: "[attr1, attr2]"}


def run(options: Options) -> Figure:
    """Measure cepheid, then the joins on the same kind of streams."""
    figure = Figure("sase_fig12", "varying the domain size V1", options.quick, folder="sase_fig12")
    window = 1_000 if options.quick else 10_000
    events = 20_000 if options.quick else 300_000
    joined = 5 * window if options.quick else 10 * window
    domains = (10, 100) if options.quick else (10, 30, 100, 300, 1_000, 10_000)
    figure.parameters |= {
        "seed": SEED,
        "W": window,
        "L": LENGTH,
        "V2": SECOND_DOMAIN,
        "events": events,
        "events joined": joined,
    }
    for domain in domains:
        for series, where in WHERE.items():
            query = sequence_query(LENGTH, window, where=where)
            both = (domain, SECOND_DOMAIN)
            time_cepheid(figure, options, PANEL, domain, series, query, both, events)
    if options.wants("joins"):
        time_joins(figure, options, domains, window, joined)
        claims(figure, domains)
    return figure


def time_joins(
    figure: Figure, options: Options, domains: tuple[int, ...], window: int, events: int
) -> None:
    """All joins at every V1."""
    one, two = ("attr1",), ("attr1", "attr2")
    joins = {
        JOIN_1: (Join(LENGTH, window, one), MINE_1),
        JOIN_2: (Join(LENGTH, window, one, ("attr2",)), MINE_2),
        KEYS_2: (Join(LENGTH, window, two), MINE_2),
        BUCKETS_1: (Join(LENGTH, window, one, bucketed=True), MINE_1),
    }
    with one_core_session() as spark:
        for domain in domains:
            stream = JoinedStreams(spark, events, {"attr1": domain, "attr2": SECOND_DOMAIN})
            for series, (join, same_as) in joins.items():
                query = sequence_query(LENGTH, window, where=WHERE[same_as])
                stream.time(figure, options, PANEL, domain, series, join, query)
            stream.forget()


def claims(figure: Figure, domains: tuple[int, ...]) -> None:
    """S7."""
    lightest, heaviest = domains[-1], domains[0]
    kept = {
        name: normalised(figure, PANEL, name, lightest)
        for name in (MINE_1, MINE_2, JOIN_1, JOIN_2, KEYS_2, BUCKETS_1)
    }

    gross = normalised_gross(figure, PANEL, JOIN_1, lightest)

    def listed(name: str) -> str:
        return ", ".join(f"{v:g}: {value:.2g}" for v, value in kept[name].items())

    falls_faster = [v for v in domains if kept[JOIN_1][v] < kept[MINE_1][v]]
    figure.says(
        "S7",
        "as V1 falls, the join's throughput drops faster than cepheid's (1 equivalence test)",
        f"join below cepheid at V1={heaviest}",
        f"at V1={heaviest}: join {kept[JOIN_1][heaviest]:.2g}, "
        f"cepheid {kept[MINE_1][heaviest]:.2g}; "
        f"join below cepheid at V1 in {falls_faster} (cepheid {listed(MINE_1)}; "
        f"join {listed(JOIN_1)}; with time buckets {listed(BUCKETS_1)}; join with Spark's fixed "
        f"cost at V1={heaviest}: {gross[heaviest]:.2g})",
        holds=kept[JOIN_1][heaviest] < kept[MINE_1][heaviest],
    )
    gains = {
        name: figure.speed(PANEL, heaviest, second) / figure.speed(PANEL, heaviest, first)
        for name, first, second in (
            (CEPHEID, MINE_1, MINE_2),
            ("the join, second test as filter", JOIN_1, JOIN_2),
            ("the join, both as keys", JOIN_1, KEYS_2),
        )
    }
    figure.says(
        "S7",
        "a second equivalence test helps cepheid clearly when V1 is small",
        f"at least 2x the throughput at V1={heaviest}",
        f"{gains[CEPHEID]:.1f}x",
        holds=gains[CEPHEID] >= 2,
    )
    figure.says(
        "S7",
        "and the join, which filters by it after the first test, little",
        f"a smaller gain than cepheid's at V1={heaviest}",
        "; ".join(f"{name}: {gain:.1f}x" for name, gain in gains.items()),
        holds=gains["the join, second test as filter"] < gains[CEPHEID],
    )


def draw(record: Record, path: Path) -> None:
    """Normalised throughput over V1, and what the join costs in absolute terms."""
    picture, (linear, log) = axes_for(["as in the paper", "the same, logarithmic"], height=3.8)

    def share(point: dict[str, float]) -> float | None:
        lightest = points_of(record, PANEL, str(point["series"]))[-1]["events_per_second"]
        return point["events_per_second"] and point["events_per_second"] / lightest

    for axes in (linear, log):
        draw_lines(axes, record, PANEL, share)
        log_scale(axes, x=True)
        axes.set_xlabel("domain size V1 of attr1")
        axes.set_ylabel("normalised throughput")
    linear.legend(frameon=False, fontsize=8)
    linear.set_ylim(0, 1.05)
    log_scale(log, y=True)
    save(picture, path)
