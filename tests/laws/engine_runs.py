"""The ways to run a query in process that must all give the oracle's answer."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import cepheid
from cepheid.algebra.bind import bind
from cepheid.hosts.in_process import Detector
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.random_queries import Case
from tests.oracle.denotation import matches
from tests.oracle.events import Ev

Answer = Counter[tuple[Any, ...]]


def oracle_answer(case: Case, rows: list[dict[str, Any]]) -> Answer:
    """Ids of the matched events and the time the match ends, by the definitions."""
    options = make_options(case.options)
    query = cepheid.compile(case.text).stages(options)[-1]
    pattern = bind(query.pattern, TimeDomain(is_timestamp=False), {})
    history = []
    for seq, row in enumerate(rows):
        attrs = {k: v for k, v in row.items() if k not in ("event", "type", "ts")}
        if options.types is not None:
            declared = options.types.get(row["type"])
            if declared is not None:
                attrs = {k: attrs.get(k) for k in declared}
            else:
                attrs = {k: v for k, v in attrs.items() if v is not None}
        history.append(Ev(row["event"], row["type"], row["ts"], row["ts"], attrs, seq))
    return Counter((*m.ids, m.te) for m in matches(pattern, history))


def _answer(found: cepheid.Matches | Any) -> Answer:
    table = found.table()
    ends = table.column("end").to_pylist()
    return Counter((*ids, end) for ids, end in zip(found.ids.tolist(), ends, strict=True))


def whole(query: CompiledQuery, case: Case, rows: list[dict[str, Any]]) -> Answer:
    """One batch."""
    d = Detector(query, id="event", **case.options)
    return _answer(d.feed(rows) + d.close()) if rows else Counter()


def in_cuts(query: CompiledQuery, case: Case, rows: list[dict[str, Any]], seed: int) -> Answer:
    """Random batches, with snapshot and restore between some of them."""
    r = random.Random(seed)
    d = Detector(query, id="event", **case.options)
    found: Answer = Counter()
    at = 0
    while at < len(rows):
        size = r.choice((1, 1, 2, 3, 5))
        found += _answer(d.feed(rows[at : at + size]))
        at += size
        if r.random() < 0.3:
            d = Detector.restore(query, d.snapshot(), id="event", **case.options)
    return found + _answer(d.close()) if rows else found


def in_disorder(query: CompiledQuery, case: Case, rows: list[dict[str, Any]], seed: int) -> Answer:
    """Arrival shuffled within the allowed lateness, in random batches."""
    r = random.Random(seed)
    lateness = r.choice((1, 3, 8))
    moved = sorted(rows, key=lambda row: row["ts"] + r.uniform(0, lateness * 0.999))
    if case.options.get("tie") == "seqno":
        # Arrival decides ties, so tied events must keep their order.
        order = {}
        for row in rows:
            order.setdefault(row["ts"], []).append(row)
        moved = [order[row["ts"]].pop(0) for row in moved]
    d = Detector(query, id="event", lateness=lateness, **case.options)
    found: Answer = Counter()
    at = 0
    while at < len(moved):
        size = r.choice((1, 2, 3, 6))
        found += _answer(d.feed(moved[at : at + size]))
        at += size
        if r.random() < 0.2:
            d = Detector.restore(query, d.snapshot(), id="event", lateness=lateness, **case.options)
    assert d.late.count == 0
    return found + _answer(d.close()) if rows else found
