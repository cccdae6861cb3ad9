"""Many queries in one graph find what each of them finds alone, and what the definitions say.

The same random streams as for single queries: ties, intervals, nulls, cut into batches, out of
order within the lateness, restored from live events; and queries that come and go meanwhile.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

import cepheid
from cepheid.hosts import succession_engine
from cepheid.hosts.in_process import Detector
from cepheid.hosts.ingest import EventBatch, event_batches
from cepheid.hosts.matches import Matches
from cepheid.hosts.shared_succession_engine import RunningQuery, SharedSuccessionEngine
from cepheid.model.options import Options, make_options
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.prepare import Prepared, prepare
from tests.laws.shared_queries import query_set
from tests.laws.succession_runs import CAP, by_definition, end_of, found_in, stream

SETS = int(os.environ.get("CEPHEID_SHARED_SETS", "6"))
STREAMS = 8


def queries_of(number: int) -> list[CompiledQuery]:
    return query_set(number, (3, 6, 9, 12)[number % 4] if number else 30)


def prepared(queries: Sequence[CompiledQuery], options: Options, batch: EventBatch) -> Any:
    found: list[Prepared] = []
    for query in queries:
        (stage,) = query.stages(options)
        found.append(prepare(stage, options, batch.batch.schema, open_schema=True))
    return found


class Shared:
    """Runs queries together over rows, in batches."""

    def __init__(self, queries: Sequence[CompiledQuery], options: dict[str, Any]) -> None:
        self.queries = queries
        self.options = make_options(options)
        self.engine: SharedSuccessionEngine | None = None
        self.parts: list[list[Matches]] = [[] for _ in queries]

    def feed(self, rows: list[dict[str, Any]]) -> None:
        for batch in event_batches(rows, self.options):
            if self.engine is None:
                together = prepared(self.queries, self.options, batch)
                self.engine = SharedSuccessionEngine(
                    [RunningQuery(each) for each in together], lateness=together[0].lateness
                )
            self.engine.compact()
            self._take(self.engine.feed(batch))

    def close(self) -> list[list[Matches]]:
        if self.engine is not None:
            self._take(self.engine.close())
        return self.parts

    def restored(self) -> None:
        """Become another engine that has the live events alone."""
        if self.engine is None:
            return
        old = self.engine
        table, positions = old.live_table()
        self.engine = SharedSuccessionEngine(old.queries, lateness=old._lateness)
        batches = table.combine_chunks().to_batches()
        if batches:
            self.engine.restore(
                EventBatch(batches[0], old.absent_flags(), True),
                positions,
                watermark=old.watermark,
                latest=old.latest,
                position=old.position,
                horizon=old.dead_until,
            )
        else:
            self.engine.watermark, self.engine.latest = old.watermark, old.latest
            self.engine._processed_to, self.engine.position = old.watermark, old.position

    def _take(self, found: list[Matches]) -> None:
        for part, matches in zip(self.parts, found, strict=True):
            part.append(matches)


def ids(parts: Sequence[Matches]) -> Counter[str]:
    return Counter(i for part in parts for i in part.table().column("match_id").to_pylist())


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tidy and compact at every chance."""
    monkeypatch.setattr(succession_engine, "_WORTH_COMPACTING", 4)
    monkeypatch.setattr(succession_engine, "_SPARE_ROWS", 2)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("number", range(SETS))
def test_together_each_query_finds_what_it_finds_alone(number: int) -> None:
    queries = queries_of(number)
    found = 0
    for seed in range(STREAMS):
        source = random.Random(1_000 * number + seed)
        intervals = seed % 3 == 0
        rows = [row for turn in range(2) for row in _later(source, turn, intervals=intervals)]
        options: dict[str, Any] = {"cap": CAP, "id": "event"}
        options |= {"start": "start", "end": "end"} if intervals else {}
        expected = [by_definition(query, rows) for query in queries]
        arriving = rows
        if seed % 2:
            options["lateness"] = 3
            arriving = sorted(rows, key=lambda row: end_of(row) + source.randint(0, 3))
        shared = Shared(queries, options)
        alone = [Detector(query, **options) for query in queries]
        parts: list[list[Matches]] = [[] for _ in queries]
        at = 0
        while at < len(arriving):
            size = source.randint(1, 6)
            batch = arriving[at : at + size]
            shared.feed(batch)
            for detector, part in zip(alone, parts, strict=True):
                part.append(detector.feed(batch))
            at += size
            if source.random() < 0.3:
                shared.restored()
        for query, together, detector, part, right in zip(
            queries, shared.close(), alone, parts, expected, strict=True
        ):
            part.append(detector.close())
            told = f"{query.source.text}\n{arriving}"
            assert found_in(query, together) == right, told
            assert ids(together) == ids(part), told
            found += sum(right.values())
    assert found > 10


GUESTS = (
    "A x; B y",
    "(A p; B q); C r",
    "C w; (A x; B y)",
    "A x; B y WHERE FILTER(x.k = y.k)",
    "(A x | B y); C z",
    "(A x)+; B y WHERE FILTER(PREV(x.k) = x.k)",
    "A x; (B y \\ C n)",
    "A x; B y WHERE (x, y) OCCURS WITHIN 3",
    "C x; A y WHERE FILTER(x.v = 1)",
)


@pytest.mark.usefixtures("eager")
def test_queries_that_come_and_go_disturb_no_other() -> None:
    queries = [cepheid.compile(f"SELECT * FROM {text}", "next") for text in GUESTS]
    late_found = 0
    for seed in range(3 * STREAMS):
        source = random.Random(7_000 + seed)
        rows = [row for turn in range(3) for row in _later(source, turn)]
        options: dict[str, Any] = {"cap": CAP, "id": "event", "lateness": source.choice((0, 2))}
        if not rows:
            continue
        whole = make_options(options)
        (batch,) = event_batches(rows, whole)
        ready = prepared(queries, whole, batch)
        running = {n: RunningQuery(each) for n, each in enumerate(ready) if n % 2}
        engine = SharedSuccessionEngine(list(running.values()), lateness=ready[0].lateness)
        spans = dict.fromkeys(running, (-1, 10**6))
        found: dict[int, Counter[Any]] = {n: Counter() for n in range(len(queries))}

        def take(matches: list[Matches], now: Any = running, found: Any = found) -> None:
            for n, each in zip(now, matches, strict=True):
                found[n].update(found_in(queries[n], [each]))

        at = 0
        while at < len(rows):
            size = source.randint(1, 6)
            for each in event_batches(rows[at : at + size], whole):
                take(engine.feed(each))
            at += size
            if source.random() < 0.7:
                fresh = [n for n in range(len(queries)) if n not in spans]
                n = source.choice([*fresh, *running])
                since = engine.latest + 1
                if n in running and len(running) > 1 and spans[n][0] < 0:
                    del running[n]  # it has had all that ended before the watermark
                    spans[n] = (-1, engine.watermark)
                elif n not in running:
                    until = since + source.choice((15, 10**6))
                    running[n] = RunningQuery(ready[n], since, until)
                    spans[n] = (since, until)
                engine = engine.with_queries(list(running.values()))
        take(engine.close())
        for n, (since, until) in spans.items():
            right = Counter(
                {
                    match: count
                    for match, count in by_definition(queries[n], rows).items()
                    if _time(match[0][0][1], rows) >= since and match[2] < until
                }
            )
            told = f"{queries[n].source.text} {since} {until}\n{rows}"
            assert found[n] == right, told
            late_found += sum(right.values()) if since >= 0 else 0
    assert late_found > 20


def _later(source: random.Random, turn: int, *, intervals: bool = False) -> list[dict[str, Any]]:
    """A stream that follows on others of its kind."""
    rows = stream(source, intervals=intervals)
    times = ("start", "end") if intervals else ("ts",)
    return [
        row | {name: row[name] + 15 * turn for name in times} | {"event": f"{row['event']}.{turn}"}
        for row in rows
    ]


def _time(event: str, rows: list[dict[str, Any]]) -> int:
    return next(int(row["ts"]) for row in rows if row["event"] == event)
