"""What `cepheid run` was asked to do, and what came of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cepheid import CompiledQuery


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A query, its options, where the events are and where the matches go."""

    text: str
    name: str
    language: str | None
    query: str | None
    options: Mapping[str, Any]
    events: str
    out: Path | None
    format: str
    limit: int
    show: tuple[str, ...] | None
    master: str
    verbose: bool

    def compiled(self) -> CompiledQuery:
        """The checked query, the one of the program that was asked for."""
        from cepheid import compile  # noqa: PLC0415 (loads the engine)

        compiled = compile(self.text, self.language, name=self.name)
        return compiled if self.query is None else compiled[self.query]

    def note(self, text: str) -> None:
        """Tell a person, who sits at a terminal or asked for it, how the work is done."""
        if self.verbose or sys.stderr.isatty():
            sys.stderr.write(f"{text}\n")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run saw and found; a figure that the host cannot tell is None."""

    matches: int
    events: int | None = None
    late: int = 0
    quarantined: int = 0
    undefined_keys: int = 0

    def tell(self, request: RunRequest, seconds: float) -> None:
        """The events that could not be used, always; the rest for a person."""
        for count, what in (
            (self.late, "too late to be used"),
            (self.quarantined, "left out: no type or no usable time"),
            (self.undefined_keys, "could not match: null in a key attribute"),
        ):
            if count:
                sys.stderr.write(f"note: {count:,} event{'s' if count > 1 else ''} {what}\n")
        if request.out is not None and str(request.out) != "-":
            of = "" if self.events is None else f" in {self.events:,} events"
            written = f"{self.matches:,} matches{of}, {seconds:.1f} s, written to {request.out}"
            request.note(written)
