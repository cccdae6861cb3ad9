"""Runs kept as totals: what memory they take, what a snapshot holds, and when events are stored."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts import stream_state, totals_engine
from cepheid.hosts.succession_engine import LiveSuccessions
from cepheid.model.errors import OptionError, StateError
from tests.hosts.simulated_stream import SimulatedStream

# Who begins a run is told by `head`: PREV of nothing is no test, so NOT of it refuses a beginning.
ONE_RUN = """
SELECT x.k, count(x) AS n, sum(x.v) AS total, sum(x.f) AS real, min(x.v), max(x.v), avg(x.v)
FROM T x+; T last
WHERE FILTER(PREV(x.k) = x.k), FILTER(x.k = last.k), last.stop = 1
  AND (x.head = 1 OR NOT PREV(x.k) <> x.k)
"""
PREFIXES = "SELECT count(x) AS n, sum(x.v) AS total FROM T x+ WHERE FILTER(PREV(x.k) = x.k)"
SCHEMA = pa.schema(
    {"type": pa.string(), "ts": pa.int64(), "k": pa.int64(), "v": pa.int64(), "f": pa.float64()}
    | {"head": pa.int64(), "stop": pa.int64()}
)
KEYS = 3


def batches(rounds: int, size: int) -> list[pa.Table]:
    """One run of each key, from the first event to the last."""
    found = []
    last = rounds * size
    for begin in range(0, last, size):
        at = np.arange(begin, begin + size)
        columns = {
            "type": ["T"] * size,
            "ts": at // 2,
            "k": at % KEYS,
            "v": at % 1_000 - 200,
            "f": 1 / (at + 1),
            "head": (at < KEYS).astype(np.int64),
            "stop": (at >= last - KEYS).astype(np.int64),
        }
        found.append(pa.table(columns, schema=SCHEMA))
    return found


def run(rounds: int, size: int, **options: Any) -> tuple[list[dict[str, Any]], int, int]:
    """The matches, and the most events and nodes that were held."""
    detector = cepheid.Detector(ONE_RUN, **options)
    found, events, nodes = [], 0, 0
    for batch in batches(rounds, size):
        found += list(detector.feed(batch))
        (engine,) = detector.engines
        assert isinstance(engine, LiveSuccessions)
        events, nodes = max(events, detector.live_events), max(nodes, engine.nodes)
    return sorted([*found, *detector.close()], key=lambda match: match["k"]), events, nodes


def test_a_run_without_end_takes_the_memory_of_a_short_one() -> None:
    found, events, nodes = run(100, 2_000)
    assert events < 3_000
    assert nodes < 20_000  # they are tidied at 16,384
    assert [m["n"] for m in found] == [66_666, 66_666, 66_665]
    everything = pa.concat_tables(batches(100, 2_000)).to_pandas()
    for match in found:
        own = everything[everything["k"] == match["k"]][:-1]
        real = 0.0
        for value in own["f"].tolist():
            real += value
        total = sum(own["v"].tolist())
        assert match["real"] == real
        assert (match["total"], match["min_v"], match["max_v"]) == (total, -200, 799)
        assert match["avg_v"] == total / len(own)


def test_stored_runs_keep_every_event_and_a_node_each() -> None:
    stored, events, nodes = run(10, 2_000, plan={"running_totals": False})
    assert events == 20_000
    assert nodes >= 19_990
    totals, events, nodes = run(10, 2_000, plan={"running_totals": True})
    assert events < 3_000
    assert totals == stored


def test_every_prefix_has_totals_of_its_own() -> None:
    rows = [{"type": "T", "ts": n, "k": 1, "v": n} for n in range(4)]
    found = sorted(
        (m["start"], m["n"], m["total"]) for m in cepheid.detect(rows, PREFIXES).to_pylist()
    )
    assert found == sorted(
        (begin, end - begin, sum(range(begin, end)))
        for begin in range(4)
        for end in range(begin + 1, 5)
    )


def test_a_snapshot_holds_the_instances_of_a_run_whose_events_are_gone() -> None:
    parts = batches(4, 2_000)
    whole = cepheid.Detector(ONE_RUN)
    cut = cepheid.Detector(ONE_RUN)
    expected, found = [], []
    for part in parts:
        expected += list(whole.feed(part))
        found += list(cut.feed(part))
        snapshot = cut.snapshot()
        assert len(snapshot) < 20_000
        cut = cepheid.Detector.restore(ONE_RUN, snapshot)
    expected += list(whole.close())
    found += list(cut.close())
    assert found == expected
    assert sorted(m["n"] for m in found) == [2665, 2666, 2666]


def test_a_snapshot_of_totals_is_refused_where_runs_are_stored_but_not_the_other_way_round() -> (
    None
):
    parts = batches(2, 900)
    detector = cepheid.Detector(ONE_RUN)
    detector.feed(parts[0])
    with pytest.raises(StateError) as refused:
        cepheid.Detector.restore(ONE_RUN, detector.snapshot(), plan={"running_totals": False})
    assert refused.value.code == "other-plan"
    stored = cepheid.Detector(ONE_RUN, plan={"running_totals": False})
    stored.feed(parts[0])
    again = cepheid.Detector.restore(ONE_RUN, stored.snapshot())
    found = [list(each.feed(parts[1])) + list(each.close()) for each in (detector, stored, again)]
    assert found[0] == found[1] == found[2]
    assert [m["n"] for m in found[0]] == [600 - 1] * 3


def test_integers_that_become_floats_take_their_totals_along() -> None:
    query = "SELECT count(x) AS n, sum(x.v), max(x.v), avg(x.w) FROM T x+; C c WHERE x.v < 100"
    rows = [
        [{"type": "T", "ts": n, "v": n + 1, "w": None if n else 5} for n in range(3)],
        [{"type": "T", "ts": 3, "v": 0.5, "w": 2}],
        [{"type": "T", "ts": 4, "v": 7, "w": 0.25}, {"type": "C", "ts": 5}],
    ]
    found = []
    for plan in ({"running_totals": True}, {"running_totals": False}):
        for restoring in (False, True):
            detector = cepheid.Detector(query, plan=plan)
            own: list[dict[str, Any]] = []
            for part in rows:
                own += list(detector.feed(part))
                if restoring:
                    detector = cepheid.Detector.restore(query, detector.snapshot(), plan=plan)
            found.append(sorted([*own, *detector.close()], key=lambda m: str(m["match_id"])))
    assert found[0] == found[1] == found[2] == found[3]
    longest = max(found[0], key=lambda m: int(m["n"]))
    assert (longest["n"], longest["sum_v"], longest["max_v"]) == (5, 13.5, 7.0)
    assert longest["avg_w"] == (5 + 2 + 0.25) / 3


KEYED = """
SELECT count(x) AS n, sum(x.v), avg(x.f), x.v AS last, y.v AS end_v FROM A x+; B y
WHERE FILTER(PREV(x.k) = x.k), FILTER(x.k = y.k), PREV(x.v) <= x.v
"""
FOLLOWED = "SELECT a.v, count(x) AS n, sum(x.f), max(x.v) FROM B a; A x+ WHERE FILTER(a.k = x.k)"
GUARDED = """
SELECT count(x) AS n, min(x.v) FROM (A x+) @ 3; (B y \\ C c)
WHERE FILTER(PREV(x.k) = x.k), FILTER(x.k = y.k), c.k = x.k
"""


@pytest.mark.parametrize("query", [KEYED, FOLLOWED, GUARDED])
def test_a_stream_goes_on_with_instances_and_the_events_since(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Written anew now and then, with segments in between that are merged.
    monkeypatch.setattr(stream_state, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(stream_state, "MERGED_AT_ONCE", 2)
    rewritten = 0
    for seed in range(4):
        monkeypatch.setattr(totals_engine, "_SPARE_ROWS", 4 if seed % 2 else 12)
        r = random.Random(seed)
        rows = [
            {"type": r.choice("AAAABC"), "ts": n // 2, "k": r.randrange(3), "v": r.randrange(4)}
            | {"f": r.choice((0.1, 0.7, None)), "head": None, "stop": None}
            for n in range(120)
        ]
        options: dict[str, Any] = {"cap": 5, "lateness": 2}
        stream = SimulatedStream(
            query, SCHEMA, seed=seed, workers=3, failing=0.1, buckets=3, **options
        )
        arriving = sorted(rows, key=lambda row: row["ts"] + r.randint(0, 2))
        for begin in range(0, len(rows), 5):
            stream.batch(arriving[begin : begin + 5])
            if r.random() < 0.3:
                stream.restart()
        stream.heartbeat(1_000)
        held = [part for s in stream.states.values() for part in s.store.held.values()]
        rewritten += sum(b"cepheid_beside" in part for part in held)
        table = pa.Table.from_pylist(rows, SCHEMA)
        expected = cepheid.detect(table, query, cap=5, plan={"running_totals": False})
        assert len(expected) > 10
        assert _by_id(stream.matches) == _by_id(expected.to_pylist()), seed
    assert rewritten


def test_a_streams_state_does_not_grow_with_a_run() -> None:
    sizes = {}
    for is_on in (True, False):
        stream = SimulatedStream(ONE_RUN, SCHEMA, buckets=1, plan={"running_totals": is_on})
        for batch in batches(20, 600):
            stream.batch(batch.to_pylist())
        (state,) = stream.states.values()
        sizes[is_on] = sum(map(len, state.store.held.values()))
        stream.heartbeat(10**6)
        assert sorted(m["n"] for m in stream.matches) == [3999] * 3
    assert 3 * sizes[True] < sizes[False]


def _by_id(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda match: str(match["match_id"]))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT y.v, count(x) AS n, sum(x.v) FROM B y; A x+; B z WHERE FILTER(z.k = x.k)",
        "SELECT count(x) AS n, y.v FROM A x+; B y; C z WHERE FILTER(PREV(x.k) = x.k)",
    ],
)
def test_equal_events_keep_their_numbers_after_others_are_gone(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals_engine, "_SPARE_ROWS", 1)
    for seed in range(12):
        r = random.Random(seed)
        rows = [
            {"type": r.choice("AABC"), "ts": n // 4, "k": r.randrange(2), "v": 1} for n in range(40)
        ]
        stored = cepheid.detect(rows, query, cap=4, plan={"running_totals": False})
        detector = cepheid.Detector(query, cap=4)
        found: list[dict[str, Any]] = []
        for begin in range(0, len(rows), 3):
            found += list(detector.feed(rows[begin : begin + 3]))
            if seed % 2:
                detector = cepheid.Detector.restore(query, detector.snapshot(), cap=4)
        found += list(detector.close())
        assert len({m["match_id"] for m in found}) == len(found)
        assert _by_id(found) == _by_id(stored.to_pylist())


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * FROM T x+", "SELECT * asks for the events"),
        ("SELECT max(x.s) FROM T x+", "max of texts"),
        ("SELECT count(x) FROM T x+ WHERE ALL(x.v) < x.v", "ALL looks at every event of it"),
        ("SELECT count(x) FROM (T x; T y)+", "more than one component is repeated"),
        ("SELECT count(x) FROM A a; (T x+; A b)", "it is a part of what is waited for"),
        ("SELECT sum(x.other) FROM T x+", "the type of other is not known yet"),
    ],
)
def test_what_cannot_be_kept_as_totals_is_stored_and_says_why(query: str, reason: str) -> None:
    events = [{"type": "T", "ts": n, "v": 1, "s": "a"} for n in range(3)]
    told = cepheid.compile(query, "next").explain(events)
    assert reason in told
    assert len(cepheid.detect(events, query)) >= 0
    with pytest.raises(OptionError) as refused:
        cepheid.detect(events, query, plan={"running_totals": True})
    assert refused.value.code == "no-running-totals"
    assert reason in str(refused.value)


@pytest.mark.parametrize("is_on", [None, True])
def test_a_workload_shares_the_events_of_runs_or_keeps_totals_when_told(is_on: bool | None) -> None:
    """Across snapshots, and while other queries come and go."""
    tables = batches(12, 1_000)
    queries = {"runs": ONE_RUN, "pairs": "SELECT * FROM T x; T y WHERE FILTER(x.k = y.k), x.v = 6"}
    whole = pa.concat_tables(tables)
    expected = {
        name: sorted(cepheid.detect(whole, text)["match_id"].to_pylist())
        for name, text in queries.items()
    }
    options = {"plan": {"running_totals": is_on}}
    workload = cepheid.Workload(queries, **options)
    found = []
    for number, table in enumerate(tables):
        found.append(workload.feed(table))
        if number == 3:
            workload = cepheid.Workload.restore(workload.snapshot(), **options)
        if number == 5:
            workload.add(ONE_RUN, name="other")
        if number == 7:
            workload.remove("other")
    told, live = workload.explain(), workload.live_events
    found.append(workload.close())
    for name, ids in expected.items():
        own = [match["match_id"] for part in found for match in part.get(name, ())]
        assert sorted(own) == ids
        assert ids
    assert ("its runs are kept as running totals" in told) == bool(is_on)
    assert (live < 5_000) == bool(is_on)


def test_a_workload_refuses_to_store_when_told_so() -> None:
    forced = cepheid.Workload({"all": "SELECT * FROM T x+; T y"}, plan={"running_totals": True})
    with pytest.raises(OptionError) as refused:
        forced.feed([{"type": "T", "ts": 1, "v": 1}])
    assert refused.value.code == "no-running-totals"


def test_times_of_any_unit_and_values_of_any_type_come_out_as_stored_ones() -> None:
    query = """SELECT count(x) AS n, min(x.at), max(x.at), count(x.ok) AS told, sum(x.d)
    FROM T x+; T y WHERE PREV(x.v) <= x.v"""
    day = datetime(2024, 5, 1, tzinfo=UTC)
    for unit in ("s", "ms", "us", "ns"):
        moments = pa.array(
            [day + timedelta(seconds=n) for n in range(9)], pa.timestamp(unit, "UTC")
        )
        table = pa.table(
            {
                "type": ["T"] * 9,
                "ts": moments,
                "v": [1, 2, 3, 1, 2, 2, 3, 4, 0],
                "at": moments,
                "ok": [True, None, False, True, True, None, False, True, True],
                "d": pa.array([Decimal(n) / 4 for n in range(9)], pa.decimal128(9, 2)),
            }
        )
        told = cepheid.compile(query, "next").explain(table)
        assert ("times are finer than microseconds" in told) == (unit == "ns")
        on, off = (
            cepheid.detect(table, query, plan={"running_totals": each}) for each in (None, False)
        )
        assert on.schema == off.schema
        assert len(on) > 20
        assert on.sort_by("match_id").to_pylist() == off.sort_by("match_id").to_pylist()


def test_a_query_over_aggregates_of_another_goes_on_from_a_snapshot() -> None:
    query = """
    runs: SELECT count(x) AS n, sum(x.v) AS total, x.k FROM T x+
    WHERE FILTER(PREV(x.k) = x.k), PREV(x.v) < x.v

    QUERY longer
    SELECT a.n AS before, b.n AS n, b.total FROM runs a; runs b
    WHERE FILTER(a.k = b.k), a.total < b.total
    """
    r = random.Random(3)
    rows = [{"type": "T", "ts": n, "k": n % 2, "v": r.randrange(9)} for n in range(60)]
    found = []
    for plan in ({"running_totals": True}, {"running_totals": False}):
        detector = cepheid.Detector(query, plan=plan)
        own: list[dict[str, Any]] = []
        for begin in range(0, len(rows), 7):
            own += list(detector.feed(rows[begin : begin + 7]))
            detector = cepheid.Detector.restore(query, detector.snapshot(), plan=plan)
        found.append(_by_id([*own, *detector.close()]))
    assert found[0] == found[1]
    assert len(found[0]) > 5


def test_explain_tells_what_is_kept() -> None:
    events = [{"type": "T", "ts": n, "k": 1, "v": 1} for n in range(3)]
    told = cepheid.compile(PREFIXES, "next").explain(events)
    assert "x+ kept as running totals: count, sum(v)" in told
    off = cepheid.compile(PREFIXES, "next").explain(events, plan={"running_totals": False})
    assert "their events are stored: the plan option running_totals is off" in off
