"""Timers against the definitions: any delay, also none, failures, and time that runs on by itself.

The random queries of successors hold timers, too; here are those whose delays are parameters, and
which are tidied, restored and moved on at every chance.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import cepheid
from cepheid.algebra.bind import bind_query
from cepheid.hosts import succession_engine
from cepheid.hosts.in_process import Detector
from cepheid.hosts.matches import Matches
from cepheid.kernels import succession
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.succession_runs import end_of, found_in, stream
from tests.oracle.denotation import matches
from tests.oracle.events import Ev

QUERIES = [
    "SELECT * FROM A x @ :d; (B y | C z @ :e)",
    "SELECT * FROM A x; ((B y @ :d); C z @ :e) WHERE FILTER(x.k = y.k)",
    "SELECT * FROM A x; ((B y; C z) @ :d | (A v @ :e)) WHERE (x, z) OCCURS WITHIN 6",
    "SELECT * FROM (A x @ :d)+; B y @ :e WHERE (x, y) OCCURS WITHIN 5, x.v <= y.v",
    "SELECT * FROM ((A x; B y) @ :d)+ @ :e WHERE FILTER(PREV(y.k) = y.k)",
    "SELECT * FROM (A x | B y @ :d) @ :e \\ N n WHERE n.k = x.k OR n.k = y.k",
    "SELECT * FROM A x; (B y @ :d \\ (N n @ :e))",
    "SELECT * FROM (A x; (B y @ :d)) \\ (N n; C m @ :e) WHERE n.v >= x.v",
]
STREAMS = 60
CAP = 3


def history(rows: list[dict[str, Any]]) -> list[Ev]:
    own = {"event", "type", "ts", "start", "end"}
    return [
        Ev(
            row["event"],
            row["type"],
            row.get("start", row.get("ts")),
            end_of(row),
            {name: value for name, value in row.items() if name not in own},
            position,
        )
        for position, row in enumerate(rows)
    ]


def by_definition(
    query: CompiledQuery, rows: list[dict[str, Any]], options: dict[str, Any]
) -> Counter[Any]:
    (stage,) = query.stages(make_options(options))
    known = query.parameters
    bound = bind_query(stage, TimeDomain(False, None), options["params"], known=known)
    return Counter(
        (tuple((v, e.id) for v, e in match.bindings if e is not None), match.ts, match.te)
        for match in matches(bound.pattern, history(rows))
    )


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tidy at every chance, between sets of one end, too."""
    monkeypatch.setattr(succession_engine, "_WORTH_COMPACTING", 2)
    monkeypatch.setattr(succession_engine, "_SPARE_ROWS", 1)
    monkeypatch.setattr(succession, "_FIRST_UPKEEP", 4)
    monkeypatch.setattr(succession, "_FIRST_ROWS", 1)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_timers_fire_as_the_definitions_say(number: int) -> None:
    query = cepheid.compile(QUERIES[number])
    found = delayed = 0
    for seed in range(STREAMS):
        source = random.Random(100 * number + seed)
        intervals = seed % 4 == 0
        rows = stream(source, intervals=intervals)
        names = [name for name in ("d", "e") if f":{name}" in QUERIES[number]]
        params = {name: source.choice((0, 1, 2, 5)) for name in names}
        options: dict[str, Any] = {"params": params, "id": "event", "cap": CAP}
        options |= {"start": "start", "end": "end"} if intervals else {}
        options |= {"failures": True} if "\\" in QUERIES[number] and seed % 2 else {}
        expected = by_definition(query, rows, options)
        lateness = source.choice((0, 3))
        options["lateness"] = lateness
        arriving = sorted(rows, key=lambda row: end_of(row) + source.randint(0, lateness))
        detector = Detector(query, **options)
        parts: list[Matches] = []
        for row in arriving:
            before = detector.watermark
            parts.append(detector.feed([row]))
            if source.random() < 0.3:  # time runs on without an event, as far as it may
                following = [end_of(r) for r in arriving[arriving.index(row) + 1 :]]
                parts.append(detector.advance(max(before, min(following, default=0))))
            if source.random() < 0.3:
                detector = Detector.restore(query, detector.snapshot(), **options)
        last = max(map(end_of, rows), default=0)
        (engine,) = detector.engines or (None,)
        while engine is not None and (due := engine.next_deadline()) is not None:
            parts.append(detector.advance(due))
            delayed += len(parts[-1]) if due > last + 1 else 0
        assert len(detector.close()) == 0, "nothing is left that a deadline did not tell of"
        told = f"{QUERIES[number]} {options}\n{arriving}"
        if "failures" in options:  # two may fail by one exception
            assert sorted(_times(parts)) == sorted(match[1:] for match in expected.elements()), told
        else:
            assert found_in(query, parts) == expected, told
        found += sum(expected.values())
    assert found > 3
    assert delayed


def _times(parts: list[Matches]) -> list[tuple[int, int]]:
    return [(row["start"], row["end"]) for part in parts for row in part.table().to_pylist()]
