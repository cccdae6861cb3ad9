"""The engine of many queries: what it costs, and that every query gets its own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import cepheid
from cepheid.hosts import succession_engine
from cepheid.hosts.in_process import Detector
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.matches import Matches
from cepheid.hosts.shared_succession_engine import RunningQuery, SharedSuccessionEngine
from cepheid.model.options import make_options
from cepheid.planner.prepare import prepare

SCHEMA = pa.schema(
    [("event", pa.int64()), ("type", pa.string()), ("ts", pa.int64()), ("v", pa.int64())]
)


def running(texts: Sequence[str], **options: Any) -> list[RunningQuery]:
    known = make_options({"id": "event", **options})
    found = []
    for text in texts:
        (stage,) = cepheid.compile(text, "next").stages(known)
        found.append(RunningQuery(prepare(stage, known, SCHEMA)))
    return found


def batch(rows: Sequence[tuple[str, int]], first: int = 0) -> EventBatch:
    dicts = [{"event": n, "type": kind, "ts": n, "v": v} for n, (kind, v) in enumerate(rows, first)]
    return EventBatch(pa.RecordBatch.from_pylist(dicts, SCHEMA))


def rows(seed: int, size: int, types: int, values: int) -> list[tuple[str, int]]:
    r = random.Random(seed)
    return [(f"T{r.randrange(types)}", r.randrange(values)) for _ in range(size)]


def ids(parts: Sequence[Matches]) -> Counter[str]:
    return Counter(i for part in parts for i in part.table().column("match_id").to_pylist())


def test_what_queries_have_in_common_runs_once() -> None:
    chain = "SELECT * FROM (T0 x; T1 y); T{} z"
    events = batch(rows(1, 2_000, 5, 1))
    costs = []
    for count in (1, 3):
        engine = SharedSuccessionEngine(running([chain.format(2 + n) for n in range(count)]))
        engine.feed(events)
        costs.append(engine.counters)
    alone, shared = costs
    # Only the last step is each query's own: it is visited for its own type and for the pairs.
    pairs_of = SharedSuccessionEngine(running(["SELECT * FROM T0 x; T1 y"]))
    pairs_of.feed(events)
    common = pairs_of.counters["visited"]
    assert shared["visited"] - common == 3 * (alone["visited"] - common) + _imbalance(events)
    twice = SharedSuccessionEngine(
        running(["SELECT * FROM T0 a; T1 b", "SELECT * FROM T0 x; T1 y"])
    )
    first, second = twice.feed(events)
    assert twice.counters == pairs_of.counters
    assert len(first) == len(second) > 0


def _imbalance(events: EventBatch) -> int:
    """The third types do not come equally often: two visits (leaf and chain) for each event."""
    kinds = Counter(events.batch.column("type").to_pylist())
    return 2 * (kinds["T3"] + kinds["T4"] - 2 * kinds["T2"])


def test_an_event_touches_only_operators_it_can_reach() -> None:
    tests = ", ".join(f"FILTER({name}.v = {{0}})" for name in "xyz")
    text = f"SELECT * FROM T0 x; T1 y; T2 z WHERE {tests}"
    few, many = ([text.format(n) for n in range(count)] for count in (10, 300))
    events = batch(rows(2, 5_000, 3, 300))
    engine = SharedSuccessionEngine(running(many))
    engine.feed(events)
    assert len(engine.graph.operators) == 5 * 300
    # One leaf, and at most the two chains that use it.
    assert engine.counters["visited"] <= 3 * 5_000
    small = SharedSuccessionEngine(running(few))
    small.feed(events)
    assert 0 < small.counters["visited"] <= 3 * 5_000 * 10 // 300 * 2


def test_matches_are_those_of_each_query_with_its_own_names_and_columns() -> None:
    texts = [
        "SELECT * FROM T0 x; T1 y",
        "SELECT * FROM T0 first; T1 second WHERE FILTER(second.v = 1)",
        "SELECT * FROM (T1 b | T0 a); T2 c",
        "SELECT * FROM (T0 a | T1 b); T2 c",
        "SELECT * FROM T0 w; (T0 x; T1 y)",
    ]
    events = [batch(rows(seed, 200, 3, 3), 200 * seed) for seed in range(3)]
    engine = SharedSuccessionEngine(running(texts))
    found = [engine.feed(each) for each in events] + [engine.close()]
    for number, text in enumerate(texts):
        detector = Detector(text, id="event")
        alone = [detector.feed(each.batch) for each in events] + [detector.close()]
        own = [matches[number] for matches in found]
        assert ids(own) == ids(alone)
        assert sum(map(len, own)) > 50
        tables = [pa.concat_tables([part.table() for part in parts]) for parts in (own, alone)]
        key = [("match_id", "ascending")]
        assert tables[0].sort_by(key).equals(tables[1].sort_by(key))


def test_failures_are_told_as_each_query_would() -> None:
    texts = [
        "SELECT * FROM T0 x; (T1 y \\ T2 n)",
        "SELECT * FROM (T0 x; T1 y) \\ (T2 n | T3 o)",
        "SELECT * FROM (T0 p; T1 q) \\ (T3 o | T2 n)",
    ]
    events = batch(rows(5, 300, 4, 2))
    engine = SharedSuccessionEngine(running(texts, failures=True))
    found = [engine.feed(events), engine.close()]
    for number, text in enumerate(texts):
        detector = Detector(text, id="event", failures=True)
        alone = [detector.feed(events.batch), detector.close()]
        assert ids([matches[number] for matches in found]) == ids(alone)
        assert ids(alone)


def test_a_silent_key_holds_nobodys_events(monkeypatch: Any) -> None:
    monkeypatch.setattr(succession_engine, "_WORTH_COMPACTING", 64)
    monkeypatch.setattr(succession_engine, "_SPARE_ROWS", 8)
    chain = "SELECT * FROM T0 x; T{} y WHERE FILTER(x.v = y.v)"
    engine = SharedSuccessionEngine(running([chain.format(n) for n in (1, 2)]))
    engine.feed(batch([("T0", -1)]))
    most = 0
    for turn in range(60):
        engine.compact()
        pairs = [each for n in range(20) for each in (("T0", n), ("T1", n), ("T2", n))]
        engine.feed(batch(pairs, 1 + 60 * turn))
        most = max(most, engine.live_rows)
    assert most < 1_000
    engine = engine.with_queries(engine.queries[:1])
    last = batch([("T1", -1), ("T1", 0)], 4_000)
    assert [len(each) for each in engine.feed(last)] == [1]  # it has waited through all this
    assert [len(each) for each in engine.close()] == [0]
