"""The engine of successors and the definitions find the same in random streams, however it runs.

Each query is a text of NEXT; each stream has ties, intervals or instants, attributes that are
missing or null, and is run whole, in random cuts, out of order within the lateness, and through
snapshots. CEPHEID_SUCCESSION_SHAPES asks for more shapes.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from typing import Any

import pytest

import cepheid
from cepheid.algebra.bind import bind_query
from cepheid.algebra.pattern import Except, Next, Plus, Timer, Union, walk
from cepheid.hosts.in_process import Detector
from cepheid.hosts.matches import Matches
from cepheid.model.errors import QueryError
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.succession_queries import TYPES, RandomQuery
from tests.oracle.denotation import matches
from tests.oracle.events import Ev

SHAPES = int(os.environ.get("CEPHEID_SUCCESSION_SHAPES", "96"))
STREAMS = 24
CAP = 4
_PER_TEST = 8


def shapes() -> list[CompiledQuery]:
    """Random texts that the language takes, and that some kernel of successors runs."""
    found: list[CompiledQuery] = []
    seed = 0
    while len(found) < SHAPES:
        seed += 1
        try:
            compiled = cepheid.compile(RandomQuery(seed).text, "next")
        except QueryError:
            continue  # a condition out of reach, a window under a union, ...
        kinds = {type(node) for node in walk(compiled.query.pattern)}
        if kinds & {Next, Plus, Union, Except, Timer}:
            found.append(compiled)
    return found


QUERIES = shapes()


def stream(source: random.Random, *, intervals: bool) -> list[dict[str, Any]]:
    """Events in order of their ends; some lack an attribute, some have a null."""
    rows = []
    ends = sorted(source.randint(0, 14) for _ in range(source.randint(0, 14)))
    for number, end in enumerate(ends):
        start = end - source.choice((0, 0, 1, 3)) if intervals else end
        row: dict[str, Any] = {"event": f"e{number}", "type": source.choice(TYPES)}
        row |= {"start": start, "end": end} if intervals else {"ts": end}
        values = {
            "k": source.randrange(2),
            "v": source.randint(0, 3),
            "f": source.choice((0.5, 1.0, 2.5)),
            "s": source.choice(("a", "b", "ab")),
        }
        for name, value in values.items():
            if source.random() < 0.9:
                row[name] = value
            elif source.random() < 0.5:
                row[name] = None
        rows.append(row)
    return rows


def by_definition(query: CompiledQuery, rows: list[dict[str, Any]]) -> Counter[Any]:
    options = make_options({"cap": CAP})
    (stage,) = query.stages(options)
    bound = bind_query(stage, TimeDomain(False, None), {})
    own = {"event", "type", "ts", "start", "end"}
    history = [
        Ev(
            row["event"],
            row["type"],
            row.get("start", row.get("ts")),
            row.get("end", row.get("ts")),
            {name: value for name, value in row.items() if name not in own},
            position,
        )
        for position, row in enumerate(rows)
    ]
    return Counter(
        (tuple((v, e.id) for v, e in match.bindings if e is not None), match.ts, match.te)
        for match in matches(bound.pattern, history)
    )


def found_in(query: CompiledQuery, parts: list[Matches]) -> Counter[Any]:
    """The matches as the oracle tells them; each has a match id of its own."""
    found: Counter[Any] = Counter()
    ids: Counter[str] = Counter()
    columns = query.query.columns
    for part in parts:
        for row in part.table().to_pylist():
            chain = []
            for name in columns:
                events = row[name] if isinstance(row[name], list) else [row[name]]
                chain += [(_end(e), name, e["event"]) for e in events if e is not None]
            order = [(name, event) for _, name, event in sorted(chain, key=lambda c: c[0])]
            found[(tuple(order), row["start"], row["end"])] += 1
            ids[row["match_id"]] += 1
    # An iteration of an iteration finds one thing in several ways, by the definitions, too.
    assert sorted(ids.values()) == sorted(found.values()), "one match id for two matches"
    return found


def _end(event: dict[str, Any]) -> int:
    end: int = event["end"] if event.get("end") is not None else event["ts"]
    return end


def whole(
    query: CompiledQuery, rows: list[dict[str, Any]], options: dict[str, Any]
) -> Counter[Any]:
    detector = Detector(query, **options)
    return found_in(query, [detector.feed(rows), detector.close()])


def in_cuts(
    query: CompiledQuery,
    rows: list[dict[str, Any]],
    options: dict[str, Any],
    source: random.Random,
    *,
    restoring: bool,
) -> Counter[Any]:
    detector = Detector(query, **options)
    parts = []
    at = 0
    while at < len(rows):
        size = source.randint(1, 4)
        parts.append(detector.feed(rows[at : at + size]))
        at += size
        if restoring:
            detector = Detector.restore(query, detector.snapshot(), **options)
    parts.append(detector.close())
    return found_in(query, parts)


@pytest.mark.parametrize("first", range(0, SHAPES, _PER_TEST))
def test_every_way_to_run_gives_the_oracles_answer(first: int) -> None:
    for number in range(first, min(first + _PER_TEST, SHAPES)):
        query = QUERIES[number]
        for seed in range(STREAMS):
            source = random.Random(1_000 * number + seed)
            intervals = seed % 3 == 0
            rows = stream(source, intervals=intervals)
            options: dict[str, Any] = {"cap": CAP, "id": "event"}
            options |= {"start": "start", "end": "end"} if intervals else {}
            expected = by_definition(query, rows)
            told = f"{query.source.text}\n{rows}"
            assert whole(query, rows, options) == expected, told
            way = seed % 4
            if way == 0:
                rates = {each: source.choice((1, 5, 50)) for each in TYPES}
                costly = options | {"statistics": rates}
                assert whole(query, rows, costly) == expected, told
            elif way == 1:
                assert in_cuts(query, rows, options, source, restoring=False) == expected, told
            elif way == 2:
                assert in_cuts(query, rows, options, source, restoring=True) == expected, told
            else:
                late = sorted(rows, key=lambda row: _end(row) + source.randint(0, 3))
                lax = options | {"lateness": 3}
                restoring = source.random() < 0.5
                assert in_cuts(query, late, lax, source, restoring=restoring) == expected, told


def test_the_shapes_hold_every_operator() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = Counter(type(n) for q in QUERIES for n in walk(q.query.pattern))
    assert all(kinds[kind] >= SHAPES // 16 for kind in (Next, Plus, Union, Except, Timer))
