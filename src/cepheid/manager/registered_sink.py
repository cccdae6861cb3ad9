"""Where the matches of a submitted query go: `register sink NAME ...` in its text, or as usual.

Usual is the manager's folder, one file of JSON lines for each batch; `table` means the same here.
`console` is shown by the sink proxy as well. A `file` is a file that grows, or, without an ending,
a folder with a Parquet file for each batch. A callback is for programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a manager itself reads and writes; all paths are resolved."""

    events: Path
    state: Path
    out: Path


@contextmanager
def prepared_target(target: Target, taken: Mapping[str, str], folders: Folders) -> Iterator[None]:
    """See that a query can deliver there: nothing else is there, nobody else writes there.

    `taken` tells for the paths of other queries how to get round them. What is made here for a
    query that is refused after all is removed again.
    """
    if target.path is None:
        yield
        return
    path = Path(target.path)
    _refuse_own(path, folders)
    if target.path in taken:
        raise OptionError.of(
            "output-twice",
            f"two queries would write their matches to `{path}`",
            help=taken[target.path],
        )
    made: list[Path] = []
    try:
        _make(path, target, made)
        yield
    except BaseException:
        for each in reversed(made):
            with suppress(OSError):  # somebody else has put something there meanwhile
                each.rmdir() if each.is_dir() else each.unlink()
        raise


def _refuse_own(path: Path, folders: Folders) -> None:
    """Matches must not become events, nor be mixed up with the manager's own files."""
    for folder in (folders.events, folders.state):
        if path.is_relative_to(folder) or folder.is_relative_to(path):
            raise OptionError.of(
                "overwrites-input",
                f"the matches would be written to `{path}`, and `{folder}` is a folder that the "
                "manager reads",
                help="write them to another folder",
            )
    is_batch = path.parent == folders.out and path.name.startswith("batch-")
    if is_batch or folders.out.is_relative_to(path):
        raise OptionError.of(
            "output-twice",
            f"the matches would be written to `{path}`, among those of queries without a sink",
            help="give the sink another name",
        )


def _make(path: Path, target: Target, made: list[Path]) -> None:
    """Make the file or folder, and the folders above; adds to `made` what was not there."""
    try:
        for folder in reversed(path.parents):
            _make_folder(folder, made)
        if target.way is Way.PARTS:
            _make_folder(path, made)
            is_empty = not any(path.iterdir())
        else:
            is_new = not path.exists()
            with path.open("ab") as stream:
                is_empty = stream.tell() == 0
            if is_new:
                made.append(path)
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


def _make_folder(folder: Path, made: list[Path]) -> None:
    if not folder.is_dir():
        folder.mkdir()
        made.append(folder)
