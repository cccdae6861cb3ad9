"""Ways to run a query of successors over rows, and what the definitions find in them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from cepheid.algebra.bind import bind_query
from cepheid.hosts.in_process import Detector
from cepheid.hosts.matches import Matches
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.succession_queries import TYPES
from tests.oracle.denotation import matches
from tests.oracle.events import Ev

CAP = 4


def portions(count: int, size: int) -> list[Any]:
    """Where portions of so many queries begin, as parameters; all but the first third are slow."""
    slow = pytest.mark.slow
    return [pytest.param(n, marks=slow if 3 * n >= count else ()) for n in range(0, count, size)]


def stream(source: random.Random, *, intervals: bool, most: int = 14) -> list[dict[str, Any]]:
    """Events in order of their ends; some lack an attribute, some have a null."""
    rows = []
    ends = sorted(source.randint(0, 14) for _ in range(source.randint(0, most)))
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
                chain += [(end_of(e), name, e["event"]) for e in events if e is not None]
            order = [(name, event) for _, name, event in sorted(chain, key=lambda c: c[0])]
            found[(tuple(order), row["start"], row["end"])] += 1
            ids[row["match_id"]] += 1
    assert max(ids.values(), default=1) == 1, "one match id for two matches"
    return found


def end_of(event: dict[str, Any]) -> int:
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
