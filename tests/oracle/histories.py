"""Histories for the oracle: from rows as users give them, and at random from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from cepheid.testing import stream
from tests.oracle.events import Ev


def from_rows(rows: Iterable[Mapping[str, Any]], name: str = "id") -> list[Ev]:
    """Events in arrival order; a missing key is an absent attribute."""
    own = {name, "type", "ts", "start", "end"}
    return [
        Ev(
            row[name],
            row["type"],
            row.get("start", row.get("ts")),
            row.get("end", row.get("ts")),
            {key: value for key, value in row.items() if key not in own},
            position,
        )
        for position, row in enumerate(rows)
    ]


def history(text: str) -> list[Ev]:
    """The events of a stream's text; one with an attribute `id` is told by its name all the same.

    >>> [(event.id, event.ts, event.te) for event in history("A1@1 B1@[2,9](id=3)")]
    [('A1', 1, 1), ('B1', 2, 9)]
    """
    return from_rows(stream(text, name="event"), name="event")


def random_history(
    seed: int,
    *,
    types: str = "ABCN",
    size: int = 12,
    span: int = 12,
    intervals: bool = False,
    ties: bool = True,
    keys: int = 2,
) -> list[Ev]:
    """A small dense history: random types, times (tied or not), keys `k` and values `v`."""
    source = random.Random(seed)
    count = source.randint(0, size)
    times = [source.randint(0, span) for _ in range(count)]
    if not ties:
        times = source.sample(range(span * 2), min(count, span * 2))
    events = []
    for position, start in enumerate(sorted(times)):
        end = start + source.choice((0, 0, 1, 3)) if intervals else start
        attrs = {"k": source.randrange(keys), "v": source.randint(0, 3)}
        type = source.choice(types)
        events.append(Ev(f"{type}{position}", type, start, end, attrs, position))
    return events
