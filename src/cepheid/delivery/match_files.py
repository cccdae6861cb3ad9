"""Matches written to files or standard output: Parquet, CSV or JSON lines, portion by portion."""

from __future__ import annotations

import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

import pyarrow as pa
import pyarrow.csv

from cepheid.delivery.json_text import json_text
from cepheid.delivery.nested_columns import flat_table, plain_table
from cepheid.hosts.plain_types import python_rows
from cepheid.model.errors import OptionError
from cepheid.model.match_formats import SUFFIXES

FORMATS = ("parquet", "csv", "jsonl")


def output_format(out: Path | None, wanted: str | None) -> str:
    """The format asked for, or the one that the file's name tells; `table` for a terminal."""
    if wanted is not None:
        chosen = {"json": "jsonl"}.get(wanted, wanted)
        if chosen not in (*FORMATS, "table"):
            raise OptionError.of(
                "unknown-format",
                f"there is no format `{wanted}`",
                help=f"formats: {', '.join((*FORMATS, 'table'))}",
            )
        if chosen == "table" and out is not None:
            message = "a table is for the terminal, not for a file"
            raise OptionError.of("unknown-format", message, help="leave out --out or --format")
        return chosen
    if out is None:
        return "table"
    if str(out) == "-":
        return "jsonl"
    if not out.suffix:
        return "parquet"
    if out.suffix.lower() not in SUFFIXES:
        raise OptionError.of(
            "unknown-format",
            f"cannot tell the format of `{out.name}` from its name",
            help=f"end it in {', '.join(SUFFIXES)}, or give --format",
        )
    return SUFFIXES[out.suffix.lower()]


class MatchFile(ABC):
    """Matches on their way to a place; `with` decides whether they get there."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._stream = place.stream
        self._is_finished = False

    def write(self, table: pa.Table) -> None:
        """Add matches."""
        self._write(plain_table(table))

    def finish(self) -> None:
        """Write all that is still to be written; what can fail has failed then."""
        if not self._is_finished:
            self._is_finished = True
            self._end()
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            with suppress(Exception):  # a writer must end, but nobody asks how
                self.finish()
            self._place.discard()
            return
        try:
            self.finish()
        except BaseException:
            self._place.discard()
            raise
        self._place.keep()

    @abstractmethod
    def _write(self, table: pa.Table) -> None:
        """Add matches in the file's format."""

    @abstractmethod
    def _end(self) -> None:
        """Write what stands at the end of the file."""


def open_match_file(path: Path | None, kind: str, schema: pa.Schema) -> MatchFile:
    """A file for matches of this schema; None and `-` are standard output, no suffix a folder."""
    place: _Place
    if path is None or str(path) == "-":
        if kind == "parquet":
            message = "Parquet cannot be written to standard output"
            raise OptionError.of("unknown-format", message, help="name a file with --out")
        place = _StandardOutput()
    else:
        place = _File(path if path.suffix else _part_of(path, kind))
    match kind:
        case "parquet":
            return _ParquetFile(place, schema)
        case "csv":
            return _CsvFile(place, schema)
        case _:
            return _JsonLinesFile(place)


def match_bytes(tables: Sequence[pa.Table], kind: str, *, begins: bool) -> bytes:
    """What is added to a file of CSV or JSON lines; `begins` says that the file is empty."""
    place = _Memory()
    file: MatchFile = _JsonLinesFile(place)
    if kind == "csv":
        file = _CsvFile(place, tables[0].schema, header=begins)
    with file:
        for table in tables:
            file.write(table)
    return place.content


def refuse_full_folder(folder: Path) -> None:
    """Parts of another answer must not mix with this one."""
    if folder.exists() and (folder.is_file() or any(folder.iterdir())):
        message = f"`{folder}` exists and is not empty"
        raise OptionError.of("output-exists", message, help="choose another folder")


def _part_of(folder: Path, kind: str) -> Path:
    refuse_full_folder(folder)
    return folder / f"part-00000.{kind}"


class _Place(Protocol):
    """Where bytes go, and when they count."""

    stream: IO[bytes]

    def keep(self) -> None:
        """All is written."""
        ...

    def discard(self) -> None:
        """It went wrong, or must begin anew."""
        ...


class _File:
    """A file that gets its name when it is whole."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._unfinished = path.with_name(f".{path.name}.unfinished")
        self.stream: IO[bytes] = self._unfinished.open("wb")

    def keep(self) -> None:
        self.stream.close()
        self._unfinished.replace(self._path)

    def discard(self) -> None:
        with suppress(OSError):  # a full disk has no room for what was not yet written
            self.stream.close()
        self._unfinished.unlink(missing_ok=True)


class _Memory:
    """Bytes for somebody else to write."""

    def __init__(self) -> None:
        self.stream: IO[bytes] = BytesIO()
        self.content = b""

    def keep(self) -> None:
        self.stream.seek(0)
        self.content = self.stream.read()

    def discard(self) -> None:
        return None


class _StandardOutput:
    """What was printed cannot be taken back, so it waits until the run cannot begin anew."""

    def __init__(self) -> None:
        self.stream: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (open until kept)

    def keep(self) -> None:
        self.stream.seek(0)
        shutil.copyfileobj(self.stream, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        self.stream.close()

    def discard(self) -> None:
        self.stream.close()


class _ParquetFile(MatchFile):
    def __init__(self, place: _Place, schema: pa.Schema) -> None:
        # Loads much more than the writers of text do.
        from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

        super().__init__(place)
        self._schema = plain_table(schema.empty_table()).schema
        self._writer = ParquetWriter(self._stream, self._schema, compression="zstd")

    def _write(self, table: pa.Table) -> None:
        self._writer.write_table(table.cast(self._schema))

    def _end(self) -> None:
        self._writer.close()


class _CsvFile(MatchFile):
    def __init__(self, place: _Place, schema: pa.Schema, *, header: bool = True) -> None:
        super().__init__(place)
        self._schema = flat_table(plain_table(schema.empty_table())).schema
        options = pa.csv.WriteOptions(include_header=header)
        self._writer = pa.csv.CSVWriter(self._stream, self._schema, write_options=options)

    def _write(self, table: pa.Table) -> None:
        self._writer.write_table(flat_table(table).cast(self._schema))

    def _end(self) -> None:
        self._writer.close()


class _JsonLinesFile(MatchFile):
    def _write(self, table: pa.Table) -> None:
        for begin in range(0, len(table), 4096):
            rows = python_rows(table.slice(begin, 4096))
            lines = "".join(f"{json_text(row, _as_text)}\n" for row in rows)
            self._stream.write(lines.encode())

    def _end(self) -> None:
        """Nothing: each line is whole."""


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)
