"""Where the matches of a submitted query go: `register sink NAME ...` in its text, or as usual.

Usual is the manager's folder, one file of JSON lines for each batch; `table` means the same here.
`console` is shown by the sink proxy as well. A `file` is a file that grows, or, without an ending,
a folder with a Parquet file for each batch. A callback is for programs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from cepheid.delivery.sink_files import sink_file
from cepheid.model.catalogue import Sink, SinkKind
from cepheid.model.diagnostics import Diagnostic, SourceText
from cepheid.model.errors import OptionError, QueryError
from cepheid.planner.compiled_query import CompiledQuery


class Way(StrEnum):
    """How matches are delivered."""

    USUAL = "usual"
    SHOWN = "shown"
    GROWING_FILE = "file"
    PARTS = "parts"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a query's matches go; `path` is absolute, `format` that of the file."""

    way: Way = Way.USUAL
    path: str | None = None
    format: str = "jsonl"

    def as_json(self) -> dict[str, Any]:
        """For the journal."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any] | None) -> Target:
        """The other way round; nothing is as usual."""
        return cls() if values is None else cls(**{**values, "way": Way(values["way"])})


def target_of(query: CompiledQuery, folder: Path) -> Target:
    """What the text says of the query's sink; paths are relative to the folder of who submits."""
    sink = query.program.catalogue.sinks.get(query.name)
    match None if sink is None else sink.kind:
        case SinkKind.CONSOLE:
            return Target(Way.SHOWN)
        case SinkKind.FILE:
            assert sink is not None
            return _file_of(sink, query.source, folder)
        case SinkKind.CALLBACK:
            assert sink is not None
            raise _wrong(
                sink,
                query.source,
                "callback-in-manager",
                f"the sink `{sink.name}` is a callback, which only a program can give",
                "register it as file, table or console; or use cepheid.deliver",
            )
        case _:
            return Target()


def _file_of(sink: Sink, text: SourceText, folder: Path) -> Target:
    path, form = sink_file(sink, text)
    whole = str((folder / path).resolve())
    if not path.suffix:
        return Target(Way.PARTS, whole, form)
    if form == "parquet":
        raise _wrong(
            sink,
            text,
            "parquet-cannot-grow",
            f"the sink `{sink.name}` is a Parquet file, to which nothing can be added later",
            f"leave out `{path.suffix}` to get a folder of them, or write .jsonl or .csv",
        )
    return Target(Way.GROWING_FILE, whole, form)


def _wrong(sink: Sink, text: SourceText, code: str, message: str, help: str) -> QueryError:
    return QueryError(
        Diagnostic(code, message, sink.place, "registered here", help=help, source=text)
    )


def prepare_target(target: Target, taken: Collection[str], events: Path, state: Path) -> None:
    """See that a query can deliver there: nothing else is there, nobody else writes there.

    `taken` are the paths of other queries; event files are read from `events`.
    """
    if target.path is None:
        return
    path = Path(target.path)
    if path.parent == events or path.is_relative_to(state):
        raise OptionError.of(
            "overwrites-input",
            f"the matches would be written to `{path}`, in a folder that the manager reads",
            help="write them to another folder",
        )
    if target.path in taken:
        raise OptionError.of(
            "output-twice",
            f"two queries would write their matches to `{path}`",
            help="give each sink a file of its own; matches of a stopped query may still come",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if target.way is Way.PARTS:
            path.mkdir(exist_ok=True)
            is_empty = not any(path.iterdir())
        else:
            with path.open("ab") as stream:
                is_empty = stream.tell() == 0
    except OSError as problem:
        raise OptionError.of(
            "bad-sink", f"nothing can be written to `{path}`: {problem.strerror}"
        ) from None
    if not is_empty:
        raise OptionError.of(
            "output-exists",
            f"`{path}` exists and is not empty",
            help="move it away, or give the sink another name",
        )
