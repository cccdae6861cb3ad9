"""A case run by the oracle, as rows in the form of the hosts' match tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import cepheid
from cepheid.algebra.bind import bind_query
from cepheid.algebra.pattern import Map
from cepheid.algebra.query import Query
from cepheid.model.catalogue import Catalogue
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import Options, make_options
from tests.cases.loading import NAME, Case
from tests.oracle.denotation import matches
from tests.oracle.derived import mapped
from tests.oracle.events import Ev, Match

EPOCH = datetime(1970, 1, 1)


def oracle_rows(case: Case, *, wide: bool = False) -> list[dict[str, Any]]:
    """The matches by the definitions; `wide` events come from one table that knows only null."""
    options = make_options(case.options)
    compiled = cepheid.compile(case.text, case.language)
    is_timestamp = any(isinstance(row[options.end_column], datetime) for row in case.rows)
    domain = TimeDomain(is_timestamp, options.tick_us)
    history = [_event(row, position, options, wide) for position, row in enumerate(case.rows)]
    history = [_widened(event, compiled.program.catalogue, domain) for event in history]
    rows: list[dict[str, Any]] = []
    for stage in compiled.stages(options):
        query = bind_query(stage, domain, options.params, known=compiled.parameters)
        found = matches(query.pattern, history)
        rows = [_row(query, match, is_timestamp) for match in found]
        history = [*history, *(_derived(query, match) for match in found)]
    return rows


def _event(row: dict[str, Any], position: int, options: Options, wide: bool) -> Ev:
    start, end = options.start or options.time, options.end_column
    attrs = {name: v for name, v in row.items() if name not in (NAME, "type", start, end)}
    declared = options.attributes_of(row["type"])
    if declared is not None:
        attrs = {name: attrs.get(name) for name in declared}
    elif wide:
        attrs = {name: value for name, value in attrs.items() if value is not None}
    return Ev(row[NAME], row["type"], _time(row[start]), _time(row[end]), attrs, position)


def _time(value: int | datetime) -> int:
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def _widened(event: Ev, catalogue: Catalogue, domain: TimeDomain) -> Ev:
    """The interval in which an event happened whose source's clock is not exact."""
    source = catalogue.sources.get(event.type)
    if source is None or source.clock_error is None:
        return event
    error = domain.resolve(*source.clock_error)
    return replace(event, ts=event.ts - error, te=event.te + error)


def _derived(query: Query, match: Match) -> Ev:
    """The event a match becomes for other queries: an instant at the match's end, or lasting.

    It is an event of its own: what it was made of is not part of another query's match.
    """
    attributes = query.output.attributes if query.output else ()
    event = mapped(Map(query.pattern, query.event_type, attributes, "event"), match).events[0]
    return replace(event, ts=match.ts if query.lasting else match.te, te=match.te, parts=())


def _row(query: Query, match: Match, is_timestamp: bool) -> dict[str, Any]:
    def time(value: int) -> int | datetime:
        return EPOCH + timedelta(microseconds=value) if is_timestamp else value

    row: dict[str, Any] = {"start": time(match.ts), "end": time(match.te)}
    if query.output is not None:
        names = [name for name, _ in query.output.attributes]
        attrs = _derived(query, match).attrs
        return row | {name: attrs.get(name) for name in names}
    columns: dict[str, Any] = {}
    for name, event in match.bindings:
        columns.setdefault(name, []).append({NAME: event and event.id})
    return row | {name: each if len(each) > 1 else each[0] for name, each in columns.items()}
