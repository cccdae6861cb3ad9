"""What `cepheid run` was asked to do, and what came of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cepheid import CompiledQuery

_HINT = "; --limit shows more, --out writes them all"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A query, its options, where the events are and where the matches go.

    `events` are paths by source, or one path under no name. `inputs` are other files that are read.
    `title` stands over a table when there are several.
    """

    text: str
    name: str
    language: str | None
    query: str | None
    options: Mapping[str, Any]
    events: Mapping[str, str]
    out: Path | None
    format: str
    limit: int
    show: tuple[str, ...] | None
    master: str
    verbose: bool
    inputs: tuple[Path, ...] = ()
    title: str | None = None

    @property
    def path(self) -> str | None:
        """The one path of all events; None when they come by source."""
        return self.events.get("")

    def compiled(self) -> CompiledQuery:
        """The checked query, the one of the program that was asked for."""
        from cepheid import compile  # noqa: PLC0415 (loads the engine)

        compiled = compile(self.text, self.language, name=self.name)
        return compiled if self.query is None else compiled[self.query]

    def targets(self, read: Sequence[Path] = ()) -> tuple[RunRequest, ...]:
        """What is to be done for each query: the one that is asked for, and all that have a sink.

        A query's matches go to its sink, but those of the one asked for to --out if that is given.
        On the command line the table of a `table` sink is shown, and there is nobody to call back.
        `read` are the files of the events, which are not written to.
        """
        # What a text without sinks does not need is not loaded for it.
        from cepheid.delivery.sink_files import refuse_overwriting, sink_file  # noqa: PLC0415
        from cepheid.model.catalogue import SinkKind  # noqa: PLC0415

        asked = self.compiled()
        sinks = asked.program.catalogue.sinks
        names = [name for name in asked.names if name == asked.name or name in sinks]
        targets = []
        for name in names if self.query is None else [asked.name]:
            sink = sinks.get(name)
            kind = SinkKind.CONSOLE if sink is None else sink.kind
            target = replace(self, query=name)
            if name == asked.name and (self.out is not None or self.format != "table"):
                pass
            elif sink is not None and kind is SinkKind.FILE:
                path, form = sink_file(sink, asked.source)
                target = replace(target, out=path, format=form)
            else:
                if kind is SinkKind.CALLBACK:
                    _tell_of_callback(name, is_shown=name == asked.name)
                    if name != asked.name:
                        continue
                target = replace(target, out=None, format="table")
            targets.append(target)
        shown = [target for target in targets if target.format == "table"]
        if len(shown) > 1:
            targets = [
                replace(each, title=each.query) if each.format == "table" else each
                for each in targets
            ]
        files = [each.out for each in targets if each.out is not None and str(each.out) != "-"]
        refuse_overwriting(files, (*self.inputs, *read))
        return tuple(targets)

    def show_matches(self, compiled: CompiledQuery, matches: Any, total: int) -> None:
        """Print the first matches as a table, and how many there are."""
        # rich is loaded only for a table.
        from cepheid.delivery.match_table import event_attributes, show_matches_of  # noqa: PLC0415
        from cepheid.model.options import make_options  # noqa: PLC0415

        known = event_attributes(matches.schema)
        for name in self.show or ():
            if name not in known:
                sys.stderr.write(f"note: --show {name}: no event of the matches has it\n")
        show_matches_of(
            compiled,
            make_options(self.options),
            matches,
            total,
            attributes=self.show,
            title=self.title,
            hint=_HINT,
        )

    def note(self, text: str) -> None:
        """Tell a person, who sits at a terminal or asked for it, how the work is done."""
        if self.verbose or sys.stderr.isatty():
            sys.stderr.write(f"{text}\n")


def _tell_of_callback(name: str, *, is_shown: bool) -> None:
    """Tell that there is nobody to call; the query that is asked for is shown instead."""
    instead = ": its matches are shown" if is_shown else ""
    sys.stderr.write(f"note: `{name}` has a callback, which only a program can give{instead}\n")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run saw and found for one query; a figure that the host cannot tell is None.

    `notes` tell why it may have found nothing.
    """

    request: RunRequest
    matches: int
    events: int | None = None
    late: int = 0
    quarantined: int = 0
    undefined_keys: int = 0
    notes: tuple[str, ...] = ()


def tell(outcomes: Sequence[Outcome], seconds: float) -> None:
    """The events that could not be used, always; the rest for a person."""
    for count, what in (
        (max(each.late for each in outcomes), "too late to be used"),
        (
            max(each.quarantined for each in outcomes),
            "left out: no type or no usable time",
        ),
        (
            max(each.undefined_keys for each in outcomes),
            "could not match: null in a key attribute",
        ),
    ):
        if count:
            sys.stderr.write(f"note: {count:,} event{'s' if count > 1 else ''} {what}\n")
    for note in dict.fromkeys(note for each in outcomes for note in each.notes):
        sys.stderr.write(f"note: {note}\n")
    for each in outcomes:
        out = each.request.out
        if out is not None and str(out) != "-":
            of = "" if each.events is None else f" in {each.events:,} events"
            written = f"{each.matches:,} matches{of}, {seconds:.1f} s, written to {out}"
            each.request.note(written)
