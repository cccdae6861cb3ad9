"""What a bucket of a stream runs, and what it has to know: of one query, or of a workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self, TypeVar

import pyarrow as pa

from cepheid.hosts.live_engine import LiveEvents
from cepheid.hosts.set_aside import SideOutput
from cepheid.hosts.stream_clock import StreamClock
from cepheid.model.options import Options


class Front(Protocol):
    """What decides lateness where several queries share it."""

    def state(self) -> dict[str, Any]:
        """What is stored of it."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from there."""


class Delivered(Protocol):
    """Matches of one query, or of several."""

    def __add__(self: Self, other: Self) -> Self:
        """The matches of two calls together."""

    def tables(self, rows: int) -> Iterator[pa.Table]:
        """The matches as tables of about so many rows."""


F = TypeVar("F", bound=Delivered)
F_co = TypeVar("F_co", bound=Delivered, covariant=True)


class Running(Protocol[F_co]):
    """What a bucket runs: a detector, or the queries of a workload."""

    @property
    def engines(self) -> tuple[LiveEvents, ...]:
        """The engines whose live events are the state."""

    @property
    def front(self) -> Front | None:
        """What decides lateness for several queries; None where the one engine does."""

    @property
    def quarantined(self) -> SideOutput:
        """Rows without a type or a usable time."""

    def feed(self, events: Any) -> F_co:
        """Take events; what became final."""

    def advance(self, watermark: int) -> F_co:
        """Move the watermark; what became final."""


class Task(Protocol[F]):
    """What a bucket has to know of its streaming query."""

    @property
    def options(self) -> Options:
        """The options of the detection."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the events."""

    @property
    def clock(self) -> StreamClock:
        """How the watermark is read."""

    @property
    def fingerprint(self) -> str:
        """What must be the same for a state to be gone on from."""

    @property
    def run(self) -> str:
        """A name for this run of the query."""

    def detector(self, bucket: int, queries: list[Any] | None) -> Running[F]:
        """What runs in a bucket, with nothing seen; `queries` are those that the state names."""

    def changed(
        self, detector: Running[F], bucket: int, orders: Sequence[str], watermark: int
    ) -> tuple[Running[F], list[Any]] | None:
        """What runs after orders were carried out, and its queries; None if nothing changes."""

    def owned(self, matches: F, bucket: int) -> F:
        """The matches that belong to a bucket, of those it has found."""

    def is_slowed(self, detector: Running[F], bucket: int) -> bool:
        """Whether it should be built anew from the state."""
