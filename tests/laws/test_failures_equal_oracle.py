"""Failed detections inside of patterns come out of the whole (SPEC A1.3), as is defined."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Any

import pytest

import cepheid
from cepheid.algebra.bind import bind_query
from cepheid.hosts.matches import Matches
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.succession_runs import CAP, end_of, stream
from tests.oracle.denotation import matches
from tests.oracle.events import Ev

TEXTS = (
    r"A a; (B b \ N n) \ C m",
    r"A a; (B b \ N n); C c",
    r"A a; (B b \ N n); C c WHERE FILTER(a.k = b.k), (a, c) OCCURS WITHIN 4",
    r"(A a; (B b \ N n)) | C c",
    r"C c | (A a; (B b \ N n))",
    r"(A a; (B b \ N n)) @ 2",
    r"(A a; (B b \ N n))+ WHERE FILTER(n.v > 0), PREV(a.v) <= a.v",
    r"((A a; (B b \ N n)) | C c)+; A d WHERE FILTER(a.v > 0), d.v > 1",
    r"A a; (B b; (C c \ N n))",
    r"A a; (B b \ (N n @ 2)); C c WHERE n.k = a.k",
    r"(A a; (B b \ N n); (C c \ N m)) \ A d WHERE (a, c) OCCURS WITHIN 6",
)
OPTIONS: dict[str, Any] = {"cap": CAP, "id": "event", "failures": True}


def compiled(text: str) -> CompiledQuery:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cepheid.compile(f"SELECT * FROM {text}", "next")


def by_definition(query: CompiledQuery, rows: list[dict[str, Any]]) -> Counter[Any]:
    (stage,) = query.stages(make_options(OPTIONS))
    pattern = bind_query(stage, TimeDomain(False, None), {}).pattern
    history = [
        Ev(
            row["event"],
            row["type"],
            row.get("start", row.get("ts")),
            end_of(row),
            {name: row[name] for name in ("k", "v") if name in row},
            position,
        )
        for position, row in enumerate(rows)
    ]
    return Counter((len(m.events), m.ts, m.te) for m in matches(pattern, history))


def found_in(parts: list[Matches]) -> Counter[Any]:
    """How many events, start and end of each; what fails has no events."""
    found: Counter[Any] = Counter()
    for part in parts:
        for row in part.table().to_pylist():
            bound = [v for name, v in row.items() if name not in _COMMON and v is not None]
            events = sum(len(each) if isinstance(each, list) else 1 for each in bound)
            found[events, row["start"], row["end"]] += 1
    return found


_COMMON = ("match_id", "query", "start", "end")


@pytest.mark.parametrize("text", TEXTS)
def test_failures_are_handed_on(text: str) -> None:
    query = compiled(text)
    failed = 0
    for seed in range(60):
        source = random.Random(f"{text} {seed}")
        intervals = seed % 4 == 0
        rows = stream(source, intervals=intervals, most=20)
        options = OPTIONS | ({"start": "start", "end": "end"} if intervals else {})
        expected = by_definition(query, rows)
        failed += sum(count for (events, _, _), count in expected.items() if not events)
        detector = cepheid.Detector(query, **options)
        assert found_in([detector.feed(rows), detector.close()]) == expected, rows
        late = sorted(rows, key=lambda row: end_of(row) + source.randint(0, 3))
        lax = options | {"lateness": 3}
        detector = cepheid.Detector(query, **lax)
        parts = []
        for begin in range(0, len(late), 3):
            parts.append(detector.feed(late[begin : begin + 3]))
            if source.random() < 0.3:
                detector = cepheid.Detector.restore(query, detector.snapshot(), **lax)
        assert found_in([*parts, detector.close()]) == expected, rows
    assert failed >= 5 or text == r"A a; (B b; (C c \ N n))"


def test_together_they_fail_the_same() -> None:
    """Parts that are shared may be awaited in one query, and fail in another."""
    queries = {str(n): compiled(text) for n, text in enumerate(TEXTS)}
    for seed in range(20):
        rows = stream(random.Random(seed), intervals=False, most=20)
        workload = cepheid.Workload(queries, **OPTIONS)
        found = workload.feed(rows) + workload.close()
        for name, query in queries.items():
            parts = [found[name]] if name in found else []
            assert found_in(parts) == by_definition(query, rows), (TEXTS[int(name)], rows)
