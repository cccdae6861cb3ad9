"""Runs kept as running totals give what the definitions give, and what stored runs give.

Random queries of NEXT return aggregates over their iterations; streams have ties, intervals or
instants, nulls and numbers at the edge of 64 bits, and are run whole, in cuts, out of order within
the lateness and through snapshots, while all that is not needed is let go at every chance.
CEPHEID_TOTALS_SHAPES asks for more shapes.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.algebra.bind import bind_query
from cepheid.algebra.expression import Absent
from cepheid.algebra.pattern import Except, Next, Plus, Timer, Union, walk
from cepheid.hosts import totals_engine
from cepheid.hosts.in_process import Detector
from cepheid.kernels import succession
from cepheid.model.errors import QueryError
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.prepare import prepare
from cepheid.planner.running_totals import RunningTotals
from tests.laws.succession_queries import RandomQuery
from tests.laws.succession_runs import CAP, end_of, stream
from tests.oracle.denotation import matches
from tests.oracle.events import Ev
from tests.oracle.expressions import Hole, Scope, evaluate

SHAPES = int(os.environ.get("CEPHEID_TOTALS_SHAPES", "12"))
STREAMS = 8
_PER_TEST = 2
_FUNCTIONS = ("count", "sum", "min", "max", "avg")
_VALUES = {"k": pa.int64(), "v": pa.int64(), "f": pa.float64(), "s": pa.string()}
INSTANTS = pa.schema({"event": pa.string(), "type": pa.string(), "ts": pa.int64(), **_VALUES})
INTERVALS = pa.schema(
    {"event": pa.string(), "type": pa.string(), "start": pa.int64(), "end": pa.int64(), **_VALUES}
)
ON, OFF = ({"running_totals": each} for each in (None, False))


def _asking(seed: int) -> str:
    """A random query, with a list of aggregates in place of its events."""
    query = RandomQuery(seed)
    choose = random.Random(seed)
    items = ["count(*) AS all_events"]
    for number, name in enumerate(query.variables):
        if name in query.iterated:
            items += [f"count({name}) AS n{number}", f"count({name}.s) AS s{number}"]
            for function in choose.sample(_FUNCTIONS, 3):
                of = choose.choice("vf")
                items.append(f"{function}({name}.{of}) AS {function}{number}{of}")
        if choose.random() < 0.5:
            items.append(f"{name}.v AS last{number}")
    return query.text.replace("SELECT *", f"SELECT {', '.join(items)}", 1)


def shapes() -> list[CompiledQuery]:
    """Random texts with a run that is kept as totals."""
    found: list[CompiledQuery] = []
    seed = 0
    while len(found) < SHAPES:
        seed += 1
        try:
            compiled = cepheid.compile(_asking(seed), "next")
            options = make_options({"cap": CAP})
            prepared = prepare(compiled.stages(options)[0], options, INSTANTS)
        except QueryError:
            continue
        if isinstance(prepared.totals, RunningTotals):
            found.append(compiled)
    return found


QUERIES = shapes()


def by_definition(query: CompiledQuery, rows: list[dict[str, Any]]) -> Counter[Any]:
    (stage,) = query.stages(make_options({"cap": CAP}))
    bound = bind_query(stage, TimeDomain(False, None), {})
    assert bound.output is not None
    history = [
        Ev(
            str(position),
            row["type"],
            row.get("start", row.get("ts")),
            end_of(row),
            {name: row.get(name) for name in _VALUES},
            position,
        )
        for position, row in enumerate(rows)
    ]
    found: Counter[Any] = Counter()
    for match in matches(bound.pattern, history):
        values = [evaluate(e, Scope(match), Absent.FALSE) for _, e in bound.output.attributes]
        told = tuple(None if isinstance(value, Hole) else value for value in values)
        found[match.ts, match.te, told] += 1
    return found


class Run:
    """What one way of running a query found: values, and match ids with them."""

    def __init__(self, parts: list[Any]) -> None:
        self.values: Counter[Any] = Counter()
        self.rows: Counter[Any] = Counter()
        for part in parts:
            for row in part.table().to_pylist():
                own = tuple(v for n, v in row.items() if n not in ("match_id", "query"))
                self.values[own[0], own[1], own[2:]] += 1
                self.rows[row["match_id"], own] += 1


def _run(
    query: CompiledQuery,
    events: pa.Table,
    options: dict[str, Any],
    source: random.Random | None = None,
    *,
    restoring: bool = False,
) -> Run:
    detector = Detector(query, **options)
    parts = []
    at = 0
    while at < len(events):
        size = len(events) if source is None else source.randint(1, 4)
        parts.append(detector.feed(events.slice(at, size)))
        at += size
        if restoring:
            detector = Detector.restore(query, detector.snapshot(), **options)
    parts.append(detector.close())
    return Run(parts)


def _stream(source: random.Random, *, intervals: bool, is_named: bool) -> list[dict[str, Any]]:
    rows = stream(source, intervals=intervals, most=18)
    for row in rows:
        if source.random() < 0.1 and row.get("v") is not None:
            row["v"] = source.choice((2**62, 2**63 - 1, -(2**62)))
        if not is_named:
            row["event"] = None
    return rows


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tidy and let go at every chance."""
    monkeypatch.setattr(totals_engine, "_SPARE_ROWS", 1)
    monkeypatch.setattr(succession, "_FIRST_UPKEEP", 4)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("first", range(0, SHAPES, _PER_TEST))
def test_totals_give_the_oracles_answer_and_that_of_stored_runs(first: int) -> None:
    for number in range(first, min(first + _PER_TEST, SHAPES)):
        query = QUERIES[number]
        for seed in range(STREAMS):
            source = random.Random(1_000 * number + seed)
            intervals, is_named = seed % 3 == 0, seed % 2 == 0
            rows = _stream(source, intervals=intervals, is_named=is_named)
            schema = INTERVALS if intervals else INSTANTS
            options: dict[str, Any] = {"cap": CAP} | ({"id": "event"} if is_named else {})
            options |= {"start": "start", "end": "end"} if intervals else {}
            told = f"{query.source.text}\n{rows}"
            table = pa.Table.from_pylist(rows, schema)
            stored = _run(query, table, options | {"plan": OFF})
            totals = _run(query, table, options | {"plan": ON})
            assert stored.values == by_definition(query, rows), told
            assert totals.rows == stored.rows, told
            cut = _run(query, table, options | {"plan": ON}, source, restoring=seed % 4 == 1)
            assert cut.rows == stored.rows, told
            # Equal events are numbered as they come, so only their own order may change.
            late = sorted(rows, key=lambda row: end_of(row) + source.randint(0, 3))
            lax = options | {"plan": ON, "lateness": 3}
            shuffled = pa.Table.from_pylist(late, schema)
            again = _run(query, shuffled, lax, source, restoring=seed % 4 == 2)
            assert again.rows == stored.rows, told


EARLIEST = "SELECT y.v, count(x) AS n, sum(x.v) AS total, max(x.f) AS most, x.v AS last FROM "


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "rest",
    [
        "B y; A x+ WHERE FILTER(y.k = x.k)",
        "B y; A x+ WHERE FILTER(PREV(x.v) <= x.v), FILTER(y.k = x.k), FILTER(x.v > y.v)",
        "B y; A x+; C z WHERE FILTER(PREV(x.v) <> x.v), FILTER(y.k = x.k), z.v <= x.v",
    ],
)
def test_the_earliest_of_many_runs_follows(rest: str) -> None:
    """Runs of one end are told apart by the stamps before, of which totals keep the order alone."""
    query = cepheid.compile(EARLIEST + rest, "next")
    long_runs = 0
    for seed in range(16):
        source = random.Random(seed)
        intervals = seed % 2 == 0
        rows = []
        for number in range(16):
            end = number // 2
            row = {"event": f"e{number}", "type": "BABAAAAAAACAAACA"[number]}
            row |= {"start": end - source.randrange(2), "end": end} if intervals else {"ts": end}
            row |= {"k": source.randrange(4), "v": source.randrange(3), "f": source.random()}
            rows.append(row)
        options: dict[str, Any] = {"cap": CAP, "id": "event", "plan": ON}
        options |= {"start": "start", "end": "end"} if intervals else {}
        table = pa.Table.from_pylist(rows, INTERVALS if intervals else INSTANTS)
        found = _run(query, table, options, source, restoring=seed % 3 == 0)
        assert found.values == by_definition(query, rows), rows
        long_runs += sum(n for (_, _, told), n in found.values.items() if told[1] > 1)
    assert long_runs > 8


def test_the_shapes_hold_every_operator() -> None:
    kinds = Counter(type(n) for q in QUERIES for n in walk(q.query.pattern))
    assert all(kinds[kind] for kind in (Next, Plus, Union, Except, Timer))
