"""What a timeline of matches shows: a lane per match, marks for its events, what did not happen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.plain_types import python_rows
from cepheid.model.errors import DataError, OptionError
from cepheid.report.time_axis import TimeScale

Axis = Literal["auto", "clock", "elapsed"]

NOT_A_MATCH_TABLE = "not-a-match-table"
BAD_TIMELINE_OPTION = "bad-timeline-option"

# When matches are this many times shorter than the time they are spread over, each would be a dot
# on a common clock: then every lane begins at its own start.
_SPREAD_FOR_ELAPSED = 4


@dataclass(frozen=True, slots=True)
class Absence:
    """
    An event that did not occur between two variables of the match.

    `after=None` stands for a negated start: nothing since one window before the last event.
    `before=None` stands for a negated end: nothing until the window is over.
    """

    label: str
    after: str | None
    before: str | None


@dataclass(frozen=True, slots=True)
class TimelineOptions:
    """What to show of the matches, and in which words."""

    title: str = "Matches"
    limit: int = 8
    time: str = "ts"  # the events' attribute that holds their time
    type: str = "type"  # the one that holds their type, if they carry it
    name: str | None = None  # the one that names a lane, for example the key
    one_per_name: bool = False  # show only the shortest match of each name
    description: Sequence[str] = ()  # attributes told below the lane's name
    detail: Sequence[str] = ()  # attributes told below each mark
    window: timedelta | int | None = None
    absences: Sequence[Absence] = ()
    axis: Axis = "auto"

    def __post_init__(self) -> None:
        """Refuse a picture of nothing."""
        if self.limit < 1:
            message = "a timeline needs a `limit` of at least one match"
            raise OptionError.of(BAD_TIMELINE_OPTION, message)
        if self.axis not in ("auto", "clock", "elapsed"):
            message = f"`axis` must be auto, clock or elapsed, not {self.axis}"
            raise OptionError.of(BAD_TIMELINE_OPTION, message)


@dataclass(frozen=True, slots=True)
class Mark:
    """An event of the match, or (without variable) another event of the same name nearby."""

    variable: str | None
    time: int
    text: str
    detail: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Gap:
    """The stretch of a lane in which an event did not occur."""

    label: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Lane:
    """One match."""

    name: str
    description: str
    start: int
    end: int
    window_end: int | None
    marks: tuple[Mark, ...]
    gaps: tuple[Gap, ...]
    context: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """All that the pictures draw, free of how they draw it."""

    title: str
    subtitle: str
    scale: TimeScale
    elapsed: bool
    lanes: tuple[Lane, ...]
    # Each variable with the event types seen under it.
    variables: Mapping[str, str]
    window: int | None

    def position(self, lane: Lane, time: int) -> int:
        """Where a moment of a lane stands on the common axis."""
        return time - lane.start if self.elapsed else time


def build_timeline(
    matches: pa.Table, options: TimelineOptions | None = None, context: pa.Table | None = None
) -> Timeline:
    """
    The timeline of the first matches of a table `match_id, query, start, end`, variables.

    `context` holds events of the stream; those that share a lane's name and fall into its match
    or its window are shown too.
    """
    options = options or TimelineOptions()
    variables = _variable_columns(matches, options)
    shown = _shortest_of_each_name(matches, variables, options) if options.one_per_name else matches
    rows = python_rows(shown.slice(0, options.limit))
    scale = TimeScale.of(rows[0]["start"]) if rows else _scale_of_type(matches)
    window = None if options.window is None else scale.number(options.window)
    lanes = tuple(
        _lane(number, row, variables, options, scale, window, context)
        for number, row in enumerate(rows, start=1)
    )
    elapsed = _is_elapsed(lanes, options.axis)
    return Timeline(
        title=options.title,
        subtitle=_subtitle(lanes, matches.num_rows, scale, elapsed),
        scale=scale,
        elapsed=elapsed,
        lanes=lanes,
        variables={name: _types_under(name, rows, options.type) for name in variables},
        window=window,
    )


def _variable_columns(matches: pa.Table, options: TimelineOptions) -> list[str]:
    missing = [name for name in ("start", "end") if name not in matches.column_names]
    if missing:
        message = f"the table has no column `{missing[0]}`, so its rows are no matches"
        raise DataError.of(
            NOT_A_MATCH_TABLE,
            message,
            help="give the result of `detect`, `scan` or `run`, not the events",
        )
    variables = []
    for field in matches.schema:
        inner = field.type.value_type if _is_list(field.type) else field.type
        if not pa.types.is_struct(inner):
            continue
        if inner.get_field_index(options.time) < 0:
            message = f"the events of variable `{field.name}` have no attribute `{options.time}`"
            raise DataError.of(NOT_A_MATCH_TABLE, message, help="name the time column with `time=`")
        variables.append(field.name)
    if not variables:
        message = "the table has no column with the events of a variable"
        raise DataError.of(
            NOT_A_MATCH_TABLE, message, help="a query that selects columns hides its events"
        )
    return variables


def _scale_of_type(matches: pa.Table) -> TimeScale:
    return TimeScale(UTC if pa.types.is_timestamp(matches.schema.field("start").type) else None)


def _shortest_of_each_name(
    matches: pa.Table, variables: list[str], options: TimelineOptions
) -> pa.Table:
    named = [
        variable
        for variable in variables
        if pa.types.is_struct(matches.schema.field(variable).type)
        and options.name is not None
        and matches.schema.field(variable).type.get_field_index(options.name) >= 0
    ]
    if not named or options.name is None:
        message = "`one_per_name` needs a `name` that some variable's event has"
        raise OptionError.of(BAD_TIMELINE_OPTION, message)
    names = pc.struct_field(matches[named[0]], options.name).to_pylist()
    lengths = pc.subtract(matches["end"], matches["start"]).cast(pa.int64()).to_pylist()
    shortest: dict[object, int] = {}
    for i, (name, length) in enumerate(zip(names, lengths, strict=True)):
        if (length or 0) < (lengths[shortest.setdefault(name, i)] or 0):
            shortest[name] = i
    return matches.take(sorted(shortest.values()))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _lane(
    number: int,
    row: dict[str, Any],
    variables: list[str],
    options: TimelineOptions,
    scale: TimeScale,
    window: int | None,
    context: pa.Table | None,
) -> Lane:
    start, end = scale.number(row["start"]), scale.number(row["end"])
    events = [(name, event) for name in variables for event in _events(row[name])]
    marks = [_mark(name, event, options, scale) for name, event in events]
    marks.sort(key=lambda mark: mark.time)
    window_end = None if window is None else start + window
    name = _first_value(options.name, events) if options.name else None
    described = (_first_value(attribute, events) for attribute in options.description)
    return Lane(
        name=_as_text(name) if name is not None else f"match {number}",
        description=" · ".join(_as_text(value) for value in described if value is not None),
        start=start,
        end=end,
        window_end=window_end,
        marks=tuple(marks),
        gaps=_gaps(options.absences, marks, start, end, window),
        context=_context(context, options, scale, name, marks, start, window_end or end),
    )


def _events(value: dict[str, Any] | list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    if value is None:  # the variable of a branch that did not take part
        return []
    return value if isinstance(value, list) else [value]


def _mark(
    variable: str | None, event: dict[str, Any], options: TimelineOptions, scale: TimeScale
) -> Mark:
    detail = (event[name] for name in options.detail if event.get(name) is not None)
    return Mark(
        variable=variable,
        time=scale.number(event[options.time]),
        text=variable if variable is not None else _as_text(event.get(options.type, "")),
        detail=" · ".join(_as_text(value) for value in detail),
        attributes={name: _as_text(value) for name, value in event.items() if value is not None},
    )


def _as_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _first_value(attribute: str, events: list[tuple[str, dict[str, Any]]]) -> object:
    return next((e[attribute] for _, e in events if e.get(attribute) is not None), None)


def _gaps(
    absences: Sequence[Absence], marks: list[Mark], start: int, end: int, window: int | None
) -> tuple[Gap, ...]:
    gaps = []
    for absence in absences:
        if (absence.after is None or absence.before is None) and window is None:
            message = f"the absence of {absence.label} at an end of the match needs a `window`"
            raise OptionError.of(BAD_TIMELINE_OPTION, message)
        length = window or 0
        after = [mark.time for mark in marks if mark.variable == absence.after]
        before = [mark.time for mark in marks if mark.variable == absence.before]
        # Iterated variables have several events: the stretch lies between last and first.
        begin = max(after) if after else (end - length if absence.after is None else None)
        stop = min(before) if before else (start + length if absence.before is None else None)
        if begin is not None and stop is not None:
            gaps.append(Gap(f"no {absence.label}", begin, stop))
    return tuple(gaps)


def _context(
    events: pa.Table | None,
    options: TimelineOptions,
    scale: TimeScale,
    name: Any,
    marks: list[Mark],
    begin: int,
    end: int,
) -> tuple[Mark, ...]:
    if events is None or options.name is None or name is None:
        return ()
    for column in (options.name, options.time):
        if column not in events.column_names:
            message = f"the context events have no column `{column}`"
            raise DataError.of(NOT_A_MATCH_TABLE, message)
    names = events[options.name]
    if pa.types.is_dictionary(names.type):
        names = names.cast(names.type.value_type)
    same = events.filter(pc.is_in(names, pa.array([name], names.type)))
    shown = {(mark.time, mark.attributes.get(options.type)) for mark in marks}
    others = [_mark(None, event, options, scale) for event in python_rows(same)]
    return tuple(
        mark
        for mark in others
        if begin <= mark.time <= end and (mark.time, mark.attributes.get(options.type)) not in shown
    )


def _types_under(variable: str, rows: list[dict[str, Any]], type_attribute: str) -> str:
    types = {
        str(event[type_attribute])
        for row in rows
        for event in _events(row[variable])
        if event.get(type_attribute) is not None
    }
    return " or ".join(sorted(types))


def _is_elapsed(lanes: tuple[Lane, ...], axis: Axis) -> bool:
    if axis != "auto":
        return axis == "elapsed"
    if len(lanes) < 2:
        return False
    longest = max(lane.end - lane.start for lane in lanes)
    spread = max(lane.end for lane in lanes) - min(lane.start for lane in lanes)
    return spread > _SPREAD_FOR_ELAPSED * longest


def _subtitle(lanes: tuple[Lane, ...], total: int, scale: TimeScale, elapsed: bool) -> str:
    if not lanes:
        return "no match"
    told = [f"{len(lanes)} of {total:,} matches" if total > len(lanes) else f"{total} matches"]
    if total == 1:
        told = ["1 match"]
    if scale.is_clock:
        told += _days(lanes, scale)
    if elapsed:
        told.append("each lane begins with its own match")
    return " · ".join(told)


def _days(lanes: tuple[Lane, ...], scale: TimeScale) -> list[str]:
    first = scale.moment(min(lane.start for lane in lanes))
    last = scale.moment(max(lane.end for lane in lanes))
    days = [f"{day.day} {day:%B %Y}" for day in (first, last)]
    return [" to ".join(dict.fromkeys(days)), first.tzname() or "UTC"]
