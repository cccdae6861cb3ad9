"""Where a text's file sinks write: a path is only a name, and what is read stays as it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cepheid.model.catalogue import Sink
from cepheid.model.diagnostics import Diagnostic, SourceText
from cepheid.model.errors import OptionError, QueryError
from cepheid.model.match_formats import SUFFIXES, format_of_name


def sink_file(sink: Sink, text: SourceText) -> tuple[Path, str]:
    """The file of a sink, relative to the working folder, and the format that its name tells."""
    assert sink.path is not None
    kind = format_of_name(sink.path)
    if kind is None:
        raise QueryError(
            Diagnostic(
                "unknown-format",
                f"the sink `{sink.name}` writes to `{sink.path}`, whose name tells no format",
                sink.place,
                "not a file of matches",
                help=f"end it in {', '.join(SUFFIXES)}; a name without an ending is a folder",
                source=text,
            )
        )
    return Path(sink.path), kind


def refuse_overwriting(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse to write to a file that is read, or to write two answers to one."""
    read = {path.resolve() for path in inputs}
    written: set[Path] = set()
    for path in outputs:
        whole = path.resolve()
        if whole in read:
            raise OptionError.of(
                "overwrites-input",
                f"the matches would be written to `{path}`, which is read",
                help="write them to another file",
            )
        if whole in written:
            raise OptionError.of(
                "output-twice",
                f"two queries would write their matches to `{path}`",
                help="give each sink a file of its own",
            )
        written.add(whole)
