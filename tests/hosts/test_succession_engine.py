"""The engine of successors: what it keeps, what it lets go, and that nothing depends on it."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts import chain_engine, succession_engine
from cepheid.model.errors import LimitExceeded
from cepheid.model.options import Options, make_options
from cepheid.planner.prepare import costs_of, with_statistics
from cepheid.statistics.collect import StatisticsCollector
from cepheid.statistics.event_statistics import save_statistics
from tests.hosts.simulated_stream import SimulatedStream

CHAIN = "SELECT * FROM A x; B y; C z WHERE FILTER(x.k = y.k), FILTER(y.k = z.k)"
RUNS = "SELECT * FROM A x+; B y WHERE FILTER(PREV(x.k) = x.k), FILTER(x.k = y.k)"
GUARDED = "SELECT * FROM A x; (B y \\ C n) WHERE FILTER(x.k = y.k), n.k = x.k"
SCHEMA = pa.schema(
    [("event", pa.int64()), ("type", pa.string()), ("ts", pa.int64()), ("k", pa.int64())]
)


def events(seed: int, size: int, keys: int = 3, types: str = "ABC") -> list[dict[str, Any]]:
    r = random.Random(seed)
    rows = []
    for number in range(size):
        row = {"event": number, "type": r.choice(types), "ts": number // 2, "k": r.randrange(keys)}
        rows.append(row)
    return rows


def ids(*parts: Any) -> Counter[str]:
    return Counter(m["match_id"] for part in parts for m in part)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tidy and compact at every chance."""
    for module in (chain_engine, succession_engine):
        monkeypatch.setattr(module, "_WORTH_COMPACTING", 4)
        monkeypatch.setattr(module, "_SPARE_ROWS", 2)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("query", [CHAIN, RUNS, GUARDED])
def test_letting_go_of_events_changes_no_answer(query: str) -> None:
    dropped = 0
    for seed in range(60):
        r = random.Random(seed)
        rows = events(seed, 60, keys=8)
        options: dict[str, Any] = {"id": "event", "cap": 5, "lateness": r.choice((0, 3))}
        whole = ids(
            cepheid.detect(pa.Table.from_pylist(rows), query, id="event", cap=5).to_pylist()
        )
        arriving = sorted(rows, key=lambda row: row["ts"] + r.randint(0, options["lateness"]))
        detector = cepheid.Detector(query, **options)
        parts = []
        while arriving:
            size = r.randint(1, 9)
            parts.append(detector.feed(arriving[:size]))
            arriving = arriving[size:]
            if r.random() < 0.2:
                detector = cepheid.Detector.restore(query, detector.snapshot(), **options)
        dropped += len(rows) - detector.live_events
        parts.append(detector.close())
        assert ids(*parts) == whole, seed
    assert dropped > 500


def test_a_silent_key_does_not_hold_the_others_events() -> None:
    detector = cepheid.Detector(CHAIN)
    detector.feed([{"event": -1, "type": "A", "ts": -1, "k": -1}])
    most = 0
    for begin in range(0, 400_000, 20_000):
        rows = events(begin, 20_000, keys=50)
        for row in rows:
            row["ts"] += begin // 2
        detector.feed(pa.Table.from_pylist(rows))
        most = max(most, detector.live_events)
    assert most < 80_000
    late = [{"type": kind, "ts": 10**6 + n, "k": -1} for n, kind in enumerate("BC")]
    found = list(detector.feed([*late, {"type": "C", "ts": 2 * 10**6, "k": 7}]))
    assert [(m["x"]["ts"], m["z"]["ts"]) for m in found if m["x"]["k"] == -1] == [(-1, 10**6 + 1)]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("query", [CHAIN, RUNS])
def test_a_stream_forgets_what_no_instance_needs(query: str) -> None:
    rows = events(1, 3_000, keys=6)
    rows[0] |= {"type": "A", "k": -1}  # it waits for ever
    stream = SimulatedStream(query, SCHEMA, workers=2, buckets=2, cap=3)
    sizes = []
    for begin in range(0, len(rows), 60):
        stream.batch(rows[begin : begin + 60])
        sizes.append(sum(len(d) for s in stream.states.values() for d in s.store.held.values()))
    stream.heartbeat(10_000)
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    expected = ids(cepheid.detect(table, query, cap=3).to_pylist())
    assert ids(stream.matches) == expected
    assert max(sizes[25:]) < 2 * max(sizes[5:25])


def test_too_many_instances_are_refused_by_name() -> None:
    detector = cepheid.Detector("SELECT * FROM A x; B y", limits={"live_events": 100})
    rows = [{"type": "A", "ts": n} for n in range(200)]
    with pytest.raises(LimitExceeded) as refused:
        detector.feed(rows)
    assert refused.value.code in ("too-many-instances", "too-many-live-events")


def test_the_answer_waits_until_no_earlier_successor_can_come() -> None:
    detector = cepheid.Detector("SELECT * FROM A x; B y", lateness=5)
    assert len(detector.feed([{"type": "A", "ts": 1}, {"type": "B", "ts": 8}])) == 0
    assert len(detector.feed([{"type": "B", "ts": 6}])) == 0
    assert [m["y"]["ts"] for m in detector.feed([{"type": "A", "ts": 20}])] == [6]


def test_counters_tell_instances_touched() -> None:
    detector = cepheid.Detector(CHAIN)
    detector.feed(events(3, 500, keys=4))
    detector.close()
    told = detector.counters
    assert told["finished"] > 0
    assert told["touched"] <= 3 * told["started"]


@pytest.mark.usefixtures("eager")
def test_an_old_event_beside_a_live_one_does_not_come_back_to_life() -> None:
    """A5 met B7, which is gone; A30, which came with A5, still waits (found by reading)."""
    query = "SELECT * FROM A x; B y"
    detector = cepheid.Detector(query, lateness=10, id="event")
    parts = [
        detector.feed([{"event": "B7", "type": "B", "ts": 7}]),
        detector.feed(
            [{"event": "A5", "type": "A", "ts": 5}, {"event": "A30", "type": "A", "ts": 30}]
        ),
        detector.feed(
            [{"event": "C", "type": "C", "ts": 60}, {"event": "D", "type": "B", "ts": 55}]
        ),
    ]
    for _ in range(2):
        detector = cepheid.Detector.restore(query, detector.snapshot(), lateness=10, id="event")
        parts.append(detector.feed([{"event": "Z", "type": "Z", "ts": 61}]))
    parts.append(detector.feed([{"event": "B70", "type": "B", "ts": 70}]))
    parts.append(detector.close())
    pairs = [(m["x"]["event"], m["y"]["event"]) for part in parts for m in part]
    assert pairs == [("A5", "B7"), ("A30", "D")]


def test_integers_meet_the_floats_they_are_compared_with() -> None:
    """Instances are listed by a hash of the key, in which 2**53 + 1 must not part from 2.0**53."""
    rows = [
        {"type": "A", "ts": 1, "k": 2**53 + 1},
        {"type": "A", "ts": 1, "k": 7},
        {"type": "B", "ts": 2, "f": 2.0**53},
        {"type": "B", "ts": 3, "f": 7.0},
    ]
    by_key = cepheid.detect(rows, "SELECT * FROM A x; B y WHERE FILTER(x.k = y.f)")
    # The same comparison where no index can be made of it.
    tested = cepheid.detect(rows, "SELECT * FROM A x; B y WHERE FILTER(NOT x.k <> y.f)")
    pairs = [
        sorted((m["x"]["k"], m["y"]["ts"]) for m in table.to_pylist()) for table in (by_key, tested)
    ]
    assert pairs[0] == pairs[1]
    assert (7, 3) in pairs[0]


def test_statistics_from_a_file_travel_as_values(tmp_path: Path) -> None:
    collector = StatisticsCollector(Options())
    collector.add(pa.RecordBatch.from_pylist(events(1, 200)))
    path = tmp_path / "stats.json"
    save_statistics(collector.finish(), path)
    options = with_statistics(make_options({"statistics": str(path)}))
    path.unlink()
    travelled = pickle.loads(pickle.dumps(options))
    assert costs_of(travelled) is not None


def test_runs_that_double_are_refused_before_memory_is_full() -> None:
    """Two events at once double the runs: 20 pairs would be a million at the last of them."""
    detector = cepheid.Detector("SELECT * FROM A a+", limits={"live_events": 5_000})
    rows = [{"type": "A", "ts": number // 2} for number in range(40)]
    with pytest.raises(LimitExceeded) as refused:
        detector.feed(rows)
    assert refused.value.code == "too-many-instances"
