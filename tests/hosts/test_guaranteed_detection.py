"""Guaranteed detection: inputs in order, as far apart as they like, give the oracle's answer."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

import cepheid
from cepheid.hosts.in_process import Detector
from cepheid.hosts.matches import Matches
from cepheid.model.errors import OptionError, StateError
from tests.laws.succession_queries import TYPES
from tests.laws.succession_runs import CAP, by_definition, found_in, stream

Row = dict[str, Any]

QUERIES = {
    "successors": "SELECT * FROM A x; (B y | C z) WHERE FILTER(x.k = y.k)",
    "runs": "SELECT * FROM A x+; B y WHERE (x, y) OCCURS WITHIN 4",
    "an exception": "SELECT * FROM A x; (B y \\ N n)",
    "a timer": "SELECT * FROM A x @ 3 \\ N n WHERE n.k = x.k",
    "a guard": "EVENT SEQ(A x, !(N n), B y) WITHIN 6",
    "a negated end": "EVENT SEQ(A x, B y, !(C n)) WITHIN 6",
}


def interleaved(
    rows: list[Row], source: random.Random, *, kinds: Iterable[str] = TYPES, at_once: int = 3
) -> list[Row]:
    """Every type in order, but types behind each other by any amount."""
    queues = {kind: [row for row in rows if row["type"] == kind] for kind in kinds}
    found = []
    while any(queues.values()):
        kind = source.choice([kind for kind, queue in queues.items() if queue])
        found += queues[kind][:at_once]
        del queues[kind][:at_once]
    return found


def history_of(source: random.Random) -> list[Row]:
    """Ends of one type are in order because all are; intervals too, by (end, start)."""
    rows = stream(source, intervals=False)
    return sorted(rows, key=lambda row: row["ts"])


def least(rows: list[Row], inputs: tuple[str, ...]) -> int:
    return min(max([r["ts"] for r in rows if r["type"] == i], default=-(2**62)) for i in inputs)


@pytest.mark.parametrize("name", QUERIES)
def test_inputs_in_order_give_the_oracles_answer(name: str) -> None:
    query = cepheid.compile(QUERIES[name])
    options: dict[str, Any] = {"policy": "guaranteed", "id": "event", "inputs": list(TYPES)}
    options["cap"] = CAP
    compared = 0
    for seed in range(80):
        source = random.Random(seed)
        rows = history_of(source)
        arriving = interleaved(rows, source)
        detector = Detector(query, **options)
        parts: list[Matches] = []
        edges = sorted({0, len(arriving), *(source.randint(0, len(arriving)) for _ in range(4))})
        for begin, end in pairwise(edges):
            parts.append(detector.feed(arriving[begin:end]))
            assert detector.watermark == least(arriving[:end], tuple(TYPES))
            if source.random() < 0.4:
                detector = Detector.restore(query, detector.snapshot(), **options)
        assert detector.late.count == 0
        parts.append(detector.close())
        expected = by_definition(query, rows)
        assert found_in(query, parts) == expected, (seed, arriving)
        compared += sum(expected.values())
    assert compared > 15


def test_bounded_lateness_would_lose_what_is_guaranteed() -> None:
    rows = [{"type": "B", "ts": 50}, {"type": "A", "ts": 1}, {"type": "A", "ts": 99}]
    text = "SELECT * FROM A; B"
    assert all(len(p) == 0 for p in _run(Detector(text), rows))
    assert sum(map(len, _run(Detector(text, policy="guaranteed"), rows))) == 1


def test_a_silent_input_blocks_until_its_heartbeat() -> None:
    d = Detector("SELECT * FROM A; B", policy="guaranteed")
    assert len(d.feed([{"type": "A", "ts": 1}, {"type": "A", "ts": 90}])) == 0
    assert len(d.heartbeat("B", 3)) == 0
    assert d.watermark == 3
    assert len(d.feed([{"type": "B", "ts": 5}])) == 0, "another B at 5 may come"
    (match,) = d.heartbeat("B", 6)
    assert (match["A"]["ts"], match["B"]["ts"]) == (1, 5)
    assert d.watermark == 6
    assert len(d.heartbeat("B", 4)) == 0
    assert d.watermark == 6, "time does not run backwards"


def test_events_of_one_time_leave_together() -> None:
    d = Detector("SELECT * FROM A; B", policy="guaranteed")
    d.feed([{"type": "A", "ts": 1}, {"type": "A", "ts": 9}, {"type": "B", "ts": 5}])
    assert len(d.feed([{"type": "B", "ts": 5}])) == 0
    assert len(d.heartbeat("B", 6)) == 2


def test_a_heartbeat_before_the_first_event_counts() -> None:
    options = {"policy": "guaranteed"}
    d = Detector("SELECT * FROM A @ 5 \\ N", **options)
    d.heartbeat("N", datetime(2026, 1, 1, 9))
    d = Detector.restore(
        "SELECT * FROM A @ 5 s \\ N",
        Detector("SELECT * FROM A @ 5 s \\ N", **options).snapshot(),
        **options,
    )
    d.heartbeat("N", datetime(2026, 1, 1, 9))
    row = {"type": "A", "ts": datetime(2026, 1, 1, 8)}
    assert len(d.feed([row])) == 0
    assert len(d.heartbeat("A", row["ts"] + timedelta(seconds=6))) == 1


def test_a_time_out_falls_back_to_bounded_lateness(caplog: pytest.LogCaptureFixture) -> None:
    options = {"policy": "guaranteed", "input_timeout": 10, "inputs": ["A", "B"]}
    rows = [("A", 1), ("B", 3), ("A", 12), ("A", 30), ("B", 19), ("B", 20), ("A", 31), ("B", 40)]
    events = [{"type": kind, "ts": time} for kind, time in rows]
    for cuts in ([8], [1, 4, 5, 6, 8], list(range(9))):
        caplog.clear()
        d = Detector("SELECT * FROM A; B", **options)
        found: list[Matches] = []
        with caplog.at_level(logging.WARNING, "cepheid"):
            for begin, end in pairwise([0, *cuts]):
                found.append(d.feed(events[begin:end]))
        assert d.late.count == 1, "B at 19 lies more than 10 before A at 30"
        pairs = Counter((m["A"]["ts"], m["B"]["ts"]) for part in found for m in part)
        assert pairs == Counter([(1, 3), (12, 20)])
        assert d.watermark == 31
        told = [record.getMessage() for record in caplog.records]
        assert told
        assert all("`B`" in text for text in told)
        found.append(d.close())
        assert sum(map(len, found)) == 4


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"policy": "certain"}, "bad-policy"),
        ({"inputs": ["A"]}, "bad-policy"),
        ({"input_timeout": 3}, "bad-policy"),
        ({"policy": "guaranteed", "lateness": 3}, "bad-policy"),
        ({"policy": "guaranteed", "inputs": "AB"}, "bad-policy"),
        ({"policy": "guaranteed", "inputs": []}, "bad-policy"),
        ({"policy": "guaranteed", "input_timeout": -1}, "bad-policy"),
        ({"policy": "guaranteed", "inputs": ["A"]}, "missing-input"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], code: str) -> None:
    with pytest.raises(OptionError) as refused:
        Detector("SELECT * FROM A; B", **options)
    assert refused.value.code == code


def test_a_heartbeat_names_an_input() -> None:
    d = Detector("SELECT * FROM A; Beacon", policy="guaranteed")
    with pytest.raises(OptionError, match="Beacon"):
        d.heartbeat("Becon", 3)
    with pytest.raises(OptionError) as refused:
        Detector("SELECT * FROM A; B").heartbeat("A", 3)
    assert refused.value.code == "no-inputs"


def test_a_snapshot_of_other_inputs_is_refused() -> None:
    text = "SELECT * FROM A; B"
    taken = Detector(text, policy="guaranteed").snapshot()
    with pytest.raises(StateError):
        Detector.restore(text, taken, policy="guaranteed", inputs=["A", "B", "C"])


def _run(detector: Detector, rows: list[Row]) -> list[Matches]:
    return [*(detector.feed([row]) for row in rows), detector.close()]
