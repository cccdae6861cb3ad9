"""For tests of your own queries: streams written in one line, and matches told by names.

A stream is a list of events `NAME@TIME`, apart by spaces. The event's type is its name without the
digits at its end; other types are written `TYPE:NAME@TIME`. Attributes stand in parentheses, and
those that all events of a line share stand after a semicolon:

    A1@10 B1@12(price=3, kind='big box') C1@[2,9] SHELF-READING:s1@13 ; room=7

Times are integers, intervals `[start,end]`, or ISO times such as 2026-01-31T10:00:05. Values are
integers, decimals, true, false, null, quoted strings, or bare words, which are strings too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn, TypeAlias

import cepheid

Event: TypeAlias = dict[str, Any]
Expected: TypeAlias = str | Mapping[str, Any]

_TOKEN = re.compile(
    r"""[ \t]*(?:
      (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<word>[^\s()\[\],;='"@]+)
    | (?P<sign>[()\[\],;=@])
    | (?P<line>\n)
    | (?P<end>\Z))""",
    re.VERBOSE,
)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CONSTANTS = {"null": None, "true": True, "false": False}


def stream(text: str, name: str = "id") -> list[Event]:
    """The events a text describes, as rows for `cepheid.detect`.

    Each row holds the event's name under `name`, its `type`, its time as `ts`, and its attributes;
    if any event is an interval, all have `start` and `end` instead of `ts`.

    >>> stream("A1@10 B1@12(price=3)")
    [{'id': 'A1', 'type': 'A', 'ts': 10}, {'id': 'B1', 'type': 'B', 'ts': 12, 'price': 3}]
    >>> stream("SHELF-READING:s1@1(tag='x 1') ; room=7")
    [{'id': 's1', 'type': 'SHELF-READING', 'ts': 1, 'tag': 'x 1', 'room': 7}]
    >>> stream("A1@[2,9]")
    [{'id': 'A1', 'type': 'A', 'start': 2, 'end': 9}]
    """
    written = _Parser(text).stream()
    has_intervals = any(event.end is not None for event in written)
    return [event.row(name, has_intervals) for event in written]


def assert_matches(
    events: str | Sequence[Event], query: Any, expected: Iterable[Expected], **options: Any
) -> None:
    """Fail, showing the difference, unless the query finds exactly these matches.

    `events` is a stream's text, or rows with an `id`. A match is told by the names of its events
    in pattern order; ` @14` at its end also tells its result time. A mapping tells the values of
    some columns instead, for queries with a RETURN clause. `options` go to `cepheid.detect`.

    >>> assert_matches(
    ...     "A1@1 B1@2 A2@3 B2@7",
    ...     "EVENT SEQ(A x, B y) WITHIN 5",
    ...     ["A1 B1", "A2 B2 @7"],
    ... )
    >>> assert_matches("A1@1 B1@2", "EVENT SEQ(A x, B y) WITHIN 1", ["A1 B1"])
    Traceback (most recent call last):
    ...
    AssertionError: the matches differ
      missing:    A1 B1
    """
    name = str(options.get("id", "id"))
    if isinstance(events, str):
        # A stream may have an attribute `id` of its own, such as the tag of an item.
        name = "event" if "id" in _attribute_names(events) else name
        events = stream(events, name)
    columns = {"start": "start", "end": "end"} if _has_intervals(events) else {}
    found = cepheid.detect(list(events), query, **(columns | options | {"id": name}))
    difference = match_difference(list(expected), found.to_pylist(), name)
    if difference:
        raise AssertionError("the matches differ\n" + difference)


def match_names(row: Mapping[str, Any], name: str = "id") -> str:
    """The names of a match's events in pattern order; a missed component is `-`.

    >>> match_names({"match_id": "f3", "end": 3, "x": {"id": "A1"}, "y": [{"id": "B1"}]})
    'A1 B1'
    """
    return " ".join(_names(row.values(), name))


def match_difference(
    expected: Sequence[Expected], rows: Sequence[Mapping[str, Any]], name: str = "id"
) -> str:
    """What is missing and what is too much, one match a line; empty when they agree.

    >>> print(match_difference(["A1 B1", "A2 B1"], [{"x": {"id": "A1"}, "y": {"id": "B1"}}]))
      missing:    A2 B1
    """
    left = list(rows)
    missing: list[Expected] = []
    for match in expected:
        agreeing = next((row for row in left if _agrees(match, row, name)), None)
        if agreeing is None:
            missing.append(match)
        else:
            left.remove(agreeing)
    shown = [_shown(row, expected, name) for row in left]
    return "\n".join(
        [f"  missing:    {match}" for match in missing]
        + [f"  unexpected: {match}" for match in shown]
    )


def _agrees(expected: Expected, row: Mapping[str, Any], name: str) -> bool:
    if isinstance(expected, str):
        names, _, time = expected.partition("@")
        timely = not time or _time(time.strip()) == row["end"]
        return timely and names.split() == match_names(row, name).split()
    return all(column in row and row[column] == value for column, value in expected.items())


def _shown(row: Mapping[str, Any], expected: Sequence[Expected], name: str) -> str:
    """A match in the way the expected ones are told."""
    if expected and not isinstance(expected[0], str):
        return str({column: row.get(column) for column in expected[0]})
    timed = any(isinstance(match, str) and "@" in match for match in expected)
    return match_names(row, name) + (f" @{row['end']}" if timed else "")


def _names(values: Iterable[Any], name: str) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping) and name in value:
            yield "-" if value[name] is None else str(value[name])
        elif isinstance(value, list):
            yield from _names(value, name)


def _attribute_names(text: str) -> set[str]:
    return {name for event in _Parser(text).stream() for name in event.attributes}


def _has_intervals(events: Sequence[Event]) -> bool:
    return bool(events) and "start" in events[0] and "end" in events[0]


@dataclass(frozen=True, slots=True)
class _Written:
    """One event as written; `end` is None for an instant."""

    name: str
    type: str
    start: int | datetime
    end: int | datetime | None
    attributes: dict[str, Any]

    def row(self, name: str, has_intervals: bool) -> Event:
        row: Event = {name: self.name, "type": self.type}
        if has_intervals:
            row |= {"start": self.start, "end": self.start if self.end is None else self.end}
        else:
            row["ts"] = self.start
        taken = row.keys() & self.attributes.keys()
        if taken:
            message = f"{self.name}: `{min(taken)}` is taken, choose another name for the attribute"
            raise ValueError(message)
        return row | self.attributes


class _Parser:
    """Recursive descent over the tokens of a stream's text."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._position = 0
        self._kind, self._token = "", ""
        self._next()

    def stream(self) -> list[_Written]:
        events: list[_Written] = []
        while self._kind != "end":
            events += self._line()
        return events

    def _line(self) -> list[_Written]:
        events: list[_Written] = []
        shared: dict[str, Any] = {}
        while self._kind not in ("line", "end"):
            if self._skip(";"):
                shared = self._attributes(closed_by=None)
                break
            events.append(self._event())
        if self._kind == "line":
            self._next()
        for event in events:
            for name, value in shared.items():
                event.attributes.setdefault(name, value)
        return events

    def _event(self) -> _Written:
        word = self._word("an event, such as A1@10")
        type, separator, name = word.rpartition(":")
        if not separator:
            type = word.rstrip("0123456789")
            if not type:
                self._fail(f"`{word}` has no type: write TYPE:{word}")
        self._expect("@")
        if self._skip("["):
            start = self._time()
            self._expect(",")
            end: int | datetime | None = self._time()
            self._expect("]")
        else:
            start, end = self._time(), None
        attributes = self._attributes(closed_by=")") if self._skip("(") else {}
        return _Written(name, type, start, end, attributes)

    def _time(self) -> int | datetime:
        word = self._word("a time")
        time = _time(word)
        if time is None:
            self._fail(f"`{word}` is not a time: write an integer or an ISO time")
        return time

    def _attributes(self, closed_by: str | None) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        while self._kind == "word":
            name = self._word("an attribute")
            self._expect("=")
            attributes[name] = self._value()
            if not self._skip(","):
                break
        if closed_by is not None:
            self._expect(closed_by)
        elif self._kind not in ("line", "end"):
            self._fail("expected `,` or the end of the line")
        return attributes

    def _value(self) -> Any:
        if self._kind == "quoted":
            text = re.sub(r"\\(.)", r"\1", self._token[1:-1])
            self._next()
            return text
        return _scalar(self._word("a value"))

    def _word(self, what: str) -> str:
        if self._kind != "word":
            self._fail(f"expected {what}")
        word = self._token
        self._next()
        return word

    def _skip(self, sign: str) -> bool:
        if self._kind == "sign" and self._token == sign:
            self._next()
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._skip(sign):
            self._fail(f"expected `{sign}`")

    def _next(self) -> None:
        found = _TOKEN.match(self._text, self._position)
        if found is None or found.lastgroup is None:
            self._fail("an open quote")
        self._position = found.end()
        self._kind, self._token = found.lastgroup, found.group(found.lastgroup)

    def _fail(self, message: str) -> NoReturn:
        read = self._text[: self._position].rstrip()
        place = f"{message}, after `{read[-40:]}`"
        raise ValueError(place)


def _time(word: str) -> int | datetime | None:
    try:
        return int(word) if _INTEGER.fullmatch(word) else datetime.fromisoformat(word)
    except ValueError:
        return None


def _scalar(word: str) -> Any:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if _INTEGER.fullmatch(word):
        return int(word)
    if _DECIMAL.fullmatch(word):
        return float(word)
    return word
