"""NEXT in process: a chain of immediate successors, and the credit cards of the paper (1.1).

Timed: feeding Arrow batches of 100,000 rows and counting the matches. Not timed: making the events,
compiling the query, building the detector. What must be found is worked out by other means.
"""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial

import numpy as np
import pyarrow as pa

import cepheid
from benchmarks.harness import Answer, Clock, Contender, Ratio, interleave, speed_ratio
from benchmarks.in_process import deliver_count, feed, scan_contender
from benchmarks.options import Options
from benchmarks.report import Report
from benchmarks.workload import BATCH_ROWS, SEED, Columns, arrow_events, columns

WINDOW = 10_000
CHAIN = f"""
    SELECT * FROM E1 x; E2 y; E3 z
    WHERE FILTER(x.attr1 = y.attr1), FILTER(y.attr1 = z.attr1), (x, z) OCCURS WITHIN {WINDOW}
"""
CARDS = """
    SELECT * FROM ( t S1 ; t S2 ; t L )
    WHERE FILTER(S1.acc = S2.acc), FILTER(S2.acc = L.acc),
          S1.amount < 100 AND S2.amount < 100 AND
          L.amount > 250 AND (S1, L) OCCURS WITHIN 12 hours
"""
SOURCES = 100
RATE = 2_100  # transactions a second and source, the paper's peak
HOURS = 12 * 3_600 * 1_000_000


def run(options: Options) -> Report:
    """Measure the parts asked for: chain, cards."""
    report = Report("successors", "NEXT in process", options.quick)
    for name, part in {"chain": chain, "cards": cards}.items():
        if options.wants(name):
            part(report, options)
    return report


def chain(report: Report, options: Options) -> None:
    """Chains of three over SASE's workload, V=1000."""
    batches = arrow_events(200_000 if options.quick else 4_000_000, 1000)
    events = columns(batches)
    compiled = cepheid.compile(CHAIN)
    detect = Contender(
        "cepheid successors",
        len(events),
        lambda: partial(feed, cepheid.Detector(compiled), batches, deliver_count),
    )
    runs = report.keep(
        "chain of 3, V=1000",
        interleave(
            [scan_contender(events), detect],
            options.times(5),
            warmups=1,
            expected=chains_in(events),
        ),
    )
    ratio = speed_ratio(runs["cepheid successors"], runs["memory scan"], Clock.CPU)
    report.claim("chain of 3 successors / memory scan", 1 / 8, ratio)


def chains_in(events: Columns) -> int:
    """The matches of the chain, one event after the other: every E2 takes all E1 of its key."""
    waiting: dict[int, deque[int]] = defaultdict(deque)
    halfway: dict[int, deque[int]] = defaultdict(deque)
    found = 0
    relevant = np.flatnonzero(events.type < 3)
    for kind, key, time in zip(
        events.type[relevant].tolist(),
        events.key[relevant].tolist(),
        events.time[relevant].tolist(),
        strict=True,
    ):
        if kind == 0:
            waiting[key].append(time)
        elif kind == 1:
            halfway[key].extend(waiting.pop(key, ()))
        else:
            found += sum(time - first <= WINDOW for first in halfway.pop(key, ()))
    return found


def cards(report: Report, options: Options) -> None:
    """100 sources at the paper's peak rate, replayed as fast as they go."""
    seconds = 1 if options.quick else 20
    events = transactions(SOURCES * RATE * seconds, seconds)
    batches = pa.Table.from_batches([events]).to_batches(max_chunksize=BATCH_ROWS)
    compiled = cepheid.compile(CARDS)
    detect = Contender(
        "cepheid successors",
        events.num_rows,
        lambda: partial(feed, cepheid.Detector(compiled), batches, deliver_count),
    )
    runs = report.keep(
        "credit cards",
        interleave([detect], options.times(5), warmups=1, expected=frauds_in(events)),
    )
    factors = [seconds / wall for wall in runs["cepheid successors"].wall_seconds]
    ratio = Ratio(float(np.median(factors)), min(factors), max(factors))
    report.claim("credit cards, 100 sources: times faster than real time", 1.0, ratio)
    report.notes["credit cards, bytes of an event"] = round(events.nbytes / events.num_rows)


def transactions(rows: int, seconds: int) -> pa.RecordBatch:
    """Payments of a million cards, one at a time, about 150 bytes each."""
    source = np.random.default_rng(SEED)
    amounts = np.round(source.lognormal(4.0, 1.2, rows), 2)
    shops = pa.array([f"shop {number:05} in a street of some town" for number in range(500)])
    terminals = pa.array([f"terminal-{number:08}" for number in range(1_000)])
    return pa.record_batch(
        {
            "type": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), pa.array(["t"])),
            "ts": pa.array(np.arange(rows) * (seconds * 1_000_000) // rows).cast(
                pa.timestamp("us", "UTC")
            ),
            "acc": source.integers(0, 1_000_000, rows),
            "amount": amounts,
            "shop": shops.take(pa.array(source.integers(0, 500, rows))),
            "terminal": terminals.take(pa.array(source.integers(0, 1_000, rows))),
            "reference": pa.array([f"{number:032}" for number in range(rows)]),
            "currency": pa.repeat("EUR", rows),
        }
    )


def frauds_in(events: pa.RecordBatch) -> Answer:
    """The same question to the payments sorted by card: three in a row."""
    accounts, amounts = events["acc"].to_numpy(), events["amount"].to_numpy()
    times = events["ts"].cast(pa.int64()).to_numpy()
    order = np.lexsort((times, accounts))
    account, amount, time = accounts[order], amounts[order], times[order]
    same = (account[:-2] == account[1:-1]) & (account[1:-1] == account[2:])
    small = (amount[:-2] < 100) & (amount[1:-1] < 100)
    return int((same & small & (amount[2:] > 250) & (time[2:] - time[:-2] <= HOURS)).sum())
