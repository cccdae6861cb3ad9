"""Matches for people: a table in the terminal, each event as `id@time` and what matters of it.

Names and values are shown as `Text`, in which brackets are brackets and no markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cepheid.hosts.plain_types import python_rows
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.prepare import Prepared, prepare
from cepheid.planner.registered_sources import registrations_of
from cepheid.planner.sequence_plan import find_key
from cepheid.planner.succession_plan import SuccessionPlan, shared_key
from cepheid.report.time_axis import DAY, MILLISECOND, SECOND, TimeScale

_MOST_ATTRIBUTES = 3
_MOST_OF_A_RUN = 4
_LEAST_WIDTH = 100
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")


@dataclass(frozen=True, slots=True)
class Shown:
    """What to show of each event: its id, time and type columns, keys once, other attributes."""

    time: str
    type: str
    id: str | None = None
    keys: Sequence[str] = ()
    attributes: Sequence[str] = ()


def show_matches_of(
    compiled: CompiledQuery,
    options: Options,
    matches: pa.Table,
    total: int,
    *,
    attributes: Sequence[str] | None = None,
    title: str | None = None,
    hint: str = "",
) -> None:
    """Print the matches of a query: keys once, and of each event what the query tests.

    `attributes` are shown instead of the latter; `hint` tells how to see those that are not shown.
    """
    registrations = registrations_of(compiled, options)
    options = options if registrations is None else registrations.options
    keys, tested = _attributes_of(compiled, options, matches)
    shown = Shown(
        time=options.end_column,
        type=options.type,
        id=options.id,
        keys=keys,
        attributes=tested if attributes is None else attributes,
    )
    console = Console()
    if title is not None:
        console.print(Text(title, style="bold"))
    show_matches(matches, total, shown, console, hint)


def _attributes_of(
    compiled: CompiledQuery, options: Options, matches: pa.Table
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attributes of the key, and the others that the query's conditions name."""
    schema = _events_schema(matches.schema)
    if schema is None:
        return (), ()
    query = compiled.stages(options)[-1]
    prepared = prepare(
        query, options, schema, open_schema=True, known_parameters=compiled.parameters
    )
    keys = _key_attributes(prepared)
    return keys, tuple(name for name in prepared.needed_columns if name not in keys)


def event_attributes(matches: pa.Schema) -> tuple[str, ...]:
    """The attributes of the events in a table of matches; none where it holds values."""
    schema = _events_schema(matches)
    return () if schema is None else tuple(schema.names)


def _events_schema(matches: pa.Schema) -> pa.Schema | None:
    names = _variables(matches)
    if not names:
        return None
    kind = matches.field(names[0]).type
    event = kind.value_type if pa.types.is_list(kind) else kind
    return pa.schema([event.field(i) for i in range(event.num_fields)])


def _key_attributes(prepared: Prepared) -> tuple[str, ...]:
    plan = prepared.plan
    if isinstance(plan, SuccessionPlan):
        return tuple(dict.fromkeys((shared_key(plan) or {}).values()))
    key = find_key(plan)
    if key is None:
        return ()
    return tuple(dict.fromkeys(name for names in key.of.values() for name in names))


def show_matches(
    matches: pa.Table, total: int, shown: Shown, console: Console, hint: str = ""
) -> None:
    """Print the first matches and how many there are in all."""
    if total == 0:
        console.print("no matches")
        return
    if console.width < _LEAST_WIDTH and not console.is_terminal:
        console.width = _LEAST_WIDTH
    rows = sorted(python_rows(matches), key=lambda row: (row["end"], row["start"]))
    variables = _variables(matches.schema)
    if rows and variables:
        console.print(_events_table(rows, variables, shown))
    elif rows:
        console.print(_values_table(matches, rows))
    console.print(_count(len(rows), total, hint))


def _count(shown: int, total: int, hint: str) -> Text:
    if shown < total:
        text = Text(f"{total:,} matches, the first {shown:,} shown")
        text.append(hint, style="dim")
        return text
    return Text("1 match" if total == 1 else f"{total:,} matches")


def _events_table(rows: list[dict[str, Any]], variables: list[str], shown: Shown) -> Table:
    scale = TimeScale.of(rows[0]["start"])
    form = _TimeForm.of(rows, variables, shown.time, scale)
    keys = [key for key in shown.keys if all(_same(row, variables, key) for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for key in keys:
        table.add_column(Text(key), style="bold")
    for number, variable in enumerate(variables):
        kinds = {event.get(shown.type) for row in rows for event in _events(row, variable)}
        header = Text(variable)
        if len(kinds) == 1:
            header.append(f"\n{kinds.pop()}", style="dim")
        table.add_column(header, style=_COLOURS[number % len(_COLOURS)])
    has_length = any(row["start"] != row["end"] for row in rows)
    if has_length:
        table.add_column("length", justify="right", style="dim")
    others = [name for name in shown.attributes if name not in keys]
    for row in rows:
        cells = [_value(_first(row, variables, key)) for key in keys]
        cells += [_cell(_events(row, variable), form, shown, others) for variable in variables]
        if has_length:
            cells.append(scale.duration(scale.number(row["end"]) - scale.number(row["start"])))
        table.add_row(*map(Text, cells))
    return table


def _values_table(matches: pa.Table, rows: list[dict[str, Any]]) -> Table:
    """A query with RETURN: the derived events."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    names = [name for name in matches.column_names if name not in ("match_id", "query")]
    for name in names:
        number = pa.types.is_integer(matches.schema.field(name).type)
        table.add_column(Text(name), justify="right" if number else "left")
    for row in rows:
        table.add_row(*(Text(_value(row[name])) for name in names))
    return table


@dataclass(frozen=True, slots=True)
class _TimeForm:
    """How precisely moments must be told, so that those shown differ."""

    scale: TimeScale
    precision: int
    with_date: bool

    @classmethod
    def of(
        cls, rows: list[dict[str, Any]], variables: list[str], time: str, scale: TimeScale
    ) -> _TimeForm:
        moments = [
            scale.number(event[time])
            for row in rows
            for variable in variables
            for event in _events(row, variable)
            if event.get(time) is not None
        ]
        precision = next(
            step
            for step in (SECOND, MILLISECOND, 1)
            if step == 1 or len({moment // step for moment in moments}) == len(set(moments))
        )
        days = {moment // DAY for moment in moments}
        return cls(scale, precision, with_date=scale.is_clock and len(days) > 1)

    def text(self, value: Any) -> str:
        number = self.scale.number(value)
        return self.scale.instant(number, precision=self.precision, with_date=self.with_date)


def _variables(schema: pa.Schema) -> list[str]:
    """The columns that hold an event, or the list of events of an iterated variable."""
    return [
        field.name
        for field in schema
        if pa.types.is_struct(field.type)
        or (pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type))
    ]


def _events(row: dict[str, Any], variable: str) -> list[dict[str, Any]]:
    """The events of a variable in a match, none if it is not bound."""
    value = row[variable]
    if not value:
        return []
    return value if isinstance(value, list) else [value]


def _cell(
    events: list[dict[str, Any]], form: _TimeForm, shown: Shown, attributes: Sequence[str]
) -> str:
    """One event, or of a run the first and the last events and how many there are."""
    texts = [_event(event, form, shown, attributes) for event in events]
    if len(texts) > _MOST_OF_A_RUN:
        texts = [texts[0], "…", texts[-1], f"({len(events)})"]
    return "\n".join(texts) or "-"


def _event(event: dict[str, Any], form: _TimeForm, shown: Shown, attributes: Sequence[str]) -> str:
    time = form.text(event[shown.time])
    words = [time if shown.id is None else f"{_value(event.get(shown.id))}@{time}"]
    for attribute in attributes[:_MOST_ATTRIBUTES]:
        value = event.get(attribute)
        if value is not None and attribute not in (shown.id, shown.time, shown.type):
            words.append(_value(value))
    return " ".join(words)


def _same(row: dict[str, Any], variables: list[str], key: str) -> bool:
    every = [event for variable in variables for event in _events(row, variable)]
    return len({event[key] for event in every if key in event}) == 1


def _first(row: dict[str, Any], variables: list[str], key: str) -> Any:
    every = (event[key] for v in variables for event in _events(row, v) if key in event)
    return next((value for value in every if value is not None), None)


def _value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="auto").replace("+00:00", "Z")
    return str(value)
