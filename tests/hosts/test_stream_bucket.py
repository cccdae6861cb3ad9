"""Buckets of a streaming query against detection in process: any cut, any worker, any failure."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts import stream_state
from cepheid.hosts.header_store import HeaderStore
from cepheid.hosts.stream_bucket import Bucket, DetectorCache
from cepheid.hosts.stream_clock import MILLISECONDS, StreamClock
from cepheid.hosts.stream_state import Header
from cepheid.model.errors import StateError
from cepheid.model.event_time import MAX_TIME
from tests.hosts.simulated_stream import MemoryStore, SimulatedStream

SCHEMA = pa.schema(
    [
        ("event", pa.int64()),
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("k", pa.int64()),
        ("v", pa.int64()),
        ("w", pa.float64()),
        ("s", pa.string()),
        ("u", pa.int64()),
    ]
)
Row = dict[str, Any]


def wide(rows: Sequence[Row]) -> list[Row]:
    return [{name: row.get(name) for name in SCHEMA.names} for row in rows]


def in_process(query: Any, rows: Sequence[Row], **options: Any) -> Counter[str]:
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    return Counter(cepheid.detect(table, query, **options).column("match_id").to_pylist())


def streamed(stream: SimulatedStream) -> Counter[str]:
    return Counter(match["match_id"] for match in stream.matches)


def arriving(rows: Sequence[Row], lateness: int, r: random.Random) -> list[Row]:
    """The rows out of order, none by more than the lateness."""
    delays = [(row["ts"] + r.randint(0, lateness), r.random()) for row in rows]
    return [row for _, row in sorted(zip(delays, rows, strict=True), key=lambda pair: pair[0])]


def cut(rows: Sequence[Row], r: random.Random) -> list[Sequence[Row]]:
    edges = sorted({0, len(rows), *(r.randint(0, len(rows)) for _ in range(r.randint(0, 5)))})
    return [rows[a:b] for a, b in pairwise(edges)]


def run_in_cuts(stream: SimulatedStream, rows: Sequence[Row], r: random.Random) -> None:
    for part in cut(rows, r):
        stream.batch(part)
        if r.random() < 0.2:
            stream.restart()
    stream.heartbeat(10_000)
    stream.heartbeat(20_000)


SHAPES = {
    "two": "EVENT SEQ(A x, B y) WHERE [k] WITHIN 12",
    "three and a comparison": "EVENT SEQ(A x, ANY(A, B) y, C z) WHERE [k] AND x.v < z.v WITHIN 15",
    "two keys": "EVENT SEQ(A x, B y) WHERE [k, s] WITHIN 20",
    "a chain of tests": "EVENT SEQ(A x, B y, C z) WHERE x.k = y.k AND y.k = z.k WITHIN 12",
    "other attributes": "EVENT SEQ(A x, B y) WHERE x.k = y.v WITHIN 12",
    "no key": "EVENT SEQ(A x, !(B n), C z) WITHIN 6",
    "negated middle": "EVENT SEQ(A x, !(B n), C z) WHERE [k] WITHIN 12",
    "negated end": "EVENT SEQ(A x, B y, !(ANY(A, C) n)) WHERE [k] WITHIN 9",
    "negated start and end": "EVENT SEQ(!(B n), A x, C z, !(B m)) WHERE [k] WITHIN 9",
    "negated only": "EVENT SEQ(A x, !(B n)) WHERE [k, s] WITHIN 7",
    "one event": "EVENT A x WHERE x.v > 1",
    "a pair and silence": """
        QUERY pairs EVENT SEQ(A x, B y) WHERE [k] WITHIN 9 RETURN Pair(x.k, y.v)
        EVENT SEQ(Pair p, !(C n)) WHERE [k] WITHIN 7 RETURN p.k, p.v""",
    "silence and a pair": """
        QUERY silences EVENT SEQ(A x, !(B n)) WHERE [k] WITHIN 5 RETURN Silence(x.k, x.v AS a)
        EVENT SEQ(Silence s, B y, C z) WHERE [k] WITHIN 15 RETURN s.k, s.a, y.v, z.v AS c""",
    "no window": "EVENT SEQ(A x, B y) WHERE [k] AND x.v = 1 AND y.v = 2",
    "successors": "SELECT * FROM A x; B y; C z WHERE FILTER(x.k = y.k), FILTER(y.k = z.k)",
    "successors and a window": """
        SELECT * FROM A x; (B y; C z)
        WHERE FILTER(x.k = y.k), FILTER(y.k = z.k), y.v <= z.v, (x, z) OCCURS WITHIN 15""",
    "successors without a key": "SELECT * FROM (A x | B y); C z WHERE z.v > 0",
    "runs": "SELECT * FROM A x+; B y WHERE FILTER(PREV(x.k) = x.k), FILTER(x.k = y.k)",
    "runs alone": "SELECT * FROM A x+ WHERE FILTER(PREV(x.k) = x.k), PREV(x.v) <> x.v",
    "an exception": "SELECT * FROM A x; (B y \\ C n) WHERE FILTER(x.k = y.k), n.k = x.k",
    "a timer": "SELECT * FROM A x @ 6; B y WHERE FILTER(x.k = y.k)",
    "silence by a timer": "SELECT * FROM A x @ 6 \\ B n WHERE n.k = x.k",
    "results of successors": """
        QUERY pairs SELECT x.k, y.v FROM A x; B y WHERE FILTER(x.k = y.k)
        SELECT p.k, p.v, z.v AS c FROM pairs p; C z WHERE FILTER(p.k = z.k)""",
}


def dense_rows(r: random.Random, size: int = 40) -> list[Row]:
    """Few types, keys and instants: ties, twins and, in some streams, events without a key."""
    careless = r.random() < 0.5
    times = sorted(r.randint(-5, 30) for _ in range(size))
    rows = []
    for number, time in enumerate(times):
        row: Row = {"event": number, "type": r.choice("ABCZ"), "ts": time, "u": 1}
        row |= {"k": r.randint(0, 2), "v": r.randint(0, 2), "w": 0.5, "s": r.choice("pq")}
        if careless:
            row |= {name: None for name in "ks" if r.random() < 0.15}
        rows.append(row)
    return rows


QUICK = ("two", "negated end", "successors", "an exception", "silence by a timer")
"""Each shape compiles kernels of its own, for seconds: the others run with the slow tests."""


@pytest.mark.parametrize(
    "shape",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SHAPES],
)
def test_random_streams_give_the_answer_of_one_process(shape: str) -> None:
    query = cepheid.compile(SHAPES[shape])
    compared = 0
    for seed in range(30):
        r = random.Random(seed)
        rows = dense_rows(r)
        lateness = r.choice((0, 0, 3))
        meaning: dict[str, Any] = {} if r.random() < 0.7 else {"types": DECLARED}
        if r.random() < 0.5 and "QUERY" not in SHAPES[shape]:
            meaning["id"] = "event"
        stream = SimulatedStream(
            query,
            SCHEMA,
            seed=seed,
            workers=r.choice((1, 3)),
            failing=0.1,
            buckets=r.choice((1, 2, 5)),
            lateness=lateness,
            **meaning,
        )
        run_in_cuts(stream, arriving(rows, lateness, r), r)
        expected = in_process(query, rows, **meaning)
        assert streamed(stream) == expected, (seed, meaning, stream.routing)
        assert not stream.late
        compared += sum(expected.values())
    assert compared > 50


DECLARED = {"A": ["k", "v", "s"], "B": ["k", "v"], "C": ["k", "v", "s"]}


def steady(count: int, seed: int = 0, keys: int = 8) -> list[Row]:
    r = random.Random(seed)
    return [
        {
            "event": i,
            "type": r.choice("ABCZ"),
            "ts": i,
            "k": r.randrange(keys),
            "v": r.randrange(4),
            "w": 0.5,
            "s": "p",
            "u": 1,
        }
        for i in range(count)
    ]


QUERIES = {
    "monotone": "EVENT SEQ(A x, B y, C z) WHERE [k] WITHIN 60",
    "negated middle": "EVENT SEQ(A x, !(B n), C z) WHERE [k] WITHIN 60",
    "negated end": "EVENT SEQ(A x, B y, !(C n)) WHERE [k] WITHIN 60",
    "negated start": "EVENT SEQ(!(A n), B y, C z) WHERE [k] WITHIN 60",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n == "monotone" else pytest.mark.slow) for n in QUERIES],
)
def test_state_stays_flat_on_a_steady_stream(name: str) -> None:
    rows = steady(6_000)
    stream = SimulatedStream(QUERIES[name], SCHEMA, workers=2, buckets=3)
    sizes = []
    for begin in range(0, len(rows), 50):
        stream.batch(rows[begin : begin + 50])
        sizes.append(sum(len(d) for s in stream.states.values() for d in s.store.held.values()))
    stream.heartbeat(10_000)
    stream.heartbeat(100_000)  # forgetting takes its time after a leap
    assert streamed(stream) == in_process(QUERIES[name], rows)
    assert max(sizes[60:]) <= 1.3 * max(sizes[10:60])
    assert stream.segments == 0, "nothing is kept once everything is too old"


def test_many_small_batches_are_merged() -> None:
    rows = steady(200)
    query = "EVENT SEQ(A x, B y) WHERE [k] WITHIN 1000"
    stream = SimulatedStream(query, SCHEMA, workers=2, buckets=1)
    for row in rows:
        stream.batch([row])
        assert all(
            len(state.store.held) <= stream_state.MOST_SEGMENTS + stream_state.MERGED_AT_ONCE
            for state in stream.states.values()
        )
    assert streamed(stream) == in_process(query, rows)
    stream.restart()
    more = [{**row, "event": row["event"] + 200, "ts": row["ts"] + 200} for row in steady(300)]
    stream.batch(more)
    assert streamed(stream) == in_process(query, [*rows, *more])


def test_a_large_segment_that_is_mostly_dead_is_written_anew() -> None:
    rows = steady(20_000)
    query = QUERIES["monotone"]
    stream = SimulatedStream(query, SCHEMA, buckets=1)
    stream.batch(rows[:19_000])  # hundreds of windows at once
    before = sum(map(len, stream.states[0].store.held.values()))
    for begin in range(19_000, 20_000, 250):
        stream.batch(rows[begin : begin + 250])
    after = sum(map(len, stream.states[0].store.held.values()))
    assert after < before / 10
    assert streamed(stream) == in_process(query, rows)


def test_a_worker_that_was_passed_over_reads_only_what_came_since() -> None:
    rows = steady(2_000)
    query = "EVENT SEQ(A x, B y) WHERE [k] WITHIN 5000"
    stream = SimulatedStream(query, SCHEMA, workers=1, buckets=1)
    mine, other = stream.caches[0], DetectorCache()
    for begin in range(0, 1_000, 50):
        stream.batch(rows[begin : begin + 50])
    for begin in range(1_000, 1_200, 50):
        stream.caches = [other]
        stream.batch(rows[begin : begin + 50])
    stream.caches = [mine]
    store = stream.states[0].store = stream.states[0].store.copy()
    Bucket(stream.task, 0, store, mine).step([], stream.watermark_ms)
    assert store.read == 4
    stream.batch(rows[1_200:])
    assert streamed(stream) == in_process(query, rows)


def test_a_timer_of_a_key_that_has_fallen_silent_fires() -> None:
    """No event of its bucket comes any more; another worker wakes up with the state alone."""
    query = "SELECT * FROM A x @ 60 \\ B n WHERE n.k = x.k"
    stream = SimulatedStream(query, SCHEMA, workers=1, buckets=4)
    kinds = [("A", 10, 1), ("A", 12, 2), ("B", 40, 2), ("A", 50, 3)]
    stream.batch(
        wide([{"event": t, "type": kind, "ts": t, "k": k, "v": 0} for kind, t, k in kinds])
    )
    stream.restart()
    stream.heartbeat(70)
    assert not stream.matches, "the watermark has to pass the instant"
    stream.heartbeat(71)
    assert [(m["x"]["k"], m["start"], m["end"]) for m in stream.matches] == [(1, 10, 70)]
    stream.restart()
    stream.heartbeat(500)
    assert [(m["x"]["k"], m["end"]) for m in stream.matches] == [(1, 70), (3, 110)]
    stream.heartbeat(100_000)
    assert stream.segments == 0, "nothing is kept once everything is too old"


def test_late_events_are_set_aside_once_and_the_others_used() -> None:
    query = QUERIES["negated middle"]
    stream = SimulatedStream(query, SCHEMA, buckets=4, lateness=5)
    rows = wide([{"event": 1, "type": "A", "ts": 100, "k": 1}])
    stream.batch(rows)
    edge = wide(
        [
            {"event": 2, "type": "C", "ts": 94, "k": 1},  # too old
            {"event": 3, "type": "A", "ts": 95, "k": 2},  # just in time
            {"event": 4, "type": "B", "ts": 60},  # too old, and without a key
            {"event": 5, "type": "C", "ts": 103, "k": 1},
            {"event": 6, "type": "C", "ts": 104, "k": 2},
        ]
    )
    stream.batch(edge)
    stream.heartbeat(1_000)
    assert sorted(row["event"] for row in stream.late) == [2, 4]
    found = sorted((m["x"]["event"], m["z"]["event"]) for m in stream.matches)
    assert found == [(1, 5), (3, 6)]


def test_rows_without_type_or_time_are_set_aside_with_the_reason() -> None:
    stream = SimulatedStream(QUERIES["monotone"], SCHEMA, buckets=4)
    stream.batch(wide([{"event": 1, "ts": 5}, {"event": 2, "type": "A"}]))
    stream.batch(wide([{"event": 3, "type": "A", "ts": 90, "k": 1}]))
    stream.batch(wide([{"event": 4, "ts": 2}]))  # no event, so not a late one either
    assert sorted((r["event"], r["quarantine_reason"]) for r in stream.quarantined) == [
        (1, "`type` is null"),
        (2, "`ts` is null or out of range"),
        (4, "`type` is null"),
    ]
    assert not stream.late


def test_the_key_is_used_again_when_an_event_without_one_is_gone() -> None:
    query = QUERIES["monotone"]
    rows = steady(600)
    rows[20]["k"] = None
    stream = SimulatedStream(query, SCHEMA, buckets=1)
    used = []
    for begin in range(0, 600, 50):
        stream.batch(rows[begin : begin + 50])
        kept = stream.caches[0].take(("run", 0))
        used.append(kept is not None and kept.detector.engines[0].is_partitioned)
        if kept is not None:
            stream.caches[0].keep(("run", 0), kept)
    assert used[0] is False
    assert used[-1] is True
    assert streamed(stream) == in_process(query, rows)


def test_ids_decide_between_events_of_one_instant_when_asked_to() -> None:
    query = "EVENT SEQ(A x, B y) WHERE [k] WITHIN 60"
    rows = wide(
        [
            {"event": 2, "type": "B", "ts": 5, "k": 1},
            {"event": 1, "type": "A", "ts": 5, "k": 1},
            {"event": 3, "type": "A", "ts": 5, "k": 1},
        ]
    )
    stream = SimulatedStream(query, SCHEMA, buckets=2, id="event", tie="seqno")
    stream.batch(rows)
    assert [(m["x"]["event"], m["y"]["event"]) for m in stream.matches] == [(1, 2)]


def test_equal_events_are_told_apart_across_batches_and_restarts() -> None:
    query = "EVENT A x WHERE x.v > 0"
    twin = {"event": 1, "type": "A", "ts": 5, "k": 1, "v": 1}
    stream = SimulatedStream(query, SCHEMA, buckets=3)
    for _ in range(3):
        stream.batch(wide([twin]))
        stream.restart()
    assert streamed(stream) == in_process(query, wide([twin] * 3))
    assert len(streamed(stream)) == 3
    stream.heartbeat(1_000)
    stream.heartbeat(100_000)
    assert stream.segments == 0


def test_a_witness_of_any_key_stands_against_events_that_all_lack_theirs() -> None:
    """The absent rule: without a key, x and z are compared with no event (SPEC A2.3, F)."""
    query = QUERIES["negated middle"]
    for witness, found in ((None, [(1, 3)]), (7, [])):
        stream = SimulatedStream(query, SCHEMA, buckets=8)
        rows = [{"event": 1, "type": "A", "ts": 1}, {"event": 3, "type": "C", "ts": 9}]
        if witness is not None:
            rows.append({"event": 2, "type": "B", "ts": 5, "k": witness})
        stream.batch(wide(rows))
        stream.heartbeat(1_000)
        assert [(m["x"]["event"], m["z"]["event"]) for m in stream.matches] == found
        assert streamed(stream) == in_process(query, sorted(wide(rows), key=lambda e: e["ts"]))


def test_state_of_another_query_is_refused_by_name() -> None:
    header = Header("mine")
    with pytest.raises(StateError) as refused:
        Header.from_bytes(header.to_bytes(), "another")
    assert refused.value.code == "other-query"


def test_state_of_another_format_is_refused_by_name() -> None:
    data = Header("mine").to_bytes().replace(b'"format":1', b'"format":99')
    with pytest.raises(StateError) as refused:
        Header.from_bytes(data, "mine")
    assert refused.value.code == "state-format"


def test_a_header_reads_back() -> None:
    stream = SimulatedStream(QUERIES["negated end"], SCHEMA, buckets=2)
    stream.batch(steady(100))
    for state in stream.states.values():
        assert isinstance(state.store, MemoryStore)
        assert state.store.head is not None
        written = HeaderStore(state.store).header()
        assert written is not None
        header = Header.from_bytes(written, "fingerprint")
        assert header.to_bytes() == written
        assert {s.number for s in header.segments} == set(state.store.held)


def test_only_large_segments_have_a_value_of_their_own() -> None:
    inner = MemoryStore()
    store = HeaderStore(inner)
    small, large = bytes(range(256)) * 30, b"\n" * 9_000
    for number in range(6):
        store.set_segment(number, small)
    store.set_segment(6, large)
    store.drop_segment(1)
    store.set_header(b"{}")
    assert sorted(inner.segments) == [4, 5, 6], "what does not fit beside the header"
    again = HeaderStore(inner)
    assert again.header() == b"{}"
    assert [again.segment(number) for number in (0, 2, 3, 4, 6)] == [small] * 4 + [large]
    for number in (0, 2, 3, 4, 5, 6):
        again.drop_segment(number)
    again.set_header(b"{}")
    assert not inner.segments
    assert HeaderStore(inner).header() == b"{}"


@pytest.mark.parametrize("is_timestamp", [True, False])
def test_the_clock_never_promises_too_much_nor_waits_for_ever(is_timestamp: bool) -> None:
    clock = StreamClock(is_timestamp)
    unit = 1_000 if is_timestamp else 1
    r = random.Random(5)
    times = [r.randint(-MAX_TIME, MAX_TIME - 1) for _ in range(2_000)]
    times += [r.randint(-(10**exponent), 10**exponent) for exponent in range(1, 19) for _ in "12"]
    times += [s.start * unit + d for s in clock.stretches for d in (-1, 0, 1)]
    times = [t for t in times if -MAX_TIME < t < MAX_TIME]
    for time in sorted(times):
        shown = clock.shown(time // unit)
        assert 0 < shown < 2**63 // 1_000
        assert clock.watermark(shown) <= time, "an event at this time may still come"
        assert clock.watermark(clock.due(time)) >= time
        assert clock.watermark(clock.due(time) - 1) < time


def test_the_clock_shows_dates_as_they_are() -> None:
    now = 1_771_000_000_123
    assert StreamClock(is_timestamp=True).shown(now) == now
    assert MILLISECONDS[-1].start == 365 * 86_400_000
