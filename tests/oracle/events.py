"""The events and matches of the oracle (SPEC B2), plain values without any engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Ev:
    """An event: an attribute missing from `attrs` is absent, one that is None is null.

    A derived event (Map, Agg) knows the events it was made of, because an event bound anywhere
    inside a match is no witness against it (SPEC A0.3, Part F).
    """

    id: Any
    type: str
    ts: int
    te: int
    attrs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    seq: int = 0
    parts: tuple[Ev, ...] = ()

    def ids(self) -> Iterator[Any]:
        """The event's id and those of everything inside it."""
        yield self.id
        for part in self.parts:
            yield from part.ids()


@dataclass(frozen=True)
class Match:
    """A match; a variable may repeat (iteration), and is None where AYAC missed the event."""

    bindings: tuple[tuple[str, Ev | None], ...]
    tv: tuple[int, ...]
    ts: int
    te: int
    fin: int
    p: float = 1.0
    fail: bool = False

    @property
    def events(self) -> tuple[Ev, ...]:
        """The observed events, in pattern order."""
        return tuple(event for _, event in self.bindings if event is not None)

    @property
    def ids(self) -> tuple[Any, ...]:
        """The ids in pattern order, None for a missed component."""
        return tuple(None if event is None else event.id for _, event in self.bindings)

    def all_ids(self) -> frozenset[Any]:
        """The ids of all events inside, also inside derived ones."""
        return frozenset(id for event in self.events for id in event.ids())

    def of(self, variable: str) -> list[Ev]:
        """The observed events of one variable."""
        return [event for name, event in self.bindings if name == variable and event is not None]

    def order(self) -> tuple[Any, ...]:
        """The global order (te, ts, sequence numbers), for determinism only (SPEC E33)."""
        return (self.te, self.ts, tuple(event.seq for event in self.events))

    def first(self) -> tuple[int, int]:
        """Start and arrival number of the earliest event."""
        return min((event.ts, event.seq) for event in self.events)

    def last(self) -> tuple[int, int]:
        """End and arrival number of the latest event."""
        return max((event.te, event.seq) for event in self.events)


def join(*matches: Match, ordered: bool = True) -> Match:
    """SPEC B2's join: bindings and stamps concatenated (sorted where there is no order)."""
    stamps = tuple(stamp for match in matches for stamp in match.tv)
    return Match(
        bindings=tuple(binding for match in matches for binding in match.bindings),
        tv=stamps if ordered else tuple(sorted(stamps)),
        ts=min(match.ts for match in matches),
        te=max(match.te for match in matches),
        fin=max(match.fin for match in matches),
        p=_product(match.p for match in matches),
    )


def _product(factors: Iterator[float]) -> float:
    result = 1.0
    for factor in factors:
        result *= factor
    return result
