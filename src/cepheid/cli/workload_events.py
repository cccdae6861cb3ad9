"""How a manager reads event files: as `cepheid run` does, one file after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from cepheid.cli.event_files import format_of
from cepheid.cli.event_readers import TypesChanged, open_reader, read_whole
from cepheid.manager.event_folder import Read, ReadAnew
from cepheid.model.errors import OptionError


def reader(text_column: str) -> Read:
    """Reads the batches of a file; `text_column` is the column of the event type."""

    def read(path: Path, like: pa.Schema | None, *, whole: bool) -> Iterator[pa.RecordBatch]:
        kind = format_of(path)
        if whole:
            yield from read_whole(path, kind, text_column).to_batches()
            return
        try:
            yield from open_reader(path, kind, text_column, like=like).batches()
        except TypesChanged:
            raise ReadAnew from None

    return read


def is_event_file(path: Path) -> bool:
    """Whether a file's name tells a format of events."""
    try:
        return bool(format_of(path))
    except OptionError:
        return False
