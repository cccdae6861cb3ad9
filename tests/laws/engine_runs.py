"""The ways to run a query in process that must all give the oracle's answer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

import cepheid
from cepheid.algebra.bind import bind_query
from cepheid.algebra.pattern import Map
from cepheid.algebra.query import Query
from cepheid.hosts.in_process import Detector
from cepheid.hosts.matches import Matches
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.event_streams import Row, in_form, without_nulls
from tests.laws.random_queries import Case
from tests.oracle.denotation import matches
from tests.oracle.derived import mapped
from tests.oracle.events import Ev, Match

Answer: TypeAlias = Counter[tuple[Any, ...]]


class Found(Counter[tuple[Any, ...]]):
    """Matches as (events, start, end, returned values); and, beside them, their match ids."""

    def __init__(self) -> None:
        super().__init__()
        self.match_ids: Counter[str] = Counter()

    def add(self, case: Case, arrived: Sequence[Row], found: Matches, has_ids: bool) -> None:
        """Count the matches of a call; `arrived` are the events in order of arrival."""
        if not len(found):
            return
        table = found.table()
        references: list[Any] = [()] * len(table)
        if case.stages == 1:
            # Without an id column an event is told by its place in the order of arrival.
            references = [
                tuple(i if has_ids else arrived[i]["event"] for i in ids)
                for ids in found.ids.tolist()
            ]
        values: list[Any] = [()] * len(table)
        if case.returns:
            returned = table.drop_columns(["match_id", "query", "start", "end"])
            values = [tuple(row.values()) for row in returned.to_pylist()]
        times = _internal(table, "start"), _internal(table, "end")
        self.update(zip(references, *times, values, strict=True))
        self.match_ids.update(table.column("match_id").to_pylist())


def _internal(table: pa.Table, name: str) -> list[int]:
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    times: list[int] = column.cast(pa.int64()).to_pylist()
    return times


def oracle_answer(case: Case, rows: Sequence[Row], *, wide: bool = False) -> Answer:
    """The matches by the definitions; `wide` events come from a table that knows only null."""
    options = make_options(case.options)
    compiled = cepheid.compile(case.text)
    domain = TimeDomain(case.clock.is_timestamp, options.tick_us)
    history = []
    for seq, row in enumerate(rows):
        attrs = {name: value for name, value in row.items() if name not in ("type", "ts")}
        declared = options.attributes_of(row["type"])
        if declared is not None:
            attrs = {name: attrs.get(name) for name in declared}
        elif wide:
            attrs = without_nulls([attrs])[0]
        time = case.clock.internal(row["ts"])
        history.append(Ev(row["event"], row["type"], time, time, attrs, seq))
    answer: Answer = Counter()
    for stage in compiled.stages(options):
        query = bind_query(stage, domain, options.params, known=compiled.parameters)
        found = matches(query.pattern, history)
        answer = Counter(_told(case, query, match) for match in found)
        history = [*history, *(_derived(query, match) for match in found)]
    return answer


def _told(case: Case, query: Query, match: Match) -> tuple[Any, ...]:
    values: tuple[Any, ...] = ()
    if case.returns and query.output is not None:
        attrs = _derived(query, match).attrs
        values = tuple(attrs.get(name) for name, _ in query.output.attributes)
    return (match.ids if case.stages == 1 else (), match.ts, match.te, values)


def _derived(query: Query, match: Match) -> Ev:
    """The event a match becomes for other queries: an instant at the match's end."""
    attributes = query.output.attributes if query.output else ()
    event = mapped(Map(query.pattern, query.event_type, attributes, "event"), match).events[0]
    return replace(event, ts=match.te, te=match.te, parts=())


def whole(
    query: CompiledQuery,
    case: Case,
    rows: Sequence[Row],
    *,
    form: str = "dicts",
    ids: bool = True,
    lateness: int = 0,
) -> Found:
    """One batch."""
    found = Found()
    d = Detector(query, **_options(case, ids) | {"lateness": case.clock.duration(lateness)})
    found.add(case, rows, d.feed(in_form(rows, form, case.clock, ids=ids)), ids)
    found.add(case, rows, d.close(), ids)
    return found


def in_cuts(
    query: CompiledQuery,
    case: Case,
    rows: Sequence[Row],
    seed: int,
    *,
    form: str = "dicts",
    ids: bool = True,
) -> Found:
    """Random batches in order, with snapshots, restarts and heartbeats between some of them."""
    r = random.Random(seed)
    options = _options(case, ids)
    d = Detector(query, **options)
    found = Found()
    at = 0
    while at < len(rows):
        size = r.choice((1, 1, 2, 3, 5))
        found.add(case, rows, d.feed(in_form(rows[at : at + size], form, case.clock, ids=ids)), ids)
        at += size
        if r.random() < 0.25:
            d = Detector.restore(query, d.snapshot(), **options)
        if r.random() < 0.2 and at < len(rows):
            heartbeat = d.advance(case.clock.internal(rows[at]["ts"]))
            found.add(case, rows, heartbeat, ids)
    assert d.late.count == d.quarantined.count == 0
    found.add(case, rows, d.close(), ids)
    return found


def in_disorder(
    query: CompiledQuery,
    case: Case,
    rows: Sequence[Row],
    seed: int,
    *,
    form: str = "dicts",
    ids: bool = True,
) -> Found:
    """Arrival shuffled within the allowed lateness, in random batches."""
    r = random.Random(seed)
    lateness = r.choice((1, 3, 8))
    moved = disordered(rows, lateness, r, keep_ties=case.by_arrival)
    options = _options(case, ids) | {"lateness": case.clock.duration(lateness)}
    d = Detector(query, **options)
    found = Found()
    at = 0
    while at < len(moved):
        size = r.choice((1, 2, 3, 6))
        found.add(
            case, moved, d.feed(in_form(moved[at : at + size], form, case.clock, ids=ids)), ids
        )
        at += size
        if r.random() < 0.15:
            d = Detector.restore(query, d.snapshot(), **options)
    assert d.late.count == d.quarantined.count == 0
    found.add(case, moved, d.close(), ids)
    return found


def disordered(
    rows: Sequence[Row], lateness: int, r: random.Random, *, keep_ties: bool = False
) -> list[Row]:
    """The rows in another order, none later than `lateness` ticks after a younger one."""
    moved = sorted(rows, key=lambda row: row["ts"] + r.uniform(0, lateness * 0.999))
    if keep_ties:
        order: dict[int, list[Row]] = {}
        for row in rows:
            order.setdefault(row["ts"], []).append(row)
        moved = [order[row["ts"]].pop(0) for row in moved]
    return moved


def _options(case: Case, ids: bool) -> dict[str, Any]:
    return {**case.options, **({"id": "event"} if ids else {})}


def difference(expected: Answer, found: Answer) -> str:
    """What is missing and what is too much, for people."""
    return "\n".join(_lines("missing", expected - found) + _lines("too much", found - expected))


def _lines(word: str, matches: Iterable[Any]) -> list[str]:
    return [f"{word}: {match}" for match in matches]
